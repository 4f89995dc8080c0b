//! Arrays whose points change their rank: the words of a point, of all arrays, travel as a row.

use super::{
    kernels::{Kernels, Refilled, fits},
    source::{COLUMNS, Columns},
};
use crate::error::Refusal;
use nearfield::device::{DeviceArray, DeviceBuffer, DeviceValue, DeviceView, InUse, Queue};

/// An array, and where the words of a point are in a row.
pub(super) struct Words<'a> {
    from: Place<'a>,
    /// None if the array stays as it is, or is changed in place.
    to: Option<Place<'a>>,
    /// Words a point.
    each: usize,
    /// The first of them in a row.
    first: usize,
}

/// Where an array is, and its words.
struct Place<'a> {
    address: u64,
    words: usize,
    _held: InUse<'a>,
}

impl<'a> Place<'a> {
    fn of<T: DeviceValue>(array: &'a impl DeviceArray<T>, queue: &'a Queue) -> Self {
        let (address, held) = array.device_ptr(queue);
        Self {
            address,
            words: array.view().len() * size_of::<T>() / 4,
            _held: held,
        }
    }
}

impl<'a> Words<'a> {
    /// `each` words a point, which are in a row from `first` on.
    pub(super) fn of<T: DeviceValue>(
        array: &'a DeviceView<'_, T>,
        [each, first]: [usize; 2],
        queue: &'a Queue,
    ) -> Self {
        Self {
            from: Place::of(array, queue),
            to: None,
            each,
            first,
        }
    }

    /// The same of an array that points come to.
    pub(super) fn in_place<T: DeviceValue>(
        array: &'a mut DeviceBuffer<T>,
        [each, first]: [usize; 2],
        queue: &'a Queue,
    ) -> Self {
        Self {
            from: Place::of(&*array, queue),
            to: None,
            each,
            first,
        }
    }

    /// The same of an array that has the points before, and one that they come to.
    pub(super) fn to<T: DeviceValue>(
        self,
        array: &'a mut DeviceBuffer<T>,
        queue: &'a Queue,
    ) -> Self {
        let to = Some(Place::of(&*array, queue));
        Self { to, ..self }
    }

    fn end(&self) -> usize {
        self.first + self.each
    }

    /// The array that points come to.
    fn target(&self) -> &Place<'a> {
        self.to.as_ref().unwrap_or(&self.from)
    }
}

impl Columns {
    /// At most as many arrays as a launch takes.
    fn of(arrays: &[Words<'_>]) -> Self {
        let mut columns = Self::default();
        for array in arrays.iter().filter(|array| array.each != 0) {
            let k = columns.count as usize;
            columns.from[k] = array.from.address;
            columns.to[k] = array.target().address;
            columns.words[k] = array.each as u32;
            columns.first[k] = array.first as u32;
            columns.count += 1;
            columns.all += array.each as u32;
        }
        columns
    }
}

impl Kernels {
    /// Puts the words of the points at `indices` into rows with a stride.
    pub(super) fn gather_rows(
        &self,
        arrays: &[Words<'_>],
        indices: &DeviceView<'_, u32>,
        rows: &mut DeviceBuffer<u32>,
        stride: usize,
    ) -> Result<(), Refusal> {
        let count = indices.len();
        for arrays in arrays.chunks(COLUMNS) {
            let columns = Columns::of(arrays);
            if count == 0 || columns.all == 0 {
                continue;
            }
            let end = arrays.iter().map(Words::end).max().unwrap_or(0);
            fits(
                "values that leave a rank",
                rows.len(),
                (count - 1) * stride + end,
            )?;
            let [points, stride] = [count, stride].map(|number| number as u32);
            let mut launch = self.queue.launch_builder(&self.gather_rows);
            launch.arg(&columns).arg(indices).arg(&points);
            launch.arg(&mut *rows).arg(&stride);
            // SAFETY: the arguments are those that places.cu declares, and the end was checked;
            // callers have seen that arrays have the words of every point of the set, whose survey
            // found the indices.
            unsafe { self.each("gather_rows", &mut launch, count * columns.all as usize) }?;
        }
        Ok(())
    }

    /// Brings arrays into the order after a migration: behind those that fill gaps of others are
    /// values that count no more. `came` are the rows of the points that have come.
    pub(super) fn refill(
        &self,
        order: &Refilled<'_>,
        arrays: &[Words<'_>],
        came: &DeviceBuffer<u32>,
        stride: usize,
    ) -> Result<(), Refusal> {
        let Refilled {
            left,
            before,
            arrivals,
        } = order;
        let now = before.saturating_sub(left.len()) + arrivals;
        let behind = before.saturating_sub(now);
        for arrays in arrays.chunks(COLUMNS) {
            let columns = Columns::of(arrays);
            if columns.all == 0 || arrivals + behind == 0 {
                continue;
            }
            for array in arrays {
                fits(
                    "values after a migration",
                    array.target().words,
                    now * array.each,
                )?;
                fits(
                    "values before a migration",
                    array.from.words,
                    before * array.each,
                )?;
                if *arrivals != 0 {
                    let end = (arrivals - 1) * stride + array.end();
                    fits("values that came", came.len(), end)?;
                }
            }
            let [gone, before, stride, arriving] =
                [left.len(), *before, stride, *arrivals].map(|number| number as u32);
            let items = (arrivals + behind) * columns.all as usize;
            let mut launch = self.queue.launch_builder(&self.refill);
            launch.arg(&columns).arg(left).arg(&gone).arg(&before);
            launch.arg(came).arg(&stride).arg(&arriving);
            // SAFETY: the arguments are those that places.cu declares, and all lengths were
            // checked: a point that has left is one of those before. Nothing that is read of an
            // array is written.
            unsafe { self.each("refill", &mut launch, items) }?;
        }
        Ok(())
    }
}
