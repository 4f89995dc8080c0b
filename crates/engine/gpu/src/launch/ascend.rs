//! The kernels of ascend.cu: lists into ascending order, or nearest first.
//!
//! A block takes a few lists that lie one behind the other, so what it sorts is near in memory;
//! each of its warps sorts short lists by itself, and all of them together sort a long one.
//!
//! The kernel sorts lists of any way to find them, after these were written: entries are unique but
//! for the images of a source, so the order that it leaves does not depend on the one before. It
//! reads and writes every array that it is given once, or for long lists as often as a sorting
//! network exchanges pairs.

use super::{
    kernel::{Kernel, LaunchShape},
    layout::PairArrays,
};
use crate::{
    constants::{ASCEND_LISTS, LIST_THREADS},
    error::Error,
    memory::Queue,
    program::{Modules, Program},
};
use cudarc::driver::sys::CUdeviceptr;
use nearfield_grid::Precision;

/// The kernels that sort lists.
///
/// A program of its own, because few engines ask for it: starting others compiles nothing more.
#[derive(Debug)]
pub(crate) struct AscendKernels {
    /// `lists_ascend`.
    lists: Kernel,
    /// `lists_by_distance`.
    by_distance: Kernel,
}

/// Lists that lie one behind the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListsToSort {
    /// Entries before every list, and all of them behind the last.
    pub(crate) starts: CUdeviceptr,
    /// Number of lists.
    pub(crate) count: u32,
    /// The entries.
    pub(crate) entries: CUdeviceptr,
    /// Entries there is room for; lists that reach beyond are left as they are.
    pub(crate) capacity: u64,
    /// What belongs to the entries, and is moved with them.
    pub(crate) arrays: PairArrays,
}

/// Targets of lists that are ordered by distance, and where the last of the nearest goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByDistance {
    /// Number of the first entry of the storage.
    pub(crate) base: u64,
    /// The sorted targets of the lists.
    pub(crate) targets: CUdeviceptr,
    /// Which pair of every list is wanted, from 1 on.
    pub(crate) k: u32,
    /// Room for it, by the caller's index of the target; 0 where it is not wanted.
    pub(crate) nearest: CUdeviceptr,
}

impl AscendKernels {
    /// Compiles ascend.cu, or takes it from the cache, and looks up its kernels.
    ///
    /// # Errors
    /// The errors of [`Modules::load`].
    pub(crate) fn load(modules: &Modules, precision: Precision) -> Result<Self, Error> {
        let module = modules.load(&Self::program(precision))?;
        let lists = Kernel::overlapping(&module, "lists_ascend")?;
        let by_distance = Kernel::overlapping(&module, "lists_by_distance")?;
        Ok(Self { lists, by_distance })
    }

    /// The program for geometry in a precision; lists alone are the same in both.
    pub(crate) fn program(precision: Precision) -> Program {
        let program = Program::from(&super::sources::ASCEND);
        match precision {
            Precision::Single => program,
            Precision::Double => program.define("NF_DOUBLE", 1),
        }
    }

    /// Sorts lists by their entries, and pairs of one source by their images if these are there.
    pub(crate) fn ascend(&self, queue: &Queue, lists: &ListsToSort) -> Result<(), Error> {
        let ListsToSort {
            starts,
            count,
            entries,
            capacity,
            arrays,
        } = lists;
        let blocks = count.div_ceil(ASCEND_LISTS).max(1);
        let shape = LaunchShape::of(blocks, LIST_THREADS);
        // SAFETY: as lists_ascend declares. Starts have one element more than there are lists, and
        // entries and every array that is not null have room for `capacity`.
        unsafe {
            self.lists
                .start(queue, shape, &[starts, count, entries, capacity, arrays])
        }
    }

    /// Sorts lists by the squared distance of their pairs, then as [`ascend`](Self::ascend) does.
    /// Their arrays have squares and images.
    pub(crate) fn by_distance(
        &self,
        queue: &Queue,
        lists: &ListsToSort,
        of: &ByDistance,
    ) -> Result<(), Error> {
        let ListsToSort {
            starts,
            count,
            entries,
            capacity,
            arrays,
        } = lists;
        let ByDistance {
            base,
            targets,
            k,
            nearest,
        } = of;
        let blocks = count.div_ceil(ASCEND_LISTS).max(1);
        let shape = LaunchShape::of(blocks, LIST_THREADS);
        // SAFETY: as lists_by_distance declares. Starts have one element more than there are lists,
        // which all have a target; entries and every array that is not null have room for
        // `capacity` less `base`, and `nearest` has room for every target of the set.
        unsafe {
            self.by_distance.start(
                queue,
                shape,
                &[
                    starts, count, entries, base, capacity, arrays, targets, k, nearest,
                ],
            )
        }
    }
}
