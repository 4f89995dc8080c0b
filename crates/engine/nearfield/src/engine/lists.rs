//! Neighbour lists of an engine: written, handed out, asked for free positions.

use crate::{
    Device, Engine, Error, ErrorKind, ListOrder, NeighborLists, PointSetId, Positions,
    backend::{
        Job, JobKind,
        accelerator::{KernelWork, Numbers},
        split::{self, Values},
        support::Feature,
    },
    engine::{
        jobs::{Assigned, job},
        sets::{Wide, pair_of_sets},
    },
    error::MissingLists,
};
use nearfield_cpu::{CpuBackend, PairOfSets, SortedRadii};
use nearfield_grid::{Bounds, Grid, Lattice, memory::zeroed};
use nearfield_pairs::ListKind;
use std::{sync::Arc, time::Instant};

/// What a memory limit is exceeded by.
const LISTS: &str = "neighbour lists";

impl Engine {
    /// Writes the neighbour lists of every active pair of sets.
    ///
    /// # Errors
    /// [`ErrorKind::MemoryLimit`] before anything is written, [`ErrorKind::NoRadii`], and [`ErrorKind::Cpu`] when
    /// memory is short; lists finished before are kept.
    pub fn find_neighbors(&mut self) -> Result<(), Error> {
        self.usable()?;
        let _span = tracing::debug_span!("engine.find_neighbors").entered();
        self.in_place()?;
        let begin = Instant::now();
        match self.settings.memory_limit {
            None => self.find_unlimited()?,
            Some(limit) => self.find_within(limit)?,
        }
        self.record(|times| times.search = begin.elapsed());
        Ok(())
    }

    fn find_unlimited(&mut self) -> Result<(), Error> {
        for at in 0..self.pairs.len() {
            if !self.pairs[at].active || self.pairs[at].current {
                continue;
            }
            let mut lists = std::mem::take(&mut self.pairs[at].lists);
            let found = self.find_pair(self.job_of(at), &mut lists);
            let pair = &mut self.pairs[at];
            pair.lists = lists;
            pair.current = found.is_ok();
            found?;
        }
        Ok(())
    }

    /// Lists of a pair of sets by its place among the pairs.
    fn job_of(&self, at: usize) -> Job {
        Job {
            kind: JobKind::Lists,
            targets: at / self.sets.len(),
            sources: at % self.sets.len(),
        }
    }

    /// Writes the lists of one pair of sets, wherever that is done.
    fn find_pair(&self, job: Job, lists: &mut NeighborLists) -> Result<(), Error> {
        let (kind, rule) = (self.settings.lists, self.settings.rule);
        let feature = match kind {
            ListKind::Full => Feature::Lists,
            ListKind::Half => Feature::HalfLists,
        };
        match self.assign(&feature)? {
            Assigned::Cpu(reason) => {
                let (targets, sources) = (job.targets, job.sources);
                let of = pair_of_sets(&self.backend, &self.sets, rule, targets, sources)?;
                self.backend.search(of, kind, lists)?;
                self.was_done(job, Device::Cpu, reason);
            }
            Assigned::Device(device) => {
                self.ran(job, split::find(device, &self.input(), job, lists)?);
            }
        }
        if self.settings.order == ListOrder::Ascending {
            tracing::debug_span!("cpu.sort_lists")
                .in_scope(|| self.backend.install(|| lists.sort()));
        }
        Ok(())
    }

    /// Counts all lists that are out of date, and writes them if everything stays within `limit`.
    fn find_within(&mut self, limit: u64) -> Result<(), Error> {
        let sets = self.sets.len();
        // Whether the device that was asked for can keep a limit is said once for all lists.
        let Assigned::Cpu(reason) = self.assign(&Feature::LimitedLists)? else {
            return self.find_unlimited();
        };
        let mut measured = Vec::new();
        let (mut needed, mut held) = (0, 0);
        for (at, pair) in self.pairs.iter().enumerate() {
            let (targets, pairs) = match (pair.current, pair.active) {
                (true, _) => (pair.lists.len(), pair.lists.pairs()),
                (false, false) => (0, 0),
                (false, true) => {
                    let of = pair_of_sets(
                        &self.backend,
                        &self.sets,
                        self.settings.rule,
                        at / sets,
                        at % sets,
                    )?;
                    let lists = self.backend.measure(of, self.settings.lists)?;
                    let size = (lists.lengths().len(), lists.pairs());
                    measured.push((at, lists));
                    size
                }
            };
            needed += NeighborLists::default().bytes_after(targets, pairs);
            held += pair.lists.bytes_after(targets, pairs);
        }
        within(limit, LISTS, needed)?;
        if held > limit {
            // Room kept from earlier steps is given back where it is too much altogether.
            for pair in &mut self.pairs {
                match pair.current {
                    true => pair.lists.shrink(),
                    false => pair.lists.release(),
                }
            }
        }
        let mut written = Vec::new();
        for (at, lists) in measured {
            let pair = &mut self.pairs[at];
            lists.write(self.settings.order, &mut pair.lists)?;
            pair.current = true;
            written.push(at);
        }
        for at in written {
            self.was_done(self.job_of(at), Device::Cpu, reason.clone());
        }
        Ok(())
    }

    /// Lists written by the last [`find_neighbors`](Self::find_neighbors): for every point of
    /// `targets`, the indices of its neighbours in `sources`.
    ///
    /// # Errors
    /// [`ErrorKind::NoLists`] when the pair is inactive or a set was updated since, and
    /// [`ErrorKind::UnknownPointSet`].
    pub fn neighbors(
        &self,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Result<&NeighborLists, Error> {
        let pair = &self.pairs[self.pair_index(targets, sources)?];
        if !pair.current {
            let why = pair.missing();
            return Err(ErrorKind::NoLists {
                targets,
                sources,
                why,
            }
            .into());
        }
        Ok(&pair.lists)
    }

    /// Hands over the lists that the last [`find_neighbors`](Self::find_neighbors) wrote; the
    /// engine goes on with the memory of `spare`, such as lists taken in an earlier step and done
    /// with. The pair then has no lists until they are found again.
    ///
    /// # Errors
    /// As [`neighbors`](Self::neighbors); `spare` is dropped.
    pub fn take_neighbors(
        &mut self,
        targets: PointSetId,
        sources: PointSetId,
        spare: NeighborLists,
    ) -> Result<NeighborLists, Error> {
        self.neighbors(targets, sources)?;
        let at = self.pair_index(targets, sources)?;
        let pair = &mut self.pairs[at];
        pair.outdate(MissingLists::NotFound);
        Ok(std::mem::replace(&mut pair.lists, spare))
    }

    /// Neighbours in `sources` of positions that are no points of any set. Where the radius of the
    /// target counts, positions need radii: [`query_with_radii`](Self::query_with_radii).
    ///
    /// Any number of threads may query an engine at the same time. In a periodic box, a query that
    /// reaches much farther than the points keeps a second copy of the set on cells that suit both,
    /// until the set is next updated.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] naming a position that cannot be used, [`ErrorKind::MemoryLimit`],
    /// [`ErrorKind::UnknownPointSet`], [`ErrorKind::NoRadii`] and [`ErrorKind::QueryWithoutRadii`].
    pub fn query<'a>(
        &self,
        positions: impl Into<Positions<'a>>,
        sources: PointSetId,
    ) -> Result<NeighborLists, Error> {
        let _span = tracing::debug_span!("engine.query", sources = sources.slot()).entered();
        self.known(sources)?;
        self.assign_to_cpu(
            &Feature::Query,
            job(JobKind::OfCpu("query"), sources, sources),
        )?;
        let rule = self.settings.rule;
        if rule.needs_targets() {
            return Err(ErrorKind::QueryWithoutRadii { rule }.into());
        }
        let positions = positions.into();
        // One way into the pool for everything: it takes longer than a query of few positions.
        self.backend.install(|| {
            let sides = self.query_sides(positions, sources)?;
            self.query_lists(&sides, sources, None)
        })
    }

    /// The positions of a query and what is searched, on one lattice: the engine's, where all points
    /// lie within what it was made for.
    pub(crate) fn query_sides(
        &self,
        positions: Positions<'_>,
        sources: PointSetId,
    ) -> Result<QuerySides, Error> {
        positions
            .check_precision(self.precision())
            .map_err(ErrorKind::Query)?;
        let domain = *self.lattice.domain();
        let bounds = self
            .backend
            .install(|| Bounds::of(positions, &domain))
            .map_err(ErrorKind::Query)?;
        let mut wide = None;
        if domain.is_periodic() {
            let (radius, cells) = (self.lattice.radius(), self.settings.subdivision);
            let all = bounds.union(&self.bounds());
            let lattice = Lattice::new(radius, domain, cells, &all).map_err(ErrorKind::Setup)?;
            if lattice != self.lattice {
                let set = &self.sets[sources.slot()];
                wide = Some(set.wide(&lattice, || self.widened(sources, &lattice))?);
            }
        }
        let lattice = (wide.as_ref()).map_or(&self.lattice, |wide| wide.grid.lattice());
        let mut targets = Grid::new(lattice.clone());
        self.backend
            .install(|| targets.build(positions, bounds, lattice))
            .map_err(ErrorKind::Query)?;
        Ok(QuerySides { targets, wide })
    }

    /// A set once more, on another lattice.
    fn widened(&self, set: PointSetId, lattice: &Lattice) -> Result<Wide, Error> {
        let grid = self.grid(set)?;
        let grid = (self.backend.install(|| grid.copied_to(lattice)))
            .map_err(|source| ErrorKind::Positions { set, source })?;
        let radii = self.sets[set.slot()]
            .radii
            .sorted_for(&grid, &self.backend)?;
        Ok(Wide { grid, radii })
    }

    /// Lists of the positions of a query; `radii` where their own count.
    pub(crate) fn query_lists(
        &self,
        sides: &QuerySides,
        sources: PointSetId,
        radii: Option<&SortedRadii>,
    ) -> Result<NeighborLists, Error> {
        let (rule, set) = (self.settings.rule, &self.sets[sources.slot()]);
        let QuerySides { targets, wide } = sides;
        let wide = wide.as_deref();
        let mut lists = NeighborLists::default();
        let of = PairOfSets {
            targets,
            sources: wide.map_or_else(|| self.grid(sources), |wide| Ok(&wide.grid))?,
            same_set: false,
            radii: rule.choose(
                || radii.ok_or(Error::from(ErrorKind::QueryWithoutRadii { rule })),
                || {
                    let given = set.sorted_radii(sources, rule)?;
                    Ok(wide.map_or(given, |wide| &wide.radii))
                },
            )?,
            share: None,
        };
        let (kind, order) = (ListKind::Full, self.settings.order);
        match self.settings.memory_limit {
            None => write_lists(&self.backend, of, kind, order, &mut lists)?,
            Some(limit) => {
                let measured = self.backend.measure(of, kind)?;
                let needed = lists.bytes_after(targets.points().len(), measured.pairs());
                within(limit, LISTS, needed)?;
                measured.write(order, &mut lists)?;
            }
        }
        Ok(lists)
    }

    /// Number of neighbours in `sources` of every point of `targets`, without storing lists.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`] and [`ErrorKind::NoRadii`].
    pub fn count_neighbors(
        &self,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Result<Vec<u32>, Error> {
        let (t, s) = (targets.slot(), sources.slot());
        let _span = tracing::debug_span!("engine.count", targets = t, sources = s).entered();
        self.pair_index(targets, sources)?;
        let begin = Instant::now();
        self.in_place()?;
        let mut counts = zeroed(self.points(targets)?, "counts of neighbours")?;
        let job = job(JobKind::Counts, targets, sources);
        match self.assign(&Feature::Counts)? {
            Assigned::Cpu(reason) => {
                self.backend
                    .count(self.pair_of_sets(targets, sources)?, &mut counts)?;
                self.was_done(job, Device::Cpu, reason);
            }
            Assigned::Device(device) => {
                let ran = split::evaluate(device, &self.input(), job, &Counting, &mut counts)?;
                self.ran(job, ran);
            }
        }
        self.record(|times| times.traverse = begin.elapsed());
        Ok(counts)
    }
}

/// Both sides of a query.
pub(crate) struct QuerySides {
    /// The positions.
    pub(crate) targets: Grid,
    /// The set that is searched, where it is not on the lattice of the engine.
    wide: Option<Arc<Wide>>,
}

/// Counts of neighbours.
struct Counting;

impl Numbers for Counting {
    fn compute(
        &self,
        cpu: &CpuBackend,
        of: PairOfSets<'_>,
        numbers: &mut [f32],
    ) -> Result<(), Error> {
        Ok(cpu.count(of, bytemuck::cast_slice_mut(numbers))?)
    }
}

impl Values for Counting {
    type Value = u32;

    fn width(&self) -> usize {
        1
    }

    fn kernel(&self) -> Option<&KernelWork<'_>> {
        None
    }

    fn combines(&self) -> bool {
        false
    }

    fn evaluate(
        &self,
        cpu: &CpuBackend,
        of: PairOfSets<'_>,
        counts: &mut [u32],
    ) -> Result<(), Error> {
        Ok(cpu.count(of, counts)?)
    }

    fn put(&self, place: &mut u32, numbers: &[f32]) {
        *place = numbers[0].to_bits();
    }
}

/// Writes the lists of a pair of sets in the order asked for.
fn write_lists(
    backend: &CpuBackend,
    of: PairOfSets<'_>,
    kind: ListKind,
    order: ListOrder,
    lists: &mut NeighborLists,
) -> Result<(), Error> {
    backend.search(of, kind, lists)?;
    if order == ListOrder::Ascending {
        tracing::debug_span!("cpu.sort_lists").in_scope(|| backend.install(|| lists.sort()));
    }
    Ok(())
}

/// Refuses what needs more than `limit` bytes.
pub(crate) fn within(limit: u64, what: &'static str, needed: u64) -> Result<(), Error> {
    if needed > limit {
        return Err(ErrorKind::MemoryLimit {
            what,
            needed,
            limit,
        }
        .into());
    }
    Ok(())
}
