//! The Coulomb potential within a cut-off.
//!
//! Charges act far beyond any cut-off, so cutting them off leaves a jump in energy and force that
//! heats a simulation. [`Screening`] removes it in the usual ways: a shift of the energy, a shift
//! of the force, or a reaction field, which replaces the matter beyond the cut-off by a
//! dielectric. All of them are a polynomial in r added to 1/r, so one kernel serves them all with
//! three coefficients.

use crate::{
    EnergyForce, EnergyVirial, PairPotential, fast_mul_add, fast_recip, fast_sqrt, pair_kernel,
};

/// The treatment of the jump at the cut-off: energies are q·q·(1/r + a·r² + b·r + c).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Screening {
    /// Nothing.
    #[default]
    Plain,
    /// Energies are 0 at the cut-off: 1/r − 1/c.
    EnergyShift,
    /// Energies and forces are 0 there: 1/r − 1/c + (r − c)/c².
    ForceShift,
    /// Beyond the cut-off is a medium of this relative permittivity, infinite for a conductor
    /// (Barker & Watts 1973, DOI 10.1080/00268977300102101; Tironi et al. 1995,
    /// DOI 10.1063/1.469273): 1/r + k·r² − c, k = (ε − 1)/((2ε + 1)·rc³), 0 at the cut-off.
    ReactionField(f64),
}

/// Charges that act on each other within a cut-off.
///
/// Points: the charge. Neither the self terms of a reaction field nor pairs left out of it within
/// molecules are accounted for: atoms here have no bonds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CutoffCoulomb {
    constant: f32,
    square: f32,
    slope: f32,
    offset: f32,
    /// The same before they were rounded.
    exact: [f64; 4],
}

impl CutoffCoulomb {
    /// Charges with the energy `constant`·q·q/r, 1/(4πε₀) in the units in use.
    pub fn new(constant: f64, cutoff: f64, screening: Screening) -> Self {
        let Shifts {
            square,
            slope,
            offset,
        } = Shifts::new(cutoff, screening);
        Self {
            constant: constant as f32,
            square: (constant * square) as f32,
            slope: (constant * slope) as f32,
            offset: (constant * offset) as f32,
            exact: [
                constant,
                constant * square,
                constant * slope,
                constant * offset,
            ],
        }
    }

    /// Energy and virial of two unit charges at a distance, in double precision.
    pub fn at(&self, r: f64) -> EnergyVirial {
        let [constant, square, slope, offset] = self.exact;
        let (plain, bend, shift) = (constant / r, square * r * r, slope * r);
        EnergyVirial {
            energy: plain + bend + shift + offset,
            virial: plain - 2.0 * bend - shift,
        }
    }
}

impl CutoffCoulomb {
    /// The factor of d² in the virial.
    #[inline(always)]
    fn twice_square(&self) -> f32 {
        2.0 * self.square
    }
}

/// The terms a·r² + b·r + c that are added to 1/r.
#[derive(Debug, Clone, Copy, Default)]
struct Shifts {
    /// a.
    square: f64,
    /// b.
    slope: f64,
    /// c.
    offset: f64,
}

impl Shifts {
    fn new(cutoff: f64, screening: Screening) -> Self {
        let inverse = 1.0 / cutoff;
        match screening {
            Screening::Plain => Self::default(),
            Screening::EnergyShift => Self {
                offset: -inverse,
                ..Self::default()
            },
            Screening::ForceShift => Self {
                slope: inverse * inverse,
                offset: -2.0 * inverse,
                ..Self::default()
            },
            Screening::ReactionField(permittivity) => {
                let share = if permittivity.is_infinite() {
                    0.5
                } else {
                    (permittivity - 1.0) / (2.0 * permittivity + 1.0)
                };
                Self {
                    square: share * inverse.powi(3),
                    offset: -(1.0 + share) * inverse,
                    ..Self::default()
                }
            }
        }
    }
}

#[pair_kernel(crate = crate)]
impl PairPotential for CutoffCoulomb {
    type Point = f32;

    #[inline(always)]
    fn evaluate(&self, d2: f32, a: f32, b: f32) -> EnergyForce {
        let r = fast_sqrt(d2);
        let inverse = fast_recip(d2);
        let product = a * b;
        // 1/r, by the inverse that other potentials need too.
        let over_r = r * inverse;
        let bent = fast_mul_add(self.square, d2, fast_mul_add(self.slope, r, self.offset));
        let energy = fast_mul_add(self.constant, over_r, bent);
        let slopes = fast_mul_add(self.twice_square(), d2, self.slope * r);
        let virial = fast_mul_add(self.constant, over_r, -slopes);
        EnergyForce {
            energy: product * energy,
            force_over_r: product * (virial * inverse),
        }
    }
}
