//! Neighbours of some points of a set, which the caller names by their indices in an array of the
//! device.
//!
//! The points are gathered into a [share](super::share) in the order in which they are named, so
//! they are walked, with all filters, by the programs of chosen targets. The host knows how many
//! they are and waits for nothing. Their lists are those of the share: list k has the neighbours of
//! the k-th point named.
//!
//! The host cannot look at the indices. The kernel that copies them takes point 0 in the place of
//! one that there is not, and notes it as it notes other data of points (`refused`).
//!
//! **Invariant:** indices that are kept are below the number of points that they were checked for,
//! so kernels look points up unchecked.

use super::{
    given_data::{PointNumber, Received, received},
    gpu::GpuBackend,
    lattice::next_number,
    lists::DeviceLists,
    per_point::PerPoint,
    points::DevicePoints,
    refused::{NotedData, RefusedData, RefusedValues},
    share::DeviceShare,
};
use crate::{
    error::{Error, ErrorKind},
    handles::DeviceView,
    memory::Buffer,
};

/// Points that were named, as targets of a search.
#[derive(Debug)]
pub struct NamedPoints {
    indices: PerPoint<u32>,
    notes: RefusedData,
    /// The sorted place of every point of the set, and the number of the sort; 0 for none.
    places: Buffer<u32>,
    placed: u64,
    share: DeviceShare,
}

/// The notes about indices: those of whole numbers.
const KIND: usize = 2;

impl Default for NamedPoints {
    fn default() -> Self {
        Self {
            indices: PerPoint::new("indices of points"),
            notes: RefusedData::default(),
            places: Buffer::new("sorted places of points"),
            placed: 0,
            share: DeviceShare::default(),
        }
    }
}

impl GpuBackend {
    /// Gathers the points with these indices as targets. Does not wait; indices that no point has
    /// are [refused](Self::refused_indices) later.
    ///
    /// # Errors
    /// [`ErrorKind::Unsorted`], [`ErrorKind::PointNumbers`] if a set without points is asked for
    /// some, [`ErrorKind::TooManyPoints`], [`ErrorKind::OtherDevice`], [`ErrorKind::OutOfMemory`]
    /// and those of running a program.
    pub fn name_points<T: PointNumber>(
        &self,
        points: &DevicePoints,
        given: &DeviceView<'_, T>,
        named: &mut NamedPoints,
    ) -> Result<(), Error> {
        points.check_sorted()?;
        let count = u32::try_from(given.len());
        let count = count.map_err(|_| ErrorKind::TooManyPoints(given.len()))?;
        if count > 0 && points.is_empty() {
            return Err(Error::from(ErrorKind::PointNumbers {
                what: "indices of points",
                first: 0,
                count: u64::from(count),
            }));
        }
        if count > 0 {
            let largest = (points.len() as u32).saturating_sub(1).min(T::LARGEST);
            let about = NotedData {
                stamp: next_number(),
                points: given.len(),
                largest: T::LARGEST,
                counted: false,
            };
            let to = (&mut named.indices, &mut named.notes);
            received(
                self,
                to,
                given,
                Received {
                    kind: KIND,
                    words: 1,
                    about,
                },
                |kernels, values| {
                    kernels.numbers(&self.stream, values, size_of::<T>() == 8, largest)
                },
            )?;
            if named.placed != points.last_sort() {
                named.placed = 0;
                named.places.reserve(&self.stream, points.len())?;
                let (slots, layout) = (self.shared.slots()?, points.layout());
                slots.of_points(&self.stream, &layout, named.places.address())?;
                named.placed = points.last_sort();
            }
        }
        let indices = (named.indices.addresses()[0], count);
        self.share_of_indices(points, indices, named.places.address(), &mut named.share)
    }

    /// Starts to bring to the host whether indices were refused.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`].
    pub fn ask_about_indices(&self, named: &mut NamedPoints) -> Result<(), Error> {
        named.notes.ask(self)
    }

    /// The indices that were refused of those named last, if any were. Waits for the device.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`].
    pub fn refused_indices(&self, named: &mut NamedPoints) -> Result<Option<RefusedValues>, Error> {
        let noted = named.notes.read(self)?;
        Ok(noted.and_then(|noted| noted.values[KIND]))
    }
}

impl NamedPoints {
    /// The points as targets, in the order in which they were named.
    pub fn targets(&self) -> &DeviceShare {
        &self.share
    }

    /// Bytes held on the device.
    pub fn bytes(&self) -> usize {
        self.indices.bytes() + self.notes.bytes() + self.places.bytes() + self.share.bytes()
    }
}

impl DeviceLists {
    /// Start and length of the list of every target of the share that was searched for last, in the
    /// order of the share, and the storage of the entries; `None` before the first search.
    pub fn views_of_share(
        &self,
        targets: usize,
    ) -> Option<(
        DeviceView<'_, u64>,
        DeviceView<'_, u32>,
        DeviceView<'_, u32>,
    )> {
        Some((
            DeviceView(self.starts.view(targets)?),
            DeviceView(self.counts.view(targets)?),
            DeviceView(self.entries.view(self.room())?),
        ))
    }

    /// Makes the lists of a share empty, which were not searched for because there are no sources.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`].
    pub fn clear_share(&mut self, backend: &GpuBackend, targets: usize) -> Result<(), Error> {
        self.starts.zero(&backend.stream, 0..targets)?;
        self.counts.zero(&backend.stream, 0..targets)
    }
}

#[cfg(test)]
mod tests {
    //! The kernels on the CPU, as in `stored_on_host`.

    use crate::backend::stored_on_host::kernels;
    use nearfield_testkit::random::Random;
    use std::{ptr, sync::PoisonError};

    type RunGather = unsafe extern "C" fn(
        *const u32,
        u32,
        *const [f32; 4],
        u32,
        *const [i32; 4],
        *const u32,
        *const [f64; 3],
        *mut u32,
        *mut [f32; 4],
        *mut [i32; 4],
        *mut [f64; 3],
        *mut u32,
    );

    #[test]
    fn points_are_gathered_in_the_order_in_which_they_are_named() {
        let Some(library) = kernels::<f32>(0) else {
            return;
        };
        let library = library.lock().unwrap_or_else(PoisonError::into_inner);
        let mut random = Random::new(11);
        for (points, count, wrapped) in [(1, 3, true), (700, 2_000, true), (513, 40, false)] {
            let mut order: Vec<u32> = (0..points).collect();
            for last in (1..order.len()).rev() {
                order.swap(last, random.below(last as u64 + 1) as usize);
            }
            let coordinate = |index: u32, axis: u32| (3 * index + axis) as f32;
            let at: Vec<[f32; 4]> = (order.iter())
                .map(|&index| {
                    let [x, y, z] = [0, 1, 2].map(|axis| coordinate(index, axis));
                    [x, y, z, f32::from_bits(index)]
                })
                .collect();
            let of_index = |index: u32| [index as i32, 1, 2, 3];
            let wraps: Vec<[i32; 4]> = order.iter().map(|&index| of_index(index)).collect();
            let given: Vec<[f64; 3]> = order.iter().map(|&index| [f64::from(index); 3]).collect();
            let named: Vec<u32> = (0..count)
                .map(|_| random.below(u64::from(points)) as u32)
                .collect();
            let flags = [u32::from(wrapped), 0, 0];
            let mut places = vec![u32::MAX; points as usize];
            let (mut out_at, mut out_wraps) = (vec![[0f32; 4]; count], vec![[-7; 4]; count]);
            let (mut out_given, mut slots) = (vec![[0f64; 3]; count], vec![0; count]);
            // SAFETY: declared so in stored.cpp; all arrays have a value per point, or per index.
            unsafe {
                library.get::<RunGather>(b"run_gather_points").unwrap()(
                    named.as_ptr(),
                    count as u32,
                    at.as_ptr(),
                    points,
                    wraps.as_ptr(),
                    flags.as_ptr(),
                    if wrapped { given.as_ptr() } else { ptr::null() },
                    places.as_mut_ptr(),
                    out_at.as_mut_ptr(),
                    out_wraps.as_mut_ptr(),
                    out_given.as_mut_ptr(),
                    slots.as_mut_ptr(),
                );
            }
            for (target, &index) in named.iter().enumerate() {
                let slot = slots[target] as usize;
                assert_eq!(order[slot], index);
                assert_eq!(out_at[target].map(f32::to_bits), at[slot].map(f32::to_bits));
                let boxes = if wrapped { of_index(index) } else { [-7; 4] };
                assert_eq!(out_wraps[target], boxes, "{index}");
                let double = if wrapped { f64::from(index) } else { 0.0 };
                assert_eq!(out_given[target], [double; 3]);
            }
        }
    }
}
