//! The cells around the points of a rank: which rank owns each, and which ranks need its points.
//!
//! Cells fall into few *classes*: the interior of each rank's domain, and one class for every group
//! of ranks that need the same cells. A survey of points returns those outside the interior of this
//! rank, which is the commonest class; each point costs one look into a table.
//!
//! **Invariant:** all classes belong to one state of the domains. They are forgotten when these
//! change.

use crate::{curve, domains::Domains, scalar::Scalar};
use nearfield_grid::{
    Bounds, Cell,
    memory::{Shortage, copied, filled, make_room_for_one, with_room},
};
use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// Cells with the same owner that the same ranks need.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Class {
    /// The rank that owns the points.
    pub(crate) owner: u32,
    /// The ranks that need the points, ascending, including the owner.
    pub(crate) ranks: Vec<u32>,
    /// True if only the owner needs the points, but they are within reach of points that others
    /// need. Only set if it is asked for.
    pub(crate) near: bool,
}

/// A point outside the interior of this rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Special {
    /// Its place in the array.
    pub(crate) index: u32,
    /// Its class.
    pub(crate) class: u32,
}

/// The class of cells that this rank owns and no other rank needs.
pub(crate) const INTERIOR: u32 = 0;
/// A cell of the table whose class is not known yet.
const UNKNOWN: u32 = u32::MAX;
/// Bricks along the edge of a block, as a power of 2.
const BLOCK: u32 = 2;
/// Maximum number of cells of the table per point, and the number that any table may have.
pub(crate) const CELLS_PER_POINT: usize = 4;
pub(crate) const FEW_CELLS: usize = 1 << 12;
/// Maximum number of bricks that are looked up one by one. Their owners are kept, because all
/// bricks around them ask for the same ones.
const FEW_BRICKS: usize = 27;
/// The purpose of the memory, for messages.
const WHAT: &str = "cells at the borders of ranks";

/// A map with a fast hash. Colliding keys would only cost time, and no adversary chooses the keys.
pub(crate) type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mixed>>;

/// The classes of the cells that were looked up so far.
#[derive(Debug)]
pub(crate) struct CellClasses {
    classes: Vec<Class>,
    numbers: Map<Class, u32>,
    /// 1, or 2 if [`Class::near`] is wanted: multiple of the lattice's offsets that is looked at.
    reach: i64,
    /// Classes of the cells of a box, x fastest.
    table: Vec<u32>,
    low: Cell,
    size: [usize; 3],
    /// Classes of other cells.
    cells: Map<Cell, u32>,
    /// By block: the owner, if the block and its surroundings have one owner.
    blocks: Map<Cell, Option<u32>>,
    /// Owners of bricks. Finding the place of a brick along the curve takes long, and all bricks
    /// around a brick ask for it.
    owners: Map<u64, u32>,
}

impl CellClasses {
    /// No classes yet, for `rank`. `near` says whether [`Class::near`] is wanted.
    pub(crate) fn new(rank: usize, near: bool) -> Self {
        let interior = Class {
            owner: rank as u32,
            ranks: vec![rank as u32],
            near: false,
        };
        Self {
            classes: vec![interior.clone()],
            numbers: [(interior, INTERIOR)].into_iter().collect(),
            reach: if near { 2 } else { 1 },
            table: Vec::new(),
            low: [0; 3],
            size: [0; 3],
            cells: Map::default(),
            blocks: Map::default(),
            owners: Map::default(),
        }
    }

    /// This rank.
    pub(crate) fn rank(&self) -> usize {
        self.classes[INTERIOR as usize].owner as usize
    }

    /// Forgets everything: the domains have changed.
    pub(crate) fn forget(&mut self) {
        *self = Self::new(self.rank(), self.reach > 1);
    }

    /// Finds [`Class::near`] from now on. If it did not so far, everything is forgotten.
    pub(crate) fn look_farther(&mut self) {
        if self.reach == 1 {
            *self = Self::new(self.rank(), true);
        }
    }

    /// A class by its number.
    pub(crate) fn class(&self, number: u32) -> &Class {
        &self.classes[number as usize]
    }

    /// All classes so far, by number.
    pub(crate) fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// The same, without the rest.
    pub(crate) fn into_classes(self) -> Vec<Class> {
        self.classes
    }

    /// The points that are not in the interior of this rank, ascending. `bounds` hold all
    /// positions.
    ///
    /// # Errors
    /// [`Shortage`] of memory for points or cells.
    pub(crate) fn survey<T: Scalar>(
        &mut self,
        domains: &Domains,
        positions: &[[T; 3]],
        bounds: &Bounds,
    ) -> Result<Vec<Special>, Shortage> {
        self.fit_table(domains, positions.len(), bounds)?;
        self.classify(domains, positions)
    }

    /// The same for few points, for which no table is made.
    ///
    /// # Errors
    /// As [`survey`](Self::survey).
    pub(crate) fn classify<T: Scalar>(
        &mut self,
        domains: &Domains,
        positions: &[[T; 3]],
    ) -> Result<Vec<Special>, Shortage> {
        let mut special = Vec::new();
        let lattice = domains.lattice();
        for (index, at) in (0..).zip(positions) {
            let cell = T::cell(lattice, *at);
            let slot = self.slot(cell);
            let mut class = slot.map_or(UNKNOWN, |slot| self.table[slot]);
            if class == INTERIOR {
                continue;
            }
            if class == UNKNOWN {
                class = self.learn(domains, cell, slot)?;
            }
            if class != INTERIOR {
                make_room_for_one(&mut special, WHAT)?;
                special.push(Special { index, class });
            }
        }
        Ok(special)
    }

    /// The class of all cells of a block, from `low` to `high`; `None` if they may have several.
    ///
    /// # Errors
    /// As [`survey`](Self::survey).
    pub(crate) fn class_of_block(
        &mut self,
        domains: &Domains,
        [low, high]: [Cell; 2],
    ) -> Result<Option<u32>, Shortage> {
        if low == high {
            return self.find(domains, low).map(Some);
        }
        let owners = self.owners_around(domains, [low, high], self.reach);
        match owners.as_slice() {
            [owner] => {
                let (owner, ranks) = (*owner, vec![*owner]);
                let near = false;
                self.number(Class { owner, ranks, near }).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The classes of the cells of a box from `low` on, x fastest, or `None` if cells have to be
    /// looked up one by one.
    ///
    /// # Errors
    /// As [`survey`](Self::survey).
    pub(crate) fn classes_of_box(
        &mut self,
        domains: &Domains,
        low: Cell,
        size: [usize; 3],
    ) -> Result<Option<Vec<u32>>, Shortage> {
        if self.reach != 1 || !domains.are_of_single_cells() {
            return Ok(None);
        }
        // One more cell on every side. Each cell has a bit for its owner.
        let [width, depth, height] = size.map(|cells| cells + 2);
        let mut bits = filled(width * depth * height, 0u32, WHAT)?;
        let mut owners = Vec::new();
        domains.owners_of_box(
            low.map(|cell| cell - 1),
            [width, depth, height],
            |[x, y, z], owner| {
                if owners.len() > u32::BITS as usize {
                    return;
                }
                let known = owners.iter().position(|known| *known == owner);
                let place = known.unwrap_or(owners.len());
                if known.is_none() {
                    owners.push(owner);
                }
                let Some(bit) = 1u32.checked_shl(place as u32) else {
                    return;
                };
                for z in z {
                    for y in y.clone() {
                        let row = (z * depth + y) * width;
                        bits[row + x.start..row + x.end].fill(bit);
                    }
                }
            },
        );
        if owners.len() > u32::BITS as usize {
            return Ok(None);
        }
        // The owners of three consecutive cells along each axis in turn.
        let mut around = copied(&bits, WHAT)?;
        for step in [1, width, width * depth] {
            for at in 0..around.len() - 2 * step {
                around[at] |= around[at + step] | around[at + 2 * step];
            }
        }
        let mut classes = with_room(size.iter().product(), WHAT)?;
        let mut last = ([0; 2], 0);
        for z in 0..size[2] {
            for y in 0..size[1] {
                let first = (z * depth + y) * width;
                let own = first + (depth + 1) * width + 1;
                for x in 0..size[0] {
                    let both = [bits[own + x], around[first + x]];
                    if last.0 != both {
                        last = (both, self.class_of_bits(&owners, both)?);
                    }
                    classes.push(last.1);
                }
            }
        }
        Ok(Some(classes))
    }

    /// The class of cells with this owner and these owners around, as bits that stand for `owners`.
    fn class_of_bits(&mut self, owners: &[u32], [own, around]: [u32; 2]) -> Result<u32, Shortage> {
        let places = (0..owners.len()).filter(|place| around >> place & 1 == 1);
        let mut ranks: Vec<u32> = places.map(|place| owners[place]).collect();
        ranks.sort_unstable();
        let (owner, near) = (owners[own.trailing_zeros() as usize], false);
        self.number(Class { owner, ranks, near })
    }

    /// The class of a cell that is not in the table, which may have a `slot` for it.
    #[cold]
    fn learn(
        &mut self,
        domains: &Domains,
        cell: Cell,
        slot: Option<usize>,
    ) -> Result<u32, Shortage> {
        if let Some(slot) = slot {
            let class = self.find(domains, cell)?;
            self.table[slot] = class;
            return Ok(class);
        }
        if let Some(class) = self.cells.get(&cell) {
            return Ok(*class);
        }
        let class = self.find(domains, cell)?;
        let room = self.cells.try_reserve(1);
        room.map_err(|_| Shortage::of::<[u64; 4]>(self.cells.len() + 1, WHAT))?;
        self.cells.insert(cell, class);
        Ok(class)
    }

    /// Where the table has a cell.
    #[inline(always)]
    fn slot(&self, cell: Cell) -> Option<usize> {
        let [x, y, z] = [
            cell[0].wrapping_sub(self.low[0]) as usize,
            cell[1].wrapping_sub(self.low[1]) as usize,
            cell[2].wrapping_sub(self.low[2]) as usize,
        ];
        let [width, depth, height] = self.size;
        (x < width && y < depth && z < height).then(|| (z * depth + y) * width + x)
    }

    /// Makes a table for points within `bounds`, unless there is one or it would be too large for
    /// so few points. Everything is forgotten once too many other cells are kept, which points that
    /// move through space leave behind.
    fn fit_table(
        &mut self,
        domains: &Domains,
        points: usize,
        bounds: &Bounds,
    ) -> Result<(), Shortage> {
        let max = CELLS_PER_POINT * points + FEW_CELLS;
        if self.cells.len() + self.blocks.len() + self.owners.len() > 8 * max {
            self.forget();
        }
        if points == 0 {
            return Ok(());
        }
        let within = domains.lattice().cells_within(bounds);
        let has = |axis: usize| {
            let end = self.low[axis] + self.size[axis] as i64;
            (self.low[axis]..end).contains(&within.low[axis]) && within.high[axis] < end
        };
        if (0..3).all(has) {
            return Ok(());
        }
        // One more cell on every side, so that slow points do not leave the table soon.
        let low = within.low.map(|cell| cell - 1);
        let size: [usize; 3] =
            std::array::from_fn(|axis| (within.high[axis] - low[axis] + 2) as usize);
        let cells = (size[0].checked_mul(size[1])).and_then(|area| area.checked_mul(size[2]));
        (self.table, self.size) = (Vec::new(), [0; 3]);
        if let Some(cells) = cells.filter(|cells| *cells <= max) {
            self.table = filled(cells, UNKNOWN, WHAT)?;
            (self.low, self.size) = (low, size);
        }
        Ok(())
    }

    /// Computes the class of a cell.
    fn find(&mut self, domains: &Domains, cell: Cell) -> Result<u32, Shortage> {
        if let Some(owner) = self.owner_of_block(domains, cell)? {
            return self.number(Class {
                owner,
                ranks: vec![owner],
                near: false,
            });
        }
        let owner = self.owner(domains, domains.brick(cell));
        let ranks = self.owners_around(domains, [cell; 2], 1);
        let near = ranks.len() == 1
            && self.reach > 1
            && self.owners_around(domains, [cell; 2], self.reach).len() > 1;
        self.number(Class { owner, ranks, near })
    }

    /// The number of a class, which gets one if it is new.
    pub(crate) fn number(&mut self, class: Class) -> Result<u32, Shortage> {
        if let Some(number) = self.numbers.get(&class) {
            return Ok(*number);
        }
        let number = self.classes.len() as u32;
        make_room_for_one(&mut self.classes, WHAT)?;
        let room = self.numbers.try_reserve(1);
        room.map_err(|_| Shortage::of::<Class>(self.numbers.len() + 1, WHAT))?;
        self.classes.push(class.clone());
        self.numbers.insert(class, number);
        Ok(number)
    }

    /// The owner of the block around a cell, if block and surroundings have one owner.
    fn owner_of_block(&mut self, domains: &Domains, cell: Cell) -> Result<Option<u32>, Shortage> {
        let shift = domains.shift() + BLOCK;
        let block = cell.map(|cell| cell >> shift);
        if let Some(known) = self.blocks.get(&block) {
            return Ok(*known);
        }
        let low = block.map(|block| block << shift);
        let high = low.map(|cell| cell + (1 << shift) - 1);
        let owners = self.owners_around(domains, [low, high], self.reach);
        let owner = match owners.as_slice() {
            [owner] => Some(*owner),
            _ => None,
        };
        let room = self.blocks.try_reserve(1);
        room.map_err(|_| Shortage::of::<[u64; 4]>(self.blocks.len() + 1, WHAT))?;
        self.blocks.insert(block, owner);
        Ok(owner)
    }

    /// The owners, ascending, of all cells within `reach` times the lattice's offsets around some
    /// cells.
    fn owners_around(&mut self, domains: &Domains, cells: [Cell; 2], reach: i64) -> Vec<u32> {
        let mut owners = Vec::new();
        domains.bricks_around(cells, reach, |bricks| {
            let along = bricks.each_ref().map(|range| range.clone().count());
            if along.iter().product::<usize>() > FEW_BRICKS {
                return domains.owners_within(&bricks, &mut owners);
            }
            let [x, y, z] = bricks;
            for z in z {
                for y in y.clone() {
                    for x in x.clone() {
                        let owner = self.owner(domains, [x, y, z]);
                        if !owners.contains(&owner) {
                            owners.push(owner);
                        }
                    }
                }
            }
        });
        owners.sort_unstable();
        owners
    }

    /// The owner of a brick, which is kept unless memory is short.
    fn owner(&mut self, domains: &Domains, brick: [u32; 3]) -> u32 {
        let key = key(brick);
        if let Some(owner) = self.owners.get(&key) {
            return *owner;
        }
        let owner = domains.owner(brick);
        if self.owners.try_reserve(1).is_ok() {
            self.owners.insert(key, owner);
        }
        owner
    }
}

/// A brick as one number.
fn key(brick: [u32; 3]) -> u64 {
    let join = |key, k: &u32| key << curve::BITS | u64::from(*k);
    brick.iter().fold(0, join)
}

/// A hash with one multiplication per number.
#[derive(Default)]
pub(crate) struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for bytes in bytes.chunks(8) {
            let mut number = [0; 8];
            number[..bytes.len()].copy_from_slice(bytes);
            self.write_u64(u64::from_ne_bytes(number));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // An odd constant near 2⁶⁴ over the golden ratio; the high bits are the mixed ones.
        let product = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}
