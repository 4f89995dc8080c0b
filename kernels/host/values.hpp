// Types and functions of CUDA that concern one thread, for a compiler of the host. Compile with
// `-ffp-contract=off`, as device code is compiled with `--fmad=false`.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>

#define __device__
#define __forceinline__ inline

struct float3 { float x, y, z; };
struct float4 { float x, y, z, w; };
struct int4 { int x, y, z, w; };
struct uint2 { unsigned x, y; };
struct longlong3 { long long x, y, z; };

inline float3 make_float3(float x, float y, float z) { return {x, y, z}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline longlong3 make_longlong3(long long x, long long y, long long z) { return {x, y, z}; }

template <class To, class From>
inline To same_bits(From from) {
    To to;
    static_assert(sizeof to == sizeof from);
    std::memcpy(&to, &from, sizeof to);
    return to;
}

inline unsigned __float_as_uint(float x) { return same_bits<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return same_bits<float>(x); }
inline long long __double_as_longlong(double x) { return same_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return same_bits<double>(x); }

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }

// Rounds down; what is too large becomes the largest number, and what is not a number 0.
inline int __float2int_rd(float x) {
    if (!(x >= -2147483648.0f)) return std::isnan(x) ? 0 : -2147483647 - 1;
    return x >= 2147483648.0f ? 2147483647 : static_cast<int>(std::floor(x));
}

inline int __float2int_ru(float x) { return -__float2int_rd(-x); }

// Place of the lowest bit, counted from 1; 0 if there is none.
inline int __ffs(unsigned bits) { return __builtin_ffs(static_cast<int>(bits)); }

template <class T>
inline T __ldg(const T* from) { return *from; }

using std::isinf;
using std::max;
using std::min;

// Rounded up: exact in double, but for the root, whose double is right to more bits than matter.
inline float __double2float_ru(double x) {
    const float near = static_cast<float>(x);
    return near < x ? std::nextafter(near, INFINITY) : near;
}
inline float __fadd_ru(float a, float b) { return __double2float_ru(static_cast<double>(a) + b); }
inline float __fsqrt_ru(float x) { return __double2float_ru(std::sqrt(static_cast<double>(x))); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline double __dsqrt_rn(double x) { return std::sqrt(x); }
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline float __saturatef(float x) { return x > 0.0f ? min(x, 1.0f) : 0.0f; }

// Threads run in turn.
template <class Number>
Number atomicAdd(Number* to, Number number) {
    const Number before = *to;
    *to += number;
    return before;
}
inline unsigned atomicMin(unsigned* at, unsigned value) {
    const unsigned before = *at;
    *at = min(before, value);
    return before;
}
template <class Number>
Number atomicMax(Number* at, Number value) {
    const Number before = *at;
    *at = before > value ? before : value;
    return before;
}
