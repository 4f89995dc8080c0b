//! Kernels of fluids: smoothed particles, position-based fluids, surface tension.

use crate::Bench;
use nearfield::{Error, prelude::*};
use std::f32::consts::PI;

/// Times all kernels of this file.
pub(crate) fn all(bench: &mut Bench, radius: f32) -> Result<(), Error> {
    let h = 0.5 * radius;
    bench.time("poly6 density", &Poly6 { radius })?;
    bench.time("spiky pressure force", &Spiky { radius })?;
    bench.time("cubic spline density", &CubicSpline { h })?;
    bench.time("quintic spline density", &QuinticSpline { h: radius / 3.0 })?;
    bench.time("Wendland C2 density", &WendlandC2 { h })?;
    bench.time("Wendland C4 density", &WendlandC4 { h })?;
    bench.time("Wendland C6 density", &WendlandC6 { h })?;
    bench.time("PBF lambda", &PbfLambda { radius })?;
    bench.time("PBF correction", &PbfCorrection { radius })?;
    bench.time("colour gradient", &ColourGradient { radius })?;
    bench.time("XSPH", &Xsph { radius })?;
    bench.time("heat conduction", &Heat { radius })
}

struct Poly6 {
    radius: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for Poly6 {
    type Target = ();
    type Source = f32;
    type Output = f32;

    fn pair(&self, pair: Pair, _: (), mass: f32) -> f32 {
        let r2 = self.radius * self.radius;
        let t = r2 - pair.d2;
        mass * 315.0 / (64.0 * PI * self.radius.powi(9)) * t * t * t
    }
}

struct Spiky {
    radius: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for Spiky {
    type Target = f32;
    type Source = (f32, f32);
    type Output = [f32; 3];

    fn pair(&self, pair: Pair, p_i: f32, (mass, p_j): (f32, f32)) -> [f32; 3] {
        let d = pair.d2.sqrt();
        if d < 1e-6 {
            return [0.0; 3];
        }
        let t = self.radius - d;
        let gradient = -45.0 / (PI * self.radius.powi(6)) * t * t;
        let scale = -mass * 0.5 * (p_i + p_j) * gradient / d;
        pair.d.map(|x| scale * x)
    }
}

struct CubicSpline {
    h: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for CubicSpline {
    type Target = ();
    type Source = f32;
    type Output = f32;

    fn pair(&self, pair: Pair, _: (), mass: f32) -> f32 {
        let q = pair.d2.sqrt() / self.h;
        let sigma = 1.0 / (PI * self.h * self.h * self.h);
        let w = if q < 1.0 {
            1.0 - 1.5 * q * q + 0.75 * q * q * q
        } else if q < 2.0 {
            0.25 * (2.0 - q) * (2.0 - q) * (2.0 - q)
        } else {
            0.0
        };
        mass * sigma * w
    }
}

struct QuinticSpline {
    h: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for QuinticSpline {
    type Target = ();
    type Source = f32;
    type Output = f32;

    fn pair(&self, pair: Pair, _: (), mass: f32) -> f32 {
        let q = pair.d2.sqrt() / self.h;
        let mut w = (3.0 - q).max(0.0).powi(5);
        if q < 2.0 {
            w -= 6.0 * (2.0 - q).powi(5);
        }
        if q < 1.0 {
            w += 15.0 * (1.0 - q).powi(5);
        }
        mass * w / (120.0 * PI * self.h.powi(3))
    }
}

struct WendlandC2 {
    h: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for WendlandC2 {
    type Target = ();
    type Source = f32;
    type Output = f32;

    fn pair(&self, pair: Pair, _: (), mass: f32) -> f32 {
        let q = pair.d2.sqrt() / self.h;
        let t = (1.0 - 0.5 * q).max(0.0);
        mass * 21.0 / (16.0 * PI * self.h.powi(3)) * t.powi(4) * (2.0 * q + 1.0)
    }
}

struct WendlandC4 {
    h: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for WendlandC4 {
    type Target = ();
    type Source = f32;
    type Output = f32;

    fn pair(&self, pair: Pair, _: (), mass: f32) -> f32 {
        let q = pair.d2.sqrt() / self.h;
        let t = (1.0 - 0.5 * q).max(0.0);
        let shape = 35.0 / 12.0 * q * q + 3.0 * q + 1.0;
        mass * 495.0 / (256.0 * PI * self.h.powi(3)) * t.powi(6) * shape
    }
}

struct WendlandC6 {
    h: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for WendlandC6 {
    type Target = ();
    type Source = f32;
    type Output = f32;

    fn pair(&self, pair: Pair, _: (), mass: f32) -> f32 {
        let q = pair.d2.sqrt() / self.h;
        let t = (1.0 - 0.5 * q).max(0.0);
        let shape = 4.0 * q * q * q + 6.25 * q * q + 4.0 * q + 1.0;
        mass * 1365.0 / (512.0 * PI * self.h.powi(3)) * t.powi(8) * shape
    }
}

/// Gradient of the density constraint, and the sum of its squares.
struct PbfLambda {
    radius: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for PbfLambda {
    type Target = ();
    type Source = f32;
    type Output = ([f32; 3], f32, f32);

    fn pair(&self, pair: Pair, _: (), mass: f32) -> ([f32; 3], f32, f32) {
        let d = pair.d2.sqrt().max(1e-6);
        let t = self.radius - d;
        let scale = mass * 45.0 / (PI * self.radius.powi(6)) * t * t / d;
        let gradient = pair.d.map(|x| scale * x);
        let squared =
            gradient[0] * gradient[0] + gradient[1] * gradient[1] + gradient[2] * gradient[2];
        let w = (self.radius * self.radius - pair.d2).powi(3);
        (gradient, squared, mass * w)
    }
}

/// Position correction with artificial pressure.
struct PbfCorrection {
    radius: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for PbfCorrection {
    type Target = f32;
    type Source = f32;
    type Output = [f32; 3];

    fn pair(&self, pair: Pair, lambda_i: f32, lambda_j: f32) -> [f32; 3] {
        let r2 = self.radius * self.radius;
        let w = (r2 - pair.d2).powi(3);
        let reference = (r2 - 0.04 * r2).powi(3);
        let ratio = w / reference;
        let pressure = -0.1 * ratio * ratio * ratio * ratio;
        let d = pair.d2.sqrt().max(1e-6);
        let t = self.radius - d;
        let scale =
            (lambda_i + lambda_j + pressure) * 45.0 / (PI * self.radius.powi(6)) * t * t / d;
        [scale * pair.d[0], scale * pair.d[1], scale * pair.d[2]]
    }
}

/// Gradient and Laplacian of a colour field.
struct ColourGradient {
    radius: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for ColourGradient {
    type Target = ();
    type Source = (f32, f32);
    type Output = ([f32; 3], f32);

    fn pair(&self, pair: Pair, _: (), (mass, density): (f32, f32)) -> ([f32; 3], f32) {
        let r2 = self.radius * self.radius;
        let volume = mass / density;
        let scale = 945.0 / (32.0 * PI * self.radius.powi(9));
        let t = r2 - pair.d2;
        let gradient = pair.d.map(|x| volume * scale * t * t * x);
        let laplacian = volume * scale * t * (7.0 * pair.d2 - 3.0 * r2);
        (gradient, laplacian)
    }
}

struct Xsph {
    radius: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for Xsph {
    type Target = ([f32; 3], f32);
    type Source = ([f32; 3], f32);
    type Output = [f32; 3];

    fn pair(&self, pair: Pair, i: ([f32; 3], f32), j: ([f32; 3], f32)) -> [f32; 3] {
        let t = self.radius * self.radius - pair.d2;
        let w = t * t * t / (i.1 + j.1);
        let mut change = [0.0; 3];
        for axis in 0..3 {
            change[axis] = w * (j.0[axis] - i.0[axis]);
        }
        change
    }
}

/// Brookshaw's form of the Laplacian of the temperature.
struct Heat {
    radius: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for Heat {
    type Target = (f32, f32);
    type Source = (f32, f32);
    type Output = f32;

    fn pair(&self, pair: Pair, (t_i, k_i): (f32, f32), (t_j, k_j): (f32, f32)) -> f32 {
        let d = pair.d2.sqrt();
        let t = (1.0 - d / self.radius).max(0.0);
        let conductivity = 4.0 * k_i * k_j / (k_i + k_j);
        conductivity * (t_j - t_i) * t * t * t / (pair.d2 + 0.01 * self.radius * self.radius)
    }
}
