//! CUDA texts that pair kernels and sums over all pairs are compiled with.

use nearfield_shared::Header;

/// Functions of `f32` that are fast and inexact.
pub const FAST: Header = Header::new(
    "fast.cuh",
    include_str!("../../../../kernels/cuda/fast.cuh"),
);

/// Numbers, arrays, tuples and functions of kernels that are translated from Rust.
pub const SUBSET: &str = concat!(
    include_str!("../../../../kernels/cuda/pairs/subset.cuh"),
    include_str!("../../../../kernels/cuda/pairs/values.cuh")
);

nearfield_shared::constants! {
    /// A number of sums over all pairs. This text is generated: see
    /// crates/engine/pairs/src/texts.rs.
    header TILE_TEXT in nf;
    numbers {
        /// Sources that are added up one by one before their sum is added to the result, on every
        /// backend.
        ALL_PAIRS_TILE = 128;
    }
}

/// The number of sources in a tile of a sum over all pairs.
pub const SUM_TILE: Header = Header::new("sum_tile.cuh", TILE_TEXT);
