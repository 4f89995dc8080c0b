//! Neighbour lists with a skin on a GPU.
//!
//! The lists are those of a [`DeviceEngine`] with the radius r + skin. An update does not sort: one
//! kernel brings the positions into the order in which points were sorted for the lists, and finds
//! the largest displacement since. Another judges all lists by the displacements of all sets. The
//! kernels over the lists read on the device what it found and do nothing if any pair may be
//! missing, so the host learns it while they run and not before. It then builds the lists anew, and
//! the kernels are started once more: all of them, because either all have computed or none.
//!
//! When lists are complete is what [`VerletLists`](crate::lists::VerletLists) has on the host, with
//! the same margin. The extent of coordinates that it takes is that of the room of the engine's
//! cells: along a periodic axis the points at the build and a box on either side. A point outside
//! of it counts as infinitely far away, so the kernel need not measure the extent. If a box vector
//! leans along an open axis, that holds for all axes.
//!
//! Exclusions are left out of the lists, whatever the positions. Cut-offs of types are not: lists
//! are found with cut-offs that are larger by the skin, and kernels ask for the true ones.
//!
//! **Invariant:** the engine's sets are those of the last build, or newer ones without lists;
//! `followed` has the positions of now of sets that have moved since, in the same slots.

use super::{
    DeviceListsView, DeviceTraversal, DeviceView,
    builder::DeviceEngineBuilder,
    engine::{DeviceEngine, Progress},
    filters::stamped,
    traverse::DeviceKernel,
};
use crate::{
    Error, ErrorKind, ListKind, PairKernel, PointSetId, Precision,
    backend::kernel::check_support,
    error::MissingLists,
    skin::{Refresh, allowed_displacement},
};
use nearfield_cpu::CutoffTable;
use nearfield_gpu::{DeviceCutoffs, FollowedPoints, Judgement, PairProgram, PositionNumber, Skin};
use nearfield_grid::{Bounds, OfProcess, Radius};
use std::{collections::BTreeSet, fmt};

/// Neighbour lists with a skin that stay on a GPU: built with a radius r + skin, kept over many
/// steps, and built anew when points have moved so far that a pair within r could be missing. What
/// [`VerletLists`](crate::lists::VerletLists) are on the host.
///
/// ```no_run
/// use nearfield::device::{DeviceBuffer, DeviceEngine, DeviceVerletLists, Progress};
/// # use nearfield::{Error, PairKernel};
/// # fn run(
/// #     forces: &impl PairKernel, mut positions: DeviceBuffer<f32>, mut force: DeviceBuffer<f32>,
/// #     advance: impl Fn(&mut DeviceBuffer<f32>, &DeviceBuffer<f32>),
/// # ) -> Result<(), Error> {
/// let settings = DeviceEngine::builder(2.5).periodic([Some(40.0); 3]);
/// let mut lists = DeviceVerletLists::new(settings, 0.3, |settings| settings.on_gpu(0))?;
/// let atoms = lists.add_point_set(&positions.as_view())?;
/// lists.refresh()?;
/// for _ in 0..1000 {
///     // A kernel of your own, on the stream of the engine, moves the atoms.
///     advance(&mut positions, &force);
///     lists.update(atoms, &positions.as_view())?;
///     loop {
///         lists.traverse(forces, atoms, atoms).run_into(&mut force.as_view_mut())?;
///         // Waits for the displacements, while the forces are computed.
///         match lists.finish()? {
///             Progress::Valid => break,
///             Progress::Repeat => {} // the lists were built anew
///         }
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// Traversals give every target all of its neighbours within r at the positions of the last
/// [`update`](Self::update). Coordinates may be wrapped into the box at any time: displacements are
/// taken modulo the box. All work is on the [stream](DeviceEngine::stream) of the
/// [engine](Self::engine).
pub struct DeviceVerletLists {
    /// Holds the sets as they were when the lists were built, with the radius r + skin.
    pub(super) engine: DeviceEngine,
    /// The true radius r.
    radius: Radius,
    /// Positions of now, by slot.
    followed: OfProcess<Vec<FollowedPoints>>,
    /// Whether they may miss a pair.
    judgement: OfProcess<Judgement>,
    /// Cut-offs per pair of types, if there are any. Those of the engine are larger by the skin.
    cutoffs: OfProcess<Option<DeviceCutoffs>>,
    /// Pairs of sets, by slot, that were switched off.
    inactive: BTreeSet<(usize, usize)>,
    builds: u64,
}

/// The engine of the lists, the radius within which pairs are found, and how often lists were
/// built.
impl fmt::Debug for DeviceVerletLists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceVerletLists")
            .field("engine", &self.engine)
            .field("radius", &self.radius.as_given())
            .field("builds", &self.builds)
            .finish_non_exhaustive()
    }
}

impl DeviceVerletLists {
    /// Lists for an engine of these settings, whose radius is the true one, with a skin in the unit
    /// of the coordinates. `start` starts the engine of the lists, whose radius is larger by the
    /// skin: `|settings| settings.on(&stream)`.
    ///
    /// With a skin of 0 lists are kept only while no coordinate changes.
    ///
    /// Settings are those of any engine, but for half lists, the k nearest, and radii of single
    /// points. In [`Precision::Double`] positions are arrays of `f64`. Cut-offs of types hold at
    /// the positions of now; lists are found with larger ones.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`] for a radius that cannot be used, [`ErrorKind::Skin`] when the skin is
    /// negative or not finite, [`ErrorKind::Combined`] for settings that are none of these,
    /// [`ErrorKind::Cpu`] for cut-offs that cannot be used, and what `start` says.
    pub fn new(
        settings: DeviceEngineBuilder,
        skin: f32,
        start: impl FnOnce(DeviceEngineBuilder) -> Result<DeviceEngine, Error>,
    ) -> Result<Self, Error> {
        let radius = settings.checked_radius().map_err(ErrorKind::Setup)?;
        if !(skin.is_finite() && skin >= 0.0) {
            return Err(ErrorKind::Skin(skin).into());
        }
        let refused = if settings.lists == ListKind::Half {
            Some("half lists")
        } else {
            settings.filters.beyond_cutoffs()
        };
        if let Some(first) = refused {
            let second = "lists with a skin on a GPU";
            return Err(ErrorKind::Combined { first, second }.into());
        }
        let precision = settings.precision;
        let larger = |value: f64| match precision {
            Precision::Single => f64::from(value as f32 + skin),
            Precision::Double => value + f64::from(skin),
        };
        let list_radius = larger(settings.radius);
        let mut settings = settings;
        let mut table = None;
        if let Some(rows) = &mut settings.filters.cutoffs {
            table = Some(CutoffTable::new(rows, radius, settings.strict)?);
            // 0 means never.
            let given = rows.iter_mut().flatten().filter(|cutoff| **cutoff != 0.0);
            given.for_each(|cutoff| *cutoff = larger(*cutoff).min(list_radius));
        }
        settings.radius = list_radius;
        let engine = start(settings)?;
        let mut cutoffs = None;
        if let Some(table) = table {
            let (types, precision) = (table.types(), table.precision());
            let to = cutoffs.insert(DeviceCutoffs::default());
            (engine.backend).take_cutoffs(to, stamped(table.squares()), types, precision)?;
        }
        Ok(Self {
            engine,
            radius,
            followed: OfProcess::new(Vec::new()),
            judgement: OfProcess::new(Judgement::default()),
            cutoffs: OfProcess::new(cutoffs),
            inactive: BTreeSet::new(),
            builds: 0,
        })
    }

    /// The engine of the lists. Its radius is that of the [lists](Self::list_radius), and its
    /// points are where they were when these were built: for its stream, its queue and the
    /// [order](DeviceEngine::order) of the points.
    pub fn engine(&self) -> &DeviceEngine {
        &self.engine
    }

    /// Adds a point set, as [`DeviceEngine::add_point_set`] does.
    ///
    /// # Errors
    /// As there.
    pub fn add_point_set<T: PositionNumber>(
        &mut self,
        positions: &DeviceView<'_, T>,
    ) -> Result<PointSetId, Error> {
        let set = self.engine.add_point_set(positions)?;
        let slots = self.followed.len().max(set.slot() + 1);
        self.followed.resize_with(slots, FollowedPoints::default);
        self.followed[set.slot()] = FollowedPoints::default();
        Ok(set)
    }

    /// Removes a set and its lists; see [`DeviceEngine::remove_point_set`].
    ///
    /// # Errors
    /// As there.
    pub fn remove_point_set(&mut self, set: PointSetId) -> Result<(), Error> {
        self.engine.remove_point_set(set)?;
        let slot = set.slot();
        self.followed[slot] = FollowedPoints::default();
        self.inactive.retain(|&(a, b)| a != slot && b != slot);
        self.judge()
    }

    /// Gives a set new coordinates, which are copied. The lists stay as they are until
    /// [`refresh`](Self::refresh) or [`finish`](Self::finish).
    ///
    /// Costs one pass over the points, and waits for nothing. Another number of points than before
    /// is a new set of points: see [`replace`](Self::replace).
    ///
    /// # Errors
    /// As [`DeviceEngine::update`]. Coordinates that are not finite are found by
    /// [`refresh`](Self::refresh) and [`finish`](Self::finish).
    pub fn update<T: PositionNumber>(
        &mut self,
        set: PointSetId,
        positions: &DeviceView<'_, T>,
    ) -> Result<(), Error> {
        self.engine.known(set)?;
        let of_engine = &self.engine.sets[set.slot()];
        let same_number = positions.len() == 3 * of_engine.points.len();
        let Some(lattice) =
            (self.engine.lattice.as_ref()).filter(|_| same_number && of_engine.points.is_sorted())
        else {
            return self.replace(set, positions);
        };
        let room = self.counted(&of_engine.room);
        let points = &of_engine.points;
        let followed = &mut self.followed[set.slot()];
        (self.engine.backend)
            .follow(points, lattice, &room, positions, followed)
            .map_err(|source| ErrorKind::OnDevice { set, source })?;
        self.judge()
    }

    /// Gives a set other points, or the same in another order: their lists are built anew.
    ///
    /// # Errors
    /// As [`DeviceEngine::update`].
    pub fn replace<T: PositionNumber>(
        &mut self,
        set: PointSetId,
        positions: &DeviceView<'_, T>,
    ) -> Result<(), Error> {
        self.engine.update(set, positions)?;
        self.followed[set.slot()].was_built();
        self.judge()
    }

    /// Whether `targets` search among `sources`; every pair of sets does by default.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`], and [`ErrorKind::Gpu`] when the GPU fails.
    pub fn set_active(
        &mut self,
        targets: PointSetId,
        sources: PointSetId,
        active: bool,
    ) -> Result<(), Error> {
        self.engine.known(targets)?;
        self.engine.known(sources)?;
        let pair = (targets.slot(), sources.slot());
        if active {
            self.inactive.remove(&pair);
        } else {
            self.inactive.insert(pair);
        }
        self.judge()
    }

    /// Builds the lists anew if a pair within the radius could be missing. Waits for the
    /// displacements of the last updates; use [`finish`](Self::finish) to wait while kernels over
    /// the lists run.
    ///
    /// # Errors
    /// As [`DeviceEngine::find_neighbors`] and [`DeviceEngine::finish`]; the lists then still need
    /// to be built.
    pub fn refresh(&mut self) -> Result<Refresh, Error> {
        if !self.needs_rebuild()? {
            return Ok(Refresh::Kept);
        }
        self.rebuild()?;
        Ok(Refresh::Rebuilt)
    }

    /// Whether the kernels that were started since the last updates have computed anything: with
    /// [`Progress::Repeat`] they did nothing, because a pair could be missing from the lists. These
    /// have been built anew, and the kernels are to be started again. Waits for the displacements
    /// of the last updates, and for no kernel behind them unless lists are built.
    ///
    /// # Errors
    /// As [`refresh`](Self::refresh).
    pub fn finish(&mut self) -> Result<Progress, Error> {
        Ok(match self.refresh()? {
            Refresh::Kept => Progress::Valid,
            Refresh::Rebuilt => Progress::Repeat,
        })
    }

    /// A traversal over the lists, of all pairs within the radius; see
    /// [`DeviceTraversal::over_lists`]. It does nothing if a pair could be missing from any of the
    /// lists, also from those of other pairs of sets, which [`finish`](Self::finish) says. Running
    /// it returns [`ErrorKind::NeedsRefresh`] where two sets that search have no lists.
    pub fn traverse<'a, K: PairKernel>(
        &'a self,
        kernel: &K,
        targets: PointSetId,
        sources: PointSetId,
    ) -> DeviceTraversal<'a> {
        let program = check_support(kernel, self.radius.value())
            .and_then(|()| PairProgram::of(kernel).map_err(Error::from));
        self.over_skin(program, targets, sources)
    }

    /// The same with a kernel that is known at run time only.
    pub fn traverse_with<'a>(
        &'a self,
        kernel: &DeviceKernel,
        targets: PointSetId,
        sources: PointSetId,
    ) -> DeviceTraversal<'a> {
        self.over_skin(kernel.program(), targets, sources)
    }

    /// The lists as they were built: every source that was within r + skin then, and so, while
    /// lists are complete, every one within r now. Images are not named: a source stands as often
    /// as it had images within r + skin.
    ///
    /// # Errors
    /// [`ErrorKind::NeedsRefresh`] when there are none, and [`ErrorKind::UnknownPointSet`].
    pub fn candidates(
        &self,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Result<DeviceListsView<'_>, Error> {
        self.check(targets, sources)?;
        self.engine.neighbors(targets, sources)
    }

    /// The largest displacement of a point of `set` since its lists were built, modulo the box
    /// along periodic axes, rounded up; infinite where a coordinate is not finite or lies more than
    /// a box beyond where points were. Waits for all work on the stream.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`], and [`ErrorKind::Gpu`] when the GPU fails.
    pub fn displacement(&mut self, set: PointSetId) -> Result<f64, Error> {
        self.engine.known(set)?;
        let followed = &mut self.followed[set.slot()];
        let squared = self.engine.backend.moved_squared(followed)?;
        Ok(f64::from(squared).sqrt())
    }

    /// How often the lists were built, the first time included.
    pub fn builds(&self) -> u64 {
        self.builds
    }

    /// The radius r within which pairs are found, rounded to `f32` in double precision.
    pub fn radius(&self) -> f32 {
        self.radius.value()
    }

    /// The radius r + skin of the lists, rounded as [`radius`](Self::radius).
    pub fn list_radius(&self) -> f32 {
        self.engine.radius()
    }

    /// Bytes held on the device.
    pub fn bytes(&self) -> usize {
        let followed = self.followed.iter().map(FollowedPoints::bytes);
        self.engine.bytes() + followed.sum::<usize>() + self.judgement.bytes()
    }

    /// Pairs of sets that search.
    fn active(&self) -> Vec<[PointSetId; 2]> {
        let sets: Vec<PointSetId> = self.engine.slots.used().collect();
        let each = sets.iter().flat_map(|&a| sets.iter().map(move |&b| [a, b]));
        let on = |[a, b]: &[PointSetId; 2]| !self.inactive.contains(&(a.slot(), b.slot()));
        each.filter(on).collect()
    }

    /// Whether a pair could be missing from the lists of an active pair of sets. Waits for the
    /// displacements.
    fn needs_rebuild(&mut self) -> Result<bool, Error> {
        self.engine.usable()?;
        for [targets, sources] in self.active() {
            if self.engine.current_lists(targets, sources).is_err() {
                return Ok(true);
            }
        }
        Ok(self.judgement.may_miss()?)
    }

    /// Has the device judge all lists by the displacements of the last updates.
    fn judge(&mut self) -> Result<(), Error> {
        let followed = &self.followed;
        let pairs: Vec<_> = (self.active().into_iter())
            .map(|[targets, sources]| {
                let sets = [targets, sources].map(|set| &followed[set.slot()]);
                (sets, self.allowed(targets, sources))
            })
            .collect();
        let judged = self.engine.backend.judge(&pairs, &mut self.judgement);
        Ok(judged?)
    }

    /// Builds the lists of all active pairs from where the points are now.
    fn rebuild(&mut self) -> Result<(), Error> {
        let sets: Vec<PointSetId> = self.engine.slots.used().collect();
        for set in sets {
            match self.engine.precision() {
                Precision::Single => self.move_engine::<f32>(set),
                Precision::Double => self.move_engine::<f64>(set),
            }?;
        }
        let active = self.active();
        loop {
            for &[targets, sources] in &active {
                if self.engine.current_lists(targets, sources).is_err() {
                    self.engine.find_neighbors(targets, sources)?;
                }
            }
            if self.engine.finish()? == Progress::Valid {
                break;
            }
        }
        self.judgement.was_built();
        self.builds += 1;
        Ok(())
    }

    /// Gives the engine the positions of now of a set that has moved.
    fn move_engine<T: PositionNumber>(&mut self, set: PointSetId) -> Result<(), Error> {
        let followed = &mut self.followed[set.slot()];
        if self.engine.backend.moved_squared(followed)? > 0.0 {
            let points = &self.engine.sets[set.slot()].points;
            let now = self.engine.backend.followed_to::<T>(points, followed);
            let now = now.map_err(|source| ErrorKind::OnDevice { set, source })?;
            if let Some(now) = now {
                self.engine.update(set, &now)?;
            }
        }
        followed.was_built();
        Ok(())
    }

    /// A traversal over the lists, or one that returns the error.
    fn over_skin(
        &self,
        program: Result<(PairProgram, Vec<f32>), Error>,
        targets: PointSetId,
        sources: PointSetId,
    ) -> DeviceTraversal<'_> {
        let program = program.and_then(|program| {
            self.check(targets, sources)?;
            for [targets, sources] in self.active() {
                self.check(targets, sources)?;
            }
            Ok(program)
        });
        let made = DeviceTraversal::new(&self.engine, program, targets, sources);
        let of = |set: PointSetId| self.followed.get(set.slot());
        match (of(targets), of(sources)) {
            (Some(of_targets), Some(of_sources)) => made.over_skin(Skin {
                radius: self.radius,
                targets: of_targets,
                sources: of_sources,
                judgement: &self.judgement,
                cutoffs: self.cutoffs.as_ref(),
            }),
            // Names of other engines, which the traversal refuses.
            _ => made,
        }
    }

    /// Refuses pairs of sets without lists.
    fn check(&self, targets: PointSetId, sources: PointSetId) -> Result<(), Error> {
        self.engine.known(targets)?;
        self.engine.known(sources)?;
        if self.inactive.contains(&(targets.slot(), sources.slot())) {
            let why = MissingLists::Inactive;
            return Err(super::engine::no_lists(targets, sources, why));
        }
        let refresh = ErrorKind::NeedsRefresh {
            targets,
            sources,
            moved: f64::INFINITY,
            allowed: self.allowed(targets, sources).max(0.0),
        };
        match self.engine.current_lists(targets, sources) {
            Ok(_) => Ok(()),
            Err(_) => Err(refresh.into()),
        }
    }

    /// How far the points of two sets may have moved together.
    fn allowed(&self, targets: PointSetId, sources: PointSetId) -> f64 {
        let room = |set: PointSetId| self.engine.sets.get(set.slot()).map(|set| set.room);
        let (Some(of_targets), Some(of_sources)) = (room(targets), room(sources)) else {
            return 0.0;
        };
        let extent = of_targets.union(&of_sources).extent();
        let counting = self.counting();
        let counting = (0..3).filter(|&axis| counting[axis]);
        let widest = counting.map(|axis| extent[axis]).fold(0.0, f64::max);
        let settings = &self.engine.settings;
        let radius = self.radius.value_f64();
        allowed_displacement(radius, settings.radius, widest, settings.precision)
    }

    /// Along which axes the extent of the coordinates counts: the periodic ones, because only there
    /// image vectors are rounded, and all if a box vector leans along an open axis.
    fn counting(&self) -> [bool; 3] {
        match &self.engine.settings.domain {
            Ok(domain) => domain
                .lengths()
                .map(|length| domain.is_slanted() || length.is_some()),
            Err(_) => [true; 3],
        }
    }

    /// The room of a set along these axes, all of the others.
    fn counted(&self, room: &Bounds) -> Bounds {
        let (mut counted, counting) = (*room, self.counting());
        for axis in (0..3).filter(|&axis| !counting[axis]) {
            counted.min[axis] = f64::NEG_INFINITY;
            counted.max[axis] = f64::INFINITY;
        }
        counted
    }
}
