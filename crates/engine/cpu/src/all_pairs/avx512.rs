//! Sixteen lanes of `f32`, eight of `f64`: an estimate of 14 bits and one refinement.

// Every function is unsafe for one reason, that the processor must have the level.
#![allow(unsafe_op_in_unsafe_fn)]

use super::Wide;
use std::arch::x86_64::*;

impl Wide for __m512 {
    type Real = f32;
    const LANES: usize = 16;
    const UNIT: f64 = 0.5;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        _mm512_set1_ps(value)
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        _mm512_loadu_ps(from)
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        _mm512_storeu_ps(to, self)
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        _mm512_add_ps(self, other)
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        _mm512_sub_ps(self, other)
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        _mm512_mul_ps(self, other)
    }

    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        _mm512_div_ps(self, other)
    }

    #[inline(always)]
    unsafe fn sqrt(self) -> Self {
        _mm512_sqrt_ps(self)
    }

    #[inline(always)]
    unsafe fn mul_add(self, a: Self, b: Self) -> Self {
        _mm512_fmadd_ps(self, a, b)
    }

    /// Newton's step y(3 − x·y²)/2 squares the estimate's error of 2⁻¹⁴.
    #[inline(always)]
    unsafe fn inverse_root(self) -> (Self, Self) {
        let y = _mm512_rsqrt14_ps(self);
        let step = _mm512_fnmadd_ps(_mm512_mul_ps(self, y), y, _mm512_set1_ps(3.0));
        (y, step)
    }

    #[inline(always)]
    unsafe fn where_at_least(self, other: Self, of: Self, least: Self) -> Self {
        _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_GE_OQ>(of, least), other, self)
    }

    #[inline(always)]
    unsafe fn is_finite(self) -> bool {
        let zero = _mm512_sub_ps(self, self);
        _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(zero, _mm512_setzero_ps()) == !0
    }
}

impl Wide for __m512d {
    type Real = f64;
    const LANES: usize = 8;
    const UNIT: f64 = 1.0;

    #[inline(always)]
    unsafe fn splat(value: f64) -> Self {
        _mm512_set1_pd(value)
    }

    #[inline(always)]
    unsafe fn load(from: *const f64) -> Self {
        _mm512_loadu_pd(from)
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f64) {
        _mm512_storeu_pd(to, self)
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        _mm512_add_pd(self, other)
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        _mm512_sub_pd(self, other)
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        _mm512_mul_pd(self, other)
    }

    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        _mm512_div_pd(self, other)
    }

    #[inline(always)]
    unsafe fn sqrt(self) -> Self {
        _mm512_sqrt_pd(self)
    }

    #[inline(always)]
    unsafe fn mul_add(self, a: Self, b: Self) -> Self {
        _mm512_fmadd_pd(self, a, b)
    }

    /// With e = 1 − x·y², 1/√x = y(1 + e/2 + 3e²/8 + 5e³/16 + …); what is left out, 35e⁴/128, is
    /// below 2⁻⁵³ for an estimate that is off by 2⁻¹⁴.
    #[inline(always)]
    unsafe fn inverse_root(self) -> (Self, Self) {
        let y = _mm512_rsqrt14_pd(self);
        let one = _mm512_set1_pd(1.0);
        let e = _mm512_fnmadd_pd(_mm512_mul_pd(self, y), y, one);
        let series = _mm512_fmadd_pd(_mm512_set1_pd(0.3125), e, _mm512_set1_pd(0.375));
        let series = _mm512_fmadd_pd(series, e, _mm512_set1_pd(0.5));
        (y, _mm512_fmadd_pd(series, e, one))
    }

    #[inline(always)]
    unsafe fn where_at_least(self, other: Self, of: Self, least: Self) -> Self {
        _mm512_mask_blend_pd(_mm512_cmp_pd_mask::<_CMP_GE_OQ>(of, least), other, self)
    }

    #[inline(always)]
    unsafe fn is_finite(self) -> bool {
        let zero = _mm512_sub_pd(self, self);
        _mm512_cmp_pd_mask::<_CMP_EQ_OQ>(zero, _mm512_setzero_pd()) == !0
    }
}
