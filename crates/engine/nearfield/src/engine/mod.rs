//! The engine: point sets on one lattice, lists and traversals over them.
//!
//! An engine knows which points there are and which job is asked for; the [backend](crate::backend)
//! knows how a job runs. All sets are sorted into cells of one lattice, so any set can be searched
//! by any other without sorting it again. Each set is checked, copied and sorted once per update,
//! whatever is then asked of it.
//!
//! | file | contents |
//! | --- | --- |
//! | `builder`, `build` | settings, their checks, and the start of an engine |
//! | `placing`, `sets`, `remove` | positions on their way in, and sets |
//! | `search_pairs`, `extents` | what is kept of pairs of sets, and of all sets together |
//! | `lists`, `geometry`, `chunks`, `batches` | the forms in which neighbours go out |
//! | `query`, `visits` | neighbours of free positions and of single points |
//! | `one_call` | lists without an engine of the caller's |
//! | `traverse`, `verlet` | pair kernels, over cells, lists, or lists with a skin |
//! | `jobs`, `job_record`, `report` | where a job runs, and the record of it |
//! | `auto`, `later`, `rehearsal` | a GPU that is taken in while the engine works |
//! | `interrupt` | calls that end early |
//! | `radii`, `point_radii` | radii of single points |
//! | `filters`, `point_data` | cut-offs of types, exclusions, chosen targets, the k nearest |
//! | `all_pairs` | sums without a radius; these need no engine |
//!
//! **Invariants.** All sets are on the lattice of the engine, or marked as astray and refused. A
//! call that returns an error has left every set with its last good positions. Lists are handed out
//! only if both sets are unchanged since they were found.
//!
//! **Locks.** Methods that take `&self` write two small records, the times and the places of jobs,
//! each behind a mutex of its own. Neither is held while a job runs, nor together with the other. A
//! lock that a panic has poisoned is used all the same, because both records are whole after every
//! change.

pub(crate) mod all_pairs;
mod auto;
pub(crate) mod batches;
mod build;
pub(crate) mod builder;
pub(crate) mod chunks;
mod extents;
mod filters;
mod geometry;
mod interrupt;
mod job_record;
pub(crate) mod jobs;
pub(crate) mod later;
mod lists;
pub(crate) mod one_call;
mod over_lists;
mod placing;
pub(crate) mod point_data;
pub(crate) mod point_radii;
pub(crate) mod query;
pub(crate) mod radii;
mod rehearsal;
mod remove;
pub(crate) mod report;
mod report_json;
pub(crate) mod search_pairs;
pub(crate) mod sets;
pub(crate) mod skin_search;
pub(crate) mod systems;
pub(crate) mod traverse;
pub(crate) mod verlet;
mod visits;

use crate::{
    Builder, Error, ErrorKind, PointSetId, Precision,
    backend::{accelerator::Accelerator, split::Split},
    engine::{
        extents::Extents,
        job_record::JobRecord,
        later::LaterGpu,
        point_data::EngineFilters,
        search_pairs::{SearchPair, SearchPairs, SlotPair},
        sets::Set,
    },
    error::MissingLists,
    report::{MemoryReport, Report, StageTimes},
    slots::Slots,
};
use nearfield_cpu::{CpuBackend, PairGeometry, WorkerHandle};
use nearfield_grid::{Bounds, Domain, Grid, Lattice, Permutation, memory::make_room_for_one};
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

/// A fixed-radius neighbour engine; see the [crate's documentation](crate) for which call serves
/// which purpose.
///
/// A step is: [`update`](Self::update) the sets that have moved, then search
/// ([`find_neighbors`](Self::find_neighbors)) or evaluate a kernel
/// ([`traverse`](Self::traverse)). Memory is kept from step to step, so later steps allocate little
/// or nothing.
///
/// Methods that take `&self` may be called from several threads at once; each job uses all workers
/// of the engine. Dropping an engine ends its threads.
///
/// ```
/// use nearfield::prelude::*;
/// let mut positions = vec![[0.0f32; 3], [0.75, 0.0, 0.0]];
/// let mut engine = Engine::builder(0.5).build()?;
/// let points = engine.add_point_set(&positions)?;
/// for _step in 0..2 {
///     positions[1][0] -= 0.25;
///     engine.update(points, &positions)?;
///     engine.find_neighbors()?;
///     assert_eq!(engine.neighbors(points, points)?.of(0), &[1]);
/// }
/// # Ok::<(), nearfield::Error>(())
/// ```
pub struct Engine {
    /// As they were given; the radius follows [`Engine::set_radius`].
    pub(crate) settings: Builder,
    /// Those of the settings, which hold for all sets.
    pub(crate) filters: EngineFilters,
    /// The cells of the host. A GPU may divide them further.
    ///
    /// Its radius and domain are those of the settings; only its cells follow the points.
    pub(crate) lattice: Lattice,
    /// The worker threads and their scratch.
    pub(crate) backend: CpuBackend,
    /// A GPU, or the emulated device.
    pub(crate) accelerator: Option<Box<dyn Accelerator>>,
    /// Where both backends share a step.
    ///
    /// None where a device does whole jobs alone.
    pub(crate) split: Option<Split>,
    /// A GPU that may be taken in.
    pub(crate) later: Option<LaterGpu>,
    /// Why the engine works where it does, for the report and for every job of it.
    pub(crate) reason: Arc<str>,
    /// Which sets there are, by name.
    pub(crate) slots: Slots,
    /// By slot.
    pub(crate) sets: Vec<Set>,
    /// Bounds and numbers of points of the sets, by slot.
    pub(crate) extents: Extents,
    /// Which sets search which, with their lists.
    pub(crate) pairs: SearchPairs,
    /// Whether some set may be on another lattice than the engine; false while none is.
    maybe_astray: bool,
    /// Whether there may be sets that the device was never sent, in an engine that has one.
    pub(crate) undelivered: bool,
    /// Where a device writes the neighbours of a single point.
    pub(crate) visited: Mutex<PairGeometry>,
    /// Written by methods that take `&self`, so that the report has the last one of each stage.
    pub(crate) times: Mutex<StageTimes>,
    /// Where every job was done last.
    pub(crate) done: Mutex<JobRecord>,
}

/// The device, the radius, the lengths of the box, and the number of points of every set.
impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let points = self
            .slots
            .used()
            .map(|set| self.sets[set.slot()].grid.len());
        // Those of the lattice may be of shorter vectors.
        let given = self.settings.domain.as_ref();
        let lengths = given.map_or([None; 3], Domain::lengths);
        f.debug_struct("Engine")
            .field("device", &format_args!("{}", self.device()))
            .field("radius", &self.lattice.radius().as_given())
            .field("periodic", &lengths)
            .field("points", &points.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// The backends and filters of an engine.
pub(crate) struct EngineParts {
    pub(crate) filters: EngineFilters,
    pub(crate) backend: CpuBackend,
    pub(crate) accelerator: Option<Box<dyn Accelerator>>,
    pub(crate) split: Option<Split>,
    pub(crate) later: Option<LaterGpu>,
    pub(crate) reason: Arc<str>,
}

impl Engine {
    /// An engine without point sets; `settings` have been checked.
    pub(crate) fn new(settings: Builder, lattice: Lattice, parts: EngineParts) -> Self {
        let EngineParts {
            filters,
            backend,
            accelerator,
            split,
            later,
            reason,
        } = parts;
        Self {
            settings,
            filters,
            lattice,
            backend,
            accelerator,
            split,
            later,
            reason,
            slots: Slots::new(),
            sets: Vec::new(),
            extents: Extents::default(),
            pairs: SearchPairs::new(),
            maybe_astray: false,
            undelivered: false,
            visited: Mutex::default(),
            times: Mutex::default(),
            done: Mutex::default(),
        }
    }

    /// Says in the trace what it runs on.
    pub(crate) fn announce(&self) {
        tracing::debug!(
            name: "engine.device",
            device = %self.settings.device,
            reason = &*self.reason,
            threads = self.backend.threads(),
            simd = self.backend.level().name(),
        );
    }

    /// Adds a point set. It searches every set and is searched by every set, itself included,
    /// until [`set_active`](Self::set_active) says otherwise.
    ///
    /// Positions are checked and copied, 12 bytes per point in `f32` (24 in `f64`), and sorted by
    /// cell; the caller's array is not referred to afterwards. Their unit is that of the radius. A
    /// set may be empty.
    ///
    /// Up to 65,536 sets are added in a time that grows with their number. A search of all of them
    /// by all takes as many searches as the square of it; where few pairs are needed, switch all of
    /// them off by [`set_all_active`](Self::set_all_active) and those on.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut engine = Engine::builder(0.5).build()?;
    /// let fluid = engine.add_point_set(&[[0.0f32; 3], [0.25, 0.0, 0.0]])?;
    /// let wall = engine.add_point_set(&[[0.0f32, -0.25, 0.0]])?;
    /// engine.find_neighbors()?;
    /// assert_eq!(engine.neighbors(fluid, wall)?.of(1), &[0]);
    /// assert_eq!(engine.neighbors(wall, fluid)?.of(0).len(), 2);
    ///
    /// let refused = engine.add_point_set(&[[0.0, f32::NAN, 0.0]]).unwrap_err();
    /// assert!(refused.to_string().contains("point 0 has y = NaN"));
    /// assert_eq!(engine.point_sets(), 2);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Positions`] naming the point that cannot be used, and
    /// [`ErrorKind::TooManyPointSets`]; nothing is added then.
    pub fn add_point_set<'a>(
        &mut self,
        positions: impl nearfield_grid::IntoPositions<'a>,
    ) -> Result<PointSetId, Error> {
        let (id, positions) = (self.slots.next()?, positions.into_positions());
        let points = positions.len();
        let _span =
            tracing::debug_span!("engine.add_point_set", set = id.number(), points).entered();
        let before = self.sets.len();
        let room = id.slot() + 1;
        (self.extents.make_room(room))
            .and_then(|()| self.pairs.make_room(room))
            .and_then(|()| make_room_for_one(&mut self.sets, "sets"))
            .map_err(|source| {
                let source = source.into();
                ErrorKind::Positions { set: id, source }
            })?;
        match self.sets.get_mut(id.slot()) {
            // If placing fails, the slot stays free and without points. The next set gets the same
            // name, which was not given out.
            Some(free) => free.id = id,
            None => self.sets.push(Set::new(self.lattice.clone(), id)),
        }
        if let Err(error) = self.place(id, positions) {
            self.sets.truncate(before);
            return Err(error);
        }
        self.slots.take(id);
        Ok(id)
    }

    /// Number of point sets, those that were removed left out.
    pub fn point_sets(&self) -> usize {
        self.slots.count()
    }

    /// The set with a [number](PointSetId::number), for programs in which only numbers name sets,
    /// such as those of another language. Numbers of removed sets are not given again.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut engine = Engine::builder(0.5).build()?;
    /// let points = engine.add_point_set(&[[0.0f32; 3]])?;
    /// assert_eq!(engine.point_set(points.number())?, points);
    /// assert!(engine.point_set(7).is_err());
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`] and [`ErrorKind::RemovedPointSet`].
    pub fn point_set(&self, number: u32) -> Result<PointSetId, Error> {
        self.slots.with_number(number)
    }

    /// Number of points of a set.
    ///
    /// That of the last positions accepted, also while only a device has sorted them.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`], [`ErrorKind::RemovedPointSet`] and
    /// [`ErrorKind::OtherEngine`], as for every method that names a set.
    pub fn points(&self, set: PointSetId) -> Result<usize, Error> {
        self.known(set)?;
        Ok(self.sets[set.slot()].grid.len())
    }

    /// Whether `targets` search among `sources` in [`find_neighbors`](Self::find_neighbors).
    /// Traversals name their sets themselves and are not affected. A pair that is switched off
    /// loses its lists, and keeps their memory for when it is switched on.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut engine = Engine::builder(0.5).build()?;
    /// let fluid = engine.add_point_set(&[[0.0f32; 3]])?;
    /// let wall = engine.add_point_set(&[[0.25f32, 0.0, 0.0]])?;
    /// // The neighbours of points of the wall are not needed.
    /// engine.set_active(wall, fluid, false)?;
    /// engine.set_active(wall, wall, false)?;
    /// engine.find_neighbors()?;
    /// assert!(engine.neighbors(fluid, wall).is_ok());
    /// assert!(engine.neighbors(wall, fluid).is_err());
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// Lists of a pair that is switched on are written by the next search. The setting stays
    /// through updates and ends with the removal of either set.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`], and [`ErrorKind::Cpu`] when memory is short.
    pub fn set_active(
        &mut self,
        targets: PointSetId,
        sources: PointSetId,
        active: bool,
    ) -> Result<(), Error> {
        let pair = self.pair(targets, sources)?;
        self.pairs.set_active(pair, active)?;
        Ok(())
    }

    /// Switches all pairs of sets on or off, also those of sets that are added later;
    /// [`set_active`](Self::set_active) then switches single ones.
    ///
    /// For many sets that meet few others each, such as the bodies of a scene. Time and memory
    /// follow the number of sets and the number of active pairs.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut engine = Engine::builder(0.5).build()?;
    /// engine.set_all_active(false);
    /// let row = |k: usize| [[0.4 * k as f32, 0.0, 0.0]];
    /// let bodies: Vec<PointSetId> =
    ///     (0..1000).map(|k| engine.add_point_set(&row(k))).collect::<Result<_, _>>()?;
    /// for pair in bodies.windows(2) {
    ///     engine.set_active(pair[0], pair[1], true)?;
    /// }
    /// engine.find_neighbors()?;
    /// assert_eq!(engine.report().pairs, 999);
    /// assert!(engine.neighbors(bodies[0], bodies[2]).is_err());
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// Pairs that are switched off lose their lists, as they do one by one.
    pub fn set_all_active(&mut self, active: bool) {
        self.pairs.set_all_active(active);
    }

    /// Whether `targets` search among `sources`; see [`set_active`](Self::set_active).
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`].
    pub fn is_active(&self, targets: PointSetId, sources: PointSetId) -> Result<bool, Error> {
        Ok(self.pairs.is_active(self.pair(targets, sources)?))
    }

    /// Gives a set new positions; their number may differ from before. Lists that involve the set
    /// are out of date until the next [`find_neighbors`](Self::find_neighbors).
    /// [Radii](Self::set_radii) stay with the indices of the points, and are forgotten when the
    /// number of points changes.
    ///
    /// Sorting is the cost of a step that no list or traversal can avoid; it uses the memory of the
    /// step before. In a periodic box, or in `f64`, points that leave what the cells were made for
    /// move all sets to new cells.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut engine = Engine::builder(0.5).build()?;
    /// let points = engine.add_point_set(&[[0.0f32; 3], [2.0, 0.0, 0.0]])?;
    /// engine.find_neighbors()?;
    /// engine.update(points, &[[0.0f32; 3], [0.25, 0.0, 0.0], [0.5, 0.0, 0.0]])?;
    /// assert_eq!(engine.points(points)?, 3);
    /// assert!(engine.neighbors(points, points).is_err(), "these are lists of the old positions");
    /// engine.find_neighbors()?;
    /// assert_eq!(engine.neighbors(points, points)?.count(1), 2);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Positions`] naming the point that cannot be used; the set then keeps its old
    /// ones.
    pub fn update<'a>(
        &mut self,
        set: PointSetId,
        positions: impl nearfield_grid::IntoPositions<'a>,
    ) -> Result<(), Error> {
        let positions = positions.into_positions();
        let points = positions.len();
        let _span = tracing::debug_span!("engine.update", set = set.slot(), points).entered();
        self.known(set)?;
        self.take_gpu_in();
        let before = self.sets[set.slot()].stamp;
        let placed = self.place(set, positions);
        // Also where it has failed after the set was sorted.
        if self.sets[set.slot()].stamp != before {
            self.outdate(set);
        }
        placed
    }

    /// The order that makes a set local in memory: apply it to all arrays of the set (and give the
    /// reordered positions to [`update`](Self::update)) every few dozen steps. Points near each
    /// other are then near each other in memory, so loops over lists find their operands in a
    /// cache.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut positions = vec![[9.5f32, 0.0, 0.0], [0.5, 0.0, 0.0], [5.5, 0.0, 0.0]];
    /// let mut mass = vec![9.0f32, 0.0, 5.0];
    /// let mut engine = Engine::builder(1.0).build()?;
    /// let points = engine.add_point_set(&positions)?;
    /// let order = engine.z_sort(points)?;
    /// order.apply(&mut positions)?;
    /// order.apply(&mut mass)?;
    /// engine.update(points, &positions)?;
    /// assert_eq!(mass, [0.0, 5.0, 9.0]);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// Element k of the order is the point that comes to place k. It takes four bytes per point. In
    /// an engine whose GPU sorts the set, the first call after an update sorts it on the host too.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`], and [`ErrorKind::Positions`] when memory is short.
    #[doc(alias("morton", "space_filling_curve", "z_order"))]
    pub fn z_sort(&self, set: PointSetId) -> Result<Permutation, Error> {
        let order = self.grid(set)?.permutation();
        order.map_err(|source| Error::from(ErrorKind::Positions { set, source }))
    }

    /// Does work of the program's own over `points` points on the engine's workers, as a pass of
    /// the engine itself: on the calling thread where it is not worth waking them. Loops of
    /// `nearfield_grid::parallel` inside run where the work does; those of rayon itself would start
    /// the process's global pool if that is the calling thread.
    #[doc(hidden)]
    pub fn on_workers<R: Send>(&self, points: usize, work: impl FnOnce() -> R + Send) -> R {
        self.backend.install_for(points, work)
    }

    /// The workers of the engine, for work that uses the engine itself, such as a whole step of a
    /// solver: all passes and jobs in it then begin on a worker, so that no thread is put to sleep
    /// and woken between them. None where the engine has another backend than the CPU, which the
    /// calling thread drives while the workers are at work.
    #[doc(hidden)]
    pub fn workers(&self) -> Option<WorkerHandle> {
        (self.accelerator.is_none()).then(|| self.backend.worker_handle())
    }

    /// The search radius, the largest where points have radii of their own; in single precision a
    /// value that `f32` holds exactly.
    pub fn radius(&self) -> f64 {
        self.lattice.radius().value_f64()
    }

    /// The precision in which positions are taken and pairs are decided.
    pub fn precision(&self) -> Precision {
        self.lattice.radius().precision()
    }

    /// Changes the search radius, which is rounded as [`Engine::builder`] does; all sets are sorted
    /// anew and all lists are out of date.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut engine = Engine::builder(0.25).build()?;
    /// let points = engine.add_point_set(&[[0.0f32; 3], [0.5, 0.0, 0.0]])?;
    /// assert_eq!(engine.count_neighbors(points, points)?, [0, 0]);
    /// engine.set_radius(0.5)?;
    /// assert_eq!(engine.count_neighbors(points, points)?, [1, 1]);
    /// assert!(engine.set_radius(-1.0).is_err());
    /// assert_eq!(engine.radius(), 0.5);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// Costs as much as an update of every set. Radii of single points and cut-offs of types stay
    /// as they are.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`], [`ErrorKind::Radii`] naming a point whose own radius is larger (give
    /// it another first), and [`ErrorKind::Cpu`] for a cut-off that is larger; the old radius then
    /// stays.
    pub fn set_radius(&mut self, radius: impl Into<f64>) -> Result<(), Error> {
        self.usable()?;
        let settings = Builder {
            radius: radius.into(),
            ..self.settings.clone()
        };
        let radius = settings.checked_radius()?;
        let filters = EngineFilters::new(&settings, radius)?;
        // Before any set is moved, so that a refusal leaves all of them.
        for set in &self.sets {
            set.radii
                .check(radius, &self.backend)
                .map_err(|source| ErrorKind::Radii {
                    set: set.id,
                    source,
                })?;
        }
        let domain = *self.lattice.domain();
        let lattice = Lattice::new(radius, domain, settings.subdivision, &self.bounds())
            .map_err(ErrorKind::Setup)?;
        self.move_to(lattice, MissingLists::Radius)?;
        (self.settings, self.filters) = (settings, filters);
        Ok(())
    }

    /// The report of the last steps: devices with reasons, times, and memory held. Cheap enough to
    /// be asked for every step: it looks at every set and at every pair of sets that has lists, and
    /// never at points.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut engine = Engine::builder(0.5).device(Device::Cpu).build()?;
    /// engine.add_point_set(&[[0.0f32; 3], [0.25, 0.0, 0.0]])?;
    /// engine.find_neighbors()?;
    /// let report = engine.report();
    /// assert_eq!((report.points(), report.pairs), (2, 2));
    /// assert_eq!((report.device, report.jobs[0].job.as_str()), (Device::Cpu, "lists"));
    /// assert!(report.list_bytes > 0 && report.memory.total() >= report.list_bytes);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    pub fn report(&self) -> Report {
        let times = *self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let gpu = self.accelerator.as_ref().and_then(|device| device.report());
        Report {
            requested: self.settings.device,
            device: self.device(),
            reason: self.reason.to_string(),
            gpu,
            jobs: self.job_reports(),
            threads: self.backend.threads(),
            simd: self.backend.level(),
            precision: self.precision(),
            sets: self
                .slots
                .used()
                .map(|set| self.sets[set.slot()].report())
                .collect(),
            times,
            pairs: (self.pairs.records())
                .filter(|pair| pair.current)
                .map(|pair| pair.lists.pairs())
                .sum(),
            list_bytes: self.pairs.list_bytes(),
            memory: self.memory(),
        }
    }

    /// Bytes held by all sets, pairs of sets and the backend.
    fn memory(&self) -> MemoryReport {
        let sets = |bytes: fn(&Set) -> usize| self.sets.iter().map(bytes).sum();
        let lists = |bytes: fn(&SearchPair) -> usize| self.pairs.records().map(bytes).sum();
        let visited = self.visited.lock().unwrap_or_else(PoisonError::into_inner);
        MemoryReport {
            sorted_points: sets(|set| set.grid.made().map_or(0, |grid| grid.points().bytes())),
            tables: sets(|set| set.grid.made().map_or(0, Grid::table_bytes)),
            sort_scratch: sets(|set| set.grid.made().map_or(0, Grid::scratch_bytes)),
            places: sets(Set::places_bytes),
            radii: sets(|set| set.radii.bytes()),
            filters: sets(|set| set.data.bytes()),
            positions: sets(Set::copy_bytes),
            queries: sets(Set::wide_bytes) + visited.bytes(),
            backend_scratch: self.backend.scratch_bytes(),
            list_entries: lists(|pair| pair.lists.entry_bytes()),
            list_bookkeeping: lists(|pair| pair.lists.bookkeeping_bytes()),
        }
    }

    /// The sorted points of a set, sorted now if only a device has sorted them.
    ///
    /// The first call sorts on the engine's workers; later ones, until the next update, cost
    /// nothing.
    pub(crate) fn grid(&self, set: PointSetId) -> Result<&Grid, Error> {
        self.known(set)?;
        self.sets[set.slot()].in_place()?;
        let grid = self.sets[set.slot()].grid.get(&self.backend);
        grid.map_err(|source| Error::from(ErrorKind::Positions { set, source }))
    }

    /// Refuses to use a GPU in a forked child of the process that has started it.
    ///
    /// The state of a driver does not survive a fork, so nothing is asked of it there.
    pub(crate) fn usable(&self) -> Result<(), Error> {
        match &self.accelerator {
            Some(device) => device.usable(),
            None => Ok(()),
        }
    }

    /// Refuses names of sets that this engine does not have.
    pub(crate) fn known(&self, set: PointSetId) -> Result<(), Error> {
        self.usable()?;
        self.slots.check(set)
    }

    /// Bounds of all sets.
    ///
    /// Kept with the sets, so this reads no point. A set without points adds nothing.
    pub(crate) fn bounds(&self) -> Bounds {
        self.extents.all().bounds
    }

    /// Moves all sets to a lattice that also holds a set with new `bounds`, if it must change.
    /// Where points are matters along periodic axes, and in `f64` along open ones too, where the
    /// lattice follows a cloud that moves far.
    ///
    /// Called before the positions are sorted, so `set` itself is moved with its old ones. In an
    /// open domain in `f32` cells are anchored at the origin, and no lattice depends on the points.
    pub(crate) fn fit_lattice(&mut self, set: PointSetId, bounds: &Bounds) -> Result<(), Error> {
        if !self.lattice.domain().is_periodic() && self.precision() == Precision::Single {
            return Ok(());
        }
        let all = self.extents.bounds_with(set.slot(), bounds);
        let (radius, domain) = (self.lattice.radius(), *self.lattice.domain());
        let lattice = Lattice::new(radius, domain, self.settings.subdivision, &all)
            .map_err(ErrorKind::Setup)?;
        if lattice != self.lattice {
            self.move_to(lattice, MissingLists::Changed { set })?;
        }
        Ok(())
    }

    /// Refuses an engine with a set that is on another lattice than the others.
    pub(crate) fn in_place(&self) -> Result<(), Error> {
        if self.maybe_astray {
            self.sets.iter().try_for_each(Set::in_place)?;
        }
        Ok(())
    }

    /// Moves all sets to a lattice, for the reason `why`; when memory is too short for one, all are
    /// on the old one again.
    ///
    /// Sets that only a device has sorted are not sorted here: they take the lattice down for
    /// later. The device and all plans are told, because their cells are of the old lattice.
    fn move_to(&mut self, lattice: Lattice, why: MissingLists) -> Result<(), Error> {
        for number in 0..self.sets.len() {
            let set = &mut self.sets[number];
            if let Err(source) = set.grid.rebuild(&lattice, &self.backend) {
                self.move_back(number);
                let set = self.sets[number].id;
                return Err(ErrorKind::Positions { set, source }.into());
            }
            set.was_sorted(&self.backend);
        }
        self.lattice = lattice;
        self.maybe_astray = false;
        if let Some(device) = &mut self.accelerator {
            device.outdate();
        }
        if let Some(split) = &self.split {
            split.drop_plans();
        }
        self.pairs.outdate_all(why);
        Ok(())
    }

    /// Moves the first sets back to the engine's lattice.
    ///
    /// A set for which memory is short here too is on a lattice of its own. Pairs of it with other
    /// sets would be wrong, so the error is kept and every job that names the set returns it.
    fn move_back(&mut self, moved: usize) {
        for set in &mut self.sets[..moved] {
            let back = set.grid.rebuild(&self.lattice, &self.backend);
            set.was_sorted(&self.backend);
            // Refused from now on, until it is updated or moved.
            set.astray = back.err();
            self.maybe_astray |= set.astray.is_some();
        }
    }

    /// Lists that involve `set` are no longer those of the sets as they are.
    ///
    /// The lists keep their memory.
    pub(crate) fn outdate(&mut self, set: PointSetId) {
        self.pairs.outdate(set);
    }

    /// A pair of sets that are there, by slot.
    pub(crate) fn pair(&self, targets: PointSetId, sources: PointSetId) -> Result<SlotPair, Error> {
        self.known(targets)?;
        self.known(sources)?;
        Ok([targets.slot() as u32, sources.slot() as u32])
    }

    /// Changes the times of the report.
    pub(crate) fn record(&self, change: impl FnOnce(&mut StageTimes)) {
        change(&mut self.times.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
