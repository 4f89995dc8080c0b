//! The operations on vectors that the loops need.
//!
//! [`Vector`] is the arithmetic, over `f32` and `f64` alike: sums over all pairs run in either
//! precision. [`Compress`] adds what searches need, in `f32` only: comparisons that give a mask of
//! bits, lanes of `u32` beside those of `f32`, and compression, which stores the lanes of a mask
//! next to each other. One file per instruction set implements both, one line per operation.
//!
//! **Invariant:** `add`, `sub`, `mul`, `div`, `sqrt` and `mul_add` round every lane once, to
//! nearest, at every level. So a loop over vectors gives the same bits whatever the width, and the
//! contract's d² can be computed by any of them. Only the estimate in
//! [`Vector::inverse_root`] differs between levels.

use nearfield_pairs::Real;

/// A vector of [`LANES`](Self::LANES) numbers. Loads and stores need no alignment.
///
/// # Safety of every function
/// The processor has the instruction set of the implementation, and pointers are good for a whole
/// vector. The loops get the first from [`Simd::call`](super::Simd::call), the second from arrays
/// that are padded by [`super::LANES`].
pub(crate) trait Vector: Copy {
    /// The precision.
    type Real: Real;
    /// Lanes of a vector, at most [`super::LANES`] and a divisor of it.
    const LANES: usize;
    /// The product of both parts of [`inverse_root`](Self::inverse_root) is the inverse root
    /// divided by this power of two, which callers multiply into the weights beforehand.
    const UNIT: f64;

    /// The same number in all lanes.
    unsafe fn splat(value: Self::Real) -> Self;
    /// Consecutive numbers.
    unsafe fn load(from: *const Self::Real) -> Self;
    /// Writes all lanes.
    unsafe fn store(self, to: *mut Self::Real);
    /// `self + other`, rounded once.
    unsafe fn add(self, other: Self) -> Self;
    /// `self − other`, rounded once.
    unsafe fn sub(self, other: Self) -> Self;
    /// `self · other`, rounded once.
    unsafe fn mul(self, other: Self) -> Self;
    /// `self / other`, rounded once.
    unsafe fn div(self, other: Self) -> Self;
    /// √self, rounded once.
    unsafe fn sqrt(self) -> Self;
    /// `self · a + b`, rounded once.
    unsafe fn mul_add(self, a: Self, b: Self) -> Self;
    /// Two factors of 1/√self, refined from the hardware's estimate; not finite for 0. Multiplying
    /// a weight by one after the other saves the multiplication that would join them.
    unsafe fn inverse_root(self) -> (Self, Self);
    /// `self` in lanes where `of` ≥ `least`, `other` elsewhere.
    unsafe fn where_at_least(self, other: Self, of: Self, least: Self) -> Self;
    /// Lanes where `self` ≤ `other`, a bit per lane, the first lane's lowest; a comparison with NaN
    /// is false.
    unsafe fn le(self, other: Self) -> u32;
    /// Returns true if no lane is NaN or infinite.
    unsafe fn is_finite(self) -> bool;
}

/// A vector of `f32` whose lanes can be compared and compressed, beside one of as many `u32`.
///
/// Masks are one bit per lane, the first lane's lowest.
///
/// # Safety of every function
/// As for [`Vector`].
pub(crate) trait Compress: Vector<Real = f32> {
    /// As many `u32`.
    type Ints: Copy;
    /// A mask, prepared for compression.
    type Order: Copy;
    /// The vector of `f64` of the level.
    type Wide: Vector<Real = f64>;

    /// The smaller lane; `other` where one of them is NaN.
    unsafe fn min(self, other: Self) -> Self;
    /// The larger lane; `other` where one of them is NaN.
    unsafe fn max(self, other: Self) -> Self;
    /// Lane `l` gets lane `l ^ with`; `with` is a power of two below the number of lanes.
    unsafe fn swap(self, with: u32) -> Self;
    /// The first lane.
    unsafe fn first(self) -> f32;
    /// Consecutive numbers, each rounded once.
    unsafe fn narrow(from: *const f64) -> Self;
    /// Consecutive integers.
    unsafe fn load_u32(from: *const u32) -> Self::Ints;
    /// Consecutive whole numbers as floating-point ones; exact below 2²⁴.
    unsafe fn load_whole(from: *const i32) -> Self;
    /// `first`, `first + 1`, …
    unsafe fn count_from(first: u32) -> Self::Ints;
    /// Lanes that differ from `value`.
    unsafe fn unequal(lanes: Self::Ints, value: u32) -> u32;
    /// Lanes above `value`.
    unsafe fn above(lanes: Self::Ints, value: u32) -> u32;

    /// Writes all integers, as [`Vector::store`] does numbers.
    unsafe fn store_u32(lanes: Self::Ints, to: *mut u32);
    /// The smaller integer.
    unsafe fn min_u32(lanes: Self::Ints, others: Self::Ints) -> Self::Ints;
    /// The larger integer.
    unsafe fn max_u32(lanes: Self::Ints, others: Self::Ints) -> Self::Ints;
    /// Lane `l` gets lane `l ^ with`; `with` is below the number of lanes.
    unsafe fn exchange(lanes: Self::Ints, with: u32) -> Self::Ints;
    /// Lanes whose number has the bit `bit` from `set`, the others from `clear`.
    unsafe fn by_bit(clear: Self::Ints, set: Self::Ints, bit: u32) -> Self::Ints;
    /// The lanes of both in turn: the first half of the result, and the second.
    unsafe fn interleave(even: Self::Ints, odd: Self::Ints) -> [Self::Ints; 2];

    /// Prepares to compress by `mask`.
    unsafe fn order(mask: u32) -> Self::Order;
    /// Stores the lanes of the mask next to each other; the rest of the vector behind them is
    /// overwritten with unspecified values.
    unsafe fn compress(self, order: Self::Order, to: *mut f32);
    /// As [`compress`](Self::compress).
    unsafe fn compress_u32(lanes: Self::Ints, order: Self::Order, to: *mut u32);
    /// The inverse of [`compress`](Self::compress): lanes of the mask get consecutive numbers, the
    /// others those of `other`. A whole vector is read.
    unsafe fn expand(from: *const f32, mask: u32, other: Self) -> Self;
}

/// The functions of a vector trait, each by the expression after `=`.
macro_rules! operations {
    ($($(#[$doc:meta])* fn $name:ident($($arguments:tt)*) $(-> $result:ty)? = $value:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        #[allow(unused_unsafe, reason = "plain Rust is safe, and so is NEON on 64-bit ARM")]
        unsafe fn $name($($arguments)*) $(-> $result)? {
            // SAFETY: the caller of a vector's function guarantees that the processor has its
            // instruction set and that pointers are good for a whole vector.
            unsafe { $value }
        }
    )*};
}
pub(super) use operations;

/// The correctly rounded root and division, where no estimate is worth refining.
///
/// # Safety
/// The processor has the vector's instruction set.
#[inline(always)]
pub(super) unsafe fn divided_root<V: Vector>(value: V, one: V) -> (V, V) {
    // SAFETY: guaranteed by the caller.
    unsafe { (one.div(value.sqrt()), one) }
}
