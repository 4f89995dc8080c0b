// What the text of a kernel that was written in Rust is made of: the numbers, arrays, tuples and
// functions of Rust with the meaning that they have there. Texts that are compiled together include
// it once each, so it is guarded.
#ifndef NEARFIELD_SUBSET
#define NEARFIELD_SUBSET
namespace nf {

// Integers that wrap around, shift by the lower five bits and give 0 where Rust panics: a division
// by 0. Plain ints stand for indices and for literals whose type follows from the other operand.
struct u32 {
    unsigned bits;
    u32() = default;
    __forceinline__ constexpr u32(int value) : bits(static_cast<unsigned>(value)) {}
    __forceinline__ constexpr u32(unsigned value) : bits(value) {}
    __forceinline__ constexpr u32 operator~() const { return ~bits; }
    __forceinline__ constexpr explicit operator int() const {
        return bits > 0x7fffffffu ? 0x7fffffff : static_cast<int>(bits);
    }
    friend __forceinline__ constexpr u32 operator+(u32 a, u32 b) { return a.bits + b.bits; }
    friend __forceinline__ constexpr u32 operator-(u32 a, u32 b) { return a.bits - b.bits; }
    friend __forceinline__ constexpr u32 operator*(u32 a, u32 b) { return a.bits * b.bits; }
    friend __forceinline__ constexpr u32 operator/(u32 a, u32 b) { return b.bits == 0 ? 0u : a.bits / b.bits; }
    friend __forceinline__ constexpr u32 operator&(u32 a, u32 b) { return a.bits & b.bits; }
    friend __forceinline__ constexpr u32 operator|(u32 a, u32 b) { return a.bits | b.bits; }
    friend __forceinline__ constexpr u32 operator^(u32 a, u32 b) { return a.bits ^ b.bits; }
    friend __forceinline__ constexpr bool operator==(u32 a, u32 b) { return a.bits == b.bits; }
    friend __forceinline__ constexpr bool operator!=(u32 a, u32 b) { return a.bits != b.bits; }
    friend __forceinline__ constexpr bool operator<(u32 a, u32 b) { return a.bits < b.bits; }
    friend __forceinline__ constexpr bool operator<=(u32 a, u32 b) { return a.bits <= b.bits; }
    friend __forceinline__ constexpr bool operator>(u32 a, u32 b) { return a.bits > b.bits; }
    friend __forceinline__ constexpr bool operator>=(u32 a, u32 b) { return a.bits >= b.bits; }
};

struct i32 {
    int value;
    i32() = default;
    __forceinline__ constexpr i32(int value) : value(value) {}
    static __forceinline__ constexpr i32 of(unsigned bits) { return static_cast<int>(bits); }
    __forceinline__ constexpr unsigned bits() const { return static_cast<unsigned>(value); }
    __forceinline__ constexpr i32 operator-() const { return of(0u - bits()); }
    __forceinline__ constexpr i32 operator~() const { return ~value; }
    __forceinline__ constexpr explicit operator int() const { return value; }
    friend __forceinline__ constexpr i32 operator+(i32 a, i32 b) { return of(a.bits() + b.bits()); }
    friend __forceinline__ constexpr i32 operator-(i32 a, i32 b) { return of(a.bits() - b.bits()); }
    friend __forceinline__ constexpr i32 operator*(i32 a, i32 b) { return of(a.bits() * b.bits()); }
    friend __forceinline__ constexpr i32 operator/(i32 a, i32 b) {
        return b.value == 0 ? i32(0) : b.value == -1 ? -a : i32(a.value / b.value);
    }
    friend __forceinline__ constexpr i32 operator&(i32 a, i32 b) { return a.value & b.value; }
    friend __forceinline__ constexpr i32 operator|(i32 a, i32 b) { return a.value | b.value; }
    friend __forceinline__ constexpr i32 operator^(i32 a, i32 b) { return a.value ^ b.value; }
    friend __forceinline__ constexpr bool operator==(i32 a, i32 b) { return a.value == b.value; }
    friend __forceinline__ constexpr bool operator!=(i32 a, i32 b) { return a.value != b.value; }
    friend __forceinline__ constexpr bool operator<(i32 a, i32 b) { return a.value < b.value; }
    friend __forceinline__ constexpr bool operator<=(i32 a, i32 b) { return a.value <= b.value; }
    friend __forceinline__ constexpr bool operator>(i32 a, i32 b) { return a.value > b.value; }
    friend __forceinline__ constexpr bool operator>=(i32 a, i32 b) { return a.value >= b.value; }
};

// The number of places is of any integer type, as in Rust.
__forceinline__ constexpr int places(int n) { return n & 31; }
__forceinline__ constexpr int places(u32 n) { return static_cast<int>(n.bits & 31u); }
__forceinline__ constexpr int places(i32 n) { return n.value & 31; }
template <class N>
__forceinline__ constexpr u32 operator<<(u32 a, N n) { return a.bits << places(n); }
template <class N>
__forceinline__ constexpr u32 operator>>(u32 a, N n) { return a.bits >> places(n); }
template <class N>
__forceinline__ constexpr i32 operator<<(i32 a, N n) { return i32::of(a.bits() << places(n)); }
template <class N>
__forceinline__ constexpr i32 operator>>(i32 a, N n) { return a.value >> places(n); }

#define NF_ASSIGN(T)                                                                      \
    __forceinline__ T& operator+=(T& a, T b) { return a = a + b; }                        \
    __forceinline__ T& operator-=(T& a, T b) { return a = a - b; }                        \
    __forceinline__ T& operator*=(T& a, T b) { return a = a * b; }                        \
    __forceinline__ T& operator/=(T& a, T b) { return a = a / b; }
#define NF_ASSIGN_BITS(T)                                                                 \
    __forceinline__ T& operator&=(T& a, T b) { return a = a & b; }                        \
    __forceinline__ T& operator|=(T& a, T b) { return a = a | b; }                        \
    __forceinline__ T& operator^=(T& a, T b) { return a = a ^ b; }                        \
    template <class N>                                                                    \
    __forceinline__ T& operator<<=(T& a, N n) { return a = a << n; }                      \
    template <class N>                                                                    \
    __forceinline__ T& operator>>=(T& a, N n) { return a = a >> n; }
NF_ASSIGN(u32)
NF_ASSIGN(i32)
NF_ASSIGN_BITS(u32)
NF_ASSIGN_BITS(i32)
#undef NF_ASSIGN
#undef NF_ASSIGN_BITS

__forceinline__ float rem(float a, float b) { return fmodf(a, b); }
__forceinline__ constexpr u32 rem(u32 a, u32 b) { return b.bits == 0 ? 0u : a.bits % b.bits; }
__forceinline__ constexpr i32 rem(i32 a, i32 b) {
    return b.value == 0 || b.value == -1 ? i32(0) : i32(a.value % b.value);
}
__forceinline__ constexpr int rem(int a, int b) { return b == 0 ? 0 : a % b; }
__forceinline__ constexpr bool inverted(bool a) { return !a; }
__forceinline__ constexpr u32 inverted(u32 a) { return ~a; }
__forceinline__ constexpr i32 inverted(i32 a) { return ~a; }
__forceinline__ constexpr bool both(bool a, bool b) { return a && b; }
__forceinline__ constexpr u32 both(u32 a, u32 b) { return a & b; }
__forceinline__ constexpr i32 both(i32 a, i32 b) { return a & b; }
__forceinline__ constexpr bool either(bool a, bool b) { return a || b; }
__forceinline__ constexpr u32 either(u32 a, u32 b) { return a | b; }
__forceinline__ constexpr i32 either(i32 a, i32 b) { return a | b; }
__forceinline__ constexpr bool differ(bool a, bool b) { return a != b; }
__forceinline__ constexpr u32 differ(u32 a, u32 b) { return a ^ b; }
__forceinline__ constexpr i32 differ(i32 a, i32 b) { return a ^ b; }

// Conversions. Those of f32 saturate, and NaN becomes 0.
__forceinline__ constexpr float to_f32(float x) { return x; }
__forceinline__ constexpr float to_f32(int x) { return static_cast<float>(x); }
__forceinline__ constexpr float to_f32(u32 x) { return static_cast<float>(x.bits); }
__forceinline__ constexpr float to_f32(i32 x) { return static_cast<float>(x.value); }
__forceinline__ i32 to_i32(float x) { return __float2int_rz(x); }
__forceinline__ constexpr i32 to_i32(int x) { return x; }
__forceinline__ constexpr i32 to_i32(bool x) { return x ? 1 : 0; }
__forceinline__ constexpr i32 to_i32(u32 x) { return i32::of(x.bits); }
__forceinline__ constexpr i32 to_i32(i32 x) { return x; }
__forceinline__ u32 to_u32(float x) { return __float2uint_rz(x); }
__forceinline__ constexpr u32 to_u32(int x) { return x; }
__forceinline__ constexpr u32 to_u32(bool x) { return x ? 1 : 0; }
__forceinline__ constexpr u32 to_u32(u32 x) { return x; }
__forceinline__ constexpr u32 to_u32(i32 x) { return x.bits(); }
// Indices: what lies beyond any array may be changed.
__forceinline__ int to_index(float x) {
    const int whole = __float2int_rz(x);
    return whole < 0 ? 0 : whole;
}
__forceinline__ constexpr int to_index(int x) { return x; }
__forceinline__ constexpr int to_index(bool x) { return x ? 1 : 0; }
__forceinline__ constexpr int to_index(u32 x) { return static_cast<int>(x); }
__forceinline__ constexpr int to_index(i32 x) { return x.value < 0 ? 0x7fffffff : x.value; }

__forceinline__ u32 to_bits(float x) { return __float_as_uint(x); }
__forceinline__ float from_bits(u32 x) { return __uint_as_float(x.bits); }

// Functions of f32. The first ones are exact or rounded correctly.
__forceinline__ float sqrt(float x) { return sqrtf(x); }
__forceinline__ float recip(float x) { return 1.0f / x; }
__forceinline__ float abs(float x) { return fabsf(x); }
__forceinline__ float min(float a, float b) { return fminf(a, b); }
__forceinline__ float max(float a, float b) { return fmaxf(a, b); }
__forceinline__ float clamp(float x, float low, float high) {
    x = x < low ? low : x;
    return x > high ? high : x;
}
__forceinline__ float mul_add(float a, float b, float c) { return fmaf(a, b, c); }
__forceinline__ float copysign(float x, float sign) { return copysignf(x, sign); }
__forceinline__ float signum(float x) { return x != x ? x : copysignf(1.0f, x); }
__forceinline__ float floor(float x) { return floorf(x); }
__forceinline__ float ceil(float x) { return ceilf(x); }
__forceinline__ float trunc(float x) { return truncf(x); }
__forceinline__ float round(float x) { return roundf(x); }
__forceinline__ float round_ties_even(float x) { return rintf(x); }
__forceinline__ float fract(float x) { return x - truncf(x); }
__forceinline__ bool is_nan(float x) { return x != x; }
__forceinline__ bool is_finite(float x) { return fabsf(x) <= 3.402823466e38f; }
__forceinline__ bool is_infinite(float x) { return fabsf(x) > 3.402823466e38f; }
__forceinline__ bool is_sign_negative(float x) { return __float_as_uint(x) >> 31 != 0; }
__forceinline__ bool is_sign_positive(float x) { return __float_as_uint(x) >> 31 == 0; }
// By squarings from the lowest bit of the exponent on.
__forceinline__ float powi(float x, i32 exponent) {
    unsigned left = exponent.value < 0 ? 0u - exponent.bits() : exponent.bits();
    float power = 1.0f;
    for (; left != 0; left >>= 1) {
        if (left & 1) power *= x;
        x *= x;
    }
    return exponent.value < 0 ? 1.0f / power : power;
}
// These are off by a few units in the last place.
__forceinline__ float exp(float x) { return expf(x); }
__forceinline__ float exp2(float x) { return exp2f(x); }
__forceinline__ float ln(float x) { return logf(x); }
__forceinline__ float log2(float x) { return log2f(x); }
__forceinline__ float log10(float x) { return log10f(x); }
__forceinline__ float sin(float x) { return sinf(x); }
__forceinline__ float cos(float x) { return cosf(x); }
__forceinline__ float tan(float x) { return tanf(x); }
__forceinline__ float tanh(float x) { return tanhf(x); }
__forceinline__ float atan2(float y, float x) { return atan2f(y, x); }
__forceinline__ float powf(float x, float y) { return ::powf(x, y); }

// Functions of integers.
__forceinline__ constexpr int min(int a, int b) { return b < a ? b : a; }
__forceinline__ constexpr int max(int a, int b) { return b > a ? b : a; }
__forceinline__ constexpr u32 min(u32 a, u32 b) { return b < a ? b : a; }
__forceinline__ constexpr u32 max(u32 a, u32 b) { return b > a ? b : a; }
__forceinline__ constexpr i32 min(i32 a, i32 b) { return b < a ? b : a; }
__forceinline__ constexpr i32 max(i32 a, i32 b) { return b > a ? b : a; }
__forceinline__ constexpr u32 clamp(u32 x, u32 low, u32 high) { return x < low ? low : x > high ? high : x; }
__forceinline__ constexpr i32 clamp(i32 x, i32 low, i32 high) { return x < low ? low : x > high ? high : x; }
__forceinline__ constexpr i32 abs(i32 x) { return x < 0 ? -x : x; }
__forceinline__ constexpr i32 signum(i32 x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
__forceinline__ constexpr u32 abs_diff(u32 a, u32 b) { return a < b ? b - a : a - b; }
__forceinline__ constexpr u32 abs_diff(i32 a, i32 b) {
    return a < b ? u32(b.bits() - a.bits()) : u32(a.bits() - b.bits());
}
template <class T>
__forceinline__ constexpr T wrapping_add(T a, T b) { return a + b; }
template <class T>
__forceinline__ constexpr T wrapping_sub(T a, T b) { return a - b; }
template <class T>
__forceinline__ constexpr T wrapping_mul(T a, T b) { return a * b; }
template <class T>
__forceinline__ constexpr T wrapping_add(T a, int b) { return a + b; }
template <class T>
__forceinline__ constexpr T wrapping_sub(T a, int b) { return a - b; }
template <class T>
__forceinline__ constexpr T wrapping_mul(T a, int b) { return a * b; }

// An index that is out of bounds, where Rust panics, is that of the last element.
__forceinline__ constexpr int within(int index, int length) {
    return static_cast<unsigned>(index) < static_cast<unsigned>(length) ? index : length - 1;
}

template <class T, int N>
struct array {
    T values[N];
    __forceinline__ constexpr T& operator[](int index) { return values[within(index, N)]; }
    __forceinline__ constexpr const T& operator[](int index) const { return values[within(index, N)]; }
    __forceinline__ constexpr const T* begin() const { return values; }
    __forceinline__ constexpr const T* end() const { return values + N; }
};

template <class T, class... Rest>
__forceinline__ constexpr array<T, 1 + sizeof...(Rest)> make_array(T first, Rest... rest) {
    return {{first, T(rest)...}};
}

template <int N, class T>
__forceinline__ constexpr array<T, N> repeat(T value) {
    array<T, N> all{};
    for (int k = 0; k < N; k++) all.values[k] = value;
    return all;
}

template <class... T>
struct tuple;
template <>
struct tuple<> {};
template <class A>
struct tuple<A> { A _0; };
template <class A, class B>
struct tuple<A, B> { A _0; B _1; };
template <class A, class B, class C>
struct tuple<A, B, C> { A _0; B _1; C _2; };
template <class A, class B, class C, class D>
struct tuple<A, B, C, D> { A _0; B _1; C _2; D _3; };
template <class A, class B, class C, class D, class E>
struct tuple<A, B, C, D, E> { A _0; B _1; C _2; D _3; E _4; };
template <class A, class B, class C, class D, class E, class F>
struct tuple<A, B, C, D, E, F> { A _0; B _1; C _2; D _3; E _4; F _5; };

template <class... T>
__forceinline__ constexpr tuple<T...> make_tuple(T... parts) { return {parts...}; }

struct Vec3 {
    float x, y, z;
    __forceinline__ constexpr float operator[](int axis) const { return axis == 0 ? x : axis == 1 ? y : z; }
    __forceinline__ constexpr Vec3 operator-() const { return {-x, -y, -z}; }
};
struct Vec2 {
    float x, y;
    __forceinline__ constexpr float operator[](int axis) const { return axis == 0 ? x : y; }
    __forceinline__ constexpr Vec2 operator-() const { return {-x, -y}; }
};
#define NF_VECTOR(op)                                                                                        \
    __forceinline__ constexpr Vec3 operator op(Vec3 a, Vec3 b) { return {a.x op b.x, a.y op b.y, a.z op b.z}; } \
    __forceinline__ constexpr Vec3 operator op(Vec3 a, float b) { return {a.x op b, a.y op b, a.z op b}; }    \
    __forceinline__ constexpr Vec3 operator op(float a, Vec3 b) { return {a op b.x, a op b.y, a op b.z}; }    \
    __forceinline__ constexpr Vec2 operator op(Vec2 a, Vec2 b) { return {a.x op b.x, a.y op b.y}; }           \
    __forceinline__ constexpr Vec2 operator op(Vec2 a, float b) { return {a.x op b, a.y op b}; }              \
    __forceinline__ constexpr Vec2 operator op(float a, Vec2 b) { return {a op b.x, a op b.y}; }              \
    __forceinline__ Vec2& operator op##=(Vec2& a, Vec2 b) { return a = a op b; }                             \
    __forceinline__ Vec2& operator op##=(Vec2& a, float b) { return a = a op b; }                            \
    __forceinline__ Vec3& operator op##=(Vec3& a, Vec3 b) { return a = a op b; }                             \
    __forceinline__ Vec3& operator op##=(Vec3& a, float b) { return a = a op b; }
NF_VECTOR(+)
NF_VECTOR(-)
NF_VECTOR(*)
NF_VECTOR(/)
#undef NF_VECTOR
__forceinline__ constexpr array<float, 2> to_array(Vec2 a) { return {{a.x, a.y}}; }
__forceinline__ constexpr float dot(Vec2 a, Vec2 b) { return a.x * b.x + a.y * b.y; }
__forceinline__ constexpr float length_squared(Vec2 a) { return dot(a, a); }
__forceinline__ float length(Vec2 a) { return sqrtf(dot(a, a)); }
__forceinline__ constexpr Vec3 splat(float x) { return {x, x, x}; }
__forceinline__ constexpr Vec3 to_vec3(array<float, 3> a) { return {a.values[0], a.values[1], a.values[2]}; }
__forceinline__ constexpr Vec3 to_vec3(Vec3 a) { return a; }
__forceinline__ constexpr array<float, 3> to_array(Vec3 a) { return {{a.x, a.y, a.z}}; }
__forceinline__ constexpr float dot(Vec3 a, Vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
__forceinline__ constexpr Vec3 cross(Vec3 a, Vec3 b) {
    return {a.y * b.z - b.y * a.z, a.z * b.x - b.z * a.x, a.x * b.y - b.x * a.y};
}
__forceinline__ constexpr float length_squared(Vec3 a) { return dot(a, a); }
__forceinline__ float length(Vec3 a) { return sqrtf(dot(a, a)); }
__forceinline__ Vec3 abs(Vec3 a) { return {fabsf(a.x), fabsf(a.y), fabsf(a.z)}; }

// Iterators over arrays, as arrays.
template <class T, int N, class F>
__forceinline__ constexpr auto map(const array<T, N>& from, F f) {
    array<decltype(f(from.values[0])), N> to{};
    for (int k = 0; k < N; k++) to.values[k] = f(from.values[k]);
    return to;
}
template <class A, class B, int N, int M>
__forceinline__ constexpr auto zip(const array<A, N>& a, const array<B, M>& b) {
    array<tuple<A, B>, (N < M ? N : M)> both{};
    for (int k = 0; k < (N < M ? N : M); k++) both.values[k] = {a.values[k], b.values[k]};
    return both;
}
template <class T, int N>
__forceinline__ constexpr auto enumerate(const array<T, N>& from) {
    array<tuple<int, T>, N> to{};
    for (int k = 0; k < N; k++) to.values[k] = {k, from.values[k]};
    return to;
}
template <class T, int N>
__forceinline__ constexpr auto rev(const array<T, N>& from) {
    array<T, N> to{};
    for (int k = 0; k < N; k++) to.values[k] = from.values[N - 1 - k];
    return to;
}
template <class T, int N, class A, class F>
__forceinline__ constexpr A fold(const array<T, N>& from, A value, F f) {
    for (int k = 0; k < N; k++) value = f(value, from.values[k]);
    return value;
}
// Sums of f32 begin with -0, as those of Rust do.
template <class S, class T, int N>
__forceinline__ constexpr S sum(const array<T, N>& from, S start) {
    for (int k = 0; k < N; k++) start = start + from.values[k];
    return start;
}
template <class S, class T, int N>
__forceinline__ constexpr S product(const array<T, N>& from, S start) {
    for (int k = 0; k < N; k++) start = start * from.values[k];
    return start;
}

// Values as they lie in uniforms and channels, one float or its bits per number.
template <class T>
struct layout;
template <>
struct layout<float> {
    static constexpr int COUNT = 1;
    static __forceinline__ float read(const float* at) { return at[0]; }
    static __forceinline__ void write(float* at, float value) { at[0] = value; }
};
template <>
struct layout<u32> {
    static constexpr int COUNT = 1;
    static __forceinline__ u32 read(const float* at) { return __float_as_uint(at[0]); }
    static __forceinline__ void write(float* at, u32 value) { at[0] = __uint_as_float(value.bits); }
};
template <>
struct layout<i32> {
    static constexpr int COUNT = 1;
    static __forceinline__ i32 read(const float* at) { return i32::of(__float_as_uint(at[0])); }
    static __forceinline__ void write(float* at, i32 value) { at[0] = __uint_as_float(value.bits()); }
};
template <>
struct layout<int> {
    static constexpr int COUNT = 1;
    static __forceinline__ int read(const float* at) { return static_cast<int>(__float_as_uint(at[0])); }
    static __forceinline__ void write(float* at, int value) { at[0] = __uint_as_float(static_cast<unsigned>(value)); }
};
template <>
struct layout<bool> {
    static constexpr int COUNT = 1;
    static __forceinline__ bool read(const float* at) { return __float_as_uint(at[0]) != 0; }
    static __forceinline__ void write(float* at, bool value) { at[0] = __uint_as_float(value ? 1u : 0u); }
};
template <>
struct layout<Vec2> {
    static constexpr int COUNT = 2;
    static __forceinline__ Vec2 read(const float* at) { return {at[0], at[1]}; }
    static __forceinline__ void write(float* at, Vec2 value) {
        at[0] = value.x;
        at[1] = value.y;
    }
};
template <>
struct layout<Vec3> {
    static constexpr int COUNT = 3;
    static __forceinline__ Vec3 read(const float* at) { return {at[0], at[1], at[2]}; }
    static __forceinline__ void write(float* at, Vec3 value) {
        at[0] = value.x;
        at[1] = value.y;
        at[2] = value.z;
    }
};
template <class T, int N>
struct layout<array<T, N>> {
    static constexpr int COUNT = N * layout<T>::COUNT;
    static __forceinline__ array<T, N> read(const float* at) {
        array<T, N> value;
        for (int k = 0; k < N; k++) value.values[k] = layout<T>::read(at + k * layout<T>::COUNT);
        return value;
    }
    static __forceinline__ void write(float* at, const array<T, N>& value) {
        for (int k = 0; k < N; k++) layout<T>::write(at + k * layout<T>::COUNT, value.values[k]);
    }
};
template <>
struct layout<tuple<>> {
    static constexpr int COUNT = 0;
    static __forceinline__ tuple<> read(const float*) { return {}; }
    static __forceinline__ void write(float*, tuple<>) {}
};
template <class A>
struct layout<tuple<A>> {
    static constexpr int COUNT = layout<A>::COUNT;
    static __forceinline__ tuple<A> read(const float* at) { return {layout<A>::read(at)}; }
    static __forceinline__ void write(float* at, const tuple<A>& value) { layout<A>::write(at, value._0); }
};
template <class A, class B>
struct layout<tuple<A, B>> {
    static constexpr int SECOND = layout<A>::COUNT, COUNT = SECOND + layout<B>::COUNT;
    static __forceinline__ tuple<A, B> read(const float* at) {
        return {layout<A>::read(at), layout<B>::read(at + SECOND)};
    }
    static __forceinline__ void write(float* at, const tuple<A, B>& value) {
        layout<A>::write(at, value._0);
        layout<B>::write(at + SECOND, value._1);
    }
};
template <class A, class B, class C>
struct layout<tuple<A, B, C>> {
    static constexpr int SECOND = layout<A>::COUNT, THIRD = SECOND + layout<B>::COUNT, COUNT = THIRD + layout<C>::COUNT;
    static __forceinline__ tuple<A, B, C> read(const float* at) {
        return {layout<A>::read(at), layout<B>::read(at + SECOND), layout<C>::read(at + THIRD)};
    }
    static __forceinline__ void write(float* at, const tuple<A, B, C>& value) {
        layout<A>::write(at, value._0);
        layout<B>::write(at + SECOND, value._1);
        layout<C>::write(at + THIRD, value._2);
    }
};
template <class A, class B, class C, class D>
struct layout<tuple<A, B, C, D>> {
    typedef tuple<A, B> First;
    typedef tuple<C, D> Second;
    static constexpr int MIDDLE = layout<First>::COUNT, COUNT = MIDDLE + layout<Second>::COUNT;
    static __forceinline__ tuple<A, B, C, D> read(const float* at) {
        const First first = layout<First>::read(at);
        const Second second = layout<Second>::read(at + MIDDLE);
        return {first._0, first._1, second._0, second._1};
    }
    static __forceinline__ void write(float* at, const tuple<A, B, C, D>& value) {
        layout<First>::write(at, {value._0, value._1});
        layout<Second>::write(at + MIDDLE, {value._2, value._3});
    }
};
template <class A, class B, class C, class D, class E>
struct layout<tuple<A, B, C, D, E>> {
    typedef tuple<A, B, C> First;
    typedef tuple<D, E> Second;
    static constexpr int MIDDLE = layout<First>::COUNT, COUNT = MIDDLE + layout<Second>::COUNT;
    static __forceinline__ tuple<A, B, C, D, E> read(const float* at) {
        const First first = layout<First>::read(at);
        const Second second = layout<Second>::read(at + MIDDLE);
        return {first._0, first._1, first._2, second._0, second._1};
    }
    static __forceinline__ void write(float* at, const tuple<A, B, C, D, E>& value) {
        layout<First>::write(at, {value._0, value._1, value._2});
        layout<Second>::write(at + MIDDLE, {value._3, value._4});
    }
};
template <class A, class B, class C, class D, class E, class F>
struct layout<tuple<A, B, C, D, E, F>> {
    typedef tuple<A, B, C> First;
    typedef tuple<D, E, F> Second;
    static constexpr int MIDDLE = layout<First>::COUNT, COUNT = MIDDLE + layout<Second>::COUNT;
    static __forceinline__ tuple<A, B, C, D, E, F> read(const float* at) {
        const First first = layout<First>::read(at);
        const Second second = layout<Second>::read(at + MIDDLE);
        return {first._0, first._1, first._2, second._0, second._1, second._2};
    }
    static __forceinline__ void write(float* at, const tuple<A, B, C, D, E, F>& value) {
        layout<First>::write(at, {value._0, value._1, value._2});
        layout<Second>::write(at + MIDDLE, {value._3, value._4, value._5});
    }
};

template <class T>
__forceinline__ T read(const float* at) { return layout<T>::read(at); }
template <class T>
__forceinline__ void write(float* at, const T& value) { layout<T>::write(at, value); }

// An array of uniforms that is indexed where it lies.
template <class A>
struct table;
template <class T, int N>
struct table<array<T, N>> {
    const float* at;
    __forceinline__ T operator[](int index) const { return layout<T>::read(at + within(index, N) * layout<T>::COUNT); }
};

// The pair as the kernel sees it.
struct Pair {
    array<float, 3> d;
    float d2;
};
__forceinline__ constexpr Pair reversed(Pair p) {
    return {{{-p.d.values[0], -p.d.values[1], -p.d.values[2]}}, p.d2};
}

}  // namespace nf
#endif
