//! Named kernels of charges within a cut-off: their potential and field at any point.
//!
//! Targets need not be charges: a grid of sample points, or the atoms of another molecule. A
//! charge at the very place of a target would give an infinite value, so it adds nothing, unless a
//! softening length makes its term finite. For sums without a cut-off see
//! [`PairSum`](crate::PairSum).

use crate::{Cuda, Pair, PairKernel};
use nearfield_kernels::pairs;

/// Electric potential φ_i = Σ_j q_j / (d² + ε²)^½ of the charges within the radius.
///
/// A charge at the very place of a target adds nothing when there is no softening. Source field:
/// charge. Output: potential.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ChargePotential {
    /// Softening ε, in the unit of the coordinates; 0 for none.
    pub softening: f32,
}

impl PairKernel for ChargePotential {
    type Target = ();
    type Source = f32;
    type Output = f32;

    #[inline(always)]
    fn pair(&self, pair: Pair, _: (), charge: f32) -> f32 {
        let d2 = pair.d2 + self.softening * self.softening;
        if d2 > 0.0 { charge / d2.sqrt() } else { 0.0 }
    }

    fn cuda(&self) -> Option<Cuda> {
        // SAFETY: it reads the channels and uniforms of this kernel and writes its result, nothing
        // else.
        let twin = unsafe { Cuda::new("charge_potential.cuh", pairs::CHARGE_POTENTIAL) };
        Some(twin.uniforms([self.softening * self.softening]))
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

impl PairKernel for ChargeField {
    type Target = ();
    type Source = f32;
    type Output = [f32; 3];

    #[inline(always)]
    fn pair(&self, pair: Pair, _: (), charge: f32) -> [f32; 3] {
        let d2 = pair.d2 + self.softening * self.softening;
        let factor = if d2 > 0.0 {
            -charge / (d2 * d2.sqrt())
        } else {
            0.0
        };
        pair.d.map(|d| factor * d)
    }

    fn cuda(&self) -> Option<Cuda> {
        // SAFETY: it reads the channels and uniforms of this kernel and writes its result, nothing
        // else.
        let twin = unsafe { Cuda::new("charge_field.cuh", pairs::CHARGE_FIELD) };
        Some(twin.uniforms([self.softening * self.softening]))
    }
}
