//! What column_pairs.cu computes the pairs of lists from.

use super::layout::Lattice;
use cudarc::driver::DeviceRepr;

nearfield_shared::shared_structs! {
    /// `ListedPoints` of column_pairs.cuh: the points of lists, whose pairs are each the nearest of
    /// their images.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct ListedPoints {
        /// Of the [box](Lattice::of_box) alone.
        pub(crate) lattice: Lattice,
        /// Rows of the inverse of the box, rounded.
        pub(crate) inverse: [[f32; 3]; 3],
        /// Nothing.
        pub(crate) pad: u32,
        /// Three numbers of every target, in the caller's order and in the precision of the
        /// positions.
        pub(crate) targets: u64,
        /// Of every source.
        pub(crate) sources: u64,
        /// A `u32`.
        pub(crate) far: u64,
    }
}

// SAFETY: `#[repr(C)]` numbers and device addresses without references to the host; programs assert
// that the CUDA source declares the same fields.
unsafe impl DeviceRepr for ListedPoints {}
