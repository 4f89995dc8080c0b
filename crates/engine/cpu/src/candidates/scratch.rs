//! Buffers of one worker.
//!
//! Scratch is kept between searches, so the steady state allocates nothing. A task takes what it
//! needs out of the scratch and puts it back, because it borrows the candidates at the same time.
//!
//! # Sizes
//!
//! On a lattice with r = 2 spacings a cell holds 8 points and has 216 candidates before pruning,
//! 3.4 KiB with their tags. Fields, packed neighbours and sums grow with the number of channels.
//! All of it fits the second-level cache, and most of it the first.

use super::{aligned::Aligned, arrays::Candidates, piece::Pieces};
use crate::{filter::room::FilterRoom, kernels::window::PageTable, stored::listed::ListedPairs};
use nearfield_grid::{Stop, memory::Shortage};

/// Buffers of one worker, reused for every group.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Candidates of the current group.
    pub(crate) candidates: Candidates,
    /// The candidates of the current group in another order, for ascending lists.
    pub(crate) ordered: Candidates,
    /// Keys that they are brought into that order by, and room to sort them.
    pub(crate) keys: Aligned<u32>,
    /// Source channels of the candidates, for traversals.
    pub(crate) gathered: Aligned<f32>,
    /// Geometry and source channels of the neighbours of one target, for traversals.
    pub(crate) packed: Aligned<f32>,
    /// For traversals that evaluate pairs once.
    pub(crate) pages: PageTable,
    /// Neighbours of some targets with their geometry, where pairs are visited.
    pub(crate) passed: Aligned<u32>,
    /// Room for lists that are counted only.
    pub(crate) scribble: Aligned<u32>,
    /// Pieces of the current group, around a periodic box.
    pub(crate) pieces: Pieces,
    /// Pairs of one target, for traversals over lists.
    pub(crate) listed: ListedPairs,
    /// Buffers of filters.
    pub(crate) filter: FilterRoom,
    /// Memory that was refused. The task then ended early and its results are of no use; the pool
    /// looks here after every task and fails the call.
    pub(crate) failed: Option<Shortage>,
    /// Whether the task is to end early.
    pub(crate) stop: Stop,
    /// Groups that were gathered, counted to look at the clock every sixteenth time.
    groups: u32,
}

/// Groups from one look at the clock to the next. A group of a target that sees very many images
/// takes a millisecond, most take a microsecond. So the clock is read every 16 microseconds to 16
/// milliseconds, which is often enough for a person at a prompt, and rare enough that no search
/// becomes slower by it.
const GROUPS_PER_LOOK: u32 = 16;

impl Scratch {
    /// Returns true if the task is to end early. Called for every group: most calls load a flag,
    /// some read the clock too, for where the calling thread is the worker. It has then failed, as
    /// if memory were short; the pool returns
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) for it.
    pub(crate) fn is_stopped(&mut self) -> bool {
        self.groups = self.groups.wrapping_add(1);
        let stopped = match self.groups % GROUPS_PER_LOOK {
            0 => self.stop.is_asked_now(),
            _ => self.stop.is_asked(),
        };
        if stopped {
            self.failed = Some(Shortage::of::<u8>(0, "a job that was ended early"));
        }
        stopped
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.candidates.bytes()
            + self.ordered.bytes()
            + self.keys.bytes()
            + self.gathered.bytes()
            + self.packed.bytes()
            + self.passed.bytes()
            + self.scribble.bytes()
            + self.pages.bytes()
            + self.pieces.bytes()
            + self.listed.bytes()
            + self.filter.bytes()
    }
}
