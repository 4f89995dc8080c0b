//! Sorts short arrays of `u32` with vectors.
//!
//! Up to 128 numbers are sorted by a bitonic network in registers. More are divided by a pivot
//! until the parts are that short; dividing compresses the numbers of either side out of a vector.
//! A network has no branch that depends on the numbers, and dividing has one per vector at most.
//!
//! # The network
//!
//! R vectors hold number e in lane e / R of vector e mod R. Numbers that are close to each other
//! in that order lie in different vectors, so more than half of the steps compare whole vectors
//! and move no lanes. At the end the lanes are interleaved into the order of memory. The places
//! behind the last number hold the largest `u32`, which stays there.
//!
//! Bitonic networks: K. E. Batcher, Sorting networks and their applications, AFIPS 1968,
//! doi:10.1145/1468075.1468121.
//!
//! With sixteen lanes a network of 16 numbers has 10 steps of one vector each, one of 64 has 21 of
//! four, and one of 128 has 28 of eight. Ten of them move lanes, in each of these networks. Between
//! two powers of two the larger network is taken; vectors behind the last number cost as much as
//! the others.
//!
//! # Pivots
//!
//! The pivot is the median of sixteen numbers of the array. The standard library sorts a part that
//! it divides unevenly, such as one of many equal numbers, and one that there is no room to divide,
//! so the time is at most proportional to n·log n for any input.
//!
//! # Which of the two
//!
//! Lists of neighbours are short: 32 entries at r = 2 spacings, 113 at r = 3. So nearly all of them
//! are sorted by one network, and dividing serves candidates of whole groups and dense clouds.
//!
//! # Levels
//!
//! Vectors with one lane have no network: the standard library sorts there. All levels give the
//! same result, because equal numbers cannot be told apart.

use super::{
    LANES, Simd, Task,
    level::SimdLevel,
    vector::{Compress, Vector},
    with_level,
};

/// Maximum number of numbers that a network sorts.
const NETWORK: usize = 128;

/// Maximum number of numbers that are divided on the stack; the standard library sorts longer
/// lists, unless the caller has room for them.
const ON_STACK: usize = 1024;

/// Parts that wait to be sorted while another is: each division leaves one.
const MAX_PARTS: usize = 32;

/// A sort of one array, compiled for a level.
///
/// Numbers are written nowhere but to `numbers` and `room`.
pub(crate) struct Sort<'a> {
    /// The array, sorted afterwards.
    pub(crate) numbers: &'a mut [u32],
    /// Room to divide `numbers` in. If it is shorter than they are and a vector more, it is not
    /// used.
    pub(crate) room: &'a mut [u32],
}

impl Task for Sort<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Self { numbers, room } = self;
        if S::Single::LANES == 1 {
            return numbers.sort_unstable();
        }
        // SAFETY: the caller guarantees the level.
        unsafe {
            if numbers.len() <= NETWORK {
                small::<S::Single>(numbers);
            } else {
                large::<S>(numbers, room);
            }
        }
    }
}

/// Sorts `numbers`; no memory is allocated. The processor has the level.
pub(crate) fn sort_list(level: SimdLevel, numbers: &mut [u32]) {
    if numbers.len() <= NETWORK {
        let room = &mut [];
        with_level(level, Sort { numbers, room });
    } else if numbers.len() <= ON_STACK {
        let room = &mut [0; ON_STACK + LANES];
        with_level(level, Sort { numbers, room });
    } else {
        numbers.sort_unstable();
    }
}

/// Sorts more numbers than a network can.
///
/// Parts that are still to be sorted wait on a small stack of their own, so nothing recurses and
/// nothing is allocated.
///
/// # Safety
/// The processor has the level `S`.
#[inline(always)]
unsafe fn large<S: Simd>(numbers: &mut [u32], room: &mut [u32]) {
    if room.len() < numbers.len() + LANES {
        return numbers.sort_unstable();
    }
    let mut parts = [(0, 0); MAX_PARTS];
    parts[0] = (0, numbers.len());
    let mut waiting = 1;
    while waiting > 0 {
        waiting -= 1;
        let (begin, end) = parts[waiting];
        let part = &mut numbers[begin..end];
        if part.len() <= NETWORK {
            let room = &mut [];
            // SAFETY: guaranteed by the caller.
            unsafe {
                S::call(Sort {
                    numbers: part,
                    room,
                })
            };
            continue;
        }
        // SAFETY: guaranteed by the caller.
        let low = unsafe { divide::<S::Single>(part, room) };
        let is_even = low.min(part.len() - low) >= part.len() / 32;
        if !is_even || waiting + 2 > MAX_PARTS {
            part.sort_unstable();
            continue;
        }
        // The shorter part first, so that few wait.
        let (below, above) = ((begin, begin + low), (begin + low, end));
        let lower_first = 2 * low <= end - begin;
        parts[waiting] = if lower_first { above } else { below };
        parts[waiting + 1] = if lower_first { below } else { above };
        waiting += 2;
    }
}

/// Moves the numbers that are not above a pivot before those that are; returns how many they are.
///
/// Numbers that stay below are compressed to the front of the same array, behind the vectors that
/// were read, and the others into `room`, from where they are copied back at the end.
///
/// # Safety
/// The processor has the vector's level. `room` is longer than `numbers` by [`LANES`].
#[inline(always)]
unsafe fn divide<V: Compress>(numbers: &mut [u32], room: &mut [u32]) -> usize {
    let len = numbers.len();
    let mut sample = [0; 16];
    for (k, sample) in sample.iter_mut().enumerate() {
        *sample = numbers[k * len / 16];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { small::<V>(&mut sample) };
    let pivot = sample[7];
    let (mut low, mut high, mut k) = (0, 0, 0);
    let (begin, above) = (numbers.as_mut_ptr(), room.as_mut_ptr());
    // SAFETY: the caller guarantees the level. Vectors are read inside the numbers. As many numbers
    // as were kept at most have been read, so a vector behind those kept ends where the last one
    // that was read ends, and `room` has a vector more than there are numbers.
    unsafe {
        while k + V::LANES <= len {
            let lanes = V::load_u32(begin.add(k));
            let is_above = V::above(lanes, pivot) & (u32::MAX >> (32 - V::LANES));
            V::compress_u32(lanes, V::order(is_above), above.add(high));
            let is_below = !is_above & (u32::MAX >> (32 - V::LANES));
            V::compress_u32(lanes, V::order(is_below), begin.add(low));
            high += is_above.count_ones() as usize;
            low += is_below.count_ones() as usize;
            k += V::LANES;
        }
    }
    while k < len {
        let number = numbers[k];
        if number > pivot {
            room[high] = number;
            high += 1;
        } else {
            numbers[low] = number;
            low += 1;
        }
        k += 1;
    }
    numbers[low..].copy_from_slice(&room[..high]);
    low
}

/// Sorts at most [`NETWORK`] numbers.
///
/// # Safety
/// The processor has the vector's level.
#[inline(always)]
unsafe fn small<V: Compress>(numbers: &mut [u32]) {
    let vectors = numbers.len().div_ceil(V::LANES);
    // SAFETY: guaranteed by the caller; the network has room for all numbers.
    unsafe {
        if vectors <= 1 {
            network::<V, 1>(numbers);
        } else if vectors <= 2 {
            network::<V, 2>(numbers);
        } else if vectors <= 4 {
            network::<V, 4>(numbers);
        } else if vectors <= 8 || 8 * V::LANES == NETWORK {
            network::<V, 8>(numbers);
        } else if vectors <= 16 || 16 * V::LANES == NETWORK {
            network::<V, 16>(numbers);
        } else {
            network::<V, 32>(numbers);
        }
    }
}

/// Sorts at most `R` vectors full of numbers, and at most [`NETWORK`].
///
/// First every lane is sorted by itself, as a column of R numbers; then sequences of two lanes are
/// merged, of four, and so on. A merge begins by comparing number k from the front with number k
/// from the back, which makes both halves bitonic without reversing one of them.
///
/// # Safety
/// The processor has the vector's level.
#[inline(always)]
unsafe fn network<V: Compress, const R: usize>(numbers: &mut [u32]) {
    let len = numbers.len();
    let mut buffer = [u32::MAX; NETWORK];
    buffer[..len].copy_from_slice(numbers);
    let memory = buffer.as_mut_ptr();
    // SAFETY: the caller guarantees the level. A network of R vectors is chosen where they are not
    // longer than the buffer.
    unsafe {
        let mut v = [V::load_u32(memory); R];
        for r in 1..R {
            v[r] = V::load_u32(memory.add(r * V::LANES));
        }
        // Columns: sequences of R numbers in one lane.
        let mut block = 2;
        while block <= R {
            let mut first = 0;
            while first < R {
                for k in 0..block / 2 {
                    order::<V, R>(&mut v, first + k, first + block - 1 - k);
                }
                first += block;
            }
            within_columns::<V, R>(&mut v, block / 4);
            block *= 2;
        }
        // Sequences of two lanes and more.
        let mut width = 2;
        while width <= V::LANES {
            let (flip, half) = (width as u32 - 1, width as u32 / 2);
            for k in 0..R.div_ceil(2) {
                let (a, b) = (v[k], v[R - 1 - k]);
                let (other_a, other_b) = (V::exchange(b, flip), V::exchange(a, flip));
                v[k] = V::by_bit(V::min_u32(a, other_a), V::max_u32(a, other_a), half);
                v[R - 1 - k] = V::by_bit(V::min_u32(b, other_b), V::max_u32(b, other_b), half);
            }
            let mut apart = width as u32 / 4;
            while apart > 0 {
                for r in 0..R {
                    let other = V::exchange(v[r], apart);
                    v[r] = V::by_bit(V::min_u32(v[r], other), V::max_u32(v[r], other), apart);
                }
                apart /= 2;
            }
            within_columns::<V, R>(&mut v, R / 2);
            width *= 2;
        }
        // From columns to rows: a perfect shuffle per bit of R.
        let mut bits = R;
        while bits > 1 {
            let from = v;
            for k in 0..R / 2 {
                [v[2 * k], v[2 * k + 1]] = V::interleave(from[k], from[k + R / 2]);
            }
            bits /= 2;
        }
        for r in 0..R {
            V::store_u32(v[r], memory.add(r * V::LANES));
        }
    }
    numbers.copy_from_slice(&buffer[..len]);
}

/// Merges the two halves of bitonic sequences in columns, from numbers `apart` vectors apart on.
///
/// # Safety
/// The processor has the vector's level.
#[inline(always)]
unsafe fn within_columns<V: Compress, const R: usize>(v: &mut [V::Ints; R], mut apart: usize) {
    while apart > 0 {
        for k in 0..R {
            if k & apart == 0 {
                // SAFETY: guaranteed by the caller.
                unsafe { order::<V, R>(v, k, k + apart) };
            }
        }
        apart /= 2;
    }
}

/// Puts the smaller numbers of two vectors into `a`, the larger into `b`.
///
/// # Safety
/// The processor has the vector's level.
#[inline(always)]
unsafe fn order<V: Compress, const R: usize>(v: &mut [V::Ints; R], a: usize, b: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { (v[a], v[b]) = (V::min_u32(v[a], v[b]), V::max_u32(v[a], v[b])) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfield_testkit::random::Random;

    /// Sorts with room and without at a level, and compares with the standard library.
    fn check(level: SimdLevel, numbers: &[u32]) {
        let mut expected = numbers.to_vec();
        expected.sort_unstable();
        for room in [0, numbers.len() + LANES] {
            let mut sorted = numbers.to_vec();
            let task = Sort {
                numbers: &mut sorted,
                room: &mut vec![7; room],
            };
            with_level(level, task);
            assert_eq!(sorted, expected, "{level:?}, room {room}, {numbers:?}");
        }
        // The neighbours of a list in memory stay as they are.
        let mut between = [&[9, 9], numbers, &[5, 5]].concat();
        let last = between.len() - 2;
        sort_list(level, &mut between[2..last]);
        assert_eq!(between[2..last], expected[..], "{level:?}");
        assert!(between[..2] == [9, 9] && between[last..] == [5, 5]);
    }

    #[test]
    fn every_level_sorts_every_length() {
        let mut random = Random::new(3);
        for &level in SimdLevel::available() {
            let longer = [200, 255, 256, 257, 500, 1_000, 1_024, 1_025, 5_000, 70_000];
            for len in (0..=2 * NETWORK + 1).chain(longer) {
                let numbers: Vec<u32> = (0..len).map(|_| random.below(1 << 32) as u32).collect();
                check(level, &numbers);
            }
        }
    }

    #[test]
    fn order_equality_and_extremes_do_no_harm() {
        let mut random = Random::new(4);
        for &level in SimdLevel::available() {
            for len in [1usize, 16, 31, 100, 128, 129, 300, 2_000] {
                let number = |k: usize| k as u32;
                check(level, &(0..len).map(number).collect::<Vec<_>>());
                check(level, &(0..len).rev().map(number).collect::<Vec<_>>());
                check(level, &vec![u32::MAX; len]);
                check(level, &vec![0; len]);
                let few: Vec<u32> = (0..len).map(|_| random.below(3) as u32).collect();
                check(level, &few);
                let extremes = few.iter().map(|&k| [0, u32::MAX, 1 << 31][k as usize]);
                check(level, &extremes.collect::<Vec<_>>());
                // Runs, as lists come from the grid.
                let runs = (0..len).map(|k| (k % 13 * 1_000 + k / 13) as u32);
                check(level, &runs.collect::<Vec<_>>());
            }
        }
    }

    /// Networks are right for all inputs if they are for all inputs of zeros and ones; here all of
    /// up to sixteen numbers, and random ones of more.
    #[test]
    fn networks_sort_zeros_and_ones() {
        let mut random = Random::new(5);
        for &level in SimdLevel::available() {
            for bits in 0..1u32 << 16 {
                let mut numbers: [u32; 16] = std::array::from_fn(|k| bits >> k & 1);
                let (numbers, room) = (&mut numbers[..], &mut [][..]);
                with_level(level, Sort { numbers, room });
                assert!(numbers.is_sorted(), "{level:?}: {bits:b}");
            }
            for len in [24, 32, 48, 64, 96, 128] {
                for _ in 0..2_000 {
                    let ones = random.below(len as u64 + 1);
                    let one = |random: &mut Random| u32::from(random.below(len as u64) < ones);
                    let numbers: Vec<u32> = (0..len).map(|_| one(&mut random)).collect();
                    let mut sorted = numbers.clone();
                    let (numbers, room) = (&mut sorted[..], &mut [][..]);
                    with_level(level, Sort { numbers, room });
                    assert!(numbers.is_sorted(), "{level:?}");
                }
            }
        }
    }
}
