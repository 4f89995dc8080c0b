//! A force by powers of the distance, which stays finite.
//!
//! Two terms, c₁/r² + (c₂/r)ⁿ, cover gravity or charges with a steep repulsion. Below a floor the
//! force is that at the floor, so points that are created on top of each other move apart instead
//! of flying away.
//!
//! The power is computed by six squarings whatever the exponent: a loop of variable length could
//! not be vectorised.

use crate::{
    EnergyForce, EnergyVirial, Error, ErrorKind, PairPotential, fast_div, fast_mul_add, fast_rsqrt,
    fast_sqrt, pair_kernel,
};

/// Exponents are below this.
const MAX_EXPONENT: u32 = 64;

/// The pair force c₁/r² + (c₂/r)ⁿ, positive where points repel; nearer than a floor it is that at
/// the floor. The energy is 0 at infinity.
///
/// Points: nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerLaw {
    c1: f32,
    c2: f32,
    exponent: u32,
    floor: f32,
    floor2: f32,
}

impl PowerLaw {
    /// A force with these coefficients, exponent n from 2 to 63, and the distance below which it
    /// no longer grows.
    ///
    /// # Errors
    /// [`Error`].
    pub fn new(c1: f32, c2: f32, exponent: u32, floor: f32) -> Result<Self, Error> {
        if !(2..MAX_EXPONENT).contains(&exponent) {
            return Err(ErrorKind::Exponent(exponent).into());
        }
        if !(floor.is_finite() && floor > 0.0) {
            return Err(ErrorKind::Floor(floor).into());
        }
        if !(c1.is_finite() && c2.is_finite()) {
            return Err(ErrorKind::PowerLaw(c1, c2).into());
        }
        Ok(Self {
            c1,
            c2,
            exponent,
            floor,
            floor2: floor * floor,
        })
    }

    /// Energy and virial at a distance, in double precision.
    pub fn at(&self, r: f64) -> EnergyVirial {
        let floor = f64::from(self.floor);
        let far = r.max(floor);
        let (c1, c2) = (f64::from(self.c1), f64::from(self.c2));
        let power = (c2 / far).powi(self.exponent as i32);
        let force = c1 / (far * far) + power;
        let energy = c1 / far + power * far / f64::from(self.exponent - 1);
        EnergyVirial {
            energy: energy + force * (far - r),
            virial: force * r,
        }
    }
}

#[pair_kernel(crate = crate)]
impl PairPotential for PowerLaw {
    type Point = ();

    #[inline(always)]
    fn evaluate(&self, d2: f32, _: (), _: ()) -> EnergyForce {
        let r = fast_sqrt(d2);
        let floored = d2.max(self.floor2);
        let far = fast_sqrt(floored);
        let inverse = fast_rsqrt(floored);
        let ratio = self.c2 * inverse;
        // All six squarings whatever the exponent: no loop stands in the way of vectors.
        let (mut power, mut square) = (1.0f32, ratio);
        for bit in 0..6 {
            power *= match self.exponent >> bit & 1 {
                1 => square,
                _ => 1.0,
            };
            square *= square;
        }
        let coulomb = self.c1 * inverse;
        let force = fast_mul_add(coulomb, inverse, power);
        let energy = coulomb + power * far * self.inverse_less_one();
        // At distance 0 there is no direction, and d is 0 as well.
        EnergyForce {
            energy: energy + force * (far - r),
            force_over_r: fast_div(force, r.max(far * 1e-12)),
        }
    }
}

impl PowerLaw {
    /// 1/(n − 1), the factor of the steep term's energy.
    #[inline(always)]
    fn inverse_less_one(&self) -> f32 {
        1.0 / (self.exponent - 1) as f32
    }
}
