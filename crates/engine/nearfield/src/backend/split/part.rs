//! The targets of a backend, by the parts of their bricks.
//!
//! A part is a byte: the number of a subregion, and [`OF_CPU`] for bricks of the CPU backend. So
//! the parts of a backend are a range, which loops over cells test by two comparisons.
//!
//! A map of a million bricks takes a mebibyte. There are at most 64 subregions, so their numbers
//! leave the bit of the CPU backend free.

use super::planned::{BrickPlan, OF_CPU};
use nearfield_cpu::{Share, Spent};
use std::sync::atomic::{AtomicBool, Ordering};

/// The targets in bricks of some parts.
///
/// `taken` is by target in the caller's order and is set for every target that was searched for;
/// `spent` gathers their time by part, for the controller.
pub(crate) fn share<'a>(
    planned: &'a BrickPlan,
    taken: &'a [AtomicBool],
    spent: &'a Spent,
    parts: (u8, u8),
) -> Share<'a> {
    Share {
        bricks: planned.parts(),
        parts,
        taken,
        spent,
    }
}

/// The parts of the CPU backend, and those of the device.
pub(crate) const PARTS_OF_CPU: (u8, u8) = (OF_CPU, u8::MAX);
pub(crate) const PARTS_OF_DEVICE: (u8, u8) = (0, OF_CPU - 1);

/// Whether the CPU backend has a target's result.
///
/// Relaxed, because it is asked after the pool has ended its part: the end of the part orders the
/// marks before the question.
pub(crate) fn is_taken(taken: &AtomicBool) -> bool {
    taken.load(Ordering::Relaxed)
}
