//! The engine: point sets on one lattice, lists and traversals over them.

use crate::{Device, Error, Pair, PairKernel, Positions, Report, SetReport, StageTimes, Traversal};
use nearfield_cpu::{CpuLane, Fields, ListKind, NeighborLists, Output, PairOfSets, SimdLevel};
use nearfield_grid::{Bounds, Domain, Grid, Lattice, Permutation, Radius};
use std::{
    fmt,
    sync::{Mutex, OnceLock, PoisonError},
    time::Instant,
};

/// Names a point set of an engine; sets are numbered from 0 in the order added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PointSetId(usize);

impl PointSetId {
    /// The set's number.
    pub fn index(self) -> usize {
        self.0
    }
}

impl fmt::Display for PointSetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Settings of an engine, made by [`Engine::builder`].
#[derive(Debug, Clone)]
#[must_use = "settings do nothing until build() is called"]
pub struct Builder {
    radius: f32,
    domain: Result<Domain, nearfield_grid::Error>,
    device: Device,
    threads: usize,
    simd: Option<SimdLevel>,
    subdivision: u32,
    lists: ListKind,
}

impl Builder {
    /// Box length per axis where the domain is periodic, `None` where it is open (the default).
    /// All images within the radius are found, also when the box is smaller than the radius.
    ///
    /// This, [`triclinic`](Self::triclinic) and [`box_vectors`](Self::box_vectors) replace each
    /// other. What is wrong with a box is said by [`build`](Self::build).
    pub fn periodic(mut self, lengths: [Option<f64>; 3]) -> Self {
        self.domain = Domain::new(lengths);
        self
    }

    /// A tilted box in the form of LAMMPS and GROMACS: box length per axis, `None` where it is
    /// open, and the tilts `[xy, xz, yz]`, of which only those between periodic axes may differ
    /// from 0. The box repeats along (lx, 0, 0), (xy, ly, 0) and (xz, yz, lz).
    ///
    /// Everything is found whatever the tilts are, but a box tilted by several of its lengths is
    /// searched in slanted cells, which takes longer: prefer tilts of up to half a length.
    pub fn triclinic(mut self, lengths: [Option<f64>; 3], tilts: [f64; 3]) -> Self {
        self.domain = Domain::triclinic(lengths, tilts);
        self
    }

    /// A box that repeats along any three vectors, `None` where the axis is open; they need not be
    /// lower triangular. A vector must have no component along an open axis.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// // A face-centred cubic crystal by the cell of a single atom: twelve nearest neighbours.
    /// let cell = [[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]];
    /// let mut engine = Engine::builder(0.8).box_vectors(cell.map(Some)).build()?;
    /// let atoms = engine.add_point_set(&[[0.0f32; 3]])?;
    /// engine.find_neighbors()?;
    /// assert_eq!(engine.neighbors(atoms, atoms)?.of(0), &[0; 12]);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    pub fn box_vectors(mut self, vectors: [Option<[f64; 3]>; 3]) -> Self {
        self.domain = Domain::from_vectors(vectors);
        self
    }

    /// Hardware to use; [`Device::Auto`] by default.
    pub fn device(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// Worker threads of the CPU lane; 0, the default, for one per core.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Holds the CPU lane to an instruction set, for tests and measurements; by default the best
    /// one the processor has. A level that the processor lacks is ignored.
    pub fn simd(mut self, level: SimdLevel) -> Self {
        self.simd = Some(level);
        self
    }

    /// Cells per radius along each axis (K), 1 by default, at most 8. Results are the same for
    /// every K, only the order inside lists and the time differ.
    pub fn subdivision(mut self, cells: u32) -> Self {
        self.subdivision = cells.clamp(1, 8);
        self
    }

    /// Full lists (the default) or half lists, in which each pair of a set stands once.
    pub fn lists(mut self, kind: ListKind) -> Self {
        self.lists = kind;
        self
    }

    /// Starts the engine.
    ///
    /// # Errors
    /// [`Error::Setup`] for a radius or box that cannot be used,
    /// [`Error::DeviceUnavailable`], and [`Error::Cpu`] when threads cannot be started.
    pub fn build(self) -> Result<Engine, Error> {
        let radius = Radius::new(self.radius).map_err(Error::Setup)?;
        let domain = self.domain.clone().map_err(Error::Setup)?;
        let lattice =
            Lattice::new(radius, domain, self.subdivision, &Bounds::EMPTY).map_err(Error::Setup)?;
        let reason = choose(self.device)?;
        let lane = CpuLane::new(self.threads)?;
        let lane = match self.simd {
            Some(level) => lane.with_level(level),
            None => lane,
        };
        Ok(Engine {
            settings: self,
            lattice,
            lane,
            reason,
            sets: Vec::new(),
            pairs: Vec::new(),
            times: Mutex::default(),
        })
    }
}

/// Whether this build can serve a device, and why it runs where it runs.
fn choose(device: Device) -> Result<&'static str, Error> {
    match device {
        Device::Cpu => Ok("asked for"),
        Device::Auto => Ok("this build has no GPU lane"),
        Device::Gpu(_) | Device::Hybrid(_) => Err(Error::DeviceUnavailable {
            device,
            missing: "this build has no GPU lane; use cpu or auto",
        }),
    }
}

/// A fixed-radius neighbour engine; see the [crate's documentation](crate).
#[derive(Debug)]
pub struct Engine {
    settings: Builder,
    lattice: Lattice,
    lane: CpuLane,
    reason: &'static str,
    sets: Vec<Set>,
    /// Row by row: entry `targets * sets + sources`.
    pairs: Vec<SearchPair>,
    times: Mutex<StageTimes>,
}

#[derive(Debug)]
struct Set {
    grid: Grid,
    /// Sorted place of every point, made when first asked for.
    places: OnceLock<Vec<u32>>,
}

#[derive(Debug)]
struct SearchPair {
    active: bool,
    current: bool,
    lists: NeighborLists,
}

impl SearchPair {
    fn active() -> Self {
        Self {
            active: true,
            current: false,
            lists: NeighborLists::default(),
        }
    }
}

impl Engine {
    /// Settings for an engine with this search radius, in the unit of the coordinates.
    pub fn builder(radius: f32) -> Builder {
        Builder {
            radius,
            domain: Ok(Domain::OPEN),
            device: Device::Auto,
            threads: 0,
            simd: None,
            subdivision: 1,
            lists: ListKind::Full,
        }
    }

    /// Adds a point set. It searches every set and is searched by every set, itself included,
    /// until [`set_active`](Self::set_active) says otherwise.
    ///
    /// # Errors
    /// [`Error::Positions`] naming the point that cannot be used; nothing is added then.
    pub fn add_point_set<'a>(
        &mut self,
        positions: impl Into<Positions<'a>>,
    ) -> Result<PointSetId, Error> {
        let id = PointSetId(self.sets.len());
        self.sets.push(Set {
            grid: Grid::new(self.lattice.clone()),
            places: OnceLock::new(),
        });
        if let Err(error) = self.place(id, positions.into()) {
            self.sets.pop();
            return Err(error);
        }
        let old = self.sets.len() - 1;
        for row in (0..old).rev() {
            self.pairs.insert((row + 1) * old, SearchPair::active());
        }
        self.pairs.extend((0..=old).map(|_| SearchPair::active()));
        Ok(id)
    }

    /// Number of point sets.
    pub fn point_sets(&self) -> usize {
        self.sets.len()
    }

    /// Number of points of a set.
    ///
    /// # Errors
    /// [`Error::UnknownPointSet`].
    pub fn points(&self, set: PointSetId) -> Result<usize, Error> {
        Ok(self.grid(set)?.points().len())
    }

    /// Whether `targets` search among `sources` in [`find_neighbors`](Self::find_neighbors).
    /// Traversals name their sets themselves and are not affected.
    ///
    /// # Errors
    /// [`Error::UnknownPointSet`].
    pub fn set_active(
        &mut self,
        targets: PointSetId,
        sources: PointSetId,
        active: bool,
    ) -> Result<(), Error> {
        let at = self.pair_index(targets, sources)?;
        self.pairs[at].active = active;
        self.pairs[at].current &= active;
        Ok(())
    }

    /// Gives a set new positions; their number may differ from before. Lists that involve the set
    /// are out of date until the next [`find_neighbors`](Self::find_neighbors).
    ///
    /// # Errors
    /// [`Error::Positions`] naming the point that cannot be used; the set then keeps its old ones.
    pub fn update<'a>(
        &mut self,
        set: PointSetId,
        positions: impl Into<Positions<'a>>,
    ) -> Result<(), Error> {
        self.grid(set)?;
        self.place(set, positions.into())?;
        self.outdate(set);
        Ok(())
    }

    /// Writes the neighbour lists of every active pair of sets.
    ///
    /// # Errors
    /// [`Error::Cpu`] when memory is short; lists finished before are kept.
    pub fn find_neighbors(&mut self) -> Result<(), Error> {
        let begin = Instant::now();
        let sets = self.sets.len();
        for (at, pair) in self.pairs.iter_mut().enumerate() {
            if pair.active && !pair.current {
                let of = pair_of_sets(&self.sets, at / sets, at % sets);
                self.lane.search(of, self.settings.lists, &mut pair.lists)?;
                pair.current = true;
            }
        }
        self.record(|times| times.search = begin.elapsed());
        Ok(())
    }

    /// Lists written by the last [`find_neighbors`](Self::find_neighbors): for every point of
    /// `targets`, the indices of its neighbours in `sources`.
    ///
    /// # Errors
    /// [`Error::NoLists`] when the pair is inactive or a set was updated since, and
    /// [`Error::UnknownPointSet`].
    pub fn neighbors(
        &self,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Result<&NeighborLists, Error> {
        let pair = &self.pairs[self.pair_index(targets, sources)?];
        if !pair.current {
            return Err(Error::NoLists { targets, sources });
        }
        Ok(&pair.lists)
    }

    /// Neighbours in `sources` of positions that are no points of any set.
    ///
    /// # Errors
    /// [`Error::Query`] naming a position that cannot be used, and [`Error::UnknownPointSet`].
    pub fn query<'a>(
        &mut self,
        positions: impl Into<Positions<'a>>,
        sources: PointSetId,
    ) -> Result<NeighborLists, Error> {
        self.grid(sources)?;
        let positions = positions.into();
        let domain = *self.lattice.domain();
        let bounds = self
            .lane
            .install(|| Bounds::of(positions, &domain))
            .map_err(Error::Query)?;
        self.fit_lattice(sources, &bounds.union(self.sets[sources.0].grid.bounds()))?;
        let mut targets = Grid::new(self.lattice.clone());
        let lattice = &self.lattice;
        self.lane
            .install(|| targets.build(positions, bounds, lattice))
            .map_err(Error::Query)?;
        let mut lists = NeighborLists::default();
        let of = PairOfSets {
            targets: &targets,
            sources: &self.sets[sources.0].grid,
            same_set: false,
        };
        self.lane.search(of, ListKind::Full, &mut lists)?;
        Ok(lists)
    }

    /// Number of neighbours in `sources` of every point of `targets`, without storing lists.
    ///
    /// # Errors
    /// [`Error::UnknownPointSet`].
    pub fn count_neighbors(
        &self,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Result<Vec<u32>, Error> {
        self.pair_index(targets, sources)?;
        let of = pair_of_sets(&self.sets, targets.0, sources.0);
        let mut counts = vec![0; of.targets.points().len()];
        let begin = Instant::now();
        self.lane.count(of, &mut counts)?;
        self.record(|times| times.traverse = begin.elapsed());
        Ok(counts)
    }

    /// A traversal of all pairs of `targets` and `sources` with a kernel, no list stored:
    ///
    /// ```
    /// use nearfield::{SphDensity, WendlandC2, prelude::*};
    /// let positions = [[0.0f32, 0.0, 0.0], [0.3, 0.0, 0.0]];
    /// let mut engine = Engine::builder(1.0).build()?;
    /// let fluid = engine.add_point_set(&positions)?;
    /// let kernel = SphDensity { kernel: WendlandC2::with_support(1.0) };
    /// let density = engine
    ///     .traverse(&kernel, fluid, fluid)
    ///     .source_fields(&[Field::from(&[1.0f32, 2.0])])
    ///     .run()?;
    /// assert!(density[0] == 2.0 * density[1]);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    pub fn traverse<'a, K: PairKernel>(
        &'a self,
        kernel: &'a K,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Traversal<'a, K> {
        Traversal {
            engine: self,
            kernel,
            targets,
            sources,
            fields: Fields::default(),
        }
    }

    /// Calls `visit` with every neighbour in `sources` of one point of `targets` and the geometry
    /// of the pair. Runs on the calling thread, so callers may spread points over threads of their
    /// own; for whole sets, [`traverse`](Self::traverse) is many times faster.
    ///
    /// # Errors
    /// [`Error::UnknownPointSet`] and [`Error::UnknownPoint`].
    pub fn for_each_neighbor(
        &self,
        targets: PointSetId,
        sources: PointSetId,
        point: usize,
        visit: impl FnMut(u32, Pair),
    ) -> Result<(), Error> {
        self.pair_index(targets, sources)?;
        let of = pair_of_sets(&self.sets, targets.0, sources.0);
        let places = self.sets[targets.0].places.get_or_init(|| {
            let mut order = self.sets[targets.0].grid.permutation();
            order = order.inverse();
            order.order().to_vec()
        });
        let place = places.get(point).ok_or(Error::UnknownPoint {
            set: targets,
            point,
            points: places.len(),
        })?;
        of.for_each_neighbor(*place as usize, visit);
        Ok(())
    }

    /// The order that makes a set local in memory: apply it to all arrays of the set (and give the
    /// reordered positions to [`update`](Self::update)) every few dozen steps.
    ///
    /// # Errors
    /// [`Error::UnknownPointSet`].
    pub fn z_sort(&self, set: PointSetId) -> Result<Permutation, Error> {
        Ok(self.grid(set)?.permutation())
    }

    /// The search radius.
    pub fn radius(&self) -> f32 {
        self.lattice.radius().value()
    }

    /// Changes the search radius; all sets are sorted anew and all lists are out of date.
    ///
    /// # Errors
    /// [`Error::Setup`]; the old radius then stays.
    pub fn set_radius(&mut self, radius: f32) -> Result<(), Error> {
        let radius = Radius::new(radius).map_err(Error::Setup)?;
        let domain = *self.lattice.domain();
        let lattice = Lattice::new(radius, domain, self.settings.subdivision, &self.bounds())
            .map_err(Error::Setup)?;
        self.settings.radius = radius.value();
        self.move_to(lattice)
    }

    /// What ran where and why, how long it took and what is held.
    pub fn report(&self) -> Report {
        let times = *self.times.lock().unwrap_or_else(PoisonError::into_inner);
        Report {
            requested: self.settings.device,
            device: Device::Cpu,
            reason: self.reason,
            threads: self.lane.threads(),
            simd: self.lane.level(),
            sets: self.sets.iter().map(Set::report).collect(),
            times,
            pairs: self
                .pairs
                .iter()
                .filter(|pair| pair.current)
                .map(|pair| pair.lists.pairs())
                .sum(),
            list_bytes: self.pairs.iter().map(|pair| pair.lists.bytes()).sum(),
        }
    }

    pub(crate) fn grid(&self, set: PointSetId) -> Result<&Grid, Error> {
        match self.sets.get(set.0) {
            Some(found) => Ok(&found.grid),
            None => Err(Error::UnknownPointSet {
                set,
                sets: self.sets.len(),
            }),
        }
    }

    pub(crate) fn run_traversal<K: PairKernel>(
        &self,
        kernel: &K,
        targets: PointSetId,
        sources: PointSetId,
        fields: Fields<'_>,
        output: Output<'_, K::Output>,
    ) -> Result<(), Error> {
        self.pair_index(targets, sources)?;
        let begin = Instant::now();
        let of = pair_of_sets(&self.sets, targets.0, sources.0);
        self.lane.traverse(kernel, of, fields, output)?;
        self.record(|times| times.traverse = begin.elapsed());
        Ok(())
    }

    /// Checks positions and sorts them into a set.
    fn place(&mut self, set: PointSetId, positions: Positions<'_>) -> Result<(), Error> {
        let begin = Instant::now();
        let refuse = |source| Error::Positions { set, source };
        let domain = *self.lattice.domain();
        let bounds = self
            .lane
            .install(|| Bounds::of(positions, &domain))
            .map_err(refuse)?;
        self.fit_lattice(set, &bounds)?;
        let (lattice, target) = (&self.lattice, &mut self.sets[set.0]);
        self.lane
            .install(|| target.grid.build(positions, bounds, lattice))
            .map_err(refuse)?;
        target.places.take();
        self.record(|times| times.build = begin.elapsed());
        Ok(())
    }

    /// Bounds of all sets.
    fn bounds(&self) -> Bounds {
        self.sets
            .iter()
            .fold(Bounds::EMPTY, |all, set| all.union(set.grid.bounds()))
    }

    /// Moves all sets to a lattice that also holds a set with new `bounds`, if it must change:
    /// only the extent of the points along periodic axes matters.
    fn fit_lattice(&mut self, set: PointSetId, bounds: &Bounds) -> Result<(), Error> {
        if !self.lattice.domain().is_periodic() {
            return Ok(());
        }
        let all = (self.sets.iter().enumerate())
            .filter(|(number, _)| *number != set.0)
            .fold(*bounds, |all, (_, other)| all.union(other.grid.bounds()));
        let (radius, domain) = (self.lattice.radius(), *self.lattice.domain());
        let lattice =
            Lattice::new(radius, domain, self.settings.subdivision, &all).map_err(Error::Setup)?;
        if lattice != self.lattice {
            self.move_to(lattice)?;
        }
        Ok(())
    }

    fn move_to(&mut self, lattice: Lattice) -> Result<(), Error> {
        for (number, set) in self.sets.iter_mut().enumerate() {
            self.lane
                .install(|| set.grid.rebuild(&lattice))
                .map_err(|source| Error::Positions {
                    set: PointSetId(number),
                    source,
                })?;
            set.places.take();
        }
        self.lattice = lattice;
        for pair in &mut self.pairs {
            pair.current = false;
        }
        Ok(())
    }

    fn outdate(&mut self, set: PointSetId) {
        let sets = self.sets.len();
        for (at, pair) in self.pairs.iter_mut().enumerate() {
            if at / sets == set.0 || at % sets == set.0 {
                pair.current = false;
            }
        }
    }

    fn pair_index(&self, targets: PointSetId, sources: PointSetId) -> Result<usize, Error> {
        self.grid(targets)?;
        self.grid(sources)?;
        Ok(targets.0 * self.sets.len() + sources.0)
    }

    fn record(&self, change: impl FnOnce(&mut StageTimes)) {
        change(&mut self.times.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Set {
    fn report(&self) -> SetReport {
        SetReport {
            points: self.grid.points().len(),
            cells: self.grid.table_len(),
            table: self.grid.table_kind(),
            bytes: self.grid.bytes() + self.places.get().map_or(0, |places| 4 * places.len()),
        }
    }
}

fn pair_of_sets(sets: &[Set], targets: usize, sources: usize) -> PairOfSets<'_> {
    PairOfSets {
        targets: &sets[targets].grid,
        sources: &sets[sources].grid,
        same_set: targets == sources,
    }
}
