//! The kernels of columns.cu and column_pairs.cu: lists as arrays of pairs in the order of their
//! targets, with geometry that was written beside them or that is computed from the positions.

use super::{
    kernel::{Kernel, LaunchShape},
    layout::{ListedPoints, PairOutput, StoredLists},
};
use crate::{
    constants::{COLUMN_TARGETS, COLUMN_THREADS},
    error::Error,
    memory::Queue,
    program::{Modules, Program},
};
use nearfield_grid::Precision;

/// The kernel, loaded when lists are first written to arrays of the caller.
#[derive(Debug)]
pub(crate) struct ColumnsKernel {
    copy: Kernel,
}

impl ColumnsKernel {
    /// Compiles columns.cu, or takes it from the cache, and looks up its kernel.
    ///
    /// # Errors
    /// The errors of [`Modules::load`].
    pub(crate) fn load(modules: &Modules) -> Result<Self, Error> {
        let module = modules.load(&Program::from(&super::sources::COLUMNS))?;
        let copy = Kernel::of(&module, "columns_of_lists")?;
        Ok(Self { copy })
    }

    /// Numbers that `StoredLists::sums` needs for so many targets.
    pub(crate) fn sums(targets: usize) -> usize {
        targets.div_ceil(COLUMN_TARGETS as usize).max(1) + 1
    }

    /// Copies lists to the arrays that are not 0, as far as there is room.
    pub(crate) fn copy(
        &self,
        queue: &Queue,
        lists: &StoredLists,
        output: &PairOutput,
    ) -> Result<(), Error> {
        let blocks = Self::sums(lists.count as usize) as u32 - 1;
        let shape = LaunchShape::of(blocks, COLUMN_THREADS);
        // SAFETY: as columns_of_lists declares. Starts and counts have a number per target, entries
        // and what is wanted beside them have `lists.capacity` elements, arrays that are not 0 have
        // room for `output.capacity`, and all of `sums` is zero.
        unsafe { self.copy.start(queue, shape, &[lists, output]) }
    }
}

/// The kernel that computes the geometry of the pairs, loaded when lists that come without it are
/// first written so.
#[derive(Debug)]
pub(crate) struct ColumnPairsKernel {
    put: Kernel,
}

impl ColumnPairsKernel {
    /// Compiles column_pairs.cu, or takes it from the cache, and looks up its kernel.
    ///
    /// # Errors
    /// The errors of [`Modules::load`].
    pub(crate) fn load(modules: &Modules, precision: Precision) -> Result<Self, Error> {
        let module = modules.load(&Self::program(precision))?;
        let put = Kernel::of(&module, "column_pairs")?;
        Ok(Self { put })
    }

    /// The program for positions in a precision.
    pub(crate) fn program(precision: Precision) -> Program {
        let program = Program::from(&super::sources::COLUMN_PAIRS);
        match precision {
            Precision::Single => program,
            Precision::Double => program.define("NF_DOUBLE", 1),
        }
    }

    /// Writes the pairs of lists to the arrays that are not 0, as far as there is room.
    pub(crate) fn put(
        &self,
        queue: &Queue,
        lists: &StoredLists,
        output: &PairOutput,
        points: &ListedPoints,
    ) -> Result<(), Error> {
        let blocks = ColumnsKernel::sums(lists.count as usize) as u32 - 1;
        let shape = LaunchShape::of(blocks, COLUMN_THREADS);
        // SAFETY: as column_pairs declares: what `ColumnsKernel::copy` says holds of lists and
        // output, and entries are indices of sources, whose positions are there as those of targets.
        unsafe { self.put.start(queue, shape, &[lists, output, points]) }
    }
}
