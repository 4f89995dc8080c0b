//! Counts of neighbours in the caller's order, for the host or left on the device.
//!
//! Traversals count by the sorted order, where neighbouring threads write neighbouring numbers; a
//! pass over the targets then writes each count to the caller's index. Counting keeps no list: it
//! needs four bytes per target in either order.
//!
//! For the host, targets outside a share count as having no neighbours; on the device their counts
//! are unspecified.

use super::{gpu::GpuBackend, pairs::PairScratch, walk::PairOfPoints};
use crate::{
    error::{Error, fits},
    memory::{Arrivals, Destination},
    traversal::Strategy,
};
use cudarc::driver::{CudaViewMut, DevicePtrMut, DeviceSlice};
use nearfield_pairs::ListKind;

impl GpuBackend {
    /// Number of neighbours of every target, in the caller's order; waits for them.
    ///
    /// ```no_run
    /// use nearfield_gpu::{Destination, Error, GpuBackend, PairOfPoints, PairScratch, Strategy};
    /// use nearfield_pairs::ListKind;
    ///
    /// fn counts(backend: &GpuBackend, of: PairOfPoints<'_>) -> Result<Vec<u32>, Error> {
    ///     let mut counts = vec![0; of.targets.len()];
    ///     let (to, scratch) = (Destination::whole(&mut counts), &mut PairScratch::default());
    ///     backend.count(of, ListKind::Full, Strategy::Flat, to, scratch)?;
    ///     Ok(counts)
    /// }
    /// ```
    ///
    /// # Errors
    /// [`FieldLength`](crate::ErrorKind::FieldLength), and those of compiling a program and of
    /// running it.
    pub fn count<'r>(
        &self,
        of: PairOfPoints<'_>,
        kind: ListKind,
        strategy: Strategy,
        to: Destination<'r, u32, impl FnOnce(&mut Arrivals<'r, u32>) -> Result<(), Error>>,
        scratch: &mut PairScratch,
    ) -> Result<(), Error> {
        let targets = of.targets.len();
        fits("counts", to.memory.len(), targets)?;
        let ([sorted, ordered], scratch) = scratch.counting();
        ordered.reserve(&self.stream, targets)?;
        if of.share.is_some() || of.is_empty() {
            ordered.zero(&self.stream, 0..targets)?;
        }
        if !of.is_empty() {
            sorted.reserve(&self.stream, targets)?;
            self.count_into(of, kind, strategy, sorted, scratch)?;
            let (from, out) = (sorted.address(), ordered.address());
            let grid = &self.shared.grid;
            grid.counts_in_order(&self.stream, &of.targets_layout(), from, out)?;
        }
        to.deliver(&self.stream, ordered)
    }

    /// As [`count`](Self::count) into an array of the device, without waiting for it.
    ///
    /// # Errors
    /// Those of [`count`](Self::count), [`FieldLength`](crate::ErrorKind::FieldLength) and
    /// [`OtherDevice`](crate::ErrorKind::OtherDevice).
    pub fn count_on_device(
        &self,
        of: PairOfPoints<'_>,
        kind: ListKind,
        strategy: Strategy,
        counts: &mut CudaViewMut<'_, u32>,
        scratch: &mut PairScratch,
    ) -> Result<(), Error> {
        self.holds("counts", counts.stream().context().ordinal())?;
        fits("counts", counts.len(), of.targets.len())?;
        if of.is_empty() {
            let failed = |error| Error::driver("clearing counts", error);
            return match of.targets.is_empty() {
                true => Ok(()),
                false => self.stream.memset_zeros(counts).map_err(failed),
            };
        }
        let ([sorted, _], scratch) = scratch.counting();
        sorted.reserve(&self.stream, of.targets.len())?;
        self.count_into(of, kind, strategy, sorted, scratch)?;
        let (out, _held) = counts.device_ptr_mut(&self.stream);
        let points = of.targets_layout();
        self.shared
            .grid
            .counts_in_order(&self.stream, &points, sorted.address(), out)
    }
}
