//! Choosing points by the bricks they lie in, to be sorted without the others.
//!
//! A backend that works beside another one needs its own bricks and the points within reach of
//! them, often a small part of all. Two passes over the caller's points choose them: the first
//! marks every point by a bit, with vectors, and counts the marks of each task; the second copies
//! the marked points to where the counts say. Both read the points once, in order, so choosing a
//! tenth of a million points costs a fraction of sorting them.
//!
//! **Invariant:** the chosen points keep the caller's order, so a stable sort of them gives the
//! order that the whole set would have.
//!
//! # The first pass
//!
//! A point's brick is computed in floating point, where all intermediate numbers are whole and
//! below 2³¹ and so exact: cell, brick, and the element of a table that says whether the brick is
//! wanted. Points outside the box of bricks get an element of their own. Sixty-four answers become
//! a word of the mask. Where cells are too far out for that, each point goes through the lattice.
//!
//! # The second pass
//!
//! Words are walked bit by bit, so the cost follows the marked points. The bounds of the chosen
//! points are measured on the way, because a smaller box makes a smaller table.

use crate::{
    Bounds, BrickParts, CellsWithin, Error, Lattice, SharedMut,
    error::reserve,
    lattice::axis::OpenScale,
    memory,
    parallel::PoolLoops,
    sort::widest::{Loops, widest},
};
use rayon::prelude::*;

/// Points that one thread looks at together.
const TASK: usize = 1 << 13;
/// Points of a word of the masks.
const WORD: usize = u64::BITS as usize;
/// Words of the masks of a task.
const WORDS: usize = TASK / WORD;
/// The name of the memory in messages.
const WHAT: &str = "a part of the points";
/// Cells up to here are computed by fewer operations.
const NEAR: i64 = 1 << 30;

/// The points that were chosen; kept between builds for the memory.
///
/// Kept between builds for the memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept {
    /// A bit for every point.
    masks: Vec<u64>,
    /// Indices of the chosen points among all.
    index: Vec<u32>,
    /// Positions of the chosen points.
    positions: Vec<[f32; 3]>,
    /// 1 for every brick of the part asked for; the last element stands for all cells outside the
    /// box.
    wanted: Vec<u8>,
}

impl Kept {
    /// The positions of the points that were chosen.
    pub(crate) fn positions(&self) -> &[[f32; 3]] {
        &self.positions
    }

    /// Their indices among all.
    pub(crate) fn index(&self) -> &[u32] {
        &self.index
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<u64>() * self.masks.capacity()
            + size_of::<u32>() * self.index.capacity()
            + size_of::<[f32; 3]>() * self.positions.capacity()
            + self.wanted.capacity()
    }

    /// Chooses the points within `bounds` whose brick is of a part, and returns their bounds: one
    /// pass marks them, a second copies them. For domains without periodic axes.
    ///
    /// Both passes run in tasks of 8,192 points on all workers.
    pub(crate) fn choose(
        &mut self,
        points: &[[f32; 3]],
        bounds: &Bounds,
        lattice: &Lattice,
        bricks: &BrickParts,
        part: u8,
    ) -> Result<Bounds, Error> {
        self.wanted.clear();
        memory::make_room(&mut self.wanted, bricks.parts().len() + 1, WHAT)?;
        let all = bricks.parts().iter().copied().chain([bricks.elsewhere()]);
        self.wanted.extend(all.map(|of| u8::from(of == part)));
        let near = |cell: i64| (-NEAR..NEAR).contains(&cell);
        let CellsWithin { low, high, .. } = lattice.cells_within(bounds);
        let fast = (lattice.open_scale())
            .filter(|_| low.into_iter().chain(high).all(near) && self.wanted.len() < 1 << 31)
            .map(|scale| Bricks::new(scale, bricks));
        let words = points.len().div_ceil(TASK) * WORDS;
        memory::make_room(&mut self.masks, words, WHAT)?;
        self.masks.resize(words, 0);
        let wanted = &*self.wanted;
        let counts: Vec<usize> = (points.par_chunks(TASK))
            .zip(self.masks.par_chunks_mut(WORDS))
            .map(|(points, masks)| match fast {
                Some(bricks) => widest(Mark {
                    points,
                    masks,
                    wanted,
                    bricks,
                }),
                None => {
                    let keep = |&at: &[f32; 3]| bricks.part(lattice.cell(at)) == part;
                    for (points, mask) in points.chunks(WORD).zip(&mut *masks) {
                        let bits = points.iter().map(keep).enumerate();
                        *mask = bits.fold(0, |mask, (at, keep)| mask | u64::from(keep) << at);
                    }
                    let words = points.len().div_ceil(WORD);
                    masks[..words]
                        .iter()
                        .map(|mask| mask.count_ones() as usize)
                        .sum()
                }
            })
            .listed();
        self.copy_marked(points, counts)
    }

    /// Copies the marked points and their indices; `counts` are the marks of every task. Returns
    /// the bounds of the points.
    fn copy_marked(
        &mut self,
        points: &[[f32; 3]],
        mut counts: Vec<usize>,
    ) -> Result<Bounds, Error> {
        let mut all = 0;
        for start in &mut counts {
            (*start, all) = (all, all + *start);
        }
        let starts = counts;
        reserve(&mut self.index, all, WHAT)?;
        reserve(&mut self.positions, all, WHAT)?;
        self.index.resize(all, 0);
        self.positions.resize(all, [0.0; 3]);
        let (index, kept) = (
            SharedMut::new(&mut self.index),
            SharedMut::new(&mut self.positions),
        );
        let copy = |number: usize, points: &[[f32; 3]], masks: &[u64], mut next: usize| {
            let (mut min, mut max) = ([f32::INFINITY; 3], [f32::NEG_INFINITY; 3]);
            let words = points.chunks(WORD).zip(masks);
            for (word, (points, &mask)) in words.enumerate() {
                let first = number * TASK + word * WORD;
                let mut bits = mask;
                while bits != 0 {
                    let at = bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    let point = points[at];
                    for axis in 0..3 {
                        min[axis] = min[axis].min(point[axis]);
                        max[axis] = max[axis].max(point[axis]);
                    }
                    // SAFETY: places of tasks do not overlap, and are as many as their bits.
                    unsafe {
                        index.write(next, (first + at) as u32);
                        kept.write(next, point);
                    }
                    next += 1;
                }
            }
            Bounds {
                min: min.map(f64::from),
                max: max.map(f64::from),
            }
        };
        let tasks = points.par_chunks(TASK).zip(self.masks.par_chunks(WORDS));
        let copied = tasks.zip(starts).enumerate();
        Ok(copied
            .map(|(number, ((points, masks), next))| copy(number, points, masks, next))
            .combined(|| Bounds::EMPTY, |a, b| a.union(&b)))
    }
}

/// Where points lie in a box of bricks, in floating point, where it is exact: all numbers are whole
/// and below 2³¹.
#[derive(Debug, Clone, Copy)]
struct Bricks {
    /// From coordinates to cells.
    cells: OpenScale,
    /// Bricks per cell along an axis.
    inverse_edge: f64,
    /// First brick of the box along each axis.
    first: [f64; 3],
    /// Bricks of the box along each axis.
    dims: [f64; 3],
    /// The element of `wanted` for points outside the box.
    outside: f64,
}

impl Bricks {
    /// The box of bricks of a map of parts, for cells of this scale.
    fn new(cells: OpenScale, bricks: &BrickParts) -> Self {
        Self {
            cells,
            inverse_edge: 1.0 / f64::from(bricks.edge()),
            first: bricks.first().map(|first| first as f64),
            dims: bricks.dims().map(f64::from),
            outside: bricks.parts().len() as f64,
        }
    }

    /// Brick of a coordinate, less the first one of its axis.
    #[inline(always)]
    fn along(&self, axis: usize, x: f32) -> f64 {
        // Half a cell further no rounding can reach the border of a brick.
        let cell = self.cells.cell(f64::from(x)) + 0.5;
        OpenScale::floor(cell * self.inverse_edge) - self.first[axis]
    }

    /// The element of `wanted` for a position.
    #[inline(always)]
    fn place(&self, [x, y, z]: [f32; 3]) -> f64 {
        let (x, y, z) = (self.along(0, x), self.along(1, y), self.along(2, z));
        let [width, height, depth] = self.dims;
        let inside =
            (x >= 0.0) & (x < width) & (y >= 0.0) & (y < height) & (z >= 0.0) & (z < depth);
        let place = (z * height + y) * width + x;
        if inside { place } else { self.outside }
    }
}

/// Sets the bits of the points that are wanted, and counts them.
struct Mark<'a> {
    /// Points of a task.
    points: &'a [[f32; 3]],
    /// Their masks.
    masks: &'a mut [u64],
    /// 1 for wanted bricks.
    wanted: &'a [u8],
    /// From positions to elements of `wanted`.
    bricks: Bricks,
}

impl Loops for Mark<'_> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let mut count = 0;
        for (points, mask) in self.points.chunks(WORD).zip(self.masks) {
            let mut places = [0u32; WORD];
            for (place, &point) in places.iter_mut().zip(points) {
                // SAFETY: a place is at most the number of bricks, which is below 2³¹.
                *place = unsafe { self.bricks.place(point).to_int_unchecked::<i32>() } as u32;
            }
            let mut bits = 0;
            for (at, &place) in places[..points.len()].iter().enumerate() {
                bits |= u64::from(self.wanted[place as usize]) << at;
            }
            *mask = bits;
            count += bits.count_ones() as usize;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Domain, Radius};

    #[test]
    fn points_are_chosen_by_their_bricks_near_and_far() {
        let coordinate = |k: u64| {
            let bits = k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            (bits as f32 / (1 << 24) as f32 - 0.3) * 40.0
        };
        let mut points: Vec<[f32; 3]> = (0..20_000)
            .map(|k| {
                [
                    coordinate(3 * k),
                    coordinate(3 * k + 1),
                    coordinate(3 * k + 2),
                ]
            })
            .collect();
        // On borders of cells.
        points.extend((-20..20).map(|k| [k as f32, 0.5 * k as f32, 0.0]));
        for far in [None, Some([1e30, -1e30, 0.0])] {
            points.extend(far);
            let bounds = Bounds::of((&points).into(), &Domain::OPEN).unwrap();
            let lattice = Lattice::new(Radius::new(0.5).unwrap(), Domain::OPEN, 1, &bounds);
            let lattice = lattice.unwrap();
            for (edge, elsewhere) in [(1, 0), (3, 1), (4, 0), (1 << 29, 1)] {
                let first = [-20 / i64::from(edge), -3, 0];
                let mut bricks = BrickParts::new(edge, first, [9, 7, 5], elsewhere, usize::MAX)
                    .unwrap()
                    .unwrap();
                for x in 0..9 {
                    for y in (x % 2..7).step_by(2) {
                        bricks.set([first[0] + x, first[1] + y, first[2] + x % 5], 1);
                    }
                }
                for part in [0, 1] {
                    let mut kept = Kept::default();
                    let chosen = kept
                        .choose(&points, &bounds, &lattice, &bricks, part)
                        .unwrap();
                    let expected: Vec<u32> = (0..points.len())
                        .filter(|&i| bricks.part(lattice.cell(points[i])) == part)
                        .map(|i| i as u32)
                        .collect();
                    assert_eq!(kept.index(), expected, "bricks of {edge}, part {part}");
                    let copied = expected.iter().map(|&i| points[i as usize]);
                    assert!(copied.eq(kept.positions().iter().copied()));
                    let measured = Bounds::of(kept.positions().into(), &Domain::OPEN).unwrap();
                    assert_eq!(chosen, measured);
                }
            }
        }
    }
}
