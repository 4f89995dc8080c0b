//! Functions that are fast on a GPU and inexact there.
//!
//! On the CPU they are the exact ones. On a GPU they take one or two instructions where the exact
//! ones take about ten.

#![expect(
    non_camel_case_types,
    reason = "types that carry a function's text have its name"
)]

use super::{Device, DeviceFunction};

macro_rules! built_in {
    ($($name:ident => $device:literal),*) => {$(
        #[doc(hidden)]
        #[derive(Debug)]
        pub enum $name {}

        impl DeviceFunction for $name {
            fn device(_: &mut Device) -> String {
                $device.to_owned()
            }
        }
    )*};
}
built_in!(fast_sqrt => "fast_sqrt", fast_rsqrt => "fast_rsqrt", fast_div => "__fdividef");

/// √x; on a GPU off by at most one unit in the last place, and subnormal numbers are 0.
#[inline(always)]
pub fn fast_sqrt(x: f32) -> f32 {
    x.sqrt()
}

/// 1/√x; on a GPU off by at most one unit in the last place, and subnormal numbers are 0.
#[inline(always)]
pub fn fast_rsqrt(x: f32) -> f32 {
    1.0 / x.sqrt()
}

/// a/b; on a GPU off by at most two units in the last place, and 0 or NaN where |b| is above 2¹²⁶.
#[inline(always)]
pub fn fast_div(a: f32, b: f32) -> f32 {
    a / b
}
