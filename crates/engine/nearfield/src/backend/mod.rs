//! The hardware that does an engine's jobs: the CPU pool, a GPU, and both at once.
//!
//! A backend never sees an engine. It gets a [step's input](StepInput): the point sets, the lattice,
//! the options that concern a backend and the CPU pool, and a [job](Job): lists, counts or a pair
//! kernel for one pair of sets. [`support`] alone decides which backend can do which job, and it is
//! asked once, before anything runs. What goes wrong while a job runs is a [`DeviceError`]: either a
//! [fault](Fault) of the device, after which the engine finishes the job on the CPU and reports it,
//! or an error of the host, which the caller gets.

pub(crate) mod accelerator;
pub(crate) mod emulated;
pub(crate) mod gpu;
pub(crate) mod hardware;
pub(crate) mod lazy;
pub(crate) mod split;
pub(crate) mod support;
pub(crate) mod transfer;
mod turn;

use crate::{Error, ErrorKind, PointSetId, Strategy};
use lazy::LazyGrid;
use nearfield_cpu::{CpuBackend, PairOfSets, SetRadii};
use nearfield_grid::{Bounds, Grid, Lattice};
use nearfield_pairs::ListKind;
use std::fmt;

/// What a backend needs to know of the engine whose job it does.
#[derive(Debug)]
pub(crate) struct StepInput<'a> {
    pub(crate) sets: Vec<SetInput<'a>>,
    /// The cells of the host; a GPU may have finer ones of its own.
    pub(crate) lattice: &'a Lattice,
    /// The workers that copy and compute.
    pub(crate) cpu: &'a CpuBackend,
    pub(crate) options: StepOptions,
}

/// A point set of the engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SetInput<'a> {
    pub(crate) id: PointSetId,
    pub(crate) grid: &'a LazyGrid,
    /// Tells the positions of the set from those it had before.
    pub(crate) stamp: u64,
}

/// The settings of an engine that concern a backend.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepOptions {
    pub(crate) strategy: Strategy,
    /// Cells to a radius.
    pub(crate) subdivision: u32,
    pub(crate) lists: ListKind,
}

/// What is asked of a backend for one pair of sets, by the numbers of the sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Job {
    pub(crate) kind: JobKind,
    pub(crate) targets: usize,
    pub(crate) sources: usize,
}

/// Kinds of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum JobKind {
    Lists,
    Counts,
    /// A pair kernel, by the name of its type.
    Kernel(&'static str),
    /// A job that only the CPU backend does, by its name in reports.
    OfCpu(&'static str),
}

impl fmt::Display for JobKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lists => "lists",
            Self::Counts => "counts",
            Self::Kernel(name) | Self::OfCpu(name) => name,
        })
    }
}

impl StepInput<'_> {
    /// Bounds of all sets.
    pub(crate) fn bounds(&self) -> Bounds {
        let all = self.sets.iter().map(|set| set.grid.bounds());
        all.fold(Bounds::EMPTY, |all, bounds| all.union(bounds))
    }

    /// Points of all sets.
    pub(crate) fn points(&self) -> usize {
        self.sets.iter().map(|set| set.grid.len()).sum()
    }

    /// Points of the targets and of the sources of a job.
    pub(crate) fn points_of(&self, job: Job) -> [usize; 2] {
        [job.targets, job.sources].map(|set| self.sets[set].grid.len())
    }

    /// The sets of a job, sorted on the host now if they are not. All points have the same radius.
    pub(crate) fn pair(&self, job: Job) -> Result<PairOfSets<'_>, Error> {
        Ok(PairOfSets {
            targets: self.grid(job.targets)?,
            sources: self.grid(job.sources)?,
            same_set: job.targets == job.sources,
            radii: SetRadii::Uniform,
            share: None,
        })
    }

    fn grid(&self, set: usize) -> Result<&Grid, Error> {
        let SetInput { id, grid, .. } = self.sets[set];
        let refuse = |source| Error::from(ErrorKind::Positions { set: id, source });
        grid.get(self.cpu).map_err(refuse)
    }
}

/// Why a device did not do a job that it supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Another job uses the device, and this thread must not wait for it.
    Busy,
    /// It lacks positions that were placed while it could not work.
    Behind,
    /// It failed in this job or an earlier one, and why.
    Failed(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str("another job of the engine was using the device"),
            Self::Behind => {
                f.write_str("the device lacks positions, which it gets with the next update")
            }
            Self::Failed(why) => write!(f, "the device has failed: {why}"),
        }
    }
}

/// Why a device did not finish a job.
#[derive(Debug)]
pub(crate) enum DeviceError {
    /// The CPU backend can do the job all the same.
    Fault(Fault),
    /// The host could not do its part, or the caller's input is wrong.
    Host(Error),
}

impl From<Fault> for DeviceError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Error> for DeviceError {
    fn from(error: Error) -> Self {
        Self::Host(error)
    }
}
