//! Copies the candidates of a run that can be within the radius of any target in a box.
//!
//! The distance to the box along an axis is x − clamp(x, low, high), and its square is computed by
//! the pair test's own operations, which are monotone: see [`crate::candidates`].
//!
//! # Images
//!
//! Candidates that are seen through an image vector S are compared with the box moved by −S
//! ([`Gather::seen_through`]), which is enlarged by what rounding may add to the distance. Let u =
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
    arrays::Arrays,
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
    pub(crate) fn seen_through(mut self, shift: [f32; 3], max_radius: f32) -> Self {
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

/// Share of the coordinates by which a box that is moved is enlarged.
const SLACK: f32 = 1.0 / (1 << 21) as f32;

/// d² by the contract: one rounding per operation, fused multiply-add.
///
/// # Safety
/// The processor has the vector's level.
#[inline(always)]
pub(super) unsafe fn squared<V: Vector>(d: [V; 3]) -> V {
    // SAFETY: guaranteed by the caller.
    unsafe { d[2].mul_add(d[2], d[1].mul_add(d[1], d[0].mul(d[0]))) }
}

/// The same value in all lanes, per axis.
///
/// # Safety
/// The processor has the vector's level.
#[inline(always)]
pub(super) unsafe fn splat<V: Compress>(x: [f32; 3]) -> [V; 3] {
    // SAFETY: guaranteed by the caller.
    unsafe { [V::splat(x[0]), V::splat(x[1]), V::splat(x[2])] }
}

/// Copies the candidates among the sorted points `slots` to the arrays `to`, behind the `len` that
/// are there; returns how many there are then.
///
/// # Safety
/// The processor has the vector's level, `slots` are sorted points of `args`, the arrays have room
/// for the run and [`LANES`](crate::simd::LANES) more, and `MODE` says what candidates carry.
///
/// Slots of a run are consecutive, so coordinates are loaded by the vector. Tags are loaded, or
/// counted up where they are slots.
#[inline(always)]
pub(crate) unsafe fn gather<V: Compress, const MODE: Mode>(
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
    // SAFETY: the caller guarantees the level. Sorted points and their radii are padded by LANES,
    // so a vector from any slot can be loaded, and the caller made room for the run and LANES more.
    unsafe {
        let (low, high) = (splat::<V>(args.low), splat::<V>(args.high));
        let zero = V::splat(0.0);
        let target_r2 = V::splat(args.r2);
        while slot < slots.end {
            let mut position = [zero; 3];
            let mut d = [zero; 3];
            for axis in 0..3 {
                let x = V::load(source[axis].add(slot));
                position[axis] = x;
                d[axis] = x.sub(x.min(high[axis]).max(low[axis]));
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
            }
            if has(MODE, RADII) {
                own_r2.compress(order, to.r2.add(len));
            }
            if has(MODE, PROXIES) {
                let from = V::count_from(slot as u32);
                V::compress_u32(from, order, to.slot.add(len));
            }
            V::compress_u32(tags, order, to.tag.add(len));
            len += near.count_ones() as usize;
            slot += V::LANES;
        }
    }
    len
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
