//! The inner loops in plain Rust: the definition the vector versions are tested against.

use super::{Channels, Gather, Select, Simd, Tag, Task, squared};
use crate::candidates::Candidates;

/// Plain Rust.
pub(super) struct Scalar;

impl Simd for Scalar {
    #[inline(always)]
    unsafe fn gather(args: &Gather<'_>, out: &mut Candidates) {
        for slot in args.slots.clone() {
            let position = args.points.position(slot);
            if box_distance2(position, args) <= args.r2 {
                let tag = match args.tag {
                    Tag::Index => args.points.index()[slot],
                    Tag::Slot => slot as u32,
                };
                out.push(position, tag);
                if args.shifted {
                    out.set_last_shift(args.shift);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn select<const SHIFTED: bool, const HALF: bool>(
        args: &Select,
        candidates: &Candidates,
        list: *mut u32,
    ) -> usize {
        let mut found = 0;
        for k in 0..candidates.len() {
            let d = difference::<SHIFTED>(args, candidates, k);
            let tag = candidates.tag(k);
            let wanted = match (HALF, SHIFTED) {
                (true, _) => candidates.rank(k) > args.own_tag,
                (false, true) => k != args.own_place,
                (false, false) => tag != args.own_tag,
            };
            if wanted && squared(d) <= args.r2 {
                // SAFETY: `found` never exceeds the number of candidates.
                unsafe { list.add(found).write(tag) };
                found += 1;
            }
        }
        found
    }

    #[inline(always)]
    unsafe fn pack<const SHIFTED: bool>(
        args: &Select,
        candidates: &Candidates,
        channels: Channels,
        packed: Channels,
    ) -> usize {
        let mut found = 0;
        for k in 0..candidates.len() {
            let d = difference::<SHIFTED>(args, candidates, k);
            let d2 = squared(d);
            let itself = match SHIFTED {
                true => k == args.own_place,
                false => candidates.tag(k) == args.own_tag,
            };
            if d2 <= args.r2 && !itself {
                for (channel, value) in [d[0], d[1], d[2], d2].into_iter().enumerate() {
                    // SAFETY: the caller's promise.
                    unsafe { packed.at(channel, found).write(value) };
                }
                for channel in 0..channels.count {
                    // SAFETY: the caller's promise.
                    unsafe { *packed.at(4 + channel, found) = *channels.at(channel, k) };
                }
                found += 1;
            }
        }
        found
    }

    unsafe fn call<T: Task>(task: T) {
        // SAFETY: every processor has this level.
        unsafe { task.run::<Self>() }
    }
}

/// Displacement from the target to candidate `k`.
#[inline(always)]
fn difference<const SHIFTED: bool>(args: &Select, candidates: &Candidates, k: usize) -> [f32; 3] {
    let mut d = candidates.position(k);
    for axis in 0..3 {
        d[axis] -= args.target[axis];
        if SHIFTED {
            d[axis] += candidates.shift(k)[axis];
        }
    }
    d
}

/// Squared distance between a position and the box of the targets, as the pair test would round
/// it for the nearest target the box could hold.
#[inline(always)]
fn box_distance2(position: [f32; 3], args: &Gather<'_>) -> f32 {
    let mut d = [0.0; 3];
    for axis in 0..3 {
        let below = (position[axis] - args.high[axis]) + args.shift[axis];
        let above = (position[axis] - args.low[axis]) + args.shift[axis];
        d[axis] = below.max(-above).max(0.0);
    }
    squared(d)
}
