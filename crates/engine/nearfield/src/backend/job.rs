//! Jobs: what is asked of a backend, by its kind and the numbers of the sets.

use std::fmt;

/// A job of a backend for one pair of sets, named by their numbers.
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
