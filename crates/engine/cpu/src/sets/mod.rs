//! The pair of sets that a request is about: which targets search which sources, by whose radius,
//! and which share of the targets.
//!
//! Both sets are grids, sorted on the same lattice. [`PairOfSets::check`] refuses pairs for which
//! the loops would be unsound; everything else in this crate relies on it.
//!
//! # Same set
//!
//! A set that searches itself leaves every point out of its own list, and only there may pairs be
//! evaluated once for both points. The flag and the pointers must agree: a flag that said "same"
//! of two grids would let loops identify a source by the target's slot. [`PairOfSets::check`]
//! compares the addresses of the grids.
//!
//! **Invariant:** a [`PairOfSets`] that passed [`PairOfSets::check`] has both sets in one
//! precision, and says "same set" of one grid only.

pub(crate) mod levels;
pub(crate) mod pairs;
pub(crate) mod radii;
pub(crate) mod rule;
pub(crate) mod share;
pub(crate) mod visit;

use crate::{
    error::{Error, ErrorKind},
    filter::PairFilter,
};
use nearfield_grid::Grid;
use radii::SortedRadii;
use rule::SetRadii;
use share::Share;

/// The set that searches and the set that is searched; both are sorted on the same lattice.
#[derive(Debug, Clone, Copy)]
pub struct PairOfSets<'a> {
    /// Points that search.
    pub targets: &'a Grid,
    /// Points that are found.
    pub sources: &'a Grid,
    /// True if both are the same set, so that a point is not its own neighbour. Both are then the
    /// same grid; anything else is refused.
    pub same_set: bool,
    /// Radii of single points, none above the grids'; [`SetRadii::Uniform`] for the grids' radius.
    pub radii: SetRadii<&'a SortedRadii>,
    /// Pairs within the radius that are left out; not together with a share.
    pub filter: PairFilter<'a>,
    /// Which targets are searched for; None for all. Results of the others are left as they were.
    pub share: Option<Share<'a>>,
}

impl PairOfSets<'_> {
    /// Refuses two grids that are said to be one set, and grids of different precisions.
    ///
    /// # Errors
    /// [`ErrorKind::Sets`].
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refuse = |reason| Err(ErrorKind::Sets { reason }.into());
        if self.same_set && !std::ptr::eq(self.targets, self.sources) {
            return refuse("they are said to be the same, but two grids are given");
        }
        let double = |grid: &Grid| !grid.points().is_empty() && grid.points().double().is_some();
        let single = |grid: &Grid| !grid.points().is_empty() && grid.points().double().is_none();
        let mixed = double(self.targets) && single(self.sources)
            || single(self.targets) && double(self.sources);
        if mixed {
            return refuse("one of them was sorted in f64 and the other in f32");
        }
        if self.share.is_some() && !self.filter.is_none() {
            return refuse("a share of the targets is searched without filters");
        }
        self.check_radii()
    }

    /// Refuses radii that were sorted in another precision than the points.
    ///
    /// # Errors
    /// [`ErrorKind::RadiiPrecision`].
    fn check_radii(&self) -> Result<(), Error> {
        let sides = [
            (self.radii.targets(), self.targets),
            (self.radii.sources(), self.sources),
        ];
        let differs = sides.into_iter().any(|(radii, grid)| {
            let is_double = |radii: &&SortedRadii| radii.exact().is_some();
            let points = grid.points();
            let radii = radii.filter(|_| !points.is_empty());
            radii.is_some_and(|radii| is_double(radii) != points.double().is_some())
        });
        if differs {
            return Err(ErrorKind::RadiiPrecision.into());
        }
        Ok(())
    }

    /// Whether the radii of targets and those of sources count.
    pub(crate) fn counts(&self) -> [bool; 2] {
        let rule = self.radii.rule();
        [rule.needs_targets(), rule.needs_sources()]
    }

    /// Makes the rows of cells that are in reach, where points were
    /// [sorted by their radii](crate::CpuBackend::sort_by_radii).
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`], and [`ErrorKind::Sets`] for a share of them.
    pub(crate) fn ready(&self) -> Result<(), Error> {
        if self.share.is_some() && (self.targets.has_levels() || self.sources.has_levels()) {
            let reason = "a share of points that were sorted by their radii is not searched";
            return Err(ErrorKind::Sets { reason }.into());
        }
        Ok(self.sources.ready_for(self.targets, self.counts())?)
    }

    /// Whether it is known without a search that no target has a neighbour: a set is empty, or in
    /// an open domain the sets lie farther apart along some axis than any pair that is found.
    pub(crate) fn have_no_pair(&self) -> bool {
        let sets = [self.targets, self.sources];
        if sets.iter().any(|set| set.points().is_empty()) {
            return true;
        }
        let (lattice, [a, b]) = (self.targets.lattice(), sets.map(Grid::bounds));
        let gap = |axis: usize| (b.min[axis] - a.max[axis]).max(a.min[axis] - b.max[axis]);
        !lattice.domain().is_periodic() && (0..3).any(|axis| gap(axis) > lattice.reach())
    }

    /// Refuses targets that were sorted in part only, where there is to be a list for each.
    ///
    /// # Errors
    /// [`ErrorKind::Sets`].
    pub(crate) fn check_whole(&self) -> Result<(), Error> {
        if self.targets.given() != self.targets.points().len() {
            return Err(ErrorKind::Sets {
                reason: "only a part of the targets was sorted, but lists are for all of them",
            }
            .into());
        }
        Ok(())
    }
}
