//! The pairs of lists that were found earlier, at the positions the points have now.
//!
//! Lists name sources, not images. So a source is tested through every image that could be within
//! the radius, once even if the list names it several times, and the contract decides again. Lists
//! of a larger radius, or of positions that have moved a little since, thus give exactly the pairs
//! within the radius, as long as they hold every such source at least once. Verlet lists rest on
//! that.
//!
//! Where the box is more than twice as wide as lists reach, only the nearest image of a source can
//! be within the radius; [`Nearest`] evaluates sixteen sources at a time through it, without
//! branches. Otherwise [`ListWalk::visit`] walks all images that interval arithmetic does not rule
//! out.
//!
//! # Which images
//!
//! Along a periodic axis the image n can bring a difference d within the reach R only if |n + f| ≤
//! R/w, with f the fraction of the box that d is and w the width of the box across that axis. The
//! range of n is computed in `f64` with a relative margin far above all rounding
//! ([`PairArithmetic::SLACK`]), so no image that the contract finds is left out; images that it
//! does not find are tested and dropped.
//!
//! # Repeats
//!
//! Where the box is smaller than two radii a source may stand in a list several times, once per
//! image. Such lists are sorted and deduplicated first, because every source is tested through all
//! of its images anyway.
//!
//! # Lists that are out of date
//!
//! A list may name sources that are not neighbours now, sources that do not exist in the arrays
//! given, or be missing. Each is passed over: the test is made again, indices are checked against
//! the arrays, and a target without a list has no neighbours.

use super::{coordinate::PairArithmetic, listed::Block};
use crate::{
    contract::Image,
    error::Error,
    filter::{chosen::ChosenPoints, cutoffs::TypeCutoffs},
    lists::neighbor_lists::NeighborLists,
    sets::rule::SetRadii,
    simd::LANES,
};
use nearfield_grid::{
    Domain, Lattice, Radius,
    memory::{Shortage, make_room},
};
use nearfield_pairs::{ListKind, Pair};
use std::ops::RangeInclusive;

/// Lists, and the positions and radii they are evaluated with, in the precision of the positions.
///
/// Positions are those of now; lists may be older, see the head of the module's file.
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
    /// True if both are the same set, so that a point is not its own neighbour.
    pub same_set: bool,
    /// Pairs beyond this radius are passed over.
    pub radius: Radius,
    /// Radii of single points in the caller's order, none above `radius`; [`SetRadii::Uniform`]
    /// for `radius` itself.
    pub radii: SetRadii<&'a [T]>,
    /// Cut-offs by types, none above `radius`. Other filters are those of the lists.
    pub cutoffs: Option<TypeCutoffs<'a>>,
    /// The targets that get results; those of the others are left as they are.
    pub chosen: Option<&'a ChosenPoints>,
}

impl<T: PairArithmetic> StoredPairs<'_, T> {
    /// Calls `visit` with the index of every source within the radius of `target` that its list
    /// names, and the geometry of the pair (in double precision rounded to `f32` once it is
    /// decided); nothing for a target that has no list, nor where a radius is missing.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) where a box is smaller than two
    /// radii and there is no room for the sources of the list; nothing was visited then.
    pub fn for_each_neighbor(
        &self,
        target: usize,
        mut visit: impl FnMut(u32, Pair),
    ) -> Result<(), Error> {
        let mut seen = Vec::new();
        Ok(self.walk().visit(target, &mut seen, &mut visit)?)
    }

    /// The values that are worked out once for all targets.
    pub(crate) fn walk(&self) -> ListWalk<'_, T> {
        ListWalk {
            pairs: self,
            own: match (self.cutoffs, self.radii.sources()) {
                (Some(cutoffs), _) => OwnR2::Types(cutoffs),
                (None, Some(radii)) => OwnR2::Radii(radii),
                (None, None) => OwnR2::Targets,
            },
            reach: self.radius.value_f64() * (1.0 + T::SLACK),
            periodic: self.lattice.domain().is_periodic(),
            inverse: self.lattice.domain().inverse().map(|row| {
                row.map(|row @ [x, y, z]| InverseRow {
                    row,
                    length: x.hypot(y).hypot(z),
                })
            }),
            repeats: self.lattice.repeats(),
            nearest: self.nearest(),
        }
    }

    /// The evaluation through nearest images; None where another image can be within the radius
    /// too, or points have radii of their own.
    fn nearest(&self) -> Option<Nearest<'_, T>> {
        let domain = self.lattice.domain();
        let uniform = matches!(self.radii, SetRadii::Uniform) && self.cutoffs.is_none();
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
    /// Its index.
    target: usize,
    /// Its position.
    from: [T; 3],
    /// Its squared radius.
    r2: T,
}

/// fl(r·r) of the radius of a point, in the precision of the positions.
#[inline(always)]
fn squared<T: PairArithmetic>(radius: T) -> T {
    radius * radius
}

/// What the squared distance of a pair is compared with.
#[derive(Clone, Copy)]
enum OwnR2<'a, T> {
    /// The target's squared radius.
    Targets,
    /// The larger of that and the source's, of these radii.
    Radii(&'a [T]),
    /// The squared cut-off of both points' types.
    Types(TypeCutoffs<'a>),
}

/// A row of the inverse of the box vectors, and its length.
#[derive(Clone, Copy)]
struct InverseRow {
    /// The row.
    row: [f64; 3],
    /// Its length, one over the width of the box.
    length: f64,
}

/// Stored pairs with the values that are worked out once for all targets.
///
/// Made once per traversal; visiting a target only reads it.
pub(crate) struct ListWalk<'a, T> {
    /// The lists and positions.
    pub(crate) pairs: &'a StoredPairs<'a, T>,
    /// The evaluation through nearest images, where that is all.
    pub(super) nearest: Option<Nearest<'a, T>>,
    /// What sources add to the squared radius of the target.
    own: OwnR2<'a, T>,
    /// The radius with a margin for rounding.
    reach: f64,
    /// Some axis is periodic.
    periodic: bool,
    /// The inverse of the box vectors; `None` on open axes.
    inverse: [Option<InverseRow>; 3],
    /// A source may stand in a list several times.
    repeats: bool,
}

impl<T: PairArithmetic> ListWalk<'_, T> {
    /// Visits the neighbours of one target in the order of its list, or by index where sources
    /// repeat; `seen` is scratch.
    #[inline(always)]
    pub(super) fn visit(
        &self,
        target: usize,
        seen: &mut Vec<u32>,
        visit: &mut impl FnMut(u32, Pair),
    ) -> Result<(), Shortage> {
        self.visit_exactly(target, seen, &mut |index, _, d, d2| {
            visit(index, rounded(d, d2));
        })
    }

    /// The same with the image of every source, in counts of the lattice's vectors, and the
    /// geometry of the pair in the precision of the positions.
    #[inline(always)]
    pub(crate) fn visit_exactly(
        &self,
        target: usize,
        seen: &mut Vec<u32>,
        visit: &mut impl FnMut(u32, Image, [T; 3], T),
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
    pub(super) fn list(&self, target: usize) -> &[u32] {
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

    /// The square that the squared distance between a target and a source is compared with; `None`
    /// where a radius is missing.
    #[inline(always)]
    fn r2(&self, target: &Target<T>, source: u32) -> Option<T> {
        let radii = match self.own {
            OwnR2::Targets => return Some(target.r2),
            OwnR2::Radii(radii) => radii,
            OwnR2::Types(cutoffs) => {
                let squared = cutoffs.squared(target.target, source as usize);
                return squared.map(T::of);
            }
        };
        let r2 = squared(*radii.get(source as usize)?);
        Some(if r2 > target.r2 { r2 } else { target.r2 })
    }

    /// Visits in an open domain, where no point stands in its own list and there are no images.
    #[inline(always)]
    fn visit_open(
        &self,
        target: &Target<T>,
        list: &[u32],
        visit: &mut impl FnMut(u32, Image, [T; 3], T),
    ) {
        let from = target.from;
        for &index in list {
            let to = self.pairs.sources.get(index as usize);
            let (Some(to), Some(r2)) = (to, self.r2(target, index)) else {
                continue;
            };
            let d = [to[0] - from[0], to[1] - from[1], to[2] - from[2]];
            let d2 = T::squared(d);
            if d2 <= r2 {
                visit(index, [0; 3], d, d2);
            }
        }
    }

    /// Visits through all images, for a list in which every source stands once. The loops over
    /// images are at most one iteration each where the box is wide.
    #[inline(always)]
    fn visit_images(
        &self,
        target: &Target<T>,
        list: &[u32],
        visit: &mut impl FnMut(u32, Image, [T; 3], T),
    ) {
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
                        let left_out = if half {
                            self.pairs.lattice.domain().given_image(image) <= [0; 3]
                        } else {
                            image == [0; 3]
                        };
                        let shift = T::image_vector(self.pairs.lattice.domain(), image);
                        let d = [d[0] + shift[0], d[1] + shift[1], d[2] + shift[2]];
                        let d2 = T::squared(d);
                        if d2 <= r2 && !(itself && left_out) {
                            visit(index, image, d, d2);
                        }
                    }
                }
            }
        }
    }

    /// Images along an axis that can bring a difference `d` within the radius.
    ///
    /// An empty range where no image can reach, also when the difference has overflowed.
    #[inline(always)]
    fn images(&self, axis: usize, d: [f64; 3]) -> RangeInclusive<i64> {
        let Some(InverseRow { row, length }) = self.inverse[axis] else {
            return 0..=0;
        };
        // Twice the largest component is no less than the length, and does not overflow where a
        // sum of squares would.
        let largest = d.iter().fold(0.0f64, |max, d| max.max(d.abs()));
        let reach = (self.reach + 2.0 * T::SLACK * largest) * length;
        let boxes = row[0] * d[0] + row[1] * d[1] + row[2] * d[2];
        if !reach.is_finite() {
            // The difference overflowed, so it is beyond the radius by the contract too. (The
            // empty range; its ends are such that no image lies between.)
            return RangeInclusive::new(1, 0);
        }
        (-reach - boxes).ceil() as i64..=(reach - boxes).floor() as i64
    }
}

/// Pairs through their nearest images. The others are beyond the radius where the box is more than
/// twice as wide, so it does not matter to which side a share of exactly a half is rounded.
///
/// The nearest image is the one whose fraction rounds to zero. Fractions are computed in `f64`,
/// the displacement as the contract does, and the test decides as always.
pub(super) struct Nearest<'a, T> {
    /// The box.
    domain: &'a Domain,
    /// The box is tilted.
    tilted: bool,
    /// Length along every periodic axis.
    lengths: [Option<f64>; 3],
    /// Rows of the inverse of the box vectors.
    inverse: [Option<[f64; 3]>; 3],
    /// fl(r·r).
    r2: T,
}

impl<T: PairArithmetic> Nearest<'_, T> {
    /// The pairs of a target and up to [`LANES`] sources.
    #[inline(always)]
    pub(super) fn block(
        &self,
        pairs: &StoredPairs<'_, T>,
        target: usize,
        sources: &[u32],
    ) -> Block {
        let from = pairs.targets[target];
        let mut d = [[T::default(); LANES]; 3];
        for (lane, &source) in sources.iter().enumerate().take(LANES) {
            let to = pairs.sources[source as usize];
            for axis in 0..3 {
                d[axis][lane] = to[axis] - from[axis];
            }
        }
        if self.tilted {
            self.shift_tilted(&mut d);
        } else {
            self.shift_straight(&mut d);
        }
        let mut block = Block {
            d: [[0.0; LANES]; 3],
            d2: [0.0; LANES],
            near: [false; LANES],
        };
        for lane in 0..LANES {
            let [x, y, z] = [d[0][lane], d[1][lane], d[2][lane]];
            let squared = T::squared([x, y, z]);
            block.near[lane] = squared <= self.r2 && lane < sources.len();
            block.d[0][lane] = x.rounded();
            block.d[1][lane] = y.rounded();
            block.d[2][lane] = z.rounded();
            block.d2[lane] = squared.rounded();
        }
        block
    }

    /// Adds the nearest image vectors of a straight box.
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

    /// Adds the nearest image vectors of a tilted box.
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

/// The pair as kernels see it, rounded to `f32`.
#[inline(always)]
fn rounded<T: PairArithmetic>(d: [T; 3], d2: T) -> Pair {
    Pair {
        d: d.map(T::rounded),
        d2: d2.rounded(),
    }
}
