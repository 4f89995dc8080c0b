//! Sixteen lanes. Lanes are compressed in a register and stored whole: the compressing store to
//! memory is microcoded on some processors.

// Every function is unsafe for one reason, that the processor must have the level.
#![allow(unsafe_op_in_unsafe_fn)]

use super::{Avx512, Mode, Task, Vector};
use crate::group::{Group, Groups, Scratch};
use std::arch::x86_64::*;

impl Vector for __m512 {
    const LANES: usize = 16;
    type Ints = __m512i;
    type Order = __mmask16;

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
    unsafe fn mul_add(self, a: Self, b: Self) -> Self {
        _mm512_fmadd_ps(self, a, b)
    }

    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        _mm512_min_ps(self, other)
    }

    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        _mm512_max_ps(self, other)
    }

    #[inline(always)]
    unsafe fn le(self, other: Self) -> u32 {
        u32::from(_mm512_cmp_ps_mask::<_CMP_LE_OQ>(self, other))
    }

    #[inline(always)]
    unsafe fn load_u32(from: *const u32) -> __m512i {
        _mm512_loadu_si512(from.cast())
    }

    #[inline(always)]
    unsafe fn count_from(first: u32) -> __m512i {
        let lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
        _mm512_add_epi32(_mm512_set1_epi32(first as i32), lanes)
    }

    #[inline(always)]
    unsafe fn unequal(lanes: __m512i, value: u32) -> u32 {
        u32::from(_mm512_cmpneq_epi32_mask(
            lanes,
            _mm512_set1_epi32(value as i32),
        ))
    }

    #[inline(always)]
    unsafe fn above(lanes: __m512i, value: u32) -> u32 {
        u32::from(_mm512_cmpgt_epu32_mask(
            lanes,
            _mm512_set1_epi32(value as i32),
        ))
    }

    #[inline(always)]
    unsafe fn order(mask: u32) -> __mmask16 {
        mask as __mmask16
    }

    #[inline(always)]
    unsafe fn compress(self, order: __mmask16, to: *mut f32) {
        _mm512_storeu_ps(to, _mm512_maskz_compress_ps(order, self))
    }

    #[inline(always)]
    unsafe fn compress_u32(lanes: __m512i, order: __mmask16, to: *mut u32) {
        _mm512_storeu_si512(to.cast(), _mm512_maskz_compress_epi32(order, lanes))
    }
}

/// Compiles `task` for this level.
///
/// # Safety
/// The processor has it.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2,fma,bmi1,bmi2,popcnt")]
pub(super) unsafe fn call<T: Task>(task: T) {
    task.run::<Avx512>()
}

/// The next group, found for this level.
///
/// # Safety
/// The processor has it.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2,fma,bmi1,bmi2,popcnt")]
pub(super) unsafe fn next_group(
    groups: &mut Groups<'_>,
    scratch: &mut Scratch,
) -> Option<(Group, Mode)> {
    groups.next_at::<Avx512>(scratch)
}
