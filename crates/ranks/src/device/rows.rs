//! Arrays whose points change their rank: the words of a point, from all arrays, travel as one row.

use super::{
    constants::THREADS,
    kernels::{Kernels, Refill, fits},
    source::{COLUMNS, Columns},
};
use crate::error::Refusal;
use nearfield::device::{
    DeviceArray, DeviceBuffer, DeviceValue, DeviceView, copies::Queue, interop::InUse,
    programs::LaunchShape,
};

/// An array, and the place of its words in the row of a point.
pub(super) struct Words<'a> {
    from: Place<'a>,
    /// `None` if the array is only read, or is changed in place.
    to: Option<Place<'a>>,
    /// Words per point.
    each: usize,
    /// Place of the first of them in the row.
    first: usize,
}

/// The address of an array, and its number of words.
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
    /// An array with `each` words per point, at `first` in the row.
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

    /// The same for an array that is changed in place.
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

    /// The same with another array for the points after a migration.
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

    /// The array that has the points after a migration.
    fn target(&self) -> &Place<'a> {
        self.to.as_ref().unwrap_or(&self.from)
    }
}

impl Columns {
    /// Of at most [`COLUMNS`] arrays.
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
    /// Gathers the words of the points at `indices` into rows with a stride.
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
            let arguments = (&columns, indices, &points, &mut *rows, &stride);
            // SAFETY: the arguments are those that places.cu declares, and the end was checked;
            // callers have seen that arrays have the words of every point of the set, whose survey
            // found the indices.
            unsafe {
                self.gather_rows.start(
                    LaunchShape::covering(count * columns.all as usize, THREADS),
                    arguments,
                )
            }?;
        }
        Ok(())
    }

    /// Brings arrays into the order after a migration. Values behind the last point are
    /// meaningless. `came` has the rows of the points that arrived.
    pub(super) fn refill(
        &self,
        order: &Refill<'_>,
        arrays: &[Words<'_>],
        came: &DeviceBuffer<u32>,
        stride: usize,
    ) -> Result<(), Refusal> {
        let Refill {
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
            let arguments = (&columns, left, &gone, &before, came, &stride, &arriving);
            // SAFETY: the arguments are those that places.cu declares, and all lengths were
            // checked: a point that has left is one of those before. Nothing that is read of an
            // array is written.
            unsafe {
                self.refill
                    .start(LaunchShape::covering(items, THREADS), arguments)
            }?;
        }
        Ok(())
    }
}
