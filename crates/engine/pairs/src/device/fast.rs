//! Functions that are an instruction or two on a GPU.
//!
//! On the CPU they are the exact ones. On a GPU roots and quotients take one or a few instructions
//! where the exact ones take about ten, [`fast_mul_add`] takes one instead of two, and
//! [`fast_saturate`] none.
//!
//! [`mul_high`] is exact on both.

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
built_in! {
    fast_sqrt => "fast_sqrt",
    fast_rsqrt => "fast_rsqrt",
    fast_recip => "fast_recip",
    fast_div => "__fdividef",
    fast_mul_add => "fast_mul_add",
    fast_saturate => "fast_saturate",
    mul_high => "nf::mul_high"
}

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

/// 1/x; on a GPU off by at most one unit in the last place, subnormal numbers are 0, and so is the
/// result where |x| is above 2¹²⁶.
#[inline(always)]
pub fn fast_recip(x: f32) -> f32 {
    1.0 / x
}

/// a/b; on a GPU off by at most two units in the last place, and 0 or NaN where |b| is above 2¹²⁶.
#[inline(always)]
pub fn fast_div(a: f32, b: f32) -> f32 {
    a / b
}

/// a·b + c: on the CPU the product is rounded and then the sum, on a GPU the result alone.
///
/// [`f32::mul_add`] is rounded once on both, and slow where the CPU's instruction for it is not
/// compiled in.
#[inline(always)]
pub fn fast_mul_add(a: f32, b: f32, c: f32) -> f32 {
    a * b + c
}

/// x, or 0 where x is negative or NaN; above 1 it is x on the CPU and 1 on a GPU, which does that
/// along with the operation that x comes from.
#[inline(always)]
pub fn fast_saturate(x: f32) -> f32 {
    x.max(0.0)
}

/// The upper 32 bits of the product of two integers, as [`u32::wrapping_mul`] gives the lower ones.
#[inline(always)]
pub fn mul_high(a: u32, b: u32) -> u32 {
    ((u64::from(a) * u64::from(b)) >> 32) as u32
}
