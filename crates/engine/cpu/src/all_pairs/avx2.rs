//! Eight lanes of `f32`, four of `f64`. There is an estimate, of 12 bits, in `f32` only.

// Every function is unsafe for one reason, that the processor must have the level.
#![allow(unsafe_op_in_unsafe_fn)]

use super::{Wide, wide::divided_root};
use std::arch::x86_64::*;

impl Wide for __m256 {
    type Real = f32;
    const LANES: usize = 8;
    const UNIT: f64 = 0.5;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        _mm256_set1_ps(value)
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        _mm256_loadu_ps(from)
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        _mm256_storeu_ps(to, self)
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        _mm256_add_ps(self, other)
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        _mm256_sub_ps(self, other)
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        _mm256_mul_ps(self, other)
    }

    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        _mm256_div_ps(self, other)
    }

    #[inline(always)]
    unsafe fn sqrt(self) -> Self {
        _mm256_sqrt_ps(self)
    }

    #[inline(always)]
    unsafe fn mul_add(self, a: Self, b: Self) -> Self {
        _mm256_fmadd_ps(self, a, b)
    }

    /// Newton's step y(3 − x·y²)/2 turns the estimate's error of 1.5·2⁻¹² into 2e-7.
    #[inline(always)]
    unsafe fn inverse_root(self) -> (Self, Self) {
        let y = _mm256_rsqrt_ps(self);
        let step = _mm256_fnmadd_ps(_mm256_mul_ps(self, y), y, _mm256_set1_ps(3.0));
        (y, step)
    }

    #[inline(always)]
    unsafe fn where_at_least(self, other: Self, of: Self, least: Self) -> Self {
        _mm256_blendv_ps(other, self, _mm256_cmp_ps::<_CMP_GE_OQ>(of, least))
    }

    #[inline(always)]
    unsafe fn is_finite(self) -> bool {
        let zero = _mm256_sub_ps(self, self);
        let equal = _mm256_cmp_ps::<_CMP_EQ_OQ>(zero, _mm256_setzero_ps());
        _mm256_movemask_ps(equal) == 0xff
    }
}

impl Wide for __m256d {
    type Real = f64;
    const LANES: usize = 4;
    const UNIT: f64 = 1.0;

    #[inline(always)]
    unsafe fn splat(value: f64) -> Self {
        _mm256_set1_pd(value)
    }

    #[inline(always)]
    unsafe fn load(from: *const f64) -> Self {
        _mm256_loadu_pd(from)
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f64) {
        _mm256_storeu_pd(to, self)
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        _mm256_add_pd(self, other)
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        _mm256_sub_pd(self, other)
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        _mm256_mul_pd(self, other)
    }

    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        _mm256_div_pd(self, other)
    }

    #[inline(always)]
    unsafe fn sqrt(self) -> Self {
        _mm256_sqrt_pd(self)
    }

    #[inline(always)]
    unsafe fn mul_add(self, a: Self, b: Self) -> Self {
        _mm256_fmadd_pd(self, a, b)
    }

    #[inline(always)]
    unsafe fn inverse_root(self) -> (Self, Self) {
        divided_root(self, _mm256_set1_pd(1.0))
    }

    #[inline(always)]
    unsafe fn where_at_least(self, other: Self, of: Self, least: Self) -> Self {
        _mm256_blendv_pd(other, self, _mm256_cmp_pd::<_CMP_GE_OQ>(of, least))
    }

    #[inline(always)]
    unsafe fn is_finite(self) -> bool {
        let zero = _mm256_sub_pd(self, self);
        let equal = _mm256_cmp_pd::<_CMP_EQ_OQ>(zero, _mm256_setzero_pd());
        _mm256_movemask_pd(equal) == 0xf
    }
}
