//! Searching points in double precision: cells from `f64`, distances first from `f32` *proxies*.
//!
//! Every point has a proxy, its position relative to a centre that all sets share, rounded to
//! `f32`, and a squared *filter radius*. Vector code compares proxies; what passes is decided in
//! `f64` by the contract, unless the proxies are so near that they are below the *inner radius*
//! too. So three things must hold:
//!
//! **1. The cells of a pair that the contract finds are among the rows of the lattice.** Cells are
//! computed in `f64`, on open axes from `x − centre` (so clouds far from the origin lose nothing),
//! on periodic ones from `x`. Let `u = 2⁻⁵³`, and take everything in lengths.
//!
//! * On an open axis a cell coordinate is rounded thrice: by less than `3u·2⁴⁰ < 2⁻¹¹·⁴` cells up
//!   to 2⁴⁰ of them, and beyond, where cells grow with the distance, by `3u·2³⁰` of those there.
//!   For two points and three axes, with a factor of two to spare, that is `√3·2⁻⁹·⁴·R <
//!   2.6·10⁻³·R`, with `R` the enlarged radius that the cells are made for. [`ENLARGEMENT`] covers
//!   it.
//! * On periodic axes it is rounded by at most `4u·(X + L)` per point, where X is the farthest
//!   coordinate from 0 and L the box length, and the contract itself rounds the difference, the
//!   image vector and their sum by at most `4u·(X + r)` together: for two points and three axes
//!   less than `22u·(X + L + r)`. [`slack`] is `2⁻⁴⁶·(X + L)`, over five times as much. (For tilted
//!   boxes see the submodule `tilted`.)
//! * The contract's `d² ≤ r2` lets |d| exceed r by less than `4u·r`, far inside [`ENLARGEMENT`].
//!
//! **2. The proxies of a pair that the contract finds pass the filter.** Let `v = 2⁻²⁴` and, per
//! axis, d be the contract's difference, `e` the filter's `fl(fl(p_j − p_i) + fl(S))`.
//!
//! * On an open axis a proxy is clamped to ±[`FARTHEST_PROXY`], which brings no pair farther apart,
//!   and rounded by `1.01·v·M`, where `M = min(|x − centre|, FARTHEST_PROXY) + r` bounds both
//!   points of the pair; their difference, at most r and these roundings, is rounded by as much
//!   again: `|e| ≤ |d| + 2⁻²¹·M`.
//! * On a periodic axis no point of any set is farther than M₀ from the centre, so `|S| ≤ 2·M₀ +
//!   1.01·r`. Two proxies, their difference, the image vector and the sum are rounded by `v·(2 +
//!   2 + 2)·M₀ + 2v·r`, with 1 % for terms of second order: `|e| ≤ |d| + 2⁻²¹·(M₀ + r)`. Where M₀
//!   is beyond [`FARTHEST_IMAGE`] and squares could overflow, proxies and image vectors are 0: such
//!   an axis is not filtered.
//! * So `|e| ≤ r + Σ 2⁻²¹·M`, and its square as computed (three roundings in `f32`) at most `1 +
//!   2⁻²²` times that squared; the bound of [`Frame::proxies`] is larger by `2⁻²⁰`, which its own
//!   rounding does not use up. No square overflows: differences are at most 2⁶².
//!
//! **3. The contract finds a pair whose proxies are within the inner radius.** The errors above
//! bound `|d|` by `|e|` as they bound `|e|` by `|d|`, as long as no proxy is clamped or 0; with
//! `|e| ≤ r` both points of such a pair are within `M` as well. Let E be the sum of the errors, so
//! that the filter radius is at least `r + E`, and the inner radius `r − E` at most.
//!
//! * It is given only where `E ≤ r/2`, and `r ≤ 2³⁹`: then `|x − centre| ≤ 2²⁰·r ≤ 2⁵⁹` on open
//!   axes, and proxies that are clamped are at least `2⁶⁰` away, farther than r. It is not given
//!   where an axis is not filtered.
//! * The square as computed is at least `1 − 2⁻²²` times `|e|²`. The bound is smaller than `(r −
//!   E)²` by `2⁻²⁰`, so `|e| ≤ (r − E)(1 − 2⁻²²)` and `|d| ≤ r(1 − 2⁻²³)`, because r − E is at
//!   least r/2. The contract's own roundings are below `2⁻⁵⁰`, and so is what a square loses below
//!   the smallest normal number, because `r ≥ 2⁻⁵⁰`.
//!
//! The filter radius of a *target* bounds the coordinates of its sources, so targets bring it along
//! and an outlier far away makes the filter coarse for itself alone, never for the others. However
//! coarse the filter is, the cells still keep candidates few.

use crate::{Bounds, Domain, Radius};

/// The factor by which the radius is enlarged for the cells, above all for the rounding of far
/// cells.
pub(super) const ENLARGEMENT: f64 = 1.0 + 1.0 / (1u64 << 8) as f64;

/// Proxies on open axes are clamped to this distance from the centre.
const FARTHEST_PROXY: f64 = (1u64 << 61) as f64;

/// Points on periodic axes may be this far from the centre for the axis to be filtered.
pub(super) const FARTHEST_IMAGE: f64 = (1u64 << 60) as f64;

/// Radius up to which proxies within the inner radius were not clamped.
pub(super) const LARGEST_INNER: f64 = (1u64 << 39) as f64;

/// The error of the difference of two proxies, as a share of how large they may be.
pub(super) const ROUNDING: f64 = 1.0 / (1u64 << 21) as f64;

/// The centre is a multiple of four times the extent of the points, taken to be at least this many
/// radii: points keep the origin as their centre unless it is far away, and moving ones keep
/// whatever centre they have for long.
const NARROWEST: f64 = (1u64 << 14) as f64;

/// Turns positions into proxies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Frame {
    /// The search radius.
    radius: f64,
    /// The centre that all sets share.
    centre: [f64; 3],
    /// Farthest distance of any point from the centre on periodic axes, at least two boxes and
    /// rounded up to a power of two, so that a moving cloud keeps it; `None` on open ones. Where a
    /// box vector leans along an open axis, image vectors have components along all: none is open
    /// then.
    farthest: [Option<f64>; 3],
    /// Proxies within the inner radius are those of a pair.
    has_inner: bool,
    /// The same for loops over points, without a case per axis.
    scale: [AxisFrame; 3],
    /// Filter radius of a target at the centre.
    min_reach: f64,
}

/// From a coordinate along an axis to its proxy, by the same operations whether the axis is open,
/// periodic, or not filtered.
#[derive(Debug, Clone, Copy, PartialEq)]
struct AxisFrame {
    /// The centre on open axes, from which cells are computed; 0 on periodic ones.
    anchor: f64,
    /// The centre.
    centre: f64,
    /// Proxies are clamped to it; 0 where the axis is not filtered.
    limit: f64,
    /// Share of the distance from the centre by which the filter radius grows.
    rounding: f64,
}

impl Frame {
    /// The frame for points within `bounds`; only where they are along periodic axes matters for
    /// correctness.
    pub(super) fn new(radius: Radius, domain: &Domain, bounds: &Bounds) -> Self {
        let radius = radius.value_f64();
        let centre = std::array::from_fn(|axis| centre(radius, bounds, axis));
        let farthest: [Option<f64>; 3] = std::array::from_fn(|axis| {
            let length = if domain.is_slanted() {
                domain.lengths().into_iter().flatten().fold(0.0, f64::max)
            } else {
                domain.lengths()[axis]?
            };
            let [low, high] = [bounds.min[axis], bounds.max[axis]];
            let farthest = if low <= high {
                (low - centre[axis]).abs().max((high - centre[axis]).abs())
            } else {
                0.0
            };
            Some(power_of_two(farthest.max(2.0 * length)))
        });
        let is_filtered =
            |farthest: &Option<f64>| farthest.is_none_or(|farthest| farthest <= FARTHEST_IMAGE);
        let mut min_reach = radius;
        let scale = std::array::from_fn(|axis| {
            let (anchor, limit, rounding, largest) = match farthest[axis] {
                None => (centre[axis], FARTHEST_PROXY, ROUNDING, 0.0),
                Some(farthest) if farthest <= FARTHEST_IMAGE => (0.0, f64::INFINITY, 0.0, farthest),
                Some(_) => (0.0, 0.0, 0.0, -radius),
            };
            min_reach += ROUNDING * (largest + radius);
            let centre = centre[axis];
            AxisFrame {
                anchor,
                centre,
                limit,
                rounding,
            }
        });
        Self {
            radius,
            centre,
            farthest,
            scale,
            min_reach,
            has_inner: radius <= LARGEST_INNER && farthest.iter().all(is_filtered),
        }
    }

    /// Coordinates that cells are computed from.
    #[inline(always)]
    pub(crate) fn anchored(&self, position: [f64; 3]) -> [f64; 3] {
        // Spelt out: closures are calls of their own in builds without optimisation across units.
        let [x, y, z] = position;
        let [of_x, of_y, of_z] = &self.scale;
        [x - of_x.anchor, y - of_y.anchor, z - of_z.anchor]
    }

    /// What [`anchored`](Self::anchored) subtracts along each axis.
    pub(super) fn anchor(&self) -> [f64; 3] {
        self.scale.map(|of| of.anchor)
    }

    /// Bounds of the [`anchored`](Self::anchored) coordinates of the points within `bounds`.
    pub(crate) fn anchored_bounds(&self, bounds: &Bounds) -> Bounds {
        Bounds {
            min: self.anchored(bounds.min),
            max: self.anchored(bounds.max),
        }
    }

    /// Proxies of `N` positions, and the filter's bound on the squared distance of proxies when a
    /// point there searches.
    ///
    /// Values beyond the range of the filter are clamped, which brings no pair farther apart.
    /// Arrays and no slices, so that the compiler turns every loop into vectors.
    #[inline(always)]
    pub(crate) fn proxies<const N: usize>(
        &self,
        positions: [&[f64; N]; 3],
        proxies: [&mut [f32; N]; 3],
        filter_r2: &mut [f32; N],
    ) {
        let mut reach = [self.min_reach; N];
        for ((from, to), of) in positions.into_iter().zip(proxies).zip(&self.scale) {
            for k in 0..N {
                let from_centre = from[k] - of.centre;
                let distance = from_centre.abs();
                // Written so that NaN stays NaN.
                let clamped = if distance > of.limit {
                    of.limit.copysign(from_centre)
                } else {
                    from_centre
                };
                to[k] = clamped as f32;
                let counted = if distance < FARTHEST_PROXY {
                    distance
                } else {
                    FARTHEST_PROXY
                };
                reach[k] += of.rounding * counted;
            }
        }
        for k in 0..N {
            filter_r2[k] = (reach[k] * reach[k] * (1.0 + 2f64.powi(-20))) as f32;
        }
    }

    /// The bound on squared distances of proxies up to which the contract finds the pair, for a
    /// target with this bound of the [filter](Self::proxies); below every square where there is
    /// none.
    #[inline(always)]
    pub(super) fn inner_r2(&self, filter_r2: f32) -> f32 {
        let inner = 2.0 * self.radius - f64::from(filter_r2).sqrt();
        if self.has_inner && inner >= 0.5 * self.radius {
            (inner * inner * (1.0 - 2f64.powi(-20))) as f32
        } else {
            -1.0
        }
    }

    /// The vector added to the difference of two proxies in the image with `image_vector`.
    #[inline(always)]
    pub(super) fn proxy_shift(&self, image_vector: [f32; 3]) -> [f32; 3] {
        std::array::from_fn(|axis| match self.farthest[axis] {
            Some(farthest) if farthest > FARTHEST_IMAGE => 0.0,
            _ => image_vector[axis],
        })
    }
}

/// The centre along an axis: a function of the bounds alone, so that the order of lists does not
/// depend on where points have been.
fn centre(radius: f64, bounds: &Bounds, axis: usize) -> f64 {
    let extent = bounds.extent()[axis].max(NARROWEST * radius);
    let step = 4.0 * power_of_two(extent);
    let middle = 0.5 * bounds.min[axis] + 0.5 * bounds.max[axis];
    let centre = (middle / step).round() * step;
    // Not finite when there are no points, or when they span all of f64.
    if centre.is_finite() { centre } else { 0.0 }
}

/// The next power of two not below `x`, which must not be negative; 0 for 0.
pub(super) fn power_of_two(x: f64) -> f64 {
    // One more where the logarithm is rounded down.
    let power = x.log2().ceil().exp2();
    if power < x { 2.0 * power } else { power }
}

/// The largest rounding of a distance along each periodic axis of a straight box (see the module's
/// comment), from a number of boxes that is rounded up to a power of two.
pub(super) fn slack(domain: &Domain, bounds: &Bounds) -> [f64; 3] {
    let lengths = domain.lengths();
    std::array::from_fn(|axis| {
        lengths[axis].map_or(0.0, |length| {
            let boxes = power_of_two((bounds.magnitude(axis) / length).max(4.0));
            (boxes + 1.0) * length * 2f64.powi(-46)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proxy and filter bound of a position.
    fn proxy(frame: &Frame, position: [f64; 3]) -> ([f32; 3], f32) {
        let [x, y, z] = position.map(|x| [x]);
        let [mut px, mut py, mut pz, mut r2] = [[0.0]; 4];
        frame.proxies([&x, &y, &z], [&mut px, &mut py, &mut pz], &mut r2);
        ([px[0], py[0], pz[0]], r2[0])
    }

    fn frame(radius: f64, low: f64, high: f64, length: Option<f64>) -> Frame {
        let radius = Radius::new_f64(radius).unwrap();
        let domain = Domain::new([length, None, None]).unwrap();
        let bounds = Bounds {
            min: [low; 3],
            max: [high; 3],
        };
        Frame::new(radius, &domain, &bounds)
    }

    #[test]
    fn the_centre_is_the_origin_unless_points_are_far_from_it() {
        assert_eq!(frame(1.0, 0.0, 100.0, None).centre, [0.0; 3]);
        assert_eq!(frame(1.0, -1e9, 1e3, None).centre, [0.0; 3]);
        let far = frame(1e-3, 1e8, 1e8 + 5.0, None);
        let near = far.anchored([1e8, 1e8, 1e8 + 5.0]);
        assert!(near.iter().all(|x| x.abs() < 1e3), "{near:?}");
        let moved = frame(1e-3, 1e8 + 1.0, 1e8 + 5.5, None);
        assert_eq!(far, moved, "a cloud that moves keeps its centre");
        assert_eq!(frame(1.0, -f64::MAX, f64::MAX, None).centre, [0.0; 3]);
        let empty = Bounds::EMPTY;
        let radius = Radius::new_f64(1.0).unwrap();
        assert_eq!(Frame::new(radius, &Domain::OPEN, &empty).centre, [0.0; 3]);
    }

    #[test]
    fn proxies_and_filter_radii_are_finite_everywhere() {
        for length in [None, Some(1e300), Some(1e10)] {
            for far in [1.0, 1e15, 1e30, 1e300, f64::MAX] {
                if length.is_some_and(|length| far > 1e9 * length) {
                    continue;
                }
                let frame = frame(9e18, -far, far, length);
                for x in [-far, 0.0, far] {
                    let (proxy, filter_r2) = proxy(&frame, [x; 3]);
                    assert!(proxy.iter().all(|p| p.is_finite()));
                    let most = 3.0 * 2f32.powi(124);
                    assert!(proxy.iter().all(|p| p * p <= most));
                    assert!(filter_r2.is_finite());
                    let shift = frame.proxy_shift([f32::INFINITY, 0.0, 0.0]);
                    assert!(length != Some(1e300) || far < 1e30 || shift == [0.0; 3]);
                }
            }
        }
    }

    #[test]
    fn an_outlier_does_not_make_the_filter_coarse_for_others() {
        let frame = frame(1.0, -50.0, 1e12, None);
        let (_, near) = proxy(&frame, [10.0, -20.0, 30.0]);
        assert!((1.0..1.001).contains(&near), "{near}");
        assert!(proxy(&frame, [1e12; 3]).1 > 1e10);
    }

    #[test]
    fn the_inner_bound_is_near_the_radius_or_below_every_square() {
        let near = frame(1.0, -50.0, 1e12, None);
        let inner = near.inner_r2(proxy(&near, [10.0, -20.0, 30.0]).1);
        assert!((0.999..1.0).contains(&inner), "{inner}");
        // Of an outlier, whose proxy is coarse.
        assert_eq!(near.inner_r2(proxy(&near, [1e12; 3]).1), -1.0);
        for (radius, far, length) in [
            (9e18, 1.0, None),
            (1.0, 1e300, None),
            (1.0, 1.0, Some(1e300)),
        ] {
            let frame = frame(radius, -far, far, length);
            assert_eq!(frame.inner_r2(proxy(&frame, [far; 3]).1), -1.0);
        }
    }

    #[test]
    fn powers_of_two_are_not_below_their_argument() {
        assert_eq!(power_of_two(0.0), 0.0);
        for exponent in -60..60 {
            let x = 2f64.powi(exponent);
            assert_eq!(power_of_two(x), x);
            assert_eq!(power_of_two(x.next_up()), 2.0 * x);
            assert_eq!(power_of_two(x.next_down()), x);
        }
    }
}
