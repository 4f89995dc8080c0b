//! The Lennard-Jones potential, of one kind of atoms and of several.
//!
//! U(r) = 4ε·((σ/r)¹² − (σ/r)⁶) (Lennard-Jones 1931, DOI 10.1088/0959-5309/43/5/301). The
//! coefficients of unlike atoms follow from those of like ones by a [`Mixing`] rule, unless they
//! are given.
//!
//! [`PlainLennardJones`] is for one kind of atoms and has the fewest operations per pair;
//! [`LennardJones`] looks coefficients up in a table of the pairs of up to 8 kinds, which stays in
//! the first-level cache and fits among the arguments of a launch. Both compute in `f32`; functions
//! in double precision serve references and long-range corrections.

use crate::{
    EnergyForce, EnergyVirial, Error, ErrorKind, MAX_TYPES, PairPotential, fast_mul_add,
    fast_recip, fast_sqrt, pair_fn, pair_kernel,
};
use std::f64::consts::PI;

/// Pairs of types, without regard to order.
const PAIRS: usize = MAX_TYPES * (MAX_TYPES + 1) / 2;
/// The last of them.
const LAST: u32 = PAIRS as u32 - 1;
/// The bits of a type.
const MASK: u32 = MAX_TYPES as u32 - 1;

/// The treatment of the jump at the cut-off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Truncation {
    /// Nothing: energies beyond the cut-off are left out, which
    /// [`long_range`](LennardJones::long_range) makes up for on average.
    #[default]
    Plain,
    /// Energies are shifted to be 0 at the cut-off; forces are the same.
    EnergyShift,
    /// Forces are shifted to be 0 at the cut-off, too: U(r) − U(c) − (r − c)·U′(c).
    ForceShift,
}

/// How the coefficients of unlike atoms follow from those of like ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mixing {
    /// σ = (σᵢ + σⱼ)/2 and ε = √(εᵢεⱼ) (Lorentz 1881, DOI 10.1002/andp.18812480110; Berthelot
    /// 1898).
    #[default]
    LorentzBerthelot,
    /// σ = √(σᵢσⱼ) and ε = √(εᵢεⱼ).
    Geometric,
}

/// The coefficients of a pair of atoms: U(r) = 4ε·((σ/r)¹² − (σ/r)⁶). Atoms with ε = 0 do not take
/// part, whatever their σ; it may be 0 then, as files write the hydrogen of water.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coefficients {
    /// Depth of the well, an energy.
    pub epsilon: f64,
    /// Where the energy is 0, a distance.
    pub sigma: f64,
}

/// Energy and virial that a truncated potential leaves out, if atoms beyond the cut-off are spread
/// evenly.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LongRange {
    /// Energy of all atoms together.
    pub energy: f64,
    /// Virial −Σ r·dU/dr of all atoms together.
    pub virial: f64,
}

/// The terms that a truncation adds to the energy.
struct Shifts {
    offset: f64,
    /// Multiplied by the distance.
    slope: f64,
}

impl Mixing {
    /// The coefficients of unlike atoms.
    pub fn of(self, a: Coefficients, b: Coefficients) -> Coefficients {
        Coefficients {
            epsilon: (a.epsilon * b.epsilon).sqrt(),
            sigma: match self {
                Self::LorentzBerthelot => 0.5 * (a.sigma + b.sigma),
                Self::Geometric => (a.sigma * b.sigma).sqrt(),
            },
        }
    }
}

impl Coefficients {
    /// Energy and virial at a distance, without a cut-off.
    pub fn at(self, r: f64) -> EnergyVirial {
        let s6 = (self.sigma / r).powi(6);
        let well = 4.0 * self.epsilon * s6;
        EnergyVirial {
            energy: well * (s6 - 1.0),
            virial: 6.0 * well * (2.0 * s6 - 1.0),
        }
    }

    /// The same with a cut-off, in double precision: what the backends compute in single.
    pub fn truncated(self, r: f64, cutoff: f64, truncation: Truncation) -> EnergyVirial {
        let EnergyVirial { energy, virial } = self.at(r);
        let Shifts { offset, slope } = self.shifts(cutoff, truncation);
        EnergyVirial {
            energy: energy + slope * r + offset,
            virial: virial - slope * r,
        }
    }

    /// The terms added to the energy.
    fn shifts(self, cutoff: f64, truncation: Truncation) -> Shifts {
        let EnergyVirial { energy, virial } = self.at(cutoff);
        let (offset, slope) = match truncation {
            Truncation::Plain => (0.0, 0.0),
            Truncation::EnergyShift => (-energy, 0.0),
            Truncation::ForceShift => (-energy - virial, virial / cutoff),
        };
        Shifts { offset, slope }
    }

    /// Refuses coefficients that make no potential, naming the types.
    fn check(self, a: usize, b: usize) -> Result<(), Error> {
        let good = |x: f64| x.is_finite() && x >= 0.0;
        let acts_nowhere = self.epsilon == 0.0;
        if good(self.epsilon) && good(self.sigma) && (self.sigma > 0.0 || acts_nowhere) {
            Ok(())
        } else {
            Err(ErrorKind::LennardJones {
                types: [a, b],
                epsilon: self.epsilon,
                sigma: self.sigma,
            }
            .into())
        }
    }
}

/// Atoms of one kind, truncated with energies shifted or not: the fewest operations per pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlainLennardJones {
    sigma2: f32,
    /// 4ε
    well: f32,
    offset: f32,
}

impl PlainLennardJones {
    /// Atoms with these coefficients; energies are 0 at the cut-off where `shifted`.
    ///
    /// # Errors
    /// [`Error`].
    pub fn new(of: Coefficients, cutoff: f64, shifted: bool) -> Result<Self, Error> {
        of.check(0, 0)?;
        check_cutoff(cutoff)?;
        let truncation = if shifted {
            Truncation::EnergyShift
        } else {
            Truncation::Plain
        };
        Ok(Self {
            sigma2: if of.epsilon > 0.0 {
                (of.sigma * of.sigma) as f32
            } else {
                0.0
            },
            well: (4.0 * of.epsilon) as f32,
            offset: of.shifts(cutoff, truncation).offset as f32,
        })
    }
}

#[pair_kernel(crate = crate)]
impl PairPotential for PlainLennardJones {
    type Point = ();

    #[inline(always)]
    fn evaluate(&self, d2: f32, _: (), _: ()) -> EnergyForce {
        let inverse = fast_recip(d2);
        let s2 = self.sigma2 * inverse;
        let s6 = s2 * s2 * s2;
        let well = self.well * s6;
        EnergyForce {
            energy: fast_mul_add(well, s6 - 1.0, self.offset),
            force_over_r: 6.0 * well * fast_mul_add(2.0, s6, -1.0) * inverse,
        }
    }
}

/// Atoms of up to [`MAX_TYPES`] kinds by a table of coefficients, truncated in any way.
///
/// Points: the kind of the atom, a whole number below the number of types.
#[derive(Debug, Clone, PartialEq)]
pub struct LennardJones {
    types: usize,
    /// For the long-range corrections, a row per type.
    table: Vec<Coefficients>,
    cutoff: f64,
    truncation: Truncation,
    /// The numbers that the backends read, for every pair of types, those with type 0 first: σ²,
    /// 4ε, slope and offset of the energy.
    numbers: [[f32; 4]; PAIRS],
}

impl LennardJones {
    /// Atoms of these kinds; the coefficients of unlike ones are mixed, but for the pairs of
    /// `explicit`.
    ///
    /// # Errors
    /// [`Error`]; pairs of types that are not there are refused as too many types.
    pub fn new(
        types: &[Coefficients],
        mixing: Mixing,
        explicit: &[(usize, usize, Coefficients)],
        cutoff: f64,
        truncation: Truncation,
    ) -> Result<Self, Error> {
        let count = types.len();
        if count == 0 || count > MAX_TYPES {
            return Err(ErrorKind::Types(count).into());
        }
        check_cutoff(cutoff)?;
        let pair = |k: usize| mixing.of(types[k / count], types[k % count]);
        let mut table: Vec<_> = (0..count * count).map(pair).collect();
        for (a, of) in types.iter().enumerate() {
            // Not by way of a square root.
            table[a * count + a] = *of;
        }
        for &(a, b, of) in explicit {
            if a >= count || b >= count {
                return Err(ErrorKind::Types(a.max(b) + 1).into());
            }
            (table[a * count + b], table[b * count + a]) = (of, of);
        }
        let mut made = Self {
            types: count,
            table,
            cutoff,
            truncation,
            numbers: [[0.0; 4]; PAIRS],
        };
        for a in 0..count {
            for b in 0..=a {
                let of = made.coefficients(a, b);
                of.check(a, b)?;
                let Shifts { offset, slope } = of.shifts(cutoff, truncation);
                // Without a well, near atoms would give 0 times infinity.
                let sigma = if of.epsilon > 0.0 { of.sigma } else { 0.0 };
                let numbers = [sigma * sigma, 4.0 * of.epsilon, slope, offset];
                made.numbers[a * (a + 1) / 2 + b] = numbers.map(|number| number as f32);
            }
        }
        Ok(made)
    }

    /// Number of kinds.
    pub fn types(&self) -> usize {
        self.types
    }

    /// The cut-off, which should be the search radius.
    pub fn cutoff(&self) -> f64 {
        self.cutoff
    }

    /// The treatment of the jump at the cut-off.
    pub fn truncation(&self) -> Truncation {
        self.truncation
    }

    /// The coefficients of two kinds, which must be below [`types`](Self::types).
    pub fn coefficients(&self, a: usize, b: usize) -> Coefficients {
        self.table[a * self.types + b]
    }

    /// The kernel with fewer operations that does the same, where there is one.
    pub fn plain(&self) -> Option<PlainLennardJones> {
        let shifted = match self.truncation {
            Truncation::Plain => false,
            Truncation::EnergyShift => true,
            Truncation::ForceShift => return None,
        };
        match self.types {
            1 => PlainLennardJones::new(self.coefficients(0, 0), self.cutoff, shifted).ok(),
            _ => None,
        }
    }

    /// The energy and virial beyond the cut-off for `counts` atoms of every kind in a volume, taken
    /// as spread evenly there (Allen & Tildesley, Computer Simulation of Liquids, 2017, section
    /// 2.8): 2π/V·Σ NₐN_b ∫ u r² dr and 2π/V·Σ NₐN_b ∫ −r u′ r² dr from the cut-off on. Nothing for
    /// shifted potentials, which are what they are.
    pub fn long_range(&self, counts: &[usize], volume: f64) -> LongRange {
        let mut sum = LongRange::default();
        if self.truncation != Truncation::Plain {
            return sum;
        }
        for (a, &of_a) in counts.iter().enumerate().take(self.types) {
            for (b, &of_b) in counts.iter().enumerate().take(self.types) {
                let Coefficients { epsilon, sigma } = self.coefficients(a, b);
                let pairs = 2.0 * PI / volume * of_a as f64 * of_b as f64;
                let s3 = (sigma / self.cutoff).powi(3);
                let (third, ninth) = (s3 / 3.0, s3.powi(3) / 9.0);
                let well = 4.0 * epsilon * sigma.powi(3);
                sum.energy += pairs * well * (ninth - third);
                sum.virial += pairs * well * (12.0 * ninth - 6.0 * third);
            }
        }
        sum
    }

    /// The place of two kinds among the numbers.
    #[pair_fn(crate = crate, associated)]
    #[inline(always)]
    fn place(a: f32, b: f32) -> u32 {
        // Masked and limited, so that no check of bounds stands in the way of vectors.
        let (a, b) = (a as i32 as u32 & MASK, b as i32 as u32 & MASK);
        let (low, high) = (a.min(b), a.max(b));
        (high * (high + 1) / 2 + low).min(LAST)
    }
}

#[pair_kernel(crate = crate)]
impl PairPotential for LennardJones {
    type Point = f32;

    #[inline(always)]
    fn evaluate(&self, d2: f32, a: f32, b: f32) -> EnergyForce {
        let [sigma2, well, slope, offset] = self.numbers[Self::place(a, b) as usize];
        let inverse = fast_recip(d2);
        let s2 = sigma2 * inverse;
        let s6 = s2 * s2 * s2;
        let well = well * s6;
        let shift = slope * fast_sqrt(d2);
        EnergyForce {
            energy: fast_mul_add(well, s6 - 1.0, shift + offset),
            force_over_r: (6.0 * well * fast_mul_add(2.0, s6, -1.0) - shift) * inverse,
        }
    }
}

fn check_cutoff(cutoff: f64) -> Result<(), Error> {
    if cutoff.is_finite() && cutoff > 0.0 {
        Ok(())
    } else {
        Err(ErrorKind::Cutoff(cutoff).into())
    }
}
