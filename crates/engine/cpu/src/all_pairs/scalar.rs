//! One lane: plain Rust, for processors without a level of their own.

// Unsafe only because the trait is; pointers are the callers' promise.
#![allow(unsafe_op_in_unsafe_fn)]

use super::{Wide, wide::divided_root};

macro_rules! one_lane {
    ($real:ty) => {
        impl Wide for $real {
            type Real = $real;
            const LANES: usize = 1;
            const UNIT: f64 = 1.0;

            #[inline(always)]
            unsafe fn splat(value: $real) -> Self {
                value
            }

            #[inline(always)]
            unsafe fn load(from: *const $real) -> Self {
                from.read()
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $real) {
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
            unsafe fn div(self, other: Self) -> Self {
                self / other
            }

            #[inline(always)]
            unsafe fn sqrt(self) -> Self {
                self.sqrt()
            }

            #[inline(always)]
            unsafe fn mul_add(self, a: Self, b: Self) -> Self {
                self.mul_add(a, b)
            }

            #[inline(always)]
            unsafe fn inverse_root(self) -> (Self, Self) {
                divided_root(self, 1.0)
            }

            #[inline(always)]
            unsafe fn where_at_least(self, other: Self, of: Self, least: Self) -> Self {
                if of >= least { self } else { other }
            }

            #[inline(always)]
            unsafe fn is_finite(self) -> bool {
                self.is_finite()
            }
        }
    };
}
one_lane!(f32);
one_lane!(f64);
