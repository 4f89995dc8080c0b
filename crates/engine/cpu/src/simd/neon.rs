//! Four lanes of `f32`, two of `f64`, of 64-bit ARM.
//!
//! Lanes are compressed by a byte permutation that is looked up from the mask. NEON has no
//! instruction that gathers a comparison into bits, so masks are summed from lanes of one bit each.
//! The hardware's estimate of 1/√x has 8 bits; two of Newton's steps refine it.
//!
//! # Levels of ARM
//!
//! NEON is part of every 64-bit ARM processor, so nothing is detected. SVE, with wider vectors and
//! compression, is not used.
//!
//! # From double to single precision
//!
//! The conversion has a form for either half of the result, so two vectors of `f64` become one of
//! `f32` by two instructions.
//!
//! # Sorting networks
//!
//! With four lanes only two exchanges remain, with the neighbour and with the other half; each is a
//! shuffle of its own. The longer networks have more vectors instead, and their steps compare whole
//! vectors.

use super::vector::{Compress, Vector, divided_root, operations};
use std::arch::aarch64::*;

/// `COMPRESS[mask]` moves the four-byte lanes whose bit is set in `mask` to the front, in order.
static COMPRESS: [[u8; 16]; 16] = compress_table();

const fn compress_table() -> [[u8; 16]; 16] {
    let mut table = [[0; 16]; 16];
    let mut mask = 0;
    while mask < 16 {
        let (mut lane, mut kept) = (0, 0);
        while lane < 4 {
            if mask >> lane & 1 == 1 {
                let mut byte = 0;
                while byte < 4 {
                    table[mask][4 * kept + byte] = (4 * lane + byte) as u8;
                    byte += 1;
                }
                kept += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    table
}

/// `EXPAND[mask]` moves the first four-byte lanes to those whose bit is set in `mask`, in order;
/// the bytes of the others are out of range.
static EXPAND: [[u8; 16]; 16] = expand_table();

const fn expand_table() -> [[u8; 16]; 16] {
    let mut table = [[0xff; 16]; 16];
    let mut mask = 0;
    while mask < 16 {
        let (mut lane, mut taken) = (0, 0);
        while lane < 4 {
            if mask >> lane & 1 == 1 {
                let mut byte = 0;
                while byte < 4 {
                    table[mask][4 * lane + byte] = (4 * taken + byte) as u8;
                    byte += 1;
                }
                taken += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    table
}

/// One bit per lane from lanes of all ones or all zeros.
///
/// # Safety
/// Every 64-bit ARM processor has NEON.
#[inline(always)]
unsafe fn bits(lanes: uint32x4_t) -> u32 {
    const BITS: [u32; 4] = [1, 2, 4, 8];
    // SAFETY: four values are read of an array of four.
    unsafe { vaddvq_u32(vandq_u32(lanes, vld1q_u32(BITS.as_ptr()))) }
}

// One instruction per line, as in the file for AVX2.
impl Vector for float32x4_t {
    type Real = f32;
    const LANES: usize = 4;
    const UNIT: f64 = 1.0;

    operations! {
        fn splat(value: f32) -> Self = vdupq_n_f32(value);
        fn load(from: *const f32) -> Self = vld1q_f32(from);
        fn store(self, to: *mut f32) = vst1q_f32(to, self);
        fn add(self, other: Self) -> Self = vaddq_f32(self, other);
        fn sub(self, other: Self) -> Self = vsubq_f32(self, other);
        fn mul(self, other: Self) -> Self = vmulq_f32(self, other);
        fn div(self, other: Self) -> Self = vdivq_f32(self, other);
        fn sqrt(self) -> Self = vsqrtq_f32(self);
        fn mul_add(self, a: Self, b: Self) -> Self = vfmaq_f32(b, self, a);
        /// Two of Newton's steps; `vrsqrts` is (3 − a·b)/2.
        fn inverse_root(self) -> (Self, Self) = {
            let y = vrsqrteq_f32(self);
            let y = vmulq_f32(y, vrsqrtsq_f32(vmulq_f32(self, y), y));
            (y, vrsqrtsq_f32(vmulq_f32(self, y), y))
        };
        fn where_at_least(self, other: Self, of: Self, least: Self) -> Self =
            vbslq_f32(vcgeq_f32(of, least), self, other);
        fn le(self, other: Self) -> u32 = bits(vcleq_f32(self, other));
        fn is_finite(self) -> bool = vminvq_u32(vceqzq_f32(vsubq_f32(self, self))) != 0;
    }
}

impl Vector for float64x2_t {
    type Real = f64;
    const LANES: usize = 2;
    const UNIT: f64 = 1.0;

    operations! {
        fn splat(value: f64) -> Self = vdupq_n_f64(value);
        fn load(from: *const f64) -> Self = vld1q_f64(from);
        fn store(self, to: *mut f64) = vst1q_f64(to, self);
        fn add(self, other: Self) -> Self = vaddq_f64(self, other);
        fn sub(self, other: Self) -> Self = vsubq_f64(self, other);
        fn mul(self, other: Self) -> Self = vmulq_f64(self, other);
        fn div(self, other: Self) -> Self = vdivq_f64(self, other);
        fn sqrt(self) -> Self = vsqrtq_f64(self);
        fn mul_add(self, a: Self, b: Self) -> Self = vfmaq_f64(b, self, a);
        fn inverse_root(self) -> (Self, Self) = divided_root(self, vdupq_n_f64(1.0));
        fn where_at_least(self, other: Self, of: Self, least: Self) -> Self =
            vbslq_f64(vcgeq_f64(of, least), self, other);
        fn le(self, other: Self) -> u32 = {
            let lanes = vcleq_f64(self, other);
            ((vgetq_lane_u64::<0>(lanes) & 1) | (vgetq_lane_u64::<1>(lanes) & 2)) as u32
        };
        fn is_finite(self) -> bool = {
            let zero = vceqzq_f64(vsubq_f64(self, self));
            vgetq_lane_u64::<0>(zero) & vgetq_lane_u64::<1>(zero) != 0
        };
    }
}

impl Compress for float32x4_t {
    type Ints = uint32x4_t;
    /// Source byte of every byte.
    type Order = uint8x16_t;
    type Wide = float64x2_t;

    operations! {
        fn min(self, other: Self) -> Self = vminq_f32(self, other);
        fn max(self, other: Self) -> Self = vmaxq_f32(self, other);
        fn swap(self, with: u32) -> Self = {
            let pairs = if with & 1 == 0 { self } else { vrev64q_f32(self) };
            if with & 2 == 0 { pairs } else { vextq_f32::<2>(pairs, pairs) }
        };
        fn first(self) -> f32 = vgetq_lane_f32::<0>(self);
        fn narrow(from: *const f64) -> Self =
            vcvt_high_f32_f64(vcvt_f32_f64(vld1q_f64(from)), vld1q_f64(from.add(2)));
        fn load_u32(from: *const u32) -> uint32x4_t = vld1q_u32(from);
        fn load_whole(from: *const i32) -> Self = vcvtq_f32_s32(vld1q_s32(from));
        fn count_from(first: u32) -> uint32x4_t = {
            const LANES: [u32; 4] = [0, 1, 2, 3];
            vaddq_u32(vdupq_n_u32(first), vld1q_u32(LANES.as_ptr()))
        };
        fn unequal(lanes: uint32x4_t, value: u32) -> u32 =
            !bits(vceqq_u32(lanes, vdupq_n_u32(value)));
        fn above(lanes: uint32x4_t, value: u32) -> u32 =
            bits(vcgtq_u32(lanes, vdupq_n_u32(value)));
        fn store_u32(lanes: uint32x4_t, to: *mut u32) = vst1q_u32(to, lanes);
        fn min_u32(lanes: uint32x4_t, others: uint32x4_t) -> uint32x4_t =
            vminq_u32(lanes, others);
        fn max_u32(lanes: uint32x4_t, others: uint32x4_t) -> uint32x4_t =
            vmaxq_u32(lanes, others);
        fn exchange(lanes: uint32x4_t, with: u32) -> uint32x4_t = {
            let pairs = if with & 1 == 0 { lanes } else { vrev64q_u32(lanes) };
            if with & 2 == 0 { pairs } else { vextq_u32::<2>(pairs, pairs) }
        };
        fn by_bit(clear: uint32x4_t, set: uint32x4_t, bit: u32) -> uint32x4_t =
            vbslq_u32(vtstq_u32(Self::count_from(0), vdupq_n_u32(bit)), set, clear);
        fn interleave(even: uint32x4_t, odd: uint32x4_t) -> [uint32x4_t; 2] =
            [vzip1q_u32(even, odd), vzip2q_u32(even, odd)];
        fn order(mask: u32) -> uint8x16_t = vld1q_u8(COMPRESS[(mask & 0xf) as usize].as_ptr());
        fn compress(self, order: uint8x16_t, to: *mut f32) = {
            let kept = vqtbl1q_u8(vreinterpretq_u8_f32(self), order);
            vst1q_f32(to, vreinterpretq_f32_u8(kept))
        };
        fn compress_u32(lanes: uint32x4_t, order: uint8x16_t, to: *mut u32) = {
            let kept = vqtbl1q_u8(vreinterpretq_u8_u32(lanes), order);
            vst1q_u32(to, vreinterpretq_u32_u8(kept))
        };
        /// Bytes out of range stay those of `other`.
        fn expand(from: *const f32, mask: u32, other: Self) -> Self = {
            let order = vld1q_u8(EXPAND[(mask & 0xf) as usize].as_ptr());
            let (lanes, other) = (vld1q_f32(from), vreinterpretq_u8_f32(other));
            vreinterpretq_f32_u8(vqtbx1q_u8(other, vreinterpretq_u8_f32(lanes), order))
        };
    }
}
