//! The cells of a lattice, for kernels of other crates.

use super::{
    layout::Lattice,
    sources::{CELLS, CONSTANTS, CONTRACT},
};
use crate::handles::KernelArgument;
use nearfield_grid as grid;
use nearfield_shared::Header;

/// The cells of a lattice as kernels of other crates take them that include `contract.cuh`: its
/// struct `Lattice`, by value.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct KernelLattice(Lattice);

// SAFETY: it has the layout of `Lattice`, which is plain numbers.
unsafe impl KernelArgument for KernelLattice {}

impl KernelLattice {
    /// Headers of a source that includes `contract.cuh`.
    pub const HEADERS: [Header; 3] = [CONSTANTS, CELLS, CONTRACT];

    /// The numbers of a lattice of single precision.
    pub fn new(lattice: &grid::Lattice) -> Self {
        Self(Lattice::new(lattice))
    }
}
