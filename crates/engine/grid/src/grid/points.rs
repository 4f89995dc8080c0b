//! The points of a set in the order of their cells.
//!
//! Coordinates are a structure of arrays, each padded by [`PADDING`] elements, so a vector can be
//! loaded from any point. The caller's index of every point is kept beside them.
//!
//! # Double precision
//!
//! A search in double precision keeps two sets of coordinates: proxies in `f32`, which vectors
//! compare, and the positions as given in `f64`, which decide. [`DoublePoints`] holds the latter,
//! 28 bytes per point with the filter radius.
//!
//! # Padding
//!
//! Vector loops load sixteen points from any slot. Behind the last point coordinates are infinite,
//! so no test passes there, and indices are `u32::MAX`, which no point has.

use crate::{
    Error, PADDING,
    error::reserve,
    grid::wraps::Wraps,
    input::positions::Source,
    memory,
    parallel::PoolLoops,
    sort::{Sorted, keys::Double},
};
use rayon::prelude::*;

/// Points in the order of their cells, as structure of arrays.
///
/// The coordinate arrays are [`PADDING`] longer than [`len`](Self::len), filled with infinity. In
/// double precision they hold *proxies*, see [`DoublePoints`].
#[derive(Debug, Clone, Default)]
pub struct SortedPoints {
    /// Number of points, without the padding.
    pub(super) len: usize,
    /// x of every point, padded.
    pub(super) x: Vec<f32>,
    /// y of every point, padded.
    pub(super) y: Vec<f32>,
    /// z of every point, padded.
    pub(super) z: Vec<f32>,
    /// The caller's index of every point, padded.
    pub(super) index: Vec<u32>,
    /// Boxes that points lie outside of the periodic box; empty when all points are inside.
    pub(super) wraps: Wraps,
    /// Present after a build in double precision.
    pub(super) double: Option<DoublePoints>,
}

/// The positions in double precision of sorted points that were given for a search in
/// double precision.
///
/// The coordinates in `f32` are proxies then: positions relative to a centre that all sets on a
/// lattice share. Whenever the contract finds a pair within the radius through some image, the
/// squared distance of the proxies (moved by [`Lattice::image_shift`](crate::Lattice::image_shift))
/// as computed in `f32` is at most the target's [`filter_r2`](Self::filter_r2). The converse does
/// not hold: what passes is to be decided by [`position`](Self::position).
#[derive(Debug, Clone, Default)]
pub struct DoublePoints {
    /// Coordinates along each axis as they were given.
    pub(super) axes: [Vec<f64>; 3],
    /// The filter's bound for every point.
    pub(super) filter_r2: Vec<f32>,
}

impl DoublePoints {
    /// Coordinates along each axis as they were given, one value per sorted point.
    pub fn axes(&self) -> [&[f64]; 3] {
        [&self.axes[0], &self.axes[1], &self.axes[2]]
    }

    /// Position of a sorted point as it was given.
    #[inline(always)]
    pub fn position(&self, slot: usize) -> [f64; 3] {
        [self.axes[0][slot], self.axes[1][slot], self.axes[2][slot]]
    }

    /// The filter's bound on squared distances of proxies when a sorted point searches, one value
    /// per point.
    pub fn filter_r2(&self) -> &[f32] {
        &self.filter_r2
    }

    pub(super) fn bytes(&self) -> usize {
        let axes: usize = self.axes.iter().map(Vec::capacity).sum();
        size_of::<f64>() * axes + size_of::<f32>() * self.filter_r2.capacity()
    }

    pub(super) fn reserve(&mut self, len: usize) -> Result<(), Error> {
        for axis in &mut self.axes {
            reserve(axis, len, "sorted coordinates")?;
        }
        reserve(&mut self.filter_r2, len, "filter radii")
    }

    /// Takes the positions of the points whose indices are given in sorted order; room has been
    /// reserved. In one pass: points in random order are far apart in memory.
    pub(super) fn fill<S: Source<f64>>(&mut self, points: Double<'_, S>, index: &[u32]) {
        let [x, y, z] = &mut self.axes;
        for axis in [&mut *x, &mut *y, &mut *z] {
            axis.resize(index.len(), 0.0);
        }
        self.filter_r2.resize(index.len(), 0.0);
        (index, x, y, z, &mut self.filter_r2)
            .into_par_iter()
            .with_min_len(1 << 12)
            .run(|(&index, x, y, z, r2)| {
                let position = points.source.position(index as usize);
                [*x, *y, *z] = position;
                *r2 = points.frame.filter_r2(position);
            });
    }
}

impl SortedPoints {
    /// Number of points.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no points.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Coordinates along each axis, `len() + PADDING` values each.
    pub fn axes(&self) -> [&[f32]; 3] {
        [&self.x, &self.y, &self.z]
    }

    /// The caller's index of each sorted point, `len() + PADDING` values.
    pub fn index(&self) -> &[u32] {
        &self.index
    }

    /// The positions in double precision, where the search is in double precision.
    #[inline(always)]
    pub fn double(&self) -> Option<&DoublePoints> {
        self.double.as_ref()
    }

    /// Position of a sorted point.
    #[inline(always)]
    pub fn position(&self, slot: usize) -> [f32; 3] {
        [self.x[slot], self.y[slot], self.z[slot]]
    }

    /// Whole boxes between a sorted point and its image inside the box.
    ///
    /// Counted along each axis of the box, or along its vectors where it is tilted.
    #[inline(always)]
    pub fn wraps(&self, slot: usize) -> [i32; 3] {
        self.wraps.of(slot)
    }

    /// The same of all points, with what searches ask about them.
    #[inline(always)]
    pub fn all_wraps(&self) -> &Wraps {
        &self.wraps
    }

    /// Returns true if any point lies outside the periodic box.
    pub fn any_wrapped(&self) -> bool {
        !self.wraps.is_empty()
    }

    /// Position of a sorted point as it was given, converted where it was given in `f32`.
    #[inline(always)]
    pub fn position_f64(&self, slot: usize) -> [f64; 3] {
        match &self.double {
            None => self.position(slot).map(f64::from),
            Some(double) => double.position(slot),
        }
    }

    /// Positions in the caller's order; in double precision those of the proxies.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    ///
    /// One pass that writes each position to its caller's index.
    pub fn in_callers_order(&self) -> Result<Vec<[f32; 3]>, Error> {
        self.scatter(|slot| self.position(slot))
    }

    /// `value` of every sorted point, in the caller's order.
    pub(super) fn scatter<T: Copy + Default>(
        &self,
        value: impl Fn(usize) -> [T; 3],
    ) -> Result<Vec<[T; 3]>, Error> {
        const WHAT: &str = "positions in the caller's order";
        let mut values = memory::filled(self.len, [T::default(); 3], WHAT)?;
        for slot in 0..self.len {
            values[self.index[slot] as usize] = value(slot);
        }
        Ok(values)
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        4 * (self.x.capacity() + self.y.capacity() + self.z.capacity() + self.index.capacity())
            + self.wraps.bytes()
            + self.double.as_ref().map_or(0, DoublePoints::bytes)
    }

    pub(super) fn reserve(&mut self, len: usize) -> Result<(), Error> {
        for axis in [&mut self.x, &mut self.y, &mut self.z] {
            reserve(axis, len + PADDING, "sorted coordinates")?;
        }
        reserve(&mut self.index, len + PADDING, "sorted indices")
    }

    /// Makes the arrays `len` points long and fills the padding with points infinitely far away.
    pub(super) fn resize(&mut self, len: usize) {
        self.len = len;
        for axis in [&mut self.x, &mut self.y, &mut self.z] {
            axis.resize(len + PADDING, f32::INFINITY);
            axis[len..].fill(f32::INFINITY);
        }
        self.index.resize(len + PADDING, u32::MAX);
        self.index[len..].fill(u32::MAX);
    }

    /// The arrays without their padding, for a sort to fill.
    pub(super) fn slots(&mut self) -> Sorted<'_> {
        Sorted {
            x: &mut self.x[..self.len],
            y: &mut self.y[..self.len],
            z: &mut self.z[..self.len],
            index: &mut self.index[..self.len],
        }
    }
}
