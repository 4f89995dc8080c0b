//! The equation of state: pressure, compression and internal energy of water.
//!
//! The solver carries the *compression* s = ρ/ρ₀ − 1 instead of the density:
//! weakly compressible water stays within a percent of ρ₀, and the difference
//! keeps the digits that a single-precision density would lose. Pressures
//! below zero are cut off, because free water does not pull; the internal
//! energy is the integral of exactly that pressure, so the budget closes.

use nearfield::{kernels::fast_mul_add, pair_fn};

/// The least compression a particle may have. Stretched water has no pressure;
/// letting spray get ever thinner would only make it blind to the walls and
/// the water it falls on, whose first touch must already push it back.
pub(crate) const MAX_STRETCHED: f32 = -0.05;

/// Exponent of Tait's equation for water.
const GAMMA: f32 = 7.0;

/// Tait's equation `p = ρ₀c₀²/γ ((ρ/ρ₀)^γ − 1)`, γ = 7, cut off at p = 0.
///
/// J. J. Monaghan 1994, DOI 10.1006/jcph.1994.1034.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tait {
    density: f32,
    /// c₀²/γ: pressure over ρ₀ is this times ((1 + s)⁷ − 1).
    stiffness: f32,
}

impl Tait {
    /// Water of rest density `density` (kg/m³) and sound speed `sound_speed` (m/s).
    #[must_use]
    pub fn new(density: f32, sound_speed: f32) -> Self {
        Self {
            density,
            stiffness: sound_speed * sound_speed / GAMMA,
        }
    }

    /// c₀²/γ, m²/s².
    pub(crate) fn stiffness(&self) -> f32 {
        self.stiffness
    }

    /// Pressure over rest density, m²/s²; never negative.
    #[pair_fn]
    #[inline(always)]
    #[must_use]
    pub fn specific_pressure(&self, compression: f32) -> f32 {
        // (1 + s)⁷ − 1 multiplied out, so that small s keep their digits.
        let s = compression.max(0.0);
        let tail = fast_mul_add(s, 7.0 + s, 21.0);
        let tail = fast_mul_add(s, tail, 35.0);
        let tail = fast_mul_add(s, tail, 35.0);
        let tail = fast_mul_add(s, tail, 21.0);
        let tail = fast_mul_add(s, tail, 7.0);
        self.stiffness * s * tail
    }

    /// Pressure, Pa; never negative.
    #[must_use]
    pub fn pressure(&self, compression: f32) -> f32 {
        self.density * self.specific_pressure(compression)
    }

    /// The compression at which [`specific_pressure`](Self::specific_pressure)
    /// takes the given value (m²/s²); zero for values below zero.
    #[must_use]
    pub fn compression(&self, specific_pressure: f32) -> f32 {
        let x = f64::from(specific_pressure.max(0.0) / self.stiffness);
        (x.ln_1p() / f64::from(GAMMA)).exp_m1() as f32
    }

    /// ρ₀/ρ at a specific pressure (m²/s²): one over one more than its
    /// [`compression`](Self::compression).
    pub(crate) fn relative_volume(&self, specific_pressure: f32) -> f32 {
        // Most walls are dry.
        if specific_pressure <= 0.0 {
            return 1.0;
        }
        let x = f64::from(specific_pressure / self.stiffness);
        (x.ln_1p() / -f64::from(GAMMA)).exp() as f32
    }

    /// Internal energy per unit mass, J/kg: ∫ p/ρ² dρ from rest to `compression`.
    #[must_use]
    pub fn internal_energy(&self, compression: f32) -> f64 {
        // ((1 + s)⁶ − 1)/6 − s/(1 + s) with s² taken out, so that small s keep their digits.
        let s = f64::from(compression.max(0.0));
        let tail = 2.5 + s * (10.0 / 3.0 + s * (2.5 + s * (1.0 + s / 6.0)));
        f64::from(self.stiffness) * (s * s) * (1.0 / (1.0 + s) + tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn water() -> Tait {
        Tait::new(1000.0, 40.0)
    }

    #[test]
    fn pressure_and_compression_are_inverse() {
        for p in [0.0, 1e-3, 1.0, 20.0, 400.0] {
            let back = water().specific_pressure(water().compression(p));
            assert!((back - p).abs() <= 1e-5 * p, "{p} became {back}");
            let volume = 1.0 / (1.0 + water().compression(p));
            assert!((water().relative_volume(p) - volume).abs() < 1e-6);
        }
    }

    #[test]
    fn small_compressions_follow_the_sound_speed() {
        let s = 1e-5;
        let linear = 1600.0 * s;
        assert!((water().specific_pressure(s) / linear - 1.0).abs() < 1e-4);
    }

    #[test]
    fn stretched_water_does_not_pull() {
        assert_eq!(water().pressure(-0.02), 0.0);
        assert_eq!(water().internal_energy(-0.02), 0.0);
    }

    #[test]
    fn internal_energy_keeps_its_digits_at_any_compression() {
        let stiffness = f64::from(water().stiffness());
        for s in [1e-3_f32, 0.02, 0.3, 2.0] {
            let x = f64::from(s);
            let exact = stiffness * (((1.0 + x).powi(6) - 1.0) / 6.0 - x / (1.0 + x));
            let found = water().internal_energy(s);
            assert!((found / exact - 1.0).abs() < 1e-9, "{s}: {found} {exact}");
        }
        // 7s²/2 for small s, where the difference of powers has no digits left.
        for s in [1e-20_f32, 1e-12, 1e-8] {
            let exact = 3.5 * stiffness * f64::from(s).powi(2);
            let found = water().internal_energy(s);
            assert!((found / exact - 1.0).abs() < 1e-7, "{s}: {found} {exact}");
        }
        assert!(water().internal_energy(f32::INFINITY).is_infinite());
    }

    #[test]
    fn internal_energy_is_the_integral_of_pressure() {
        let end = 0.02_f64;
        let steps = 4000;
        let ds = end / f64::from(steps);
        let sum: f64 = (0..steps)
            .map(|k| (f64::from(k) + 0.5) * ds)
            .map(|s| f64::from(water().specific_pressure(s as f32)) / (1.0 + s).powi(2) * ds)
            .sum();
        let exact = water().internal_energy(end as f32);
        assert!((sum / exact - 1.0).abs() < 1e-4, "{sum} against {exact}");
    }
}
