//! The k nearest of one list, in the order of their distance.
//!
//! What is compared is d², then the index: both as one number of 64 bits, whose order is that of
//! the pair, because d² is not negative. Vectors sort numbers of 32 bits. So a first order is made
//! of the upper bits of d² with the place in the list below them, by a sorting network; only the
//! first k, and those whose upper bits are equal to the last of them, are then compared exactly.
//! They are nearly in order, which is what insertion is fast for.
//!
//! Two images of one source at the same distance are equal pairs, of which it does not matter which
//! is taken: a list names sources.
//!
//! # Long lists
//!
//! A network sorts [`MOST`] numbers. Of longer lists the nearest of the first part are taken
//! together with the next part, and so on; pairs beyond the k-th so far are passed over. Where k is
//! large, or a great many distances are equal, the standard library selects and sorts.

use crate::{
    filter::room::FewRoom,
    simd::{level::SimdLevel, sort::sort_list},
};
use nearfield_grid::memory::{Shortage, make_room};

/// The name of the memory in messages.
const WHAT: &str = "the nearest neighbours of a point";

/// Pairs that are sorted at a time.
const MOST: usize = 128;
/// Bits of a key that hold the place of the pair.
const PLACES: u32 = MOST as u32 - 1;
/// Largest k that is selected so.
const MAX_K: usize = 64;

/// Writes the k nearest of a list to its beginning, nearest first, and returns how many they are.
///
/// # Errors
/// [`Shortage`] where there is no memory for `room`.
pub(super) fn nearest(
    level: SimdLevel,
    k: usize,
    tags: &mut [u32],
    squares: &[f32],
    room: &mut FewRoom,
) -> Result<usize, Shortage> {
    room.prepare(MOST)?;
    if tags.len() <= MOST {
        order(level, squares, &mut room.keys[..tags.len()]);
        let count = as_near(&room.keys[..tags.len()], k);
        let count = finish(k, &room.keys[..count], tags, squares, &mut room.exact);
        put(&room.exact[..count], tags);
        return Ok(count);
    }
    if k <= MAX_K
        && let Some(count) = in_parts(level, k, tags, squares, room)
    {
        return Ok(count);
    }
    by_selection(k, tags, squares, &mut room.exact)
}

/// As [`nearest`] for a long list, by networks. None where too many pairs are as near as the k-th.
fn in_parts(
    level: SimdLevel,
    k: usize,
    tags: &mut [u32],
    squares: &[f32],
    room: &mut FewRoom,
) -> Option<usize> {
    let (mut len, mut limit) = (0, f32::INFINITY);
    for (&tag, &square) in tags.iter().zip(squares) {
        if square > limit {
            continue;
        }
        if len == MOST {
            order(level, &room.squares, &mut room.keys[..MOST]);
            len = as_near(&room.keys, k);
            if len > MOST - MOST / 4 {
                return None;
            }
            let FewRoom { keys, exact, .. } = room;
            // The places first, because pairs are moved over each other.
            for (exact, key) in exact.iter_mut().zip(&keys[..len]) {
                let from = (key & PLACES) as usize;
                let bits = room.squares[from].to_bits();
                *exact = u64::from(bits) << u32::BITS | u64::from(room.tags[from]);
            }
            for (place, pair) in exact[..len].iter().enumerate() {
                room.squares[place] = f32::from_bits((pair >> u32::BITS) as u32);
                room.tags[place] = *pair as u32;
            }
            limit = f32::from_bits(keys[len - 1] | PLACES);
        }
        (room.tags[len], room.squares[len]) = (tag, square);
        len += 1;
    }
    order(level, &room.squares[..len], &mut room.keys[..len]);
    let count = as_near(&room.keys[..len], k);
    let (keys, few) = (&room.keys[..count], &room.tags[..len]);
    let count = finish(k, keys, few, &room.squares, &mut room.exact);
    put(&room.exact[..count], tags);
    Some(count)
}

/// Writes keys of pairs, ordered by the upper bits of d², with the place of the pair below.
fn order(level: SimdLevel, squares: &[f32], keys: &mut [u32]) {
    let squares = &squares[..keys.len()];
    for place in 0..squares.len() {
        keys[place] = squares[place].to_bits() & !PLACES | place as u32;
    }
    sort_list(level, keys);
}

/// How many of the ordered pairs are at most as far as the k-th by their upper bits.
fn as_near(keys: &[u32], k: usize) -> usize {
    if keys.len() <= k {
        return keys.len();
    }
    let (last, mut count) = (keys[k - 1] | PLACES, k);
    while count < keys.len() && keys[count] <= last {
        count += 1;
    }
    count
}

/// Writes d² and index of the k nearest of the ordered pairs in their exact order, and returns how
/// many they are.
fn finish(k: usize, keys: &[u32], tags: &[u32], squares: &[f32], exact: &mut [u64]) -> usize {
    let exact = &mut exact[..keys.len()];
    for at in 0..keys.len() {
        let from = (keys[at] & PLACES) as usize;
        let bits = squares[from].to_bits();
        let pair = u64::from(bits) << u32::BITS | u64::from(tags[from]);
        let mut place = at;
        while place > 0 && exact[place - 1] > pair {
            exact[place] = exact[place - 1];
            place -= 1;
        }
        exact[place] = pair;
    }
    keys.len().min(k)
}

/// As [`nearest`], by the standard library.
fn by_selection(
    k: usize,
    tags: &mut [u32],
    squares: &[f32],
    pairs: &mut Vec<u64>,
) -> Result<usize, Shortage> {
    pairs.clear();
    make_room(pairs, tags.len(), WHAT)?;
    pairs.extend(
        tags.iter()
            .zip(squares)
            .map(|(&tag, square)| u64::from(square.to_bits()) << u32::BITS | u64::from(tag)),
    );
    if pairs.len() > k {
        pairs.select_nth_unstable(k - 1);
        pairs.truncate(k);
    }
    pairs.sort_unstable();
    let count = pairs.len();
    put(pairs, tags);
    Ok(count)
}

/// Writes the indices of pairs to the beginning of a list.
fn put(pairs: &[u64], tags: &mut [u32]) {
    let tags = &mut tags[..pairs.len()];
    for place in 0..pairs.len() {
        tags[place] = pairs[place] as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers without an order, below `bound`.
    fn scattered(seed: u32, bound: u32) -> impl Iterator<Item = u32> {
        let step = |last: &u32| Some(last.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
        std::iter::successors(Some(seed), step).map(move |number| (number >> 8) % bound)
    }

    #[test]
    fn the_nearest_are_those_of_a_sort_for_any_length_and_many_equal_distances() {
        let mut room = FewRoom::default();
        for (case, distances) in [2, 20, 1000, 1 << 23].into_iter().enumerate() {
            for len in [0, 1, 15, 16, 100, 127, 128, 129, 200, 500, 3000] {
                for k in [1, 2, 16, 63, 64, 65, 200, 5000] {
                    let seed = (case * 10_000 + len) as u32;
                    let squares: Vec<f32> = (scattered(seed, distances).take(len))
                        .map(|number| f32::from_bits(0x3f80_0000 + number))
                        .collect();
                    let tags: Vec<u32> = scattered(seed + 7, 1 << 20).take(len).collect();
                    let mut expected: Vec<_> = (squares.iter().map(|d2| d2.to_bits()))
                        .zip(tags.iter().copied())
                        .collect();
                    expected.sort_unstable();
                    expected.truncate(k);
                    for &level in SimdLevel::available() {
                        let mut found = tags.clone();
                        let count = nearest(level, k, &mut found, &squares, &mut room).unwrap();
                        let found = found[..count].iter();
                        let wanted = expected.iter().map(|pair| &pair.1);
                        assert!(found.eq(wanted), "{k} of {len}, {}", level.name());
                    }
                }
            }
        }
    }
}
