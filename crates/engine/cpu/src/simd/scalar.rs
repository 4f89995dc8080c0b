//! One lane: plain Rust, for processors without a level of their own and as the reference that the
//! other levels are tested against.
//!
//! Conformance tests compare every level with this one, list by list and bit by bit, and this one
//! with an oracle that knows nothing of grids.
//!
//! # Order of operations
//!
//! The loops are the same generic code as at other levels, with vectors of one number. So this
//! level also checks the loops themselves: remainders, compression and masks of one lane.
//!
//! # Speed
//!
//! The fused multiply-add of the contract is one instruction on 64-bit ARM. On x86-64 it is a call
//! of the mathematical library here, because the baseline of that target has no such instruction.
//! So this level is for processors without AVX2 and FMA, and for comparisons.

use super::vector::{Compress, Vector, divided_root, operations};

// Both precisions have the same text.
macro_rules! one_lane {
    ($real:ty) => {
        impl Vector for $real {
            type Real = $real;
            const LANES: usize = 1;
            const UNIT: f64 = 1.0;

            operations! {
                fn splat(value: $real) -> Self = value;
                fn load(from: *const $real) -> Self = from.read();
                fn store(self, to: *mut $real) = to.write(self);
                fn add(self, other: Self) -> Self = self + other;
                fn sub(self, other: Self) -> Self = self - other;
                fn mul(self, other: Self) -> Self = self * other;
                fn div(self, other: Self) -> Self = self / other;
                fn sqrt(self) -> Self = <$real>::sqrt(self);
                fn mul_add(self, a: Self, b: Self) -> Self = <$real>::mul_add(self, a, b);
                fn inverse_root(self) -> (Self, Self) = divided_root(self, 1.0);
                fn where_at_least(self, other: Self, of: Self, least: Self) -> Self =
                    if of >= least { self } else { other };
                fn le(self, other: Self) -> u32 = u32::from(self <= other);
                fn is_finite(self) -> bool = <$real>::is_finite(self);
            }
        }
    };
}
one_lane!(f32);
one_lane!(f64);

impl Compress for f32 {
    type Ints = u32;
    /// Storing one lane needs no order: a lane that is not kept is overwritten by the next.
    type Order = ();
    type Wide = f64;

    operations! {
        fn min(self, other: Self) -> Self = f32::min(self, other);
        fn max(self, other: Self) -> Self = f32::max(self, other);
        fn swap(self, _: u32) -> Self = self;
        fn first(self) -> f32 = self;
        fn narrow(from: *const f64) -> Self = from.read() as f32;
        fn load_u32(from: *const u32) -> u32 = from.read();
        fn load_whole(from: *const i32) -> Self = from.read() as f32;
        fn count_from(first: u32) -> u32 = first;
        fn unequal(lanes: u32, value: u32) -> u32 = u32::from(lanes != value);
        fn above(lanes: u32, value: u32) -> u32 = u32::from(lanes > value);
        fn store_u32(lanes: u32, to: *mut u32) = to.write(lanes);
        fn min_u32(lanes: u32, others: u32) -> u32 = lanes.min(others);
        fn max_u32(lanes: u32, others: u32) -> u32 = lanes.max(others);
        fn exchange(lanes: u32, _: u32) -> u32 = lanes;
        fn by_bit(clear: u32, _: u32, _: u32) -> u32 = clear;
        fn interleave(even: u32, odd: u32) -> [u32; 2] = [even, odd];
        fn order(_: u32) -> () = ();
        fn compress(self, _: (), to: *mut f32) = to.write(self);
        fn compress_u32(lanes: u32, _: (), to: *mut u32) = to.write(lanes);
        fn expand(from: *const f32, mask: u32, other: Self) -> Self =
            if mask & 1 == 0 { other } else { from.read() };
    }
}
