//! A stable sort of values that lie in few ascending runs, in memory that may be refused.
//!
//! Cells arrive row by row and set by set, keys subregion by subregion: runs of hundreds of values
//! and more. Adjacent runs are merged in pairs until one is left, so the cost is n · log(runs).
//! The standard library's stable sort uses runs as well, but ends the process when it is refused
//! its buffer.
//!
//! # Memory
//!
//! One spare array as long as the values, and the ends of the runs. A refusal leaves the values
//! untouched, because merging writes to the spare array first.

use nearfield_grid::memory::{Shortage, copied, make_room_for_one};

/// Sorts by `key`; equal values keep their order.
///
/// # Errors
/// [`Shortage`]; the values are then as they were.
///
/// Values that ascend already cost one pass and no memory.
pub(crate) fn sort_runs<T: Copy, K: Ord>(
    values: &mut [T],
    key: impl Fn(&T) -> K,
    what: &'static str,
) -> Result<(), Shortage> {
    let ascends = |values: &[T], at: usize| key(&values[at - 1]) <= key(&values[at]);
    let mut ends = Vec::new();
    for at in 1..=values.len() {
        if at == values.len() || !ascends(values, at) {
            make_room_for_one(&mut ends, what)?;
            ends.push(at);
        }
    }
    if ends.len() <= 1 {
        return Ok(());
    }
    let mut spare = copied(values, what)?;
    let (mut from, mut to) = (&mut *values, &mut spare[..]);
    let mut swapped = false;
    while ends.len() > 1 {
        let mut begin = 0;
        for pair in ends.chunks(2) {
            let (middle, end) = (pair[0], pair[pair.len() - 1]);
            merge(
                &from[begin..middle],
                &from[middle..end],
                &mut to[begin..end],
                &key,
            );
            begin = end;
        }
        let mut number = 0;
        let count = ends.len();
        ends.retain(|_| {
            number += 1;
            number % 2 == 0 || number == count
        });
        (from, to) = (to, from);
        swapped = !swapped;
    }
    if swapped {
        to.copy_from_slice(from);
    }
    Ok(())
}

/// Merges two ascending runs into `merged`, which is as long as both. Of equal values those of the
/// first run come first, which makes the sort stable.
fn merge<T: Copy, K: Ord>(a: &[T], b: &[T], merged: &mut [T], key: &impl Fn(&T) -> K) {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    for place in merged {
        let first = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if key(y) < key(x) => b.next(),
            (Some(_), _) => a.next(),
            (None, _) => b.next(),
        };
        if let Some(&value) = first {
            *place = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_any_lengths_are_sorted_as_the_stable_sort_does() {
        let mut state = 1u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 16
        };
        for len in [0, 1, 2, 3, 7, 100, 1000] {
            for run in [1, 2, 30, 500] {
                let mut values: Vec<(u32, usize)> = (0..len)
                    .map(|at| (at as u32 % run * 3 + random() % 4, at))
                    .collect();
                let mut expected = values.clone();
                expected.sort_by_key(|value| value.0);
                sort_runs(&mut values, |value| value.0, "a test").unwrap();
                assert_eq!(values, expected, "{len} values in runs of {run}");
            }
        }
    }
}
