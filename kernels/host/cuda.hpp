// What the device code of contract.cuh, walk.cuh, around.cuh and ascend.cuh takes from CUDA, for a
// compiler of the host: it can then be compared with the CPU backend where there is no GPU. Compile
// with `-ffp-contract=off`, as device code is compiled with `--fmad=false`.
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

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline double __dsqrt_rn(double x) { return std::sqrt(x); }

// Rounds down; what is too large becomes the largest number, and what is not a number 0.
inline int __float2int_rd(float x) {
    if (!(x >= -2147483648.0f)) return std::isnan(x) ? 0 : -2147483647 - 1;
    return x >= 2147483648.0f ? 2147483647 : static_cast<int>(std::floor(x));
}

inline int __float2int_ru(float x) { return -__float2int_rd(-x); }

// Place of the lowest bit, counted from 1; 0 if there is none.
inline int __ffs(unsigned bits) { return __builtin_ffs(static_cast<int>(bits)); }

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }

template <class T>
inline T __ldg(const T* from) { return *from; }

using std::isinf;
using std::max;
using std::min;

inline unsigned atomicAdd(unsigned* to, unsigned number) {
    const unsigned before = *to;
    *to += number;
    return before;
}

// A warp of one thread.
inline unsigned __activemask() { return 1; }
inline bool __all_sync(unsigned, bool all) { return all; }
inline bool __any_sync(unsigned, bool any) { return any; }
inline unsigned __ballot_sync(unsigned, bool bit) { return bit; }
inline int __shfl_sync(unsigned, int value, int) { return value; }
inline int __shfl_xor_sync(unsigned, int value, int) { return value; }
#define WARP 1

// Only the functions of a warp that walks of single targets do not call.
struct Thread { unsigned x; };
static const Thread threadIdx = {0}, blockDim = {1};
inline void __syncwarp() {}
inline void __syncthreads() {}
inline unsigned __shfl_up_sync(unsigned, unsigned value, int) { return value; }

// The approximate root, as wrong as the device may be: by a unit in the last place, downwards.
inline float approximate_root(float x) {
    return x < 1.17549435e-38f ? 0.0f : std::nextafter(std::sqrt(x), 0.0f);
}
#define asm(...) root = approximate_root(x)
