//! Named kernels of smoothed particle hydrodynamics.
//!
//! SPH replaces a field by a sum over neighbours, weighted by a smoothing kernel W that vanishes
//! beyond a radius. Here W is the C2 kernel of Wendland: it needs no branch inside its support,
//! and pairs do not clump under it as they do under a spline. A step of a weakly compressible
//! fluid needs two traversals, [`SphDensity`] and then [`SphForce`], which reads the densities and
//! the pressures that follow from them.
//!
//! Both kernels are symmetric: the value of W, and the magnitude of the force, are the same for
//! both points of a pair.
//!
//! Kernels compute in `f32`, also in an engine in `f64`, which decides pairs in double precision
//! and then rounds displacements and squared distances.
//!
//! Roots and quotients are the fast forms of a GPU, off by one or two units in the last place, and
//! the sums of products there are rounded once.

use crate::{
    Pair, PairKernel, fast_div, fast_mul_add, fast_saturate, fast_sqrt, pair_fn, pair_kernel,
};
use std::f32::consts::PI;

/// The number of dimensions that a smoothing kernel is normalised for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Dimensions {
    /// Points in a plane; densities are masses per area.
    Two,
    /// Points in space.
    #[default]
    Three,
}

/// The C2 kernel of Wendland (1995, DOI 10.1007/BF02123482) with compact support `2h`:
/// W(q) = α · (1 − q/2)⁴ · (2q + 1), q = d/h, where α is 21/(16π h³) in three dimensions and
/// 7/(4π h²) in two (Dehnen & Aly 2012, DOI 10.1111/j.1365-2966.2012.21439.x).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WendlandC2 {
    support: f32,
    inverse_h: f32,
    scale: f32,
}

impl WendlandC2 {
    /// The kernel whose support radius is `radius` = 2h, for three dimensions.
    pub fn with_support(radius: f32) -> Self {
        let inverse_h = 2.0 / radius;
        Self {
            support: radius,
            inverse_h,
            scale: 21.0 / (16.0 * PI) * inverse_h.powi(3),
        }
    }

    /// The kernel of the same support, normalised for points in a plane.
    ///
    /// ```
    /// use nearfield_pairs::WendlandC2;
    /// let kernel = WendlandC2::with_support(2.0).in_2d();
    /// assert!((kernel.value(0.0) - 7.0 / (4.0 * std::f32::consts::PI)).abs() < 1e-6);
    /// ```
    pub fn in_2d(self) -> Self {
        Self {
            scale: 7.0 / (4.0 * PI) * self.inverse_h.powi(2),
            ..self
        }
    }

    /// The kernel of the same support, normalised for two or three dimensions.
    pub fn in_dimensions(self, dimensions: Dimensions) -> Self {
        match dimensions {
            Dimensions::Two => self.in_2d(),
            Dimensions::Three => Self::with_support(self.support),
        }
    }

    /// The support radius, 2h.
    pub fn support(&self) -> f32 {
        self.support
    }

    /// W at squared distance `d2`; 0 beyond the support.
    #[pair_fn(crate = crate)]
    #[inline(always)]
    pub fn value(&self, d2: f32) -> f32 {
        let d = fast_sqrt(d2);
        let u = fast_saturate(fast_mul_add(d, self.minus_inverse_support(), 1.0));
        let u2 = u * u;
        u2 * u2 * fast_mul_add(d, self.twice_scale_over_h(), self.scale)
    }

    /// (dW/dd)/d at squared distance `d2`, finite at 0: −5·scale/h² · (1 − q/2)³.
    #[pair_fn(crate = crate)]
    #[inline(always)]
    pub fn gradient_over_distance(&self, d2: f32) -> f32 {
        let u = fast_saturate(fast_mul_add(
            fast_sqrt(d2),
            self.minus_inverse_support(),
            1.0,
        ));
        self.gradient_scale() * (u * u * u)
    }

    /// −1/(2h), the slope of 1 − q/2.
    #[inline(always)]
    fn minus_inverse_support(&self) -> f32 {
        -0.5 * self.inverse_h
    }

    /// 2·scale/h, the slope of scale · (2q + 1).
    #[inline(always)]
    fn twice_scale_over_h(&self) -> f32 {
        2.0 * self.inverse_h * self.scale
    }

    /// The factor of the gradient, −5·scale/h².
    #[inline(always)]
    fn gradient_scale(&self) -> f32 {
        -5.0 * self.scale * self.inverse_h * self.inverse_h
    }
}

/// Mass density ρ_i = Σ_j m_j W(d_ij), without the point's own m_i W(0).
///
/// Source field: mass. Output: density.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SphDensity {
    /// Smoothing kernel; its support is at most the search radius.
    pub kernel: WendlandC2,
}

impl SphDensity {
    /// The density by the kernel of [`WendlandC2::with_support`].
    pub fn with_support(radius: f32) -> Self {
        let kernel = WendlandC2::with_support(radius);
        Self { kernel }
    }
}

#[pair_kernel(crate = crate)]
impl PairKernel for SphDensity {
    type Target = ();
    type Source = f32;
    type Output = f32;

    #[inline(always)]
    fn pair(&self, pair: Pair, _: (), mass: f32) -> f32 {
        mass * self.kernel.value(pair.d2)
    }

    fn support(&self) -> Option<f32> {
        Some(self.kernel.support())
    }

    const SYMMETRIC: bool = true;

    #[inline(always)]
    fn symmetric(&self, pair: Pair, (_, mi): ((), f32), (_, mj): ((), f32)) -> (f32, f32) {
        let value = self.kernel.value(pair.d2);
        (mj * value, mi * value)
    }
}

/// Velocity, density and pressure of a point.
type Moving = ([f32; 3], f32, f32);

/// Acceleration by pressure and artificial viscosity (Monaghan 1992,
/// DOI 10.1146/annurev.aa.30.090192.002551, eq. 3.3 and 4.1).
///
/// Target fields: velocity (3), density, pressure. Source fields: velocity (3), density, pressure,
/// mass. Output: acceleration (3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SphForce {
    /// Smoothing kernel; its support is at most the search radius.
    pub kernel: WendlandC2,
    /// Smoothing length h, half the support.
    pub h: f32,
    /// Viscosity coefficient α times the speed of sound.
    pub alpha_c: f32,
}

#[pair_kernel(crate = crate)]
impl PairKernel for SphForce {
    type Target = Moving;
    type Source = ([f32; 3], f32, f32, f32);
    type Output = [f32; 3];

    #[inline(always)]
    fn pair(&self, pair: Pair, target: Self::Target, source: Self::Source) -> [f32; 3] {
        let (vj, rho_j, p_j, mass) = source;
        let factor = mass * self.magnitude(pair, target, (vj, rho_j, p_j));
        let [dx, dy, dz] = pair.d;
        [factor * dx, factor * dy, factor * dz]
    }

    fn support(&self) -> Option<f32> {
        Some(self.kernel.support())
    }

    const SYMMETRIC: bool = true;

    #[inline(always)]
    fn symmetric(
        &self,
        pair: Pair,
        (target, (_, _, _, mi)): (Self::Target, Self::Source),
        (other, (_, _, _, mj)): (Self::Target, Self::Source),
    ) -> ([f32; 3], [f32; 3]) {
        let magnitude = self.magnitude(pair, target, other);
        let [dx, dy, dz] = pair.d;
        let (on_i, on_j) = (mj * magnitude, -mi * magnitude);
        (
            [on_i * dx, on_i * dy, on_i * dz],
            [on_j * dx, on_j * dy, on_j * dz],
        )
    }
}

impl SphForce {
    /// The acceleration along x_j − x_i, per mass and distance: the same for both points.
    #[pair_fn(crate = crate)]
    #[inline(always)]
    fn magnitude(&self, pair: Pair, i: Moving, j: Moving) -> f32 {
        let (vi, rho_i, p_i) = i;
        let (vj, rho_j, p_j) = j;
        // With d = x_j − x_i, both v_ij · x_ij and ∇_i W change sign twice.
        let [dx, dy, dz] = pair.d;
        let along_x = (vj[0] - vi[0]) * dx;
        let along_xy = fast_mul_add(vj[1] - vi[1], dy, along_x);
        let approach = fast_mul_add(vj[2] - vi[2], dz, along_xy);
        let mu = fast_div(self.h * approach.min(0.0), pair.d2 + self.softening());
        let viscosity = fast_div(-self.alpha_c * mu, 0.5 * (rho_i + rho_j));
        let pressure = fast_div(p_i, rho_i * rho_i) + fast_div(p_j, rho_j * rho_j);
        (pressure + viscosity) * self.kernel.gradient_over_distance(pair.d2)
    }

    /// 0.01·h², which keeps the viscosity of close pairs finite.
    #[inline(always)]
    fn softening(&self) -> f32 {
        0.01 * self.h * self.h
    }
}
