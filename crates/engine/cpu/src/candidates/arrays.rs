//! The arrays that candidates are gathered into: small, contiguous, reused for every group.
//!
//! **Invariant:** every array is at least [`LANES`] longer than there are candidates, and
//! [`Candidates::seal`] fills that tail with positions that are not neighbours. So vector loops
//! need no remainder, and a lane behind the last candidate never passes a test.
//!
//! # Skew
//!
//! Fourteen arrays whose beginnings are a power of two apart would map to the same sets of an 8-way
//! first-level cache. Adding five cache lines to the stride spreads them. Growing throws the old
//! contents away: a group is gathered from scratch.
//!
//! # Chunks
//!
//! Gathering takes a vector of consecutive sorted points at a time and keeps some of them. If
//! candidates are addressed by slot, it records the first slot and the kept lanes as a *chunk*.
//! Other arrays in the order of the sorted points are gathered by the same lanes, and sums of
//! candidates are scattered to their points by them. This takes an instruction or two per vector
//! and array, instead of an address per candidate.

use super::{
    aligned::Aligned,
    mode::{Mode, RADII, has},
};
use crate::simd::LANES;
use nearfield_grid::{DoublePoints, Lattice, memory::Shortage};
use std::ops::Range;

/// Candidates of one group of targets, as structure of arrays.
///
/// The arrays lie one behind the other in one allocation, [`SKEW`] apart from a power of two. If
/// their beginnings were a multiple of the page size apart, elements of the same candidate would
/// compete for the same few lines of the first-level cache.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    /// Number of candidates.
    len: usize,
    /// Number of chunks.
    chunks: usize,
    /// They carry image vectors.
    shifted: bool,
    /// Values per array.
    stride: usize,
    /// All arrays.
    data: Aligned<u32>,
    /// In double precision: coordinates and image vectors along each axis, and squared radii of
    /// candidates that have their own.
    exact: Aligned<f64>,
}

/// The arrays to fill when candidates are seen through other images.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImageArrays {
    /// Image vectors in double precision instead of those in single precision.
    pub(crate) exact: bool,
    /// Lengths of the box, if image vectors in single precision are whole multiples of them.
    pub(crate) lengths: Option<[f32; 3]>,
    /// Ranks of half lists.
    pub(crate) ranked: bool,
}

/// Numbers of the arrays.
const POSITION: usize = 0;
/// The tag: the caller's index or the slot.
const TAG: usize = 3;
/// Image vector per candidate; meaningful when shifted.
const SHIFT: usize = 4;
/// Tag plus one where the image is lexicographically positive; meaningful when shifted.
const RANK: usize = 7;
/// Squared radius of the candidate's own; meaningful when sources have radii.
const R2: usize = 8;
/// Slot of the candidate; meaningful when proxies decide, which they do for one radius only.
const SLOT: usize = R2;
/// Boxes to be added to the target's own for the image; meaningful when [mixed](super::mixed).
const BOXES: usize = 9;
/// First slot of every chunk; meaningful where candidates are called by slot.
const CHUNK_SLOT: usize = 12;
/// Lanes of every chunk that are candidates.
const CHUNK_LANES: usize = 13;
/// Number of arrays.
const ARRAYS: usize = 14;
/// Squared radius of the candidate's own in double precision, behind positions and image vectors.
const EXACT_R2: usize = 6;
/// Number of arrays in double precision.
const EXACT_ARRAYS: usize = 7;

/// Values added to a power of two to make the stride: five cache lines.
const SKEW: usize = 5 * LANES;

/// Raw view of all arrays for vector code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrays {
    /// Coordinates along each axis.
    pub(crate) position: [*mut f32; 3],
    /// Image vectors along each axis.
    pub(crate) shift: [*mut f32; 3],
    /// Tags.
    pub(crate) tag: *mut u32,
    /// Squared radii.
    pub(crate) r2: *mut f32,
    /// Slots, in the place of radii.
    pub(crate) slot: *mut u32,
    /// Boxes along each axis.
    pub(crate) boxes: [*mut f32; 3],
    /// First slot of every chunk.
    pub(crate) chunk_slot: *mut u32,
    /// Its lanes that are candidates, a bit per lane.
    pub(crate) chunk_lanes: *mut u32,
}

/// The arrays that the geometry of a pair is computed from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PairArrays {
    /// Coordinates along each axis.
    pub(crate) position: [*const f32; 3],
    /// Image vectors along each axis; meaningful when shifted.
    pub(crate) shift: [*const f32; 3],
    /// Squared radii; meaningful when sources have radii.
    pub(crate) r2: *const f32,
}

/// Lengths of the filled parts of the arrays.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ArrayLengths {
    /// Number of candidates.
    pub(crate) candidates: usize,
    /// Number of chunks; 0 if candidates are not addressed by slot.
    pub(crate) chunks: usize,
}

/// Consecutive sorted points, of the width of a vector. Some are candidates, which lie next to each
/// other in the arrays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chunk {
    /// The sorted point of the first lane.
    pub(crate) slot: usize,
    /// The lanes that are candidates, a bit per lane; at least one.
    pub(crate) lanes: u32,
}

impl Candidates {
    /// Forgets all candidates and makes room for `max` new ones and a vector behind them;
    /// `shifted` says whether they carry image vectors.
    ///
    /// # Errors
    /// [`Shortage`] if memory for them is refused.
    #[inline(always)]
    pub(crate) fn clear(&mut self, shifted: bool, max: usize) -> Result<(), Shortage> {
        (self.len, self.chunks) = (0, 0);
        self.shifted = shifted;
        if max + 2 * LANES > self.stride {
            self.grow(max + 2 * LANES)?;
        }
        Ok(())
    }

    /// Allocates again, out of line.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, needed: usize) -> Result<(), Shortage> {
        let stride = needed.next_power_of_two().max(1 << 10) + SKEW;
        // Nothing is kept, so old and new need not be held at once.
        (self.stride, self.data) = (0, Aligned::default());
        self.data.grow(ARRAYS * stride)?;
        self.stride = stride;
        Ok(())
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.data.bytes() + self.exact.bytes()
    }

    /// Looks up the positions of candidates that are tagged by slot, in double precision, and their
    /// squared radii if sources have some; behind the last one lies none that is a neighbour.
    ///
    /// Once per group and not per target. Candidates of a run are next to each other in memory but
    /// for those that were dropped.
    ///
    /// # Errors
    /// [`Shortage`] if memory for them is refused.
    #[inline(always)]
    pub(crate) fn look_up(
        &mut self,
        points: &DoublePoints,
        squared_radii: Option<&[f64]>,
    ) -> Result<(), Shortage> {
        self.make_exact_room()?;
        let (len, stride) = (self.len, self.stride);
        let slots = &self.data[TAG * stride..][..len];
        for (axis, from) in points.axes().into_iter().enumerate() {
            let to = &mut self.exact[axis * stride..][..len + LANES];
            for (to, &slot) in to.iter_mut().zip(slots) {
                *to = from[slot as usize];
            }
            to[len..].fill(f64::INFINITY);
            self.exact[(3 + axis) * stride + len..][..LANES].fill(0.0);
        }
        if let Some(squared_radii) = squared_radii {
            let to = &mut self.exact[EXACT_R2 * stride..][..len + LANES];
            for (to, &slot) in to.iter_mut().zip(slots) {
                *to = squared_radii[slot as usize];
            }
            to[len..].fill(0.0);
        }
        Ok(())
    }

    /// Makes room for positions and image vectors in double precision.
    ///
    /// # Errors
    /// [`Shortage`] if memory for them is refused.
    #[inline(always)]
    pub(crate) fn make_exact_room(&mut self) -> Result<(), Shortage> {
        self.exact.grow(EXACT_ARRAYS * self.stride)
    }

    /// Names candidates that are tagged by slot: the tag becomes the caller's index.
    ///
    /// After [`look_up`](Self::look_up), which needs the slots.
    #[inline(always)]
    pub(crate) fn name(&mut self, index: &[u32]) {
        let (len, stride) = (self.len, self.stride);
        for tag in &mut self.data[TAG * stride..][..len] {
            *tag = index[*tag as usize];
        }
    }

    /// The image vector of consecutive candidates, in double precision; there is
    /// [room](Self::make_exact_room) for it.
    #[inline(always)]
    pub(crate) fn set_exact_shift(&mut self, candidates: Range<usize>, vector: [f64; 3]) {
        for axis in 0..3 {
            let begin = (3 + axis) * self.stride;
            self.exact[begin + candidates.start..begin + candidates.end].fill(vector[axis]);
        }
    }

    /// Coordinates along each axis in double precision, after [`look_up`](Self::look_up).
    #[inline(always)]
    pub(crate) fn exact_axes(&self) -> [&[f64]; 3] {
        self.exact_arrays(0)
    }

    /// Image vectors along each axis in double precision; meaningful when shifted.
    #[inline(always)]
    pub(crate) fn exact_shifts(&self) -> [&[f64]; 3] {
        self.exact_arrays(3)
    }

    /// Squared radii of the candidates' own in double precision, after [`look_up`](Self::look_up);
    /// meaningful when sources have radii.
    #[inline(always)]
    pub(crate) fn exact_r2s(&self) -> &[f64] {
        self.exact_array(EXACT_R2)
    }

    /// Three arrays of double precision.
    #[inline(always)]
    fn exact_arrays(&self, first: usize) -> [&[f64]; 3] {
        [
            self.exact_array(first),
            self.exact_array(first + 1),
            self.exact_array(first + 2),
        ]
    }

    /// One array of double precision.
    #[inline(always)]
    fn exact_array(&self, array: usize) -> &[f64] {
        let range = array * self.stride..(array + 1) * self.stride;
        self.exact.get(range).unwrap_or_default()
    }

    /// Number of candidates.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Sets the number of candidates after vector code has written them.
    ///
    /// # Safety
    /// All candidates below `len` have been written and `len + LANES` elements are there.
    #[inline(always)]
    pub(crate) unsafe fn set_len(&mut self, len: usize) {
        debug_assert!(len + LANES <= self.stride);
        self.len = len;
    }

    /// Sets the numbers of candidates and chunks after vector code has written them.
    ///
    /// # Safety
    /// As for [`set_len`](Self::set_len). The chunks have been written, and where there are any,
    /// their lanes are as many as candidates.
    #[inline(always)]
    pub(crate) unsafe fn set_filled(&mut self, filled: ArrayLengths) {
        debug_assert!(filled.chunks <= self.stride);
        self.chunks = filled.chunks;
        // SAFETY: guaranteed by the caller.
        unsafe { self.set_len(filled.candidates) };
    }

    /// The chunks that the candidates come from, in their order; none where candidates are not
    /// called by slot.
    #[inline(always)]
    pub(crate) fn chunks(&self) -> impl Iterator<Item = Chunk> {
        let slots = &self.array(CHUNK_SLOT)[..self.chunks];
        let lanes = &self.array(CHUNK_LANES)[..self.chunks];
        slots.iter().zip(lanes).map(|(&slot, &lanes)| Chunk {
            slot: slot as usize,
            lanes,
        })
    }

    /// The arrays, for writing behind the candidates.
    #[inline(always)]
    pub(crate) fn arrays_mut(&mut self) -> Arrays {
        let data = self.data.as_mut_ptr();
        let at = |array: usize| data.wrapping_add(array * self.stride);
        let axes = |first: usize| [at(first).cast(), at(first + 1).cast(), at(first + 2).cast()];
        Arrays {
            position: axes(POSITION),
            shift: axes(SHIFT),
            boxes: axes(BOXES),
            tag: at(TAG),
            r2: at(R2).cast(),
            slot: at(SLOT),
            chunk_slot: at(CHUNK_SLOT),
            chunk_lanes: at(CHUNK_LANES),
        }
    }

    /// Fills the vector behind the last candidate with points infinitely far away, for the modes
    /// of `mode`.
    #[inline(always)]
    pub(crate) fn seal(&mut self, mode: Mode) {
        let tail = self.len..self.len + LANES;
        for axis in 0..3 {
            self.floats_mut(POSITION + axis)[tail.clone()].fill(f32::INFINITY);
        }
        if self.shifted {
            for axis in 0..3 {
                self.floats_mut(SHIFT + axis)[tail.clone()].fill(0.0);
            }
        }
        if has(mode, RADII) {
            // A radius left there by an earlier group may be infinite, and reach infinitely far.
            self.floats_mut(R2)[tail].fill(0.0);
        }
    }

    /// Moves a candidate infinitely far away, so that no target in single precision finds it.
    #[inline(always)]
    pub(crate) fn put_away(&mut self, candidate: usize) {
        debug_assert!(candidate < self.len);
        self.data[POSITION * self.stride + candidate] = f32::INFINITY.to_bits();
    }

    /// The arrays that a pair is computed from, without their lengths: all are a vector longer than
    /// there are candidates.
    #[inline(always)]
    pub(crate) fn of_pairs(&self) -> PairArrays {
        let data: *const f32 = self.data.as_ptr().cast();
        let at = |array: usize| data.wrapping_add(array * self.stride);
        PairArrays {
            position: [at(POSITION), at(POSITION + 1), at(POSITION + 2)],
            shift: [at(SHIFT), at(SHIFT + 1), at(SHIFT + 2)],
            r2: at(R2),
        }
    }

    /// Ranks consecutive candidates for half lists: their tag, plus one in positive images.
    #[inline(always)]
    pub(crate) fn rank(&mut self, candidates: Range<usize>, positive_image: bool) {
        let stride = self.stride;
        let (tags, ranks) = self.data.split_at_mut(RANK * stride);
        let tags = &tags[TAG * stride..][candidates.clone()];
        for (rank, tag) in ranks[candidates].iter_mut().zip(tags) {
            *rank = tag + u32::from(positive_image);
        }
    }

    /// Coordinates along each axis.
    #[inline(always)]
    pub(crate) fn axes(&self) -> [&[f32]; 3] {
        [
            self.floats(POSITION),
            self.floats(POSITION + 1),
            self.floats(POSITION + 2),
        ]
    }

    /// Image vectors along each axis; meaningful when shifted.
    #[inline(always)]
    pub(crate) fn shifts(&self) -> [&[f32]; 3] {
        [
            self.floats(SHIFT),
            self.floats(SHIFT + 1),
            self.floats(SHIFT + 2),
        ]
    }

    /// Boxes along each axis; meaningful when [mixed](super::mixed).
    #[inline(always)]
    pub(crate) fn boxes(&self) -> [&[f32]; 3] {
        [
            self.floats(BOXES),
            self.floats(BOXES + 1),
            self.floats(BOXES + 2),
        ]
    }

    /// Moves [mixed](super::mixed) candidates to the image that a target sees them through that is
    /// `wraps` outside of the box, and ranks them where they are `ranked`.
    ///
    /// Only image vectors and ranks are written; positions, tags and boxes stay, so that it can be
    /// called again for the next target. Loops are plain, for the compiler to vectorise.
    #[inline(always)]
    pub(crate) fn see_from(&mut self, lattice: &Lattice, wraps: [f32; 3], seen: ImageArrays) {
        let (len, stride) = (self.len, self.stride);
        let (before, boxes) = self.data.split_at_mut(BOXES * stride);
        let boxes: &[f32] = bytemuck::cast_slice(boxes);
        let boxes = [
            &boxes[..len],
            &boxes[stride..][..len],
            &boxes[2 * stride..][..len],
        ];
        let (tags, shifts) = before[TAG * stride..].split_at_mut(stride);
        let (shifts, ranks) = shifts.split_at_mut(3 * stride);
        let shifts: &mut [f32] = bytemuck::cast_slice_mut(shifts);
        let (x, rest) = shifts.split_at_mut(stride);
        let (y, z) = rest.split_at_mut(stride);
        let to = [&mut x[..len], &mut y[..len], &mut z[..len]];
        if seen.exact {
            let (_, exact) = self.exact.split_at_mut(3 * stride);
            let (x, rest) = exact.split_at_mut(stride);
            let (y, z) = rest.split_at_mut(stride);
            let to = [&mut x[..len], &mut y[..len], &mut z[..len]];
            lattice.domain().image_vectors(boxes, wraps, to);
        } else if let Some(lengths) = seen.lengths {
            for ((to, boxes), (wraps, length)) in to
                .into_iter()
                .zip(boxes)
                .zip(wraps.into_iter().zip(lengths))
            {
                for (to, n) in to.iter_mut().zip(boxes) {
                    *to = (n + wraps) * length;
                }
            }
        } else {
            lattice.image_shifts(boxes, wraps, to);
        }
        if seen.ranked {
            let domain = lattice.domain();
            for k in 0..len {
                let image = [0, 1, 2].map(|axis| boxes[axis][k] + wraps[axis]);
                let is_positive = if domain.is_reduced() {
                    domain.given_image(image.map(|n| n as i64)) > [0; 3]
                } else {
                    image > [0.0; 3]
                };
                ranks[k] = tags[k] + u32::from(is_positive);
            }
        }
    }

    /// Tags.
    #[inline(always)]
    pub(crate) fn tags(&self) -> &[u32] {
        self.array(TAG)
    }

    /// Squared radii of the candidates' own.
    #[inline(always)]
    pub(crate) fn r2s(&self) -> &[f32] {
        self.floats(R2)
    }

    /// Slots, where proxies decide.
    #[inline(always)]
    pub(crate) fn slots(&self) -> &[u32] {
        self.array(SLOT)
    }

    /// The numbers that half lists compare with the target's index.
    #[inline(always)]
    pub(crate) fn ranks(&self) -> &[u32] {
        self.array(if self.shifted { RANK } else { TAG })
    }

    /// One array with its padding.
    #[inline(always)]
    fn array(&self, array: usize) -> &[u32] {
        &self.data[array * self.stride..][..self.stride]
    }

    /// One array with its padding, to be written.
    #[inline(always)]
    fn array_mut(&mut self, array: usize) -> &mut [u32] {
        &mut self.data[array * self.stride..][..self.stride]
    }

    /// One array of floating-point numbers.
    #[inline(always)]
    fn floats(&self, array: usize) -> &[f32] {
        bytemuck::cast_slice(self.array(array))
    }

    /// One array of floating-point numbers, to be written.
    #[inline(always)]
    fn floats_mut(&mut self, array: usize) -> &mut [f32] {
        bytemuck::cast_slice_mut(self.array_mut(array))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_behind_the_last_candidate_is_no_neighbour_whatever_was_there() {
        let mut candidates = Candidates::default();
        candidates.clear(true, 40).unwrap();
        for array in [POSITION, SHIFT, R2] {
            candidates.floats_mut(array).fill(f32::INFINITY);
        }
        // SAFETY: all arrays were written just now, or are zero, and are long enough.
        unsafe { candidates.set_len(3) };
        candidates.seal(RADII);
        for k in 3..3 + LANES {
            let d: [f32; 3] = [0, 1, 2].map(|axis| {
                let moved = candidates.axes()[axis][k] - 1.0;
                moved + candidates.shifts()[axis][k]
            });
            assert!(d.iter().all(|&d| d == f32::INFINITY), "{d:?}");
            assert_eq!(candidates.r2s()[k], 0.0);
        }
        candidates.put_away(1);
        assert_eq!(candidates.axes()[0][1], f32::INFINITY);
        assert_eq!(
            candidates.r2s()[2],
            f32::INFINITY,
            "a candidate's own stays"
        );
    }
}
