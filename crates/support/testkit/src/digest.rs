//! Fingerprints of neighbour lists: the digest and the checksum of the
//! command line.
//!
//! Both depend on the set of pairs in the caller's numbering alone, never on
//! the order an engine found them in, so two engines agree exactly when
//! their lists do.

use std::{collections::TryReserveError, fmt};

use sha2::{Digest as _, Sha256};

/// The SHA-256 of neighbour lists; [`fmt::Display`] writes it as 64
/// hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

/// Takes lists one by one and yields their [`Digest`]: per point, in input
/// order, the count as little-endian u64, then the indices ascending as
/// little-endian u32, one per image.
#[derive(Debug, Clone, Default)]
pub struct Digester {
    hash: Sha256,
    sorted: Vec<u32>,
}

impl Digester {
    /// A digest of no points yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the list of the next point. An ascending list is taken as it is,
    /// any other is sorted in a scratch first.
    ///
    /// # Errors
    /// If memory for the scratch is refused; the list is then not added.
    pub fn push(&mut self, list: &[u32]) -> Result<(), TryReserveError> {
        if list.is_sorted() {
            hash_ascending(&mut self.hash, list);
            return Ok(());
        }
        self.sorted.clear();
        self.sorted.try_reserve_exact(list.len())?;
        self.sorted.extend_from_slice(list);
        self.sorted.sort_unstable();
        hash_ascending(&mut self.hash, &self.sorted);
        Ok(())
    }

    /// The digest of all lists pushed.
    pub fn finish(self) -> Digest {
        Digest(self.hash.finalize().into())
    }
}

/// Hashes a block of indices at a time: a list may be half of the memory.
fn hash_ascending(hash: &mut Sha256, list: &[u32]) {
    const BLOCK: usize = 1024;
    hash.update((list.len() as u64).to_le_bytes());
    let mut bytes = [0; BLOCK * size_of::<u32>()];
    for block in list.chunks(BLOCK) {
        let (words, _) = bytes.as_chunks_mut::<{ size_of::<u32>() }>();
        for (word, index) in words.iter_mut().zip(block) {
            *word = index.to_le_bytes();
        }
        hash.update(&bytes[..size_of_val(block)]);
    }
}

/// The [`Digest`] of `lists`, one per point in input order.
///
/// # Errors
/// If memory to sort a list that does not ascend is refused.
pub fn digest<L: AsRef<[u32]>>(
    lists: impl IntoIterator<Item = L>,
) -> Result<Digest, TryReserveError> {
    let mut digester = Digester::new();
    for list in lists {
        digester.push(list.as_ref())?;
    }
    Ok(digester.finish())
}

/// The wrapping sum of [`pair_hash`] over all pairs of `lists`, one list per
/// point in input order; the order inside a list does not matter. Sums of
/// parts add up (wrapping), so parts can be summed in parallel.
pub fn checksum<L: AsRef<[u32]>>(lists: impl IntoIterator<Item = L>) -> u64 {
    (0_u32..).zip(lists).fold(0, |sum, (target, list)| {
        sum.wrapping_add(list_hash(target, list.as_ref()))
    })
}

/// The share of one target's list in the [`checksum`].
pub fn list_hash(target: u32, list: &[u32]) -> u64 {
    list.iter().fold(0, |sum: u64, &source| {
        sum.wrapping_add(pair_hash(target, source))
    })
}

/// splitmix64 of `target` in the high and `source` in the low half.
pub fn pair_hash(target: u32, source: u32) -> u64 {
    splitmix64(u64::from(target) << 32 | u64::from(source))
}

/// The first output of the generator SplitMix64 (Steele, Lea and Flood
/// 2014, DOI 10.1145/2660193.2660195) seeded with `state`.
pub fn splitmix64(state: u64) -> u64 {
    let mut mixed = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Expected values computed with Python's hashlib from the definition.
    #[test]
    fn the_digest_is_that_of_the_documented_bytes() {
        let lists: [&[u32]; 3] = [&[1, 2], &[0], &[0]];
        assert_eq!(
            digest(lists).unwrap().to_string(),
            "54b0bc515ae8f420d6f3940ffa8c265f0e97498ed3652a61fbe75fb72308c261"
        );
        assert_eq!(
            digest::<&[u32]>([]).unwrap().to_string(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }

    /// Longer than the blocks that are hashed at a time.
    #[test]
    fn a_long_list_is_hashed_as_one() {
        let list: Vec<u32> = (0..5000).map(|n| 3 * n).collect();
        let mut bytes = 5000_u64.to_le_bytes().to_vec();
        bytes.extend(list.iter().flat_map(|index| index.to_le_bytes()));
        assert_eq!(digest([&list]).unwrap().0[..], Sha256::digest(&bytes)[..]);
    }

    #[test]
    fn the_order_inside_a_list_does_not_change_digest_or_checksum() {
        let sorted = [vec![1, 2, 2, 7], vec![0]];
        let mixed = [vec![2, 7, 1, 2], vec![0]];
        assert_eq!(digest(&sorted), digest(&mixed));
        assert_eq!(checksum(&sorted), checksum(&mixed));
    }

    #[test]
    fn a_moved_or_doubled_pair_changes_digest_and_checksum() {
        let lists = [vec![1, 2], vec![0], vec![0]];
        for other in [
            [vec![1], vec![0, 2], vec![0]],
            [vec![1, 2, 2], vec![0], vec![0]],
            [vec![1, 2], vec![], vec![0, 0]],
        ] {
            assert_ne!(digest(&lists), digest(&other));
            assert_ne!(checksum(&lists), checksum(&other));
        }
    }

    // Reference outputs of Vigna's splitmix64.c for the seeds 0 and 1234567.
    #[test]
    fn splitmix64_matches_its_reference() {
        assert_eq!(splitmix64(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(splitmix64(1_234_567), 6_457_827_717_110_365_317);
    }

    #[test]
    fn the_checksum_is_the_sum_over_the_pairs() {
        let lists = [vec![1], vec![0, 3]];
        let pairs = [
            splitmix64(1),
            splitmix64(1 << 32),
            splitmix64((1 << 32) + 3),
        ];
        let sum = pairs.into_iter().fold(0, u64::wrapping_add);
        assert_eq!(checksum(lists), sum);
    }
}
