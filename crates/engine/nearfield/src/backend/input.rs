//! A job and its input: what is asked of a backend, and the sets, lattice, options and workers of
//! the engine that asks.
//!
//! A job is also the key by which its plan and its controller are kept between steps, and its line
//! in the report. Two kernels of one type over the same sets are one job, because their times are
//! alike; two types are two.
//!
//! The input is made for every job and borrows all of it, so a backend can neither change an engine
//! nor keep anything of it. A device remembers sets by their number and the stamp of their
//! positions instead.
//!
//! **Invariant:** two inputs with the same stamp for a set have the same positions in it. A stamp
//! that differs says nothing else: positions may have changed, or only have been placed again.

use super::lazy::LazyGrid;
use crate::{Error, PointSetId, balance::Strategy};
use nearfield_cpu::{
    CpuBackend, ListOrder, NeighborLists, PairFilter, PairGeometry, PairOfSets, SetRadii,
};
use nearfield_grid::{Bounds, Lattice, Precision, Radii};
use nearfield_pairs::ListKind;
use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

/// A job of a backend for one pair of sets, named by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Job {
    pub(crate) kind: JobKind,
    /// Slot of the set whose points get results.
    pub(crate) targets: usize,
    /// Slot of the set whose points are searched.
    pub(crate) sources: usize,
}

/// Kinds of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum JobKind {
    /// Neighbour lists, full or half as the options say.
    Lists,
    /// Neighbour lists with the geometry of their pairs.
    Geometry,
    /// Numbers of neighbours.
    Counts,
    /// Neighbour lists of free positions.
    Query,
    /// Neighbour lists in chunks.
    Chunks,
    /// Batches of pairs for a callback.
    Batches,
    /// The neighbours of one point for a callback, or lists of a few points.
    Visits,
    /// A pair kernel, by the name of its type.
    Kernel(&'static str),
}

impl fmt::Display for JobKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lists => "lists",
            Self::Geometry => "pair_geometry",
            Self::Counts => "counts",
            Self::Query => "query",
            Self::Chunks => "list_chunks",
            Self::Batches => "for_each_batch",
            Self::Visits => "for_each_neighbor",
            Self::Kernel(name) => name,
        })
    }
}

/// The parts of an engine's state that a backend needs for a job.
#[derive(Debug)]
pub(crate) struct StepInput<'a> {
    /// All sets of the engine, by slot, also those that the job does not name: a device sorts all
    /// of them at once.
    pub(crate) sets: &'a dyn InputSets,
    /// Bounds of all sets.
    pub(crate) bounds: Bounds,
    /// Points of all sets.
    pub(crate) points: usize,
    /// Whether every set was sent to the device; it may have lost them since.
    pub(crate) delivered: bool,
    /// The cells of the host; a GPU may have finer ones of its own.
    pub(crate) lattice: &'a Lattice,
    /// The workers that copy and compute.
    pub(crate) cpu: &'a CpuBackend,
    pub(crate) options: StepOptions,
}

/// The sets of an engine, as a backend sees them.
///
/// Behind a trait because they are the engine's own, and making a list of them for every job would
/// take the time of looking at all sets.
pub(crate) trait InputSets: fmt::Debug + Sync {
    /// Number of slots.
    fn len(&self) -> usize;

    /// The set in a slot.
    fn set(&self, slot: usize) -> SetInput<'_>;

    /// The pair of these sets for the CPU backend, sorted on the host now if they are not.
    ///
    /// # Errors
    /// Those of a sort, and of data that the pair needs and a set does not have.
    fn pair(&self, pair: [usize; 2]) -> Result<PairOfSets<'_>, Error>;

    /// Which pairs within the radius count.
    ///
    /// # Errors
    /// Those of data that the pair needs and a set does not have.
    fn rules(&self, pair: [usize; 2]) -> Result<PairRules<'_>, Error>;
}

/// Which pairs of two sets within the radius count, by data in the caller's order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PairRules<'a> {
    pub(crate) filter: PairFilter<'a>,
    pub(crate) radii: SetRadii<Radii<'a>>,
    /// Tells cut-offs from those before.
    pub(crate) cutoffs: u64,
    /// Tell the data of targets and of sources from those before.
    pub(crate) stamps: [DataStamps; 2],
}

/// Numbers that tell the data of a set's points from those it had before; never 0 where there are
/// any.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DataStamps {
    pub(crate) types: u64,
    pub(crate) exclusions: u64,
    pub(crate) chosen: u64,
    pub(crate) radii: u64,
}

/// A number that no data of this process have yet.
pub(crate) fn next_stamp() -> u64 {
    static GIVEN: AtomicU64 = AtomicU64::new(0);
    GIVEN.fetch_add(1, Ordering::Relaxed) + 1
}

/// A point set of the engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SetInput<'a> {
    pub(crate) id: PointSetId,
    pub(crate) grid: &'a LazyGrid,
    /// Tells the positions of the set from those it had before.
    pub(crate) stamp: u64,
    /// Radii of its points as given; of another number than these where it has none of their own.
    pub(crate) radii: Radii<'a>,
    /// Tells the radii from those before.
    pub(crate) radii_stamp: u64,
}

/// The settings of an engine that concern a backend.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepOptions {
    /// How a GPU maps cells to threads; the CPU backend has no use for it.
    pub(crate) strategy: Strategy,
    /// Cells to a radius.
    pub(crate) subdivision: u32,
    /// Full lists, or half lists, which hold each pair of a set once.
    pub(crate) lists: ListKind,
    /// Bytes that lists may take.
    pub(crate) memory_limit: Option<u64>,
}

impl StepInput<'_> {
    /// All sets, by slot.
    pub(crate) fn all_sets(&self) -> impl Iterator<Item = SetInput<'_>> {
        (0..self.sets.len()).map(|slot| self.sets.set(slot))
    }

    /// Points of the targets and of the sources of a job.
    pub(crate) fn points_of(&self, job: Job) -> [usize; 2] {
        [job.targets, job.sources].map(|set| self.sets.set(set).grid.len())
    }

    /// The sets of a job, sorted on the host now if they are not, with the radii and filters that
    /// count.
    ///
    /// Cost: up to one sort on the host per set, where the device had the positions alone until
    /// now.
    ///
    /// # Errors
    /// [`ErrorKind::Positions`](crate::ErrorKind::Positions) naming the set whose points cannot be
    /// sorted, for want of memory.
    pub(crate) fn pair(&self, job: Job) -> Result<PairOfSets<'_>, Error> {
        self.sets.pair([job.targets, job.sources])
    }

    /// Which pairs within the radius count in a job.
    ///
    /// # Errors
    /// Those of data that the job needs and a set does not have.
    pub(crate) fn rules(&self, job: Job) -> Result<PairRules<'_>, Error> {
        self.sets.rules([job.targets, job.sources])
    }

    /// Writes the lists of a job with the CPU backend alone; where there is a memory limit without
    /// gaps, as a device does.
    ///
    /// # Errors
    /// As [`pair`](Self::pair), and those of the search.
    pub(crate) fn search(&self, job: Job, lists: &mut NeighborLists) -> Result<(), Error> {
        let (of, kind, order) = (self.pair(job)?, self.options.lists, ListOrder::Unspecified);
        if self.options.memory_limit.is_none() {
            return Ok((self.cpu).search(of, kind, order, lists)?);
        }
        let measured = self.cpu.measure(of, kind)?;
        (self.options).admit_lists(measured.lengths().len(), measured.pairs(), lists)?;
        Ok(measured.write(order, lists)?)
    }

    /// Writes the lists of a job and the geometry of their pairs with the CPU backend alone.
    ///
    /// # Errors
    /// As [`search`](Self::search).
    pub(crate) fn geometry(&self, job: Job, geometry: &mut PairGeometry) -> Result<(), Error> {
        let measured = self.cpu.measure(self.pair(job)?, self.options.lists)?;
        let (targets, pairs) = (measured.lengths().len(), measured.pairs());
        (self.options).admit_geometry(targets, pairs, Precision::Single, geometry)?;
        Ok(measured.write_geometry(ListOrder::Unspecified, geometry)?)
    }
}
