//! Eight lanes. Lanes are compressed by a permutation looked up from the mask.

// Every function is unsafe for one reason, that the processor must have the level.
#![allow(unsafe_op_in_unsafe_fn)]

use super::{Avx2, Mode, Task, Vector};
use crate::group::{Group, Groups, Scratch};
use std::arch::x86_64::*;

/// `COMPRESS[mask]` moves the lanes whose bit is set in `mask` to the front, in order.
static COMPRESS: [[u32; 8]; 256] = compress_table();

const fn compress_table() -> [[u32; 8]; 256] {
    let mut table = [[0; 8]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut place) = (0, 0);
        while lane < 8 {
            if mask >> lane & 1 == 1 {
                table[mask][place] = lane as u32;
                place += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    table
}

impl Vector for __m256 {
    const LANES: usize = 8;
    type Ints = __m256i;
    /// Source lane of every lane.
    type Order = __m256i;

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
    unsafe fn mul_add(self, a: Self, b: Self) -> Self {
        _mm256_fmadd_ps(self, a, b)
    }

    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        _mm256_min_ps(self, other)
    }

    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        _mm256_max_ps(self, other)
    }

    #[inline(always)]
    unsafe fn le(self, other: Self) -> u32 {
        _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LE_OQ>(self, other)) as u32
    }

    #[inline(always)]
    unsafe fn load_u32(from: *const u32) -> __m256i {
        _mm256_loadu_si256(from.cast())
    }

    #[inline(always)]
    unsafe fn count_from(first: u32) -> __m256i {
        let lanes = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
        _mm256_add_epi32(_mm256_set1_epi32(first as i32), lanes)
    }

    #[inline(always)]
    unsafe fn unequal(lanes: __m256i, value: u32) -> u32 {
        let equal = _mm256_cmpeq_epi32(lanes, _mm256_set1_epi32(value as i32));
        !_mm256_movemask_ps(_mm256_castsi256_ps(equal)) as u32
    }

    #[inline(always)]
    unsafe fn above(lanes: __m256i, value: u32) -> u32 {
        // AVX2 compares signed integers only; flipping the top bit makes that order unsigned.
        let flip = _mm256_set1_epi32(i32::MIN);
        let value = _mm256_xor_si256(_mm256_set1_epi32(value as i32), flip);
        let above = _mm256_cmpgt_epi32(_mm256_xor_si256(lanes, flip), value);
        _mm256_movemask_ps(_mm256_castsi256_ps(above)) as u32
    }

    #[inline(always)]
    unsafe fn order(mask: u32) -> __m256i {
        _mm256_loadu_si256(COMPRESS[(mask & 0xff) as usize].as_ptr().cast())
    }

    #[inline(always)]
    unsafe fn compress(self, order: __m256i, to: *mut f32) {
        _mm256_storeu_ps(to, _mm256_permutevar8x32_ps(self, order))
    }

    #[inline(always)]
    unsafe fn compress_u32(lanes: __m256i, order: __m256i, to: *mut u32) {
        _mm256_storeu_si256(to.cast(), _mm256_permutevar8x32_epi32(lanes, order))
    }
}

/// Compiles `task` for this level.
///
/// # Safety
/// The processor has it.
#[inline(never)]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt")]
pub(super) unsafe fn call<T: Task>(task: T) {
    task.run::<Avx2>()
}

/// The next group, found for this level.
///
/// # Safety
/// The processor has it.
#[inline(never)]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt")]
pub(super) unsafe fn next_group(
    groups: &mut Groups<'_>,
    scratch: &mut Scratch,
) -> Option<(Group, Mode)> {
    groups.next_at::<Avx2>(scratch)
}
