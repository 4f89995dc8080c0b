//! Copies the candidates of a run that can be within the radius of any target in a box.
//!
//! The distance to the box along an axis is x − clamp(x, low, high), and its square is computed by
//! the pair test's own operations, which are monotone: see [`crate::candidates`].
//!
//! # Images
//!
//! Candidates that are seen through an image vector S are compared with the box moved by −S
//! ([`SeenThrough`]), which is enlarged by what rounding may add to the distance. Let u =
//! 2⁻²⁴, L the farther of the box's ends from 0, and R the largest radius. Where the contract's
//! difference c = fl(fl(x − x_i) + S) is at most R, it differs from (x − x_i) + S by less than
//! 1.02u(|S| + 2R), and the ends of the moved box, rounded twice, by 2.02u(|S| + L). So a slack of
//! 2⁻²¹(|S| + L + R) = 8u(…) makes the distance from the box at most |c|, and nothing is lost.
//! Along axes where S is 0 nothing is moved.
//!
//! Vectors may reach beyond the end of a run; a mask of the lanes inside is combined with the test.
//!
//! # Stores
//!
//! Every vector of a run is stored whole and compressed, lanes that are dropped behind those that
//! are kept, and the next store overwrites them. There is no branch on how many are kept, which is
//! unpredictable. The price is a vector of room behind the last candidate.

use super::{
    arrays::{ArrayLengths, Arrays},
    mode::{Mode, PROXIES, RADII, Tag, has},
};
use crate::simd::vector::{Compress, Vector};
use nearfield_grid::SortedPoints;
use std::ops::Range;

/// One run of candidates and the box of the targets they are for.
///
/// `r2` is the largest squared radius of the targets: with radii of single points a candidate is
/// kept if it is within the larger of that and its own radius, which prunes well where
/// neighbouring points have similar radii.
#[derive(Clone, Copy)]
pub(crate) struct Gather<'a> {
    /// The sorted sources.
    pub(crate) points: &'a SortedPoints,
    /// Squared radius of every sorted point, for [`RADII`]; as long as the points' padded arrays.
    pub(crate) source_r2: &'a [f32],
    /// The name that candidates get.
    pub(crate) tag: Tag,
    /// Lower corner of the box of the targets.
    pub(crate) low: [f32; 3],
    /// Upper corner.
    pub(crate) high: [f32; 3],
    /// Largest squared radius of any target in the box.
    pub(crate) r2: f32,
}

impl Gather<'_> {
    /// The same for candidates that are seen through the image vector `shift`, where no radius is
    /// larger than `max_radius`.
    #[inline(always)]
    fn seen_through(mut self, shift: [f32; 3], max_radius: f32) -> Self {
        for axis in 0..3 {
            let (low, high, shift) = (self.low[axis], self.high[axis], shift[axis]);
            if shift != 0.0 {
                let farthest = if -low > high { -low } else { high };
                let slack = SLACK * (shift.abs() + farthest.abs() + max_radius);
                self.low[axis] = (low - shift) - slack;
                self.high[axis] = (high - shift) + slack;
            }
        }
        self
    }
}

/// Boxes of the same targets for candidates that are seen through one image after the other.
///
/// The last two are kept: rows that are cut by a face have two images in turn.
pub(crate) struct SeenThrough<'a> {
    /// The box for the central image.
    central: Gather<'a>,
    /// No radius is larger.
    max_radius: f32,
    /// Numbers of the last images and the boxes for them.
    last: [(usize, Gather<'a>); 2],
    /// Which of them was asked for last.
    at: usize,
}

impl<'a> SeenThrough<'a> {
    /// For targets in the box of `central`, where no radius is larger than `max_radius`.
    #[inline(always)]
    pub(crate) fn new(central: Gather<'a>, max_radius: f32) -> Self {
        Self {
            central,
            max_radius,
            last: [(usize::MAX, central); 2],
            at: 0,
        }
    }

    /// The box for candidates that are seen through `shift`, the image vector of image `number`.
    #[inline(always)]
    pub(crate) fn of(&mut self, number: usize, shift: [f32; 3]) -> &Gather<'a> {
        if self.last[self.at].0 != number {
            self.at ^= 1;
            if self.last[self.at].0 != number {
                let moved = self.central.seen_through(shift, self.max_radius);
                self.last[self.at] = (number, moved);
            }
        }
        &self.last[self.at].1
    }
}

/// Share of the coordinates by which a box that is moved is enlarged.
const SLACK: f32 = 1.0 / (1 << 21) as f32;

/// d² by the contract: one rounding per operation, fused multiply-add.
///
/// # Safety
/// The processor has the vector's level.
#[inline(always)]
pub(crate) unsafe fn squared<V: Vector>(d: [V; 3]) -> V {
    // SAFETY: guaranteed by the caller.
    unsafe { d[2].mul_add(d[2], d[1].mul_add(d[1], d[0].mul(d[0]))) }
}

/// The same value in all lanes, per axis.
///
/// # Safety
/// The processor has the vector's level.
#[inline(always)]
pub(crate) unsafe fn splat<V: Compress>(x: [f32; 3]) -> [V; 3] {
    // SAFETY: guaranteed by the caller.
    unsafe { [V::splat(x[0]), V::splat(x[1]), V::splat(x[2])] }
}

/// Copies the candidates among the sorted points `slots` to the arrays `to`, behind those that are
/// there; returns how many there are then.
///
/// # Safety
/// The processor has the vector's level, `slots` are sorted points of `args`, the arrays have room
/// for the run and [`LANES`](crate::simd::LANES) more, and `MODE` is the candidates' mode.
///
/// Slots of a run are consecutive, so coordinates are loaded by the vector. Tags are loaded, or
/// counted up where they are slots.
#[inline(always)]
pub(crate) unsafe fn gather<V: Compress, const MODE: Mode>(
    args: &Gather<'_>,
    slots: Range<usize>,
    to: &Arrays,
    mut filled: ArrayLengths,
) -> ArrayLengths {
    let mut slot = slots.start;
    // SAFETY: the caller guarantees the level and the mode, and made room for the run and LANES
    // more.
    unsafe {
        let (low, high) = (splat::<V>(args.low), splat::<V>(args.high));
        let target_r2 = V::splat(args.r2);
        while slot < slots.end {
            let lanes = Lanes::<V>::load::<MODE>(args, slot);
            let d2 = squared_to_box(lanes.position, low, high);
            let near = d2.le(lanes.larger_r2::<MODE>(target_r2)) & inside::<V>(slot, slots.end);
            lanes.keep::<MODE>(args, (near, V::order(near)), to, &mut filled);
            slot += V::LANES;
        }
    }
    filled
}

/// Notes the chunk from `slot` on if any of its `lanes` is a candidate.
///
/// # Safety
/// The arrays have room for another chunk.
#[inline(always)]
unsafe fn note_chunk(slot: usize, lanes: u32, to: &Arrays, filled: &mut ArrayLengths) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        to.chunk_slot.add(filled.chunks).write(slot as u32);
        to.chunk_lanes.add(filled.chunks).write(lanes);
    }
    // Without a branch, which would be unpredictable.
    filled.chunks += usize::from(lanes != 0);
}

/// The lanes of a vector of points from `slot` on that lie before `end`.
#[inline(always)]
pub(super) fn inside<V: Vector>(slot: usize, end: usize) -> u32 {
    u32::MAX >> (32 - (end - slot).min(V::LANES))
}

/// A vector of sorted points that may become candidates.
///
/// Sorted points and what belongs to them are padded by [`LANES`](crate::simd::LANES), so a vector
/// from any slot can be loaded.
pub(super) struct Lanes<V> {
    /// The first of them.
    slot: usize,
    /// Coordinates.
    pub(super) position: [V; 3],
    /// Squared radii, with [`RADII`].
    r2: V,
}

impl<V: Compress> Lanes<V> {
    /// The points from `slot` on.
    ///
    /// # Safety
    /// The processor has the vector's level, there is such a point, and `MODE` says whether
    /// sources have radii.
    #[inline(always)]
    pub(super) unsafe fn load<const MODE: Mode>(args: &Gather<'_>, slot: usize) -> Self {
        let [x, y, z] = args.points.axes();
        // SAFETY: guaranteed by the caller; arrays are padded.
        unsafe {
            Self {
                slot,
                position: [
                    V::load(x.as_ptr().add(slot)),
                    V::load(y.as_ptr().add(slot)),
                    V::load(z.as_ptr().add(slot)),
                ],
                r2: if has(MODE, RADII) {
                    V::load(args.source_r2.as_ptr().add(slot))
                } else {
                    V::splat(0.0)
                },
            }
        }
    }

    /// The larger of the points' own squared radii and that of the targets.
    ///
    /// # Safety
    /// The processor has the vector's level.
    #[inline(always)]
    pub(super) unsafe fn larger_r2<const MODE: Mode>(&self, target_r2: V) -> V {
        if has(MODE, RADII) {
            // SAFETY: guaranteed by the caller.
            unsafe { target_r2.max(self.r2) }
        } else {
            target_r2
        }
    }

    /// Stores the points of the lanes `near`, whose order is `order`, as further candidates.
    ///
    /// # Safety
    /// The processor has the vector's level, the arrays have room for a vector behind those that
    /// are `filled`, and `MODE` is the candidates' mode.
    #[inline(always)]
    pub(super) unsafe fn keep<const MODE: Mode>(
        &self,
        args: &Gather<'_>,
        (near, order): (u32, V::Order),
        to: &Arrays,
        filled: &mut ArrayLengths,
    ) {
        let len = filled.candidates;
        // SAFETY: guaranteed by the caller; the index is padded too.
        unsafe {
            let tags = match args.tag {
                Tag::Index => V::load_u32(args.points.index().as_ptr().add(self.slot)),
                Tag::Slot => {
                    note_chunk(self.slot, near, to, filled);
                    V::count_from(self.slot as u32)
                }
            };
            for axis in 0..3 {
                self.position[axis].compress(order, to.position[axis].add(len));
            }
            if has(MODE, RADII) {
                self.r2.compress(order, to.r2.add(len));
            }
            if has(MODE, PROXIES) {
                let slots = V::count_from(self.slot as u32);
                V::compress_u32(slots, order, to.slot.add(len));
            }
            V::compress_u32(tags, order, to.tag.add(len));
        }
        filled.candidates += near.count_ones() as usize;
    }
}

/// Squared distances of points from a box, by the operations of the pair test.
///
/// # Safety
/// The processor has the vector's level.
#[inline(always)]
pub(super) unsafe fn squared_to_box<V: Compress>(x: [V; 3], low: [V; 3], high: [V; 3]) -> V {
    // SAFETY: guaranteed by the caller.
    unsafe {
        squared([
            x[0].sub(x[0].min(high[0]).max(low[0])),
            x[1].sub(x[1].min(high[1]).max(low[1])),
            x[2].sub(x[2].min(high[2]).max(low[2])),
        ])
    }
}

/// Writes an image vector for the candidates `numbers`.
///
/// # Safety
/// The processor has the vector's level, and the arrays have room for the candidates and
/// [`LANES`](crate::simd::LANES) more.
#[inline(always)]
pub(crate) unsafe fn put_shifts<V: Compress>(shift: [f32; 3], numbers: Range<usize>, to: &Arrays) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let shift = splat::<V>(shift);
        let mut number = numbers.start;
        while number < numbers.end {
            for axis in 0..3 {
                shift[axis].store(to.shift[axis].add(number));
            }
            number += V::LANES;
        }
    }
}
