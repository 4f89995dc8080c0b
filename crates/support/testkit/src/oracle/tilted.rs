//! Images in a tilted box: which can matter, by the heights of the box, and their shifts.
//!
//! Others rely on one fact: [`Cell::images`] may name images that are too far
//! but leaves out none that could be within the radius. A displacement that
//! is `f` vectors long along one of them, the other two being free, is at
//! least `f` heights long; so only images within `radius / height` of the
//! fraction that undoes the difference can come within the radius.

use std::ops::RangeInclusive;

use super::real::{Real, whole};

/// The vectors of the box, one for each periodic axis.
pub type Vectors = [Option<[f64; 3]>; 3];

/// A share of a box far above the rounding errors of f64 fractions.
const SHARE: f64 = 1e-3;

/// A box and the normals of its faces.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    vectors: Vectors,
    /// Per periodic vector the outward normal of the face spanned by the
    /// others, within what all of them span, as long as one over the height of
    /// the box above that face.
    normals: [Option<[f64; 3]>; 3],
    radius: f64,
}

impl Cell {
    pub(super) fn new(radius: f64, vectors: Vectors) -> Self {
        Self {
            vectors,
            normals: normals(vectors),
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

/// The vectors dual to these: of the periodic ones the product with one of
/// them is 1, with the others 0.
pub(crate) fn normals(vectors: Vectors) -> Vectors {
    let periodic: Vec<usize> = (0..3).filter(|&k| vectors[k].is_some()).collect();
    let vector = |k: usize| vectors[k].unwrap_or_default();
    let mut normals = [None; 3];
    match periodic[..] {
        [k] => {
            let v = vector(k);
            normals[k] = Some(v.map(|part| part / dot(v, v)));
        }
        [k, l] => {
            // Across each of the two in their plane.
            let plane = cross(vector(k), vector(l));
            let share = dot(plane, plane);
            normals[k] = Some(cross(vector(l), plane).map(|part| part / share));
            normals[l] = Some(cross(plane, vector(k)).map(|part| part / share));
        }
        [_, _, _] => {
            let [a, b, c] = vectors.map(Option::unwrap_or_default);
            let volume = dot(a, cross(b, c));
            let faces = [cross(b, c), cross(c, a), cross(a, b)];
            normals = faces.map(|face| Some(face.map(|part| part / volume)));
        }
        _ => {}
    }
    normals
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
        let [a, b, c] = LEANING;
        for (radius, vectors) in [
            (1.0_f32, LEANING),
            (0.4, LEANING),
            (2.2, ROTATED),
            (0.9, [None, b, c]),
            (0.9, [b, a, None]),
            (0.9, [None, None, c]),
        ] {
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
                        let open = (0..3).any(|k| vectors[k].is_none() && image[k] != 0);
                        if open {
                            continue;
                        }
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
