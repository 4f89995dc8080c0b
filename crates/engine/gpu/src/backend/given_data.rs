//! Data of points that filters read, from arrays of the device instead of the host.
//!
//! Nothing waits: a kernel copies the values, replaces those that searches must not read, and notes
//! what it refused. [`GpuBackend::ask_about_data`] starts to copy the note to the host, and
//! [`GpuBackend::refused_data`] reads it. Until then results are provisional, as those of positions
//! are.
//!
//! **Invariant:** whatever the caller's array holds, types that are kept are below the number of
//! types and radii are within the range that was asked for, so kernels may look them up unchecked.

use super::{
    filter::{DevicePointData, words_of},
    gpu::GpuBackend,
    per_point::PerPoint,
    refused::{NotedData, RadiusCounts, RefusedData, RefusedPointData},
};
use crate::{
    error::{Error, ErrorKind, fits},
    handles::{DeviceValue, DeviceView, PositionNumber},
    launch::{PointDataKernels, TakenValues},
};
use cudarc::driver::DeviceRepr;
use nearfield_grid::{Precision, Radius};

/// A type of whole numbers that data of points may be given in. What is kept has 32 bits; numbers
/// beyond, and negative ones, are refused.
pub trait PointNumber: DeviceValue {
    /// The largest number that is taken.
    const LARGEST: u32;
}

impl PointNumber for u32 {
    const LARGEST: u32 = u32::MAX;
}

impl PointNumber for i32 {
    const LARGEST: u32 = i32::MAX as u32;
}

impl PointNumber for u64 {
    const LARGEST: u32 = u32::MAX;
}

impl PointNumber for i64 {
    const LARGEST: u32 = u32::MAX;
}

/// What an array of the caller's holds.
pub(super) struct Received {
    /// The place of its notes.
    pub(super) kind: usize,
    /// Words kept for each point.
    pub(super) words: usize,
    /// The points.
    pub(super) about: NotedData,
}

/// Receives the caller's array: `take` starts the kernel, which reads the array and writes the
/// values. Notes of this kind are then about the new data.
///
/// What notes say of earlier data that the host has not asked about is kept as a word of its own,
/// so the new data are not taken for bad ones.
///
/// # Errors
/// If the array is refused, earlier values and notes stay. If the device fails later, the values
/// are forgotten.
pub(super) fn received<T: DeviceRepr, G: DeviceValue>(
    backend: &GpuBackend,
    (values, notes): (&mut PerPoint<T>, &mut RefusedData),
    given: &DeviceView<'_, G>,
    of: Received,
    take: impl FnOnce(&PointDataKernels, TakenValues) -> Result<(), Error>,
) -> Result<(), Error> {
    let Received { kind, words, about } = of;
    let points = about.points;
    fits(values.what(), given.len(), points)?;
    backend.holds(values.what(), given.ordinal())?;
    let count = u32::try_from(points).map_err(|_| ErrorKind::TooManyPoints(points))?;
    let kernels = backend.shared.point_data()?;
    let refused = notes.words_of(backend, kind)?;
    let (from, _in_use) = given.device_ptr(backend.stream());
    values.receive(backend, (words, points), about.stamp, |to| {
        if notes.of[kind].stamp != 0 {
            kernels.retire(&backend.stream, refused)?;
        }
        let values = TakenValues {
            from,
            count,
            to,
            refused,
        };
        take(kernels, values)
    })?;
    notes.of[kind] = about;
    Ok(())
}

impl GpuBackend {
    /// Takes the radii of a set's points from an array of the device, in the precision of
    /// `largest`; those that are not from [`Radius::MIN`] to `largest` are refused later, and named
    /// as `f32`, rounded away from that range. Searches walk as far as the largest. Does not wait.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] for another number than `points`, [`ErrorKind::OtherDevice`],
    /// [`ErrorKind::OutOfMemory`] and those of loading a program.
    pub fn receive_radii<T: PositionNumber>(
        &self,
        data: &mut DevicePointData,
        radii: &DeviceView<'_, T>,
        largest: Radius,
        points: usize,
        stamp: u64,
    ) -> Result<(), Error> {
        let about = NotedData {
            stamp,
            points,
            largest: u32::MAX,
            counted: largest.precision() == Precision::Single,
        };
        let most = largest.value_f64();
        data.counts = None;
        data.largest = largest.value().next_up();
        let to = (&mut data.radii, &mut data.refused);
        let words = words_of(largest.precision());
        received(
            self,
            to,
            radii,
            Received {
                kind: 0,
                words,
                about,
            },
            |kernels, values| {
                let precisions = [T::PRECISION, largest.precision()];
                kernels.radii(&self.stream, values, precisions, most)
            },
        )?;
        if !about.counted {
            return Ok(());
        }
        let counts = data.refused.counts(self)?;
        if points == 0 {
            return Ok(());
        }
        let [radii, _] = data.radii.addresses();
        let radii = (radii, points as u32);
        let kernels = self.shared.point_data()?;
        kernels.count(&self.stream, radii, largest.value(), counts)
    }

    /// Takes the types of a set's points, which are below `types`; see
    /// [`receive_radii`](Self::receive_radii).
    ///
    /// # Errors
    /// As there.
    pub fn receive_types<T: PointNumber>(
        &self,
        data: &mut DevicePointData,
        given: &DeviceView<'_, T>,
        types: usize,
        points: usize,
        stamp: u64,
    ) -> Result<(), Error> {
        let about = NotedData {
            stamp,
            points,
            largest: T::LARGEST,
            counted: false,
        };
        let most = u32::try_from(types).map_or(u32::MAX, |types| types.saturating_sub(1));
        data.types_bound = most.saturating_add(1);
        let to = (&mut data.types, &mut data.refused);
        received(
            self,
            to,
            given,
            Received {
                kind: 1,
                words: 1,
                about,
            },
            |kernels, values| {
                let wide = size_of::<T>() == 8;
                kernels.numbers(&self.stream, values, wide, most.min(T::LARGEST))
            },
        )
    }

    /// Takes the molecules of a set's points, which replace lists of exclusions; see
    /// [`receive_radii`](Self::receive_radii).
    ///
    /// # Errors
    /// As there.
    pub fn receive_molecules<T: PointNumber>(
        &self,
        data: &mut DevicePointData,
        given: &DeviceView<'_, T>,
        points: usize,
        stamp: u64,
    ) -> Result<(), Error> {
        let about = NotedData {
            stamp,
            points,
            largest: T::LARGEST,
            counted: false,
        };
        let to = (&mut data.molecules, &mut data.refused);
        received(
            self,
            to,
            given,
            Received {
                kind: 2,
                words: 1,
                about,
            },
            |kernels, values| {
                kernels.numbers(&self.stream, values, size_of::<T>() == 8, T::LARGEST)
            },
        )?;
        data.lists_stamp = 0;
        Ok(())
    }

    /// Takes which points of a set are chosen as targets, a byte each that is not 0 for those.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`], [`ErrorKind::OtherDevice`], [`ErrorKind::OutOfMemory`] and
    /// [`ErrorKind::Driver`].
    pub fn receive_chosen(
        &self,
        data: &mut DevicePointData,
        mask: &DeviceView<'_, u8>,
        points: usize,
        stamp: u64,
    ) -> Result<(), Error> {
        const WHAT: &str = "chosen targets";
        fits(WHAT, mask.len(), points)?;
        self.holds(WHAT, mask.ordinal())?;
        data.chosen_stamp = 0;
        data.lists.chosen.copy_from(&self.stream, &mask.0)?;
        (data.chosen_stamp, data.chosen_of) = (stamp, points);
        Ok(())
    }

    /// Starts to bring to the host what was refused of the data that came from the device.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`].
    pub fn ask_about_data(&self, data: &mut DevicePointData) -> Result<(), Error> {
        data.refused.ask(self)
    }

    /// What was refused since it was last read, as it was [asked for](Self::ask_about_data). Waits
    /// for the device if there are data that came from it. Data of which any were refused are
    /// forgotten, but not those that replaced them. After an error the next call says the same.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`].
    pub fn refused_data(&self, data: &mut DevicePointData) -> Result<RefusedPointData, Error> {
        let Some(noted) = data.refused.read(self)? else {
            return Ok(RefusedPointData::default());
        };
        let [radii, types, molecules] = noted.values;
        let [of_radii, of_types, of_molecules] = noted.stamps;
        let mut found = RefusedPointData {
            radii: radii.filter(|_| data.radii.forget(of_radii)),
            types: types.filter(|_| data.types.forget(of_types)),
            molecules: molecules.filter(|_| data.molecules.forget(of_molecules)),
            replaced: noted.replaced,
        };
        data.counts =
            (noted.counts).filter(|_| found.radii.is_none() && data.radii.stamp == of_radii);
        found.replaced |= [radii, types, molecules] != [found.radii, found.types, found.molecules];
        Ok(found)
    }
}

impl DevicePointData {
    /// The radii of a set that came from the device, counted there, once
    /// [`GpuBackend::refused_data`] has read that. `None` in double precision.
    pub fn radius_counts(&self) -> Option<RadiusCounts> {
        self.counts
    }

    /// Forgets which points exclude each other.
    pub fn forget_exclusions(&mut self) {
        (self.lists_stamp, self.molecules.stamp) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    //! The kernels on the CPU, as in `stored_on_host`.

    use crate::{
        backend::{MAX_WIDE_POINTS, RADIUS_CLASSES, RadiusCounts, stored_on_host::kernels},
        launch::WIDE_WORDS,
    };
    use nearfield_testkit::random::Random;
    use std::{ffi::c_void, sync::PoisonError};

    type RunRadii =
        unsafe extern "C" fn(*const c_void, u32, u32, u32, f64, f64, *mut c_void, *mut u64);
    type RunRetire = unsafe extern "C" fn(*mut u64);
    type RunNumbers = unsafe extern "C" fn(*const u32, u32, u32, u32, *mut u32, *mut u64);

    /// The words that tell of these values.
    fn words(bad: &[(usize, u32)]) -> [u64; 3] {
        let first = bad.first().map_or(0, |&(index, bits)| {
            !((index as u64) << 32 | u64::from(bits))
        });
        [first, bad.len() as u64, 0]
    }

    #[test]
    fn values_that_cannot_be_read_are_replaced_counted_and_the_first_of_them_is_named() {
        let Some(library) = kernels::<f32>(0) else {
            return;
        };
        let library = library.lock().unwrap_or_else(PoisonError::into_inner);
        let mut random = Random::new(7);
        let odd = [f32::NAN, -0.5, 0.0, 2.5, f32::INFINITY];
        for (count, share) in [(1, 2), (700, 1), (1000, 300), (900, 3)] {
            let draw = |random: &mut Random| match random.below(share) {
                1 => odd[random.below(5) as usize],
                _ => random.between(0.25, 2.0) as f32,
            };
            let radii: Vec<f32> = (0..count).map(|_| draw(&mut random)).collect();
            let mut bad = Vec::new();
            let mut kept = radii.clone();
            for (index, radius) in kept.iter_mut().enumerate() {
                if !(0.25..=2.0).contains(radius) {
                    bad.push((index, radius.to_bits()));
                    *radius = 0.25;
                }
            }
            let (mut to, mut refused) = (vec![-1.0; count], [0; 3]);
            // SAFETY: declared so in stored.cpp; every array has a value per point.
            unsafe {
                library.get::<RunRadii>(b"run_radii").unwrap()(
                    radii.as_ptr().cast(),
                    0,
                    0,
                    count as u32,
                    0.25,
                    2.0,
                    to.as_mut_ptr().cast(),
                    refused.as_mut_ptr(),
                );
            }
            assert_eq!((to, refused), (kept, words(&bad)));
            // Other radii come before the host has looked.
            // SAFETY: declared so in stored.cpp.
            unsafe { library.get::<RunRetire>(b"run_retire").unwrap()(refused.as_mut_ptr()) };
            assert_eq!(refused, [0, 0, u64::from(!bad.is_empty())]);
        }
    }

    type RunCount = unsafe extern "C" fn(*const f32, u32, f32, *mut u32);
    type RunWide = unsafe extern "C" fn(*const [f32; 4], *const f32, u32, f32, *mut u32);

    #[test]
    fn radii_are_counted_by_halvings_of_the_largest() {
        let Some(library) = kernels::<f32>(0) else {
            return;
        };
        let library = library.lock().unwrap_or_else(PoisonError::into_inner);
        let mut random = Random::new(9);
        for count in [1, 31, 600, 1500] {
            let most = random.between(0.5, 80.0) as f32;
            // One in eight is the largest or half of it, where classes begin and end.
            let radii: Vec<f32> = (0..count)
                .map(|_| match random.below(16) {
                    0 => most,
                    1 => most / 2.0,
                    _ => most * (-random.between(0.0, 14.0)).exp2() as f32,
                })
                .collect();
            let mut expected = RadiusCounts::default();
            for &radius in &radii {
                let halvings = (1..RADIUS_CLASSES).map(|class| 2.0f32.powi(class as i32));
                let class = halvings.take_while(|&times| most / radius >= times).count();
                expected.points[class] += 1;
                expected.largest[class] = expected.largest[class].max(radius);
            }
            let mut words = [0u64; RADIUS_CLASSES];
            // SAFETY: declared so in stored.cpp; there are two numbers of 32 bits for every class.
            unsafe {
                let run = library.get::<RunCount>(b"run_count_radii").unwrap();
                run(radii.as_ptr(), count, most, words.as_mut_ptr().cast());
            }
            assert_eq!(
                RadiusCounts::of(&words),
                expected,
                "{count} radii up to {most}"
            );
        }
    }

    #[test]
    fn wide_points_ascend_and_too_many_are_cut_off() {
        let Some(library) = kernels::<f32>(0) else {
            return;
        };
        let library = library.lock().unwrap_or_else(PoisonError::into_inner);
        let mut random = Random::new(10);
        for (count, share) in [(1, 1), (2000, 5), (2000, 2)] {
            let radii: Vec<f32> = (0..count)
                .map(|_| if random.below(share) == 0 { 3.0 } else { 1.0 })
                .collect();
            // Sorted the other way round.
            let index = |slot: u32| count - 1 - slot;
            let at: Vec<[f32; 4]> = (0..count)
                .map(|slot| [0.0, 0.0, 0.0, f32::from_bits(index(slot))])
                .collect();
            let mut words = vec![0u32; WIDE_WORDS + 1];
            words[WIDE_WORDS] = 77;
            // SAFETY: declared so in stored.cpp; sorted points name their radii.
            unsafe {
                let run = library.get::<RunWide>(b"run_wide").unwrap();
                run(at.as_ptr(), radii.as_ptr(), count, 1.5, words.as_mut_ptr());
            }
            let all = (0..count).filter(|&slot| radii[index(slot) as usize] > 1.5);
            // Threads of the host run in turn, so the first are found.
            let expected: Vec<u32> = all.take(MAX_WIDE_POINTS).collect();
            assert_eq!(words[0] as usize, expected.len());
            assert_eq!(words[1..=expected.len()], expected);
            assert_eq!(words[WIDE_WORDS], 77);
        }
    }

    #[test]
    fn radii_of_either_precision_are_kept_in_that_of_the_search() {
        let Some(library) = kernels::<f32>(0) else {
            return;
        };
        let library = library.lock().unwrap_or_else(PoisonError::into_inner);
        let run = |from: *const c_void, [wide, exact]: [u32; 2], to: *mut c_void| {
            let mut refused = [0; 3];
            // SAFETY: as above, with three values each.
            unsafe {
                let take = library.get::<RunRadii>(b"run_radii").unwrap();
                take(from, wide, exact, 3, 0.25, 2.0, to, refused.as_mut_ptr());
            }
            refused
        };
        let wide = [0.1f64 + 0.2, 2.0f64.next_up(), 0.25f64.next_down()];
        let mut exact = [0.0f64; 3];
        let refused = run(wide.as_ptr().cast(), [1, 1], exact.as_mut_ptr().cast());
        assert_eq!(exact, [0.1 + 0.2, 0.25, 0.25]);
        assert_eq!(refused, words(&[(1, 2.0f32.next_up().to_bits()), (2, 0)]));
        // Rounded to f32 they are usable.
        let mut rounded = [0.0f32; 3];
        let refused = run(wide.as_ptr().cast(), [1, 0], rounded.as_mut_ptr().cast());
        assert_eq!((rounded, refused), ([0.3, 2.0, 0.25], words(&[])));
        let narrow = [0.3f32, 0.1, 2.5];
        let refused = run(narrow.as_ptr().cast(), [0, 1], exact.as_mut_ptr().cast());
        assert_eq!(exact, [f64::from(0.3f32), 0.25, 0.25]);
        assert_eq!(refused, words(&[(1, 0.1f32.to_bits()), (2, 0)]));
    }

    #[test]
    fn whole_numbers_of_either_width_are_those_of_the_caller_or_refused() {
        let Some(library) = kernels::<f32>(0) else {
            return;
        };
        let library = library.lock().unwrap_or_else(PoisonError::into_inner);
        let run = |from: *const u32, wide: u32, count: usize, most: u32| {
            let (mut to, mut refused) = (vec![77; count], [0; 3]);
            // SAFETY: as above.
            unsafe {
                let take = library.get::<RunNumbers>(b"run_numbers").unwrap();
                let (to, refused) = (to.as_mut_ptr(), refused.as_mut_ptr());
                take(from, wide, count as u32, most, to, refused);
            }
            (to, refused)
        };
        let narrow = [0u32, 5, 6, u32::MAX];
        let found = run(narrow.as_ptr(), 0, 4, 5);
        assert_eq!(found, (vec![0, 5, 0, 0], words(&[(2, 6), (3, u32::MAX)])));
        let found = run(narrow.as_ptr(), 0, 4, u32::MAX);
        assert_eq!(found, (narrow.to_vec(), words(&[])));
        let wide = [3i64, -1, 1 << 32, i64::from(u32::MAX), (7 << 32) - 1];
        let large = [(1, u32::MAX), (2, u32::MAX), (4, u32::MAX)];
        let found = run(wide.as_ptr().cast(), 1, 5, u32::MAX);
        assert_eq!(found, (vec![3, 0, 0, u32::MAX, 0], words(&large)));
    }
}
