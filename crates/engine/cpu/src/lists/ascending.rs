//! Ascending lists, from candidates that ascend.
//!
//! The targets of a group share their candidates, and a list keeps the order of the candidates that
//! it is selected from. So the candidates of a group are sorted by the caller's index once, before
//! they are tested, and every list ascends without further sorting. A group of the lattice with r =
//! 2 spacings has 90 candidates and lists of 268 entries together.
//!
//! Sorting each list when it has been written would sort three times as many numbers at r = 2, and
//! eight times as many at r = 3 (27 targets with 363 candidates and 3,050 entries).
//!
//! # Keys
//!
//! A key is the index, and below it the number of the candidate, in one `u32`: vectors sort those
//! ([`crate::simd::sort`]), and coordinates follow by the numbers. Candidates that ascend already,
//! as they do where the caller keeps points in the order of cells, are left where they are.
//!
//! # Lists that are sorted one by one
//!
//! Around a periodic box the number of a target among its candidates counts, so candidates that
//! carry image vectors stay in place, and so do those that are decided in double precision. A key
//! may also not fit 32 bits: a group of 1,000 candidates among more than 4 million points. Each
//! list is then sorted when it has been selected, while it is in the cache.
//!
//! **Invariant:** candidates are moved whole, with every array that their mode has, so the lists of
//! a group hold the same sources as before.

use crate::{
    candidates::{
        aligned::Aligned,
        arrays::Candidates,
        groups::Group,
        mode::{RADII, SHIFTED, has},
        scratch::Scratch,
        walk::Walk,
    },
    simd::{LANES, Simd, Task, level::SimdLevel, sort::Sort, with_level},
};
use nearfield_grid::memory::Shortage;

/// Sorts the candidates of a group by the caller's index; false if its lists have to be sorted.
///
/// # Errors
/// [`Shortage`] if memory for sorting is refused.
///
/// The candidates in `scratch` are those of `group`.
pub(super) fn ascend(
    level: SimdLevel,
    walk: &Walk<'_>,
    group: &Group,
    scratch: &mut Scratch,
) -> Result<bool, Shortage> {
    if has(group.mode, SHIFTED) || walk.double().is_some() {
        return Ok(false);
    }
    let mut ascends = Ok(false);
    let task = Ascend {
        radii: has(group.mode, RADII),
        candidates: &mut scratch.candidates,
        ordered: &mut scratch.ordered,
        keys: &mut scratch.keys,
        ascends: &mut ascends,
    };
    with_level(level, task);
    ascends
}

/// The sort, compiled for a level as a function of its own: lists in every mode and for every sink
/// call the same one.
struct Ascend<'a> {
    /// Candidates carry radii.
    radii: bool,
    /// The candidates.
    candidates: &'a mut Candidates,
    /// Where they are written in order; then both are swapped.
    ordered: &'a mut Candidates,
    /// Room for keys.
    keys: &'a mut Aligned<u32>,
    /// The result.
    ascends: &'a mut Result<bool, Shortage>,
}

impl Task for Ascend<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Self {
            radii,
            candidates,
            ordered,
            keys,
            ascends,
        } = self;
        // SAFETY: guaranteed by the caller.
        *ascends = unsafe { order::<S>(radii, candidates, ordered, keys) };
    }
}

/// As [`ascend`].
///
/// # Safety
/// The processor has the level `S`.
#[inline(always)]
unsafe fn order<S: Simd>(
    radii: bool,
    candidates: &mut Candidates,
    ordered: &mut Candidates,
    keys: &mut Aligned<u32>,
) -> Result<bool, Shortage> {
    let len = candidates.len();
    keys.grow(2 * (len + LANES))?;
    let (keys, room) = keys.split_at_mut(len);
    let tags = &candidates.tags()[..len];
    keys.copy_from_slice(tags);
    // Without an early end, which would keep the compiler from using vectors.
    let (mut descents, mut union) = (0, 0);
    for (&key, &next) in keys.iter().zip(&keys[1.min(len)..]) {
        descents += u32::from(key > next);
        union |= key | next;
    }
    if descents == 0 {
        return Ok(true);
    }
    let bits = usize::BITS - (len - 1).leading_zeros();
    if union.leading_zeros() < bits {
        return Ok(false);
    }
    for (number, key) in keys.iter_mut().enumerate() {
        *key = *key << bits | number as u32;
    }
    let numbers = &mut *keys;
    // SAFETY: guaranteed by the caller.
    unsafe { S::call(Sort { numbers, room }) };
    ordered.clear(false, len)?;
    let ([x, y, z], to) = (candidates.axes(), ordered.arrays_mut());
    let number = |key: u32| (key & ((1 << bits) - 1)) as usize;
    // SAFETY: `ordered` has room for as many candidates, and the numbers in the keys are those of
    // candidates.
    unsafe {
        for (k, &key) in keys.iter().enumerate() {
            let from = number(key);
            *to.position[0].add(k) = *x.get_unchecked(from);
            *to.position[1].add(k) = *y.get_unchecked(from);
            *to.position[2].add(k) = *z.get_unchecked(from);
            *to.tag.add(k) = *tags.get_unchecked(from);
        }
        if radii {
            let r2 = candidates.r2s();
            for (k, &key) in keys.iter().enumerate() {
                *to.r2.add(k) = *r2.get_unchecked(number(key));
            }
        }
        ordered.set_len(len);
    }
    ordered.seal(if radii { RADII } else { 0 });
    std::mem::swap(candidates, ordered);
    Ok(true)
}
