//! A part number for every block of cells: the map that divides a set between backends.
//!
//! A plan gives bricks to backends, and all backends must agree on every target. They share this
//! map: each looks up the brick of a target's cell, and takes the target if the part is its own.
//!
//! **Invariant:** every cell belongs to exactly one part, also cells outside the box of bricks,
//! where no point was when the map was made. So points may move between plans, and every target is
//! still searched by exactly one backend.

use crate::{
    Cell,
    memory::{Shortage, collected, filled},
};

/// The name of the memory in messages.
const PARTS: &str = "parts of bricks";

/// The part of the work that every brick belongs to.
///
/// A brick is a block of `edge`³ cells; bricks are numbered from cell 0 on, so brick b holds the
/// cells b·edge to b·edge + edge − 1 along each axis. Every cell belongs to some part, also where
/// no point was when the parts were made: every target is assigned to exactly one part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrickParts {
    edge: u32,
    first: [i64; 3],
    dims: [u32; 3],
    parts: Vec<u8>,
    elsewhere: u8,
}

impl BrickParts {
    /// All cells belong to part `elsewhere`, until bricks of the box of `dims` bricks from brick
    /// `first` on are [given](Self::set) to others. None when the box has more than `most` bricks,
    /// or `edge` is 0.
    ///
    /// # Errors
    /// [`Shortage`].
    pub fn new(
        edge: u32,
        first: [i64; 3],
        dims: [u32; 3],
        elsewhere: u8,
        most: usize,
    ) -> Result<Option<Self>, Shortage> {
        let bricks = dims
            .iter()
            .try_fold(1usize, |bricks, &dim| bricks.checked_mul(dim as usize));
        let Some(bricks) = bricks.filter(|&bricks| edge > 0 && bricks <= most) else {
            return Ok(None);
        };
        Ok(Some(Self {
            edge,
            first,
            dims,
            parts: filled(bricks, elsewhere, PARTS)?,
            elsewhere,
        }))
    }

    /// All cells belong to one part.
    pub fn everywhere(part: u8) -> Self {
        Self {
            edge: 1,
            first: [0; 3],
            dims: [0; 3],
            parts: Vec::new(),
            elsewhere: part,
        }
    }

    /// Cells of a brick along each axis.
    pub fn edge(&self) -> u32 {
        self.edge
    }

    /// The first brick of the box along each axis.
    pub fn first(&self) -> [i64; 3] {
        self.first
    }

    /// Bricks of the box along each axis.
    pub fn dims(&self) -> [u32; 3] {
        self.dims
    }

    /// Parts of the bricks of the box, x fastest.
    pub fn parts(&self) -> &[u8] {
        &self.parts
    }

    /// The part of everything outside the box.
    pub fn elsewhere(&self) -> u8 {
        self.elsewhere
    }

    /// Gives a brick to a part; bricks outside the box stay where they are.
    pub fn set(&mut self, brick: [i64; 3], part: u8) {
        if let Some(place) = self.place(brick) {
            self.parts[place] = part;
        }
    }

    /// The part of a cell.
    #[inline]
    pub fn part(&self, cell: Cell) -> u8 {
        let edge = i64::from(self.edge);
        let brick = match self.edge.is_power_of_two() {
            // Division is the slowest thing here.
            true => cell.map(|cell| cell >> self.edge.trailing_zeros()),
            false => cell.map(|cell| cell.div_euclid(edge)),
        };
        self.place(brick)
            .map_or(self.elsewhere, |place| self.parts[place])
    }

    /// The bricks of some parts and all within `reach` bricks of them along every axis are part 1
    /// of the result, all others part 0.
    ///
    /// # Errors
    /// [`Shortage`].
    pub fn around(&self, of: impl Fn(u8) -> bool, reach: u32) -> Result<Self, Shortage> {
        let dims = self.dims.map(|dim| dim as usize + 2 * reach as usize);
        let first = self.first.map(|first| first - i64::from(reach));
        let mut parts = filled(dims.iter().product(), 0u8, PARTS)?;
        let reach = reach as usize;
        let own = self.dims.map(|dim| dim as usize);
        for (row, bricks) in self.parts.chunks(own[0].max(1)).enumerate() {
            let (y, z) = (row % own[1] + reach, row / own[1] + reach);
            let begin = (z * dims[1] + y) * dims[0] + reach;
            for (near, &part) in parts[begin..].iter_mut().zip(bricks) {
                *near = u8::from(of(part));
            }
        }
        // One axis after the other: what is near along x, near that along y, near that along z.
        let strides = [1, dims[0], dims[0] * dims[1]];
        for (axis, stride) in strides.into_iter().enumerate() {
            spread(&mut parts, stride, dims[axis], reach)?;
        }
        Ok(Self {
            edge: self.edge,
            first,
            dims: dims.map(|dim| dim as u32),
            parts,
            elsewhere: 0,
        })
    }

    /// The bricks of some parts are part 0 of the result, all others, and everything outside the
    /// box, part 1.
    ///
    /// # Errors
    /// [`Shortage`].
    pub fn only(&self, of: impl Fn(u8) -> bool) -> Result<Self, Shortage> {
        let parts = self.parts.iter().map(|&part| u8::from(!of(part)));
        Ok(Self {
            parts: collected(parts, PARTS)?,
            elsewhere: 1,
            ..*self
        })
    }

    /// The element of a brick of the box.
    #[inline]
    fn place(&self, brick: [i64; 3]) -> Option<usize> {
        let mut place = 0;
        for axis in [2, 1, 0] {
            // Wraps to something large where the brick lies before the first.
            let at = brick[axis].wrapping_sub(self.first[axis]) as u64;
            if at >= u64::from(self.dims[axis]) {
                return None;
            }
            place = place * self.dims[axis] as usize + at as usize;
        }
        Some(place)
    }
}

/// Marks everything within `reach` of a mark along lines of `len` elements, `stride` apart.
fn spread(marks: &mut [u8], stride: usize, len: usize, reach: usize) -> Result<(), Shortage> {
    let block = stride * len;
    let mut line = filled(len, 0, PARTS)?;
    for begin in (0..marks.len()).step_by(block.max(1)) {
        for offset in begin..begin + stride {
            line.clear();
            line.extend((0..len).map(|at| marks[offset + at * stride]));
            // Marks within reach of the present place.
            let mut near: usize = line.iter().take(reach).map(|&mark| usize::from(mark)).sum();
            for at in 0..len {
                near += line.get(at + reach).map_or(0, |&mark| usize::from(mark));
                marks[offset + at * stride] = u8::from(near > 0);
                if at >= reach {
                    near -= usize::from(line[at - reach]);
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_a_part() {
        let mut parts = BrickParts::new(2, [-1, 0, 5], [3, 2, 1], 7, 6)
            .unwrap()
            .unwrap();
        parts.set([-1, 1, 5], 1);
        parts.set([1, 0, 5], 2);
        parts.set([2, 0, 5], 3);
        assert_eq!(parts.part([-2, 2, 10]), 1);
        assert_eq!(parts.part([-1, 3, 11]), 1);
        assert_eq!(parts.part([0, 3, 11]), 7);
        assert_eq!(parts.part([3, 1, 10]), 2);
        for outside in [
            [4, 0, 10],
            [-3, 2, 10],
            [3, 1, 12],
            [3, 1, 9],
            [i64::MIN; 3],
        ] {
            assert_eq!(parts.part(outside), 7, "{outside:?}");
        }
        assert_eq!(parts.parts(), [7, 7, 2, 1, 7, 7]);
    }

    #[test]
    fn some_parts_are_told_from_all_others() {
        let mut parts = BrickParts::new(1, [0; 3], [3, 1, 1], 5, 3)
            .unwrap()
            .unwrap();
        parts.set([1, 0, 0], 2);
        let only = parts.only(|part| part == 2).unwrap();
        assert_eq!((only.parts(), only.elsewhere()), (&[1, 0, 1][..], 1));
        // Bricks are where they were, and cells outside belong to the default part.
        assert_eq!((only.part([1, 0, 0]), only.part([9, 0, 0])), (0, 1));
        assert_eq!(parts.only(|_| true).unwrap().part([9, 0, 0]), 1);
    }

    #[test]
    fn boxes_that_are_too_large_are_refused() {
        assert!(
            BrickParts::new(1, [0; 3], [2, 2, 2], 0, 7)
                .unwrap()
                .is_none()
        );
        assert!(
            BrickParts::new(1, [0; 3], [u32::MAX; 3], 0, usize::MAX)
                .unwrap()
                .is_none()
        );
        assert!(BrickParts::new(0, [0; 3], [1; 3], 0, 8).unwrap().is_none());
        for empty in [
            BrickParts::new(1, [0; 3], [0; 3], 4, 0).unwrap().unwrap(),
            BrickParts::everywhere(4),
        ] {
            assert_eq!(empty.part([0; 3]), 4);
        }
    }

    #[test]
    fn what_lies_around_bricks_is_found_beyond_the_box_too() {
        let mut parts = BrickParts::new(2, [0; 3], [4, 3, 2], 0, 24)
            .unwrap()
            .unwrap();
        parts.set([3, 0, 1], 9);
        parts.set([0, 2, 0], 8);
        for reach in [0, 1, 2] {
            let near = parts.around(|part| part == 9, reach).unwrap();
            for x in -4..8i64 {
                for y in -4..7i64 {
                    for z in -4..6i64 {
                        let apart = [x - 3, y, z - 1].map(i64::abs);
                        let expected = apart.iter().all(|&apart| apart <= i64::from(reach));
                        let found = near.part([2 * x, 2 * y + 1, 2 * z]);
                        assert_eq!(found, u8::from(expected), "{reach}: {x} {y} {z}");
                    }
                }
            }
        }
    }
}
