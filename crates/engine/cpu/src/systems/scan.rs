//! Targets against the candidates of a small system, a vector at a time.
//!
//! d = fl(fl(x_j − x_i) + S) per axis and d² by two fused products, as the contract has it, for as
//! many candidates as a vector of `f32` has lanes; in `f64` two vectors make up as many. The mask
//! of those within the radius compresses their tags to the end of the target's list. Four targets
//! share every candidate that is loaded.
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
///
/// The targets are those that the candidates were laid out for. Their lists are appended in the
/// order of the targets; where each begins and how long it is goes to the places of the points.
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

    /// Appends the lists of `N` targets, which share every candidate that is loaded. Each list is
    /// written to a stream of its own, because a store to the cache line of the store before waits
    /// for it, and then moved behind the one before.
    ///
    /// # Safety
    /// The processor has the level `S`.
    #[inline(always)]
    unsafe fn together<S: Simd, const HALF: bool, const N: usize>(
        &mut self,
        targets: [usize; N],
        from: &Pointers<T>,
    ) -> Result<(), Shortage> {
        let lanes = S::Single::LANES;
        let wide = <T::Vector<S> as Vector>::LANES;
        let mut begin = 0;
        if HALF {
            begin = self.layout.len;
            for target in targets {
                begin = begin.min(self.firsts[target] as usize / lanes * lanes);
            }
        }
        let held = self.tags.len();
        let stream = self.layout.len - begin + LANES;
        make_more_room(self.tags, N * stream)?;
        let (mut own, mut len) = ([0; N], [0; N]);
        // SAFETY: the caller guarantees the level. Every array of the layout has LANES elements
        // behind the last candidate, and `tags` has room for N streams of all candidates and a
        // vector more.
        unsafe {
            let zero = T::Vector::<S>::splat(T::default());
            let mut at = [[zero; 3]; N];
            for n in 0..N {
                own[n] = ((targets[n] as u64) << self.bits) as u32 | self.zero;
                let position = self.positions[targets[n]];
                for axis in 0..3 {
                    at[n][axis] = T::Vector::<S>::splat(position[axis]);
                }
            }
            let r2 = T::Vector::<S>::splat(self.r2);
            let to = self.tags.as_mut_ptr().add(held);
            let mut k = begin;
            while k < self.layout.len {
                let mut masks = [0; N];
                let mut part = 0;
                while part < lanes {
                    let c = k + part;
                    // Spelt out: closures are not always inlined into code for a level.
                    let px = T::Vector::<S>::load(from.position[0].add(c));
                    let py = T::Vector::<S>::load(from.position[1].add(c));
                    let pz = T::Vector::<S>::load(from.position[2].add(c));
                    let sx = T::Vector::<S>::load(from.shift[0].add(c));
                    let sy = T::Vector::<S>::load(from.shift[1].add(c));
                    let sz = T::Vector::<S>::load(from.shift[2].add(c));
                    for n in 0..N {
                        let dx = px.sub(at[n][0]).add(sx);
                        let dy = py.sub(at[n][1]).add(sy);
                        let dz = pz.sub(at[n][2]).add(sz);
                        let d2 = dz.mul_add(dz, dy.mul_add(dy, dx.mul(dx)));
                        masks[n] |= d2.le(r2) << part;
                    }
                    part += wide;
                }
                let lane_tags = S::Single::load_u32(from.tag.add(k));
                for n in 0..N {
                    let mask = masks[n]
                        & match HALF {
                            true => S::Single::above(lane_tags, own[n]),
                            false => S::Single::unequal(lane_tags, own[n]),
                        };
                    let end = to.add(n * stream + len[n]);
                    S::Single::compress_u32(lane_tags, S::Single::order(mask), end);
                    len[n] += mask.count_ones() as usize;
                }
                k += lanes;
            }
            let mut end = 0;
            for n in 0..N {
                if n > 0 {
                    std::ptr::copy(to.add(n * stream), to.add(end), len[n]);
                }
                self.starts[targets[n]] = held + end;
                self.counts[targets[n]] = len[n] as u32;
                end += len[n];
            }
            self.tags.set_len(held + end);
        }
        Ok(())
    }

    /// Appends the lists of all targets, four together and those that are left one by one.
    ///
    /// # Safety
    /// The processor has the level `S`.
    #[inline(always)]
    unsafe fn all<S: Simd, const HALF: bool>(&mut self) -> Result<(), Shortage> {
        let [px, py, pz] = &self.layout.position;
        let [sx, sy, sz] = &self.layout.shift;
        let from = Pointers {
            position: [px.as_ptr(), py.as_ptr(), pz.as_ptr()],
            shift: [sx.as_ptr(), sy.as_ptr(), sz.as_ptr()],
            tag: self.layout.tag.as_ptr(),
        };
        let (fours, rest) = self.targets.as_chunks::<4>();
        // SAFETY: guaranteed by the caller.
        unsafe {
            for &[a, b, c, d] in fours {
                let targets = [a as usize, b as usize, c as usize, d as usize];
                self.together::<S, HALF, 4>(targets, &from)?;
            }
            for &target in rest {
                self.together::<S, HALF, 1>([target as usize], &from)?;
            }
        }
        Ok(())
    }
}

/// Where the arrays of a layout begin.
///
/// Found once for all targets: a view of an aligned array is checked every time it is taken.
struct Pointers<T> {
    position: [*const T; 3],
    shift: [*const T; 3],
    tag: *const u32,
}

impl<T: SystemReal> Task for Scan<'_, T> {
    #[inline(always)]
    unsafe fn run<S: Simd>(mut self) {
        // SAFETY: guaranteed by the caller.
        let done = unsafe {
            match self.half {
                true => self.all::<S, true>(),
                false => self.all::<S, false>(),
            }
        };
        *self.failed = done.err();
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
