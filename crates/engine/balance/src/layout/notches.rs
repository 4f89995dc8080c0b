//! Thresholds of all subregions that differ by at most one notch of occupancy.
//!
//! A notch is a step of the threshold. It takes in the bricks of one range of ties, of several that
//! hold little, or of a part of a range that holds much: with 8 points in every cell all bricks are
//! ties, and a threshold that took them all at once would leave one backend without work. A
//! subregion gives the first ones of its ties in brick order.
//!
//! All subregions are at the same notch, or the first ones are one ahead. So the places are a
//! line, along which the CPU backend's work grows by one subregion's notch at a time. Sparse bricks
//! go first everywhere, and a subregion in the middle of the line is shared.
//!
//! # An example
//!
//! Four subregions, with bricks of 8 and of 64 points. The dense bricks hold nearly all of the work
//! and are taken in sixteen parts, the sparse ones are one notch:
//!
//! | place | sparse bricks of the CPU backend | dense ones |
//! | --- | --- | --- |
//! | notch 0, 0 ahead | none | none |
//! | notch 0, 2 ahead | those of subregions 0 and 1 | none |
//! | notch 1, 0 ahead | all | none |
//! | notch 1, 1 ahead | all | a sixteenth of those of subregion 0 |
//! | notch 9, 0 ahead | all | half of those of every subregion |
//! | notch 17, 0 ahead | all | all |
//!
//! # Cost
//!
//! There are at most some eighty notches, and a place is found by bisection over them: a fraction
//! of a millisecond for a thousand bricks, and only when something moves.
//!
//! **Invariant:** the work before a place never falls along the line, which begins with nothing and
//! ends with everything.

use super::{LAYOUT, Layout};
use crate::Cut;
use nearfield_grid::memory::{Shortage, collected, make_room_for_one, with_room};

/// A range of ties that holds more than this part of the work is taken in several notches.
const MAX_PART: u64 = 16;
/// Ranges are taken together until they hold this part of the work.
const MIN_PART: u64 = 64;

/// A threshold for one subregion, whatever its bricks: all of lower ranks, and a part of those of
/// this one.
#[derive(Debug, Clone, Copy)]
struct Notch {
    /// The last rank that it takes bricks of.
    rank: u32,
    /// Part of the ties, above 0 and up to 1.
    part: f64,
}

/// The notches of a layout.
#[derive(Debug)]
pub(crate) struct Notches<'a> {
    layout: &'a Layout,
    notches: Vec<Notch>,
    /// Work of all bricks.
    total: u64,
}

/// A place on the line.
///
/// Its cuts are all that a plan needs; the rest is for reasons in words.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// One cut per subregion.
    pub(crate) cuts: Vec<Cut>,
    /// The CPU backend's share of the work.
    pub(crate) share: f64,
    /// The notch of the last subregions, counted from 1; 0 is before the first one.
    pub(crate) notch: usize,
    /// First subregions that are one notch ahead.
    pub(crate) ahead: usize,
}

impl<'a> Notches<'a> {
    /// The notches of a layout.
    ///
    /// # Errors
    /// When there is no memory for the ranks of all bricks.
    pub(crate) fn of(layout: &'a Layout) -> Result<Self, Shortage> {
        let works = (layout.ladder.iter()).map(|&brick| {
            (
                layout.rank_of(brick),
                layout.bricks.as_slice()[brick as usize].work,
            )
        });
        let mut works = collected(works, LAYOUT)?;
        works.sort_unstable();
        let total = works.iter().map(|one| one.1).fold(0, u64::saturating_add);
        let mut notches = Self {
            layout,
            notches: Vec::new(),
            total,
        };
        let (mut pending, mut last) = (0u64, None);
        for ties in works.chunk_by(|a, b| a.0 == b.0) {
            let rank = ties[0].0;
            let work = ties.iter().map(|one| one.1).fold(0, u64::saturating_add);
            let parts = work.div_ceil((total / MAX_PART).max(1)).clamp(1, MAX_PART);
            if parts > 1 {
                if let Some(rank) = last.take() {
                    notches.push(rank, 1.0)?;
                }
                for part in 1..=parts {
                    notches.push(rank, part as f64 / parts as f64)?;
                }
                pending = 0;
                continue;
            }
            (pending, last) = (pending.saturating_add(work), Some(rank));
            if pending >= total / MIN_PART {
                notches.push(rank, 1.0)?;
                (pending, last) = (0, None);
            }
        }
        if let Some(rank) = last {
            notches.push(rank, 1.0)?;
        }
        Ok(notches)
    }

    /// Adds a notch.
    fn push(&mut self, rank: u32, part: f64) -> Result<(), Shortage> {
        make_room_for_one(&mut self.notches, LAYOUT)?;
        self.notches.push(Notch { rank, part });
        Ok(())
    }

    /// Bricks of a subregion's ladder before a notch.
    ///
    /// Parts of ties are rounded to whole bricks, so that few ties make steps of unequal size.
    fn bricks(&self, subregion: usize, notch: usize) -> usize {
        let Some(&Notch { rank, part }) = notch.checked_sub(1).and_then(|at| self.notches.get(at))
        else {
            return 0;
        };
        let ladder = self.layout.ladder(subregion);
        let first = ladder.partition_point(|&brick| self.layout.rank_of(brick) < rank);
        let past = ladder.partition_point(|&brick| self.layout.rank_of(brick) <= rank);
        first + (part * (past - first) as f64).round() as usize
    }

    /// Work of a subregion before a notch.
    fn work_of(&self, subregion: usize, notch: usize) -> u64 {
        self.layout
            .work_below(subregion, self.bricks(subregion, notch))
    }

    /// Work of all subregions before a notch.
    fn work(&self, notch: usize) -> u64 {
        let subregions = 0..self.layout.subregions().len();
        subregions
            .map(|subregion| self.work_of(subregion, notch))
            .fold(0, u64::saturating_add)
    }

    /// Work of the CPU backend when the first `ahead` subregions are at `notch + 1`, and the others
    /// at `notch`, for every number of them.
    fn works(&self, notch: usize) -> Result<Vec<u64>, Shortage> {
        let count = self.layout.subregions().len();
        let mut works = with_room(count + 1, LAYOUT)?;
        let mut work = self.work(notch);
        works.push(work);
        for subregion in 0..count {
            let more = self.work_of(subregion, notch + 1) - self.work_of(subregion, notch);
            work = work.saturating_add(more);
            works.push(work);
        }
        Ok(works)
    }

    /// The place at which the CPU backend's share of the work is nearest to `share`: everything or
    /// nothing only where that is asked for, or where no place is between.
    ///
    /// # Errors
    /// When there is no memory for a number per subregion.
    pub(crate) fn nearest(&self, share: f64) -> Result<Place, Shortage> {
        if share <= 0.0 || self.notches.is_empty() {
            return self.place(0, 0);
        }
        if share >= 1.0 {
            return self.place(self.notches.len(), 0);
        }
        let wanted = share * self.total as f64;
        let (mut low, mut high) = (0, self.notches.len() - 1);
        while low < high {
            let middle = (low + high).div_ceil(2);
            if self.work(middle) as f64 <= wanted {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        let off = |work: u64| (work as f64 - wanted).abs();
        let mut best: Option<(u64, usize, usize)> = None;
        // The neighbours too, for a place between the ends.
        for notch in low.saturating_sub(1)..(low + 2).min(self.notches.len()) {
            for (ahead, work) in self.works(notch)?.into_iter().enumerate() {
                let between = 0 < work && work < self.total;
                if between && best.is_none_or(|best| off(work) < off(best.0)) {
                    best = Some((work, notch, ahead));
                }
            }
        }
        match best {
            Some((_, notch, ahead)) => self.place(notch, ahead),
            None if share < 0.5 => self.place(0, 0),
            None => self.place(self.notches.len(), 0),
        }
    }

    /// The cuts of a place, and its share of the work.
    fn place(&self, notch: usize, ahead: usize) -> Result<Place, Shortage> {
        let count = self.layout.subregions().len();
        let mut cuts = with_room(count, LAYOUT)?;
        let mut work = 0u64;
        for subregion in 0..count {
            let bricks = self.bricks(subregion, notch + usize::from(subregion < ahead));
            work = work.saturating_add(self.layout.work_below(subregion, bricks));
            cuts.push(self.layout.cut_at(subregion, bricks));
        }
        Ok(Place {
            cuts,
            share: work as f64 / (self.total as f64).max(1.0),
            notch,
            ahead,
        })
    }

    /// Notches there are.
    pub(crate) fn len(&self) -> usize {
        self.notches.len()
    }

    /// The largest occupancy that a notch takes in.
    pub(crate) fn occupancy(&self, notch: usize) -> u32 {
        let notch = notch.checked_sub(1).and_then(|at| self.notches.get(at));
        notch.map_or(0, |notch| notch.rank)
    }
}
