//! Proxies of wrapped points: positions in `f32` as the GPU backend compares them where points lie
//! outside the periodic box, and in double precision.
//!
//! The proxy of a point x that lies w boxes outside is `p = fl32(x − Σ w_k·v_k)`, computed in
//! `f64`; along open axes `fl32(x − centre)`, and in single precision x itself. So all proxies lie
//! in one box, however far the points have gone, and two of them are compared in the image m that
//! their cells meet in: `e = fl(fl(p_j − p_i) + fl32(S_m))`. The contract decides by the image n =
//! m + w_i − w_j of the given positions, whose real displacement is the same: `D = x_j − x_i + S_n
//! = q_j − q_i + S_m`, with q = x − Σ w_k·v_k. [`WrappedProxies`] bounds how far e and the
//! contract's d are apart. Beyond an *outer* radius lies then no pair of the contract, within an
//! *inner* one every pair is one, and the few in between are decided as given.
//!
//! # Why it holds
//!
//! Let `v = 2⁻²⁴`, r the radius, and along an axis B the sum of the box vectors' magnitudes, so
//! that `|q| ≤ 1.01·B`. Only pairs with `|D| ≤ 1.01·r` matter.
//!
//! * *Of proxies.* Two of them are rounded by `v·B` each, their difference by `v·2B`, the image
//!   vector, which is at most `2B + r`, by `v` of that, and the sum by `v·r`; with 1 % for terms of
//!   second order less than `8v·(B + r) = 2⁻²¹·(B + r)`.
//! * *Of the contract in single precision.* With X the extent of the points, `fl(x_j − x_i)` is off
//!   by `v·X`, the image vector by `v·(X + r)`, the sum by `v·r`: less than `1.02·2⁻²³·(X + r)`.
//!   Where points are in one box that is little; it grows with the boxes they are spread over.
//! * *Of `f64`.* Products, sums and, in double precision, the contract itself: with the boxes n_k
//!   between a point and the origin, less than `2⁻⁴⁶·Σ (n_k + 1)·|v_k|`, of which they take less
//!   than a fourth.
//! * *Open axes.* In single precision both sides do the same operations: 0. In double precision
//!   `2⁻²¹·(|x_i − centre| + r)`, as the module `double` has it. The distance is the target's, so
//!   an outlier makes the filter coarse for itself alone.
//! * *Boxes whose vectors lean along open axes.* Proxies then lie in one box across the directions
//!   without images only; along these the points reach some A from the origin. B stands for
//!   `B + |n|·A` along an axis that a box vector leans along, with n the unit vector of such a
//!   direction. Where several such axes are open the sum of both counts. An axis along which no
//!   vector leans is as any open one.
//!
//! The errors along the axes are a vector, so `||e| − |d||` is at most its length E, and the outer
//! radius r + E. Squares are rounded: the contract's `d²` and `r²` let |d| be `r·(1 + 2v)`, the
//! square of e is computed with 3v, and the bound is rounded by v; it is larger by 16v. The inner
//! radius is r − E, given only where E ≤ r/2. Its square is smaller by 16v, so a pair within it has
//! `|e| ≤ (r − E)·(1 − 6v)` and `|d| ≤ r·(1 − 3v)`, and the contract's square is below `fl(r²)`.
//!
//! Where the box is longer than [`FARTHEST_IMAGE`], proxies could overflow. All of them are 0 then,
//! the outer radius is infinite, and every candidate of the cells is decided as given.

use super::double::{FARTHEST_IMAGE, Frame, LARGEST_INNER, ROUNDING, power_of_two};
use crate::{Bounds, Domain, Precision, Radius};

/// How proxies of wrapped points are made, and what they can tell.
///
/// A target whose proxy is p searches with the filter radius `reach + Σ rounding·|p|`; pairs of
/// proxies beyond it are none of the contract's, and those within `2·radius` less that, if this is
/// at least half of the radius and [`has_inner`](Self::has_inner), are all pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WrappedProxies {
    /// Subtracted from coordinates along open axes, for cells as well; 0 along periodic ones.
    pub centre: [f64; 3],
    /// Filter radius of a target at the centre; infinite where proxies cannot tell anything, and
    /// are all to be 0.
    pub reach: f64,
    /// Share of a target's distance from the centre by which its filter radius grows.
    pub rounding: [f64; 3],
    /// Whether proxies can prove a pair.
    pub has_inner: bool,
}

impl WrappedProxies {
    /// Proxies of points within `bounds` in the domain as the lattice sees it. Bounds matter
    /// through powers of two.
    pub(super) fn new(
        radius: Radius,
        seen: &Domain,
        bounds: &Bounds,
        frame: Option<&Frame>,
    ) -> Self {
        let r = radius.value_f64();
        let vectors = seen.vectors();
        let magnitudes: [f64; 3] = std::array::from_fn(|axis| bounds.magnitude(axis));
        // Whole boxes between any point and the origin, along each vector.
        let boxes: [f64; 3] = std::array::from_fn(|k| {
            let fraction = match (seen.tilt(), seen.lengths()[k]) {
                (_, None) => 0.0,
                (Some(tilt), _) => tilt.farthest_fraction(k, magnitudes),
                (None, Some(length)) => magnitudes[k] / length,
            };
            power_of_two(fraction.max(4.0)) + 1.0
        });
        let mut proxies = Self {
            centre: frame.map_or([0.0; 3], Frame::anchor),
            reach: f64::INFINITY,
            rounding: [0.0; 3],
            has_inner: false,
        };
        // How far points lie along directions without images that are not those of coordinates.
        let slanted = seen.tilt().filter(|tilt| tilt.slanted);
        let across: [(f64, [f64; 3]); 3] = std::array::from_fn(|k| match slanted {
            Some(tilt) if vectors[k].is_none() => {
                let farthest = tilt.farthest_fraction(k, magnitudes);
                (power_of_two(farthest), tilt.vectors[k])
            }
            _ => (0.0, [0.0; 3]),
        });
        let mut squares = 0.0;
        for axis in 0..3 {
            let along = |k: usize| vectors[k].map_or(0.0, |vector| vector[axis].abs());
            let length: f64 = (0..3).map(along).sum();
            let beside: f64 = match length {
                0.0 => 0.0,
                _ => across
                    .iter()
                    .map(|(far, unit)| far * unit[axis].abs())
                    .sum(),
            };
            if length + beside > FARTHEST_IMAGE {
                return proxies;
            }
            let of_boxes: f64 = (0..3).map(|k| boxes[k] * along(k)).sum();
            let of_f64 = (of_boxes + beside) * 2f64.powi(-46);
            let of_proxies = ROUNDING * (length + beside + r);
            let error = match radius.precision() {
                Precision::Single if length == 0.0 => 0.0,
                Precision::Single => {
                    let extent = length * power_of_two((bounds.extent()[axis] / length).max(1.0));
                    let of_contract = 1.02 * 2f64.powi(-23) * (extent + r);
                    of_proxies + of_contract + of_f64
                }
                Precision::Double => {
                    if length == 0.0 {
                        proxies.rounding[axis] = ROUNDING;
                    }
                    of_proxies + of_f64
                }
            };
            squares += error * error;
        }
        proxies.reach = r + squares.sqrt();
        proxies.has_inner = r <= LARGEST_INNER;
        proxies
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(radius: Radius, lengths: [Option<f64>; 3], low: f64, high: f64) -> WrappedProxies {
        let domain = Domain::new(lengths).unwrap();
        let bounds = Bounds {
            min: [low; 3],
            max: [high; 3],
        };
        let frame = match radius.precision() {
            Precision::Single => None,
            Precision::Double => Some(Frame::new(radius, &domain, &bounds)),
        };
        WrappedProxies::new(radius, &domain, &bounds, frame.as_ref())
    }

    #[test]
    fn filter_radii_are_near_the_radius_where_boxes_are_few() {
        for radius in [Radius::new(2.0), Radius::new_f64(2.0)] {
            let radius = radius.unwrap();
            let near = proxies(radius, [Some(100.0); 3], -150.0, 250.0);
            assert!(near.has_inner && near.reach > 2.0 && near.reach < 2.0005);
            assert_eq!(near.rounding, [0.0; 3]);
            let open = proxies(radius, [Some(100.0), None, None], -150.0, 250.0);
            assert!(open.reach < near.reach);
        }
        let single = Radius::new(2.0).unwrap();
        assert_eq!(proxies(single, [None; 3], -1e9, 1e9).reach, 2.0);
    }

    #[test]
    fn vast_boxes_have_no_proxies() {
        let radius = Radius::new_f64(2.0).unwrap();
        let vast = proxies(radius, [Some(1e30), None, None], -1e30, 1e30);
        assert!(vast.reach.is_infinite() && !vast.has_inner);
    }
}
