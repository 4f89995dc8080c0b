//! Four lanes of 64-bit ARM. Lanes are compressed by a byte permutation looked up from the mask.

// Every function is unsafe for one reason, that the processor must have the level.
#![allow(unsafe_op_in_unsafe_fn)]

use super::{Mode, Neon, Task, Vector};
use crate::group::{Group, Groups, Scratch};
use std::arch::aarch64::*;

/// `COMPRESS[mask]` moves the four-byte lanes whose bit is set in `mask` to the front, in order.
static COMPRESS: [[u8; 16]; 16] = compress_table();

const fn compress_table() -> [[u8; 16]; 16] {
    let mut table = [[0; 16]; 16];
    let mut mask = 0;
    while mask < 16 {
        let (mut lane, mut place) = (0, 0);
        while lane < 4 {
            if mask >> lane & 1 == 1 {
                let mut byte = 0;
                while byte < 4 {
                    table[mask][4 * place + byte] = (4 * lane + byte) as u8;
                    byte += 1;
                }
                place += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    table
}

/// One bit per lane from lanes of all ones or all zeros.
#[inline(always)]
unsafe fn bits(lanes: uint32x4_t) -> u32 {
    const BITS: [u32; 4] = [1, 2, 4, 8];
    vaddvq_u32(vandq_u32(lanes, vld1q_u32(BITS.as_ptr())))
}

impl Vector for float32x4_t {
    const LANES: usize = 4;
    type Ints = uint32x4_t;
    /// Source byte of every byte.
    type Order = uint8x16_t;

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
    unsafe fn mul_add(self, a: Self, b: Self) -> Self {
        vfmaq_f32(b, self, a)
    }

    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        vminq_f32(self, other)
    }

    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        vmaxq_f32(self, other)
    }

    #[inline(always)]
    unsafe fn le(self, other: Self) -> u32 {
        bits(vcleq_f32(self, other))
    }

    #[inline(always)]
    unsafe fn load_u32(from: *const u32) -> uint32x4_t {
        vld1q_u32(from)
    }

    #[inline(always)]
    unsafe fn count_from(first: u32) -> uint32x4_t {
        const LANES: [u32; 4] = [0, 1, 2, 3];
        vaddq_u32(vdupq_n_u32(first), vld1q_u32(LANES.as_ptr()))
    }

    #[inline(always)]
    unsafe fn unequal(lanes: uint32x4_t, value: u32) -> u32 {
        !bits(vceqq_u32(lanes, vdupq_n_u32(value)))
    }

    #[inline(always)]
    unsafe fn above(lanes: uint32x4_t, value: u32) -> u32 {
        bits(vcgtq_u32(lanes, vdupq_n_u32(value)))
    }

    #[inline(always)]
    unsafe fn order(mask: u32) -> uint8x16_t {
        vld1q_u8(COMPRESS[(mask & 0xf) as usize].as_ptr())
    }

    #[inline(always)]
    unsafe fn compress(self, order: uint8x16_t, to: *mut f32) {
        let kept = vqtbl1q_u8(vreinterpretq_u8_f32(self), order);
        vst1q_f32(to, vreinterpretq_f32_u8(kept))
    }

    #[inline(always)]
    unsafe fn compress_u32(lanes: uint32x4_t, order: uint8x16_t, to: *mut u32) {
        let kept = vqtbl1q_u8(vreinterpretq_u8_u32(lanes), order);
        vst1q_u32(to, vreinterpretq_u32_u8(kept))
    }
}

/// Compiles `task` for this level.
///
/// # Safety
/// The processor has it.
#[inline(never)]
#[target_feature(enable = "neon")]
pub(super) unsafe fn call<T: Task>(task: T) {
    task.run::<Neon>()
}

/// The next group, found for this level.
///
/// # Safety
/// The processor has it.
#[inline(never)]
#[target_feature(enable = "neon")]
pub(super) unsafe fn next_group(
    groups: &mut Groups<'_>,
    scratch: &mut Scratch,
) -> Option<(Group, Mode)> {
    groups.next_at::<Neon>(scratch)
}
