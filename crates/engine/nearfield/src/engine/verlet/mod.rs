//! Neighbour lists with a skin, which stay good while points move little.
//!
//! Lists of radius R = r + skin hold every pair within r for as long as no two points can have come
//! closer by more than the skin (Verlet 1967, DOI 10.1103/PhysRev.159.98). [`tracked`] measures how
//! far points have moved; this module decides from that whether lists may still be used.
//!
//! Why no pair is lost to rounding is in [`skin`](crate::skin), which the lists on a GPU share.
//!
//! # Cost
//!
//! An update is one pass over the points that stores positions and measures displacements; nothing
//! is sorted. A rebuild sorts the sets that have moved and searches within R, which finds
//! (R/r)³ as many pairs as a search within r where points lie evenly. Memory is that of the engine
//! and of two copies of all positions.
//!
//! **Invariant:** the engine's sets are those of the last build, `Sets` has those of now, and both
//! are in the same slots.
//!
//! # Periodic axes
//!
//! Displacements along periodic axes are taken modulo the box: stored pairs are looked at through
//! every image anyway, so coordinates may be wrapped into the box at any time.

mod geometry;
mod sets;
mod tracked;

use crate::{
    Builder, Engine, Error, ErrorKind, NeighborLists, Pair, Permutation, PointSetId, Positions,
    Precision,
    backend::support::{Feature, choose},
    engine::point_data::{CUTOFFS, NEAREST},
    report::Report,
    skin::{Refresh, allowed_displacement},
};
use nearfield_cpu::{Coordinate, RadiusRule, SetRadii, StoredPairs};
use nearfield_grid::{Bounds, Radius};
use sets::Sets;
use std::fmt;
use tracked::TrackedSet;

/// Neighbour lists with a skin: built with a radius r + skin, kept over many steps, and rebuilt
/// when points have moved so far that a pair within r could be missing.
///
/// ```
/// use nearfield::{prelude::*, lists::{Refresh, VerletLists}};
/// let mut positions = vec![[0.0f32; 3], [0.9, 0.0, 0.0], [1.15, 0.0, 0.0]];
/// let mut lists = VerletLists::new(Engine::builder(1.0), 0.3)?;
/// let atoms = lists.add_point_set(&positions)?;
/// assert_eq!(lists.refresh()?, Refresh::Rebuilt);
///
/// positions[2][0] = 1.05; // moved by less than half the skin
/// lists.update(atoms, &positions)?;
/// assert_eq!(lists.refresh()?, Refresh::Kept);
/// let mut pairs = Vec::new();
/// lists.for_each_pair(atoms, atoms, |i, j, pair: Pair| pairs.push((i, j)))?;
/// pairs.sort();
/// assert_eq!(pairs, [(0, 1), (1, 0), (1, 2), (2, 1)]);
///
/// positions[2][0] = 0.5;
/// lists.update(atoms, &positions)?;
/// assert_eq!(lists.refresh()?, Refresh::Rebuilt);
/// # Ok::<(), nearfield::Error>(())
/// ```
///
/// Every method gives exactly the pairs within r at the positions of the last
/// [`update`](Self::update), as an [`Engine`] of radius r would; lists that can no longer do so are
/// refused with [`ErrorKind::NeedsRefresh`].
///
/// On a CPU, [`Engine::traverse`] at every step is faster in what was measured: a density over
/// kept lists with a skin of r/10 took 3.8 to 5.8 times as long as one over cells
/// (`docs/measurements/features.md`). On a GPU, forces over kept lists took a third of the time of
/// a new traversal or less (`docs/measurements/sums-and-atoms.md`).
#[doc(alias("skin", "buffer", "neighbor_list"))]
pub struct VerletLists {
    /// Holds the sets as they were when the lists were built, with the radius r + skin.
    pub(super) engine: Engine,
    /// The true radius r, strict if the settings say so.
    radius: Radius,
    /// Positions of now and of the last build, in the caller's order.
    sets: Sets,
    /// Successful rebuilds.
    builds: u64,
}

/// The engine of the lists, the radius within which pairs are found, and how often lists were
/// built.
impl fmt::Debug for VerletLists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerletLists")
            .field("engine", &self.engine)
            .field("radius", &self.radius.as_given())
            .field("builds", &self.builds)
            .finish_non_exhaustive()
    }
}

impl VerletLists {
    /// Lists for an engine of these settings, whose radius is the true one, with a skin in the unit
    /// of the coordinates. A wide skin means fewer rebuilds and longer lists; the best width
    /// depends on how far points move in a step.
    ///
    /// With a skin of 0 lists are kept only while no coordinate changes.
    ///
    /// In an engine that was asked for a GPU alone, it builds the lists, and kernels run over lists
    /// that it keeps, with the positions of now, which are sent once a step. When lists are built
    /// anew is decided on the CPU, by the same rule on every device.
    ///
    /// # Errors
    /// [`ErrorKind::Skin`] when the skin is negative or not finite, [`ErrorKind::SkinWithRadii`]
    /// for settings by which points have radii of their own, [`ErrorKind::Combined`] for cut-offs
    /// of types and the k nearest, and what [`Builder::build`] says.
    pub fn new(settings: Builder, skin: f32) -> Result<Self, Error> {
        let radius = settings.checked_radius()?;
        if !(skin.is_finite() && skin >= 0.0) {
            return Err(ErrorKind::Skin(skin).into());
        }
        if settings.rule != RadiusRule::Uniform {
            return Err(ErrorKind::SkinWithRadii(settings.rule).into());
        }
        let filter = match (settings.cutoffs.is_some(), settings.nearest.is_some()) {
            (true, _) => Some(CUTOFFS),
            (false, true) => Some(NEAREST),
            (false, false) => None,
        };
        if let Some(second) = filter {
            let first = "lists with a skin";
            return Err(ErrorKind::Combined { first, second }.into());
        }
        // Where it may be left to the CPU backend, the report says so of every traversal.
        choose(settings.device, &Feature::Skin)?;
        let wide = Builder {
            radius: match radius.precision() {
                Precision::Single => f64::from(radius.value() + skin),
                Precision::Double => radius.value_f64() + f64::from(skin),
            },
            ..settings
        };
        let engine = wide.build()?;
        Ok(Self {
            sets: Sets::new(engine.precision()),
            engine,
            radius,
            builds: 0,
        })
    }

    /// The engine of the lists. Its radius is that of the [lists](Self::list_radius), and its
    /// points are where they were when these were built: to [name](Engine::point_set) and count its
    /// sets.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Number of points of a set, as of its last [`update`](Self::update).
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`].
    pub fn points(&self, set: PointSetId) -> Result<usize, Error> {
        self.engine.known(set)?;
        Ok(self.sets.now(set.slot()).len())
    }

    /// Adds a point set, as [`Engine::add_point_set`] does. Positions are kept twice: those of the
    /// last build, sorted, and those of now, in the caller's order.
    ///
    /// # Errors
    /// [`ErrorKind::Positions`] naming the point that cannot be used; nothing is added then.
    pub fn add_point_set<'a>(
        &mut self,
        positions: impl nearfield_grid::IntoPositions<'a>,
    ) -> Result<PointSetId, Error> {
        let positions = positions.into_positions();
        // The engine gives the same name below: asking for the next one does not take it.
        let set = self.engine.slots.next()?;
        let before = self.sets.len();
        self.sets.reset(set.slot());
        let added = (self.take(set, positions))
            .and_then(|()| self.sets.was_built(set.slot()))
            .and_then(|()| self.engine.add_point_set(positions));
        if added.is_err() {
            self.sets.reset(set.slot());
            self.sets.truncate(before);
        }
        added
    }

    /// Gives a set new positions; their number may differ from before. The lists stay as they are
    /// until [`refresh`](Self::refresh).
    ///
    /// Costs one pass over the points on all workers: they are checked, copied, and compared with
    /// those of the last build.
    ///
    /// # Errors
    /// [`ErrorKind::Positions`] naming the point that cannot be used; the set then keeps its old
    /// ones.
    pub fn update<'a>(
        &mut self,
        set: PointSetId,
        positions: impl nearfield_grid::IntoPositions<'a>,
    ) -> Result<(), Error> {
        self.engine.known(set)?;
        self.take(set, positions.into_positions())
    }

    /// Removes a set and its lists; see [`Engine::remove_point_set`].
    ///
    /// # Errors
    /// As [`Engine::remove_point_set`].
    pub fn remove_point_set(&mut self, set: PointSetId) -> Result<(), Error> {
        self.engine.remove_point_set(set)?;
        self.sets.reset(set.slot());
        Ok(())
    }

    /// Whether `targets` search among `sources`; every pair of sets does by default.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`].
    pub fn set_active(
        &mut self,
        targets: PointSetId,
        sources: PointSetId,
        active: bool,
    ) -> Result<(), Error> {
        self.engine.set_active(targets, sources, active)
    }

    /// Switches all pairs of sets on or off, also those of sets that are added later; see
    /// [`Engine::set_all_active`].
    pub fn set_all_active(&mut self, active: bool) {
        self.engine.set_all_active(active);
    }

    /// Rebuilds the lists if [`needs_rebuild`](Self::needs_rebuild) says so; call it after the
    /// updates of every step. All active pairs of sets are rebuilt together; sets that have not
    /// moved are not sorted again.
    ///
    /// Lists of pairs of sets that have not changed are kept even then, unless the cells had to
    /// change.
    ///
    /// # Errors
    /// Those of [`Engine::update`] and [`Engine::find_neighbors`]; the lists then still need to be
    /// rebuilt.
    pub fn refresh(&mut self) -> Result<Refresh, Error> {
        if !self.needs_rebuild() {
            return Ok(Refresh::Kept);
        }
        for set in 0..self.sets.len() {
            if self.sets.path(set).is_changed() {
                self.engine
                    .update(self.engine.slots.id(set), self.sets.now(set))?;
                self.sets.was_built(set)?;
            }
        }
        self.engine.find_neighbors()?;
        self.builds += 1;
        Ok(Refresh::Rebuilt)
    }

    /// Whether a pair within the radius could be missing from the lists of an active pair of sets:
    /// when the largest displacements of both sets since the build exceed the skin together (for
    /// one set: when the largest exceeds half of it), when a number of points has changed, and
    /// before the first build.
    ///
    /// Costs a few operations per pair of sets: displacements were measured by the updates.
    pub fn needs_rebuild(&self) -> bool {
        let mut active = self.engine.pairs.active(&self.engine.slots);
        active.any(|([targets, sources], record)| {
            let current = record.is_some_and(|pair| pair.current);
            !(current && self.holds(targets as usize, sources as usize))
        })
    }

    /// How far two points may have moved together since lists of `list_radius` were built, in the
    /// unit of the coordinates, before a pair within `radius` can be missing; negative if the skin
    /// is smaller than the rounding. `extent` is the largest extent of all coordinates along a
    /// periodic axis, then and now. For programs that keep lists of their own.
    #[must_use]
    pub fn allowed_displacement(
        radius: f64,
        list_radius: f64,
        extent: f64,
        precision: Precision,
    ) -> f64 {
        allowed_displacement(radius, list_radius, extent, precision)
    }

    /// How often the lists were built, the first time included. Steps divided by builds is how
    /// many steps a list lasts, which is what to choose the skin by.
    pub fn builds(&self) -> u64 {
        self.builds
    }

    /// The largest displacement of a point of `set` since its lists were built, modulo the box
    /// along periodic axes; infinite when the number of points has changed.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`].
    pub fn displacement(&self, set: PointSetId) -> Result<f64, Error> {
        self.engine.known(set)?;
        Ok(self.sets.path(set.slot()).moved())
    }

    /// The radius r within which pairs are found.
    pub fn radius(&self) -> f64 {
        self.radius.value_f64()
    }

    /// The radius r + skin of the lists.
    pub fn list_radius(&self) -> f64 {
        self.engine.radius()
    }

    /// The lists as they were built: every source that was within r + skin then, and so every one
    /// within r now, among others.
    ///
    /// Images are not named: a source stands as often as it had images within r + skin. Which of
    /// its images are within r now is for the reader to test.
    ///
    /// # Errors
    /// [`ErrorKind::NeedsRefresh`], [`ErrorKind::NoLists`] for an inactive pair, and
    /// [`ErrorKind::UnknownPointSet`].
    pub fn candidates(
        &self,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Result<&NeighborLists, Error> {
        let pair = self.engine.pair(targets, sources)?;
        let pairs = &self.engine.pairs;
        if !pairs.is_active(pair) {
            let why = pairs.missing(pair);
            return Err(ErrorKind::NoLists {
                targets,
                sources,
                why,
            }
            .into());
        }
        let (a, b) = (targets.slot(), sources.slot());
        let current = pairs.get(pair).filter(|record| record.current);
        match current {
            Some(record) if self.holds(a, b) => Ok(&record.lists),
            _ => Err(ErrorKind::NeedsRefresh {
                targets,
                sources,
                moved: match current {
                    Some(_) => self.sets.path(a).moved() + self.sets.path(b).moved(),
                    None => f64::INFINITY,
                },
                allowed: self.room(a, b).max(0.0),
            }
            .into()),
        }
    }

    /// Calls `visit` with target, source and geometry of every pair within the radius, on the
    /// calling thread; for work on many threads, [`traverse`](Self::traverse). Half lists give
    /// every pair of a set once. Displacements are those of the positions of now.
    ///
    /// # Errors
    /// As [`candidates`](Self::candidates).
    pub fn for_each_pair(
        &self,
        targets: PointSetId,
        sources: PointSetId,
        mut visit: impl FnMut(u32, u32, Pair),
    ) -> Result<(), Error> {
        let pairs = self.stored(targets, sources)?;
        for target in 0..self.sets.now(targets.slot()).len() {
            pairs.for_each_neighbor(target, |source, pair| visit(target as u32, source, pair))?;
        }
        Ok(())
    }

    /// Calls `visit` with every neighbour of one point of `targets` within the radius and the
    /// geometry of the pair, on the calling thread.
    ///
    /// A source within the radius through several periodic images is visited once for each. In half
    /// lists of one set a pair is visited for the point that has it in its list.
    ///
    /// # Errors
    /// As [`candidates`](Self::candidates), and [`ErrorKind::UnknownPoint`].
    pub fn for_each_neighbor(
        &self,
        targets: PointSetId,
        sources: PointSetId,
        point: usize,
        visit: impl FnMut(u32, Pair),
    ) -> Result<(), Error> {
        let pairs = self.stored(targets, sources)?;
        let points = self.sets.now(targets.slot()).len();
        if point >= points {
            return Err(ErrorKind::UnknownPoint {
                set: targets,
                point,
                points,
            }
            .into());
        }
        pairs.for_each_neighbor(point, visit)
    }

    /// The order that makes a set local in memory, by where its points were when the lists were
    /// built or the set was added; see [`Engine::z_sort`].
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`].
    pub fn z_sort(&self, set: PointSetId) -> Result<Permutation, Error> {
        self.engine.z_sort(set)
    }

    /// The report of the last steps: devices with reasons, times, and memory held.
    ///
    /// [`MemoryReport::positions`](crate::report::MemoryReport::positions) has both copies of the
    /// positions.
    pub fn report(&self) -> Report {
        let mut report = self.engine.report();
        report.memory.positions = self.sets.bytes();
        report
    }

    /// The lists of a pair of sets with the positions of now.
    pub(crate) fn stored(
        &self,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Result<AnyStoredPairs<'_>, Error> {
        Ok(match &self.sets {
            Sets::Single(sets) => AnyStoredPairs::Single(self.pairs(sets, targets, sources)?),
            Sets::Double(sets) => AnyStoredPairs::Double(self.pairs(sets, targets, sources)?),
        })
    }

    /// Where the points of a set are now and what tells these positions from others; None if no
    /// coordinate has changed since the lists were built.
    pub(crate) fn moved(&self, set: PointSetId) -> Option<(Positions<'_>, u64)> {
        let path = self.sets.path(set.slot());
        (path.is_changed()).then(|| (self.sets.now(set.slot()), path.stamp()))
    }

    /// The radius within which pairs are found.
    pub(crate) fn true_radius(&self) -> Radius {
        self.radius
    }

    /// Refused as [`candidates`](Self::candidates) is, so no caller can read lists that miss a
    /// pair.
    fn pairs<'a, T: Coordinate>(
        &'a self,
        sets: &'a [TrackedSet<T>],
        targets: PointSetId,
        sources: PointSetId,
    ) -> Result<StoredPairs<'a, T>, Error> {
        Ok(StoredPairs {
            lists: self.candidates(targets, sources)?,
            kind: self.engine.settings.lists,
            lattice: &self.engine.lattice,
            targets: sets[targets.slot()].now(),
            sources: sets[sources.slot()].now(),
            same_set: targets == sources,
            radius: self.radius,
            radii: SetRadii::Uniform,
            cutoffs: None,
            chosen: None,
        })
    }

    /// Checks the new positions of a set and measures how far its points have come.
    fn take(&mut self, id: PointSetId, positions: Positions<'_>) -> Result<(), Error> {
        let (engine, sets) = (&self.engine, &mut self.sets);
        let domain = engine.lattice.domain();
        engine.backend.install_for(positions.len(), || {
            let bounds = positions
                .check_precision(engine.precision())
                .and_then(|()| Bounds::of(positions, domain))
                .map_err(|source| ErrorKind::Positions { set: id, source })?;
            sets.take(id.slot(), positions, bounds, domain)
        })
    }

    /// Whether the lists of two sets, built from where they were, hold every pair within the
    /// radius.
    ///
    /// Sets that have not changed at all are asked about first: with a skin below the rounding
    /// there is no room, and their lists are complete all the same.
    fn holds(&self, targets: usize, sources: usize) -> bool {
        let (a, b) = (self.sets.path(targets), self.sets.path(sources));
        let unchanged = !a.is_changed() && !b.is_changed();
        unchanged || a.moved() + b.moved() <= self.room(targets, sources)
    }

    /// How far the points of two sets may have moved together.
    ///
    /// The extent counts along periodic axes only, because only there image vectors are rounded. If
    /// a box vector leans along an open axis, all axes count.
    fn room(&self, targets: usize, sources: usize) -> f64 {
        let extent = (self.sets.path(targets).reached())
            .union(&self.sets.path(sources).reached())
            .extent();
        let domain = self.engine.lattice.domain();
        let lengths = domain.lengths();
        let periodic = (0..3).filter(|&axis| domain.is_slanted() || lengths[axis].is_some());
        let widest = periodic.map(|axis| extent[axis]).fold(0.0, f64::max);
        Self::allowed_displacement(
            self.radius.value_f64(),
            self.engine.radius(),
            widest,
            self.engine.precision(),
        )
    }
}

/// Stored pairs in either precision.
pub(crate) enum AnyStoredPairs<'a> {
    Single(StoredPairs<'a, f32>),
    Double(StoredPairs<'a, f64>),
}

impl AnyStoredPairs<'_> {
    fn for_each_neighbor(&self, target: usize, visit: impl FnMut(u32, Pair)) -> Result<(), Error> {
        match self {
            Self::Single(pairs) => Ok(pairs.for_each_neighbor(target, visit)?),
            Self::Double(pairs) => Ok(pairs.for_each_neighbor(target, visit)?),
        }
    }
}
