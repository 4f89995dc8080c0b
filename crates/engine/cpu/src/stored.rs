//! The pairs of lists that were found earlier, at the positions the points have now.
//!
//! Lists name sources, not images. A source is therefore looked at through every image that could
//! be within the radius, once however often it stands in the list, and the contract decides anew:
//! lists of a larger radius, or of positions that have moved a little since, give exactly the pairs
//! within the radius, as long as they hold every such source at least once.

use crate::{Coordinate, CpuBackend, Error, NeighborLists, SetRadii, simd::LANES};
use nearfield_grid::{
    Domain, Grid, Lattice, Radius, SharedMut,
    memory::{Shortage, make_room},
    parallel::PoolLoops,
};
use nearfield_pairs::{ListKind, Pair};
use rayon::prelude::*;
use std::ops::RangeInclusive;

/// Lists and what they are evaluated with, in the precision of the positions.
#[derive(Debug, Clone, Copy)]
pub struct StoredPairs<'a, T = f32> {
    /// For every target, every source within the radius, and possibly others.
    pub lists: &'a NeighborLists,
    /// Which pairs the lists hold.
    pub kind: ListKind,
    /// The lattice on which the lists were found.
    pub lattice: &'a Lattice,
    /// Positions of the targets, in the caller's order.
    pub targets: &'a [[T; 3]],
    /// Positions of the sources, in the caller's order.
    pub sources: &'a [[T; 3]],
    /// Whether both are the same set, so that a point is not its own neighbour.
    pub same_set: bool,
    /// Pairs beyond this radius are passed over.
    pub radius: Radius,
    /// Radii of single points in the caller's order, none above `radius`; [`SetRadii::Uniform`]
    /// for `radius` itself.
    pub radii: SetRadii<&'a [f32]>,
}

impl<T: Coordinate> StoredPairs<'_, T> {
    /// Calls `visit` with the index of every source within the radius of `target` that its list
    /// names, and the geometry of the pair (in double precision rounded to `f32` once it is
    /// decided); nothing for a target that has no list, nor where a radius is missing.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] where a box is smaller than two radii and there is no room for the
    /// sources of the list; nothing was visited then.
    pub fn for_each_neighbor(
        &self,
        target: usize,
        mut visit: impl FnMut(u32, Pair),
    ) -> Result<(), Error> {
        let mut seen = Vec::new();
        Ok(self.walk().visit(target, &mut seen, &mut visit)?)
    }

    /// What all targets have in common.
    pub(crate) fn walk(&self) -> ListWalk<'_, T> {
        ListWalk {
            pairs: self,
            radii: self.radii.sources().copied(),
            reach: self.radius.value_f64() * (1.0 + T::SLACK),
            periodic: self.lattice.domain().is_periodic(),
            inverse: (self.lattice.domain().inverse())
                .map(|row| row.map(|[x, y, z]| ([x, y, z], x.hypot(y).hypot(z)))),
            repeats: self.lattice.repeats(),
            nearest: self.nearest(),
        }
    }

    /// How pairs are looked at where only their nearest image can be within the radius and all points
    /// have one radius.
    fn nearest(&self) -> Option<Nearest<'_, T>> {
        let domain = self.lattice.domain();
        let uniform = matches!(self.radii, SetRadii::Uniform);
        (uniform && !self.lattice.repeats()).then(|| Nearest {
            domain,
            tilted: domain.is_tilted(),
            lengths: domain.lengths(),
            inverse: domain.inverse(),
            r2: T::squared_radius(self.radius),
        })
    }
}

/// A target and its squared radius; the larger of this and the source's counts.
struct Target<T> {
    target: usize,
    from: [T; 3],
    r2: T,
}

/// fl(r·r) of the radius of a point, in the precision of the positions.
#[inline(always)]
fn squared<T: Coordinate>(radius: f32) -> T {
    T::from(radius) * T::from(radius)
}

/// Stored pairs with what is worked out once for all targets.
pub(crate) struct ListWalk<'a, T> {
    pub(crate) pairs: &'a StoredPairs<'a, T>,
    pub(crate) nearest: Option<Nearest<'a, T>>,
    /// Of the sources.
    radii: Option<&'a [f32]>,
    reach: f64,
    periodic: bool,
    /// Of the box vectors, each with its length; `None` on open axes.
    inverse: [Option<([f64; 3], f64)>; 3],
    /// Whether a source may stand in a list several times.
    repeats: bool,
}

impl<T: Coordinate> ListWalk<'_, T> {
    /// Visits the neighbours of one target in the order of its list, or by index where sources
    /// repeat; `seen` is scratch.
    #[inline(always)]
    pub(crate) fn visit(
        &self,
        target: usize,
        seen: &mut Vec<u32>,
        visit: &mut impl FnMut(u32, Pair),
    ) -> Result<(), Shortage> {
        let pairs = self.pairs;
        let (Some(&from), true) = (pairs.targets.get(target), target < pairs.lists.len()) else {
            return Ok(());
        };
        let Some(r2) = self.target_r2(target) else {
            return Ok(());
        };
        let list = pairs.lists.of(target);
        let target = Target { target, from, r2 };
        if !self.periodic {
            self.visit_open(&target, list, visit);
        } else if self.repeats {
            seen.clear();
            make_room(seen, list.len(), "the sources of a list")?;
            seen.extend_from_slice(list);
            seen.sort_unstable();
            seen.dedup();
            self.visit_images(&target, seen, visit);
        } else {
            self.visit_images(&target, list, visit);
        }
        Ok(())
    }

    /// The list of a target; empty where it has none.
    #[inline(always)]
    pub(crate) fn list(&self, target: usize) -> &[u32] {
        let there = target < self.pairs.lists.len() && target < self.pairs.targets.len();
        if there {
            self.pairs.lists.of(target)
        } else {
            &[]
        }
    }

    /// Squared radius of a target; `None` where it is missing.
    #[inline(always)]
    fn target_r2(&self, target: usize) -> Option<T> {
        match &self.pairs.radii {
            SetRadii::Uniform => Some(T::squared_radius(self.pairs.radius)),
            SetRadii::Gather { targets } | SetRadii::Symmetric { targets, .. } => {
                targets.get(target).copied().map(squared)
            }
            // Only the sources' radii count: below any square.
            SetRadii::Scatter { .. } => Some(T::from(-1.0)),
        }
    }

    /// What the squared distance between a target and a source is compared with; `None` where a
    /// radius is missing.
    #[inline(always)]
    fn r2(&self, target: &Target<T>, source: u32) -> Option<T> {
        let Some(radii) = self.radii else {
            return Some(target.r2);
        };
        let r2 = squared(*radii.get(source as usize)?);
        Some(if r2 > target.r2 { r2 } else { target.r2 })
    }

    /// In an open domain, where no point stands in its own list.
    #[inline(always)]
    fn visit_open(&self, target: &Target<T>, list: &[u32], visit: &mut impl FnMut(u32, Pair)) {
        let from = target.from;
        for &index in list {
            let to = self.pairs.sources.get(index as usize);
            let (Some(to), Some(r2)) = (to, self.r2(target, index)) else {
                continue;
            };
            let d = [to[0] - from[0], to[1] - from[1], to[2] - from[2]];
            let d2 = T::squared(d);
            if d2 <= r2 {
                visit(index, rounded(d, d2));
            }
        }
    }

    /// Through all images, for a list in which every source stands once.
    #[inline(always)]
    fn visit_images(&self, target: &Target<T>, list: &[u32], visit: &mut impl FnMut(u32, Pair)) {
        let from = target.from;
        let half = self.pairs.kind == ListKind::Half;
        for &index in list {
            let to = self.pairs.sources.get(index as usize);
            let (Some(to), Some(r2)) = (to, self.r2(target, index)) else {
                continue;
            };
            let itself = self.pairs.same_set && index as usize == target.target;
            let d = [to[0] - from[0], to[1] - from[1], to[2] - from[2]];
            let difference = d.map(Into::into);
            for x in self.images(0, difference) {
                for y in self.images(1, difference) {
                    for z in self.images(2, difference) {
                        let image = [x, y, z];
                        let left_out = match half {
                            false => image == [0; 3],
                            true => image <= [0; 3],
                        };
                        let shift = T::image_vector(self.pairs.lattice.domain(), image);
                        let d = [d[0] + shift[0], d[1] + shift[1], d[2] + shift[2]];
                        let d2 = T::squared(d);
                        if d2 <= r2 && !(itself && left_out) {
                            visit(index, rounded(d, d2));
                        }
                    }
                }
            }
        }
    }

    /// Images along an axis that can bring a difference `d` within the radius.
    #[inline(always)]
    fn images(&self, axis: usize, d: [f64; 3]) -> RangeInclusive<i64> {
        let Some((inverse, length)) = self.inverse[axis] else {
            return 0..=0;
        };
        // Twice the largest component is no less than the length, and does not overflow where a
        // sum of squares would.
        let largest = d.iter().fold(0.0f64, |most, d| most.max(d.abs()));
        let reach = (self.reach + 2.0 * T::SLACK * largest) * length;
        let boxes = inverse[0] * d[0] + inverse[1] * d[1] + inverse[2] * d[2];
        if !reach.is_finite() {
            // The difference overflowed, so it is beyond the radius by the contract too. (The
            // empty range; its ends are such that no image lies between.)
            return RangeInclusive::new(1, 0);
        }
        (-reach - boxes).ceil() as i64..=(reach - boxes).floor() as i64
    }
}

/// Pairs through their nearest images: the others are beyond the radius where the box is more than
/// twice as wide, so that it does not matter to which side a share of a half is rounded.
pub(crate) struct Nearest<'a, T> {
    domain: &'a Domain,
    tilted: bool,
    lengths: [Option<f64>; 3],
    inverse: [Option<[f64; 3]>; 3],
    r2: T,
}

/// Displacements, their squares and whether they are within the radius.
pub(crate) type Batch = ([[f32; LANES]; 3], [f32; LANES], [bool; LANES]);

impl<T: Coordinate> Nearest<'_, T> {
    /// A target and up to [`LANES`] sources.
    #[inline(always)]
    pub(crate) fn batch(
        &self,
        pairs: &StoredPairs<'_, T>,
        target: usize,
        sources: &[u32],
    ) -> Batch {
        let from = pairs.targets[target];
        let mut d = [[T::default(); LANES]; 3];
        for (lane, &source) in sources.iter().enumerate().take(LANES) {
            let to = pairs.sources[source as usize];
            for axis in 0..3 {
                d[axis][lane] = to[axis] - from[axis];
            }
        }
        match self.tilted {
            false => self.shift_straight(&mut d),
            true => self.shift_tilted(&mut d),
        }
        let mut single = [[0.0; LANES]; 3];
        let (mut d2, mut near) = ([0.0; LANES], [false; LANES]);
        for lane in 0..LANES {
            let [x, y, z] = [d[0][lane], d[1][lane], d[2][lane]];
            let squared = T::squared([x, y, z]);
            near[lane] = squared <= self.r2 && lane < sources.len();
            (single[0][lane], single[1][lane]) = (x.rounded(), y.rounded());
            (single[2][lane], d2[lane]) = (z.rounded(), squared.rounded());
        }
        (single, d2, near)
    }

    #[inline(always)]
    fn shift_straight(&self, d: &mut [[T; LANES]; 3]) {
        for axis in 0..3 {
            let Some(length) = self.lengths[axis] else {
                continue;
            };
            let inverse = 1.0 / length;
            for d in &mut d[axis] {
                let difference: f64 = (*d).into();
                let image = -(difference * inverse).round_ties_even();
                *d = *d + T::of(image * length);
            }
        }
    }

    #[inline(always)]
    fn shift_tilted(&self, d: &mut [[T; LANES]; 3]) {
        for lane in 0..LANES {
            let difference: [f64; 3] = [0, 1, 2].map(|axis| d[axis][lane].into());
            let image = self.inverse.map(|row| {
                row.map_or(0, |[x, y, z]| {
                    let share = x * difference[0] + y * difference[1] + z * difference[2];
                    -share.round_ties_even() as i64
                })
            });
            let shift = T::image_vector(self.domain, image);
            for axis in 0..3 {
                d[axis][lane] = d[axis][lane] + shift[axis];
            }
        }
    }
}

/// What is handed out with a pair.
#[inline(always)]
fn rounded<T: Coordinate>(d: [T; 3], d2: T) -> Pair {
    Pair {
        d: d.map(T::rounded),
        d2: d2.rounded(),
    }
}

impl CpuBackend {
    /// Positions of a grid's points in the caller's order, in the precision of its lattice.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn positions<T: Coordinate>(&self, grid: &Grid) -> Result<Vec<[T; 3]>, Error> {
        let points = grid.points();
        let mut positions = Vec::new();
        positions
            .try_reserve_exact(points.len())
            .map_err(|_| Error::OutOfMemory {
                bytes: size_of::<[T; 3]>().saturating_mul(points.len()),
                what: "positions in the caller's order",
            })?;
        positions.resize(points.len(), [T::default(); 3]);
        let place = SharedMut::new(&mut positions);
        self.install(|| {
            (0..points.len())
                .into_par_iter()
                .with_min_len(1 << 12)
                .run(|slot| {
                    let index = points.index()[slot] as usize;
                    // SAFETY: every index stands once among the sorted points, and all are below
                    // their number.
                    unsafe { place.write(index, T::sorted(points, slot)) };
                });
        });
        Ok(positions)
    }
}
