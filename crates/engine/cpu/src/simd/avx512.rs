//! Sixteen lanes of `f32`, eight of `f64`.
//!
//! Lanes are compressed in a register and stored whole: the compressing store to memory is
//! microcoded on some processors. The hardware's estimate of 1/√x has 14 bits in both precisions,
//! and one refinement makes it as good as the correctly rounded root for a sum.
//!
//! # Masks
//!
//! Comparisons write a mask register with a bit per lane, and compression takes that register
//! directly: no table and no permutation. Unsigned comparisons exist.
//!
//! # From double to single precision
//!
//! A vector of `f32` is two of `f64`. Each is rounded to half a vector, and the halves are joined;
//! the joining instructions that need no more than AVX-512 F take vectors of `f64`, so the bits are
//! passed through that type.
//!
//! # Sorting networks
//!
//! Lanes are exchanged with those a power of two away by one permutation across the vector, whose
//! indices are constants after inlining. Choosing between two vectors by lane is a blend under a
//! mask that is a constant as well, so a step of a network is a permutation, a minimum, a maximum
//! and a blend.

use super::vector::{Compress, Vector, operations};
use std::arch::x86_64::*;

// One instruction per line, as in the file for AVX2.
impl Vector for __m512 {
    type Real = f32;
    const LANES: usize = 16;
    const UNIT: f64 = 0.5;

    operations! {
        fn splat(value: f32) -> Self = _mm512_set1_ps(value);
        fn load(from: *const f32) -> Self = _mm512_loadu_ps(from);
        fn store(self, to: *mut f32) = _mm512_storeu_ps(to, self);
        fn add(self, other: Self) -> Self = _mm512_add_ps(self, other);
        fn sub(self, other: Self) -> Self = _mm512_sub_ps(self, other);
        fn mul(self, other: Self) -> Self = _mm512_mul_ps(self, other);
        fn div(self, other: Self) -> Self = _mm512_div_ps(self, other);
        fn sqrt(self) -> Self = _mm512_sqrt_ps(self);
        fn mul_add(self, a: Self, b: Self) -> Self = _mm512_fmadd_ps(self, a, b);
        /// Newton's step y(3 − x·y²)/2 squares the estimate's error of 2⁻¹⁴.
        fn inverse_root(self) -> (Self, Self) = {
            let y = _mm512_rsqrt14_ps(self);
            let step = _mm512_fnmadd_ps(_mm512_mul_ps(self, y), y, _mm512_set1_ps(3.0));
            (y, step)
        };
        fn where_at_least(self, other: Self, of: Self, least: Self) -> Self =
            _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_GE_OQ>(of, least), other, self);
        fn le(self, other: Self) -> u32 =
            u32::from(_mm512_cmp_ps_mask::<_CMP_LE_OQ>(self, other));
        fn is_finite(self) -> bool = {
            let zero = _mm512_sub_ps(self, self);
            _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(zero, _mm512_setzero_ps()) == !0
        };
    }
}

impl Vector for __m512d {
    type Real = f64;
    const LANES: usize = 8;
    const UNIT: f64 = 1.0;

    operations! {
        fn splat(value: f64) -> Self = _mm512_set1_pd(value);
        fn load(from: *const f64) -> Self = _mm512_loadu_pd(from);
        fn store(self, to: *mut f64) = _mm512_storeu_pd(to, self);
        fn add(self, other: Self) -> Self = _mm512_add_pd(self, other);
        fn sub(self, other: Self) -> Self = _mm512_sub_pd(self, other);
        fn mul(self, other: Self) -> Self = _mm512_mul_pd(self, other);
        fn div(self, other: Self) -> Self = _mm512_div_pd(self, other);
        fn sqrt(self) -> Self = _mm512_sqrt_pd(self);
        fn mul_add(self, a: Self, b: Self) -> Self = _mm512_fmadd_pd(self, a, b);
        /// With e = 1 − x·y², 1/√x = y(1 + e/2 + 3e²/8 + 5e³/16 + …). The rest, 35e⁴/128, is below
        /// 2⁻⁵³ for an estimate that is off by 2⁻¹⁴.
        fn inverse_root(self) -> (Self, Self) = {
            let y = _mm512_rsqrt14_pd(self);
            let one = _mm512_set1_pd(1.0);
            let e = _mm512_fnmadd_pd(_mm512_mul_pd(self, y), y, one);
            let series = _mm512_fmadd_pd(_mm512_set1_pd(0.3125), e, _mm512_set1_pd(0.375));
            let series = _mm512_fmadd_pd(series, e, _mm512_set1_pd(0.5));
            (y, _mm512_fmadd_pd(series, e, one))
        };
        fn where_at_least(self, other: Self, of: Self, least: Self) -> Self =
            _mm512_mask_blend_pd(_mm512_cmp_pd_mask::<_CMP_GE_OQ>(of, least), other, self);
        fn le(self, other: Self) -> u32 =
            u32::from(_mm512_cmp_pd_mask::<_CMP_LE_OQ>(self, other));
        fn is_finite(self) -> bool = {
            let zero = _mm512_sub_pd(self, self);
            _mm512_cmp_pd_mask::<_CMP_EQ_OQ>(zero, _mm512_setzero_pd()) == !0
        };
    }
}

impl Compress for __m512 {
    type Ints = __m512i;
    type Order = __mmask16;
    type Wide = __m512d;

    operations! {
        fn min(self, other: Self) -> Self = _mm512_min_ps(self, other);
        fn max(self, other: Self) -> Self = _mm512_max_ps(self, other);
        fn swap(self, with: u32) -> Self = match with {
            1 => _mm512_permute_ps::<0b10_11_00_01>(self),
            2 => _mm512_permute_ps::<0b01_00_11_10>(self),
            4 => _mm512_shuffle_f32x4::<0b10_11_00_01>(self, self),
            _ => _mm512_shuffle_f32x4::<0b01_00_11_10>(self, self),
        };
        fn first(self) -> f32 = _mm512_cvtss_f32(self);
        fn narrow(from: *const f64) -> Self = {
            let low = _mm256_castps_pd(_mm512_cvtpd_ps(_mm512_loadu_pd(from)));
            let high = _mm256_castps_pd(_mm512_cvtpd_ps(_mm512_loadu_pd(from.add(8))));
            let low = _mm512_castpd256_pd512(low);
            _mm512_castpd_ps(_mm512_insertf64x4::<1>(low, high))
        };
        fn load_u32(from: *const u32) -> __m512i = _mm512_loadu_si512(from.cast());
        fn load_whole(from: *const i32) -> Self =
            _mm512_cvtepi32_ps(_mm512_loadu_si512(from.cast()));
        fn count_from(first: u32) -> __m512i = {
            let lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
            _mm512_add_epi32(_mm512_set1_epi32(first as i32), lanes)
        };
        fn unequal(lanes: __m512i, value: u32) -> u32 =
            u32::from(_mm512_cmpneq_epi32_mask(lanes, _mm512_set1_epi32(value as i32)));
        fn above(lanes: __m512i, value: u32) -> u32 =
            u32::from(_mm512_cmpgt_epu32_mask(lanes, _mm512_set1_epi32(value as i32)));
        fn store_u32(lanes: __m512i, to: *mut u32) = _mm512_storeu_si512(to.cast(), lanes);
        fn min_u32(lanes: __m512i, others: __m512i) -> __m512i = _mm512_min_epu32(lanes, others);
        fn max_u32(lanes: __m512i, others: __m512i) -> __m512i = _mm512_max_epu32(lanes, others);
        fn exchange(lanes: __m512i, with: u32) -> __m512i = {
            let from = _mm512_xor_si512(Self::count_from(0), _mm512_set1_epi32(with as i32));
            _mm512_permutexvar_epi32(from, lanes)
        };
        fn by_bit(clear: __m512i, set: __m512i, bit: u32) -> __m512i = {
            let has = _mm512_test_epi32_mask(Self::count_from(0), _mm512_set1_epi32(bit as i32));
            _mm512_mask_blend_epi32(has, clear, set)
        };
        fn interleave(even: __m512i, odd: __m512i) -> [__m512i; 2] = {
            let first = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
            let second = _mm512_add_epi32(first, _mm512_set1_epi32(8));
            [
                _mm512_permutex2var_epi32(even, first, odd),
                _mm512_permutex2var_epi32(even, second, odd),
            ]
        };
        fn order(mask: u32) -> __mmask16 = mask as __mmask16;
        fn compress(self, order: __mmask16, to: *mut f32) =
            _mm512_storeu_ps(to, _mm512_maskz_compress_ps(order, self));
        fn compress_u32(lanes: __m512i, order: __mmask16, to: *mut u32) =
            _mm512_storeu_si512(to.cast(), _mm512_maskz_compress_epi32(order, lanes));
        fn expand(from: *const f32, mask: u32, other: Self) -> Self =
            _mm512_mask_expand_ps(other, mask as __mmask16, _mm512_loadu_ps(from));
    }
}
