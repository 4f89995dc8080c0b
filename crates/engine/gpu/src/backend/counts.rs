//! Counts of neighbours in the caller's order, for the host or left on the device.
//!
//! A traversal writes the count of each target to the caller's index. Counting keeps no list: it
//! needs four bytes per target.
//!
//! For the host, targets outside a share count as having no neighbours; on the device their counts
//! are unspecified.

use super::{
    gpu::GpuBackend,
    pairs::PairScratch,
    walk::{CountsTo, PairOfPoints, goes_by_cells},
};
use crate::{
    error::{Error, fits},
    handles::DeviceViewMut,
    memory::{Arrivals, Destination},
    traversal::Strategy,
};
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
        let (counts, scratch) = scratch.counting();
        counts.reserve(&self.stream, targets)?;
        if of.share.is_some() || of.is_empty() || goes_by_cells(strategy) {
            counts.zero(&self.stream, 0..targets)?;
        }
        if !of.is_empty() {
            let to = CountsTo {
                address: counts.address(),
                in_order: true,
            };
            self.count_into(of, kind, strategy, to, scratch)?;
        }
        to.deliver(&self.stream, counts)
    }

    /// As [`count`](Self::count) into an array of the device, without waiting for it.
    ///
    /// # Errors
    /// The errors of [`count`](Self::count), [`FieldLength`](crate::ErrorKind::FieldLength) and
    /// [`OtherDevice`](crate::ErrorKind::OtherDevice).
    pub fn count_on_device(
        &self,
        of: PairOfPoints<'_>,
        kind: ListKind,
        strategy: Strategy,
        counts: &mut DeviceViewMut<'_, u32>,
        scratch: &mut PairScratch,
    ) -> Result<(), Error> {
        self.holds("counts", counts.ordinal())?;
        fits("counts", counts.len(), of.targets.len())?;
        if !of.targets.is_empty()
            && (of.share.is_some() || of.is_empty() || goes_by_cells(strategy))
        {
            let failed = |error| Error::of_call("clearing counts", error);
            self.stream.memset_zeros(counts).map_err(failed)?;
        }
        if of.is_empty() {
            return Ok(());
        }
        let (address, _held) = counts.device_ptr_mut(&self.stream);
        let to = CountsTo {
            address,
            in_order: true,
        };
        self.count_into(of, kind, strategy, to, scratch.counting().1)
    }
}
