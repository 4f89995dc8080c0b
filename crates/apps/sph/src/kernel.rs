//! The smoothing kernel: Wendland's C2 function in two and three dimensions.
//!
//! The support is exactly 2h, so the neighbour engine's radius is
//! [`Wendland::support`]. Everything the solver needs per pair is a polynomial
//! in the distance: the gradient is returned as a factor on the separation,
//! which has no division and no special case for coincident particles.

use crate::Dimensions;
use nearfield::{
    kernels::{fast_mul_add, fast_sqrt},
    pair_fn,
};

/// Wendland's C2 kernel for a fixed smoothing length.
///
/// `W(q) = α (1 − q/2)⁴ (2q + 1)` for `q = r/h ≤ 2`, with `α = 7/(4πh²)` in two
/// and `21/(16πh³)` in three dimensions (H. Wendland 1995,
/// DOI 10.1007/BF02123482; W. Dehnen & H. Aly 2012,
/// DOI 10.1111/j.1365-2966.2012.21439.x).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wendland {
    half_inverse_length: f32,
    normalization: f32,
    gradient: f32,
    support: f32,
}

impl Wendland {
    /// The kernel of smoothing length `h`, metres.
    #[must_use]
    pub fn new(dimensions: Dimensions, h: f32) -> Self {
        let length = f64::from(h);
        let pi = std::f64::consts::PI;
        let normalization = match dimensions {
            Dimensions::Two => 7.0 / (4.0 * pi * length.powi(2)),
            Dimensions::Three => 21.0 / (16.0 * pi * length.powi(3)),
        };
        Self {
            half_inverse_length: (0.5 / length) as f32,
            normalization: normalization as f32,
            gradient: (-5.0 * normalization / length.powi(2)) as f32,
            support: 2.0 * h,
        }
    }

    /// The distance beyond which the kernel is zero: 2h, metres.
    #[must_use]
    pub fn support(&self) -> f32 {
        self.support
    }

    /// `W` at the squared distance `d2`, in 1/m² or 1/m³.
    #[pair_fn]
    #[inline(always)]
    #[must_use]
    pub fn value(&self, d2: f32) -> f32 {
        let half_q = fast_sqrt(d2) * self.half_inverse_length;
        let rest = (1.0 - half_q).max(0.0);
        let square = rest * rest;
        self.normalization * square * square * fast_mul_add(4.0, half_q, 1.0)
    }

    /// `(1/r) dW/dr` at the squared distance `d2`: never positive, and the
    /// gradient of `W(|xᵢ − xⱼ|)` with respect to `xᵢ` is this times `xᵢ − xⱼ`.
    #[pair_fn]
    #[inline(always)]
    #[must_use]
    pub fn gradient_factor(&self, d2: f32) -> f32 {
        let rest = fast_mul_add(fast_sqrt(d2), -self.half_inverse_length, 1.0).max(0.0);
        self.gradient * rest * rest * rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H: f32 = 0.037;

    /// `∫ f(r) dV` over the support by the midpoint rule.
    fn integrate(dimensions: Dimensions, f: impl Fn(f64) -> f64) -> f64 {
        let steps = 20_000;
        let dr = 2.0 * f64::from(H) / f64::from(steps);
        let pi = std::f64::consts::PI;
        (0..steps)
            .map(|k| (f64::from(k) + 0.5) * dr)
            .map(|r| {
                let shell = match dimensions {
                    Dimensions::Two => 2.0 * pi * r,
                    Dimensions::Three => 4.0 * pi * r * r,
                };
                f(r) * shell * dr
            })
            .sum()
    }

    #[test]
    fn the_kernel_integrates_to_one() {
        for dimensions in [Dimensions::Two, Dimensions::Three] {
            let kernel = Wendland::new(dimensions, H);
            let sum = integrate(dimensions, |r| f64::from(kernel.value((r * r) as f32)));
            assert!((sum - 1.0).abs() < 1e-5, "{dimensions:?}: {sum}");
        }
    }

    #[test]
    fn the_gradient_is_the_derivative_of_the_kernel() {
        for dimensions in [Dimensions::Two, Dimensions::Three] {
            let kernel = Wendland::new(dimensions, H);
            let at = |r: f32| f64::from(kernel.value(r * r));
            let scale = at(0.0) / f64::from(H);
            for k in 1..40 {
                let (r, dr) = (k as f32 * 0.05 * H, 0.005 * H);
                let numeric = (at(r + dr) - at(r - dr)) / f64::from(2.0 * dr);
                let exact = f64::from(kernel.gradient_factor(r * r) * r);
                assert!(
                    (numeric - exact).abs() < 1e-3 * scale,
                    "r = {r}: {numeric} {exact}"
                );
            }
        }
    }

    #[test]
    fn the_gradient_moment_is_minus_the_dimension() {
        for (dimensions, count) in [(Dimensions::Two, 2.0), (Dimensions::Three, 3.0)] {
            let kernel = Wendland::new(dimensions, H);
            let moment = integrate(dimensions, |r| {
                r * r * f64::from(kernel.gradient_factor((r * r) as f32))
            });
            assert!((moment + count).abs() < 1e-4, "{dimensions:?}: {moment}");
        }
    }

    #[test]
    fn beyond_the_support_there_is_nothing() {
        let kernel = Wendland::new(Dimensions::Three, H);
        let outside = (2.01 * H).powi(2);
        assert_eq!(kernel.value(outside), 0.0);
        assert_eq!(kernel.gradient_factor(outside), 0.0);
    }
}
