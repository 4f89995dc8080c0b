//! Four lanes of `f32`, two of `f64`, of 64-bit ARM. There is an estimate, of 8 bits.

// Every function is unsafe for one reason, that the processor must have the level.
#![allow(unsafe_op_in_unsafe_fn)]

use super::{Wide, wide::divided_root};
use std::arch::aarch64::*;

impl Wide for float32x4_t {
    type Real = f32;
    const LANES: usize = 4;
    const UNIT: f64 = 1.0;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        vdupq_n_f32(value)
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        vld1q_f32(from)
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        vst1q_f32(to, self)
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        vaddq_f32(self, other)
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        vsubq_f32(self, other)
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        vmulq_f32(self, other)
    }

    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        vdivq_f32(self, other)
    }

    #[inline(always)]
    unsafe fn sqrt(self) -> Self {
        vsqrtq_f32(self)
    }

    #[inline(always)]
    unsafe fn mul_add(self, a: Self, b: Self) -> Self {
        vfmaq_f32(b, self, a)
    }

    /// Two of Newton's steps; `vrsqrts` is (3 − a·b)/2.
    #[inline(always)]
    unsafe fn inverse_root(self) -> (Self, Self) {
        let y = vrsqrteq_f32(self);
        let y = vmulq_f32(y, vrsqrtsq_f32(vmulq_f32(self, y), y));
        (y, vrsqrtsq_f32(vmulq_f32(self, y), y))
    }

    #[inline(always)]
    unsafe fn where_at_least(self, other: Self, of: Self, least: Self) -> Self {
        vbslq_f32(vcgeq_f32(of, least), self, other)
    }

    #[inline(always)]
    unsafe fn is_finite(self) -> bool {
        vminvq_u32(vceqzq_f32(vsubq_f32(self, self))) != 0
    }
}

impl Wide for float64x2_t {
    type Real = f64;
    const LANES: usize = 2;
    const UNIT: f64 = 1.0;

    #[inline(always)]
    unsafe fn splat(value: f64) -> Self {
        vdupq_n_f64(value)
    }

    #[inline(always)]
    unsafe fn load(from: *const f64) -> Self {
        vld1q_f64(from)
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f64) {
        vst1q_f64(to, self)
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        vaddq_f64(self, other)
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        vsubq_f64(self, other)
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        vmulq_f64(self, other)
    }

    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        vdivq_f64(self, other)
    }

    #[inline(always)]
    unsafe fn sqrt(self) -> Self {
        vsqrtq_f64(self)
    }

    #[inline(always)]
    unsafe fn mul_add(self, a: Self, b: Self) -> Self {
        vfmaq_f64(b, self, a)
    }

    #[inline(always)]
    unsafe fn inverse_root(self) -> (Self, Self) {
        divided_root(self, vdupq_n_f64(1.0))
    }

    #[inline(always)]
    unsafe fn where_at_least(self, other: Self, of: Self, least: Self) -> Self {
        vbslq_f64(vcgeq_f64(of, least), self, other)
    }

    #[inline(always)]
    unsafe fn is_finite(self) -> bool {
        let zero = vceqzq_f64(vsubq_f64(self, self));
        vgetq_lane_u64::<0>(zero) & vgetq_lane_u64::<1>(zero) != 0
    }
}
