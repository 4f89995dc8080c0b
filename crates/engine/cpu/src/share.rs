//! The targets that a backend searches for when it works beside another one.

use nearfield_grid::{BrickParts, Cell};
use std::{
    ops::RangeInclusive,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Instant,
};

/// Targets in bricks of some parts.
#[derive(Debug, Clone, Copy)]
pub struct Share<'a> {
    /// Whom bricks belong to; made for the lattice of the targets.
    pub bricks: &'a BrickParts,
    /// The first and the last part that are searched for.
    pub parts: (u8, u8),
    /// Set for every target that was searched for, by the caller's index.
    pub taken: &'a [AtomicBool],
    /// Time that workers spend on every part.
    pub spent: &'a Spent,
}

impl Share<'_> {
    /// Whether a cell belongs to the share.
    pub(crate) fn has(&self, cell: Cell) -> bool {
        (self.parts.0..=self.parts.1).contains(&self.bricks.part(cell))
    }
}

/// Nanoseconds that workers have spent on each part, all workers together, and on how many targets.
#[derive(Debug)]
pub struct Spent {
    nanoseconds: [AtomicU64; 256],
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

/// What one task has taken of a share. When it ends, its time is divided among the parts by how
/// many targets of each there were.
#[derive(Debug)]
pub(crate) struct Tally<'a> {
    share: Share<'a>,
    parts: RangeInclusive<u8>,
    begin: Instant,
    /// (part, targets) of the parts met so far: neighbouring bricks, so a few at most.
    met: Vec<(u8, u64)>,
}

impl<'a> Tally<'a> {
    pub(crate) fn new(share: Share<'a>) -> Self {
        Self {
            share,
            parts: share.parts.0..=share.parts.1,
            begin: Instant::now(),
            met: Vec::new(),
        }
    }

    /// The parts of the share, and whose every brick is.
    pub(crate) fn parts(&self) -> (&'a BrickParts, &RangeInclusive<u8>) {
        (self.share.bricks, &self.parts)
    }

    /// Whether a cell belongs to the share; marks its targets, given by the caller's indices.
    #[inline]
    pub(crate) fn takes(&mut self, cell: Cell, targets: &[u32]) -> bool {
        let part = self.share.bricks.part(cell);
        if !self.parts.contains(&part) {
            return false;
        }
        for &target in targets {
            self.share.taken[target as usize].store(true, Ordering::Relaxed);
        }
        let count = targets.len() as u64;
        match self.met.iter_mut().find(|met| met.0 == part) {
            Some(met) => met.1 += count,
            None => self.met.push((part, count)),
        }
        true
    }
}

impl Drop for Tally<'_> {
    fn drop(&mut self) {
        let all: u64 = self.met.iter().map(|met| met.1).sum();
        if all == 0 {
            return;
        }
        let spent = self.begin.elapsed().as_nanos() as f64;
        self.share.spent.targets.fetch_add(all, Ordering::Relaxed);
        for &(part, targets) in &self.met {
            let share = spent * targets as f64 / all as f64;
            let part = &self.share.spent.nanoseconds[usize::from(part)];
            part.fetch_add(share as u64, Ordering::Relaxed);
        }
    }
}
