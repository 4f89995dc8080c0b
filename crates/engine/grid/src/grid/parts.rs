//! A part number for every block of cells: the map that divides a set between backends.
//!
//! A plan gives bricks to backends, and all backends must agree on every target. They share this
//! map: each looks up the brick of a target's cell, and takes the target if the part is its own.
//!
//! **Invariant:** every cell belongs to exactly one part, also cells outside the box of bricks,
//! where no point was when the map was made. So points may move between plans, and every target is
//! still searched by exactly one backend.
//!
//! # Representation
//!
//! A byte per brick of a box, and one part for everything outside. A map of a million points has
//! some ten thousand bricks, so it stays in the first-level cache while every target is looked up
//! in it, on either backend.

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
    /// Cells of a brick along each axis.
    edge: u32,
    /// First brick of the box along each axis.
    first: [i64; 3],
    /// Bricks of the box along each axis.
    dims: [u32; 3],
    /// Part of every brick of the box, x fastest.
    parts: Vec<u8>,
    /// Part of everything outside the box.
    elsewhere: u8,
}

impl BrickParts {
    /// All cells belong to part `elsewhere`, until bricks of the box of `dims` bricks from brick
    /// `first` on are [given](Self::set) to others. None when the box has more than `most` bricks,
    /// or `edge` is 0.
    ///
    /// # Errors
    /// [`Shortage`].
    ///
    /// A limit on the number of bricks keeps the map small; a set whose bounds are vast is divided
    /// by larger bricks.
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
