//! Targets in another order than that of the cells, as points are that were
//! [named](super::NamedPoints) by their indices: walks find the same pairs for them. For the tests
//! of `on_host`.

use crate::launch::Points;

/// All points of a sorted set, far apart from one to the next.
pub(super) struct Named<T> {
    /// Position, and the caller's index as bits.
    pub(super) at: Vec<[f32; 4]>,
    wraps: Vec<[i32; 4]>,
    given: Vec<[T; 3]>,
    /// The place of each among the sorted points.
    slots: Vec<u32>,
}

impl<T: Copy> Named<T> {
    /// Of sorted points; `at` may be longer.
    pub(super) fn new(at: &[[f32; 4]], wraps: &[[i32; 4]], given: &[[T; 3]]) -> Self {
        let count = given.len();
        // Every place once, because the step has no divisor in common with their number.
        let step = (count / 2..).find(|&step| greatest_divisor(step, count) == 1);
        let step = step.unwrap_or(1);
        let slots: Vec<usize> = (0..count).map(|k| (k * step + 1) % count).collect();
        Self {
            at: slots.iter().map(|&slot| at[slot]).collect(),
            wraps: slots.iter().map(|&slot| wraps[slot]).collect(),
            given: slots.iter().map(|&slot| given[slot]).collect(),
            slots: slots.iter().map(|&slot| slot as u32).collect(),
        }
    }

    /// The targets of a walk: `of` is the set as it is sorted.
    pub(super) fn layout(&self, of: Points) -> Points {
        let wraps = self.wraps.as_ptr() as u64;
        Points {
            at: self.at.as_ptr() as u64,
            wraps: if of.wraps == 0 { 0 } else { wraps },
            given: self.given.as_ptr() as u64,
            slots: self.slots.as_ptr() as u64,
            ..of
        }
    }
}

/// The greatest common divisor.
fn greatest_divisor(a: usize, b: usize) -> usize {
    if b == 0 {
        a
    } else {
        greatest_divisor(b, a % b)
    }
}
