//! Points sorted by the radius that they search or are found with, and then by cell.
//!
//! One point with a radius a hundred times that of the others would make cells a hundred times as
//! long, and a search of them quadratic. Here points of similar radius are a *level*: each has
//! cells of its own, about as long as its largest radius. Levels follow one another in the sorted
//! points, so everything that goes by slot (coordinates, radii, channels, lists) is as it was. Only
//! cells and the search for runs know of levels ([`super::sweep_levels`]).
//!
//! # Which points are a level
//!
//! The caller decides ([`LevelSpec`]). The CPU backend divides where a model of the cost says that
//! a search becomes much faster; equal radii are one level, and then the grid itself serves.
//!
//! # Reach
//!
//! How far a target looks for the sources of a level follows from both radii, the largest of either
//! level. The rows for a few reaches are made per level: those of the levels of the set itself, and
//! halves of the radius of the lattice, for targets of other sets. The next larger one serves.
//!
//! # Cost
//!
//! A build sorts every point once more and keeps its coordinates twice, 16 bytes a point and in
//! double precision 44, so that the next build finds the memory of this one. A target looks into
//! every level, which takes some dozens of nanoseconds for a group of targets, so levels should be
//! few. A point that reaches a
//! hundred cells has thirty thousand rows, which are looked up once for its row of cells: far less
//! than the points it finds there.
//!
//! **Invariant:** a grid with levels has all of its points in them, in the order of the levels, and
//! the radius of a level is at least that of each of its points.

use super::{Grid, Level, SortedPoints};
use crate::{
    Bounds, Error, ErrorKind, Lattice, Positions, Precision, Radius,
    lattice::rows::ROWS,
    memory::{self, Shortage, collected, with_room},
    parallel::PoolLoops,
};
use rayon::prelude::*;
use std::{
    ops::Range,
    sync::{OnceLock, atomic::Ordering},
};

/// Maximum number of levels of a grid.
pub const MAX_LEVELS: usize = 10;

/// The name of the memory in messages.
const WHAT: &str = "points sorted by their radii";

/// What the points of a level have in common.
///
/// Cells are finer than the radius where the radii of the other set decide and may be small, and
/// larger where few points are in each.
#[derive(Debug, Clone, Copy)]
pub struct LevelSpec {
    /// No point of the level has a larger radius.
    pub radius: Radius,
    /// Edge of its cells; not more than the radius of the lattice.
    pub edge: Radius,
}

impl Level {
    /// The lattice of the level's cells with rows for the next larger reach than `radius`.
    ///
    /// # Errors
    /// [`Shortage`].
    fn reaching(&self, radius: f64, of: &Lattice) -> Result<&Lattice, Shortage> {
        let enough = |(reach, _): &&(Radius, _)| reach.value_f64() >= radius;
        let Some((reach, lattice)) = self.reaches.iter().find(enough).or(self.reaches.last())
        else {
            return Ok(self.grid.lattice());
        };
        if let Some(lattice) = lattice.get() {
            return Ok(lattice);
        }
        let made = of.nested([self.edge, *reach]);
        let made = made.map_err(|error| shortage(&error))?;
        Ok(lattice.get_or_init(|| made))
    }

    /// The slots of its points.
    pub(super) fn slots(&self) -> Range<usize> {
        self.start..self.start + self.grid.points.len
    }
}

/// The sources of a target: those of one level, or of a grid without levels.
#[derive(Debug, Clone, Copy)]
pub(super) struct LevelInReach<'a> {
    /// The sources.
    pub(super) grid: &'a Grid,
    /// Their cells, with the rows in reach of the target.
    pub(super) lattice: &'a Lattice,
    /// Slot of the first of them.
    pub(super) start: usize,
}

impl Grid {
    /// Returns true if the points may be sorted [into levels](Self::build_levels): in double
    /// precision if no coordinate is more than 2²⁰ radii of the lattice from 0. What targets reach
    /// in a level is then at least 2⁻²⁹ of that distance, far above the rounding of cells.
    pub fn can_have_levels(&self) -> bool {
        const FARTHEST: f64 = (1 << 20) as f64;
        let radius = self.lattice.radius();
        radius.precision() == Precision::Single
            || (0..3).all(|axis| self.bounds.magnitude(axis) <= FARTHEST * radius.value_f64())
    }

    /// Sorts the points of `from`, which has no levels and [may have some](Self::can_have_levels),
    /// into `levels`, whose radii are in the precision of its lattice and at least a 512th of its
    /// radius; `level_of` says which one each of its sorted points belongs to. Everything else of
    /// `from` is taken over: its lattice, whose radius bounds all radii, and its bounds. Memory of
    /// earlier points is used again.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory); there are no points then.
    pub fn build_levels(
        &mut self,
        from: &Self,
        levels: &[LevelSpec],
        level_of: &(dyn Fn(usize) -> u8 + Sync),
    ) -> Result<(), Error> {
        debug_assert!(from.can_have_levels());
        let _span = tracing::debug_span!("grid.levels", points = from.points.len).entered();
        let built = self.sort_levels(from, levels, level_of);
        if built.is_err() {
            // Some levels have their points, the others those from before.
            (self.points.len, self.given) = (0, 0);
            self.levels.clear();
        }
        built
    }

    /// Does what [`build_levels`](Self::build_levels) says, but leaves a mixture after an error.
    fn sort_levels(
        &mut self,
        from: &Self,
        levels: &[LevelSpec],
        level_of: &(dyn Fn(usize) -> u8 + Sync),
    ) -> Result<(), Error> {
        self.lattice.clone_from(&from.lattice);
        let mut spare = std::mem::take(&mut self.levels).into_iter();
        self.points.len = 0;
        self.given = 0;
        let parts = divide(from, levels.len(), level_of)?;
        self.points.resize_like(&from.points)?;
        let mut start = 0;
        for (spec, slots) in levels.iter().zip(parts) {
            let lattice = from.lattice.nested([spec.edge, spec.radius])?;
            let mut grid = spare
                .next()
                .map_or_else(|| Grid::new(lattice.clone()), |level| level.grid);
            build_level(&mut grid, &from.points, &slots, &lattice)?;
            self.take_level(from, &grid, &slots, start);
            let len = grid.points.len;
            self.levels.push(Level {
                grid,
                start,
                radius: spec.radius,
                edge: spec.edge,
                reaches: reaches(&from.lattice, levels),
            });
            start += len;
        }
        self.count_wraps(from)?;
        (self.bounds, self.given) = (from.bounds, from.given);
        self.build_number = 1 + super::BUILDS.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Takes the sorted points of a level over, to slots from `start` on; `slots` are theirs in
    /// `from`.
    ///
    /// Loops over candidates load vectors across the border of two levels, as they do across that
    /// of two cells.
    fn take_level(&mut self, from: &Self, level: &Self, slots: &[u32], start: usize) {
        let (points, len) = (&level.points, level.points.len);
        self.points.take_coordinates(points, start);
        let own = start..start + len;
        let index = (&mut self.points.index[own], &points.index[..len]);
        index
            .into_par_iter()
            .with_min_len(1 << 12)
            .run(|(to, &at)| *to = from.points.index[slots[at as usize] as usize]);
    }

    /// Counts the boxes of all points, if any of `from` lies outside.
    ///
    /// They do not depend on cells, so the lattice of `from` counts them.
    fn count_wraps(&mut self, from: &Self) -> Result<(), Error> {
        let mut wraps = std::mem::take(&mut self.points.wraps);
        let sorted = &self.points;
        if from.points.wraps.is_empty() {
            wraps.clear();
        } else {
            let place = |slot: usize| sorted.position_f64(slot);
            wraps.count(sorted.len, &from.lattice, sorted.axes(), place)?;
        }
        self.points.wraps = wraps;
        Ok(())
    }

    /// Returns true if points were sorted [into levels](Self::build_levels).
    #[inline(always)]
    pub fn has_levels(&self) -> bool {
        !self.levels.is_empty()
    }

    /// Returns true if a sorted point is the first of a level.
    #[inline(always)]
    pub fn begins_level(&self, slot: usize) -> bool {
        self.levels.iter().any(|level| level.start == slot)
    }

    /// The level that a sorted point belongs to.
    pub(super) fn level_of(&self, slot: usize) -> Option<usize> {
        self.levels
            .iter()
            .position(|level| slot < level.slots().end)
    }

    /// The sources that sorted points of `targets` have to look among, level by level, where their
    /// level is the one with this number and `counts` says if the radii of targets and those of
    /// sources count; all radii are the lattice's where neither does.
    ///
    /// # Errors
    /// [`Shortage`], only before the same was [made ready](Self::ready_for).
    pub(super) fn in_reach_of<'a>(
        &'a self,
        targets: &'a Self,
        level: Option<usize>,
        counts: [bool; 2],
    ) -> impl Iterator<Item = Result<LevelInReach<'a>, Shortage>> {
        let largest = self.lattice.radius().value_f64();
        let of = move |level: Option<&Level>, counts: bool| match (counts, level) {
            (false, _) => 0.0,
            (true, Some(level)) => level.radius.value_f64(),
            (true, None) => largest,
        };
        let target = of(level.and_then(|level| targets.levels.get(level)), counts[0]);
        let plain = self.levels.is_empty().then_some(LevelInReach {
            grid: self,
            lattice: &self.lattice,
            start: 0,
        });
        let levels = self.levels.iter().map(move |level| {
            let reach = match counts {
                [false, false] => largest,
                _ => target.max(of(Some(level), counts[1])),
            };
            Ok(LevelInReach {
                grid: &level.grid,
                lattice: level.reaching(reach, &self.lattice)?,
                start: level.start,
            })
        });
        plain.into_iter().map(Ok).chain(levels)
    }

    /// Makes the rows that a search of these sources by `targets` reaches, so that it asks for no
    /// memory for them; nothing where neither set has levels.
    ///
    /// # Errors
    /// [`Shortage`].
    pub fn ready_for(&self, targets: &Self, counts: [bool; 2]) -> Result<(), Shortage> {
        if self.levels.is_empty() {
            return Ok(());
        }
        let levels = 0..targets.levels.len().max(1);
        for level in levels {
            for found in self.in_reach_of(targets, Some(level), counts) {
                found?;
            }
        }
        Ok(())
    }

    /// Bytes held by the levels.
    pub(super) fn levels_bytes(&self) -> usize {
        let rows = |lattice: &Lattice| size_of_val(lattice.rows());
        let reaches = |level: &Level| -> usize {
            let made = level
                .reaches
                .iter()
                .filter_map(|(_, lattice)| lattice.get());
            made.map(rows).sum()
        };
        (self.levels.iter())
            .map(|level| level.grid.bytes() + reaches(level))
            .sum()
    }
}

/// The slots in `from` of the points of every level.
///
/// Points keep their order, so those of a cell come in the order of the sort before, which depends
/// on positions and lattice alone.
fn divide(
    from: &Grid,
    levels: usize,
    level_of: &(dyn Fn(usize) -> u8 + Sync),
) -> Result<Vec<Vec<u32>>, Error> {
    let mut of = memory::filled(from.points.len, 0u8, WHAT)?;
    of.par_iter_mut()
        .enumerate()
        .with_min_len(1 << 12)
        .run(|(slot, level)| *level = level_of(slot));
    let mut counts = [0; MAX_LEVELS];
    for &level in &of {
        counts[usize::from(level)] += 1;
    }
    let mut parts = with_room(levels, WHAT)?;
    for &count in &counts[..levels] {
        parts.push(with_room(count, WHAT)?);
    }
    for (slot, &level) in (0..).zip(&of) {
        parts[usize::from(level)].push(slot);
    }
    Ok(parts)
}

/// Sorts the points at some slots into cells, by a copy of their positions as they were given.
fn build_level(
    grid: &mut Grid,
    points: &SortedPoints,
    slots: &[u32],
    lattice: &Lattice,
) -> Result<(), Error> {
    let slots = slots.iter().map(|&slot| slot as usize);
    let mut build = |positions: Positions<'_>| {
        let bounds = Bounds::of(positions, lattice.domain())?;
        grid.build(positions, bounds, lattice)
    };
    match points.double() {
        None => build((&collected(slots.map(|slot| points.position(slot)), WHAT)?).into()),
        Some(double) => build((&collected(slots.map(|slot| double.position(slot)), WHAT)?).into()),
    }
}

/// The memory that was refused for rows, which is all that can go wrong with a radius that is no
/// larger than one for which there is a lattice.
fn shortage(error: &Error) -> Shortage {
    match error.kind() {
        ErrorKind::OutOfMemory { bytes, .. } => Shortage::of::<u8>(*bytes, ROWS),
        _ => Shortage::of::<u8>(0, ROWS),
    }
}

/// The reaches that the levels of a grid on this lattice have rows for: the radii of all levels,
/// and halves of the lattice's.
fn reaches(lattice: &Lattice, levels: &[LevelSpec]) -> Vec<(Radius, OnceLock<Lattice>)> {
    let largest = lattice.radius();
    let halves = (0..MAX_LEVELS as i32).map(|halvings| largest.value_f64() * 0.5f64.powi(halvings));
    let halves = halves.filter_map(|radius| Radius::in_precision(radius, largest.precision()).ok());
    let mut reaches: Vec<Radius> = (levels.iter().map(|level| level.radius))
        .chain(halves)
        .collect();
    reaches.sort_by(|a, b| a.value_f64().total_cmp(&b.value_f64()));
    reaches.dedup_by(|a, b| a.value_f64() == b.value_f64());
    let reach = |radius: Radius| (radius, OnceLock::new());
    reaches.into_iter().map(reach).collect()
}
