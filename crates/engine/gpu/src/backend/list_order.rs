//! The order of the pairs of lists that have been written: ascending, or nearest first.
//!
//! Lists are written in the order in which the walk meets their pairs, which says something of
//! cells and nothing of points. A caller that compares lists wants them ascending; where only the
//! nearest are kept, the order of their distance is the result. Both orders are made where the
//! lists lie, by a kernel behind the one that writes them (`kernels/cuda/ascend.cuh`), and what
//! belongs to a pair is moved with its entry.
//!
//! Programs for it are made for a precision: displacements and squares are moved as so many words,
//! and squares are compared exactly. Pairs of one source through several images are told apart by
//! their images, so the order depends on the pairs alone and not on the walk that found them.
//!
//! **Invariant:** a list is ordered only if all of it lies within the room that was written to.

use super::{gpu::GpuBackend, lists::WriteTo, walk::PairOfPoints};
use crate::{
    error::Error,
    launch::{ByDistance, ListsToSort, Outlet},
};
use cudarc::driver::sys::CUdeviceptr;
use nearfield_grid::Precision;

/// Where the last of the nearest pairs of every target goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastTo {
    /// How many are kept.
    pub(super) k: u32,
    /// Room for a pair of every target, by its index.
    pub(super) address: CUdeviceptr,
}

impl WriteTo {
    /// The lists, written, as kernels that order them take them.
    fn written(&self) -> ListsToSort {
        let Outlet { first, behind, .. } = self.outlet;
        ListsToSort {
            starts: self.outlet.starts + u64::from(first) * size_of::<u64>() as u64,
            count: behind - first,
            entries: self.outlet.entries,
            capacity: self.outlet.capacity,
            arrays: self.arrays,
        }
    }

    /// Brings lists, of which entry 0 is the first of the storage, into ascending order, and with
    /// them the geometry of their pairs in this precision.
    ///
    /// # Errors
    /// Those of compiling and running a program.
    pub(super) fn ascend(&self, backend: &GpuBackend, precision: Precision) -> Result<(), Error> {
        debug_assert_eq!(self.outlet.base, 0, "the kernel takes entry 0 as the first");
        let kernels = backend.shared.ascend(precision)?;
        kernels.ascend(&backend.stream, &self.written())
    }

    /// Brings lists of `of` into the order of squared distance, then index, then image; squares and
    /// images are among their arrays. Tells the last pair that is kept of every target, if that is
    /// asked for.
    ///
    /// # Errors
    /// Those of compiling and running a program.
    pub(super) fn order_by_distance(
        &self,
        backend: &GpuBackend,
        of: PairOfPoints<'_>,
        last: Option<LastTo>,
    ) -> Result<(), Error> {
        let LastTo { k, address } = last.unwrap_or(LastTo { k: 1, address: 0 });
        let first = u64::from(self.outlet.first);
        let by = ByDistance {
            base: self.outlet.base,
            targets: of.targets_layout().at + first * size_of::<[f32; 4]>() as u64,
            k,
            nearest: address,
        };
        let kernels = backend.shared.ascend(of.precision())?;
        kernels.by_distance(&backend.stream, &self.written(), &by)
    }
}
