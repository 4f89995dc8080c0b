//! The images through which two points can be neighbours, without cells.
//!
//! A search that tests all pairs of a small set needs to know, for a source, through which images
//! it can come within the radius of any target. The answer is a range of counts along each periodic
//! vector, from the distance between the faces that the vector connects.
//!
//! # No image is lost
//!
//! Let g be the linear function x ↦ inverse_k · x, with the inverse as computed, and v_m the
//! vectors. The contract accepts a pair when its rounded displacement d has a length of at most
//! r (1 + 8u), where u is half the distance of the numbers around 1. Let d* = (x_j − x_i) + Σ n_m
//! v_m be the displacement without rounding. Three facts bound n_k:
//!
//! 1. Per axis d differs from d* by the rounding of the difference, of S, and of their sum: by at
//!    most 2.1 u (|x_j − x_i| + |d|), and by the rounding of S within `f64`, at most 2⁻⁵⁰ Σ |n_m|
//!    |v_m|. So |d*| ≤ ρ = r + 16 u (r + extent) + 2⁻⁴⁸ Σ |n_m| |v_m|.
//! 2. |g(d*)| ≤ |inverse_k| ρ, by Cauchy and Schwarz.
//! 3. g(v_m) is 1 for m = k and 0 otherwise, up to drift |v_m| / |v_k| (the module `tilt`).
//!
//! Therefore n_k lies within |inverse_k| ρ + drift Σ |n_m| |v_m| / |v_k| of g(x_i) − g(x_j), and
//! the two fractions are rounded by at most c_k = 2⁻⁴⁹ Σ |inverse_k| |x| each. The sum W = Σ |n_m|
//! |v_m| occurs on both sides. With A_m = |inverse_m| (r + extent, rounding included) + 1 + c_m for
//! what does not depend on it, W ≤ Σ A_m |v_m| + (3 drift + 2⁻⁴⁶ Σ |inverse_m| |v_m|) W. Both
//! factors are far below a quarter, because no vector is longer than 1,024 times the distance
//! between its faces, so W ≤ 2 Σ A_m |v_m|.
//!
//! **Invariant:** every image through which the contract accepts a pair lies in the range.

use super::{
    Domain,
    tilt::{dot, norm},
};
use crate::{Bounds, Precision, Radius};

/// Error of the fractions of a straight box per box: that of one division and one product.
const STRAIGHT_DRIFT: f64 = 1.0 / (1u64 << 51) as f64;

/// 2⁻⁴⁰, more than the rounding of the few operations that add up a bound.
const SUMMED: f64 = 1.0 / (1u64 << 40) as f64;

/// Counts that stay far below 2³¹ in numbers of any vectors of the same lattice.
const SMALL_COUNTS: f64 = (1 << 16) as f64;

/// How far images can lie from each other's fractions for points within some bounds.
///
/// Made once per set of points: it costs a few dozen operations and three roots. Asking for the
/// counts of a source costs an addition, a subtraction and a rounding for each end of an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImagesInReach {
    /// Rows of the inverse; zero along open axes.
    inverse: [[f64; 3]; 3],
    /// Boxes beyond the difference of the fractions, along each axis; 0 along open ones.
    reach: [f64; 3],
}

impl ImagesInReach {
    /// For points within `bounds`, which [`Bounds::check`] has accepted for the domain.
    ///
    /// Counts are those of the vectors that the domain is enumerated by.
    pub fn new(domain: &Domain, radius: Radius, bounds: &Bounds) -> Self {
        let unit = match radius.precision() {
            Precision::Single => 1.0 / (1u64 << 24) as f64,
            Precision::Double => 1.0 / (1u64 << 53) as f64,
        };
        let inverse = domain.inverse().map(Option::unwrap_or_default);
        let vectors = domain.vectors();
        let lengths = vectors.map(|vector| vector.map_or(0.0, norm));
        let drift = domain.tilt().map_or(STRAIGHT_DRIFT, |tilt| tilt.drift);
        let magnitudes: [f64; 3] = std::array::from_fn(|axis| bounds.magnitude(axis));
        let extent: f64 = bounds.extent().iter().sum();
        let r = radius.value_f64();
        let rough = r + 16.0 * unit * (r + extent);
        let rounding = inverse.map(|row| dot(row.map(f64::abs), magnitudes) * 2f64.powi(-49));
        let farthest = |m: usize| norm(inverse[m]) * (rough + extent) + 1.0 + rounding[m];
        let all = 2.0 * (0..3).map(|m| farthest(m) * lengths[m]).sum::<f64>();
        let rho = rough + all * 2f64.powi(-48);
        let reach = std::array::from_fn(|k| match vectors[k] {
            None => 0.0,
            Some(_) => {
                let reach = norm(inverse[k]) * rho + drift * all / lengths[k];
                reach * (1.0 + SUMMED) + 4.0 * rounding[k]
            }
        });
        Self { inverse, reach }
    }

    /// Whether a pair can have one image at most, whose counts are small: then
    /// [`only`](Self::only) names it.
    pub fn names_one(&self, bounds: &Bounds) -> bool {
        let extent = bounds.extent();
        let spread = self.inverse.map(|row| dot(row.map(f64::abs), extent));
        self.reach.iter().all(|&reach| reach < 0.5) && spread.iter().all(|&n| n < SMALL_COUNTS)
    }

    /// The count along an axis of the only image through which a source can be a neighbour of a
    /// target, by their fractions along it, where there is [no other](Self::names_one). It is a
    /// whole number, and that of the image if they are neighbours.
    #[inline(always)]
    pub fn only(&self, axis: usize, source: f64, target: f64) -> f64 {
        (target - source + self.reach[axis]).floor()
    }

    /// Whether a source can be a neighbour of a target with these fractions through another image
    /// than its own position, if the fractions of all sources lie [within](Self::fractions_within)
    /// `sources`.
    ///
    /// Counts fall where the fraction of the source grows, rounded or not, so the extremes of the
    /// sources bound those of all. Costs four additions and two roundings along each axis, once for
    /// a target; most targets of a box that is much wider than the radius need no images.
    ///
    /// Returns true also where it cannot tell. Where it returns false, the pairs of the target have
    /// image 0 along every axis, and a caller may leave out the search for another.
    #[inline(always)]
    pub fn may_need_images(&self, target: [f64; 3], sources: [[f64; 2]; 3]) -> bool {
        let mut may = false;
        for axis in 0..3 {
            let [smallest, largest] = sources[axis];
            let [first, _] = self.counts(axis, largest, [target[axis]; 2]);
            let [_, last] = self.counts(axis, smallest, [target[axis]; 2]);
            may |= first < 0.0 || last > 0.0;
        }
        may
    }

    /// The smallest and the largest fraction along each axis of positions within `bounds`.
    ///
    /// They bound the fractions as computed: rounded products and sums never fall where an operand
    /// grows, so the extremes are the fractions of corners.
    pub fn fractions_within(&self, bounds: &Bounds) -> [[f64; 2]; 3] {
        self.inverse.map(|row| {
            let corner = |low: bool| {
                std::array::from_fn(|k| {
                    if low == (row[k] >= 0.0) {
                        bounds.min[k]
                    } else {
                        bounds.max[k]
                    }
                })
            };
            [dot(row, corner(true)), dot(row, corner(false))]
        })
    }

    /// How many vectors lead to a position, along each axis; 0 along open ones.
    ///
    /// Rounded like the fractions that the bound is made for, so callers use no others.
    #[inline(always)]
    pub fn fractions(&self, position: [f64; 3]) -> [f64; 3] {
        let [a, b, c] = self.inverse;
        [dot(a, position), dot(b, position), dot(c, position)]
    }

    /// The first and the last count along an axis of the images through which a source can be a
    /// neighbour of a target, by their fractions along it; those of the targets lie between `first`
    /// and `last`. They are whole numbers.
    #[inline(always)]
    pub fn counts(&self, axis: usize, source: f64, [first, last]: [f64; 2]) -> [f64; 2] {
        let reach = self.reach[axis];
        [
            (first - source - reach).ceil(),
            (last - source + reach).floor(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The contract in `f64`.
    fn accepts(domain: &Domain, r2: f64, [from, to]: [[f64; 3]; 2], n: [i64; 3]) -> bool {
        let shift = domain.image_vector_f64(n);
        let d: [f64; 3] = std::array::from_fn(|k| (to[k] - from[k]) + shift[k]);
        d[2].mul_add(d[2], d[1].mul_add(d[1], d[0] * d[0])) <= r2
    }

    #[test]
    fn no_image_that_the_contract_accepts_lies_outside_of_the_range() {
        let mut number = 5u64;
        let mut draw = |size: f64| {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(11);
            size * ((number >> 11) as f64 / (1u64 << 53) as f64 - 0.5)
        };
        let (mut boxes, mut accepted, mut at_the_end, mut named, mut without) = (0, 0, 0, 0, 0);
        while boxes < 2000 {
            let open = (draw(8.0) + 4.0) as usize;
            // Whole numbers put many pairs exactly at the radius.
            let whole = boxes % 2 == 0;
            let mut at = |size: f64| match draw(size) {
                x if whole => x.round(),
                x => x,
            };
            let vectors = std::array::from_fn(|k| {
                (k != open)
                    .then(|| std::array::from_fn(|axis| at(if axis == k { 6.0 } else { 3.0 })))
            });
            let radius = Radius::new_f64(1.0 + at(3.0).abs()).unwrap();
            let Ok(domain) = Domain::from_vectors(vectors) else {
                continue;
            };
            boxes += 1;
            let domain = domain.reduced();
            let points: [[f64; 3]; 2] = [[0; 3]; 2].map(|p| p.map(|_| at(9.0)));
            let bounds = Bounds::of((&points[..]).into(), &domain).unwrap();
            let reach = ImagesInReach::new(&domain, radius, &bounds);
            let fractions = points.map(|point| reach.fractions(point));
            let all = reach.fractions_within(&bounds);
            let needs_none = !reach.may_need_images(fractions[0], all);
            for (fractions, k) in fractions.iter().flat_map(|of| (0..3).map(move |k| (of, k))) {
                assert!(all[k][0] <= fractions[k] && fractions[k] <= all[k][1]);
            }
            let near = Radius::new_f64(0.4 * radius.value_f64()).unwrap();
            let around_near = ImagesInReach::new(&domain, near, &bounds);
            let near_needs_none = !around_near.may_need_images(fractions[0], all);
            without += usize::from(needs_none) + usize::from(near_needs_none);
            let range: [[f64; 2]; 3] =
                std::array::from_fn(|k| reach.counts(k, fractions[1][k], [fractions[0][k]; 2]));
            let around = range.map(|[first, last]| first as i64 - 2..=last as i64 + 2);
            for x in around[0].clone() {
                for y in around[1].clone() {
                    for z in around[2].clone() {
                        let n = [x, y, z];
                        let is_open = |k: usize| domain.lengths()[k].is_none() && n[k] != 0;
                        if (0..3).any(is_open) || !accepts(&domain, radius.squared_f64(), points, n)
                        {
                            continue;
                        }
                        accepted += 1;
                        assert!(!needs_none || n == [0; 3], "{domain:?} {points:?} {n:?}");
                        let is_near = accepts(&domain, near.squared_f64(), points, n);
                        assert!(
                            !(is_near && near_needs_none) || n == [0; 3],
                            "{domain:?} {n:?}"
                        );
                        if is_near && around_near.names_one(&bounds) {
                            let only = |k: usize| {
                                let [target, source] = fractions.map(|of| of[k]);
                                around_near.only(k, source, target)
                            };
                            assert_eq!([0, 1, 2].map(only), n.map(|n| n as f64));
                            named += 1;
                        }
                        for k in 0..3 {
                            let [first, last] = range[k].map(|end| end as i64);
                            assert!(
                                (first..=last).contains(&n[k]),
                                "{domain:?} {points:?} {n:?}"
                            );
                            at_the_end += usize::from(n[k] == first || n[k] == last);
                        }
                    }
                }
            }
        }
        assert!(
            accepted > 500 && at_the_end > 500 && named > 20 && without > 10,
            "{accepted} {at_the_end} {named} {without}"
        );
    }
}
