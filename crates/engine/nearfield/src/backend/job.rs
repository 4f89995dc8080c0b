//! Jobs: what is asked of a backend, by its kind and the numbers of the sets.
//!
//! A job is also the key by which its plan and its controller are kept between steps, and its line
//! in the report. Two kernels of one type over the same sets are one job, because their times are
//! alike; two types are two.

use std::fmt;

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
    /// Numbers of neighbours.
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
