//! Values brought from the caller's order into that of the cells, for callers that keep arrays
//! sorted.
//!
//! A solver that brings its arrays into the order of the cells reads neighbours that are near each
//! other in memory. The order is that of the last sort: point k of the sorted set is the caller's
//! point `order[k]`. Values are moved as words of four bytes, so any plain type will do whose size
//! is a multiple of that.

use super::{gpu::GpuBackend, points::DevicePoints};
use crate::{
    error::{Error, ErrorKind},
    handles::{DeviceValue, DeviceView, DeviceViewMut},
};

impl GpuBackend {
    /// Brings values, `channels` of them a point, from the caller's order into that of the cells,
    /// without waiting. Both arrays hold the values of one point side by side; the values
    /// themselves are copied bit by bit.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`], [`ErrorKind::OtherDevice`] and [`ErrorKind::Driver`].
    pub fn reorder<T: DeviceValue>(
        &self,
        points: &DevicePoints,
        channels: usize,
        from: &DeviceView<'_, T>,
        to: &mut DeviceViewMut<'_, T>,
    ) -> Result<(), Error> {
        points.check_sorted()?;
        let words = channels.saturating_mul(size_of::<T>()) / 4;
        for (what, found, place) in [
            ("values to sort", from.len(), from.ordinal()),
            ("sorted values", to.len(), to.ordinal()),
        ] {
            self.holds(what, place)?;
            let expected = points.len().saturating_mul(channels);
            let countable = size_of::<T>().is_multiple_of(4) && u32::try_from(words).is_ok();
            if found != expected || !countable {
                return Err(Error::from(ErrorKind::FieldLength {
                    what,
                    found,
                    expected,
                }));
            }
        }
        if points.is_empty() {
            return Ok(());
        }
        let (from, _from) = from.device_ptr(&self.stream);
        let (to, _to) = to.device_ptr_mut(&self.stream);
        let layout = points.layout();
        self.shared
            .grid
            .values_in_order(&self.stream, &layout, from, words as u32, to)
    }

    /// The caller's index of every sorted point, without waiting for it. A permutation of all
    /// indices, also after a sort that failed.
    ///
    /// # Errors
    /// As [`reorder`](Self::reorder).
    pub fn order_into(
        &self,
        points: &DevicePoints,
        to: &mut DeviceViewMut<'_, u32>,
    ) -> Result<(), Error> {
        points.check_sorted()?;
        self.holds("the order", to.ordinal())?;
        if to.len() != points.len() {
            return Err(Error::from(ErrorKind::FieldLength {
                what: "the order",
                found: to.len(),
                expected: points.len(),
            }));
        }
        if points.is_empty() {
            return Ok(());
        }
        let (to, _to) = to.device_ptr_mut(&self.stream);
        let layout = points.layout();
        self.shared.grid.order_of_points(&self.stream, &layout, to)
    }
}
