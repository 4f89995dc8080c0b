//! Named kernels of charges within a cut-off: their potential and field at any point.
//!
//! Targets need not be charges: a grid of sample points, or the atoms of another molecule. A charge
//! exactly at a target would give an infinite value, so it adds nothing, unless a softening length
//! makes its term finite. For sums without a cut-off see [`PairSum`](crate::PairSum).
//!
//! Both multiply by a reciprocal root, which a GPU has an instruction for: it is off by at most one
//! unit in the last place there, and subnormal squares of distances count as 0.

use crate::{Pair, PairKernel, fast_rsqrt, pair_kernel};

/// Electric potential φ_i = Σ_j q_j / (d² + ε²)^½ of the charges within the radius.
///
/// A charge exactly at a target adds nothing if there is no softening. Source field: charge.
/// Output: potential.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ChargePotential {
    /// Softening ε, in the unit of the coordinates; 0 for none.
    pub softening: f32,
}

impl ChargePotential {
    /// ε², computed once per launch on a GPU.
    #[inline(always)]
    fn softening2(&self) -> f32 {
        self.softening * self.softening
    }
}

#[pair_kernel(crate = crate)]
impl PairKernel for ChargePotential {
    type Target = ();
    type Source = f32;
    type Output = f32;

    #[inline(always)]
    fn pair(&self, pair: Pair, _: (), charge: f32) -> f32 {
        let d2 = pair.d2 + self.softening2();
        if d2 > 0.0 {
            charge * fast_rsqrt(d2)
        } else {
            0.0
        }
    }
}

/// Electric field E_i = −Σ_j q_j d / (d² + ε²)^(3/2) of the charges within the radius, d being from
/// the target to the charge.
///
/// A charge at the very place of a target adds nothing. Source field: charge. Output: field (3).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ChargeField {
    /// Softening ε, in the unit of the coordinates; 0 for none.
    pub softening: f32,
}

impl ChargeField {
    /// ε², computed once per launch on a GPU.
    #[inline(always)]
    fn softening2(&self) -> f32 {
        self.softening * self.softening
    }
}

#[pair_kernel(crate = crate)]
impl PairKernel for ChargeField {
    type Target = ();
    type Source = f32;
    type Output = [f32; 3];

    #[inline(always)]
    fn pair(&self, pair: Pair, _: (), charge: f32) -> [f32; 3] {
        let d2 = pair.d2 + self.softening2();
        let inverse = if d2 > 0.0 { fast_rsqrt(d2) } else { 0.0 };
        let factor = -charge * inverse * (inverse * inverse);
        pair.d.map(|d| factor * d)
    }
}
