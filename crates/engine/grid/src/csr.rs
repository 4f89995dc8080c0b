//! Compressed sparse rows: the plain form of neighbour lists that other libraries take.
//!
//! Lists of an engine lie in storage with gaps, because every worker writes its own chunk.
//! Sparse-matrix libraries, files and Python want them without gaps, as monotone offsets over one
//! array. The conversion is a copy, so it is made only when it is asked for.
//!
//! **Invariant:** offsets start with 0, never fall, and end with the number of indices.

/// Neighbour lists with monotone offsets: row `i` is `indices[offsets[i]..offsets[i + 1]]`.
///
/// SciPy, cuSPARSE and most graph libraries take this form; an offset is 64 bits, because lists of
/// a million points may have more than 2³² entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Csr {
    /// One offset per row and one behind the last: `rows + 1` values, the first is 0.
    pub offsets: Vec<u64>,
    /// The rows one after the other.
    pub indices: Vec<u32>,
}

impl Csr {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Row `row`; empty when there is no such row.
    pub fn row(&self, row: usize) -> &[u32] {
        match (self.offsets.get(row), self.offsets.get(row + 1)) {
            (Some(&begin), Some(&end)) => &self.indices[begin as usize..end as usize],
            _ => &[],
        }
    }
}

/// Memory that lists of a device are copied to, in the caller's order: list `i` is
/// `entries[start[i]..start[i] + count[i]]`. Unlike in [`Csr`] starts need not rise, and other
/// entries may lie between lists.
#[derive(Debug)]
pub struct HostLists<'a> {
    /// First entry of every list.
    pub start: &'a mut [u64],
    /// Length of every list.
    pub count: &'a mut [u32],
    /// All entries.
    pub entries: &'a mut [u32],
}
