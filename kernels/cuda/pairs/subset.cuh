// Numbers, arrays, tuples and functions with the meaning that they have in Rust, for the texts of
// kernels that are translated from it. Texts that are compiled together include it once each, so it
// is guarded.
#ifndef NEARFIELD_SUBSET
#define NEARFIELD_SUBSET
namespace nf {

// Integers as in a release build of Rust: they wrap around, and take as many bits of a shift's
// distance as their size asks for. They give 0 where Rust panics, which is a division by 0; the
// quotient of the least number and -1, where Rust panics too, is the least number.
template <class T> struct unsigned_of { typedef T type; };
template <> struct unsigned_of<int> { typedef unsigned type; };
template <> struct unsigned_of<long long> { typedef unsigned long long type; };

template <class T>
struct integer {
    typedef typename unsigned_of<T>::type Bits;
    static constexpr int SIZE = 8 * sizeof(T);
    static constexpr bool SIGNED = T(-1) < T(0);
    T value;
    integer() = default;
    __forceinline__ constexpr integer(T value) : value(value) {}
    static __forceinline__ constexpr integer of(Bits bits) { return static_cast<T>(bits); }
    __forceinline__ constexpr Bits bits() const { return static_cast<Bits>(value); }
    __forceinline__ constexpr integer operator-() const { return of(Bits(0) - bits()); }
    __forceinline__ constexpr integer operator~() const { return of(~bits()); }
    friend __forceinline__ constexpr integer operator+(integer a, integer b) { return of(a.bits() + b.bits()); }
    friend __forceinline__ constexpr integer operator-(integer a, integer b) { return of(a.bits() - b.bits()); }
    friend __forceinline__ constexpr integer operator*(integer a, integer b) { return of(a.bits() * b.bits()); }
    friend __forceinline__ constexpr integer operator/(integer a, integer b) {
        return b.value == 0 ? integer(0) : SIGNED && b.value == T(-1) ? -a : integer(a.value / b.value);
    }
    friend __forceinline__ constexpr integer operator%(integer a, integer b) {
        return b.value == 0 || (SIGNED && b.value == T(-1)) ? integer(0) : integer(a.value % b.value);
    }
    friend __forceinline__ constexpr integer operator&(integer a, integer b) { return of(a.bits() & b.bits()); }
    friend __forceinline__ constexpr integer operator|(integer a, integer b) { return of(a.bits() | b.bits()); }
    friend __forceinline__ constexpr integer operator^(integer a, integer b) { return of(a.bits() ^ b.bits()); }
    friend __forceinline__ constexpr bool operator==(integer a, integer b) { return a.value == b.value; }
    friend __forceinline__ constexpr bool operator!=(integer a, integer b) { return a.value != b.value; }
    friend __forceinline__ constexpr bool operator<(integer a, integer b) { return a.value < b.value; }
    friend __forceinline__ constexpr bool operator<=(integer a, integer b) { return a.value <= b.value; }
    friend __forceinline__ constexpr bool operator>(integer a, integer b) { return a.value > b.value; }
    friend __forceinline__ constexpr bool operator>=(integer a, integer b) { return a.value >= b.value; }
    __forceinline__ integer& operator+=(integer b) { return *this = *this + b; }
    __forceinline__ integer& operator-=(integer b) { return *this = *this - b; }
    __forceinline__ integer& operator*=(integer b) { return *this = *this * b; }
    __forceinline__ integer& operator/=(integer b) { return *this = *this / b; }
    __forceinline__ integer& operator%=(integer b) { return *this = *this % b; }
    __forceinline__ integer& operator&=(integer b) { return *this = *this & b; }
    __forceinline__ integer& operator|=(integer b) { return *this = *this | b; }
    __forceinline__ integer& operator^=(integer b) { return *this = *this ^ b; }
    template <class N>
    __forceinline__ integer& operator<<=(N n) { return *this = *this << n; }
    template <class N>
    __forceinline__ integer& operator>>=(N n) { return *this = *this >> n; }
};
typedef integer<unsigned> u32;
typedef integer<int> i32;
typedef integer<unsigned long long> u64;
typedef integer<long long> i64;
typedef u64 usize;
typedef i64 isize;

// The number of places is of any integer type, as in Rust; so is a plain number.
template <class T>
__forceinline__ constexpr integer<T> operator<<(integer<T> a, int n) {
    return integer<T>::of(a.bits() << (n & (integer<T>::SIZE - 1)));
}
template <class T>
__forceinline__ constexpr integer<T> operator>>(integer<T> a, int n) {
    return static_cast<T>(a.value >> (n & (integer<T>::SIZE - 1)));
}
template <class T, class N>
__forceinline__ constexpr integer<T> operator<<(integer<T> a, integer<N> n) {
    return a << static_cast<int>(n.bits());
}
template <class T, class N>
__forceinline__ constexpr integer<T> operator>>(integer<T> a, integer<N> n) {
    return a >> static_cast<int>(n.bits());
}

// The steps of a range, and the number of a step as a counter.
template <class T>
__forceinline__ constexpr unsigned long long steps(integer<T> from, integer<T> to, bool closed) {
    return from.value > to.value || (!closed && from.value == to.value)
        ? 0
        : static_cast<unsigned long long>((to - from).bits()) + (closed ? 1 : 0);
}
template <class I>
__forceinline__ constexpr I wrapped(unsigned long long step) { return I::of(static_cast<typename I::Bits>(step)); }

__forceinline__ float rem(float a, float b) { return fmodf(a, b); }

// Conversions. Those of f32 saturate, and NaN becomes 0; those of integers keep the lower bits.
template <class T>
__forceinline__ constexpr float to_f32(integer<T> x) { return static_cast<float>(x.value); }
__forceinline__ constexpr float to_f32(bool x) { return x ? 1.0f : 0.0f; }
template <class I, class T>
__forceinline__ constexpr I converted(integer<T> x) {
    return I::of(static_cast<typename I::Bits>(static_cast<decltype(I::value)>(x.value)));
}
__forceinline__ u32 saturated(float x, u32) { return __float2uint_rz(x); }
__forceinline__ i32 saturated(float x, i32) { return __float2int_rz(x); }
// Those of 64 bits give the largest number for NaN.
__forceinline__ u64 saturated(float x, u64) { return x > 0.0f ? __float2ull_rz(x) : 0ull; }
__forceinline__ i64 saturated(float x, i64) { return x == x ? __float2ll_rz(x) : 0ll; }
#define NF_CONVERSIONS(name, type)                                                          \
    template <class T>                                                                      \
    __forceinline__ constexpr type name(integer<T> x) { return converted<type>(x); }        \
    __forceinline__ constexpr type name(bool x) { return x ? type(1) : type(0); }           \
    __forceinline__ type name(float x) { return saturated(x, type(0)); }
NF_CONVERSIONS(to_u32, u32)
NF_CONVERSIONS(to_i32, i32)
NF_CONVERSIONS(to_u64, u64)
NF_CONVERSIONS(to_i64, i64)
NF_CONVERSIONS(to_usize, usize)
NF_CONVERSIONS(to_isize, isize)
#undef NF_CONVERSIONS

__forceinline__ u32 to_bits(float x) { return __float_as_uint(x); }
__forceinline__ float from_bits(u32 x) { return __uint_as_float(x.value); }

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
#define NF_OF_INTEGER template <class T> __forceinline__ constexpr
NF_OF_INTEGER integer<T> min(integer<T> a, integer<T> b) { return b < a ? b : a; }
NF_OF_INTEGER integer<T> max(integer<T> a, integer<T> b) { return b > a ? b : a; }
NF_OF_INTEGER integer<T> clamp(integer<T> x, integer<T> low, integer<T> high) { return min(max(x, low), high); }
NF_OF_INTEGER integer<T> abs(integer<T> x) { return x.value < 0 ? -x : x; }
NF_OF_INTEGER integer<T> signum(integer<T> x) { return T(x.value > 0 ? 1 : x.value < 0 ? -1 : 0); }
NF_OF_INTEGER integer<typename integer<T>::Bits> abs_diff(integer<T> a, integer<T> b) {
    return a < b ? (b - a).bits() : (a - b).bits();
}
NF_OF_INTEGER integer<T> wrapping_neg(integer<T> x) { return integer<T>::of(typename integer<T>::Bits(0) - x.bits()); }
NF_OF_INTEGER integer<T> pow(integer<T> x, u32 exponent) {
    integer<T> power = T(1);
    for (unsigned left = exponent.value; left != 0; left >>= 1) {
        if (left & 1) power *= x;
        x *= x;
    }
    return power;
}
NF_OF_INTEGER integer<T> rotate_left(integer<T> x, u32 n) {
    const int by = static_cast<int>(n.value % integer<T>::SIZE);
    return by == 0 ? x : integer<T>::of((x.bits() << by) | (x.bits() >> (integer<T>::SIZE - by)));
}
NF_OF_INTEGER integer<T> rotate_right(integer<T> x, u32 n) {
    return rotate_left(x, u32(integer<T>::SIZE - n.value % integer<T>::SIZE));
}
NF_OF_INTEGER u32 count_ones(integer<T> x) {
    unsigned count = 0;
    for (typename integer<T>::Bits left = x.bits(); left != 0; left &= left - 1) count++;
    return count;
}
NF_OF_INTEGER u32 trailing_zeros(integer<T> x) {
    const typename integer<T>::Bits lowest = x.bits() & (typename integer<T>::Bits(0) - x.bits());
    return lowest == 0 ? u32(integer<T>::SIZE) : count_ones(integer<typename integer<T>::Bits>(lowest - 1));
}
NF_OF_INTEGER u32 leading_zeros(integer<T> x) {
    unsigned count = 0;
    for (typename integer<T>::Bits bit = typename integer<T>::Bits(1) << (integer<T>::SIZE - 1); bit != 0; bit >>= 1) {
        if (x.bits() & bit) return count;
        count++;
    }
    return count;
}
#undef NF_OF_INTEGER
__forceinline__ u32 mul_high(u32 a, u32 b) { return __umulhi(a.value, b.value); }

// An index that is out of bounds, where Rust panics, is that of the last element.
__forceinline__ constexpr int within(usize index, int length) {
    const unsigned long long last = static_cast<unsigned long long>(length - 1);
    return static_cast<int>(index.value < last ? index.value : last);
}

// Comparisons as Rust derives them: the first parts that differ decide, and equal numbers where
// none does. `NF_decide` of a type gives these to a function. Templates, because not all parts have
// all comparisons; no field has a name that begins with NF_.
#define NF_COMPARED_BY(type, op)                                                         \
    template <class NF_Same>                                                             \
    friend __forceinline__ constexpr bool operator op(const type& a, const NF_Same& b) { \
        return a.NF_decide(b, [](auto c, auto d) { return c op d; });                    \
    }
#define NF_COMPARED(type)    \
    NF_COMPARED_BY(type, ==) \
    NF_COMPARED_BY(type, !=) \
    NF_COMPARED_BY(type, <)  \
    NF_COMPARED_BY(type, <=) \
    NF_COMPARED_BY(type, >)  \
    NF_COMPARED_BY(type, >=)
#define NF_OR(part, rest) part != NF_that.part ? NF_of(part, NF_that.part) : rest
#define NF_DECIDED(type, decided)                                                     \
    template <class NF_F>                                                             \
    __forceinline__ constexpr bool NF_decide(const type& NF_that, NF_F NF_of) const { \
        return decided;                                                               \
    }                                                                                 \
    NF_COMPARED(type)

template <class T, int N>
struct array {
    T values[N];
    __forceinline__ constexpr T& operator[](usize index) { return values[within(index, N)]; }
    __forceinline__ constexpr const T& operator[](usize index) const { return values[within(index, N)]; }
    __forceinline__ constexpr const T* begin() const { return values; }
    __forceinline__ constexpr const T* end() const { return values + N; }
    template <class F>
    __forceinline__ constexpr bool NF_decide(const array& other, F of) const {
        for (int k = 0; k < N; k++) {
            if (values[k] != other.values[k]) return of(values[k], other.values[k]);
        }
        return of(0, 0);
    }
    NF_COMPARED(array)
};

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
struct tuple<A> {
    A _0;
    NF_DECIDED(tuple, NF_OR(_0, NF_of(0, 0)))
};
template <class A, class B>
struct tuple<A, B> {
    A _0; B _1;
    NF_DECIDED(tuple, NF_OR(_0, NF_OR(_1, NF_of(0, 0))))
};
template <class A, class B, class C>
struct tuple<A, B, C> {
    A _0; B _1; C _2;
    NF_DECIDED(tuple, NF_OR(_0, NF_OR(_1, NF_OR(_2, NF_of(0, 0)))))
};
template <class A, class B, class C, class D>
struct tuple<A, B, C, D> {
    A _0; B _1; C _2; D _3;
    NF_DECIDED(tuple, NF_OR(_0, NF_OR(_1, NF_OR(_2, NF_OR(_3, NF_of(0, 0))))))
};
template <class A, class B, class C, class D, class E>
struct tuple<A, B, C, D, E> {
    A _0; B _1; C _2; D _3; E _4;
    NF_DECIDED(tuple, NF_OR(_0, NF_OR(_1, NF_OR(_2, NF_OR(_3, NF_OR(_4, NF_of(0, 0)))))))
};
template <class A, class B, class C, class D, class E, class F>
struct tuple<A, B, C, D, E, F> {
    A _0; B _1; C _2; D _3; E _4; F _5;
    NF_DECIDED(tuple, NF_OR(_0, NF_OR(_1, NF_OR(_2, NF_OR(_3, NF_OR(_4, NF_OR(_5, NF_of(0, 0))))))))
};

struct Vec3 {
    static constexpr int AXES = 3;
    float x, y, z;
    __forceinline__ constexpr float operator[](usize axis) const { return axis.value == 0 ? x : axis.value == 1 ? y : z; }
    __forceinline__ constexpr Vec3 operator-() const { return {-x, -y, -z}; }
};
struct Vec2 {
    static constexpr int AXES = 2;
    float x, y;
    __forceinline__ constexpr float operator[](usize axis) const { return axis.value == 0 ? x : y; }
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
template <class V>
__forceinline__ constexpr V splat(float x);
template <>
__forceinline__ constexpr Vec2 splat<Vec2>(float x) { return {x, x}; }
template <>
__forceinline__ constexpr Vec3 splat<Vec3>(float x) { return {x, x, x}; }
template <class V>
__forceinline__ constexpr V to_vector(array<float, 2> a) { return {a.values[0], a.values[1]}; }
template <class V>
__forceinline__ constexpr V to_vector(array<float, 3> a) { return {a.values[0], a.values[1], a.values[2]}; }
template <class V>
__forceinline__ constexpr V to_vector(tuple<float, float> a) { return {a._0, a._1}; }
template <class V>
__forceinline__ constexpr V to_vector(tuple<float, float, float> a) { return {a._0, a._1, a._2}; }
__forceinline__ constexpr array<float, 3> to_array(Vec3 a) { return {{a.x, a.y, a.z}}; }
__forceinline__ constexpr float dot(Vec3 a, Vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
__forceinline__ constexpr Vec3 cross(Vec3 a, Vec3 b) {
    return {a.y * b.z - b.y * a.z, a.z * b.x - b.z * a.x, a.x * b.y - b.x * a.y};
}

// Functions of vectors, by the operations that glam has in the same order. Smaller and larger ones
// are glam's too: the second where a number is NaN.
__forceinline__ constexpr float smaller(float a, float b) { return a < b ? a : b; }
__forceinline__ constexpr float larger(float a, float b) { return a > b ? a : b; }
template <class F>
__forceinline__ constexpr Vec2 each(Vec2 a, F f) { return {f(a.x), f(a.y)}; }
template <class F>
__forceinline__ constexpr Vec3 each(Vec3 a, F f) { return {f(a.x), f(a.y), f(a.z)}; }
template <class F>
__forceinline__ constexpr Vec2 each(Vec2 a, Vec2 b, F f) { return {f(a.x, b.x), f(a.y, b.y)}; }
template <class F>
__forceinline__ constexpr Vec3 each(Vec3 a, Vec3 b, F f) { return {f(a.x, b.x), f(a.y, b.y), f(a.z, b.z)}; }
__forceinline__ constexpr float min_element(Vec2 a) { return smaller(a.x, a.y); }
__forceinline__ constexpr float min_element(Vec3 a) { return smaller(a.x, smaller(a.y, a.z)); }
__forceinline__ constexpr float max_element(Vec2 a) { return larger(a.x, a.y); }
__forceinline__ constexpr float max_element(Vec3 a) { return larger(a.x, larger(a.y, a.z)); }
__forceinline__ constexpr float element_sum(Vec2 a) { return a.x + a.y; }
__forceinline__ constexpr float element_sum(Vec3 a) { return a.x + a.y + a.z; }
__forceinline__ constexpr float element_product(Vec2 a) { return a.x * a.y; }
__forceinline__ constexpr float element_product(Vec3 a) { return a.x * a.y * a.z; }
__forceinline__ bool is_finite(Vec2 a) { return is_finite(a.x) && is_finite(a.y); }
__forceinline__ bool is_finite(Vec3 a) { return is_finite(a.x) && is_finite(a.y) && is_finite(a.z); }
__forceinline__ bool is_nan(Vec2 a) { return is_nan(a.x) || is_nan(a.y); }
__forceinline__ bool is_nan(Vec3 a) { return is_nan(a.x) || is_nan(a.y) || is_nan(a.z); }
__forceinline__ Vec2 mul_add(Vec2 a, Vec2 b, Vec2 c) { return {fmaf(a.x, b.x, c.x), fmaf(a.y, b.y, c.y)}; }
__forceinline__ Vec3 mul_add(Vec3 a, Vec3 b, Vec3 c) {
    return {fmaf(a.x, b.x, c.x), fmaf(a.y, b.y, c.y), fmaf(a.z, b.z, c.z)};
}
__forceinline__ constexpr bool operator==(Vec2 a, Vec2 b) { return a.x == b.x && a.y == b.y; }
__forceinline__ constexpr bool operator!=(Vec2 a, Vec2 b) { return !(a == b); }
__forceinline__ constexpr bool operator==(Vec3 a, Vec3 b) { return a.x == b.x && a.y == b.y && a.z == b.z; }
__forceinline__ constexpr bool operator!=(Vec3 a, Vec3 b) { return !(a == b); }
#define NF_OF_VECTOR template <class V, int = V::AXES> __forceinline__
NF_OF_VECTOR V min(V a, V b) { return each(a, b, smaller); }
NF_OF_VECTOR V max(V a, V b) { return each(a, b, larger); }
NF_OF_VECTOR V clamp(V a, V low, V high) { return min(max(a, low), high); }
NF_OF_VECTOR V abs(V a) { return each(a, [](float x) { return fabsf(x); }); }
NF_OF_VECTOR V signum(V a) { return each(a, [](float x) { return signum(x); }); }
NF_OF_VECTOR V copysign(V a, V b) { return each(a, b, [](float x, float y) { return copysignf(x, y); }); }
NF_OF_VECTOR V recip(V a) { return each(a, [](float x) { return 1.0f / x; }); }
NF_OF_VECTOR V floor(V a) { return each(a, [](float x) { return floorf(x); }); }
NF_OF_VECTOR V ceil(V a) { return each(a, [](float x) { return ceilf(x); }); }
NF_OF_VECTOR V trunc(V a) { return each(a, [](float x) { return truncf(x); }); }
NF_OF_VECTOR V round(V a) { return each(a, [](float x) { return roundf(x); }); }
NF_OF_VECTOR V sqrt(V a) { return each(a, [](float x) { return sqrtf(x); }); }
NF_OF_VECTOR V exp(V a) { return each(a, [](float x) { return expf(x); }); }
NF_OF_VECTOR V exp2(V a) { return each(a, [](float x) { return exp2f(x); }); }
NF_OF_VECTOR V ln(V a) { return each(a, [](float x) { return logf(x); }); }
NF_OF_VECTOR V log2(V a) { return each(a, [](float x) { return log2f(x); }); }
NF_OF_VECTOR V sin(V a) { return each(a, [](float x) { return sinf(x); }); }
NF_OF_VECTOR V cos(V a) { return each(a, [](float x) { return cosf(x); }); }
NF_OF_VECTOR V powf(V a, float y) { return each(a, [y](float x) { return ::powf(x, y); }); }
NF_OF_VECTOR V rem(V a, V b) { return each(a, b, [](float x, float y) { return fmodf(x, y); }); }
NF_OF_VECTOR V rem(V a, float b) { return each(a, [b](float x) { return fmodf(x, b); }); }
NF_OF_VECTOR V fract(V a) { return a - trunc(a); }
NF_OF_VECTOR float length_squared(V a) { return dot(a, a); }
NF_OF_VECTOR float length(V a) { return sqrtf(dot(a, a)); }
NF_OF_VECTOR float length_recip(V a) { return 1.0f / length(a); }
NF_OF_VECTOR float distance(V a, V b) { return length(a - b); }
NF_OF_VECTOR float distance_squared(V a, V b) { return length_squared(a - b); }
NF_OF_VECTOR V normalize(V a) { return a * length_recip(a); }
NF_OF_VECTOR V normalize_or(V a, V otherwise) {
    const float inverse = length_recip(a);
    return is_finite(inverse) && inverse > 0.0f ? a * inverse : otherwise;
}
NF_OF_VECTOR V normalize_or_zero(V a) { return normalize_or(a, V{}); }
NF_OF_VECTOR V lerp(V a, V b, float s) { return a * (1.0f - s) + b * s; }
NF_OF_VECTOR V project_onto(V a, V b) { return b * (dot(a, b) / dot(b, b)); }
NF_OF_VECTOR V reject_from(V a, V b) { return a - project_onto(a, b); }
NF_OF_VECTOR V reflect(V a, V normal) { return a - 2.0f * dot(a, normal) * normal; }
NF_OF_VECTOR V clamp_length_max(V a, float most) {
    const float squared = length_squared(a);
    return squared > most * most ? most * (a / sqrtf(squared)) : a;
}
#undef NF_OF_VECTOR

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
    array<tuple<usize, T>, N> to{};
    for (int k = 0; k < N; k++) to.values[k] = {usize(k), from.values[k]};
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

}  // namespace nf
#endif
