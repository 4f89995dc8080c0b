//! The space the points live in: open or periodic along each axis.
//!
//! A straight box has a length per periodic axis. A tilted (triclinic) one has a vector per
//! periodic axis, as molecular dynamics uses them; [`tilt`] holds the vectors and their inverse.
//! Straight boxes do not pass through any of that: a branch on `tilt` is all they pay.
//!
//! # Images
//!
//! Coordinates stay as the caller gave them, inside the box or not. A pair is seen through an
//! image n, and the contract adds the image vector S = n·L to the difference of the coordinates. S
//! is computed in `f64` and rounded once per component, so all backends add the same number.
//! Wrapping coordinates instead would round them, and would change results when a point crosses a
//! face.
//!
//! **Invariant:** opposite images have exactly opposite vectors, so a pair has the same distance
//! from either side.

pub(crate) mod tilt;

use crate::{Error, ErrorKind, error::axis_name};
use tilt::{Tilt, VECTOR_NAMES, along, norm, sum};

/// Open or periodic along each axis; a periodic axis has a box vector, which lies along the axis
/// in a straight box and leans away from it in a tilted (triclinic) one.
///
/// Coordinates need not lie inside the box: they are used unwrapped, and the image vector of a
/// pair is computed in `f64` and rounded once to `f32` ([`image_vector`](Self::image_vector)).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Domain {
    lengths: [Option<f64>; 3],
    /// Present when some box vector does not point along its own axis.
    tilt: Option<Tilt>,
}

impl Domain {
    /// All of space: any finite coordinate, no images.
    pub const OPEN: Self = Self {
        lengths: [None; 3],
        tilt: None,
    };

    /// A domain that is periodic with the given length where there is one, open elsewhere.
    ///
    /// # Errors
    /// [`ErrorKind::BoxLength`] when a length is NaN, infinite, zero or negative.
    pub fn new(lengths: [Option<f64>; 3]) -> Result<Self, Error> {
        for (axis, length) in lengths.iter().enumerate() {
            if let Some(length) = *length
                && !(length.is_finite() && length > 0.0)
            {
                return Err(ErrorKind::BoxLength {
                    axis: axis_name(axis),
                    length,
                }
                .into());
            }
        }
        Ok(Self {
            lengths,
            tilt: None,
        })
    }

    /// A box in the form that LAMMPS and GROMACS use: vectors a = (lx, 0, 0), b = (xy, ly, 0) and
    /// c = (xz, yz, lz), from the lengths along the periodic axes and the tilts `[xy, xz, yz]`.
    /// A tilt may be larger than the box.
    ///
    /// # Errors
    /// Those of [`new`](Self::new) and of [`from_vectors`](Self::from_vectors), and
    /// [`ErrorKind::OpenTilt`] when the vector that is tilted is that of an open axis, which has
    /// none.
    pub fn triclinic(lengths: [Option<f64>; 3], tilts: [f64; 3]) -> Result<Self, Error> {
        Self::new(lengths)?;
        let [xy, xz, yz] = tilts;
        for (tilted, along, value) in [(1, 0, xy), (2, 0, xz), (2, 1, yz)] {
            if lengths[tilted].is_none() && value != 0.0 {
                return Err(ErrorKind::OpenTilt {
                    vector: VECTOR_NAMES[tilted],
                    along: axis_name(along),
                    tilted: axis_name(tilted),
                    value,
                }
                .into());
            }
        }
        let [lx, ly, lz] = lengths;
        Self::from_vectors([
            lx.map(|lx| [lx, 0.0, 0.0]),
            ly.map(|ly| [xy, ly, 0.0]),
            lz.map(|lz| [xz, yz, lz]),
        ])
    }

    /// A box spanned by any vectors a, b and c, one for each periodic axis, `None` where the axis
    /// is open. They need not form a triangular matrix nor a right-handed system. Where axes are
    /// open, the one or two vectors may point anywhere: the domain repeats along them, and has no
    /// images in the directions across them.
    ///
    /// # Errors
    /// [`Error::BoxVector`] when a vector is zero or not finite, and [`Error::FlatBox`] when they
    /// nearly lie in one plane, or two of them in one line.
    pub fn from_vectors(vectors: [Option<[f64; 3]>; 3]) -> Result<Self, Error> {
        let points_along = |k: usize, v: [f64; 3]| v[k] > 0.0 && v == along(k, v[k]);
        if (0..3).all(|k| vectors[k].is_none_or(|v| points_along(k, v))) {
            return Self::new(std::array::from_fn(|k| vectors[k].map(|v| v[k])));
        }
        for (k, vector) in vectors.into_iter().enumerate() {
            let Some(vector) = vector else { continue };
            if !norm(vector).is_normal() {
                return Err(ErrorKind::BoxVector {
                    name: VECTOR_NAMES[k],
                    vector,
                }
                .into());
            }
        }
        Ok(Self {
            lengths: vectors.map(|vector| vector.map(norm)),
            tilt: Some(Tilt::of(vectors)?),
        })
    }

    /// Length of the box vector of every periodic axis, `None` where the axis is open.
    pub fn lengths(&self) -> [Option<f64>; 3] {
        self.lengths
    }

    /// Box vector of every periodic axis, `None` where the axis is open.
    pub fn vectors(&self) -> [Option<[f64; 3]>; 3] {
        std::array::from_fn(|k| {
            let straight = self.lengths[k].map(|length| along(k, length));
            match &self.tilt {
                Some(tilt) => straight.map(|_| tilt.vectors[k]),
                None => straight,
            }
        })
    }

    /// Returns true if any axis is periodic.
    pub fn is_periodic(&self) -> bool {
        self.lengths.iter().any(Option::is_some)
    }

    /// Returns true if some box vector does not point along its own axis.
    pub fn is_tilted(&self) -> bool {
        self.tilt.is_some()
    }

    /// Returns true if some axis is open and a box vector leans along it, so that the directions
    /// without images are not those of coordinates.
    pub fn is_slanted(&self) -> bool {
        self.tilt.as_ref().is_some_and(|tilt| tilt.slanted)
    }

    /// The image vector of image `n`, computed in `f64` and rounded once per component; zero along
    /// open axes.
    ///
    /// In a straight box that is `n·length` per axis. In a tilted one every component is
    /// `(n_a·a + n_b·b) + n_c·c`, with each of these operations rounded to `f64` in this order
    /// and none of them fused.
    ///
    /// Counts may need more than 32 bits: two points 2³⁰ boxes on either side of the origin are 2³¹
    /// boxes apart.
    #[inline]
    pub fn image_vector(&self, n: [impl Into<i64>; 3]) -> [f32; 3] {
        self.image_vector_f64(n).map(|component| component as f32)
    }

    /// The same without the last rounding, for searches in double precision.
    #[inline]
    pub fn image_vector_f64(&self, n: [impl Into<i64>; 3]) -> [f64; 3] {
        // Exact: counts are far below 2⁵³.
        // Spelt out: `map` is not always inlined, and this is asked for every run of candidates.
        let [x, y, z] = n;
        let n = [x.into() as f64, y.into() as f64, z.into() as f64];
        let boxes = |axis: usize| match self.lengths[axis] {
            Some(_) => n[axis],
            None => 0.0,
        };
        match &self.tilt {
            None => std::array::from_fn(|axis| match self.lengths[axis] {
                Some(length) => n[axis] * length,
                None => 0.0,
            }),
            Some(tilt) => {
                let vectors = [0, 1, 2].map(|k| match self.lengths[k] {
                    Some(_) => tilt.vectors[k],
                    // Adds no zero below zero, as the negative parts of a vector across the others
                    // would.
                    None => [0.0; 3],
                });
                sum(vectors, [boxes(0), boxes(1), boxes(2)])
            }
        }
    }

    /// Per periodic axis the vector whose dot product with a position is the number of box vectors
    /// of that axis that lead there; its length is one over the width of the box across that axis.
    pub fn inverse(&self) -> [Option<[f64; 3]>; 3] {
        std::array::from_fn(|axis| {
            let length = self.lengths[axis]?;
            Some(match &self.tilt {
                Some(tilt) => tilt.inverse[axis],
                None => std::array::from_fn(|k| if k == axis { 1.0 / length } else { 0.0 }),
            })
        })
    }

    /// The vectors and their inverse, when the box is tilted.
    #[inline(always)]
    pub(crate) fn tilt(&self) -> Option<&Tilt> {
        self.tilt.as_ref()
    }
}

impl Default for Domain {
    fn default() -> Self {
        Self::OPEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_without_tilt_is_straight_whatever_it_was_made_from() {
        let lengths = [Some(4.0), None, Some(0.1)];
        let straight = Domain::new(lengths).unwrap();
        assert_eq!(Domain::triclinic(lengths, [0.0; 3]).unwrap(), straight);
        let vectors = [Some([4.0, 0.0, 0.0]), None, Some([0.0, -0.0, 0.1])];
        assert_eq!(Domain::from_vectors(vectors).unwrap(), straight);
        assert_eq!(straight.vectors(), vectors);
        assert!(straight.is_periodic() && !straight.is_tilted());
        assert!(!Domain::OPEN.is_periodic());
    }

    #[test]
    fn image_vectors_are_rounded_once() {
        let lengths = [Some(0.1), Some(0.3), Some(0.7)];
        let tilted = Domain::triclinic(lengths, [0.05, -0.2, 0.01]).unwrap();
        assert!(tilted.is_tilted());
        let [x, y, z] = tilted.image_vector([3, -7, 9]);
        assert_eq!(x, ((3.0 * 0.1 - 7.0 * 0.05) - 9.0 * 0.2) as f32);
        assert_eq!(y, ((0.0 - 7.0 * 0.3) + 9.0 * 0.01) as f32);
        assert_eq!(z, (9.0 * 0.7) as f32);
        let opposite = tilted.image_vector([-3, 7, -9]);
        assert_eq!(opposite, [-x, -y, -z], "images come in pairs");
    }

    #[test]
    fn a_tilt_of_an_open_axis_is_refused_by_name() {
        let cases = [
            ([Some(1.0), None, Some(3.0)], [-0.5, 0.0, 0.0], "xy", "y"),
            ([Some(1.0), Some(2.0), None], [0.0, 0.5, 0.0], "xz", "z"),
            ([Some(1.0), Some(2.0), None], [0.0, 0.0, 0.5], "yz", "z"),
            ([None; 3], [0.0, f64::NAN, 0.0], "xz", "z"),
        ];
        for (lengths, tilts, name, open) in cases {
            let message = Domain::triclinic(lengths, tilts).unwrap_err().to_string();
            assert!(message.contains(&format!("(tilt {name})")), "{message}");
            assert!(
                message.contains(&format!("{open} axis is open")),
                "{message}"
            );
        }
    }

    #[test]
    fn vectors_may_lean_along_open_axes() {
        let aligned = [Some([1.0, 0.0, 0.0]), Some([0.5, 1.0, 0.0]), None];
        let aligned = Domain::from_vectors(aligned).unwrap();
        assert!(aligned.is_tilted() && !aligned.is_slanted());
        let (line, other) = ([1.0, 2.0, 3.0], [0.0, -4.0, 1.0]);
        for (vectors, image) in [
            ([Some(line), None, None], [2, 0, 0]),
            ([None, Some(line), None], [0, 2, 0]),
            ([None, None, Some(line)], [0, 0, 2]),
            ([Some(other), None, Some(line)], [0, 0, 2]),
            ([Some(line), Some(other), None], [2, 0, 0]),
        ] {
            let domain = Domain::from_vectors(vectors).unwrap();
            assert!(domain.is_tilted() && domain.is_slanted());
            assert_eq!(domain.vectors(), vectors);
            assert_eq!(domain.image_vector_f64(image), [2.0, 4.0, 6.0]);
            // Open axes have no images, whatever the count.
            let open = [0, 1, 2].map(|k| i32::from(vectors[k].is_none()));
            let none = domain.image_vector_f64(open).map(f64::to_bits);
            assert_eq!(none, [0; 3]);
        }
        let tilts = [0.5, 0.0, 0.0];
        let leaning = Domain::triclinic([None, Some(2.0), None], tilts).unwrap();
        assert_eq!(leaning.vectors(), [None, Some([0.5, 2.0, 0.0]), None]);
    }

    #[test]
    fn two_vectors_nearly_in_one_line_are_refused() {
        let nearly = [Some([1.0, 2.0, 3.0]), None, Some([2.0, 4.0, 6.001])];
        let parallel = [None, Some([1.0, 2.0, 3.0]), Some([-2.0, -4.0, -6.0])];
        for (vectors, name) in [(nearly, 'a'), (parallel, 'b')] {
            let error = Domain::from_vectors(vectors).unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::FlatBox { vector, width, .. } if *vector == name && *width < 0.01),
                "{error}"
            );
        }
    }

    #[test]
    fn bad_vectors_are_refused_by_name() {
        for bad in [
            [0.0; 3],
            [f64::NAN, 1.0, 0.0],
            [1e300, 0.0, 0.0],
            [f64::INFINITY; 3],
        ] {
            let vectors = [Some([1.0, 0.0, 0.0]), Some(bad), Some([0.0, 0.0, 1.0])];
            let error = Domain::from_vectors(vectors).unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::BoxVector { name: 'b', .. }),
                "{error}"
            );
        }
        let nan = Domain::triclinic([Some(1.0); 3], [0.0, f64::NAN, 0.0]).unwrap_err();
        assert!(
            matches!(nan.kind(), ErrorKind::BoxVector { name: 'c', .. }),
            "{nan}"
        );
        let length = Domain::triclinic([Some(1.0), Some(-1.0), None], [0.0; 3]).unwrap_err();
        assert!(matches!(
            length.kind(),
            ErrorKind::BoxLength { axis: 'y', .. }
        ));
        let flat = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [2.0, 3.0, 0.0]].map(Some);
        let message = Domain::from_vectors(flat).unwrap_err().to_string();
        assert!(message.contains("nearly lie in one plane"), "{message}");
    }
}
