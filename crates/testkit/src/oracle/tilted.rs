//! Images in a box whose vectors lean: which can matter, by the heights of
//! the box, and their shifts.
//!
//! Others rely on one fact: [`Cell::images`] may name images that are too far
//! but leaves out none that could be within the radius. A displacement that
//! is `f` vectors long along one of them, the other two being free, is at
//! least `f` heights long; so only images within `radius / height` of the
//! fraction that undoes the difference can come within the radius.

use std::ops::RangeInclusive;

use super::{metric::whole, real::Real};

/// The vectors of the box, one for each periodic axis.
pub type Vectors = [Option<[f64; 3]>; 3];

/// A share of a box far above the rounding errors of f64 fractions.
const SHARE: f64 = 1e-3;

/// A box and the normals of its faces.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    vectors: Vectors,
    /// Per periodic vector the outward normal of the face spanned by the
    /// other two (along an open axis, by the axis), as long as one over the
    /// height of the box above that face.
    normals: [Option<[f64; 3]>; 3],
    radius: f64,
}

impl Cell {
    pub(super) fn new(radius: f64, vectors: Vectors) -> Self {
        let [a, b, c] = [0, 1, 2].map(|axis| {
            let mut unit = [0.0; 3];
            unit[axis] = 1.0;
            vectors[axis].unwrap_or(unit)
        });
        let volume = dot(a, cross(b, c));
        let faces = [cross(b, c), cross(c, a), cross(a, b)];
        let normal = |axis: usize| vectors[axis].map(|_| faces[axis].map(|part| part / volume));
        Self {
            vectors,
            normals: [0, 1, 2].map(normal),
            radius,
        }
    }

    /// Every image along one vector through which a difference can come
    /// within the radius.
    fn images_along(&self, axis: usize, difference: [f64; 3], slack: f64) -> RangeInclusive<i64> {
        let Some(normal) = self.normals[axis] else {
            return 0..=0;
        };
        let size = difference.iter().map(|d| d.abs()).sum::<f64>();
        let reach = (self.radius + slack * (self.radius + size)) * dot(normal, normal).sqrt();
        let fraction = dot(normal, difference);
        let first = (-fraction - reach - SHARE).ceil();
        let last = (-fraction + reach + SHARE).floor();
        whole(first)..=whole(last)
    }

    /// Calls `found` for every image through which a difference can come
    /// within the radius.
    pub(super) fn images<T: Real>(&self, difference: [T; 3], mut found: impl FnMut([i64; 3])) {
        // Differences that overflowed stay out of reach but finite.
        let difference = difference.map(|d| d.to_f64().clamp(-T::FAR, T::FAR));
        let [xs, ys, zs] = [0, 1, 2].map(|axis| self.images_along(axis, difference, T::SLACK));
        for x in xs {
            for y in ys.clone() {
                for z in zs.clone() {
                    found([x, y, z]);
                }
            }
        }
    }

    /// The shift S of an image: per component the f64 sum over the three
    /// vectors, taken from the first to the last, rounded once.
    pub(super) fn shift<T: Real>(&self, image: [i64; 3]) -> [T; 3] {
        [0, 1, 2].map(|component| {
            let along = |axis: usize| {
                let vector = self.vectors[axis].unwrap_or_default();
                image[axis] as f64 * vector[component]
            };
            T::round((along(0) + along(1)) + along(2))
        })
    }

    /// The image whose shift brings the difference closest to zero, among
    /// those around the nearest whole numbers of boxes.
    pub(super) fn nearest_image<T: Real>(&self, difference: [T; 3]) -> [i64; 3] {
        let difference = difference.map(T::to_f64);
        let around = self.normals.map(|normal| {
            normal.map_or(0..=0, |normal| {
                let middle = -dot(normal, difference).round() as i64;
                middle.saturating_sub(2)..=middle.saturating_add(2)
            })
        });
        let [xs, ys, zs] = around;
        let (mut nearest, mut shortest) = ([0; 3], f64::INFINITY);
        for image in xs.flat_map(|x| {
            let zs = zs.clone();
            let plane = ys
                .clone()
                .flat_map(move |y| zs.clone().map(move |z| [y, z]));
            plane.map(move |[y, z]| [x, y, z])
        }) {
            let shift = self.shift::<T>(image).map(T::to_f64);
            let moved = [0, 1, 2].map(|axis| difference[axis] + shift[axis]);
            let length = dot(moved, moved);
            if length < shortest {
                (nearest, shortest) = (image, length);
            }
        }
        nearest
    }
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    let part = |i: usize, j: usize| a[i] * b[j] - a[j] * b[i];
    [part(1, 2), part(2, 0), part(0, 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEANING: Vectors = [
        Some([1.0, 0.0, 0.0]),
        Some([2.6, 0.7, 0.0]),
        Some([-0.4, 1.1, 0.9]),
    ];
    const ROTATED: Vectors = [
        Some([0.0, 1.5, 1.5]),
        Some([1.5, 0.0, 1.5]),
        Some([1.5, 1.5, 0.0]),
    ];

    #[test]
    fn no_image_within_the_radius_is_left_out() {
        for (radius, vectors) in [(1.0_f32, LEANING), (0.4, LEANING), (2.2, ROTATED)] {
            let cell = Cell::new(f64::from(radius), vectors);
            for step in -40..40 {
                let difference = [0.31, -0.17, 0.23].map(|share| step as f32 * share);
                let mut named = Vec::new();
                cell.images(difference, |image| named.push(image));
                let mut within = 0;
                for n in 0..41_i64.pow(3) {
                    let image = [n % 41 - 20, n / 41 % 41 - 20, n / 1681 - 20];
                    let shift: [f32; 3] = cell.shift(image);
                    let d = [0, 1, 2].map(|axis| difference[axis] + shift[axis]);
                    if d.iter().map(|d| d * d).sum::<f32>() <= radius * radius {
                        within += 1;
                        assert!(named.contains(&image), "{difference:?} through {image:?}");
                    }
                }
                assert!(
                    step != 0 || within > 0,
                    "its own image is within the radius"
                );
            }
        }
    }

    #[test]
    fn the_nearest_image_is_no_farther_than_any_other() {
        let cell = Cell::new(1.0, LEANING);
        assert_eq!(cell.nearest_image([0.0_f32; 3]), [0; 3]);
        assert_eq!(cell.nearest_image([3.6_f32, 0.7, 0.0]), [-1, -1, 0]);
        assert_eq!(cell.nearest_image([0.41_f32, -1.1, -0.9]), [0, 0, 1]);
    }

    #[test]
    fn an_open_axis_has_no_images() {
        let vectors = [Some([1.0, 0.0, 0.0]), Some([0.5, 1.0, 0.0]), None];
        let mut images = Vec::new();
        Cell::new(0.1, vectors).images([0.5_f32, 1.0, 3.0], |image| images.push(image));
        assert!(images.contains(&[0, -1, 0]) && images.iter().all(|n| n[2] == 0));
    }
}
