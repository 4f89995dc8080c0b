//! Where the pairs of a point are written, and the arithmetic of their geometry.
//!
//! Sources are written by a loop of their own. Images, displacements and distances are written by
//! one loop over what was found of a point, which computes each displacement once.
//!
//! **Invariant:** displacements are computed by the operations that decided the pair.

use super::{
    input::SystemReal,
    quantities::{PairIndex, Quantities},
};
use std::ops::Range;

/// Where a part writes: the arrays from its first pair to its last, or empty ones.
pub(super) struct Place<'a, T, I> {
    /// Offsets of the points of the part.
    pub(super) offsets: &'a mut [u64],
    /// The point of every pair.
    pub(super) targets: &'a mut [I],
    /// Its neighbour.
    pub(super) sources: &'a mut [I],
    /// By how many vectors of the cell that is moved.
    pub(super) images: &'a mut [[i32; 3]],
    /// From the point to the neighbour that was moved.
    pub(super) displacements: &'a mut [[T; 3]],
    /// The length of that.
    pub(super) distances: &'a mut [T],
}

impl<T: SystemReal, I: PairIndex> Place<'_, T, I> {
    /// Writes the pairs that were `found` of a point to `entries`, as many as there are; three
    /// functions return the source of a pair, its image and its displacement.
    #[inline(always)]
    pub(super) fn write_found(
        &mut self,
        wanted: Quantities,
        entries: Range<usize>,
        found: &[u32],
        source: impl Fn(u32) -> usize,
        image: impl Fn(u32) -> [i32; 3],
        displacement: impl Fn(u32) -> [T; 3],
    ) {
        if wanted.sources {
            let to = &mut self.sources[entries.clone()];
            for (to, &pair) in to.iter_mut().zip(found) {
                *to = I::of(source(pair));
            }
        }
        let mut to = self.geometry(wanted, entries);
        to.write(found, |pair| (image(pair), displacement(pair)));
    }

    /// The arrays for the geometry of the pairs of a point.
    #[inline(always)]
    pub(super) fn geometry(
        &mut self,
        wanted: Quantities,
        entries: Range<usize>,
    ) -> Geometry<'_, T> {
        let of = |wanted| if wanted { entries.clone() } else { 0..0 };
        Geometry {
            images: &mut self.images[of(wanted.images)],
            displacements: &mut self.displacements[of(wanted.displacements)],
            distances: &mut self.distances[of(wanted.distances)],
        }
    }
}

/// Arrays for the geometry of the pairs of a point; empty ones are not wanted.
pub(super) struct Geometry<'a, T> {
    images: &'a mut [[i32; 3]],
    displacements: &'a mut [[T; 3]],
    distances: &'a mut [T],
}

impl<T: SystemReal> Geometry<'_, T> {
    /// Writes what `of` returns for every pair: its image and its displacement.
    ///
    /// `of` is called in one place, so that it becomes a part of this loop, which is compiled for a
    /// level. The branches on the arrays that are wanted go the same way for every pair, so the
    /// processor predicts them.
    #[inline(always)]
    pub(super) fn write(&mut self, list: &[u32], of: impl Fn(u32) -> ([i32; 3], [T; 3])) {
        if self.images.is_empty() && self.displacements.is_empty() && self.distances.is_empty() {
            return;
        }
        for (k, &pair) in list.iter().enumerate() {
            let (image, d) = of(pair);
            if let Some(to) = self.images.get_mut(k) {
                *to = image;
            }
            if let Some(to) = self.displacements.get_mut(k) {
                *to = d;
            }
            if let Some(to) = self.distances.get_mut(k) {
                *to = square(d).root();
            }
        }
    }
}

/// fl(fl(x_j − x_i) + S) per axis.
#[inline(always)]
pub(super) fn displacement<T: SystemReal>(from: [T; 3], to: [T; 3], shift: [T; 3]) -> [T; 3] {
    [
        (to[0] - from[0]) + shift[0],
        (to[1] - from[1]) + shift[1],
        (to[2] - from[2]) + shift[2],
    ]
}

/// The squared distance of the contract.
#[inline(always)]
pub(super) fn square<T: SystemReal>([x, y, z]: [T; 3]) -> T {
    z.fused(z, y.fused(y, x * x))
}
