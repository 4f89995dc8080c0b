//! One lane: plain Rust, for processors without a level of their own.

// Unsafe only because the trait is; pointers are the callers' promise.
#![allow(unsafe_op_in_unsafe_fn)]

use super::{Mode, Scalar, Task, Vector};
use crate::group::{Group, Groups, Scratch};

impl Vector for f32 {
    const LANES: usize = 1;
    type Ints = u32;
    /// Storing one lane needs no order: what is not kept is overwritten by the next.
    type Order = ();

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        value
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        from.read()
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        to.write(self)
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self + other
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        self - other
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        self * other
    }

    #[inline(always)]
    unsafe fn mul_add(self, a: Self, b: Self) -> Self {
        f32::mul_add(self, a, b)
    }

    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        f32::min(self, other)
    }

    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        f32::max(self, other)
    }

    #[inline(always)]
    unsafe fn le(self, other: Self) -> u32 {
        u32::from(self <= other)
    }

    #[inline(always)]
    unsafe fn load_u32(from: *const u32) -> u32 {
        from.read()
    }

    #[inline(always)]
    unsafe fn count_from(first: u32) -> u32 {
        first
    }

    #[inline(always)]
    unsafe fn unequal(lanes: u32, value: u32) -> u32 {
        u32::from(lanes != value)
    }

    #[inline(always)]
    unsafe fn above(lanes: u32, value: u32) -> u32 {
        u32::from(lanes > value)
    }

    #[inline(always)]
    unsafe fn order(_: u32) {}

    #[inline(always)]
    unsafe fn compress(self, _: (), to: *mut f32) {
        to.write(self)
    }

    #[inline(always)]
    unsafe fn compress_u32(lanes: u32, _: (), to: *mut u32) {
        to.write(lanes)
    }
}

/// Compiles `task` for this level.
///
/// # Safety
/// Every processor has it.
#[inline(never)]
pub(super) unsafe fn call<T: Task>(task: T) {
    task.run::<Scalar>()
}

/// The next group, found for this level.
///
/// # Safety
/// Every processor has it.
#[inline(never)]
pub(super) unsafe fn next_group(
    groups: &mut Groups<'_>,
    scratch: &mut Scratch,
) -> Option<(Group, Mode)> {
    groups.next_at::<Scalar>(scratch)
}
