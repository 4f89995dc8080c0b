//! Which rank owns a cell, and which ranks need its points.
//!
//! All ranks have the same lattice: it follows from the radius, the box and the extent of the
//! points of all ranks. Cells are grouped into bricks of 2ˢ cells along each edge (single cells
//! where there are not too many), bricks are ordered along a [curve](crate::curve), and a rank owns
//! a range of the curve. Ownership is a function of the integer cell, so every point has exactly
//! one owner, wherever it is, also on a corner where several ranks meet. Bricks outside the extent
//! that the curve was made for belong to the nearest brick on its border; the curve is made anew
//! whenever it is cut.
//!
//! # Which ranks need a point
//!
//! A rank needs a point if it owns any cell within the offsets of the lattice around the point's
//! cell, including images; empty cells count. If two points are neighbours by the contract, the
//! offset between their cells is among those ([`nearfield_grid::Lattice::rows`]), so the owner of
//! either has both. Coordinates travel as given: the engine of the owner, which knows the whole
//! box, finds the images of a pair.
//!
//! # Cost
//!
//! [`CellClasses`](crate::cell_classes::CellClasses) holds the class of every cell that a rank has
//! met: its owner, and the ranks that need it. Classes stay until the domains change, so a step
//! looks up one number per point, in a table over the cells of the rank if these are close
//! together. Blocks of cells whose surroundings belong to one rank are classified at once.

use crate::curve;
use nearfield_grid::{Bounds, Cell, Lattice};
use std::ops::{Range, RangeInclusive};

/// The lattice, the curve over it, and the places where the curve is cut.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Domains {
    lattice: Lattice,
    /// Cells along each axis; 0 on open ones.
    cells: [i64; 3],
    /// Largest offset between the cells of two neighbours along each axis.
    offsets: [i64; 3],
    /// The first brick along each axis.
    low: [i64; 3],
    /// Bricks along each axis, at least 1.
    bricks: [u32; 3],
    /// log₂ of the cells along the edge of a brick.
    shift: u32,
    /// Rank k owns the places from `cuts[k − 1]` to before `cuts[k]`.
    cuts: Vec<u64>,
}

/// Ranges of bricks along an axis, two if they cross a face of the box.
type Ranges = [RangeInclusive<u32>; 2];

impl Domains {
    /// Domains for points within `bounds`. Rank 0 owns all of them until they are
    /// [cut](Self::set_cuts).
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
        let shift = (0..=43).find(fits).unwrap_or(43);
        let along = |k: usize| (high[k] >> shift) - (low[k] >> shift) + 1;
        Self {
            cells: std::array::from_fn(|axis| lattice.scale(axis).cells),
            offsets: lattice.max_offsets(),
            low: low.map(|cell| cell >> shift),
            bricks: std::array::from_fn(|k| along(k).clamp(1, 1 << curve::BITS) as u32),
            shift,
            cuts: vec![curve::END; ranks.saturating_sub(1)],
            lattice,
        }
    }

    /// The lattice.
    pub(crate) fn lattice(&self) -> &Lattice {
        &self.lattice
    }

    /// Sets the places along the curve where the ranks after the first begin, ascending.
    pub(crate) fn set_cuts(&mut self, cuts: Vec<u64>) {
        self.cuts = cuts;
    }

    /// The number along an axis of the brick of a cell.
    fn brick_along(&self, axis: usize, cell: i64) -> u32 {
        let last = i64::from(self.bricks[axis]) - 1;
        ((cell >> self.shift) - self.low[axis]).clamp(0, last) as u32
    }

    /// The brick of a cell.
    pub(crate) fn brick(&self, cell: Cell) -> [u32; 3] {
        std::array::from_fn(|axis| self.brick_along(axis, cell[axis]))
    }

    /// Returns true if bricks are single cells and neighbours are at most one cell apart along each
    /// axis.
    pub(crate) fn are_of_single_cells(&self) -> bool {
        self.shift == 0 && self.offsets == [1; 3]
    }

    /// The place along the curve of a brick.
    ///
    /// The bricks along an axis are spread over a power of two, so that halves, quarters and so on
    /// of the curve are those of the extent. The faces between ranks are then flat.
    pub(crate) fn place(&self, brick: [u32; 3]) -> u64 {
        curve::place(std::array::from_fn(|axis| self.on_curve(axis, brick[axis])))
    }

    /// The number of a brick along an axis of the curve.
    fn on_curve(&self, axis: usize, brick: u32) -> u32 {
        let bricks = u64::from(self.bricks[axis]);
        (u64::from(brick) * bricks.next_power_of_two() / bricks) as u32
    }

    /// The rank that owns a brick.
    pub(crate) fn owner(&self, brick: [u32; 3]) -> u32 {
        self.owner_at(self.place(brick))
    }

    /// The rank that owns a place on the curve.
    fn owner_at(&self, place: u64) -> u32 {
        self.cuts.partition_point(|cut| *cut <= place) as u32
    }

    /// Calls `visit` with the owners of the cells of a box, which begins at `low` and has `size`
    /// cells along each axis, including images. Each call is for a part of the box with one owner,
    /// as ranges of cells relative to `low`.
    pub(crate) fn owners_of_box(
        &self,
        low: Cell,
        size: [usize; 3],
        mut visit: impl FnMut([Range<usize>; 3], u32),
    ) {
        // By axis and cell.
        let numbers: [Vec<u32>; 3] = std::array::from_fn(|axis| {
            let number = |k: usize| {
                let cell = low[axis] + k as i64;
                let image = match self.cells[axis] {
                    0 => cell,
                    cells => cell.rem_euclid(cells),
                };
                self.on_curve(axis, self.brick_along(axis, image))
            };
            (0..size[axis]).map(number).collect()
        });
        let mut boxes = vec![size.map(|cells| 0..cells)];
        while let Some(cells) = boxes.pop() {
            let Some((corner, level)) = cube_around(&numbers, &cells) else {
                continue;
            };
            let last = (1u64 << (3 * level)) - 1;
            let first = curve::place(corner) & !last;
            let owner = self.owner_at(first);
            if owner == self.owner_at(first + last) {
                visit(cells, owner);
                continue;
            }
            let halves = cells.map(|Range { start, end }| {
                let middle = start + (end - start) / 2;
                [start..middle, middle..end]
            });
            for child in 0..8 {
                boxes.push([0, 1, 2].map(|axis| halves[axis][child >> axis & 1].clone()));
            }
        }
    }

    /// The bricks along an axis that hold the cells `low` to `high`, including images.
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

    /// log₂ of the cells along the edge of a brick.
    pub(crate) fn shift(&self) -> u32 {
        self.shift
    }

    /// Calls `visit` with boxes of bricks, which hold the cells within `reach` times the lattice's
    /// offsets around the cells `low` to `high`, including images.
    pub(crate) fn bricks_around(
        &self,
        [low, high]: [Cell; 2],
        reach: i64,
        mut visit: impl FnMut([RangeInclusive<u32>; 3]),
    ) {
        let [x, y, z]: [Ranges; 3] = std::array::from_fn(|axis| {
            let offset = reach * self.offsets[axis];
            self.ranges(axis, low[axis] - offset, high[axis] + offset)
        });
        let some = |ranges: Ranges| ranges.into_iter().filter(|range| !range.is_empty());
        for z in some(z) {
            for y in some(y.clone()) {
                for x in some(x.clone()) {
                    visit([x, y.clone(), z.clone()]);
                }
            }
        }
    }

    /// Adds the owners of the bricks of a box to `owners`, each once. A cube of the curve that lies
    /// in one domain is visited once, however many bricks it has.
    pub(crate) fn owners_within(&self, bricks: &[RangeInclusive<u32>; 3], owners: &mut Vec<u32>) {
        let level = (self.bricks.iter()).map(|bricks| bricks.next_power_of_two().ilog2());
        self.add_owners([0; 3], level.max().unwrap_or(0), bricks, owners);
    }

    /// The same for the bricks in a cube of the curve with 2^`level` bricks along each edge.
    fn add_owners(
        &self,
        corner: [u32; 3],
        level: u32,
        within: &[RangeInclusive<u32>; 3],
        owners: &mut Vec<u32>,
    ) {
        // The first brick of an axis whose number on the curve is `on_curve` or more.
        let first_from = |axis: usize, on_curve: u64| {
            let bricks = u64::from(self.bricks[axis]);
            (on_curve * bricks).div_ceil(bricks.next_power_of_two())
        };
        let meets = (0..3).all(|axis| {
            let begin = u64::from(corner[axis]);
            let first = first_from(axis, begin).max(u64::from(*within[axis].start()));
            let end = first_from(axis, begin + (1 << level));
            first < end.min(u64::from(*within[axis].end()) + 1)
        });
        if !meets {
            return;
        }
        let places = 1u64 << (3 * level);
        let first = curve::place(corner) & !(places - 1);
        let all = self.owner_at(first)..=self.owner_at(first + (places - 1));
        if all.clone().all(|owner| owners.contains(&owner)) {
            return;
        }
        if all.start() == all.end() {
            owners.push(*all.start());
            return;
        }
        for child in 0..8u32 {
            let half = 1 << (level - 1);
            let corner = std::array::from_fn(|axis| corner[axis] + half * (child >> axis & 1));
            self.add_owners(corner, level - 1, within, owners);
        }
    }
}

/// The smallest cube of the curve, as a corner and the log₂ of its edge, that has all cells of a
/// box, whose ranges are in numbers of the curve; `None` if the box is empty.
fn cube_around(numbers: &[Vec<u32>; 3], cells: &[Range<usize>; 3]) -> Option<([u32; 3], u32)> {
    let (mut corner, mut differ) = ([0; 3], 0);
    for axis in 0..3 {
        let along = &numbers[axis][cells[axis].clone()];
        corner[axis] = *along.iter().min()?;
        differ |= corner[axis] ^ along.iter().max()?;
    }
    Some((corner, u32::BITS - differ.leading_zeros()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfield_grid::{Domain, Radius};
    use std::collections::BTreeSet;

    #[test]
    fn owners_of_a_box_are_those_of_its_bricks() {
        let mut state = 7u64;
        let mut below = |n: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % n
        };
        for case in 0..40 {
            let extent: [f64; 3] = std::array::from_fn(|_| 1.5 + below(30) as f64);
            let bounds = Bounds {
                min: [0.0; 3],
                max: extent,
            };
            let radius = Radius::new(1.0).unwrap();
            let lattice = Lattice::new(radius, Domain::OPEN, 1, &bounds).unwrap();
            let ranks = 1 + below(9) as usize;
            let mut domains = Domains::new(lattice, &bounds, ranks);
            let places = 1u64 << (3 * domains.bricks.map(u32::next_power_of_two)[0].ilog2() + 4);
            let mut cuts: Vec<u64> = (1..ranks).map(|_| below(places)).collect();
            cuts.sort_unstable();
            domains.set_cuts(cuts);
            for _ in 0..20 {
                let within: [RangeInclusive<u32>; 3] = std::array::from_fn(|axis| {
                    let bricks = u64::from(domains.bricks[axis]);
                    let low = below(bricks);
                    low as u32..=(low + below(bricks - low)) as u32
                });
                let mut expected = BTreeSet::new();
                for z in within[2].clone() {
                    for y in within[1].clone() {
                        for x in within[0].clone() {
                            expected.insert(domains.owner([x, y, z]));
                        }
                    }
                }
                let mut found = Vec::new();
                domains.owners_within(&within, &mut found);
                found.sort_unstable();
                let expected: Vec<u32> = expected.into_iter().collect();
                assert_eq!(found, expected, "case {case}: {within:?}");
                // Also of cells beyond the bricks, each once.
                let first = within.each_ref().map(|range| i64::from(*range.start()) - 2);
                let size = within.map(|range| range.count() + 3);
                let mut left = size.iter().product::<usize>();
                domains.owners_of_box(first, size, |[x, y, z], owner| {
                    for (z, y) in z.flat_map(|z| y.clone().map(move |y| (z, y))) {
                        for x in x.clone() {
                            let offset = [x, y, z];
                            let cell = [0, 1, 2].map(|axis| first[axis] + offset[axis] as i64);
                            assert_eq!(owner, domains.owner(domains.brick(cell)), "{cell:?}");
                            left -= 1;
                        }
                    }
                });
                assert_eq!(left, 0);
            }
        }
    }
}
