//! What the sums ask of a vector, in either precision.

use nearfield_pairs::Real;

/// A vector of [`LANES`](Self::LANES) numbers.
///
/// # Safety of every function
/// The processor has the instruction set of the implementation; pointers go on for a vector.
#[allow(clippy::missing_safety_doc)] // the same for all, see above
pub(crate) trait Wide: Copy {
    /// The precision.
    type Real: Real;
    /// Lanes of a vector, at most [`super::MAX_LANES`] and a divisor of it.
    const LANES: usize;
    /// What the product of both parts of [`inverse_root`](Self::inverse_root) is to be multiplied
    /// with: a power of two, which goes into the weights.
    const UNIT: f64;

    unsafe fn splat(value: Self::Real) -> Self;
    unsafe fn load(from: *const Self::Real) -> Self;
    unsafe fn store(self, to: *mut Self::Real);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    /// Rounded correctly.
    unsafe fn div(self, other: Self) -> Self;
    /// Rounded correctly.
    unsafe fn sqrt(self) -> Self;
    /// `self · a + b`, rounded once.
    unsafe fn mul_add(self, a: Self, b: Self) -> Self;
    /// Two factors of 1/√self, refined from the hardware's estimate; not finite for 0. Whoever
    /// multiplies a weight with one after the other saves a multiplication.
    unsafe fn inverse_root(self) -> (Self, Self);
    /// `self` in lanes where `of` ≥ `least`, `other` elsewhere.
    unsafe fn where_at_least(self, other: Self, of: Self, least: Self) -> Self;
    /// Whether no lane is NaN or infinite.
    unsafe fn is_finite(self) -> bool;
}

/// The correctly rounded root and division where there is no estimate worth refining.
#[inline(always)]
pub(super) unsafe fn divided_root<V: Wide>(value: V, one: V) -> (V, V) {
    // SAFETY: the caller's promise.
    unsafe { (one.div(value.sqrt()), one) }
}
