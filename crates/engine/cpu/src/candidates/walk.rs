//! The input of a search: two sorted sets, and which of their pairs are requested.
//!
//! **Invariant:** a [`Walk`] is made by [`Walk::new`] only, which checks what the loops take for
//! granted: both grids are in the same precision, and every sorted point has a radius where radii
//! count.
//!
//! # Half lists
//!
//! Candidates of a half list carry a rank: the tag, plus one in positive images.
//! A candidate belongs to the list if its rank is above the target's index: j > i in any image, or
//! j = i in a positive one, with one comparison.
//!
//! # Shares
//!
//! A share names the bricks of a backend. Its targets are marked as they are searched, so another
//! backend's results are never overwritten.

use super::{
    gather::inside,
    mixing::Mixing,
    mode::{EXACT, Mode, PROXIES, RADII, Tag, has},
    near::Near,
    scan::ExactSelect,
};
use crate::{
    error::{Error, ErrorKind},
    filter::PairFilter,
    sets::{
        PairOfSets,
        radii::SortedRadii,
        rule::{RadiusRule, SetRadii},
        share::Share,
    },
    simd::{LANES, vector::Compress},
};
use nearfield_grid::{DoublePoints, Grid, MAX_POINTS, MAX_RUNS};
use nearfield_pairs::ListKind;
use std::ops::Range;

/// Share of the squared radius by which the inner bound of a group may be smaller for proxies to
/// decide. At 1/64 one candidate in some forty lies between the bounds.
const MAX_BETWEEN: f32 = 1.0 / 64.0;

/// The state that all groups of a search share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walk<'a> {
    /// The set that searches.
    pub(crate) targets: &'a Grid,
    /// The set that is searched.
    pub(crate) sources: &'a Grid,
    /// Targets and sources are one set, so that a point must not find itself.
    pub(crate) same_set: bool,
    /// The name that candidates get.
    pub(crate) tag: Tag,
    /// Candidates need ranks, for half lists.
    pub(crate) ranked: bool,
    /// Radii of single points.
    pub(crate) radii: Radii<'a>,
    /// Whether the radii of targets and those of sources count.
    pub(crate) counts: [bool; 2],
    /// Only the targets themselves and the points after them are candidates, around the box where
    /// the domain is periodic, so that every pair of a set is met once. The targets then come
    /// first. Of a share, in an open domain, points before a target are candidates too where no
    /// target of the share meets them from the other side.
    pub(crate) ahead: bool,
    /// Pieces name the image of every candidate, also where candidates are
    /// [mixed](super::mixed).
    pub(crate) images: bool,
    /// How points are moved into the box where they may be [mixed](super::mixed).
    pub(crate) mixing: Option<Mixing>,
    /// No geometry is asked for, so that in double precision [proxies may decide](super::near).
    pub(crate) proxies: bool,
    /// Pairs within the radius that are left out. Candidates are then called by index, in double
    /// precision by slot.
    pub(crate) filter: PairFilter<'a>,
    /// Which targets are searched for, if not all.
    pub(crate) share: Option<Share<'a>>,
}

/// Squared radii per sorted point, where they are not all the lattice's; in double precision
/// bounds of the filter.
///
/// Under the rule "gather" only targets have radii, under "scatter" only sources, under
/// "symmetric" both.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Radii<'a> {
    /// Of the targets.
    pub(crate) targets: Option<&'a [f32]>,
    /// Of the sources, padded as the coordinates are.
    pub(crate) sources: Option<&'a [f32]>,
    /// The largest of the sources; 0 where these do not count, or are at most the lattice's.
    max_source: f32,
    /// In double precision the squared radii themselves; none where all are the lattice's.
    pub(crate) exact: SidesOf<&'a [f64]>,
}

/// What there is of targets and of sources.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SidesOf<T> {
    /// Of the targets.
    pub(crate) targets: Option<T>,
    /// Of the sources.
    pub(crate) sources: Option<T>,
}

impl<'a> From<SetRadii<&'a SortedRadii>> for Radii<'a> {
    fn from(radii: SetRadii<&'a SortedRadii>) -> Self {
        Self {
            targets: radii.targets().map(|radii| radii.squared()),
            sources: radii.sources().map(|radii| radii.squared()),
            max_source: radii.sources().map_or(0.0, |radii| radii.max_bound()),
            exact: SidesOf {
                targets: radii.targets().and_then(|radii| radii.exact()),
                sources: radii.sources().and_then(|radii| radii.exact()),
            },
        }
    }
}

impl Radii<'_> {
    /// Squared radius of sorted target `slot`, `uniform` where points have none of their own. The
    /// larger of this and the source's own counts.
    #[inline(always)]
    pub(crate) fn of_target(&self, slot: usize, uniform: f32) -> f32 {
        match (self.targets, self.sources) {
            (None, None) => uniform,
            (Some(r2), _) => r2[slot],
            // Only the sources' radii count: below any square.
            (None, Some(_)) => -1.0,
        }
    }

    /// The same in double precision.
    #[inline(always)]
    pub(crate) fn of_target_f64(&self, slot: usize, uniform: f64) -> f64 {
        match (self.exact.targets, self.exact.sources) {
            (None, None) => uniform,
            (Some(r2), _) => r2[slot],
            (None, Some(_)) => -1.0,
        }
    }

    /// Returns true if points have radii of their own, in double precision.
    #[inline(always)]
    pub(crate) fn are_exact(&self) -> bool {
        self.exact.targets.is_some() || self.exact.sources.is_some()
    }

    /// Returns true if j is a neighbour of i whenever i is one of j.
    pub(crate) fn are_symmetric(&self) -> bool {
        self.targets.is_some() == self.sources.is_some()
    }
}

/// Images of a point within the radius where no box is smaller than that, the point itself
/// included.
const NEIGHBOUR_BOXES: usize = 27;

impl<'a> Walk<'a> {
    /// The walk of a search of the sets, with candidates called by `tag`.
    ///
    /// # Errors
    /// [`ErrorKind::Sets`], [`ErrorKind::RadiiLength`], [`ErrorKind::OutputLength`] for a share
    /// whose marks are too few, [`ErrorKind::HalfRule`], [`ErrorKind::RadiiPrecision`], and those
    /// of [`PairFilter::check`].
    pub(crate) fn new(sets: PairOfSets<'a>, tag: Tag, kind: ListKind) -> Result<Self, Error> {
        sets.check()?;
        sets.radii.check(
            sets.targets.points().len(),
            sets.sources.points().len(),
            |radii| radii.len(),
        )?;
        let given = sets.targets.given();
        if let Some(share) = sets.share.filter(|share| share.taken.len() < given) {
            return Err(ErrorKind::OutputLength {
                found: share.taken.len(),
                expected: given,
            }
            .into());
        }
        let points = [sets.targets, sets.sources].map(Grid::given);
        sets.filter
            .check(points, sets.sources.lattice().radius(), kind, sets.same_set)?;
        sets.ready()?;
        let rule = sets.radii.rule();
        if kind == ListKind::Half && sets.same_set && !rule.is_symmetric() {
            return Err(ErrorKind::HalfRule { rule }.into());
        }
        let mut walk = Self {
            targets: sets.targets,
            sources: sets.sources,
            same_set: sets.same_set,
            tag,
            ranked: kind == ListKind::Half && sets.same_set && sets.filter.is_none(),
            radii: sets.radii.into(),
            counts: sets.counts(),
            ahead: false,
            images: !sets.filter.is_none(),
            proxies: false,
            mixing: Mixing::of(sets.targets, sets.sources),
            filter: sets.filter,
            share: sets.share,
        };
        if !walk.filter.is_none() {
            walk.tag = match walk.double() {
                Some(_) => Tag::Slot,
                None => Tag::Index,
            };
        }
        if rule == RadiusRule::Uniform && walk.double().is_some() {
            return Ok(walk.filtering());
        }
        Ok(walk)
    }

    /// The walk of a search for lists or their lengths, with candidates called by the caller's
    /// index.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn of_lists(sets: PairOfSets<'a>, kind: ListKind) -> Result<Self, Error> {
        let filter = sets.filter;
        if !filter.is_by_name() {
            let mut walk = Self::new(sets, Tag::Index, kind)?;
            walk.proxies = walk.filter.is_none();
            return Ok(walk);
        }
        // Found as without filters.
        sets.check()?;
        let points = [sets.targets, sets.sources].map(Grid::given);
        filter.check(points, sets.sources.lattice().radius(), kind, sets.same_set)?;
        let plain = PairOfSets {
            filter: PairFilter::default(),
            ..sets
        };
        let mut walk = Self::new(plain, Tag::Index, kind)?;
        (walk.proxies, walk.filter) = (true, filter);
        Ok(walk)
    }

    /// The walk over candidates that are decided in double precision.
    ///
    /// They are gathered by proxies: the filter's bound per target takes the place of a squared
    /// radius, so the loops for radii of targets serve it.
    fn filtering(mut self) -> Self {
        self.radii.targets = self.targets.points().double().map(DoublePoints::filter_r2);
        self
    }

    /// Positions in double precision of targets and sources, where the search is in double
    /// precision.
    #[inline(always)]
    pub(crate) fn double(&self) -> Option<[&'a DoublePoints; 2]> {
        let (targets, sources) = (self.targets.points(), self.sources.points());
        Some([targets.double()?, sources.double()?])
    }

    /// Sorted target `slot` in double precision; zeros in single precision.
    #[inline(always)]
    pub(crate) fn exact_select(&self, slot: usize) -> ExactSelect {
        match self.targets.points().double() {
            None => ExactSelect::NONE,
            Some(double) => ExactSelect {
                target: double.position(slot),
                r2: (self.radii).of_target_f64(slot, self.sources.lattice().radius().squared_f64()),
            },
        }
    }

    /// Returns true if groups may have more candidates than are held at once, because points have a
    /// great many images within the radius.
    pub(crate) fn may_be_long(&self) -> bool {
        let images = self.sources.lattice().max_images();
        let points = self.sources.points().len();
        images > NEIGHBOUR_BOXES
            && (images > MAX_RUNS || images.saturating_mul(points) > MAX_POINTS)
    }

    /// Squared radius of sorted target `slot`; the larger of this and the candidate's own counts.
    #[inline(always)]
    pub(crate) fn r2(&self, slot: usize) -> f32 {
        let uniform = self.sources.lattice().radius().squared();
        self.radii.of_target(slot, uniform)
    }

    /// Largest squared radius of the targets `slots`.
    #[inline(always)]
    pub(crate) fn max_r2(&self, slots: &Range<usize>) -> f32 {
        match self.radii.targets {
            None => self.r2(slots.start),
            Some(r2) => r2[slots.clone()].iter().fold(0.0, |max, &r2| max.max(r2)),
        }
    }

    /// Bounding box of the targets `slots`, which are at least one: its lower and its upper corner.
    ///
    /// # Safety
    /// The processor has the vector's level.
    #[inline(always)]
    pub(super) unsafe fn bounds<V: Compress>(&self, slots: &Range<usize>) -> ([f32; 3], [f32; 3]) {
        let axes = self.targets.points().axes();
        let (mut lows, mut highs) = ([0.0; 3], [0.0; 3]);
        for axis in 0..3 {
            let first = axes[axis][slots.start];
            let (mut all_low, mut all_high) = ([first; LANES], [first; LANES]);
            // SAFETY: the caller guarantees the level; sorted points are padded by LANES, and the
            // arrays are as long as any vector.
            unsafe {
                let first = V::splat(first);
                let (mut low, mut high) = (first, first);
                let mut slot = slots.start;
                while slot < slots.end {
                    let from = axes[axis].as_ptr().add(slot);
                    // Lanes after the last target repeat the first.
                    let x = V::expand(from, inside::<V>(slot, slots.end), first);
                    (low, high) = (x.min(low), x.max(high));
                    slot += V::LANES;
                }
                low.store(all_low.as_mut_ptr());
                high.store(all_high.as_mut_ptr());
            }
            let mut half = V::LANES / 2;
            while half > 0 {
                for lane in 0..half {
                    let (low, high) = (all_low[lane + half], all_high[lane + half]);
                    all_low[lane] = if low < all_low[lane] {
                        low
                    } else {
                        all_low[lane]
                    };
                    all_high[lane] = if high > all_high[lane] {
                        high
                    } else {
                        all_high[lane]
                    };
                }
                half /= 2;
            }
            (lows[axis], highs[axis]) = (all_low[0], all_high[0]);
        }
        (lows, highs)
    }

    /// Largest distance of a neighbour, as compared, from targets with this largest squared radius.
    #[inline(always)]
    pub(super) fn max_radius(&self, max_r2: f32) -> f32 {
        // The radius of the lattice is the largest of all points; in double precision the filter's
        // is larger.
        let radius = self.sources.lattice().radius().value();
        let filter = max_r2.max(self.radii.max_source).sqrt();
        if filter > radius { filter } else { radius }
    }

    /// The bits of the mode of a group of targets with this largest squared radius, or filter bound
    /// in double precision, whatever images its candidates are seen through.
    #[inline(always)]
    pub(crate) fn mode(&self, max_r2: f32) -> Mode {
        if self.radii.sources.is_none() {
            self.decided(max_r2)
        } else if self.radii.exact.sources.is_some() {
            EXACT | RADII
        } else {
            RADII
        }
    }

    /// How the candidates of targets whose largest filter bound is `filter_r2` are decided in
    /// double precision, as a bit of the mode; 0 in single precision.
    #[inline(always)]
    fn decided(&self, filter_r2: f32) -> Mode {
        if self.double().is_none() {
            return 0;
        }
        let lattice = self.sources.lattice();
        let min_r2 = lattice.radius().squared() * (1.0 - MAX_BETWEEN);
        if self.proxies && !self.radii.are_exact() && lattice.inner_r2(filter_r2) >= min_r2 {
            PROXIES
        } else {
            EXACT
        }
    }

    /// The positions that decide near the radius of the sorted target `slot`, for [`PROXIES`]. The
    /// inner bound is that of its group, whose largest filter bound is `filter_r2`.
    #[inline(always)]
    pub(crate) fn near(&self, slot: usize, filter_r2: f32) -> Near<'a> {
        let lattice = self.sources.lattice();
        Near {
            inner_r2: lattice.inner_r2(filter_r2),
            slot,
            r2: lattice.radius().squared_f64(),
            points: self.double(),
        }
    }

    /// The name that candidates of a group are gathered by. Those that are to carry their positions
    /// in double precision are gathered by slot, and named once these have been looked up.
    #[inline(always)]
    pub(super) fn gathered_tag(&self, mode: Mode) -> Tag {
        if has(mode, EXACT) {
            Tag::Slot
        } else {
            self.tag
        }
    }
}
