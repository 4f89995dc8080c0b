//! Pairs of many small systems of points.
//!
//! Systems need no cells: a block tests all pairs of a system in every image that can matter, and
//! compact arrays in the caller's order come out of one pass. Each quantity of a pair is an array
//! of its own, which is written only if it is asked for.
//!
//! # The kernels of a search
//!
//! 1. `systems_prepare`, a thread per system, checks offsets, radius and cell, writes the cell with
//!    its inverse, and says which blocks search the system.
//! 2. `systems_search`, a block per 64 targets of a system, tests all pairs of these. The outcome
//!    of a test is a bit in shared memory. A look-back over the blocks before gives the place of
//!    the first pair, and the bits become pairs, written side by side.
//!
//! # What it costs
//!
//! A point of a crystal has some 400 candidates. A test of 32 of them against a target takes 17
//! instructions, and a block of 55 targets about 12,000. Finding the bounds of the images, laying
//! out candidates, and turning bits into entries take some 3,000 together, and writing about 1,000
//! for each array of three numbers a pair. A multiprocessor holds eight blocks, so one waits for
//! memory while others test.
//!
//! Systems with more than 512 candidates in reach, or more than 128 points, are tested twice,
//! because not all their bits have room: a first time for the counts, and once more to write.
//!
//! # Who checks what
//!
//! The host checks the lengths of arrays, because it knows them. All that stands in the arrays is
//! checked by the kernels: copying cells and offsets to the host would wait for the device. A
//! kernel notes the first system that it refuses, not the reason. The caller, who can copy the
//! arrays then, finds the reason by the checks of the CPU backend, so messages are the same.
//!
//! A system that is refused by `systems_prepare` stops the search before it reads anything by its
//! offsets. One that is refused by `systems_search` has no pairs; those of others are written, and
//! do not count.
//!
//! # Nothing is waited for
//!
//! [`GpuBackend::start_systems`] puts everything on the stream, into the arrays that there are.
//! Only the device knows whether the pairs had room, and whether all systems could be searched.
//! [`GpuBackend::finish_systems`] asks, and makes room. Blocks whose pairs have no room write none.
//!
//! # Large systems
//!
//! Time grows with the square of the points of a system. Systems of more than
//! [`SYSTEM_MAX`](crate::constants::SYSTEM_MAX) points, or with more than 2²⁴ candidates, the
//! images of all points that may be in reach, are refused.

use super::{
    columns::{DeviceColumns, PairQuantities},
    given_data::PointNumber,
    given_systems::{DeviceSystems, HostSystems, SystemsInUse, one_or_many},
    gpu::GpuBackend,
};
use crate::constants::{NONE, SYSTEM_BOX};
use crate::{
    error::{Error, ErrorKind, fits},
    handles::{DeviceValue, DeviceView, PositionNumber},
    launch::{PairOutput, SystemArrays, SystemsKernels, SystemsStatus, sources, units},
    memory::{Buffer, HostCopy},
    program::Program,
};
use bytemuck::{Pod, cast_slice, try_cast_slice_mut};
use nearfield_pairs::{ListKind, Real};
use nearfield_shared::Source;

/// The outcome of a search, which only the device knows.
///
/// A search that is to be repeated has counted all pairs, so the next one has room unless the
/// systems have changed meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemsOutcome {
    /// So many pairs were written.
    Valid(u64),
    /// The pairs had too little room: search once more. The arrays that are kept here have enough
    /// now; those of a caller have to be longer.
    Repeat,
    /// This is the first system that cannot be searched; nothing was written.
    Fault(usize),
}

/// The pairs of systems on the device, and all memory that a search of them keeps.
///
/// Arrays only grow, so a search of as many points and pairs as the last one allocates nothing. The
/// pairs of a search stay until the next one begins. Arrays whose elements depend on the precision
/// or on the type of indices are kept as bytes, because one `DevicePairs` serves searches of all.
#[derive(Debug)]
pub struct DevicePairs {
    /// In `f32` and in `f64`, loaded when first needed.
    kernels: [Option<SystemsKernels>; 2],
    /// Offsets of every point, and behind them the number of pairs.
    starts: Buffer<u64>,
    /// `SYSTEM_BOX` bytes per system.
    boxes: Buffer<u8>,
    /// The system of every block.
    units: Buffer<u32>,
    /// Pairs of every block, for the look-back.
    sums: Buffer<u64>,
    /// A single one.
    status: Buffer<SystemsStatus>,
    /// Where the host reads it.
    answer: Option<HostCopy<SystemsStatus>>,
    /// Indices of 32 or 64 bits.
    targets: Buffer<u8>,
    /// As well.
    sources: Buffer<u8>,
    /// Three of every pair.
    images: Buffer<i32>,
    /// Three numbers of either precision of every pair.
    displacements: Buffer<u8>,
    /// One.
    distances: Buffer<u8>,
    /// Systems that came from the host.
    positions: Buffer<u8>,
    offsets: Buffer<i64>,
    radii: Buffer<f64>,
    cells: Buffer<f64>,
    periodic: Buffer<u8>,
    /// The last search.
    last: Option<Last>,
    /// Pairs of the last search that was finished, also of those that had no room.
    counted: u64,
}

/// What was started last, which later calls need to know: the device's answer makes sense only
/// beside it.
#[derive(Debug, Clone, Copy)]
struct Last {
    points: usize,
    /// Systems.
    count: usize,
    wanted: PairQuantities,
    /// Bytes of a coordinate.
    real: usize,
    /// Pairs that there is room for.
    capacity: u64,
    /// The arrays are the caller's.
    is_given: bool,
}

impl Default for DevicePairs {
    fn default() -> Self {
        Self {
            kernels: [None, None],
            starts: Buffer::new("offsets of pairs"),
            boxes: Buffer::new("cells of systems"),
            units: Buffer::new("blocks of systems"),
            sums: Buffer::new("pairs of blocks"),
            status: Buffer::new("the status of a search"),
            answer: None,
            targets: Buffer::new("targets of pairs"),
            sources: Buffer::new("sources of pairs"),
            images: Buffer::new("images of pairs"),
            displacements: Buffer::new("displacements of pairs"),
            distances: Buffer::new("distances of pairs"),
            positions: Buffer::new("positions of systems"),
            offsets: Buffer::new("offsets of systems"),
            radii: Buffer::new("radii of systems"),
            cells: Buffer::new("cells of systems"),
            periodic: Buffer::new("periodicities of systems"),
            last: None,
            counted: 0,
        }
    }
}

/// The program of a source in a precision.
pub(super) fn program(source: &Source, double: bool) -> Program {
    Program::from(source).define("NF_REAL", if double { "double" } else { "float" })
}

/// Every program of systems, for those who compile all programs ahead: one for each precision of
/// coordinates.
pub(crate) fn systems_programs() -> Vec<Program> {
    let of = |source| [false, true].map(|double| program(source, double));
    [of(&sources::SYSTEMS), of(&sources::SKIN_PAIRS)].concat()
}

impl GpuBackend {
    /// Starts a search of systems on the device, into the arrays that there are.
    ///
    /// Returns when the kernels are on the stream. Work that is put there afterwards may read the
    /// results, which count if [`finish_systems`](Self::finish_systems) says so.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] and [`ErrorKind::TooManyPoints`] for arrays that do not fit each
    /// other, [`ErrorKind::OtherDevice`], [`ErrorKind::OutOfMemory`], and those of compiling and
    /// starting a program. What systems hold is for the device to find out.
    pub fn start_systems<T: Real + DeviceValue>(
        &self,
        systems: &DeviceSystems<'_, T>,
        wanted: PairQuantities,
        pairs: &mut DevicePairs,
    ) -> Result<(), Error> {
        self.start_device_systems(systems, (wanted, None), pairs)
    }

    /// The same, into arrays of the caller. If they are too short, the search has to be repeated
    /// with longer ones: [`DevicePairs::counted`] says how many pairs there are.
    ///
    /// # Errors
    /// As [`start_systems`](Self::start_systems).
    pub fn start_systems_into<T: Real + PositionNumber, I: PointNumber>(
        &self,
        systems: &DeviceSystems<'_, T>,
        kind: ListKind,
        to: &mut DeviceColumns<'_, T, I>,
        pairs: &mut DevicePairs,
    ) -> Result<(), Error> {
        pairs.last = None;
        let wanted = to.quantities(kind);
        let to = to.lend(&self.stream)?;
        self.start_device_systems(systems, (wanted, Some(to.output)), pairs)
    }

    /// Starts a search into the arrays of the caller, or else into those that there are.
    fn start_device_systems<T: Real + DeviceValue>(
        &self,
        systems: &DeviceSystems<'_, T>,
        to: (PairQuantities, Option<PairOutput>),
        pairs: &mut DevicePairs,
    ) -> Result<(), Error> {
        pairs.last = None;
        let SystemsInUse { arrays, shape, .. } = &systems.lend(self)?;
        self.start_arrays(*arrays, *shape, size_of::<T>(), to, pairs)
    }

    /// Prepares the cells of systems that were just searched, with other radii, into `boxes`.
    pub(super) fn prepare_boxes<T: Real + DeviceValue>(
        &self,
        systems: &DeviceSystems<'_, T>,
        boxes: &mut Buffer<u8>,
        pairs: &mut DevicePairs,
    ) -> Result<(), Error> {
        let SystemsInUse { arrays, shape, .. } = &systems.lend(self)?;
        let [count, points] = *shape;
        boxes.reserve(&self.stream, SYSTEM_BOX as usize * count)?;
        let kernels = &pairs.kernels[usize::from(size_of::<T>() == 8)];
        let (Some(kernels), 1..) = (kernels, count) else {
            return Ok(());
        };
        pairs.status.fill_ones(&self.stream)?;
        let arrays = SystemArrays {
            boxes: boxes.address(),
            units: pairs.units.address(),
            sums: pairs.sums.address(),
            status: pairs.status.address(),
            count: count as u32,
            points: points as u32,
            ..*arrays
        };
        kernels.prepare(&self.stream, &arrays)
    }

    /// Searches systems on the host, which are copied, until the pairs have room; waits for it.
    /// Page-locked arrays may be used otherwise when this returns, also by an error.
    ///
    /// [`SystemsOutcome::Repeat`] is an outcome only if the systems were changed meanwhile.
    ///
    /// # Errors
    /// As [`start_systems`](Self::start_systems) and [`finish_systems`](Self::finish_systems).
    pub fn search_host_systems<T: Real>(
        &self,
        systems: &HostSystems<'_, T>,
        wanted: PairQuantities,
        pairs: &mut DevicePairs,
    ) -> Result<SystemsOutcome, Error> {
        let mut outcome = SystemsOutcome::Repeat;
        // The second time there is room for as many pairs as the first has counted.
        for _ in 0..2 {
            if outcome == SystemsOutcome::Repeat {
                let started = self.start_host_systems(systems, wanted, pairs);
                let finished = started.and_then(|()| self.finish_systems(pairs));
                outcome = finished.inspect_err(|_| {
                    // Page-locked arrays of the caller may still be read.
                    let _ = self.wait();
                })?;
            }
        }
        Ok(outcome)
    }

    /// Starts a search of systems on the host. Page-locked arrays are read until
    /// [`finish_systems`](Self::finish_systems).
    fn start_host_systems<T: Real>(
        &self,
        systems: &HostSystems<'_, T>,
        wanted: PairQuantities,
        pairs: &mut DevicePairs,
    ) -> Result<(), Error> {
        pairs.last = None;
        let count = systems.offsets.len().saturating_sub(1);
        fits("offsets of systems", systems.offsets.len(), count + 1)?;
        let mut many = u32::from(one_or_many(
            "radii of systems",
            systems.radii.len(),
            count,
            1,
        )?);
        let stream = &self.stream;
        pairs
            .positions
            .upload(stream, cast_slice(systems.positions))?;
        pairs.offsets.upload(stream, systems.offsets)?;
        pairs.radii.upload(stream, systems.radii)?;
        let mut arrays = SystemArrays {
            positions: pairs.positions.address(),
            offsets: pairs.offsets.address(),
            radii: pairs.radii.address(),
            strict: u32::from(systems.strict),
            ..SystemArrays::default()
        };
        if !systems.cells.is_empty() {
            let cells: &[f64] = cast_slice(systems.cells);
            many |= u32::from(one_or_many("cells of systems", cells.len(), count, 9)?) << 1;
            pairs.cells.upload(stream, cells)?;
            arrays.cells = pairs.cells.address();
        }
        if !systems.periodic.is_empty() {
            let periodic: &[u8] = cast_slice(systems.periodic.as_flattened());
            let flags = one_or_many("periodicities of systems", periodic.len(), count, 3)?;
            many |= u32::from(flags) << 2;
            pairs.periodic.upload(stream, periodic)?;
            arrays.periodic = pairs.periodic.address();
        }
        arrays.many = many;
        let points = systems.positions.len();
        let to = (wanted, None);
        self.start_arrays(arrays, [count, points], size_of::<T>(), to, pairs)
    }

    /// Starts all kernels for systems whose arrays are on the device.
    fn start_arrays(
        &self,
        arrays: SystemArrays,
        [count, points]: [usize; 2],
        real: usize,
        (wanted, given): (PairQuantities, Option<PairOutput>),
        pairs: &mut DevicePairs,
    ) -> Result<(), Error> {
        if count == 0 {
            fits("positions without systems", points, 0)?;
        }
        // Blocks are numbered in 32 bits, and so are points and what lies behind them.
        if points.saturating_add(count) >= (u32::MAX >> 1) as usize {
            return Err(ErrorKind::TooManyPoints(points.max(count)).into());
        }
        let stream = &self.stream;
        let precision = usize::from(real == 8);
        if pairs.kernels[precision].is_none() {
            pairs.kernels[precision] = Some(SystemsKernels::load(
                &*self.load(&program(&sources::SYSTEMS, real == 8))?,
            )?);
        }
        let blocks = units(points, count);
        pairs.starts.reserve(stream, points + 1)?;
        pairs.boxes.reserve(stream, SYSTEM_BOX as usize * count)?;
        pairs.units.reserve(stream, blocks)?;
        pairs.sums.reserve(stream, blocks)?;
        pairs.status.reserve(stream, 1)?;
        pairs.status.fill_ones(stream)?;
        let capacity = pairs.capacity(wanted, real) as u64;
        let starts = pairs.starts.address();
        let output = match given {
            Some(given) => PairOutput { starts, ..given },
            None => pairs.output(wanted, capacity),
        };
        let arrays = SystemArrays {
            boxes: pairs.boxes.address(),
            units: pairs.units.address(),
            sums: pairs.sums.address(),
            status: pairs.status.address(),
            count: count as u32,
            points: points as u32,
            half: u32::from(wanted.kind == ListKind::Half),
            ..arrays
        };
        if let (Some(kernels), 1..) = (&pairs.kernels[precision], count) {
            kernels.prepare(stream, &arrays)?;
            kernels.search(stream, &arrays, &output)?;
        } else {
            pairs.starts.zero(stream, 0..points + 1)?;
        }
        pairs.last = Some(Last {
            points,
            count,
            wanted,
            real,
            capacity: output.capacity,
            is_given: given.is_some(),
        });
        Ok(())
    }

    /// Waits for the last search, and makes room where its pairs had too little.
    ///
    /// The status of the search is copied to the host. A search that wants no arrays is valid
    /// whatever the number of pairs.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`] when a kernel failed, and [`ErrorKind::OutOfMemory`] for room that
    /// there is not.
    pub fn finish_systems(&self, pairs: &mut DevicePairs) -> Result<SystemsOutcome, Error> {
        let Some(last) = pairs.last else {
            return Ok(SystemsOutcome::Valid(0));
        };
        let answer = match &mut pairs.answer {
            Some(answer) => answer,
            none => none.insert(self.host_copy_of(1)?),
        };
        pairs.status.start_host_copy(&self.stream, 0, answer, 1)?;
        let SystemsStatus {
            fault,
            bad,
            pairs: all,
            ..
        } = answer.read()?[0];
        if fault.min(bad) != NONE {
            return Ok(SystemsOutcome::Fault(fault.min(bad) as usize));
        }
        // Without systems no kernel has written it.
        let all = if last.count == 0 { 0 } else { all };
        pairs.counted = all;
        if all <= last.capacity || last.wanted.is_empty() {
            return Ok(SystemsOutcome::Valid(all));
        }
        if last.is_given {
            return Ok(SystemsOutcome::Repeat);
        }
        let needed = usize::try_from(all).unwrap_or(usize::MAX);
        pairs.make_room(&self.stream, last.wanted, last.real, needed)?;
        Ok(SystemsOutcome::Repeat)
    }

    /// Copies a quantity of all pairs of the last search to the host, and waits for it. Nothing is
    /// copied into an empty slice, which is what a quantity that is not wanted has.
    ///
    /// `to` has the quantity of all `Valid` pairs, in the type of the search; a shorter slice has
    /// that of the first.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] for a slice of other bytes or longer than the array, and
    /// [`ErrorKind::Driver`].
    pub fn read_pairs<V: Pod>(
        &self,
        pairs: &DevicePairs,
        quantity: PairArray,
        to: &mut [V],
    ) -> Result<(), Error> {
        if to.is_empty() {
            return Ok(());
        }
        let stream = &self.stream;
        match quantity {
            PairArray::Offsets => pairs.starts.download(stream, 0, elements(to)?),
            PairArray::Targets => pairs.targets.download(stream, 0, elements(to)?),
            PairArray::Sources => pairs.sources.download(stream, 0, elements(to)?),
            PairArray::Images => pairs.images.download(stream, 0, elements(to)?),
            PairArray::Displacements => pairs.displacements.download(stream, 0, elements(to)?),
            PairArray::Distances => pairs.distances.download(stream, 0, elements(to)?),
        }
    }
}

/// An array of the pairs of systems, for those who read it.
///
/// Entry k of every array belongs to the same pair. Pairs come point by point, and those of a point
/// by (neighbour, image).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairArray {
    /// `u64`: the first entry of every point, and the number of pairs.
    Offsets,
    /// Indices of 32 or 64 bits.
    Targets,
    /// As well.
    Sources,
    /// Three `i32` of every pair.
    Images,
    /// Three coordinates.
    Displacements,
    /// One.
    Distances,
}

impl PairQuantities {
    /// Whether no array is wanted.
    fn is_empty(self) -> bool {
        let Self {
            targets,
            sources,
            images,
            displacements,
            distances,
            ..
        } = self;
        !(targets || sources || images || displacements || distances)
    }

    /// Bytes of an index.
    fn index_bytes(self) -> usize {
        if self.wide { 8 } else { 4 }
    }
}

impl DevicePairs {
    /// Pairs that all arrays that are wanted have room for.
    ///
    /// Arrays are of different lengths where they were not all wanted by earlier searches, or were
    /// wanted in another precision or with indices of another width.
    fn capacity(&self, wanted: PairQuantities, real: usize) -> usize {
        let room = [
            (
                wanted.targets,
                self.targets.capacity() / wanted.index_bytes(),
            ),
            (
                wanted.sources,
                self.sources.capacity() / wanted.index_bytes(),
            ),
            (wanted.images, self.images.capacity() / 3),
            (
                wanted.displacements,
                self.displacements.capacity() / (3 * real),
            ),
            (wanted.distances, self.distances.capacity() / real),
        ];
        let wanted = room.into_iter().filter(|(wanted, _)| *wanted);
        wanted.map(|(_, room)| room).min().unwrap_or(0)
    }

    /// Makes room for so many pairs.
    ///
    /// If memory runs out in the middle, arrays have room for different numbers of pairs, and the
    /// least of them counts.
    fn make_room(
        &mut self,
        stream: &crate::memory::Queue,
        wanted: PairQuantities,
        real: usize,
        pairs: usize,
    ) -> Result<(), Error> {
        let bytes = |each: usize| pairs.saturating_mul(each);
        if wanted.targets {
            self.targets.reserve(stream, bytes(wanted.index_bytes()))?;
        }
        if wanted.sources {
            self.sources.reserve(stream, bytes(wanted.index_bytes()))?;
        }
        if wanted.images {
            self.images.reserve(stream, bytes(3))?;
        }
        if wanted.displacements {
            self.displacements.reserve(stream, bytes(3 * real))?;
        }
        if wanted.distances {
            self.distances.reserve(stream, bytes(real))?;
        }
        Ok(())
    }

    /// Where kernels write. The address of an array that is not wanted is 0, which kernels take as
    /// that.
    pub(super) fn output(&self, wanted: PairQuantities, capacity: u64) -> PairOutput {
        let of = |is_wanted: bool, address: u64| if is_wanted { address } else { 0 };
        PairOutput {
            starts: self.starts.address(),
            targets: of(wanted.targets, self.targets.address()),
            sources: of(wanted.sources, self.sources.address()),
            images: of(wanted.images, self.images.address()),
            displacements: of(wanted.displacements, self.displacements.address()),
            distances: of(wanted.distances, self.distances.address()),
            capacity,
            index_bytes: wanted.index_bytes() as u32,
            pad: 0,
        }
    }

    /// Pairs of the last search that was finished, of which there may be more than had room.
    pub fn counted(&self) -> u64 {
        self.counted
    }

    /// The offsets of the last search on the device: the first entry of every point, and behind
    /// them the number of pairs.
    pub fn offsets(&self) -> Option<DeviceView<'_, u64>> {
        let last = self.last?;
        self.starts.view(last.points + 1).map(DeviceView)
    }

    /// An array of the last search on the device, in values that its elements consist of, with room
    /// behind the last pair. None of a quantity that was not wanted, or of values of another size,
    /// or that was written to an array of the caller.
    pub fn array<V: DeviceValue>(&self, quantity: PairArray) -> Option<DeviceView<'_, V>> {
        let Last { wanted, real, .. } = self.last.filter(|last| !last.is_given)?;
        let index = wanted.index_bytes();
        let (is_wanted, bytes, view) = match quantity {
            PairArray::Offsets => return None,
            PairArray::Targets => (wanted.targets, index, self.targets.values()),
            PairArray::Sources => (wanted.sources, index, self.sources.values()),
            PairArray::Images => (wanted.images, 4, self.images.values()),
            PairArray::Displacements => (wanted.displacements, real, self.displacements.values()),
            PairArray::Distances => (wanted.distances, real, self.distances.values()),
        };
        let view = view.filter(|_| is_wanted && bytes == size_of::<V>());
        view.map(DeviceView)
    }
}

/// Values as an array's elements.
///
/// # Errors
/// [`ErrorKind::FieldLength`] if they are not whole elements.
fn elements<E: Pod, V: Pod>(to: &mut [V]) -> Result<&mut [E], Error> {
    let bytes = size_of_val(to);
    try_cast_slice_mut(to).or(Err(Error::from(ErrorKind::FieldLength {
        what: "a quantity of pairs, in bytes",
        found: bytes,
        expected: bytes.next_multiple_of(size_of::<E>()),
    })))
}
