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
//! The sort puts positions as they were given in order, and proxies and filter radii are computed
//! from these afterwards, sixteen points at a time ([`Proxies`]). Computing them while the sort
//! moves points one by one took longer than the whole sort.
//!
//! # Padding
//!
//! Vector loops load sixteen points from any slot. Behind the last point coordinates are infinite,
//! so no test passes there, and indices are `u32::MAX`, which no point has.

use crate::{
    Error, PADDING,
    error::reserve,
    grid::wraps::Wraps,
    lattice::Frame,
    memory,
    parallel::PoolLoops,
    sort::{
        Coordinate, Sorted,
        widest::{Loops, widest},
    },
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
/// not hold: what passes is to be decided by [`position`](Self::position), unless the squared
/// distance is at most [`Lattice::inner_r2`](crate::Lattice::inner_r2) of that bound.
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

    /// Makes the arrays `len` points long; room has been reserved. Values that are new are zero
    /// until the sort has filled them.
    fn resize(&mut self, len: usize) {
        for axis in &mut self.axes {
            axis.resize(len, 0.0);
        }
        self.filter_r2.resize(len, 0.0);
    }
}

/// Where a sort leaves positions of type `T` as they were given.
///
/// In single precision that is where searches read them. In double precision it is
/// [`DoublePoints`], and the coordinates that vectors compare are computed from there.
pub(super) trait Slots<T: Coordinate> {
    /// Makes the arrays `len` points long, and returns those that the sort fills.
    fn slots(&mut self, len: usize) -> Sorted<'_, T>;
}

impl Slots<f32> for SortedPoints {
    fn slots(&mut self, len: usize) -> Sorted<'_, f32> {
        self.resize(len);
        Sorted {
            x: &mut self.x[..len],
            y: &mut self.y[..len],
            z: &mut self.z[..len],
            index: &mut self.index[..len],
        }
    }
}

impl Slots<f64> for SortedPoints {
    fn slots(&mut self, len: usize) -> Sorted<'_, f64> {
        self.resize(len);
        let double = self.double.get_or_insert_default();
        double.resize(len);
        let [x, y, z] = &mut double.axes;
        let index = &mut self.index[..len];
        Sorted { x, y, z, index }
    }
}

/// Points whose proxies are computed together.
const CHUNK: usize = 1 << 12;

/// Points of a block, whose loops become vectors.
const BLOCK: usize = 16;

/// Computes proxies and filter radii of consecutive sorted points from their positions.
///
/// All arrays are of one length. Whole blocks go through loops of known length over arrays, which
/// need no check whether arrays overlap; the last points go one by one.
struct Proxies<'a> {
    /// From positions to proxies.
    frame: &'a Frame,
    /// Positions along each axis.
    from: [&'a [f64]; 3],
    /// Proxies along each axis.
    to: [&'a mut [f32]; 3],
    /// Filter radii.
    filter_r2: &'a mut [f32],
}

impl Loops for Proxies<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (frame, [x, y, z]) = (self.frame, self.from);
        let [to_x, to_y, to_z] = self.to;
        let (x, last_x) = x.as_chunks::<BLOCK>();
        let (y, last_y) = y.as_chunks::<BLOCK>();
        let (z, last_z) = z.as_chunks::<BLOCK>();
        let (to_x, last_to_x) = to_x.as_chunks_mut::<BLOCK>();
        let (to_y, last_to_y) = to_y.as_chunks_mut::<BLOCK>();
        let (to_z, last_to_z) = to_z.as_chunks_mut::<BLOCK>();
        let (r2, last_r2) = self.filter_r2.as_chunks_mut::<BLOCK>();
        let from = x.iter().zip(y).zip(z);
        let to = to_x.iter_mut().zip(to_y).zip(to_z).zip(r2);
        for (((x, y), z), (((to_x, to_y), to_z), r2)) in from.zip(to) {
            frame.proxies([x, y, z], [to_x, to_y, to_z], r2);
        }
        let from = last_x.as_chunks::<1>().0.iter();
        let from = from
            .zip(last_y.as_chunks::<1>().0)
            .zip(last_z.as_chunks::<1>().0);
        let to = last_to_x.as_chunks_mut::<1>().0.iter_mut();
        let to = to.zip(last_to_y.as_chunks_mut::<1>().0);
        let to = to.zip(last_to_z.as_chunks_mut::<1>().0);
        let to = to.zip(last_r2.as_chunks_mut::<1>().0);
        for (((x, y), z), (((to_x, to_y), to_z), r2)) in from.zip(to) {
            frame.proxies([x, y, z], [to_x, to_y, to_z], r2);
        }
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

    /// Positions in the caller's order as they were given, those of `f32` converted.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn in_callers_order_f64(&self) -> Result<Vec<[f64; 3]>, Error> {
        self.scatter(|slot| self.position_f64(slot))
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

    /// Makes the arrays as long as those of `like`, and as many.
    pub(super) fn resize_like(&mut self, like: &Self) -> Result<(), Error> {
        self.reserve(like.len)?;
        self.resize(like.len);
        self.double = match (like.double.is_some(), self.double.take()) {
            (false, _) => None,
            (true, double) => {
                let mut double = double.unwrap_or_default();
                double.reserve(like.len)?;
                double.resize(like.len);
                Some(double)
            }
        };
        Ok(())
    }

    /// Takes over coordinates, which are all of those of `from`, at the slots from `start` on.
    pub(super) fn take_coordinates(&mut self, from: &Self, start: usize) {
        let own = start..start + from.len;
        for (to, from) in [
            (&mut self.x, &from.x),
            (&mut self.y, &from.y),
            (&mut self.z, &from.z),
        ] {
            to[own.clone()].copy_from_slice(&from[..own.len()]);
        }
        if let (Some(to), Some(from)) = (&mut self.double, &from.double) {
            for (to, from) in to.axes.iter_mut().zip(&from.axes) {
                to[own.clone()].copy_from_slice(&from[..own.len()]);
            }
            to.filter_r2[own.clone()].copy_from_slice(&from.filter_r2[..own.len()]);
        }
    }

    /// Computes proxies and filter radii from the positions in double precision, once these are
    /// sorted. By vectors, which is why positions are sorted first, and proxies are not sorted with
    /// them. Nothing is done in single precision.
    ///
    /// Points do not depend on each other, so chunks of them go to all workers.
    pub(super) fn compute_proxies(&mut self, frame: &Frame) {
        let len = self.len;
        let Some(double) = &mut self.double else {
            return;
        };
        let [x, y, z] = &double.axes;
        let from = (
            x.par_chunks(CHUNK),
            y.par_chunks(CHUNK),
            z.par_chunks(CHUNK),
        );
        let to = (
            self.x[..len].par_chunks_mut(CHUNK),
            self.y[..len].par_chunks_mut(CHUNK),
            self.z[..len].par_chunks_mut(CHUNK),
        );
        let filter_r2 = double.filter_r2.par_chunks_mut(CHUNK);
        let chunks = (from.into_par_iter(), to.into_par_iter(), filter_r2).into_par_iter();
        chunks.run(|((x, y, z), (to_x, to_y, to_z), filter_r2)| {
            widest(Proxies {
                frame,
                from: [x, y, z],
                to: [to_x, to_y, to_z],
                filter_r2,
            });
        });
    }
}
