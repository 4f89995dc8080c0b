//! From shares of the radius to coordinates.

use super::input::{
    AxisChoice, NotFinite, Origin, Place, PointChoice, Points, RadiusChoice, Spoiled,
};
use nearfield_testkit::random::Random;

/// Points of a set at most.
const MAX_POINTS: usize = 1200;

/// Points of a large swarm, more than one task of the CPU backend takes.
const SWARM: usize = 1100;

/// Ordinary radii, one with many digits, very small and very large ones, both ends of the range.
const RADII: [f32; 12] = [
    1.0,
    0.1,
    1.0 / 3.0,
    2.5,
    0.3,
    1e-7,
    1e4,
    1e9,
    f32::from_bits((127 - 50) << 23),
    f32::from_bits((127 + 63) << 23),
    3.7e-13,
    6.1e15,
];

/// The radius and the box that places are relative to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    pub(super) radius: f32,
    pub(super) periodic: [Option<f64>; 3],
}

pub(super) fn radius(choice: RadiusChoice) -> f32 {
    match choice {
        RadiusChoice::Named(number) => RADII[usize::from(number) % RADII.len()],
        RadiusChoice::Share(share) => f32::from(share) / 256.0,
        RadiusChoice::Bits(bits) => f32::from_bits(bits),
    }
}

pub(super) fn length(choice: AxisChoice, radius: f32) -> Option<f64> {
    let share = match choice {
        AxisChoice::Open | AxisChoice::OpenToo => return None,
        AxisChoice::Quarters(quarters) => 0.5 + 0.25 * f64::from(quarters),
        AxisChoice::Share(share) => 0.2 + f64::from(share) / 4096.0,
    };
    Some(share * f64::from(radius))
}

pub(super) fn spoil(points: &mut Vec<[f32; 3]>, spoiled: Spoiled) {
    if points.is_empty() {
        points.push([0.0; 3]);
    }
    let point = usize::from(spoiled.point) % points.len();
    points[point][usize::from(spoiled.axis % 3)] = match spoiled.value {
        NotFinite::Nan(bits) => f32::from_bits(0x7fc0_0000 | u32::from(bits)),
        NotFinite::Infinity => f32::INFINITY,
        NotFinite::NegativeInfinity => f32::NEG_INFINITY,
    };
}

impl Scale {
    /// The coordinates of a set, all finite.
    pub(super) fn points(&self, set: &Points) -> Vec<[f32; 3]> {
        let mut points = Vec::new();
        let origin = self.origin(set.origin);
        for choice in &set.points {
            self.add(choice, origin, &mut points);
        }
        points.truncate(MAX_POINTS);
        for point in &mut points {
            *point = point.map(|x| x.clamp(f32::MIN, f32::MAX));
        }
        points
    }

    fn origin(&self, origin: Origin) -> [f32; 3] {
        match origin {
            Origin::Zero => [0.0; 3],
            Origin::Near(radii) => radii.map(|steps| f32::from(steps) * self.radius),
            Origin::Far(powers) => powers.map(|power| {
                let size = self.radius * f32::from(power.unsigned_abs() % 64).exp2();
                size.copysign(f32::from(power))
            }),
        }
    }

    fn add(&self, choice: &PointChoice, origin: [f32; 3], points: &mut Vec<[f32; 3]>) {
        let earlier = |back: u8| match points.len() {
            0 => origin,
            len => points[len - 1 - usize::from(back) % len],
        };
        let point = match *choice {
            PointChoice::At(at) => self.at(at, origin),
            PointChoice::Copy(back) => earlier(back),
            PointChoice::OnSphere(back, direction, nudge) => {
                self.on_sphere(earlier(back), direction, nudge)
            }
            PointChoice::Image(back, boxes) => self.image(earlier(back), boxes),
            PointChoice::Cluster(at, count, spread) => {
                let at = self.at(at, origin);
                let spread = f64::from(spread) / 32.0 * f64::from(self.radius);
                scatter(points, at, usize::from(count % 40), spread);
                return;
            }
            PointChoice::Swarm(count) => {
                let count = match count {
                    ..0xff00 => usize::from(count % 16),
                    _ => SWARM,
                };
                scatter(points, origin, count, 8.0 * f64::from(self.radius));
                return;
            }
        };
        points.push(point);
    }

    fn at(&self, at: [Place; 3], origin: [f32; 3]) -> [f32; 3] {
        [0, 1, 2].map(|axis| match at[axis] {
            Place::Bits(bits) => finite(f32::from_bits(bits)),
            place => origin[axis] + self.place(place, axis),
        })
    }

    fn place(&self, place: Place, axis: usize) -> f32 {
        match place {
            Place::Share(share) => f32::from(share) / 4096.0 * self.radius,
            Place::Face(steps, cells, floats) => {
                let edge = self.radius / f32::from(1 + cells % 8);
                nudged(f32::from(steps) * edge, floats)
            }
            Place::Box(quarters, floats) => {
                let length = self.periodic[axis].unwrap_or(f64::from(self.radius));
                nudged((0.25 * f64::from(quarters) * length) as f32, floats)
            }
            Place::Tiny(floats) => nudged(0.0_f32.copysign(f32::from(floats)), floats),
            Place::Bits(bits) => f32::from_bits(bits),
        }
    }

    fn on_sphere(&self, from: [f32; 3], direction: [i8; 3], nudge: i8) -> [f32; 3] {
        let direction = direction.map(f64::from);
        let length = direction.iter().map(|x| x * x).sum::<f64>().sqrt();
        let scale = f64::from(self.radius) / length.max(1.0);
        [0, 1, 2].map(|axis| {
            let at = (f64::from(from[axis]) + direction[axis] * scale) as f32;
            if direction[axis] == 0.0 {
                from[axis]
            } else {
                nudged(at, nudge)
            }
        })
    }

    fn image(&self, from: [f32; 3], boxes: [i8; 3]) -> [f32; 3] {
        [0, 1, 2].map(|axis| {
            let length = self.periodic[axis].unwrap_or(0.0);
            (f64::from(from[axis]) + f64::from(boxes[axis]) * length) as f32
        })
    }
}

/// `count` points within `spread` of `at` along each axis, the same ones every time.
fn scatter(points: &mut Vec<[f32; 3]>, at: [f32; 3], count: usize, spread: f64) {
    let mut random = Random::new(points.len() as u64);
    for _ in 0..count {
        points.push(at.map(|x| x + random.between(-spread, spread) as f32));
    }
}

/// `x` moved by |`floats`| mod 4 representable numbers, up if `floats` is positive.
fn nudged(x: f32, floats: i8) -> f32 {
    (0..floats.unsigned_abs() % 4).fold(x, |x, _| {
        if floats > 0 {
            x.next_up()
        } else {
            x.next_down()
        }
    })
}

/// `x`, or zero in its place.
fn finite(x: f32) -> f32 {
    if x.is_finite() { x } else { 0.0 }
}
