//! What the inner loops ask of a vector of `f32`.

/// A vector of [`LANES`](Self::LANES) `f32`, and one of as many `u32`.
///
/// Masks are one bit per lane, the first lane's lowest. Loads and stores need no alignment.
///
/// # Safety of every function
/// The processor has the instruction set of the implementation; pointers go on for a vector.
#[allow(clippy::missing_safety_doc)] // the same for all, see above
pub(crate) trait Vector: Copy {
    /// Lanes of a vector, at most [`super::LANES`] and a divisor of it.
    const LANES: usize;
    /// As many `u32`.
    type Ints: Copy;
    /// How a mask is turned into a compression.
    type Order: Copy;

    unsafe fn splat(value: f32) -> Self;
    unsafe fn load(from: *const f32) -> Self;
    unsafe fn store(self, to: *mut f32);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    /// `self · a + b`, rounded once.
    unsafe fn mul_add(self, a: Self, b: Self) -> Self;
    unsafe fn min(self, other: Self) -> Self;
    unsafe fn max(self, other: Self) -> Self;
    /// Lanes where `self` ≤ `other`; NaN is not.
    unsafe fn le(self, other: Self) -> u32;

    unsafe fn load_u32(from: *const u32) -> Self::Ints;
    /// `first`, `first + 1`, …
    unsafe fn count_from(first: u32) -> Self::Ints;
    /// Lanes that differ from `value`.
    unsafe fn unequal(lanes: Self::Ints, value: u32) -> u32;
    /// Lanes above `value`.
    unsafe fn above(lanes: Self::Ints, value: u32) -> u32;

    /// Prepares to compress by `mask`.
    unsafe fn order(mask: u32) -> Self::Order;
    /// Stores the lanes of the mask next to each other; what lies behind them, up to a whole
    /// vector, is overwritten with anything.
    unsafe fn compress(self, order: Self::Order, to: *mut f32);
    /// As [`compress`](Self::compress).
    unsafe fn compress_u32(lanes: Self::Ints, order: Self::Order, to: *mut u32);
}
