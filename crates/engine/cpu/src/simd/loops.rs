//! The inner loops, written once for every kind of vector.
//!
//! Everything is `#[inline(always)]`, so that it becomes part of the function that
//! [`Simd::call`](super::Simd::call) compiles for a level; no closures, which would not.

use super::{Channels, Gather, HALF, Mode, RADII, SHIFTED, Select, Tag, Vector, has};
use crate::candidates::{Arrays, Candidates};
use std::ops::Range;

/// d² by the contract: one rounding per operation, fused multiply-add.
///
/// # Safety
/// The processor has the vector's level.
#[inline(always)]
unsafe fn squared<V: Vector>(d: [V; 3]) -> V {
    // SAFETY: the caller's promise.
    unsafe { d[2].mul_add(d[2], d[1].mul_add(d[1], d[0].mul(d[0]))) }
}

/// The same value in all lanes, per axis.
///
/// # Safety
/// The processor has the vector's level.
#[inline(always)]
unsafe fn splat<V: Vector>(x: [f32; 3]) -> [V; 3] {
    // SAFETY: the caller's promise.
    unsafe { [V::splat(x[0]), V::splat(x[1]), V::splat(x[2])] }
}

/// See [`Simd::gather`](super::Simd::gather).
///
/// The test of a candidate against the box of the targets uses exactly the operations of the pair
/// test. Each is monotone, so what fails here fails for every target inside.
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn gather<V: Vector, const MODE: Mode>(
    args: &Gather<'_>,
    slots: Range<usize>,
    to: &Arrays,
    mut len: usize,
) -> usize {
    let source = args.points.axes();
    let source = [source[0].as_ptr(), source[1].as_ptr(), source[2].as_ptr()];
    let index = args.points.index().as_ptr();
    let source_r2 = args.source_r2.as_ptr();
    let mut slot = slots.start;
    // SAFETY: the level is the caller's promise. Sorted points and their radii are padded by
    // LANES, and the caller made room for the run and LANES more.
    unsafe {
        let (low, high) = (splat::<V>(args.low), splat::<V>(args.high));
        let shift = splat::<V>(args.shift);
        let zero = V::splat(0.0);
        let target_r2 = V::splat(args.r2);
        while slot < slots.end {
            let mut position = [zero; 3];
            let mut d = [zero; 3];
            for axis in 0..3 {
                let x = V::load(source[axis].add(slot));
                position[axis] = x;
                d[axis] = if has(MODE, SHIFTED) {
                    let below = x.sub(high[axis]).add(shift[axis]);
                    let above = x.sub(low[axis]).add(shift[axis]);
                    below.max(zero.sub(above)).max(zero)
                } else {
                    x.sub(x.min(high[axis]).max(low[axis]))
                };
            }
            let mut r2 = target_r2;
            let mut own_r2 = zero;
            if has(MODE, RADII) {
                own_r2 = V::load(source_r2.add(slot));
                r2 = r2.max(own_r2);
            }
            let inside = u32::MAX >> (32 - (slots.end - slot).min(V::LANES));
            let near = squared(d).le(r2) & inside;
            let tags = match args.tag {
                Tag::Index => V::load_u32(index.add(slot)),
                Tag::Slot => V::count_from(slot as u32),
            };
            let order = V::order(near);
            for axis in 0..3 {
                position[axis].compress(order, to.position[axis].add(len));
                if has(MODE, SHIFTED) {
                    shift[axis].store(to.shift[axis].add(len));
                }
            }
            if has(MODE, RADII) {
                own_r2.compress(order, to.r2.add(len));
            }
            V::compress_u32(tags, order, to.tag.add(len));
            len += near.count_ones() as usize;
            slot += V::LANES;
        }
    }
    len
}

/// See [`Simd::select`](super::Simd::select).
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn select<V: Vector, const MODE: Mode, const TARGETS: usize>(
    args: &[Select; TARGETS],
    candidates: &Candidates,
    lists: [*mut u32; TARGETS],
) -> [usize; TARGETS] {
    let sources = Sources::new(candidates);
    let mut ends = lists;
    let mut counts = [0; TARGETS];
    // SAFETY: the level is the caller's promise. Candidate arrays are padded by LANES, and the
    // lists have room for as many more.
    unsafe {
        let mut targets = [Target::<V>::new(&args[0]); TARGETS];
        for t in 1..TARGETS {
            targets[t] = Target::new(&args[t]);
        }
        let mut k = 0;
        while k < candidates.len() {
            let block = sources.load::<V, MODE>(k);
            for t in 0..TARGETS {
                let d2 = squared(targets[t].difference::<MODE>(&block));
                let near = targets[t].near::<MODE>(&block, d2);
                V::compress_u32(block.tags, V::order(near), ends[t]);
                ends[t] = ends[t].add(near.count_ones() as usize);
            }
            k += V::LANES;
        }
        for t in 0..TARGETS {
            counts[t] = ends[t].offset_from(lists[t]) as usize;
        }
    }
    counts
}

/// See [`Simd::pack`](super::Simd::pack).
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn pack<V: Vector, const MODE: Mode>(
    args: &Select,
    candidates: &Candidates,
    channels: Channels,
    packed: Channels,
) -> usize {
    let sources = Sources::new(candidates);
    let (mut found, mut k) = (0, 0);
    // SAFETY: the level is the caller's promise. Candidate arrays and channels are padded by
    // LANES.
    unsafe {
        let target = Target::<V>::new(args);
        while k < candidates.len() {
            let block = sources.load::<V, MODE>(k);
            let d = target.difference::<MODE>(&block);
            let d2 = squared(d);
            let near = target.near::<MODE>(&block, d2);
            let order = V::order(near);
            for axis in 0..3 {
                d[axis].compress(order, packed.at(axis, found));
            }
            d2.compress(order, packed.at(3, found));
            for channel in 0..channels.count {
                let value = V::load(channels.at(channel, k));
                value.compress(order, packed.at(4 + channel, found));
            }
            found += near.count_ones() as usize;
            k += V::LANES;
        }
    }
    found
}

/// See [`Simd::filter`](super::Simd::filter).
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn filter<V: Vector, const MODE: Mode>(
    args: &Select,
    candidates: &Candidates,
    places: *mut u32,
) -> usize {
    let sources = Sources::new(candidates);
    let (mut found, mut k) = (0, 0);
    // SAFETY: the level is the caller's promise. Candidate arrays are padded by LANES, and there is
    // room for as many more places.
    unsafe {
        let target = Target::<V>::new(args);
        while k < candidates.len() {
            let block = sources.load::<V, MODE>(k);
            let near = squared(target.difference::<MODE>(&block)).le(target.r2);
            V::compress_u32(V::count_from(k as u32), V::order(near), places.add(found));
            found += near.count_ones() as usize;
            k += V::LANES;
        }
    }
    found
}

/// Where the candidates are.
struct Sources {
    position: [*const f32; 3],
    shift: [*const f32; 3],
    r2: *const f32,
    tag: *const u32,
    rank: *const u32,
}

/// A vector of candidates. What its mode lacks is not loaded.
struct Block<V: Vector> {
    /// Place of the first.
    k: usize,
    position: [V; 3],
    shift: [V; 3],
    r2: V,
    tags: V::Ints,
    ranks: V::Ints,
}

impl Sources {
    #[inline(always)]
    fn new(candidates: &Candidates) -> Self {
        let (position, shift) = (candidates.axes(), candidates.shifts());
        Self {
            position: [
                position[0].as_ptr(),
                position[1].as_ptr(),
                position[2].as_ptr(),
            ],
            shift: [shift[0].as_ptr(), shift[1].as_ptr(), shift[2].as_ptr()],
            r2: candidates.r2s().as_ptr(),
            tag: candidates.tags().as_ptr(),
            rank: candidates.ranks().as_ptr(),
        }
    }

    /// The candidates from `k` on.
    ///
    /// # Safety
    /// The processor has the level, and the arrays go on for a vector from `k`.
    #[inline(always)]
    unsafe fn load<V: Vector, const MODE: Mode>(&self, k: usize) -> Block<V> {
        // SAFETY: the caller's promise.
        unsafe {
            let position = load3(self.position, k);
            let tags = V::load_u32(self.tag.add(k));
            Block {
                k,
                position,
                shift: if has(MODE, SHIFTED) {
                    load3(self.shift, k)
                } else {
                    position
                },
                r2: if has(MODE, RADII) {
                    V::load(self.r2.add(k))
                } else {
                    position[0]
                },
                tags,
                ranks: if has(MODE, HALF) {
                    V::load_u32(self.rank.add(k))
                } else {
                    tags
                },
            }
        }
    }
}

/// A vector from each of three arrays.
///
/// # Safety
/// As for [`Sources::load`].
#[inline(always)]
unsafe fn load3<V: Vector>(from: [*const f32; 3], k: usize) -> [V; 3] {
    // SAFETY: the caller's promise.
    unsafe {
        [
            V::load(from[0].add(k)),
            V::load(from[1].add(k)),
            V::load(from[2].add(k)),
        ]
    }
}

/// One target in every lane.
#[derive(Clone, Copy)]
struct Target<V: Vector> {
    position: [V; 3],
    r2: V,
    own_tag: u32,
    own_place: usize,
}

impl<V: Vector> Target<V> {
    /// # Safety
    /// The processor has the vector's level.
    #[inline(always)]
    unsafe fn new(args: &Select) -> Self {
        // SAFETY: the caller's promise.
        let (position, r2) = unsafe { (splat(args.target), V::splat(args.r2)) };
        Self {
            position,
            r2,
            own_tag: args.own_tag,
            own_place: args.own_place,
        }
    }

    /// Displacements from the target to the candidates.
    ///
    /// # Safety
    /// The processor has the level.
    #[inline(always)]
    unsafe fn difference<const MODE: Mode>(&self, block: &Block<V>) -> [V; 3] {
        let mut d = block.position;
        for axis in 0..3 {
            // SAFETY: the caller's promise.
            unsafe {
                d[axis] = d[axis].sub(self.position[axis]);
                if has(MODE, SHIFTED) {
                    d[axis] = d[axis].add(block.shift[axis]);
                }
            }
        }
        d
    }

    /// Which of the candidates, at squared distances `d2`, are neighbours: a bit per lane.
    ///
    /// # Safety
    /// The processor has the level.
    #[inline(always)]
    unsafe fn near<const MODE: Mode>(&self, block: &Block<V>, d2: V) -> u32 {
        // SAFETY: the caller's promise.
        unsafe {
            let r2 = if has(MODE, RADII) {
                self.r2.max(block.r2)
            } else {
                self.r2
            };
            let near = d2.le(r2);
            if has(MODE, HALF) {
                near & V::above(block.ranks, self.own_tag)
            } else if has(MODE, SHIFTED) {
                near & !own_lane::<V>(self.own_place, block.k)
            } else {
                near & V::unequal(block.tags, self.own_tag)
            }
        }
    }
}

/// Bit of the lane of the vector from `k` on that holds the target itself, if any. Branch-free,
/// because where the target stands is unpredictable.
#[inline(always)]
fn own_lane<V: Vector>(own_place: usize, k: usize) -> u32 {
    u32::from(own_place / V::LANES == k / V::LANES) << (own_place % V::LANES)
}
