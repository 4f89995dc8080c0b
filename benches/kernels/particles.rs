//! Kernels of molecules, grains and agents.

use crate::Bench;
use nearfield::{Error, prelude::*};

/// Times all kernels of this file.
pub(crate) fn all(bench: &mut Bench, radius: f32) -> Result<(), Error> {
    bench.time(
        "Lennard-Jones, shifted and switched",
        &LennardJones { cutoff: radius },
    )?;
    bench.time("Buckingham", &Buckingham { cutoff: radius })?;
    bench.time("soft spheres", &SoftSpheres { radius })?;
    bench.time("DPD", &Dpd { radius })?;
    bench.time("rods", &Rods { radius })?;
    bench.time("boids", &Boids { radius })?;
    bench.time("histogram of distances", &Shells { radius })?;
    bench.time(
        "coordination by switching",
        &Coordination { d0: 0.6 * radius },
    )?;
    bench.time("Stillinger, pair part", &Stillinger { cutoff: radius })?;
    bench.time(
        "Hertz contacts",
        &Hertz {
            stiffness: 1e3,
            damping: 0.1,
        },
    )
}

struct LennardJones {
    cutoff: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for LennardJones {
    type Target = ();
    type Source = ();
    type Output = ([f32; 3], f32);

    fn pair(&self, pair: Pair, _: (), _: ()) -> ([f32; 3], f32) {
        let inverse = 1.0 / pair.d2;
        let s6 = inverse * inverse * inverse;
        let c6 = 1.0 / self.cutoff.powi(6);
        let shift = 4.0 * (c6 * c6 - c6);
        let mut energy = 4.0 * (s6 * s6 - s6) - shift;
        let mut scale = 24.0 * (2.0 * s6 * s6 - s6) * inverse;
        let begin = 0.8 * self.cutoff;
        if pair.d2 > begin * begin {
            let (on, off) = (begin * begin, self.cutoff * self.cutoff);
            let t = (off - pair.d2) / (off - on);
            let switch = t * t * (3.0 - 2.0 * t);
            let slope = 6.0 * t * (1.0 - t) / (off - on);
            scale = scale * switch + 2.0 * energy * slope;
            energy *= switch;
        }
        (pair.d.map(|x| -scale * x), 0.5 * energy)
    }
}

struct Buckingham {
    cutoff: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for Buckingham {
    type Target = ();
    type Source = ();
    type Output = ([f32; 3], f32);

    fn pair(&self, pair: Pair, _: (), _: ()) -> ([f32; 3], f32) {
        let d = pair.d2.sqrt();
        let repulsion = 1000.0 * (-3.6 * d).exp();
        let inverse = 1.0 / pair.d2;
        let attraction = 5.0 * inverse * inverse * inverse;
        let energy = repulsion - attraction - 1e-3 * self.cutoff;
        let scale = (3.6 * repulsion - 6.0 * attraction / d) / d;
        (pair.d.map(|x| -scale * x), 0.5 * energy)
    }
}

/// Repulsion, damping and friction of grains without history.
struct SoftSpheres {
    radius: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for SoftSpheres {
    type Target = [f32; 3];
    type Source = [f32; 3];
    type Output = [f32; 3];

    fn pair(&self, pair: Pair, v_i: [f32; 3], v_j: [f32; 3]) -> [f32; 3] {
        let d = pair.d2.sqrt().max(1e-6);
        let n = pair.d.map(|x| x / d);
        let v = [v_i[0] - v_j[0], v_i[1] - v_j[1], v_i[2] - v_j[2]];
        let closing = v[0] * n[0] + v[1] * n[1] + v[2] * n[2];
        let normal = (400.0 * (self.radius - d) + 0.2 * closing).max(0.0);
        let t = [
            v[0] - closing * n[0],
            v[1] - closing * n[1],
            v[2] - closing * n[2],
        ];
        let sliding = (t[0] * t[0] + t[1] * t[1] + t[2] * t[2]).sqrt();
        let friction = if sliding > 1e-6 {
            (0.5 * normal).min(10.0 * sliding) / sliding
        } else {
            0.0
        };
        let mut force = [0.0; 3];
        for axis in 0..3 {
            force[axis] = -normal * n[axis] - friction * t[axis];
        }
        force
    }
}

/// Dissipative particles: conservative, dissipative and random forces.
struct Dpd {
    radius: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for Dpd {
    type Target = ([f32; 3], u32);
    type Source = ([f32; 3], u32);
    type Output = [f32; 3];

    fn pair(&self, pair: Pair, i: ([f32; 3], u32), j: ([f32; 3], u32)) -> [f32; 3] {
        let d = pair.d2.sqrt().max(1e-6);
        let w = 1.0 - d / self.radius;
        let n = pair.d.map(|x| x / d);
        let closing =
            (i.0[0] - j.0[0]) * n[0] + (i.0[1] - j.0[1]) * n[1] + (i.0[2] - j.0[2]) * n[2];
        let (low, high) = (i.1.min(j.1), i.1.max(j.1));
        let mut state = low.wrapping_mul(0x9e37_79b9) ^ high.wrapping_mul(0x85eb_ca6b);
        state ^= state >> 16;
        state = state.wrapping_mul(0x7feb_352d);
        state ^= state >> 15;
        let noise = (state >> 8) as f32 / 8_388_608.0 - 1.0;
        let scale = -25.0 * w - 4.5 * w * w * closing + 3.0 * w * noise;
        n.map(|x| scale * x)
    }
}

/// A soft core whose reach depends on the directions of two rods, after Gay and Berne.
struct Rods {
    radius: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for Rods {
    type Target = [f32; 3];
    type Source = [f32; 3];
    type Output = f32;

    fn pair(&self, pair: Pair, u_i: [f32; 3], u_j: [f32; 3]) -> f32 {
        let d = pair.d2.sqrt().max(1e-6);
        let n = pair.d.map(|x| x / d);
        let mut a = 0.0;
        let mut b = 0.0;
        let mut c = 0.0;
        for axis in 0..3 {
            a += n[axis] * u_i[axis];
            b += n[axis] * u_j[axis];
            c += u_i[axis] * u_j[axis];
        }
        let chi = 0.6;
        let plus = (a + b) * (a + b) / (1.0 + chi * c);
        let minus = (a - b) * (a - b) / (1.0 - chi * c);
        let sigma = 1.0 / (1.0 - 0.5 * chi * (plus + minus)).max(0.05).sqrt();
        let gap = (d - sigma + 1.0).max(0.3) * self.radius / self.radius;
        let s6 = 1.0 / gap.powi(6);
        4.0 * (s6 * s6 - s6)
    }
}

/// Separation, alignment and cohesion.
struct Boids {
    radius: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for Boids {
    type Target = ();
    type Source = [f32; 3];
    type Output = ([f32; 3], [f32; 3], [f32; 3], f32);

    fn pair(&self, pair: Pair, _: (), velocity: [f32; 3]) -> ([f32; 3], [f32; 3], [f32; 3], f32) {
        let close = 0.4 * self.radius;
        let push = if pair.d2 < close * close {
            -1.0 / (pair.d2 + 1e-4)
        } else {
            0.0
        };
        (pair.d.map(|x| push * x), velocity, pair.d, 1.0)
    }
}

/// Counts of neighbours in eight shells.
struct Shells {
    radius: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for Shells {
    type Target = ();
    type Source = ();
    type Output = [f32; 8];

    fn pair(&self, pair: Pair, _: (), _: ()) -> [f32; 8] {
        let place = pair.d2.sqrt() / self.radius * 8.0;
        let mut shells = [0.0; 8];
        for k in 0..8 {
            let lower = k as f32;
            shells[k] = if place >= lower && place < lower + 1.0 {
                1.0
            } else {
                0.0
            };
        }
        shells
    }
}

/// The coordination number as PLUMED defines it: (1 − x⁶) / (1 − x¹²).
struct Coordination {
    d0: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for Coordination {
    type Target = ();
    type Source = ();
    type Output = f32;

    fn pair(&self, pair: Pair, _: (), _: ()) -> f32 {
        let x = pair.d2.sqrt() / self.d0;
        if (x - 1.0).abs() < 1e-3 {
            return 0.5;
        }
        (1.0 - x.powi(6)) / (1.0 - x.powi(12))
    }
}

/// The pair part of the potential of Stillinger and Weber.
struct Stillinger {
    cutoff: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for Stillinger {
    type Target = ();
    type Source = ();
    type Output = f32;

    fn pair(&self, pair: Pair, _: (), _: ()) -> f32 {
        let d = pair.d2.sqrt();
        if d >= self.cutoff {
            return 0.0;
        }
        let shape = 0.602 / pair.d2 / pair.d2 - 1.0;
        7.05 * shape * (1.0 / (d - self.cutoff)).exp()
    }
}

/// Elastic spheres with damping, of sizes of their own.
struct Hertz {
    stiffness: f32,
    damping: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for Hertz {
    type Target = ([f32; 3], f32);
    type Source = ([f32; 3], f32);
    type Output = [f32; 3];

    fn pair(&self, pair: Pair, i: ([f32; 3], f32), j: ([f32; 3], f32)) -> [f32; 3] {
        let d = pair.d2.sqrt();
        let overlap = 1.3 * (i.1 + j.1) - d;
        if overlap > 0.0 && d > 0.0 {
            let n = [pair.d[0] / d, pair.d[1] / d, pair.d[2] / d];
            let closing =
                (i.0[0] - j.0[0]) * n[0] + (i.0[1] - j.0[1]) * n[1] + (i.0[2] - j.0[2]) * n[2];
            let size = i.1 * j.1 / (i.1 + j.1);
            let root = (size * overlap).sqrt();
            let push =
                -(4.0 / 3.0 * self.stiffness * root * overlap + self.damping * root * closing);
            [push * n[0], push * n[1], push * n[2]]
        } else {
            [0.0; 3]
        }
    }
}
