//! Box vectors that do not lie along the axes, and how many of them lead to a position.
//!
//! **Invariants others rely on:** no vector is longer than [`MAX_STRETCH`] times the distance
//! between the two faces it connects, so the inverse is accurate; and going one box vector `m`
//! further changes the computed fraction along vector `k` by 1 or 0 up to
//! `drift · |v_m| / |v_k|`, rounding included. The inverse is checked against the vectors after it
//! was computed, so this holds however it was computed.
//!
//! # Fractions
//!
//! The fraction of a position along vector k is the dot product with row k of the inverse. Cells
//! and wraps are whole parts of it. Its rounding is bounded by 2⁻⁵⁰ of the lengths involved, plus
//! the error of the inverse itself, which grows with how flat the box is; [`MAX_STRETCH`] bounds
//! the flatness, and flatter boxes are refused with the vector and the width.
//!
//! An open axis gets a unit vector across the periodic vectors, so that three vectors span space
//! and one inverse serves all axes.

use crate::{Error, ErrorKind};

/// Vectors may be this many times as long as the distance between the faces they connect.
const MAX_STRETCH: f64 = 1024.0;

/// The rounding of a dot product of three `f64` terms, relative to the vectors' lengths.
const DOT_ROUNDING: f64 = 1.0 / (1u64 << 50) as f64;

/// Names of the box vectors.
pub(crate) const VECTOR_NAMES: [char; 3] = ['a', 'b', 'c'];

/// Three vectors that span the box and the inverse of the matrix they form.
///
/// The inverse is computed once, by cofactors, and then multiplied with the vectors again. The
/// largest deviation from the identity, together with the rounding of a dot product, is kept as
/// the error of a fraction; cells are enlarged by it, so a flat box costs candidates and never
/// pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tilt {
    /// The box vectors; on an open axis a unit vector across those of the periodic ones: that along
    /// the axis unless the box is [slanted](Self::slanted).
    pub(crate) vectors: [[f64; 3]; 3],
    /// Row `k` times a position is its fraction along vector `k`.
    pub(crate) inverse: [[f64; 3]; 3],
    /// Some vector leans along an open axis.
    pub(crate) slanted: bool,
    /// Error of the fractions per box (see the module's comment).
    pub(crate) drift: f64,
}

impl Tilt {
    /// For the vectors of the periodic axes, which must all be finite and not zero.
    ///
    /// # Errors
    /// [`ErrorKind::FlatBox`] when they nearly lie in one plane or one line.
    pub(crate) fn of(vectors: [Option<[f64; 3]>; 3]) -> Result<Self, Error> {
        let leans = |open: usize| vectors.iter().flatten().any(|vector| vector[open] != 0.0);
        let slanted = (0..3).any(|k| vectors[k].is_none() && leans(k));
        let filled = if slanted {
            with_normals(vectors)?
        } else {
            std::array::from_fn(|k| vectors[k].unwrap_or(along(k, 1.0)))
        };
        Ok(Self {
            slanted,
            ..Self::new(filled)?
        })
    }

    /// Inverts the vectors, which must all be finite and not zero.
    ///
    /// # Errors
    /// [`ErrorKind::FlatBox`] when they nearly lie in one plane.
    pub(crate) fn new(vectors: [[f64; 3]; 3]) -> Result<Self, Error> {
        let lengths = vectors.map(norm);
        let units: [[f64; 3]; 3] =
            std::array::from_fn(|k| vectors[k].map(|component| component / lengths[k]));
        let normals: [[f64; 3]; 3] =
            std::array::from_fn(|k| cross(units[(k + 1) % 3], units[(k + 2) % 3]));
        let volume = dot(units[0], normals[0]);
        let stretch = normals.map(|normal| norm(normal) / volume.abs());
        for k in 0..3 {
            // NaN and infinity, from a volume of zero, lie in no range.
            if !(0.0..=MAX_STRETCH).contains(&stretch[k]) {
                return Err(ErrorKind::FlatBox {
                    vector: VECTOR_NAMES[k],
                    length: lengths[k],
                    width: lengths[k] / stretch[k],
                }
                .into());
            }
        }
        let inverse =
            std::array::from_fn(|k| normals[k].map(|component| component / volume / lengths[k]));
        let mut tilt = Self {
            vectors,
            inverse,
            slanted: false,
            drift: 0.0,
        };
        for k in 0..3 {
            for m in 0..3 {
                let exact = if k == m { 1.0 } else { 0.0 };
                let error = (dot(inverse[k], vectors[m]) - exact).abs() * lengths[k] / lengths[m];
                tilt.drift = tilt.drift.max(error + stretch[k] * DOT_ROUNDING);
            }
        }
        Ok(tilt)
    }

    /// The same for vectors that were rounded when they were computed: the vectors meant differ by
    /// a rounding of each component, and the error of a fraction is larger by that.
    pub(crate) fn of_rounded(self) -> Self {
        Self {
            drift: self.drift + MAX_STRETCH * DOT_ROUNDING,
            ..self
        }
    }

    /// How many vectors `axis` lead from the origin to a position.
    #[inline]
    pub(crate) fn fraction(&self, axis: usize, position: [f64; 3]) -> f64 {
        dot(self.inverse[axis], position)
    }

    /// No position whose coordinates are at most these in magnitude has a larger
    /// [`fraction`](Self::fraction), whatever its signs.
    pub(crate) fn farthest_fraction(&self, axis: usize, magnitudes: [f64; 3]) -> f64 {
        dot(self.inverse[axis].map(f64::abs), magnitudes)
    }

    /// Distance between the two faces of the box that vector `axis` connects.
    pub(crate) fn width(&self, axis: usize) -> f64 {
        1.0 / norm(self.inverse[axis])
    }
}

/// `n` of these vectors in all, in the order of operations that [`crate::Domain::image_vector`]
/// promises.
#[inline]
pub(crate) fn sum([a, b, c]: [[f64; 3]; 3], n: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|axis| (n[0] * a[axis] + n[1] * b[axis]) + n[2] * c[axis])
}

/// One or two vectors and, where there is none, unit vectors across them and each other.
///
/// # Errors
/// [`ErrorKind::FlatBox`] when two vectors nearly lie in one line.
fn with_normals(vectors: [Option<[f64; 3]>; 3]) -> Result<[[f64; 3]; 3], Error> {
    let unit = |v: [f64; 3]| v.map(|component| component / norm(v));
    let first = vectors.iter().position(Option::is_some).unwrap_or(0);
    let open = vectors.iter().position(Option::is_none).unwrap_or(0);
    let given = unit(vectors[first].unwrap_or(along(first, 1.0)));
    let second = (first + 1..3).find_map(|k| vectors[k]);
    // With one vector, across the coordinate axis along which it is shortest.
    let beside = match second {
        Some(second) => unit(second),
        None => {
            let shorter = |a: usize, b: usize| {
                if given[b].abs() < given[a].abs() {
                    b
                } else {
                    a
                }
            };
            along(shorter(shorter(0, 1), 2), 1.0)
        }
    };
    let across = cross(given, beside);
    let sine = norm(across);
    // NaN and 0 lie in no range.
    if !(1.0 / MAX_STRETCH..=2.0).contains(&sine) {
        let length = vectors[first].map_or(1.0, norm);
        return Err(ErrorKind::FlatBox {
            vector: VECTOR_NAMES[first],
            length,
            width: length * sine,
        }
        .into());
    }
    let normal = unit(across);
    let last = unit(cross(given, normal));
    Ok(std::array::from_fn(|k| match vectors[k] {
        Some(vector) => vector,
        None if k == open => normal,
        None => last,
    }))
}

/// The vector of this length along an axis.
pub(crate) fn along(axis: usize, length: f64) -> [f64; 3] {
    std::array::from_fn(|other| if other == axis { length } else { 0.0 })
}

/// Length of a vector.
pub(crate) fn norm(v: [f64; 3]) -> f64 {
    dot(v, v).sqrt()
}

/// Every operation is rounded, and rounding keeps order: the result never falls when a product
/// grows.
#[inline]
pub(crate) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    (a[0] * b[0] + a[1] * b[1]) + a[2] * b[2]
}

/// The vector product, which is orthogonal to both vectors.
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
    fn fractions_count_the_vectors_that_lead_to_a_position() {
        for vectors in [
            [[4.0, 0.0, 0.0], [1.5, 3.0, 0.0], [-7.0, 2.0, 5.0]],
            [[0.0, 1.5, 1.5], [1.5, 0.0, 1.5], [1.5, 1.5, 0.0]],
            [[0.0, 0.0, -2.0], [1e-6, 0.0, 0.0], [3e7, 4e9, 1.0]],
        ] {
            let tilt = Tilt::new(vectors).unwrap();
            for n in [[1.0, 0.0, 0.0], [-3.0, 2.5, 0.25], [1e6, -7.0, 0.5]] {
                let place = sum(vectors, n);
                for k in 0..3 {
                    let found = tilt.fraction(k, place);
                    let sizes: f64 = (0..3)
                        .map(|m| n[m].abs() * norm(vectors[m]) / norm(vectors[k]))
                        .sum();
                    assert!((found - n[k]).abs() <= 2.0 * tilt.drift * sizes, "{found}");
                }
            }
        }
    }

    #[test]
    fn the_drift_of_ordinary_boxes_is_near_the_precision_of_f64() {
        let tilt = Tilt::new([[4.0, 0.0, 0.0], [2.0, 3.0, 0.0], [-2.0, 1.0, 5.0]]).unwrap();
        assert!(
            tilt.drift > 0.0 && tilt.drift < 1e-14,
            "drift {}",
            tilt.drift
        );
        assert_eq!(tilt.width(2), 5.0);
        assert!((tilt.width(1) - 15.0 / 26.0_f64.sqrt()).abs() < 1e-14);
    }

    #[test]
    fn vectors_that_nearly_lie_in_one_plane_are_refused() {
        let flat = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [3.0, 2.0, 1e-3]];
        let error = Tilt::new(flat).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::FlatBox { .. }));
        assert!(Tilt::new([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]]).is_err());
        assert!(Tilt::new([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [300.0, 2.0, 1.0]]).is_ok());
    }
}
