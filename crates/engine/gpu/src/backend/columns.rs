//! Arrays of the caller that pairs are written to, one for each quantity.
//!
//! Results that are given to other libraries need arrays of their own: those of a search are
//! written again by the next one. So searches of systems write pairs straight to arrays of the
//! caller, and a single kernel copies lists to them, in the order of their targets. Where a source
//! is near through one image only, lists are found without the geometry of their pairs, which that
//! kernel computes from the positions: written beside the lists it would take twice the bytes.
//!
//! **Invariant:** nothing is written behind the shortest of the arrays. Pairs that have no room are
//! counted all the same, so the caller learns how long arrays have to be.

use super::{
    given_data::PointNumber, gpu::GpuBackend, lists::DeviceLists, nearest_image::rounded_inverse,
    stored::candidates, walk::PairOfPoints,
};
use crate::{
    error::{Error, ErrorKind},
    handles::{DeviceViewMut, InUse, PositionNumber},
    launch::{ColumnsKernel, Lattice, ListedPoints, PairOutput, StoredLists},
    memory::Queue,
    traversal::Candidates,
};
use nearfield_pairs::ListKind;

/// Which arrays are written for pairs, and how.
///
/// A quantity that is not wanted is neither computed nor allocated. Offsets are always written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairQuantities {
    /// Pairs that stand once, or twice.
    pub kind: ListKind,
    /// The point of every pair.
    pub targets: bool,
    /// Its neighbour.
    pub sources: bool,
    /// Three counts of vectors.
    pub images: bool,
    /// Three numbers.
    pub displacements: bool,
    /// A number.
    pub distances: bool,
    /// Indices have 64 bits and not 32.
    pub wide: bool,
}

/// Arrays of the device that pairs are written to: entry k of every array belongs to the same pair.
/// Those that are not wanted are None.
///
/// `T` is the precision of the positions, and `I` the type of indices. All arrays are on the GPU of
/// the search and do not overlap. They are written by work on its stream.
#[derive(Debug)]
pub struct DeviceColumns<'a, T, I> {
    /// The point of every pair.
    pub targets: Option<DeviceViewMut<'a, I>>,
    /// Its neighbour.
    pub sources: Option<DeviceViewMut<'a, I>>,
    /// By how many vectors the neighbour is moved, three counts of every pair.
    pub images: Option<DeviceViewMut<'a, i32>>,
    /// From the point to the image of its neighbour, three numbers of every pair.
    pub displacements: Option<DeviceViewMut<'a, T>>,
    /// The length of that.
    pub distances: Option<DeviceViewMut<'a, T>>,
}

impl<T, I> Default for DeviceColumns<'_, T, I> {
    /// No arrays.
    fn default() -> Self {
        Self {
            targets: None,
            sources: None,
            images: None,
            displacements: None,
            distances: None,
        }
    }
}

/// Where kernels write, while it is in use.
pub(super) struct ColumnsInUse<'a> {
    pub(super) output: PairOutput,
    _held: [Option<InUse<'a>>; 5],
}

impl<T: PositionNumber, I: PointNumber> DeviceColumns<'_, T, I> {
    /// Pairs that all arrays have room for; without arrays as many as there may be.
    pub fn room(&self) -> usize {
        let len = |array: Option<usize>, each: usize| array.map_or(usize::MAX, |len| len / each);
        [
            len(self.targets.as_ref().map(DeviceViewMut::len), 1),
            len(self.sources.as_ref().map(DeviceViewMut::len), 1),
            len(self.images.as_ref().map(DeviceViewMut::len), 3),
            len(self.displacements.as_ref().map(DeviceViewMut::len), 3),
            len(self.distances.as_ref().map(DeviceViewMut::len), 1),
        ]
        .into_iter()
        .fold(usize::MAX, usize::min)
    }

    /// Which arrays there are, for lists of this kind.
    pub(super) fn quantities(&self, kind: ListKind) -> PairQuantities {
        PairQuantities {
            kind,
            targets: self.targets.is_some(),
            sources: self.sources.is_some(),
            images: self.images.is_some(),
            displacements: self.displacements.is_some(),
            distances: self.distances.is_some(),
            wide: size_of::<I>() == size_of::<u64>(),
        }
    }

    /// The addresses, for work on the stream of the backend.
    ///
    /// # Errors
    /// [`ErrorKind::OtherDevice`].
    pub(super) fn lend<'a>(&'a mut self, queue: &'a Queue) -> Result<ColumnsInUse<'a>, Error> {
        fn one<'a, V>(
            array: &'a mut Option<DeviceViewMut<'_, V>>,
            queue: &'a Queue,
        ) -> Result<(u64, Option<InUse<'a>>), Error> {
            let Some(array) = array else {
                return Ok((0, None));
            };
            let (found, expected) = (array.ordinal(), queue.ordinal());
            if found != expected {
                let what = "arrays of pairs";
                return Err(Error::from(ErrorKind::OtherDevice {
                    what,
                    found,
                    expected,
                }));
            }
            // An array without elements has no address that says that it is wanted.
            if array.is_empty() {
                return Ok((0, None));
            }
            let (address, held) = array.device_ptr_mut(queue);
            Ok((address, Some(held)))
        }
        let capacity = self.room() as u64;
        let (targets, a) = one(&mut self.targets, queue)?;
        let (sources, b) = one(&mut self.sources, queue)?;
        let (images, c) = one(&mut self.images, queue)?;
        let (displacements, d) = one(&mut self.displacements, queue)?;
        let (distances, e) = one(&mut self.distances, queue)?;
        let output = PairOutput {
            targets,
            sources,
            images,
            displacements,
            distances,
            capacity,
            index_bytes: size_of::<I>() as u32,
            ..PairOutput::default()
        };
        Ok(ColumnsInUse {
            output,
            _held: [a, b, c, d, e],
        })
    }
}

impl PairOfPoints<'_> {
    /// Returns true if a source is near through one image only, so that lists of these points
    /// without geometry say everything about their pairs.
    pub fn pairs_follow_from_lists(&self) -> bool {
        let lattice = &self.lattice;
        candidates(lattice.lattice(), lattice.largest()) != Candidates::ListedImages
    }
}

impl GpuBackend {
    /// Copies lists, which may be provisional, to arrays of the caller: pairs come in the order of
    /// the targets, and those of a target in the order of its list. Does not wait. The lists are
    /// those of the points. They come with the geometry that is wanted, unless
    /// [it follows](PairOfPoints::pairs_follow_from_lists).
    ///
    /// # Errors
    /// [`ErrorKind::OtherDevice`], [`ErrorKind::OutOfMemory`], and those of loading and starting a
    /// program.
    pub fn write_columns<T: PositionNumber, I: PointNumber>(
        &self,
        of: PairOfPoints<'_>,
        lists: &mut DeviceLists,
        to: &mut DeviceColumns<'_, T, I>,
    ) -> Result<(), Error> {
        let to = to.lend(&self.stream)?;
        let Some(from) = lists.stored(self)? else {
            return Ok(());
        };
        let PairOutput {
            images,
            displacements,
            distances,
            capacity,
            ..
        } = to.output;
        if capacity == 0 {
            return Ok(());
        }
        let there = lists.geometry.wanted();
        let has_all = (images == 0 || there.images)
            && (displacements == 0 || there.displacements)
            && (distances == 0 || there.distances);
        if has_all {
            return self.shared.columns()?.copy(&self.stream, &from, &to.output);
        }
        let lattice = of.lattice.lattice();
        let points = ListedPoints {
            lattice: Lattice::of_box(lattice),
            inverse: rounded_inverse(lattice.domain()),
            pad: 0,
            targets: of.targets.positions.address(),
            sources: of.sources.positions.address(),
            far: lists.arrays(0).far,
        };
        let kernel = self.shared.column_pairs(of.precision())?;
        kernel.put(&self.stream, &from, &to.output, &points)
    }
}

impl DeviceLists {
    /// The lists as the kernel reads them; None where there are none.
    fn stored(&mut self, backend: &GpuBackend) -> Result<Option<StoredLists>, Error> {
        let (count, room) = (self.len(), self.room());
        if count == 0 || room == 0 {
            return Ok(None);
        }
        let sums = ColumnsKernel::sums(count);
        self.columns.reserve(&backend.stream, sums)?;
        self.columns.zero(&backend.stream, 0..sums)?;
        let (places, arrays) = (self.ordered(), self.arrays(0));
        Ok(Some(StoredLists {
            starts: places.starts,
            counts: places.counts,
            entries: self.entries.address(),
            images: arrays.images,
            displacements: arrays.displacements,
            distances: arrays.distances,
            capacity: room as u64,
            sums: self.columns.address(),
            count: count as u32,
            wide: self.geometry.wide() as u32,
        }))
    }
}

#[cfg(test)]
mod tests {
    //! The kernel on the CPU, as in `systems_on_host`.

    use crate::{
        backend::on_host::compiled,
        launch::{ColumnsKernel, PairOutput, StoredLists, sources::COLUMNS},
    };
    use nearfield_testkit::random::Random;

    type RunColumns = unsafe extern "C" fn(*const StoredLists, *const PairOutput);

    /// Lists of targets in a storage, in another order than that of the targets.
    struct Drawn {
        starts: Vec<u64>,
        counts: Vec<u32>,
        entries: Vec<u32>,
    }

    fn drawn(random: &mut Random, targets: usize, most: u64) -> Drawn {
        let mut order: Vec<usize> = (0..targets).collect();
        for k in (1..targets).rev() {
            order.swap(k, random.below(k as u64 + 1) as usize);
        }
        let counts: Vec<u32> = (0..targets).map(|_| random.below(most) as u32).collect();
        let (mut starts, mut all) = (vec![0; targets], 0);
        for target in order {
            starts[target] = all;
            all += u64::from(counts[target]);
        }
        let entries = (0..all).map(|_| random.below(1 << 31) as u32).collect();
        Drawn {
            starts,
            counts,
            entries,
        }
    }

    /// What the kernel writes with so many entries in the storage, and this much room.
    struct Written<I, T> {
        targets: Vec<I>,
        sources: Vec<I>,
        images: Vec<[i32; 3]>,
        displacements: Vec<[T; 3]>,
        distances: Vec<T>,
    }

    /// Numbers that tell the arrays and the entries apart.
    fn geometry<T>(entry: u32, number: impl Fn(u32) -> T) -> ([i32; 3], [T; 3], T) {
        let image = [0, 1, 2].map(|k| (3 * entry + k) as i32);
        let d = [0, 1, 2].map(|k| number(5 * entry + k));
        (image, d, number(7 * entry + 1))
    }

    fn are_copied<I: Copy + PartialEq + std::fmt::Debug, T: Copy + PartialEq + std::fmt::Debug>(
        run: RunColumns,
        lists: &Drawn,
        (stored, room): (usize, usize),
        (index, number): (impl Fn(u32) -> I, impl Fn(u32) -> T),
    ) {
        let all = lists.entries.len();
        let beside: Vec<_> = lists
            .entries
            .iter()
            .map(|&entry| geometry(entry >> 8, &number))
            .collect();
        let images: Vec<_> = beside.iter().map(|of| of.0).collect();
        let displacements: Vec<_> = beside.iter().map(|of| of.1).collect();
        let distances: Vec<_> = beside.iter().map(|of| of.2).collect();
        let targets = lists.counts.len();
        let mut sums = vec![0u64; ColumnsKernel::sums(targets)];
        let mut found = Written {
            targets: vec![index(99); all],
            sources: vec![index(99); all],
            images: vec![[99; 3]; all],
            displacements: vec![[number(99); 3]; all],
            distances: vec![number(99); all],
        };
        let from = StoredLists {
            starts: lists.starts.as_ptr() as u64,
            counts: lists.counts.as_ptr() as u64,
            entries: lists.entries.as_ptr() as u64,
            images: images.as_ptr() as u64,
            displacements: displacements.as_ptr() as u64,
            distances: distances.as_ptr() as u64,
            capacity: stored as u64,
            sums: sums.as_mut_ptr() as u64,
            count: targets as u32,
            wide: (size_of::<T>() / 4) as u32,
        };
        let to = PairOutput {
            targets: found.targets.as_mut_ptr() as u64,
            sources: found.sources.as_mut_ptr() as u64,
            images: found.images.as_mut_ptr() as u64,
            displacements: found.displacements.as_mut_ptr() as u64,
            distances: found.distances.as_mut_ptr() as u64,
            capacity: room as u64,
            index_bytes: size_of::<I>() as u32,
            ..PairOutput::default()
        };
        // SAFETY: declared so in columns.cpp; all arrays are as long as the structs say.
        unsafe { run(&from, &to) };
        let mut place = 0;
        for (target, (&start, &count)) in lists.starts.iter().zip(&lists.counts).enumerate() {
            for entry in start as usize..start as usize + count as usize {
                let pair = (found.targets[place], found.sources[place]);
                if entry < stored && place < room {
                    let expected = (index(target as u32), index(lists.entries[entry]));
                    assert_eq!(pair, expected, "pair {place}");
                    assert_eq!(found.images[place], images[entry]);
                    assert_eq!(found.displacements[place], displacements[entry]);
                    assert_eq!(found.distances[place], distances[entry]);
                } else {
                    assert_eq!(pair, (index(99), index(99)), "pair {place}");
                    assert_eq!(found.images[place], [99; 3]);
                    assert_eq!(found.displacements[place], [number(99); 3]);
                    assert_eq!(found.distances[place], number(99));
                }
                place += 1;
            }
        }
        assert_eq!(place, all);
    }

    #[test]
    fn lists_become_pairs_in_the_order_of_their_targets_as_far_as_there_is_room() {
        let Some(library) = compiled("columns.cpp", COLUMNS.headers, &[]) else {
            return;
        };
        // SAFETY: declared so in columns.cpp.
        let run = unsafe { *library.get::<RunColumns>(b"run_columns").unwrap() };
        let mut random = Random::new(5);
        for (targets, most) in [(1, 2), (1, 300), (128, 40), (129, 70), (900, 9), (700, 1)] {
            let lists = drawn(&mut random, targets, most);
            let all = lists.entries.len();
            for (stored, room) in [
                (all, all),
                (all, all / 2),
                (all / 3, all),
                (0, all),
                (all, 0),
            ] {
                let there = (stored, room);
                are_copied(run, &lists, there, (i64::from, |n| n as f32));
                are_copied(run, &lists, there, (|n| n, f64::from));
            }
        }
    }
}
