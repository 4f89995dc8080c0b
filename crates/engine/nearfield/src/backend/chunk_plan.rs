//! How lists are cut into chunks: as many consecutive targets as fit, no list ever divided.
//!
//! The lengths of all lists are known before the first chunk is written, so the storage of all
//! chunks is decided then: most targets and most pairs of a chunk.

use super::rows::RowRange;

/// Bytes that a chunk takes: `fixed`, and so much for every target and for every pair.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkBytes {
    pub(crate) fixed: u64,
    pub(crate) row: u64,
    pub(crate) entry: u64,
}

/// The longest list, which exceeds the limit by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LongList {
    /// Its place among the lengths.
    pub(crate) slot: usize,
    pub(crate) length: u32,
    /// Bytes of a chunk with this list alone.
    pub(crate) needed: u64,
}

/// Splits `limit` bytes: most targets and most neighbours of a chunk, at least the longest list,
/// so that chunks of about average lists use up both.
///
/// A chunk of t targets and p neighbours takes fixed + row·t + entry·p bytes. With p = t·average
/// that is about t·(row + entry·average), which gives t; the rest of the limit is for entries. If
/// that is less than the longest list needs, entries are given exactly the longest list and targets
/// the rest: at least one, because a single target with that list was found to fit.
pub(crate) fn split(
    lengths: &[u32],
    pairs: u64,
    limit: u64,
    bytes: ChunkBytes,
) -> Result<(usize, u64), LongList> {
    let ChunkBytes { fixed, row, entry } = bytes;
    let targets = lengths.len();
    let longest = lengths
        .iter()
        .enumerate()
        .max_by_key(|(_, length)| **length);
    let Some((slot, &length)) = longest else {
        return Ok((0, 0));
    };
    let longest = u64::from(length);
    let needed = fixed + row + entry * longest;
    if needed > limit {
        return Err(LongList {
            slot,
            length,
            needed,
        });
    }
    let average = row + entry * pairs / targets as u64;
    let rows = (limit / average).saturating_sub(1).max(1);
    let entries_beside = |rows: u64| limit.saturating_sub(row * rows + fixed) / entry;
    let (rows, most) = match entries_beside(rows) {
        most if most >= longest => (rows, most),
        _ => ((limit - entry * longest - fixed) / row, longest),
    };
    let rows = usize::try_from(rows).unwrap_or(targets);
    Ok((rows.min(targets), most.min(pairs)))
}

/// The next chunk: from the first target at `next` or behind it that is not `done`, as many as fit.
/// `next_entry` is the number of its first entry.
///
/// Looks at one length per target, so cutting costs nothing beside writing the lists.
pub(crate) fn cut(
    lengths: &[u32],
    (next, next_entry): (usize, u64),
    (max_targets, max_pairs): (usize, u64),
    done: impl Fn(usize) -> bool,
) -> RowRange {
    let begin = (next..lengths.len()).find(|&slot| !done(slot));
    let begin = begin.unwrap_or(lengths.len());
    let mut pairs = 0;
    let taken = (begin..lengths.len())
        .take(max_targets)
        .take_while(|&slot| {
            let with = pairs + u64::from(lengths[slot]);
            let fits = with <= max_pairs && !done(slot);
            pairs = if fits { with } else { pairs };
            fits
        })
        .count();
    RowRange {
        slots: begin..begin + taken,
        entries: next_entry..next_entry + pairs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_hold_all_lists_in_turn_and_stay_within_their_bytes() {
        let bytes = ChunkBytes {
            fixed: 8,
            row: 16,
            entry: 4,
        };
        let lengths: Vec<u32> = (0..500).map(|k| (k * 7919) % 23).collect();
        let pairs = lengths.iter().map(|&length| u64::from(length)).sum();
        for limit in [8 + 16 + 4 * 22, 200, 1_000, 1 << 20] {
            let most = split(&lengths, pairs, limit, bytes).unwrap();
            let mut next = (0, 0);
            while next.0 < lengths.len() {
                let part = cut(&lengths, next, most, |_| false);
                let (targets, entries) = (part.slots.len(), part.entries.end - part.entries.start);
                assert!(part.slots.start == next.0 && targets > 0, "{part:?}");
                assert!(8 + 16 * targets as u64 + 4 * entries <= limit, "{part:?}");
                next = (part.slots.end, part.entries.end);
            }
            assert_eq!(next, (500, pairs));
        }
        let long = split(&lengths, pairs, 100, bytes).unwrap_err();
        assert_eq!((long.length, long.needed), (22, 112));
        assert_eq!(lengths[long.slot], 22);
        assert_eq!(split(&[], 0, 0, bytes), Ok((0, 0)));
    }
}
