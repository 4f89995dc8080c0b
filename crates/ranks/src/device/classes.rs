//! Classes of cells as a table that the device looks points up in.
//!
//! The table holds the class of every cell of a box around the points, as
//! [`CellClasses`](crate::cell_classes::CellClasses) finds it: so ownership and sight are decided
//! by the code that ranks with host data use. Where points lie so far apart that cells are many
//! more than points, an entry stands for a block of cells; blocks with several classes are marked,
//! and the host looks at their points one by one.
//!
//! **Invariant:** a table belongs to one state of the domains, and a point within its box gets the
//! class that a survey of the host gives it, or the mark.

use super::cores;
use crate::{
    cell_classes::{CELLS_PER_POINT, CellClasses, Class, FEW_CELLS},
    domains::Domains,
};
use nearfield_grid::{
    Bounds,
    memory::{Shortage, filled, with_room},
};
use std::ops::Range;

/// Marks a block whose cells have several classes, and a point outside the table.
pub(super) const SEVERAL: u32 = u32::MAX;

/// Room around the points as a fraction (1/n) of their extent. When points leave it the host makes
/// another table and the device waits, so this should be rare.
const ROOM: i64 = 16;
/// The same for a table that has few blocks nevertheless.
const MUCH_ROOM: i64 = 4;
const FEW_BLOCKS: u128 = 1 << 22;
/// The same on sides where they have left the previous table.
const ROOM_TO_GROW: i64 = 2;

/// log₂ of the blocks along the edge of a cube, the unit of work of a core.
const SUB_TABLE: u32 = 5;
/// The purpose of the memory, for messages.
const WHAT: &str = "classes of cells";

/// Number of blocks of 2^`shift` cells between the ends of a box along an axis.
fn along([low, high]: [[i64; 3]; 2], axis: usize, shift: u32) -> i64 {
    (high[axis] >> shift) - (low[axis] >> shift) + 1
}

/// All of them.
fn blocks(ends: [[i64; 3]; 2], shift: u32) -> u128 {
    (0..3)
        .map(|axis| along(ends, axis, shift) as u128)
        .product()
}

/// The first and the last cell along each axis of the cube number `at` with an edge of 2^`size`
/// cells.
fn cells_of(at: [i64; 3], size: u32) -> [[i64; 3]; 2] {
    let low = at.map(|at| at << size);
    [low, low.map(|cell| cell + (1 << size) - 1)]
}

/// Classes of the blocks of a box.
#[derive(Debug)]
pub(super) struct ClassTable {
    /// The first block along each axis.
    pub(super) low: [i64; 3],
    /// Blocks along each axis.
    pub(super) dims: [u32; 3],
    /// log₂ of the cells along the edge of a block.
    pub(super) shift: u32,
    /// The class of each block, x fastest.
    pub(super) classes: Vec<u32>,
}

impl ClassTable {
    /// A table without cells: every point is outside.
    pub(super) fn empty() -> Self {
        Self {
            low: [0; 3],
            dims: [0; 3],
            shift: 0,
            classes: Vec::new(),
        }
    }

    /// The table for `points` points within `bounds`, which are not empty. `before` is a table of
    /// the same domains that points have left; on those sides the new table has much more room.
    ///
    /// # Errors
    /// [`Shortage`].
    pub(super) fn new(
        cell_classes: &mut CellClasses,
        domains: &Domains,
        bounds: &Bounds,
        points: usize,
        before: Option<&Self>,
    ) -> Result<Self, Shortage> {
        let within = domains.lattice().cells_within(bounds);
        let old = |axis: usize| before.and_then(|before| before.cells(axis));
        let with_room = |room: i64, room_to_grow: i64| {
            let mut ends = [within.low, within.high];
            for axis in 0..3 {
                let extent = within.high[axis] - within.low[axis];
                let (share, grown) = (1 + extent / room, 1 + extent / room_to_grow);
                let more = match old(axis) {
                    None => [share; 2],
                    Some([first, last]) => {
                        let room = [within.low[axis] - first, last - within.high[axis]];
                        room.map(|room| if room < 0 { grown } else { room.max(share) })
                    }
                };
                ends[0][axis] -= more[0];
                ends[1][axis] += more[1];
            }
            ends
        };
        let max = (CELLS_PER_POINT * points + FEW_CELLS) as u128;
        // Cells are within ±2⁴³, so blocks of some size are few.
        let shift_of = |ends| {
            (0..=45)
                .find(|shift| blocks(ends, *shift) <= max)
                .unwrap_or(45)
        };
        let [roomy, tight] = [with_room(MUCH_ROOM, ROOM_TO_GROW), with_room(ROOM, ROOM)];
        let affordable = before.is_some() || blocks(roomy, 0) <= FEW_BLOCKS;
        let [low, high] = match affordable && shift_of(roomy) == shift_of(tight) {
            true => roomy,
            false => tight,
        };
        let shift = shift_of([low, high]);
        let dims = std::array::from_fn(|axis| along([low, high], axis, shift) as u32);
        let mut table = Self {
            low: low.map(|cell| cell >> shift),
            dims,
            shift,
            classes: filled(blocks([low, high], shift) as usize, SEVERAL, WHAT)?,
        };
        table.fill(cell_classes, domains)?;
        Ok(table)
    }

    /// Writes the classes of all blocks. Cores take cubes of the table, and each cube has class
    /// numbers of its own. The class numbers of the table follow from the order of the cubes.
    fn fill(&mut self, cell_classes: &mut CellClasses, domains: &Domains) -> Result<(), Shortage> {
        let [x, y, z] = [0, 1, 2].map(|axis| {
            let last = self.low[axis] + i64::from(self.dims[axis]) - 1;
            self.low[axis] >> SUB_TABLE..=last >> SUB_TABLE
        });
        let in_plane = x.clone().count() * y.clone().count();
        let mut places = with_room(in_plane * z.clone().count(), WHAT)?;
        for z in z {
            for y in y.clone() {
                places.extend(x.clone().map(|x| [x, y, z]));
            }
        }
        let rank = cell_classes.rank();
        let parts = cores::map(places, |at| {
            self.part(CellClasses::new(rank, false), domains, at)
        });
        let mut numbered = with_room(parts.len(), WHAT)?;
        for part in parts {
            let mut part = part?;
            let numbers = std::mem::take(&mut part.classes).into_iter();
            let numbers: Result<Vec<u32>, _> =
                numbers.map(|class| cell_classes.number(class)).collect();
            numbered.push((part, numbers?));
        }
        let (low, [width, depth]) = (self.low, [self.dims[0], self.dims[1]].map(|n| n as usize));
        let (mut slabs, mut rest) = (Vec::new(), &mut *self.classes);
        for parts in numbered.chunks(in_plane) {
            let planes = parts[0].0.table.dims[2] as usize;
            let (slab, behind) = rest.split_at_mut(width * depth * planes);
            slabs.push((slab, parts));
            rest = behind;
        }
        cores::map(slabs, |(slab, parts)| {
            for (part, numbers) in parts {
                part.put(
                    numbers,
                    [low[0], low[1], part.table.low[2]],
                    [width, depth],
                    slab,
                );
            }
        });
        Ok(())
    }

    /// The classes of the blocks in the cube number `at` with an edge of 2^[`SUB_TABLE`] blocks.
    fn part(
        &self,
        mut cell_classes: CellClasses,
        domains: &Domains,
        at: [i64; 3],
    ) -> Result<SubTable, Shortage> {
        let low = std::array::from_fn(|axis| self.low[axis].max(at[axis] << SUB_TABLE));
        let dims = std::array::from_fn(|axis| {
            let end = self.low[axis] + i64::from(self.dims[axis]);
            (end.min((at[axis] + 1) << SUB_TABLE) - low[axis]) as u32
        });
        let mut table = Self {
            low,
            dims,
            shift: self.shift,
            classes: Vec::new(),
        };
        let size = self.shift + SUB_TABLE;
        let of_all = cell_classes.class_of_block(domains, cells_of(at, size))?;
        if of_all.is_none() {
            let dims = dims.map(|blocks| blocks as usize);
            let found = match self.shift {
                0 => cell_classes.classes_of_box(domains, low, dims)?,
                _ => None,
            };
            if let Some(classes) = found {
                table.classes = classes;
            } else {
                table.classes = filled(dims.iter().product(), SEVERAL, WHAT)?;
                table.fill_cube(&mut cell_classes, domains, at, size)?;
            }
        }
        Ok(SubTable {
            table,
            of_all,
            classes: cell_classes.into_classes(),
        })
    }

    /// The first and the last cell along an axis, unless the table is empty.
    fn cells(&self, axis: usize) -> Option<[i64; 2]> {
        let (first, blocks) = (self.low[axis], i64::from(self.dims[axis]));
        (blocks != 0).then(|| [first << self.shift, ((first + blocks) << self.shift) - 1])
    }

    /// Writes the classes of the blocks in the cube number `at` with an edge of 2^`size` cells: all
    /// at once if they have one class, and otherwise by smaller cubes.
    fn fill_cube(
        &mut self,
        cell_classes: &mut CellClasses,
        domains: &Domains,
        at: [i64; 3],
        size: u32,
    ) -> Result<(), Shortage> {
        let [low, high] = cells_of(at, size);
        let within: [Range<usize>; 3] = std::array::from_fn(|axis| {
            let inside = |block: i64| (block - self.low[axis]).clamp(0, i64::from(self.dims[axis]));
            let ends = [low[axis], high[axis]].map(|cell| cell >> self.shift);
            inside(ends[0]) as usize..inside(ends[1] + 1) as usize
        });
        if within.iter().any(Range::is_empty) {
            return Ok(());
        }
        let Some(class) = cell_classes.class_of_block(domains, [low, high])? else {
            if size == self.shift {
                // They are marked already.
                return Ok(());
            }
            for child in 0..8 {
                let child = [0, 1, 2].map(|axis| 2 * at[axis] + (child >> axis & 1));
                self.fill_cube(cell_classes, domains, child, size - 1)?;
            }
            return Ok(());
        };
        let [width, depth] = [self.dims[0] as usize, self.dims[1] as usize];
        for z in within[2].clone() {
            for y in within[1].clone() {
                let row = (z * depth + y) * width;
                self.classes[row + within[0].start..row + within[0].end].fill(class);
            }
        }
        Ok(())
    }

    /// Returns true if all points within `bounds` are in the table.
    pub(super) fn covers(&self, domains: &Domains, bounds: &Bounds) -> bool {
        let within = domains.lattice().cells_within(bounds);
        (0..3).all(|axis| {
            let blocks = self.low[axis]..self.low[axis] + i64::from(self.dims[axis]);
            let block = |cell: i64| cell >> self.shift;
            blocks.contains(&block(within.low[axis])) && blocks.contains(&block(within.high[axis]))
        })
    }
}

/// A cube of a table, with class numbers of its own.
struct SubTable {
    /// Has no classes if all blocks have one class.
    table: ClassTable,
    of_all: Option<u32>,
    /// By number.
    classes: Vec<Class>,
}

impl SubTable {
    /// Writes the classes into blocks from `low` on with this width and depth; `numbers` are the
    /// class numbers in the whole table.
    fn put(&self, numbers: &[u32], low: [i64; 3], [width, depth]: [usize; 2], to: &mut [u32]) {
        let from: [usize; 3] =
            std::array::from_fn(|axis| (self.table.low[axis] - low[axis]) as usize);
        let [along, rows, planes] = self.table.dims.map(|blocks| blocks as usize);
        for k in 0..planes {
            for j in 0..rows {
                let first = ((from[2] + k) * depth + from[1] + j) * width + from[0];
                let to = &mut to[first..first + along];
                match self.of_all {
                    Some(class) => to.fill(numbers[class as usize]),
                    None => {
                        let row = &self.table.classes[(k * rows + j) * along..][..along];
                        for (to, class) in to.iter_mut().zip(row) {
                            // Of the mark there is none.
                            *to = numbers.get(*class as usize).copied().unwrap_or(SEVERAL);
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{curve, scalar::Scalar};
    use nearfield_grid::{Domain, Lattice, Radius};

    /// The class by the table, as places.cu looks it up.
    fn class_at(table: &ClassTable, domains: &Domains, at: [f32; 3]) -> u32 {
        let cell = f32::cell(domains.lattice(), at);
        let mut place = 0;
        for axis in (0..3).rev() {
            let offset = (cell[axis] >> table.shift) - table.low[axis];
            if !(0..i64::from(table.dims[axis])).contains(&offset) {
                return SEVERAL;
            }
            place = place * table.dims[axis] as usize + offset as usize;
        }
        table.classes[place]
    }

    /// Checks that points get the class of a survey; returns how many the host has to look at.
    fn agrees(points: &[[f32; 3]], domain: Domain, ranks: usize) -> usize {
        let bounds = Bounds::of(f32::positions(points), &domain).unwrap();
        let radius = Radius::new(1.0).unwrap();
        let lattice = Lattice::new(radius, domain, 1, &bounds).unwrap();
        let mut domains = Domains::new(lattice, &bounds, ranks);
        let cut = |k: usize| (curve::END as f64 * k as f64 / ranks as f64 * 0.03) as u64;
        domains.set_cuts((1..ranks).map(cut).collect());
        let mut unlooked = 0;
        for rank in 0..ranks {
            let mut cell_classes = CellClasses::new(rank, false);
            let table =
                ClassTable::new(&mut cell_classes, &domains, &bounds, points.len(), None).unwrap();
            assert!(table.covers(&domains, &bounds));
            let special = cell_classes.survey(&domains, points, &bounds).unwrap();
            let mut special = special.iter().peekable();
            for (index, point) in points.iter().enumerate() {
                let expected = special.next_if(|point| point.index as usize == index);
                let expected = expected.map_or(crate::cell_classes::INTERIOR, |point| point.class);
                match class_at(&table, &domains, *point) {
                    SEVERAL => unlooked += 1,
                    class => assert_eq!(class, expected, "{point:?}"),
                }
            }
        }
        unlooked
    }

    #[test]
    fn classes_are_those_of_a_survey() {
        let number = |k: u32, n: u32| (k.wrapping_mul(2_654_435_761) >> 7) % n;
        let point = |k: u32| [0, 1, 2].map(|axis| number(3 * k + axis, 997) as f32 * 0.012);
        let points: Vec<_> = (0..2000).map(point).collect();
        assert_eq!(agrees(&points, Domain::OPEN, 5), 0);
        let periodic = Domain::new([Some(12.0), None, Some(12.0)]).unwrap();
        assert_eq!(agrees(&points, periodic, 3), 0);
        // More owners than a word has bits.
        assert_eq!(agrees(&points, Domain::OPEN, 60), 0);
    }

    #[test]
    fn a_table_grows_where_points_have_left_it() {
        let domains = |bounds: &Bounds| {
            let lattice = Lattice::new(Radius::new(1.0).unwrap(), Domain::OPEN, 1, bounds).unwrap();
            Domains::new(lattice, bounds, 2)
        };
        let bounds = |high: f64| Bounds {
            min: [0.0; 3],
            max: [high, 32.0, 32.0],
        };
        let (domains, mut cell_classes) = (domains(&bounds(32.0)), CellClasses::new(0, false));
        let mut table = |high: f64, before: Option<&ClassTable>| {
            ClassTable::new(&mut cell_classes, &domains, &bounds(high), 100_000, before).unwrap()
        };
        let cells = |table: &ClassTable| [0, 1].map(|axis| table.cells(axis).unwrap());
        let first = table(32.0, None);
        assert_eq!(cells(&first), [[-9, 41]; 2]);
        let second = table(42.0, Some(&first));
        assert_eq!(cells(&second), [[-11, 64], [-9, 41]]);
        // Room that was made before stays.
        let third = table(36.0, Some(&second));
        assert_eq!(cells(&third), [[-11, 64], [-9, 41]]);
    }

    #[test]
    fn points_far_apart_are_found_by_blocks() {
        let point = |k: usize, step: f32| [0.5 * step * k as f32, (k % 7) as f32 * step, 0.0];
        let points = |step| (0..300).map(|k| point(k, step)).collect::<Vec<_>>();
        for step in [12.0, 9e5] {
            let unlooked = agrees(&points(step), Domain::OPEN, 4);
            assert!(unlooked < 2 * 300, "step {step}: {unlooked}");
        }
    }
}
