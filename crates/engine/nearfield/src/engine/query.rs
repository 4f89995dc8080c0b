//! Neighbours of arbitrary positions, which need not be points of a set.
//!
//! The positions are sorted into cells of their own, on the lattice of the engine or, where they
//! reach beyond what that was made for, on a wider one that the searched set is sorted into once
//! more. The engine is only read, so any number of threads may query it at the same time, each with
//! a [`QueryScratch`] of its own.
//!
//! Sorting the positions costs as much as for a set of their number, and makes queries of many
//! positions as fast as searches. For a few positions entering the pool of workers costs most, so
//! everything is done in one visit.
//!
//! On a GPU the positions become a set for the time of the call: they are sent and sorted there,
//! and search as any set does. One query at a time uses the GPU.
//!
//! **Invariant:** both sides are sorted on the same lattice, so pairs are decided as between sets.

use crate::{
    Device, Engine, Error, ErrorKind, ListOrder, NeighborLists, PointSetId, Positions, RadiusRule,
    backend::{
        AttachedDevice, Fault, JobKind,
        limit::{LISTS, within},
        rows::{QueriedPoints, Query, QueryTo},
        support::Feature,
    },
    engine::{
        jobs::{Assigned, job},
        placing::Words,
        sets::WideSet,
    },
    own_radii::OwnRadii,
};
use nearfield_cpu::{PairOfSets, SortedRadii};
use nearfield_grid::{Bounds, Grid, Lattice, Radii};
use nearfield_pairs::ListKind;
use std::{fmt, num::NonZeroU32, sync::Arc};

/// Memory of queries, which [`Engine::query_into`] uses again: a query of as many positions as the
/// one before allocates nothing. Engines may share one, one query at a time.
///
/// Nothing but memory is carried from one query to the next.
#[derive(Default)]
pub struct QueryScratch {
    /// The positions of the last query, sorted.
    grid: Option<Grid>,
    /// Their radii, in the same order.
    radii: SortedRadii,
    /// Their neighbours.
    lists: NeighborLists,
}

impl QueryScratch {
    /// The lists of the last query, one per position in the order given.
    ///
    /// Empty before the first query.
    pub fn lists(&self) -> &NeighborLists {
        &self.lists
    }

    /// Those lists, as the caller's own.
    pub fn into_lists(self) -> NeighborLists {
        self.lists
    }
}

/// The number of positions and of neighbours of the last query.
impl fmt::Debug for QueryScratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryScratch")
            .field("positions", &self.lists.len())
            .field("pairs", &self.lists.pairs())
            .finish_non_exhaustive()
    }
}

/// Positions whose neighbours a device finds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) positions: Positions<'a>,
    /// Of the positions, where these count.
    pub(super) radii: Option<Radii<'a>>,
    /// How many of the nearest are kept.
    pub(super) nearest: Option<NonZeroU32>,
    /// What filters ask of positions that are those of points.
    pub(super) points: Option<QueriedPoints<'a>>,
}

impl Engine {
    /// Neighbours in `sources` of arbitrary positions: list i has those of position i, as indices
    /// of points of `sources`, in the engine's list order. Positions have the engine's radius;
    /// [`query_into`](Self::query_into) takes radii of their own, and memory for the lists, which
    /// this allocates anew.
    ///
    /// Any number of threads may query an engine at the same time. In a periodic box, a query that
    /// reaches much farther than the points keeps a second copy of the set on cells that suit both,
    /// until the set is next updated.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut engine = Engine::builder(1.0).build()?;
    /// let points = engine.add_point_set(&[[0.0f32; 3], [0.5, 0.0, 0.0]])?;
    /// let lists = engine.query(&[[0.9f32, 0.0, 0.0], [5.0, 0.0, 0.0]], points)?;
    /// assert_eq!((lists.of(0).len(), lists.of(1).len()), (2, 0));
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// Lists are full, also in an engine of half lists, because positions are not points of the
    /// set. A source within the radius through several periodic images stands once for each. A
    /// position that coincides with a point has that point as a neighbour. With
    /// [`Builder::nearest`](crate::Builder::nearest) a list has the k nearest; types, exclusions
    /// and chosen targets are those of points and do not concern positions.
    ///
    /// A GPU does it if the engine was asked for one alone; an engine that shares its jobs leaves
    /// it to the CPU pool. For few positions a GPU takes longer than the CPU: it starts some twenty
    /// kernels however few they are.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] naming a position that cannot be used, [`ErrorKind::MemoryLimit`],
    /// [`ErrorKind::UnknownPointSet`], [`ErrorKind::NoRadii`] and [`ErrorKind::QueryWithoutRadii`].
    #[doc(alias("query_ball_point", "range_query"))]
    pub fn query<'a>(
        &self,
        positions: impl nearfield_grid::IntoPositions<'a>,
        sources: PointSetId,
    ) -> Result<NeighborLists, Error> {
        let mut scratch = QueryScratch::default();
        self.query_into(positions, None, sources, &mut scratch)?;
        Ok(scratch.lists)
    }

    /// As [`query`](Self::query), with memory that the caller keeps from query to query, and with a
    /// search radius per position. The lists stay in `scratch` until its next query. On a GPU this
    /// counts: it writes to page-locked memory, which takes long to make.
    ///
    /// `radii` must be given where the radius of the target counts, which are the rules
    /// [`Gather`](crate::RadiusRule::Gather) and [`Symmetric`](crate::RadiusRule::Symmetric), and
    /// nowhere else. They are in the unit of the coordinates, one per position, at most the
    /// engine's radius, and in `f32` or `f64` as those of [`set_radii`](Self::set_radii):
    /// `Some((&radii).into())`.
    ///
    /// ```
    /// use nearfield::{prelude::*, lists::QueryScratch};
    /// let mut engine = Engine::builder(1.0).build()?;
    /// let points = engine.add_point_set(&[[0.0f32; 3], [0.5, 0.0, 0.0]])?;
    /// let mut scratch = QueryScratch::default();
    /// for x in [0.9f32, 1.2, 5.0] {
    ///     let lists = engine.query_into(&[[x, 0.0, 0.0]], None, points, &mut scratch)?;
    ///     println!("{} neighbours at {x}", lists.of(0).len());
    /// }
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`query`](Self::query), [`ErrorKind::QueryRadii`] as [`ErrorKind::Radii`] for points, and
    /// [`ErrorKind::UnusedRadii`] when the radius of the target does not count. After an
    /// error the lists in `scratch` are not to be used.
    pub fn query_into<'a, 's>(
        &self,
        positions: impl nearfield_grid::IntoPositions<'a>,
        radii: Option<Radii<'_>>,
        sources: PointSetId,
        scratch: &'s mut QueryScratch,
    ) -> Result<&'s NeighborLists, Error> {
        let _span = tracing::debug_span!("engine.query", sources = sources.slot()).entered();
        self.known(sources)?;
        let (rule, positions) = (self.settings.rule, positions.into_positions());
        let assigned = self.assign_query()?;
        match radii {
            None if rule.needs_targets() => {
                return Err(ErrorKind::QueryWithoutRadii { rule }.into());
            }
            Some(_) if !rule.needs_targets() => {
                let what = "positions of a query";
                return Err(ErrorKind::UnusedRadii { what, rule }.into());
            }
            Some(radii) => (self.backend)
                .check_radii(radii, positions.len(), self.lattice.radius())
                .map_err(ErrorKind::QueryRadii)?,
            None => {}
        }
        let job = job(JobKind::Query, sources, sources);
        let reason = match assigned {
            Assigned::Cpu(reason) => reason,
            Assigned::Device(device) => {
                let lists = &mut scratch.lists;
                let to = QueryTo::Lists(lists);
                match self.query_on_device(device, (positions, radii), sources, to)? {
                    Ok(()) => {
                        if self.settings.order == ListOrder::Ascending {
                            tracing::debug_span!("cpu.sort_lists").in_scope(|| {
                                self.backend.install_for(lists.len(), || lists.sort())
                            });
                        }
                        self.ran(job, None);
                        return Ok(&scratch.lists);
                    }
                    Err(fault) => fault.to_string().into(),
                }
            }
        };
        self.query_on_cpu(positions, radii, sources, scratch)?;
        self.was_done(job, Device::Cpu, reason);
        Ok(&scratch.lists)
    }

    /// Where a query is to be done.
    fn assign_query(&self) -> Result<Assigned<'_>, Error> {
        let radii = (self.settings.rule != RadiusRule::Uniform).then_some(Feature::QueryWithRadii);
        let nearest = (self.filters.has_nearest()).then_some(Feature::Nearest);
        let by_cells = self.filtered_by_cells(nearest.is_some() || radii.is_some());
        for needed in radii.into_iter().chain(nearest).chain(by_cells) {
            if let Assigned::Cpu(reason) = self.assign(&needed)? {
                return Ok(Assigned::Cpu(reason));
            }
        }
        self.assign(&Feature::Query)
    }

    /// Writes the lists of positions on the CPU backend.
    fn query_on_cpu(
        &self,
        positions: Positions<'_>,
        radii: Option<Radii<'_>>,
        sources: PointSetId,
        scratch: &mut QueryScratch,
    ) -> Result<(), Error> {
        // One way into the pool for everything: it takes longer than a query of few positions.
        self.backend.install_for(positions.len(), || {
            let (grid, wide) = self.query_sides(positions, sources, scratch.grid.take())?;
            let targets = scratch.grid.insert(grid);
            if let Some(radii) = radii {
                self.backend
                    .sort_radii(radii, targets, &mut scratch.radii)?;
            }
            let radii = radii.map(|_| &scratch.radii);
            self.query_lists(targets, wide.as_deref(), sources, radii, &mut scratch.lists)
        })
    }

    /// Writes the neighbours of positions, which have these radii where their own count, on the
    /// device, in any order; the fault after which the CPU backend has to.
    pub(super) fn query_on_device(
        &self,
        device: AttachedDevice<'_>,
        (positions, radii): (Positions<'_>, Option<Radii<'_>>),
        sources: PointSetId,
        to: QueryTo<'_>,
    ) -> Result<Result<(), Fault>, Error> {
        let precision = self.precision();
        let radii = radii.map(|radii| OwnRadii::copy_of(radii, precision));
        let radii = radii.transpose()?;
        let asked = Asked {
            positions,
            radii: radii.as_ref().map(OwnRadii::get),
            nearest: self.filters.of_query().nearest,
            points: None,
        };
        self.ask_device(device, asked, sources, to)
    }

    /// The same, with the filters of positions that are those of points.
    pub(super) fn ask_device(
        &self,
        device: AttachedDevice<'_>,
        asked: Asked<'_>,
        sources: PointSetId,
        to: QueryTo<'_>,
    ) -> Result<Result<(), Fault>, Error> {
        let Asked {
            positions,
            radii,
            nearest,
            points,
        } = asked;
        self.in_place()?;
        let (rule, set) = (self.settings.rule, &self.sets[sources.slot()]);
        let radii = rule.choose(
            || radii.ok_or(Error::from(ErrorKind::QueryWithoutRadii { rule })),
            || set.given_radii(sources, rule),
        )?;
        let check = || self.query_bounds(positions).map(|(bounds, _)| bounds);
        let bounds = self.backend.install_for(positions.len(), check)?;
        let words = Words::of(positions, self.precision()).map_err(ErrorKind::Query)?;
        let query = Query {
            sources: sources.slot(),
            positions: words.field(),
            bounds,
            nearest,
            radii,
            radii_stamp: set.stamps().radii,
            points,
        };
        let mut input = self.input();
        if let QueryTo::Geometry(_) = to {
            // Of a single point: limits are for lists.
            input.options.memory_limit = None;
        }
        device.alone(&input, |device| device.query(&input, query, to))
    }

    /// The bounds of positions, and in a periodic box a lattice that suits them and all sets.
    fn query_bounds(&self, positions: Positions<'_>) -> Result<(Bounds, Option<Lattice>), Error> {
        positions
            .check_precision(self.precision())
            .map_err(ErrorKind::Query)?;
        let domain = *self.lattice.domain();
        let bounds = Bounds::of(positions, &domain).map_err(ErrorKind::Query)?;
        if !domain.is_periodic() {
            return Ok((bounds, None));
        }
        let (radius, cells) = (self.lattice.radius(), self.settings.subdivision);
        let all = bounds.union(&self.bounds());
        let lattice = Lattice::new(radius, domain, cells, &all).map_err(ErrorKind::Setup)?;
        Ok((bounds, Some(lattice)))
    }

    /// The positions of a query and what is searched, on one lattice: the engine's, where all
    /// points lie within what it was made for. `spare` is a grid whose memory is used again.
    ///
    /// In a periodic box the lattice that suits all sets and the positions is made, and the
    /// searched set is copied to it only if it differs from the engine's.
    fn query_sides(
        &self,
        positions: Positions<'_>,
        sources: PointSetId,
        spare: Option<Grid>,
    ) -> Result<(Grid, Option<Arc<WideSet>>), Error> {
        let (bounds, lattice) = self.query_bounds(positions)?;
        let mut wide = None;
        if let Some(lattice) = lattice.filter(|lattice| *lattice != self.lattice) {
            let set = &self.sets[sources.slot()];
            wide = Some(set.wide(&lattice, || self.widened(sources, &lattice))?);
        }
        let lattice = (wide.as_ref()).map_or(&self.lattice, |wide| wide.grid.lattice());
        let mut targets = spare.unwrap_or_else(|| Grid::new(lattice.clone()));
        targets
            .build(positions, bounds, lattice)
            .map_err(ErrorKind::Query)?;
        Ok((targets, wide))
    }

    /// A set once more, on another lattice.
    ///
    /// Costs a sort of the set and the memory of its sorted points.
    /// [`Set::wide`](super::sets::Set::wide) keeps it for the queries after.
    fn widened(&self, set: PointSetId, lattice: &Lattice) -> Result<WideSet, Error> {
        let grid = self.grid(set)?;
        let grid = (self
            .backend
            .install_for(grid.points().len(), || grid.copied_to(lattice)))
        .map_err(|source| ErrorKind::Positions { set, source })?;
        let radii = self.sets[set.slot()]
            .radii
            .sorted_for(&grid, &self.backend)?;
        Ok(WideSet { grid, radii })
    }

    /// Lists of the positions of a query; `radii` where their own count.
    ///
    /// With a memory limit the lists are counted first, so nothing is written before it is known to
    /// fit.
    fn query_lists(
        &self,
        targets: &Grid,
        wide: Option<&WideSet>,
        sources: PointSetId,
        radii: Option<&SortedRadii>,
        lists: &mut NeighborLists,
    ) -> Result<(), Error> {
        let (rule, set) = (self.settings.rule, &self.sets[sources.slot()]);
        let of = PairOfSets {
            targets,
            sources: wide.map_or_else(|| self.grid(sources), |wide| Ok(&wide.grid))?,
            same_set: false,
            radii: rule.choose(
                || radii.ok_or(Error::from(ErrorKind::QueryWithoutRadii { rule })),
                || {
                    let given = set.sorted_radii(sources, rule, &self.backend)?;
                    Ok(wide.map_or(given, |wide| &wide.radii))
                },
            )?,
            filter: self.filters.of_query(),
            share: None,
        };
        let (kind, order) = (ListKind::Full, self.settings.order);
        let Some(limit) = self.settings.memory_limit else {
            return Ok(self.backend.search(of, kind, order, lists)?);
        };
        // Counting needs less memory, and finds every other error again.
        if let Ok(true) = self.search_within(of, kind, limit, 0, lists)
            && lists.bytes() as u64 <= limit
        {
            return Ok(());
        }
        let measured = self.backend.measure(of, kind)?;
        let (points, pairs) = (targets.points().len(), measured.pairs());
        within(
            limit,
            LISTS,
            NeighborLists::default().bytes_after(points, pairs),
        )?;
        if lists.bytes_after(points, pairs) > limit {
            // Room kept from earlier queries is given back.
            *lists = NeighborLists::default();
        }
        Ok(measured.write(order, lists)?)
    }
}
