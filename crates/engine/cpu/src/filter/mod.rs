//! Filters: which pairs within the radius are left out.
//!
//! Four filters narrow what a search finds. Each is data of single points, in the caller's order:
//!
//! | filter | a pair is kept if |
//! | --- | --- |
//! | [`TypeCutoffs`] | d² ≤ fl(r·r) of the cut-off of both points' types |
//! | [`Exclusions`] | neither point excludes the other, whatever the image |
//! | [`ChosenPoints`] | the target is one of the chosen points |
//! | [`PairFilter::nearest`] | it is among the k nearest that the other filters keep |
//!
//! # Where they are applied
//!
//! The loops of searches know nothing of filters. A filtered search [visits](visit) the pairs of
//! its targets with their geometry, as [`CpuBackend::visit_pairs`] does, and the filters decide
//! target by target which of them count; what is left goes to the list, the count, the geometry or
//! the sum. Full lists in `f32` with cut-offs, exclusions or the k nearest take a scan of their
//! own, which keeps squared distances (`lists/squared.rs`). Other lists and counts whose filters
//! name points are found by the usual loops, and a sink drops the sources that are left out
//! (`lists/named.rs`). So a search without filters runs the code that it ran before there were any,
//! and filters hold for every mode of candidates: images, half lists, radii of points, double
//! precision.
//!
//! Pairs of a symmetric kernel are evaluated from either side where there is a filter: a chosen
//! target may have a source that is not chosen.
//!
//! # Data in the caller's order
//!
//! Radii of points are sorted with the points, because the loops load them by the vector. Filters
//! read theirs by index, for neighbours only, so nothing is sorted anew when points move.
//!
//! [`CpuBackend::visit_pairs`]: crate::CpuBackend::visit_pairs

pub(crate) mod chosen;
pub(crate) mod cutoffs;
pub(crate) mod excluded;
pub(crate) mod exclusions;
pub(crate) mod nearest;
pub(crate) mod room;
pub(crate) mod visit;

use crate::error::{Error, ErrorKind};
use chosen::ChosenPoints;
use cutoffs::TypeCutoffs;
use exclusions::Exclusions;
use nearfield_grid::Radius;
use nearfield_pairs::ListKind;
use std::num::NonZeroU32;

/// The filters of a pair of sets; none by default.
///
/// ```
/// use nearfield_cpu::{CpuBackend, Exclusions, PairFilter, PairOfSets};
/// use nearfield_grid::{Bounds, Domain, Grid, Lattice, Radius};
/// let points = [[0.0f32; 3], [0.5, 0.0, 0.0], [0.0, 0.5, 0.0]];
/// let bounds = Bounds::of((&points).into(), &Domain::OPEN)?;
/// let lattice = Lattice::new(Radius::new(1.0)?, Domain::OPEN, 1, &bounds)?;
/// let mut grid = Grid::new(lattice.clone());
/// grid.build((&points).into(), bounds, &lattice)?;
/// let bonds = Exclusions::pairs(&[[0, 1]], points.len())?;
/// let of = PairOfSets {
///     targets: &grid,
///     sources: &grid,
///     same_set: true,
///     radii: Default::default(),
///     filter: PairFilter { excluded: Some(&bonds), ..PairFilter::default() },
///     share: None,
/// };
/// let mut counts = [0; 3];
/// CpuBackend::new(1)?.count(of, &mut counts)?;
/// assert_eq!(counts, [1, 1, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Filters that a search cannot have are refused when it begins, before anything is written.
#[derive(Debug, Clone, Copy, Default)]
pub struct PairFilter<'a> {
    /// Cut-offs by the types of both points.
    pub cutoffs: Option<TypeCutoffs<'a>>,
    /// Pairs of points that are no neighbours; of one set with itself only.
    pub excluded: Option<&'a Exclusions>,
    /// The targets that have neighbours; the others have none, and their sums are left as they are.
    pub chosen: Option<&'a ChosenPoints>,
    /// The largest number of neighbours: the nearest by d², of equal ones those with the smaller
    /// index, then the image that comes first. Lists are in that order.
    pub nearest: Option<NonZeroU32>,
}

impl PairFilter<'_> {
    /// Returns true if every pair within the radius is kept.
    pub fn is_none(&self) -> bool {
        self.cutoffs.is_none() && self.has_no_names() && self.nearest.is_none()
    }

    /// Returns true if filters leave out some neighbours of a target, not all or none.
    pub(crate) fn narrows(&self) -> bool {
        self.cutoffs.is_some() || self.excluded.is_some() || self.nearest.is_some()
    }

    /// Returns true if there are filters and all of them name points, so that lists can do without
    /// distances.
    pub(crate) fn is_by_name(&self) -> bool {
        self.cutoffs.is_none() && self.nearest.is_none() && !self.has_no_names()
    }

    /// Returns true if neither exclusions nor chosen targets are given.
    fn has_no_names(&self) -> bool {
        self.excluded.is_none() && self.chosen.is_none()
    }

    /// Prefetches the data of a target, which lie far from those of the last one where the caller's
    /// points are in random order.
    #[inline(always)]
    pub(crate) fn expect(&self, target: usize) {
        if let Some(cutoffs) = self.cutoffs {
            cutoffs.types[0].expect(target);
        }
        if let Some(excluded) = self.excluded {
            excluded.expect(target);
        }
    }

    /// Prefetches what a target excludes; where that is arrives after [`expect`](Self::expect).
    #[inline(always)]
    pub(crate) fn expect_excluded(&self, target: usize) {
        if let Some(excluded) = self.excluded {
            excluded.of(target).expect();
        }
    }

    /// Checks that there is data for every one of `targets` and `sources` points, that cut-offs are
    /// for this radius, and that lists of this kind can be filtered so.
    ///
    /// # Errors
    /// [`ErrorKind::FilterLength`], [`ErrorKind::Sets`] for cut-offs or types that do not fit, and
    /// [`ErrorKind::HalfFilter`] for half lists of one set.
    pub(crate) fn check(
        &self,
        [targets, sources]: [usize; 2],
        radius: Radius,
        kind: ListKind,
        same_set: bool,
    ) -> Result<(), Error> {
        let refuse = |what, found, expected| {
            Err(ErrorKind::FilterLength {
                what,
                found,
                expected,
            }
            .into())
        };
        if let Some(TypeCutoffs { table, types }) = self.cutoffs {
            if !table.is_for(radius) {
                return Err(ErrorKind::Sets {
                    reason: "the cut-offs are larger than the radius or of the other precision: \
                             make the table for this radius",
                }
                .into());
            }
            for (types, points) in types.into_iter().zip([targets, sources]) {
                if types.len() != points {
                    return refuse("types", types.len(), points);
                }
                // Loops look cut-offs up unchecked.
                if types.bound() > table.types() && !types.is_empty() {
                    return Err(ErrorKind::Sets {
                        reason: "types of points were taken for more types than there are cut-offs",
                    }
                    .into());
                }
            }
        }
        if let Some(excluded) = self.excluded {
            if !same_set {
                return Err(ErrorKind::Sets {
                    reason: "exclusions are those of one set with itself, but there are two",
                }
                .into());
            }
            if excluded.len() != targets {
                return refuse("exclusions", excluded.len(), targets);
            }
        }
        if let Some(chosen) = self.chosen
            && chosen.len() != targets
        {
            return refuse("chosen targets", chosen.len(), targets);
        }
        if kind == ListKind::Half && same_set {
            if self.nearest.is_some() {
                let filter = "the k nearest neighbours";
                return Err(ErrorKind::HalfFilter { filter }.into());
            }
            if self.chosen.is_some() {
                let filter = "chosen targets";
                return Err(ErrorKind::HalfFilter { filter }.into());
            }
        }
        Ok(())
    }
}
