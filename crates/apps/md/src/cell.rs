//! The box of a system.

use crate::{Error, ErrorKind};
use nearfield::Builder;

/// A box that repeats along its vectors where the axis is periodic, and is open elsewhere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    vectors: [[f64; 3]; 3],
    periodic: [bool; 3],
    /// Rows that give the share of a position along every vector.
    inverse: [[f64; 3]; 3],
}

impl Cell {
    /// All of space.
    pub const OPEN: Self = Self {
        vectors: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        periodic: [false; 3],
        inverse: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    };

    /// A cube that repeats in every direction.
    ///
    /// # Errors
    /// [`ErrorKind::Flat`] when the edge is not positive.
    pub fn cube(edge: f64) -> Result<Self, Error> {
        Self::lengths([Some(edge); 3])
    }

    /// A straight box: its length where an axis is periodic, `None` where it is open.
    ///
    /// # Errors
    /// [`ErrorKind::Flat`] when a length is not positive.
    pub fn lengths(lengths: [Option<f64>; 3]) -> Result<Self, Error> {
        let vector = |axis: usize| {
            lengths[axis]
                .map(|length| std::array::from_fn(|k| if k == axis { length } else { 0.0 }))
        };
        Self::new([vector(0), vector(1), vector(2)])
    }

    /// A box of any shape; `None` for an open axis. The one or two remaining vectors then may point
    /// anywhere.
    ///
    /// # Errors
    /// [`ErrorKind::Flat`] when the vectors, with those of length 1 across them for open axes, span
    /// no volume.
    pub fn new(vectors: [Option<[f64; 3]>; 3]) -> Result<Self, Error> {
        let all = if is_slanted(vectors) {
            with_normals(vectors)
        } else {
            std::array::from_fn(|axis| vectors[axis].unwrap_or(unit(axis)))
        };
        let [a, b, c] = all;
        let volume = dot(a, cross(b, c));
        if !(volume.is_finite() && volume != 0.0)
            || all.as_flattened().iter().any(|x| !x.is_finite())
        {
            return Err(ErrorKind::Flat(all).into());
        }
        let row = |normal: [f64; 3]| normal.map(|x| x / volume);
        Ok(Self {
            vectors: all,
            periodic: vectors.map(|vector| vector.is_some()),
            inverse: [row(cross(b, c)), row(cross(c, a)), row(cross(a, b))],
        })
    }

    /// The vectors, `None` where the axis is open.
    pub fn vectors(&self) -> [Option<[f64; 3]>; 3] {
        std::array::from_fn(|axis| self.periodic[axis].then_some(self.vectors[axis]))
    }

    /// Rows that give a position's coordinates along the vectors; `None` where an axis is open.
    pub(crate) fn inverse(&self) -> [Option<[f64; 3]>; 3] {
        std::array::from_fn(|axis| self.periodic[axis].then_some(self.inverse[axis]))
    }

    /// Distance of the faces that a periodic axis leads through, which is less than the length of
    /// its vector in a tilted box; infinite along open axes.
    pub(crate) fn widths(&self) -> [f64; 3] {
        let width =
            |row: Option<[f64; 3]>| row.map_or(f64::INFINITY, |row| 1.0 / dot(row, row).sqrt());
        self.inverse().map(width)
    }

    /// Whether a vector of it has components along other axes than its own.
    pub(crate) fn is_tilted(&self) -> bool {
        (0..9).any(|k| k % 4 != 0 && self.vectors.as_flattened()[k] != 0.0)
    }

    /// Returns true if a vector leans along an open axis; the GPU backend refuses these boxes.
    pub(crate) fn is_slanted(&self) -> bool {
        is_slanted(self.vectors())
    }

    /// Its volume, if all axes are periodic.
    pub fn volume(&self) -> Option<f64> {
        let [a, b, c] = self.vectors;
        (self.periodic == [true; 3]).then(|| dot(a, cross(b, c)).abs())
    }

    /// The image of a position inside the box.
    pub fn wrap(&self, position: [f64; 3]) -> [f64; 3] {
        let mut inside = position;
        for axis in 0..3 {
            if self.periodic[axis] {
                let boxes = dot(self.inverse[axis], position).floor();
                for (x, vector) in inside.iter_mut().zip(self.vectors[axis]) {
                    *x -= boxes * vector;
                }
            }
        }
        inside
    }

    /// The vector between images of a position that is nearest to this one, which is known to lie
    /// near one.
    pub(crate) fn image(&self, near: [f64; 3]) -> [f64; 3] {
        let mut image = [0.0; 3];
        for axis in 0..3 {
            if self.periodic[axis] {
                let boxes = dot(self.inverse[axis], near).round();
                for (x, vector) in image.iter_mut().zip(self.vectors[axis]) {
                    *x += boxes * vector;
                }
            }
        }
        image
    }

    /// The shortest distance to an image of a place that lies `apart`, with or without the place
    /// itself; `None` if there is none. In very oblique boxes it may be the second shortest.
    pub(crate) fn shortest(&self, apart: [f64; 3], without_itself: bool) -> Option<f64> {
        let image = self.image(apart);
        let near: [f64; 3] = std::array::from_fn(|axis| apart[axis] - image[axis]);
        let reach = self.periodic.map(i32::from);
        let along = |axis: usize| (-reach[axis]..=reach[axis]).map(f64::from);
        let mut shortest: Option<f64> = None;
        for a in along(0) {
            for b in along(1) {
                for c in along(2) {
                    if without_itself && [a, b, c] == [0.0; 3] {
                        continue;
                    }
                    let shift = |k: usize| {
                        a * self.vectors[0][k] + b * self.vectors[1][k] + c * self.vectors[2][k]
                    };
                    let place: [f64; 3] = std::array::from_fn(|k| near[k] + shift(k));
                    let distance = dot(place, place).sqrt();
                    shortest = Some(shortest.map_or(distance, |least| least.min(distance)));
                }
            }
        }
        shortest
    }

    /// An engine's settings with this box.
    pub(crate) fn set(&self, builder: Builder) -> Builder {
        builder.box_vectors(self.vectors())
    }
}

fn is_slanted(vectors: [Option<[f64; 3]>; 3]) -> bool {
    let leans = |open: usize| vectors.iter().flatten().any(|vector| vector[open] != 0.0);
    (0..3).any(|axis| vectors[axis].is_none() && leans(axis))
}

/// One vector or two and, for the open axes, unit vectors across them and each other, so that
/// shares along the vectors are those of the nearest place on the line or plane that they span.
fn with_normals(vectors: [Option<[f64; 3]>; 3]) -> [[f64; 3]; 3] {
    let of_length_one = |v: [f64; 3]| v.map(|x| x / dot(v, v).sqrt());
    let mut given = vectors.iter().flatten().map(|&v| of_length_one(v));
    let first = given.next().unwrap_or(unit(0));
    let beside = given.next().unwrap_or_else(|| {
        // The axis along which it is shortest.
        let shorter = |a: usize, b: usize| {
            if first[b].abs() < first[a].abs() {
                b
            } else {
                a
            }
        };
        unit(shorter(shorter(0, 1), 2))
    });
    let normal = of_length_one(cross(first, beside));
    let mut across = [normal, cross(first, normal)].into_iter();
    vectors.map(|vector| vector.or_else(|| across.next()).unwrap_or(normal))
}

fn unit(axis: usize) -> [f64; 3] {
    std::array::from_fn(|k| f64::from(u8::from(k == axis)))
}

pub(crate) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_of_a_box_that_leans_along_open_axes_are_the_nearest() {
        let (line, other) = ([1.0, 2.0, 3.0], [0.0, 4.0, -1.0]);
        for vectors in [
            [Some(line), None, None],
            [None, None, Some(line)],
            [Some(other), Some(line), None],
        ] {
            let cell = Cell::new(vectors).unwrap();
            // Far from the line, across it and the other vector.
            let across = cross(line, other).map(|x| 10.0 * x);
            let near: [f64; 3] = std::array::from_fn(|k| 3.0 * line[k] + 0.2 * line[k] + across[k]);
            assert_eq!(cell.image(near), [3.0, 6.0, 9.0], "{vectors:?}");
            let wrapped = cell.wrap(near);
            for k in 0..3 {
                assert!((wrapped[k] - (0.2 * line[k] + across[k])).abs() < 1e-9);
            }
        }
        assert!(Cell::new([Some(line), None, Some(line)]).is_err());
    }

    #[test]
    fn positions_are_brought_into_a_tilted_box_along_its_vectors() {
        let cell = Cell::new([Some([4.0, 0.0, 0.0]), Some([1.0, 3.0, 0.0]), None]).unwrap();
        assert_eq!(cell.wrap([0.5, 3.5, -70.0]), [-0.5 + 4.0, 0.5, -70.0]);
        assert_eq!(cell.wrap([1.0, 1.0, 2.0]), [1.0, 1.0, 2.0]);
        assert_eq!(cell.volume(), None);
        let full = Cell::new([
            Some([4.0, 0.0, 0.0]),
            Some([1.0, 3.0, 0.0]),
            Some([0.0, 0.5, -2.0]),
        ]);
        assert_eq!(full.unwrap().volume(), Some(24.0));
    }

    #[test]
    fn a_box_without_volume_is_refused() {
        assert!(matches!(
            Cell::cube(0.0).unwrap_err().kind(),
            ErrorKind::Flat(_)
        ));
        assert!(Cell::cube(f64::NAN).is_err() && Cell::cube(f64::INFINITY).is_err());
        let flat = [Some([1.0, 0.0, 0.0]), Some([2.0, 0.0, 0.0]), None];
        assert!(
            Cell::new(flat)
                .unwrap_err()
                .to_string()
                .contains("span no volume")
        );
    }
}
