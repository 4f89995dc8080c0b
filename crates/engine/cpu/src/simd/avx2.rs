//! Eight lanes of `f32`, four of `f64`.
//!
//! AVX2 has no compression. Lanes are moved by a permutation that is looked up from the mask, in a
//! table of 8 KiB that stays in the first-level cache, and back by another one. The hardware's
//! estimate of 1/√x has 12 bits and exists in `f32` only.
//!
//! # Masks
//!
//! A comparison gives a vector of all ones or zeros per lane; `movemask` gathers its sign bits
//! into an integer, which counts hits (`popcnt`) and selects the permutation. Integers are
//! compared as signed numbers only, so unsigned comparisons flip the top bit of both sides.
//!
//! # From double to single precision
//!
//! Two vectors of `f64` are rounded to half a vector of `f32` each, and the halves are joined.
//!
//! # Sorting networks
//!
//! There is one permutation that crosses the halves of a vector, by indices in another vector; the
//! exchanges of a network use it for every distance, because the indices are constants and the
//! cheaper shuffles inside a half would need a case each. Minimum and maximum of unsigned integers
//! exist.

use super::vector::{Compress, Vector, divided_root, operations};
use std::arch::x86_64::*;

/// `COMPRESS[mask]` moves the lanes whose bit is set in `mask` to the front, in order.
static COMPRESS: [[u32; 8]; 256] = compress_table();

const fn compress_table() -> [[u32; 8]; 256] {
    let mut table = [[0; 8]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut kept) = (0, 0);
        while lane < 8 {
            if mask >> lane & 1 == 1 {
                table[mask][kept] = lane as u32;
                kept += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    table
}

/// `EXPAND[mask]` moves the first lanes to those whose bit is set in `mask`, in order; the sign bit
/// of the others is set.
static EXPAND: [[u32; 8]; 256] = expand_table();

const fn expand_table() -> [[u32; 8]; 256] {
    let mut table = [[1 << 31; 8]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut taken) = (0, 0);
        while lane < 8 {
            if mask >> lane & 1 == 1 {
                table[mask][lane] = taken;
                taken += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    table
}

// Every line is one instruction, and `_ps` and `_pd` differ in nothing else.
impl Vector for __m256 {
    type Real = f32;
    const LANES: usize = 8;
    const UNIT: f64 = 0.5;

    operations! {
        fn splat(value: f32) -> Self = _mm256_set1_ps(value);
        fn load(from: *const f32) -> Self = _mm256_loadu_ps(from);
        fn store(self, to: *mut f32) = _mm256_storeu_ps(to, self);
        fn add(self, other: Self) -> Self = _mm256_add_ps(self, other);
        fn sub(self, other: Self) -> Self = _mm256_sub_ps(self, other);
        fn mul(self, other: Self) -> Self = _mm256_mul_ps(self, other);
        fn div(self, other: Self) -> Self = _mm256_div_ps(self, other);
        fn sqrt(self) -> Self = _mm256_sqrt_ps(self);
        fn mul_add(self, a: Self, b: Self) -> Self = _mm256_fmadd_ps(self, a, b);
        /// Newton's step y(3 − x·y²)/2 turns the estimate's error of 1.5·2⁻¹² into 2e-7.
        fn inverse_root(self) -> (Self, Self) = {
            let y = _mm256_rsqrt_ps(self);
            let step = _mm256_fnmadd_ps(_mm256_mul_ps(self, y), y, _mm256_set1_ps(3.0));
            (y, step)
        };
        fn where_at_least(self, other: Self, of: Self, least: Self) -> Self =
            _mm256_blendv_ps(other, self, _mm256_cmp_ps::<_CMP_GE_OQ>(of, least));
        fn le(self, other: Self) -> u32 =
            _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LE_OQ>(self, other)) as u32;
        fn is_finite(self) -> bool = {
            let zero = _mm256_sub_ps(self, self);
            let equal = _mm256_cmp_ps::<_CMP_EQ_OQ>(zero, _mm256_setzero_ps());
            _mm256_movemask_ps(equal) == 0xff
        };
    }
}

impl Vector for __m256d {
    type Real = f64;
    const LANES: usize = 4;
    const UNIT: f64 = 1.0;

    operations! {
        fn splat(value: f64) -> Self = _mm256_set1_pd(value);
        fn load(from: *const f64) -> Self = _mm256_loadu_pd(from);
        fn store(self, to: *mut f64) = _mm256_storeu_pd(to, self);
        fn add(self, other: Self) -> Self = _mm256_add_pd(self, other);
        fn sub(self, other: Self) -> Self = _mm256_sub_pd(self, other);
        fn mul(self, other: Self) -> Self = _mm256_mul_pd(self, other);
        fn div(self, other: Self) -> Self = _mm256_div_pd(self, other);
        fn sqrt(self) -> Self = _mm256_sqrt_pd(self);
        fn mul_add(self, a: Self, b: Self) -> Self = _mm256_fmadd_pd(self, a, b);
        fn inverse_root(self) -> (Self, Self) = divided_root(self, _mm256_set1_pd(1.0));
        fn where_at_least(self, other: Self, of: Self, least: Self) -> Self =
            _mm256_blendv_pd(other, self, _mm256_cmp_pd::<_CMP_GE_OQ>(of, least));
        fn le(self, other: Self) -> u32 =
            _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_LE_OQ>(self, other)) as u32;
        fn is_finite(self) -> bool = {
            let zero = _mm256_sub_pd(self, self);
            let equal = _mm256_cmp_pd::<_CMP_EQ_OQ>(zero, _mm256_setzero_pd());
            _mm256_movemask_pd(equal) == 0xf
        };
    }
}

impl Compress for __m256 {
    type Ints = __m256i;
    /// Source lane of every lane.
    type Order = __m256i;
    type Wide = __m256d;

    operations! {
        fn min(self, other: Self) -> Self = _mm256_min_ps(self, other);
        fn max(self, other: Self) -> Self = _mm256_max_ps(self, other);
        fn swap(self, with: u32) -> Self = match with {
            1 => _mm256_permute_ps::<0b10_11_00_01>(self),
            2 => _mm256_permute_ps::<0b01_00_11_10>(self),
            _ => _mm256_permute2f128_ps::<1>(self, self),
        };
        fn first(self) -> f32 = _mm256_cvtss_f32(self);
        fn narrow(from: *const f64) -> Self = {
            let low = _mm256_cvtpd_ps(_mm256_loadu_pd(from));
            _mm256_set_m128(_mm256_cvtpd_ps(_mm256_loadu_pd(from.add(4))), low)
        };
        fn load_u32(from: *const u32) -> __m256i = _mm256_loadu_si256(from.cast());
        fn load_whole(from: *const i32) -> Self =
            _mm256_cvtepi32_ps(_mm256_loadu_si256(from.cast()));
        fn count_from(first: u32) -> __m256i = {
            let lanes = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
            _mm256_add_epi32(_mm256_set1_epi32(first as i32), lanes)
        };
        fn unequal(lanes: __m256i, value: u32) -> u32 = {
            let equal = _mm256_cmpeq_epi32(lanes, _mm256_set1_epi32(value as i32));
            !_mm256_movemask_ps(_mm256_castsi256_ps(equal)) as u32
        };
        /// AVX2 compares signed integers only; flipping the top bit makes that order unsigned.
        fn above(lanes: __m256i, value: u32) -> u32 = {
            let flip = _mm256_set1_epi32(i32::MIN);
            let value = _mm256_xor_si256(_mm256_set1_epi32(value as i32), flip);
            let above = _mm256_cmpgt_epi32(_mm256_xor_si256(lanes, flip), value);
            _mm256_movemask_ps(_mm256_castsi256_ps(above)) as u32
        };
        fn store_u32(lanes: __m256i, to: *mut u32) = _mm256_storeu_si256(to.cast(), lanes);
        fn min_u32(lanes: __m256i, others: __m256i) -> __m256i = _mm256_min_epu32(lanes, others);
        fn max_u32(lanes: __m256i, others: __m256i) -> __m256i = _mm256_max_epu32(lanes, others);
        fn exchange(lanes: __m256i, with: u32) -> __m256i = {
            let from = _mm256_xor_si256(Self::count_from(0), _mm256_set1_epi32(with as i32));
            _mm256_permutevar8x32_epi32(lanes, from)
        };
        fn by_bit(clear: __m256i, set: __m256i, bit: u32) -> __m256i = {
            let bit = _mm256_set1_epi32(bit as i32);
            let has = _mm256_cmpeq_epi32(_mm256_and_si256(Self::count_from(0), bit), bit);
            _mm256_blendv_epi8(clear, set, has)
        };
        fn interleave(even: __m256i, odd: __m256i) -> [__m256i; 2] = {
            let low = _mm256_unpacklo_epi32(even, odd);
            let high = _mm256_unpackhi_epi32(even, odd);
            [
                _mm256_permute2x128_si256::<0x20>(low, high),
                _mm256_permute2x128_si256::<0x31>(low, high),
            ]
        };
        fn order(mask: u32) -> __m256i =
            _mm256_loadu_si256(COMPRESS[(mask & 0xff) as usize].as_ptr().cast());
        fn compress(self, order: __m256i, to: *mut f32) =
            _mm256_storeu_ps(to, _mm256_permutevar8x32_ps(self, order));
        fn compress_u32(lanes: __m256i, order: __m256i, to: *mut u32) =
            _mm256_storeu_si256(to.cast(), _mm256_permutevar8x32_epi32(lanes, order));
        fn expand(from: *const f32, mask: u32, other: Self) -> Self = {
            let order = EXPAND[(mask & 0xff) as usize].as_ptr();
            let order = _mm256_loadu_si256(order.cast());
            let lanes = _mm256_permutevar8x32_ps(_mm256_loadu_ps(from), order);
            _mm256_blendv_ps(lanes, other, _mm256_castsi256_ps(order))
        };
    }
}
