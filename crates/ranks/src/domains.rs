//! Which rank owns which cell, and which ranks see a point.
//!
//! Cells are those of one lattice that all ranks have: it follows from the radius, the box and the
//! extent of the points of all ranks. Cells are gathered into bricks of 2ˢ cells along each edge,
//! bricks are ordered along a [curve](crate::curve), and a rank owns a range of the curve.
//! Ownership is a function of the integer cell, so no point has two owners or none, wherever it
//! lies, also on a corner where several ranks meet. Bricks beyond the extent that the curve was
//! laid through belong to the nearest one on its border.
//!
//! # Who sees a point
//!
//! A rank needs a point if it owns any cell within the offsets of the lattice around the point's
//! cell, images included; empty cells count. If the contract finds two points to be neighbours, the
//! offset between their cells is among those ([`nearfield_grid::Lattice::rows`]), so the owner of
//! either has both. Coordinates travel as given: the images of a pair are the affair of the engine
//! of the owner, which knows the whole box.
//!
//! # Cost
//!
//! A brick whose surroundings belong to one rank is found out once. Points in other bricks are
//! looked at by cell, and every cell once.

use crate::{curve, scalar::Scalar};
use nearfield_grid::{Bounds, Cell, Lattice, memory::Shortage};
use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// The curve, where it is cut, and the lattice under it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Domains {
    lattice: Lattice,
    /// Cells along each axis; 0 on open ones.
    cells: [i64; 3],
    /// Largest offset between the cells of two neighbours along each axis.
    offsets: [i64; 3],
    /// The first brick along each axis.
    low: [i64; 3],
    /// Bricks have 2 to the power of this cells along an edge.
    shift: u32,
    /// Rank k owns the places from `cuts[k − 1]` to before `cuts[k]`.
    cuts: Vec<u64>,
}

/// Ranges of bricks along an axis, two where they pass a face of the box.
type Ranges = [std::ops::RangeInclusive<u32>; 2];

impl Domains {
    /// Domains for points within `bounds`, all of them owned by rank 0 until
    /// [`cut`](Self::set_cuts).
    pub(crate) fn new(lattice: Lattice, bounds: &Bounds, ranks: usize) -> Self {
        let (low, high) = if bounds.min[0] <= bounds.max[0] {
            let within = lattice.cells_within(bounds);
            (within.low, within.high)
        } else {
            ([0; 3], [0; 3])
        };
        let fits =
            |shift: &u32| (0..3).all(|k| (high[k] >> shift) - (low[k] >> shift) < 1 << curve::BITS);
        // Cells are within ±2⁴³, so a shift that fits is found.
        let shift = (1..=43).find(fits).unwrap_or(43);
        Self {
            cells: std::array::from_fn(|axis| lattice.scale(axis).cells),
            offsets: lattice.max_offsets(),
            low: low.map(|cell| cell >> shift),
            shift,
            cuts: vec![curve::END; ranks.saturating_sub(1)],
            lattice,
        }
    }

    /// The lattice.
    pub(crate) fn lattice(&self) -> &Lattice {
        &self.lattice
    }

    /// Where ranks begin along the curve, ascending, one less than there are ranks.
    pub(crate) fn set_cuts(&mut self, cuts: Vec<u64>) {
        self.cuts = cuts;
    }

    /// Where ranks begin along the curve.
    pub(crate) fn cuts(&self) -> &[u64] {
        &self.cuts
    }

    /// The brick's number along an axis, of a cell.
    fn brick_along(&self, axis: usize, cell: i64) -> u32 {
        let last = (1i64 << curve::BITS) - 1;
        ((cell >> self.shift) - self.low[axis]).clamp(0, last) as u32
    }

    /// The brick of a cell.
    fn brick(&self, cell: Cell) -> [u32; 3] {
        std::array::from_fn(|axis| self.brick_along(axis, cell[axis]))
    }

    /// The place along the curve of the brick that holds a position.
    pub(crate) fn place<T: Scalar>(&self, position: [T; 3]) -> u64 {
        curve::place(self.brick(T::cell(&self.lattice, position)))
    }

    /// The rank that owns a brick.
    fn owner(&self, brick: [u32; 3]) -> u32 {
        let place = curve::place(brick);
        self.cuts.partition_point(|cut| *cut <= place) as u32
    }

    /// The bricks along an axis that hold cells `low` to `high`, images included.
    fn ranges(&self, axis: usize, low: i64, high: i64) -> Ranges {
        let brick = |cell| self.brick_along(axis, cell);
        #[expect(clippy::reversed_empty_ranges, reason = "there is no second range")]
        let none = 1..=0;
        match self.cells[axis] {
            0 => [brick(low)..=brick(high), none],
            cells if high - low + 1 >= cells => [brick(0)..=brick(cells - 1), none],
            cells => {
                let (low, high) = (low.rem_euclid(cells), high.rem_euclid(cells));
                if low <= high {
                    [brick(low)..=brick(high), none]
                } else {
                    [brick(0)..=brick(high), brick(low)..=brick(cells - 1)]
                }
            }
        }
    }

    /// The owners of all cells within the lattice's offsets around cells `low` to `high`, each
    /// once, ascending. `known` are owners that have been looked up.
    fn owners_around(&self, low: Cell, high: Cell, known: &mut Owners, owners: &mut Vec<u32>) {
        owners.clear();
        let [x, y, z]: [Ranges; 3] = std::array::from_fn(|axis| {
            let offset = self.offsets[axis];
            self.ranges(axis, low[axis] - offset, high[axis] + offset)
        });
        for z in z.iter().cloned().flatten() {
            for y in y.iter().cloned().flatten() {
                for x in x.iter().cloned().flatten() {
                    let owner = known.of(self, [x, y, z]);
                    if !owners.contains(&owner) {
                        owners.push(owner);
                    }
                }
            }
        }
        owners.sort_unstable();
    }

    /// Calls `visit` with every point's index, its owner and all ranks that see it, ascending, the
    /// owner among them.
    ///
    /// # Errors
    /// [`Shortage`] of memory for the bricks and cells that were looked at.
    pub(crate) fn for_each<T: Scalar>(
        &self,
        positions: &[[T; 3]],
        mut visit: impl FnMut(usize, u32, &[u32]) -> Result<(), Shortage>,
    ) -> Result<(), Shortage> {
        if self.cuts.is_empty() {
            return (0..positions.len()).try_for_each(|index| visit(index, 0, &[0]));
        }
        let mut seen = Seen::default();
        for (index, position) in positions.iter().enumerate() {
            let cell = T::cell(&self.lattice, *position);
            let (owner, ranks) = seen.ranks(self, cell)?;
            visit(index, owner, ranks)?;
        }
        Ok(())
    }
}

/// A hash of one number: every point of a step asks for its brick, and bricks are not chosen by an
/// adversary who could make them collide, since a collision costs time only.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // An odd constant near 2⁶⁴ over the golden ratio; the high bits are the mixed ones.
        let product = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}

/// A brick as one number.
fn key(brick: [u32; 3]) -> u64 {
    let join = |key, k: &u32| key << curve::BITS | u64::from(*k);
    brick.iter().fold(0, join)
}

/// Owners of bricks that have been looked up: the way to a place along the curve is long, and every
/// brick is asked for by all around it.
#[derive(Default)]
struct Owners(HashMap<u64, u32, BuildHasherDefault<Mixed>>);

impl Owners {
    /// The owner of a brick. It is not kept if memory is short.
    fn of(&mut self, domains: &Domains, brick: [u32; 3]) -> u32 {
        let key = key(brick);
        if let Some(owner) = self.0.get(&key) {
            return *owner;
        }
        let owner = domains.owner(brick);
        if self.0.try_reserve(1).is_ok() {
            self.0.insert(key, owner);
        }
        owner
    }
}

/// Bricks and cells that were looked at.
#[derive(Default)]
struct Seen {
    known: Owners,
    /// By brick: its owner, and whether its surroundings have the same owner.
    bricks: HashMap<u64, (u32, bool), BuildHasherDefault<Mixed>>,
    /// By cell: where its ranks begin and end.
    cells: HashMap<Cell, (usize, usize)>,
    /// Ranks of cells, cell after cell.
    ranks: Vec<u32>,
    /// Scratch.
    owners: Vec<u32>,
}

/// The purpose of the memory, for messages.
const WHAT: &str = "cells at the borders of ranks";

impl Seen {
    /// The owner of a cell, and the ranks that see its points.
    fn ranks(&mut self, domains: &Domains, cell: Cell) -> Result<(u32, &[u32]), Shortage> {
        let brick = domains.brick(cell);
        let key = key(brick);
        let (owner, interior) = match self.bricks.get(&key) {
            Some(known) => *known,
            None => {
                let low = std::array::from_fn(|k| cell[k] >> domains.shift << domains.shift);
                let high = low.map(|cell| cell + (1 << domains.shift) - 1);
                domains.owners_around(low, high, &mut self.known, &mut self.owners);
                // A brick beyond the curve's extent stands for more cells than those around this
                // one, so its surroundings are not known.
                let inside = (0..3).all(|k| {
                    let beyond = (cell[k] >> domains.shift) - domains.low[k];
                    (0..1 << curve::BITS).contains(&beyond)
                });
                let found = (
                    self.known.of(domains, brick),
                    inside && self.owners.len() == 1,
                );
                let room = self.bricks.try_reserve(1);
                room.map_err(|_| Shortage::of::<[u64; 2]>(self.bricks.len() + 1, WHAT))?;
                self.bricks.insert(key, found);
                found
            }
        };
        if interior {
            self.owners.clear();
            self.owners.push(owner);
            return Ok((owner, &self.owners));
        }
        let (begin, end) = match self.cells.get(&cell) {
            Some(known) => *known,
            None => {
                domains.owners_around(cell, cell, &mut self.known, &mut self.owners);
                let begin = self.ranks.len();
                let room = self.cells.try_reserve(1);
                room.map_err(|_| Shortage::of::<[u64; 5]>(self.cells.len() + 1, WHAT))?;
                let room = self.ranks.try_reserve(self.owners.len());
                room.map_err(|_| Shortage::of::<u32>(begin + self.owners.len(), WHAT))?;
                self.ranks.extend_from_slice(&self.owners);
                let found = (begin, self.ranks.len());
                self.cells.insert(cell, found);
                found
            }
        };
        Ok((owner, &self.ranks[begin..end]))
    }
}
