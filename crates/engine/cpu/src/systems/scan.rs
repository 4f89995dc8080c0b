//! Targets against the candidates of a small system, a vector at a time.
//!
//! d = fl(fl(x_j − x_i) + S) per axis and d² by two fused products, as the contract has it, for as
//! many candidates as a vector of `f32` has lanes; in `f64` two vectors make up as many. The mask
//! of those within the radius compresses their tags to the end of the target's list.
//!
//! # What is stored
//!
//! Every vector of candidates is compressed and stored, with hits or without: some of every
//! sixteen candidates are hits, so a branch would be mispredicted more often than it saves a store.
//! A store writes a whole vector and the next one overwrites what is behind the hits, so the list
//! has room for all candidates and a vector more.
//!
//! The target itself is among its candidates once for every image. Only the one with the image of
//! all zeros is left out, by its tag. For half lists the tag has to be larger than that, and
//! candidates of earlier sources are not looked at.
//!
//! **Invariant:** the arrays of a layout have a vector of candidates behind the last one that are
//! infinitely far away, so loops need no remainder.

use super::input::{SystemReal, WHAT};
use crate::{
    candidates::aligned::Aligned,
    simd::{
        LANES, Simd, Task,
        level::SimdLevel,
        vector::{Compress, Vector},
        with_level,
    },
};
use nearfield_grid::memory::{Shortage, make_room};

/// Candidates, an array for every component; behind the last one are as many as a vector has lanes
/// that are infinitely far away.
#[derive(Debug)]
pub(super) struct Layout<T> {
    pub(super) position: [Aligned<T>; 3],
    pub(super) shift: [Aligned<T>; 3],
    pub(super) tag: Aligned<u32>,
    /// Number of candidates.
    pub(super) len: usize,
}

impl<T: SystemReal> Layout<T> {
    /// Makes the arrays as long as `len` candidates and a vector more.
    pub(super) fn resize(&mut self, len: usize) -> Result<(), Shortage> {
        self.len = len;
        let padded = len + LANES;
        for axis in 0..3 {
            self.position[axis].grow(padded)?;
            self.shift[axis].grow(padded)?;
            self.position[axis][len..padded].fill(T::of(f64::INFINITY));
            self.shift[axis][len..padded].fill(T::default());
        }
        self.tag.grow(padded)
    }

    /// Writes the candidates, one after the other.
    #[inline(always)]
    pub(super) fn writer(&mut self) -> Writer<'_, T> {
        let Self {
            position: [px, py, pz],
            shift: [sx, sy, sz],
            tag,
            len,
        } = self;
        Writer {
            position: [&mut px[..*len], &mut py[..*len], &mut pz[..*len]],
            shift: [&mut sx[..*len], &mut sy[..*len], &mut sz[..*len]],
            tag: &mut tag[..*len],
            at: 0,
        }
    }
}

impl<T> Default for Layout<T> {
    fn default() -> Self {
        let three = || std::array::from_fn(|_| Aligned::empty());
        Self {
            position: three(),
            shift: three(),
            tag: Aligned::empty(),
            len: 0,
        }
    }
}

/// The candidates of a layout while they are written.
pub(super) struct Writer<'a, T> {
    /// As long as there are candidates, like the other arrays.
    position: [&'a mut [T]; 3],
    shift: [&'a mut [T]; 3],
    tag: &'a mut [u32],
    /// Number of candidates written.
    at: usize,
}

impl<T: Copy> Writer<'_, T> {
    /// Writes the next candidate. One that there is no room for is dropped; there is none, because
    /// all are counted before.
    #[inline(always)]
    pub(super) fn put(&mut self, position: &[T; 3], shift: &[T; 3], tag: u32) {
        let at = self.at;
        if at >= self.tag.len() {
            return;
        }
        for axis in 0..3 {
            // SAFETY: all arrays are as long as `tag`.
            unsafe {
                *self.position[axis].get_unchecked_mut(at) = position[axis];
                *self.shift[axis].get_unchecked_mut(at) = shift[axis];
            }
        }
        self.tag[at] = tag;
        self.at += 1;
    }

    /// Number of candidates written.
    pub(super) fn written(&self) -> usize {
        self.at
    }
}

/// Some targets of a system against its candidates.
pub(super) struct Scan<'a, T> {
    /// All points of the system.
    pub(super) positions: &'a [[T; 3]],
    /// Numbers of the targets.
    pub(super) targets: &'a [u32],
    /// First candidate of every source.
    pub(super) firsts: &'a [u32],
    pub(super) layout: &'a Layout<T>,
    /// fl(r·r).
    pub(super) r2: T,
    /// Bits of an image in a tag.
    pub(super) bits: u32,
    /// Number of the image of all zeros.
    pub(super) zero: u32,
    /// Only pairs whose tag is above that of the target are wanted.
    pub(super) half: bool,
    /// Where lists are appended.
    pub(super) tags: &'a mut Vec<u32>,
    /// Where the list of a point begins.
    pub(super) starts: &'a mut [usize],
    /// How long it is.
    pub(super) counts: &'a mut [u32],
    /// Memory that was refused.
    pub(super) failed: &'a mut Option<Shortage>,
}

impl<T: SystemReal> Scan<'_, T> {
    /// Scans at a level.
    ///
    /// # Errors
    /// [`Shortage`]; lists are then unspecified.
    pub(super) fn run(self, level: SimdLevel) -> Result<(), Shortage> {
        let mut failed = None;
        let scan = Scan {
            failed: &mut failed,
            ..self
        };
        with_level(level, scan);
        failed.map_or(Ok(()), Err)
    }

    /// Appends the list of a target.
    ///
    /// # Safety
    /// The processor has the level `S`.
    #[inline(always)]
    unsafe fn target<S: Simd, const HALF: bool>(&mut self, target: usize) -> Result<(), Shortage> {
        let lanes = S::Single::LANES;
        let wide = <T::Vector<S> as Vector>::LANES;
        let own = ((target as u64) << self.bits) as u32 | self.zero;
        let begin = match HALF {
            true => self.firsts[target] as usize / lanes * lanes,
            false => 0,
        };
        let held = self.tags.len();
        make_more_room(self.tags, self.layout.len - begin + LANES)?;
        let at = self.positions[target];
        let [px, py, pz] = [0, 1, 2].map(|axis| self.layout.position[axis].as_ptr());
        let [sx, sy, sz] = [0, 1, 2].map(|axis| self.layout.shift[axis].as_ptr());
        let tags = self.layout.tag.as_ptr();
        let mut len = 0;
        // SAFETY: the caller guarantees the level. Every array of the layout has LANES elements
        // behind the last candidate, and `tags` has room for all candidates and a vector more.
        unsafe {
            let [x, y, z] = [
                T::Vector::<S>::splat(at[0]),
                T::Vector::<S>::splat(at[1]),
                T::Vector::<S>::splat(at[2]),
            ];
            let r2 = T::Vector::<S>::splat(self.r2);
            let to = self.tags.as_mut_ptr().add(held);
            let mut k = begin;
            while k < self.layout.len {
                let mut mask = 0;
                let mut part = 0;
                while part < lanes {
                    let c = k + part;
                    // Spelt out: closures are not always inlined into code for a level.
                    let dx = T::Vector::<S>::load(px.add(c)).sub(x);
                    let dy = T::Vector::<S>::load(py.add(c)).sub(y);
                    let dz = T::Vector::<S>::load(pz.add(c)).sub(z);
                    let dx = dx.add(T::Vector::<S>::load(sx.add(c)));
                    let dy = dy.add(T::Vector::<S>::load(sy.add(c)));
                    let dz = dz.add(T::Vector::<S>::load(sz.add(c)));
                    let d2 = dz.mul_add(dz, dy.mul_add(dy, dx.mul(dx)));
                    mask |= d2.le(r2) << part;
                    part += wide;
                }
                let lane_tags = S::Single::load_u32(tags.add(k));
                mask &= match HALF {
                    true => S::Single::above(lane_tags, own),
                    false => S::Single::unequal(lane_tags, own),
                };
                S::Single::compress_u32(lane_tags, S::Single::order(mask), to.add(len));
                len += mask.count_ones() as usize;
                k += lanes;
            }
            self.tags.set_len(held + len);
        }
        self.starts[target] = held;
        self.counts[target] = len as u32;
        Ok(())
    }
}

impl<T: SystemReal> Task for Scan<'_, T> {
    #[inline(always)]
    unsafe fn run<S: Simd>(mut self) {
        for &target in self.targets {
            // SAFETY: guaranteed by the caller.
            let done = unsafe {
                match self.half {
                    true => self.target::<S, true>(target as usize),
                    false => self.target::<S, false>(target as usize),
                }
            };
            if let Err(shortage) = done {
                *self.failed = Some(shortage);
                return;
            }
        }
    }
}

/// Makes room for `more` tags, which grows by doubling.
#[inline(always)]
fn make_more_room(tags: &mut Vec<u32>, more: usize) -> Result<(), Shortage> {
    if tags.capacity() - tags.len() >= more {
        return Ok(());
    }
    let wanted = tags.len() + more;
    make_room(tags, wanted.max(2 * tags.capacity()), WHAT)
}
