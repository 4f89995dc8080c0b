// Fast, inexact functions for pair kernels, of one or two instructions each. The functions of
// nearfield_pairs with these names become these on a GPU; on the CPU they are exact, or rounded
// twice.
#pragma once

// Off by at most one unit in the last place; subnormal numbers are 0.
__device__ __forceinline__ float fast_sqrt(float x) {
    float root;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
}

__device__ __forceinline__ float fast_rsqrt(float x) {
    float root;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
}

__device__ __forceinline__ float fast_recip(float x) {
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
    return inverse;
}

// x between 0 and 1, 0 where it is NaN: part of the operation that x comes from.
__device__ __forceinline__ float fast_saturate(float x) { return __saturatef(x); }

// a * b + c, rounded once.
__device__ __forceinline__ float fast_mul_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
