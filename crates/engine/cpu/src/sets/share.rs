//! The targets of one backend when two share a step.
//!
//! A map of bricks assigns every cell to a part, and a share is a range of parts. Tasks skip the
//! cells of other parts, mark every target that they search for, and add up the time spent per
//! part, from which the balance between the backends is learnt.
//!
//! # Times per part
//!
//! Backends are compared by the time they take per subregion, and a part is a subregion's number.
//! A task works on few neighbouring bricks, mostly of one part, so its time is divided among the
//! parts it met by their numbers of targets. No clock is read per cell: one reading at the
//! beginning of a task and one at its end.
//!
//! **Invariant:** marks and times are written with relaxed atomics and read after the job has
//! ended, which the pool's join orders.

use nearfield_grid::{BrickParts, Cell};
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Instant,
};

/// Targets in bricks of some parts.
///
/// Shared between the workers of a job by copies; all of its state is behind atomics.
#[derive(Debug, Clone, Copy)]
pub struct Share<'a> {
    /// The part of every brick; made for the lattice of the targets.
    pub bricks: &'a BrickParts,
    /// The parts that are searched for, from the first to the last.
    pub parts: (u8, u8),
    /// Set for every target that was searched for, by the caller's index.
    pub taken: &'a [AtomicBool],
    /// Time that workers spend on every part.
    pub spent: &'a Spent,
}

impl Share<'_> {
    /// Returns true if a cell belongs to the share.
    pub(crate) fn has(&self, cell: Cell) -> bool {
        self.has_part(self.bricks.part(cell))
    }

    /// Returns true if a part is one of the share.
    fn has_part(&self, part: u8) -> bool {
        (self.parts.0..=self.parts.1).contains(&part)
    }
}

/// Nanoseconds that all workers together have spent on each part, and the number of targets.
///
/// An array of 256, because parts are bytes.
#[derive(Debug)]
pub struct Spent {
    /// By part.
    nanoseconds: [AtomicU64; 256],
    /// Targets of all parts.
    targets: AtomicU64,
}

impl Default for Spent {
    fn default() -> Self {
        Self {
            nanoseconds: [const { AtomicU64::new(0) }; 256],
            targets: AtomicU64::new(0),
        }
    }
}

impl Spent {
    /// Nanoseconds spent on a part.
    pub fn on(&self, part: u8) -> u64 {
        self.nanoseconds[usize::from(part)].load(Ordering::Relaxed)
    }

    /// Targets that were searched for.
    pub fn targets(&self) -> u64 {
        self.targets.load(Ordering::Relaxed)
    }

    /// Nothing has been spent yet.
    pub fn clear(&self) {
        for part in &self.nanoseconds {
            part.store(0, Ordering::Relaxed);
        }
        self.targets.store(0, Ordering::Relaxed);
    }
}

/// The targets that one task has taken of a share. When the task ends, its time is divided among
/// the parts in proportion to their numbers of targets.
#[derive(Debug)]
pub(crate) struct Tally<'a> {
    /// The share.
    share: Share<'a>,
    /// When the task began.
    begin: Instant,
    /// The parts met so far: neighbouring bricks, so a few at most.
    met: Vec<Met>,
}

/// A part that a task has met.
#[derive(Debug)]
struct Met {
    /// The part.
    part: u8,
    /// Targets of it.
    targets: u64,
}

impl<'a> Tally<'a> {
    /// A task begins with no targets taken.
    pub(crate) fn new(share: Share<'a>) -> Self {
        Self {
            share,
            begin: Instant::now(),
            met: Vec::new(),
        }
    }

    /// The share that targets are taken of.
    pub(crate) fn share(&self) -> &Share<'a> {
        &self.share
    }

    /// Returns true if a cell belongs to the share, and marks its targets, given by the caller's
    /// indices.
    #[inline]
    pub(crate) fn takes(&mut self, cell: Cell, targets: &[u32]) -> bool {
        let part = self.share.bricks.part(cell);
        if !self.share.has_part(part) {
            return false;
        }
        for &target in targets {
            self.share.taken[target as usize].store(true, Ordering::Relaxed);
        }
        let count = targets.len() as u64;
        match self.met.iter_mut().find(|met| met.part == part) {
            Some(met) => met.targets += count,
            None => self.met.push(Met {
                part,
                targets: count,
            }),
        }
        true
    }
}

impl Drop for Tally<'_> {
    fn drop(&mut self) {
        let all: u64 = self.met.iter().map(|met| met.targets).sum();
        if all == 0 {
            return;
        }
        let spent = self.begin.elapsed().as_nanos() as f64;
        self.share.spent.targets.fetch_add(all, Ordering::Relaxed);
        for &Met { part, targets } in &self.met {
            let share = spent * targets as f64 / all as f64;
            let part = &self.share.spent.nanoseconds[usize::from(part)];
            part.fetch_add(share as u64, Ordering::Relaxed);
        }
    }
}
