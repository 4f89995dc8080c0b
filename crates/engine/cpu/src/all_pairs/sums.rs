//! The contribution of a source to a vector of targets.
//!
//! # Self terms
//!
//! With `SKIP`, targets that coincide with the source are left out by a select on d². The
//! potential keeps the old sum there; the pull, whose displacement is zero, makes its factor zero,
//! because an infinite factor times zero would be NaN.
//!
//! # Operations
//!
//! Per pair the fast potential takes an estimate, its refinement, one multiplication and a fused
//! addition; the fast pull takes four multiplications and three fused additions after the
//! refinement.

use crate::simd::vector::Vector;

/// A sum over sources, of `C` components.
///
/// A type and not a value, so that the inner loop has no branch on the kind of sum.
pub(super) trait Sum<const C: usize>: Sync {
    /// Power of [`Vector::UNIT`] that weights are multiplied with beforehand.
    const POWER: i32;

    /// Adds a source of weight `w`, at `d` from the targets, to their sums. With `SKIP`, targets
    /// whose `d2` is below `least` are left out.
    ///
    /// # Safety
    /// The processor has the level of the vectors.
    unsafe fn add<V: Vector, const EXACT: bool, const SKIP: bool>(
        sums: &mut [V; C],
        d: [V; 3],
        d2: V,
        w: V,
        least: V,
    );
}

/// Σ w/d.
pub(super) struct Potential;

/// Σ w·d/|d|³.
pub(super) struct Pull;

impl Sum<1> for Potential {
    const POWER: i32 = 1;

    #[inline(always)]
    unsafe fn add<V: Vector, const EXACT: bool, const SKIP: bool>(
        [sum]: &mut [V; 1],
        _: [V; 3],
        d2: V,
        w: V,
        least: V,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let with = if EXACT {
                sum.add(w.div(d2.sqrt()))
            } else {
                let (y, step) = d2.inverse_root();
                w.mul(y).mul_add(step, *sum)
            };
            *sum = if SKIP {
                with.where_at_least(*sum, d2, least)
            } else {
                with
            };
        }
    }
}

impl Sum<3> for Pull {
    const POWER: i32 = 3;

    #[inline(always)]
    unsafe fn add<V: Vector, const EXACT: bool, const SKIP: bool>(
        sums: &mut [V; 3],
        d: [V; 3],
        d2: V,
        w: V,
        least: V,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let factor = if EXACT {
                w.div(d2.mul(d2.sqrt()))
            } else {
                let (y, step) = d2.inverse_root();
                let inverse = y.mul(step);
                w.mul(inverse).mul(inverse.mul(inverse))
            };
            let factor = if SKIP {
                factor.where_at_least(d2.sub(d2), d2, least)
            } else {
                factor
            };
            for axis in 0..3 {
                sums[axis] = d[axis].mul_add(factor, sums[axis]);
            }
        }
    }
}
