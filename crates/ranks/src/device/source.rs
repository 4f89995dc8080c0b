//! The source of the kernels for points of ranks, and the structs that they take.

use super::constants::{self, MAX_COLUMNS};
use nearfield::device::programs::{KernelArgument, KernelLattice, Program};
use nearfield_shared::{Header, Source, shared_structs};

pub(super) const COLUMNS: usize = MAX_COLUMNS as usize;

shared_structs! {
    /// `Classes` of places.cu.
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Classes {
        pub(super) table: u64,
        pub(super) low: [i64; 3],
        pub(super) dims: [u32; 3],
        pub(super) shift: u32,
    }

    /// `Lists` of places.cu.
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Lists {
        pub(super) masks: u64,
        pub(super) classes: u32,
        pub(super) words: u32,
    }

    /// `Columns` of places.cu.
    #[derive(Debug, Clone, Copy, Default)]
    pub(super) struct Columns {
        pub(super) from: [u64; COLUMNS],
        pub(super) to: [u64; COLUMNS],
        pub(super) words: [u32; COLUMNS],
        pub(super) first: [u32; COLUMNS],
        pub(super) count: u32,
        pub(super) all: u32,
    }
}

// SAFETY: plain numbers, as places.cu declares them: its program asserts it.
unsafe impl KernelArgument for Classes {}
// SAFETY: as above.
unsafe impl KernelArgument for Lists {}
// SAFETY: as above.
unsafe impl KernelArgument for Columns {}

/// The points of a rank (crate `nearfield-ranks`): which of them others need, and arrays of some.
pub const PLACES: Source = Source {
    name: "places",
    text: include_str!("../../../../kernels/cuda/ranks/places.cu"),
    headers: &[
        Header::new("ranks.cuh", constants::HEADER),
        KernelLattice::HEADERS[0],
        KernelLattice::HEADERS[1],
        KernelLattice::HEADERS[2],
    ],
    layouts: &[Classes::LAYOUT, Lists::LAYOUT, Columns::LAYOUT],
    launches_children: false,
    kernels: &[
        "survey",
        "survey_changed",
        "survey_count",
        "survey_scan",
        "survey_write",
        "split_count",
        "split_write",
        "gather",
        "gather_rows",
        "refill",
        "combine",
        "add_counts",
    ],
};

/// The program of the kernels for points of ranks, for checks and for caches that are filled in
/// advance.
pub fn programs() -> Vec<Program> {
    vec![Program::from(&PLACES)]
}
