//! A device that does not exist: one more thread of the CPU, and a virtual clock.
//!
//! Policies see the clock, so what they do is the same on every machine and in every run. Results
//! are computed for real, and they are handed over as a real GPU's are: positions come in pieces
//! into memory of the device's own and are sorted there, starts and lengths of lists are handed
//! over before their entries, and values arrive in pieces. Only the code that computes is the CPU
//! backend's. A step that fails on the virtual clock fails for real, early for too little memory,
//! and in the middle of its results where the device is lost.
//!
//! It implements the trait that a GPU implements, so everything that calls the trait, from the plan
//! to the join and the recovery, runs as in production, on machines without a GPU and with the
//! faults that its settings name.
//!
//! Its pool has one thread of its own, so that it works beside the CPU backend's workers as a
//! device does. The time it really takes is ignored: the times of backends in reports and traces
//! are the virtual clock's.
//!
//! **Invariant:** results have the bits of the CPU backend's, because they are computed by that
//! code from positions that were sent.

mod memory;
mod rows;

use self::memory::OwnLender;
use super::{
    DeviceError, Fault, HostMemory, Job, JobKind, StepInput,
    accelerator::{Accelerator, DevicePart, JointRoom, KernelWork, OnPlaced, OnResults, ValueWork},
    rows::{MeasuredRows, OnRows, Query, QueryTo, RowRange, RowsOf},
    split::{BrickPlan, GpuDone, OF_CPU},
    support::Backend,
    transfer::{
        DeviceLost, ResultStream, RunningBounds, StagedUpload, numbers_of, numbers_of_piece,
    },
    turn::Turn,
};
use crate::{Device, Error, ErrorKind, balance::Strategy};
use nearfield_balance::{DeviceFault, EmulatedSpec, Machine, StepTimes, Traffic};
use nearfield_cpu::{
    CpuBackend, Inside, JointLists, ListOrder, ListRows, NeighborLists, PairGeometry, PairOfSets,
    SetRadii, Share, Spent,
};
use nearfield_grid::{
    Bounds, Grid, HostLists, Lattice,
    memory::{Shortage, make_room, zeroed},
};
use nearfield_pairs::Field;
use std::{
    ops::ControlFlow,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

/// The device and what it holds.
#[derive(Debug)]
pub(crate) struct EmulatedDevice {
    spec: EmulatedSpec,
    /// Its one thread.
    cpu: CpuBackend,
    state: Turn<EmulatedState>,
    clock: Mutex<VirtualClock>,
    /// By set, whether the device has the positions that were placed last.
    complete: Mutex<Vec<bool>>,
    /// Ranges of lists that it writes before it fails, in tests.
    ranges_left: AtomicUsize,
}

/// The virtual clock.
#[derive(Debug)]
struct VirtualClock {
    machine: Machine,
    /// Fault of the device in its next job.
    fault: Option<DeviceFault>,
}

/// The memory of the device.
#[derive(Debug, Default)]
struct EmulatedState {
    /// By slot.
    sets: Vec<EmulatedSet>,
    /// Lattice that the sets are sorted on.
    lattice: Option<Lattice>,
    /// By target, whether it is the device's in this step.
    taken: Vec<AtomicBool>,
    /// Not read: a device has a clock of its own.
    spent: Spent,
    /// Lists before they are delivered.
    lists: NeighborLists,
    /// Kept between jobs while they are not lent.
    results: Option<Vec<f32>>,
}

/// A set in the device's memory.
#[derive(Debug, Default)]
struct EmulatedSet {
    positions: Vec<f32>,
    bounds: Option<Bounds>,
    /// Kept for its memory while it is not sorted.
    grid: Option<Grid>,
    sorted: bool,
}

impl EmulatedDevice {
    /// Starts the device: one more thread, which rests while there is no job.
    pub(crate) fn new(spec: EmulatedSpec) -> Result<Self, Error> {
        Ok(Self {
            spec,
            cpu: CpuBackend::new(1)?,
            state: Turn::new(EmulatedState::default()),
            clock: Mutex::new(VirtualClock {
                machine: Machine::new(spec),
                fault: None,
            }),
            complete: Mutex::default(),
            ranges_left: AtomicUsize::new(usize::MAX),
        })
    }

    /// The device, for a job that this thread may use it for.
    fn take(&self) -> Result<MutexGuard<'_, EmulatedState>, Fault> {
        self.state.take_for_job().ok_or(Fault::Busy)
    }

    fn clock(&self) -> MutexGuard<'_, VirtualClock> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn complete(&self) -> MutexGuard<'_, Vec<bool>> {
        self.complete.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fault of the device in the job that begins now, if any: too little memory ends the job
    /// at once.
    ///
    /// `Ok(Some(_))` is a device that will be lost in the middle of its results. A fault is taken
    /// off the clock, so it happens once.
    fn begin(&self) -> Result<Option<Fault>, Fault> {
        match self.clock().fault.take() {
            Some(DeviceFault::OutOfMemory) => Err(failed("it has run out of memory")),
            Some(DeviceFault::Lost) => Ok(Some(failed("it is lost"))),
            None => Ok(None),
        }
    }
}

/// A fault that policies and reports see.
fn failed(why: &str) -> Fault {
    Fault::Failed(format!("emulated: {why}"))
}

impl EmulatedState {
    /// Sorts the sets that are not sorted into the cells of the host.
    fn sort(&mut self, cpu: &CpuBackend, input: &StepInput<'_>) -> Result<(), Error> {
        self.sort_onto(cpu, input, input.lattice)
    }

    /// Sorts the sets that are not sorted into the cells of a lattice.
    fn sort_onto(
        &mut self,
        cpu: &CpuBackend,
        input: &StepInput<'_>,
        lattice: &Lattice,
    ) -> Result<(), Error> {
        if self.lattice.as_ref() != Some(lattice) {
            self.lattice = Some(lattice.clone());
            self.sets.iter_mut().for_each(|set| set.sorted = false);
        }
        for (number, set) in self.sets.iter_mut().enumerate().take(input.sets.len()) {
            if !set.sorted {
                let on_host = input.sets.set(number);
                let grid = (set.grid).get_or_insert_with(|| Grid::new(lattice.clone()));
                let positions = set.positions.as_chunks::<3>().0;
                let bounds = set.bounds.unwrap_or(*on_host.grid.bounds());
                cpu.install(|| grid.build(positions.into(), bounds, lattice))
                    .map_err(|source| ErrorKind::Positions {
                        set: on_host.id,
                        source,
                    })?;
                set.sorted = true;
            }
        }
        Ok(())
    }

    /// The sets of a job, sorted; `planned` where only the device's part counts.
    fn pair<'a>(
        &'a self,
        job: Job,
        planned: Option<&'a BrickPlan>,
    ) -> Result<PairOfSets<'a>, DeviceError> {
        let grid = |set: usize| {
            let grid = self.sets.get(set).and_then(|set| set.grid.as_ref());
            grid.ok_or(DeviceError::Fault(Fault::Behind))
        };
        Ok(PairOfSets {
            targets: grid(job.targets)?,
            sources: grid(job.sources)?,
            same_set: job.targets == job.sources,
            radii: SetRadii::Uniform,
            filter: Default::default(),
            share: planned.map(|planned| Share {
                bricks: planned.parts(),
                parts: (0, OF_CPU - 1),
                taken: &self.taken,
                spent: &self.spent,
            }),
        })
    }

    /// Marks none of `targets` targets.
    fn clear(&mut self, targets: usize) -> Result<(), Shortage> {
        self.taken.clear();
        make_room(&mut self.taken, targets, "marks of targets")?;
        self.taken.resize_with(targets, AtomicBool::default);
        self.spent.clear();
        Ok(())
    }

    /// Room for results, kept from before where it suffices.
    fn room(&mut self, len: usize) -> Result<Vec<f32>, Shortage> {
        match self.results.take().filter(|old| old.len() >= len) {
            Some(old) => Ok(old),
            None => zeroed(len, "results on the device"),
        }
    }
}

impl Accelerator for EmulatedDevice {
    fn device(&self) -> Device {
        Device::Emulated(self.spec)
    }

    fn backend(&self) -> Backend {
        Backend::Emulated
    }

    fn check_kernel(&self, _: &KernelWork<'_>) -> Result<(), String> {
        Ok(())
    }

    fn traffic(&self, kind: JobKind) -> Traffic {
        if kind == JobKind::Lists {
            Traffic::LISTS
        } else {
            Traffic::SUMS
        }
    }

    fn virtual_times(&self, planned: &BrickPlan) -> Option<StepTimes> {
        let mut clock = self.clock();
        let times = clock.machine.step(planned.layout(), planned.plan());
        clock.fault = times.fault;
        Some(times)
    }

    fn copy(&self, old: Option<HostMemory>, numbers: usize) -> Result<HostMemory, Fault> {
        if let Some(old) = old.filter(|old| old.len() >= numbers) {
            return Ok(old);
        }
        let made = zeroed(numbers + numbers / 8, "positions for the device");
        made.map(HostMemory::Own)
            .map_err(|error| failed(&error.to_string()))
    }

    fn place(
        &self,
        set: usize,
        cpu: &CpuBackend,
        copy: &mut [f32],
        from: Field<'_>,
    ) -> Result<Option<Bounds>, Fault> {
        let mut state = self.take()?;
        if state.sets.len() <= set {
            state.sets.resize_with(set + 1, EmulatedSet::default);
            self.complete().resize(set + 1, false);
        }
        self.complete()[set] = false;
        let EmulatedSet {
            positions, sorted, ..
        } = &mut state.sets[set];
        *sorted = false;
        positions.clear();
        make_room(positions, numbers_of(&from), "positions on the device")
            .map_err(|error| failed(&error.to_string()))?;
        let seen = RunningBounds::default();
        let upload = StagedUpload::new(&[from], copy, |numbers| seen.look(numbers));
        let receive = |_, piece: &[f32]| {
            positions.extend_from_slice(piece);
            Ok::<(), Fault>(())
        };
        upload.send(cpu, receive)?;
        self.complete()[set] = true;
        let bounds = seen.bounds();
        state.sets[set].bounds = bounds;
        Ok(bounds)
    }

    fn place_again(&self, set: usize, before: Option<&[f32]>) {
        let Ok(mut state) = self.take() else { return };
        let Some(target) = state.sets.get_mut(set) else {
            return;
        };
        let before = before.unwrap_or(&[]);
        *target = EmulatedSet::default();
        let has = make_room(&mut target.positions, before.len(), "positions").is_ok();
        if has {
            target.positions.extend_from_slice(before);
        }
        self.complete()[set] = has;
    }

    fn holds(&self, set: usize) -> bool {
        self.complete().get(set).is_some_and(|&complete| complete)
    }

    fn holds_first(&self, sets: usize) -> bool {
        let complete = self.complete();
        let first = complete.get(..sets);
        first.is_some_and(|first| first.iter().all(|&complete| complete))
    }

    fn outdate(&mut self) {
        self.state.get_mut().lattice = None;
    }

    fn find(
        &self,
        input: &StepInput<'_>,
        job: Job,
        lists: &mut NeighborLists,
    ) -> Result<(), DeviceError> {
        let state = &mut *self.take()?;
        let fault = self.begin()?;
        state.sort(&self.cpu, input)?;
        let mut found = std::mem::take(&mut state.lists);
        let of = state.pair(job, None)?;
        let searched = self
            .cpu
            .search(of, input.options.lists, ListOrder::Unspecified, &mut found);
        let (targets, pairs) = (of.targets.points().len(), found.pairs());
        let fill = |start: &mut [u64], count: &mut [u32], entries: &mut [u32], inside: Inside| {
            let to = HostLists {
                start,
                count,
                entries,
            };
            let (mut inside, mut checked) = (Some(inside), None);
            let placed = &mut |start: &mut [u64], count: &mut [u32]| {
                checked = inside.take().map(|inside| inside.check(start, count));
            };
            deliver(&found, |_| true, to, placed, fault)?;
            Ok(checked)
        };
        let received = searched
            .map_err(|error| DeviceError::Host(error.into()))
            .and_then(|()| {
                let receive = || lists.receive(targets, pairs, &OwnLender, fill);
                input.cpu.install(receive)
            });
        state.lists = found;
        received
    }

    fn geometry(
        &self,
        input: &StepInput<'_>,
        job: Job,
        geometry: &mut PairGeometry,
    ) -> Result<(), DeviceError> {
        let state = &mut *self.take()?;
        let fault = self.begin()?;
        state.sort(&self.cpu, input)?;
        let of = state.pair(job, None)?;
        let measured = self.cpu.measure(of, input.options.lists)?;
        measured.write_geometry(ListOrder::Unspecified, geometry)?;
        fault.map_or(Ok(()), |fault| Err(fault.into()))
    }

    fn measure(&self, input: &StepInput<'_>, job: Job) -> Result<u64, DeviceError> {
        Ok(self.count_rows(input, job, RowsOf::Lists)?.pairs)
    }

    fn query(
        &self,
        input: &StepInput<'_>,
        query: Query<'_>,
        to: QueryTo<'_>,
    ) -> Result<(), DeviceError> {
        self.find_query(input, query, to)
    }

    fn measure_rows(
        &self,
        input: &StepInput<'_>,
        job: Job,
        what: RowsOf,
    ) -> Result<MeasuredRows, DeviceError> {
        self.count_rows(input, job, what)
    }

    fn lend_rows(
        &self,
        rows: &mut ListRows,
        targets: usize,
        pairs: u64,
    ) -> Result<(), DeviceError> {
        rows.borrow(targets, pairs, &OwnLender)
    }

    fn write_rows(
        &self,
        input: &StepInput<'_>,
        measured: &MeasuredRows,
        range: &RowRange,
        rows: &mut ListRows,
    ) -> Result<(), DeviceError> {
        self.find_rows(input, measured, range, rows)
    }

    fn stream_rows(
        &self,
        input: &StepInput<'_>,
        measured: &MeasuredRows,
        ranges: &[RowRange],
        receive: &mut OnRows<'_>,
    ) -> Result<ControlFlow<()>, DeviceError> {
        self.send_rows(input, measured, ranges, receive)
    }

    fn values(
        &self,
        input: &StepInput<'_>,
        job: Job,
        work: &ValueWork<'_>,
        receive: &mut OnResults<'_>,
    ) -> Result<(), DeviceError> {
        let state = &mut *self.take()?;
        let fault = self.begin()?;
        let targets = input.points_of(job)[0];
        let len = targets * work.width;
        let mut results = state.room(len).map_err(Error::from)?;
        state.sort(&self.cpu, input)?;
        let of = state.pair(job, None)?;
        let computed = work.by_cpu_code.compute(&self.cpu, of, &mut results[..len]);
        let received = computed.map_err(DeviceError::Host).and_then(|()| {
            let piece = numbers_of_piece(targets, work.width).max(1);
            let pieces = len.div_ceil(piece);
            let mut coming = EmulatedArrivals {
                results: &results[..len],
                piece,
                next: 0,
                fails_at: fault.is_some().then_some(pieces / 2),
            };
            let received = receive(&mut coming);
            received.map_err(|DeviceLost| DeviceError::Fault(fault.unwrap_or(Fault::Behind)))
        });
        state.results = Some(results);
        received
    }

    fn begin_joint<'l>(
        &self,
        lists: &'l mut NeighborLists,
        targets: usize,
        room: JointRoom,
    ) -> Result<JointLists<'l>, DeviceError> {
        lists.begin_joint(targets, room.device, room.cpu, &OwnLender)
    }

    fn find_part<'a>(
        &self,
        input: &StepInput<'_>,
        part: DevicePart<'_>,
        to: HostLists<'a>,
        placed: &mut OnPlaced<'_, 'a>,
    ) -> Result<GpuDone, DeviceError> {
        let state = &mut *self.take()?;
        let fault = self.begin()?;
        state.sort(&self.cpu, input)?;
        state.clear(to.start.len()).map_err(Error::from)?;
        let mut found = std::mem::take(&mut state.lists);
        let of = state.pair(part.job, Some(part.planned))?;
        let searched = self
            .cpu
            .search(of, input.options.lists, ListOrder::Unspecified, &mut found);
        let delivered = searched.map_err(DeviceError::from).and_then(|()| {
            let taken = |target: usize| state.taken[target].load(Ordering::Relaxed);
            let targets = (0..to.start.len()).filter(|&target| taken(target));
            let mut done = GpuDone::of(&[], Strategy::Flat);
            // Lists of other targets are those of an earlier job.
            done.pairs = targets.map(|target| found.of(target).len() as u64).sum();
            done.fitted = done.pairs as usize <= to.entries.len();
            if done.fitted {
                deliver(&found, taken, to, placed, fault)?;
            }
            Ok(done)
        });
        state.lists = found;
        delivered
    }

    fn prepare_part(&self, _: &StepInput<'_>, _: &ValueWork<'_>) -> u64 {
        0
    }

    fn values_part(
        &self,
        input: &StepInput<'_>,
        part: DevicePart<'_>,
        work: &ValueWork<'_>,
        _: u64,
    ) -> Result<(HostMemory, GpuDone), DeviceError> {
        let state = &mut *self.take()?;
        let fault = self.begin()?;
        let targets = input.points_of(part.job)[0];
        let len = targets * work.width;
        let mut results = state.room(len).map_err(Error::from)?;
        state.sort(&self.cpu, input)?;
        state.clear(targets).map_err(Error::from)?;
        let of = state.pair(part.job, Some(part.planned))?;
        work.by_cpu_code
            .compute(&self.cpu, of, &mut results[..len])?;
        match fault {
            Some(fault) => Err(fault.into()),
            None => Ok((HostMemory::Own(results), GpuDone::of(&[], Strategy::Flat))),
        }
    }

    fn give_back(&self, numbers: HostMemory) {
        if let (Some(mut state), HostMemory::Own(numbers)) = (self.state.take(), numbers) {
            state.results = Some(numbers);
        }
    }
}

/// Copies the lists of some targets to the host, starts and lengths first. A device that is lost
/// meanwhile leaves half of the entries out.
fn deliver<'a>(
    found: &NeighborLists,
    taken: impl Fn(usize) -> bool,
    to: HostLists<'a>,
    placed: &mut OnPlaced<'_, 'a>,
    fault: Option<Fault>,
) -> Result<(), Fault> {
    let HostLists {
        start,
        count,
        entries,
    } = to;
    let mut next = 0u64;
    for target in 0..start.len() {
        let list = if taken(target) { found.of(target) } else { &[] };
        (start[target], count[target]) = (next, list.len() as u32);
        next += list.len() as u64;
    }
    let targets = start.len();
    placed(start, count);
    let arrive = if fault.is_some() {
        targets / 2
    } else {
        targets
    };
    let mut rest = entries;
    for target in (0..arrive).filter(|&target| taken(target)) {
        let list = found.of(target);
        let (place, behind) = std::mem::take(&mut rest).split_at_mut(list.len());
        place.copy_from_slice(list);
        rest = behind;
    }
    fault.map_or(Ok(()), Err)
}

/// Results that are in the host's memory anyway, as if they came piece by piece.
struct EmulatedArrivals<'r> {
    results: &'r [f32],
    /// Numbers of a piece.
    piece: usize,
    next: usize,
    /// The piece at which the device is lost.
    fails_at: Option<usize>,
}

impl<'r> ResultStream<'r> for EmulatedArrivals<'r> {
    fn arrived(&mut self) -> Result<Option<(usize, &'r [f32])>, DeviceLost> {
        if self.fails_at == Some(self.next) {
            return Err(DeviceLost);
        }
        let first = self.next * self.piece;
        if first >= self.results.len() {
            return Ok(None);
        }
        self.next += 1;
        let end = (first + self.piece).min(self.results.len());
        Ok(Some((first, &self.results[first..end])))
    }
}
