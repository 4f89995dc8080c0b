//! The k nearest of the pairs of one target.
//!
//! Pairs are compared by d², then by the index of the source, then by image, so the result depends
//! on the points alone. Pairs are collected and the k smallest selected at the end of the target,
//! or in between where there are a great many, so that memory stays within a few times k.
//!
//! Lists in single precision need neither displacement nor image: d² and index then are one number
//! of 64 bits, whose order is that of the pair, because d² is not negative. Two images of a source
//! at the same distance are equal numbers, and it does not matter which of them stands first.

use crate::contract::Image;
use nearfield_grid::memory::{Shortage, make_room_for_one};
use nearfield_pairs::Pair;
use std::cmp::Ordering;

/// Pairs above twice k that are collected before those beyond the k nearest are dropped.
const SLACK: usize = 1 << 10;
/// The name of the memory in messages.
const WHAT: &str = "the nearest neighbours of a point";

/// A pair of the target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Near {
    /// Its squared distance in the precision of the search.
    pub(crate) squared: f64,
    /// The source.
    pub(crate) index: u32,
    /// The image of the source.
    pub(crate) image: Image,
    /// Its geometry.
    pub(crate) pair: Pair,
}

impl Near {
    /// By distance, then index, then image.
    fn order(&self, other: &Self) -> Ordering {
        (self.squared.total_cmp(&other.squared))
            .then_with(|| self.index.cmp(&other.index))
            .then_with(|| self.image.cmp(&other.image))
    }
}

/// Pairs of one target, collected in one of two forms.
///
/// One of them is used per search: keys where indices are all that is handed on, pairs otherwise.
/// Memory is kept from target to target.
#[derive(Debug, Default)]
pub(crate) struct Nearest {
    /// Bits of d² above, the index below.
    keys: Vec<u64>,
    /// With geometry, or in double precision.
    pairs: Vec<Near>,
}

impl Nearest {
    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<u64>() * self.keys.capacity() + size_of::<Near>() * self.pairs.capacity()
    }

    /// Begins a target.
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.pairs.clear();
    }

    /// Adds sources with their squared distances, at the places `kept`.
    pub(crate) fn add_keys(
        &mut self,
        k: usize,
        sources: &[u32],
        squares: &[f32],
        kept: &[u32],
    ) -> Result<(), Shortage> {
        if (self.keys.try_reserve(kept.len())).is_err() {
            return Err(Shortage::of::<u64>(self.keys.len() + kept.len(), WHAT));
        }
        self.keys.extend(kept.iter().map(|&at| {
            let bits = squares[at as usize].to_bits();
            u64::from(bits) << u32::BITS | u64::from(sources[at as usize])
        }));
        if self.keys.len() > 2 * k + SLACK {
            self.keys.select_nth_unstable(k - 1);
            self.keys.truncate(k);
        }
        Ok(())
    }

    /// Adds a pair.
    pub(crate) fn add(&mut self, k: usize, pair: Near) -> Result<(), Shortage> {
        make_room_for_one(&mut self.pairs, WHAT)?;
        self.pairs.push(pair);
        if self.pairs.len() > 2 * k + SLACK {
            self.pairs.select_nth_unstable_by(k - 1, Near::order);
            self.pairs.truncate(k);
        }
        Ok(())
    }

    /// The k nearest of the keys, in order.
    pub(crate) fn selected_keys(&mut self, k: usize) -> &[u64] {
        if self.keys.len() > k {
            self.keys.select_nth_unstable(k - 1);
            self.keys.truncate(k);
        }
        self.keys.sort_unstable();
        &self.keys
    }

    /// The k nearest of the pairs, in order.
    pub(crate) fn selected(&mut self, k: usize) -> &[Near] {
        if self.pairs.len() > k {
            self.pairs.select_nth_unstable_by(k - 1, Near::order);
            self.pairs.truncate(k);
        }
        self.pairs.sort_unstable_by(Near::order);
        &self.pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_select_the_same_of_many_equal_distances() {
        for k in [1, 3, 10, 700, 5000] {
            let mut nearest = Nearest::default();
            nearest.clear();
            let all: Vec<(f32, u32)> = (0..4000u32)
                .map(|i| ((i * 7919 % 13) as f32 * 0.25, i * 31 % 4000))
                .collect();
            for part in all.chunks(100) {
                let (squares, sources): (Vec<f32>, Vec<u32>) = part.iter().copied().unzip();
                let kept: Vec<u32> = (0..part.len() as u32).collect();
                nearest.add_keys(k, &sources, &squares, &kept).unwrap();
                for &(d2, index) in part {
                    let pair = Pair { d: [0.0; 3], d2 };
                    let (squared, image) = (d2.into(), [0; 3]);
                    let near = Near {
                        squared,
                        index,
                        image,
                        pair,
                    };
                    nearest.add(k, near).unwrap();
                }
            }
            let mut expected = all.clone();
            expected.sort_by(|a, b| a.partial_cmp(b).unwrap());
            expected.truncate(k);
            let keys = nearest.selected_keys(k).iter().map(|key| *key as u32);
            assert!(keys.eq(expected.iter().map(|pair| pair.1)), "{k}");
            let pairs = nearest.selected(k).iter().map(|near| near.index);
            assert!(pairs.eq(expected.iter().map(|pair| pair.1)), "{k}");
        }
    }
}
