//! A device with memory of its own, as engines use it: a real GPU, or the emulated one.
//!
//! The device has the positions of all sets, which come through [`StagedUpload`], and does whole
//! jobs or the [part](DevicePart) of a job that a plan leaves to it. The thread that calls it
//! drives it, and waits for it. Results are not checked again: after `Ok` they are complete, after
//! a [`DeviceError::Fault`] none of them count, and the caller's arrays may hold some of them,
//! unless they are combined with what was there.
//!
//! [`StagedUpload`]: super::transfer::StagedUpload
//!
//! Calls of a job come in one of three orders, each after [`ready`](Accelerator::ready):
//!
//! - alone: [`find`](Accelerator::find), [`geometry`](Accelerator::geometry),
//!   [`geometry_of_now`](Accelerator::geometry_of_now), [`query`](Accelerator::query) or
//!   [`values`](Accelerator::values);
//! - lists a range at a time: [`measure_rows`](Accelerator::measure_rows), then
//!   [`stream_rows`](Accelerator::stream_rows), or [`lend_rows`](Accelerator::lend_rows) and
//!   [`write_rows`](Accelerator::write_rows) for every range;
//! - lists of two backends: [`begin_joint`](Accelerator::begin_joint), then
//!   [`find_part`](Accelerator::find_part) while the CPU backend works;
//! - values of two backends: [`prepare_part`](Accelerator::prepare_part), then
//!   [`values_part`](Accelerator::values_part) while the CPU backend works, and
//!   [`give_back`](Accelerator::give_back).
//!
//! All methods but [`outdate`](Accelerator::outdate) take `&self`, because an engine is shared
//! between threads; an implementation orders its jobs by a [turn](super::turn) of its own. State
//! that must be readable while a job runs, such as [`failed`](Accelerator::failed) and
//! [`holds`](Accelerator::holds), lies outside of what a turn guards.
//!
//! **Invariant:** if the host keeps a copy of a set's positions and the device answers true to
//! [`holds`](Accelerator::holds), both have the same positions.

use super::{
    DeviceError, Fault, HostMemory, Job, JobKind, StepInput,
    gpu::{Note, Program},
    gpu_report::GpuReport,
    rows::{MeasuredRows, OnRows, Query, QueryTo, RowRange, RowsOf},
    split::{BrickPlan, GpuDone},
    support::Backend,
    transfer::{DeviceLost, ResultStream},
};
use crate::{Device, Error};
use nearfield_balance::{StepTimes, Traffic};
use nearfield_cpu::{
    CpuBackend, Fields, JointLists, ListRows, NeighborLists, PairGeometry, PairOfSets,
};
use nearfield_grid::{Bounds, HostLists, Radius};
use nearfield_pairs::Field;
use std::{fmt, ops::ControlFlow, time::Instant};

/// See the module's documentation.
pub(crate) trait Accelerator: fmt::Debug + Send + Sync {
    /// Device that reports name if it does a job alone.
    fn device(&self) -> Device;

    /// Backend by which [`support`](super::support) decides which jobs it can do.
    fn backend(&self) -> Backend;

    /// Why a pair kernel cannot run here, for all kernels of its type.
    ///
    /// # Errors
    /// The reason, such as the compiler's message.
    fn check_kernel(&self, kernel: &KernelWork<'_>) -> Result<(), String>;

    /// Whether it can take a job, asked once per job. A device that has failed is tried again after
    /// a number of jobs.
    ///
    /// # Errors
    /// A fault when the CPU backend has to do the job.
    fn ready(&self) -> Result<(), Fault> {
        Ok(())
    }

    /// Whether it can be used in this process.
    ///
    /// # Errors
    /// An error of the device in a forked child of the process that started it.
    fn usable(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Whether it has failed, and not been tried again since.
    fn failed(&self) -> bool {
        false
    }

    /// Whether it has failed, and cannot work again in this process.
    fn lost(&self) -> bool {
        false
    }

    /// Whether memory was taken since this was last asked. Taking it takes longer than most steps.
    fn took_memory(&self) -> bool {
        false
    }

    /// The report of a real GPU; `None` for an emulated one.
    fn report(&self) -> Option<GpuReport> {
        None
    }

    /// The note about the rates of earlier runs on this device, beside what `machine` says of the
    /// host. None where there is no cache, and for a device that does not exist.
    fn rates_note(&self, _machine: &str) -> Option<Note> {
        None
    }

    /// Bytes that a job sends and fetches, on a virtual clock. On a real clock copies are part of
    /// the measured time of a subregion.
    fn traffic(&self, _: JobKind) -> Traffic {
        Traffic::NONE
    }

    /// Times of the next step of a plan on a virtual clock; `None` on a real one. If they contain
    /// a fault, the device's next job fails.
    fn virtual_times(&self, _: &BrickPlan) -> Option<StepTimes> {
        None
    }

    /// Memory for a copy of positions that the device can read: `old`, where it suffices.
    fn copy(&self, old: Option<HostMemory>, numbers: usize) -> Result<HostMemory, Fault>;

    /// Brings the positions of a set to the device by way of `copy`. Returns their bounds, or None
    /// where some are not finite.
    ///
    /// `copy` and `from` hold three numbers a point, in double precision as six words, and as many
    /// of them. Workers fill `copy`
    /// while the calling thread sends what is complete, so the bounds cost no pass of their own.
    /// The device may still be reading `copy` when this returns; [`copy`](Self::copy) waits for it
    /// before memory is used again.
    fn place(
        &self,
        set: usize,
        cpu: &CpuBackend,
        copy: &mut [f32],
        from: Field<'_>,
    ) -> Result<Option<Bounds>, Fault>;

    /// Brings back the positions that a set had before others were placed and refused; none where
    /// the device had none.
    ///
    /// It has no result: a device that fails now does not [hold](Self::holds) the set, and the next
    /// job finds that out.
    fn place_again(&self, set: usize, before: Option<&[f32]>);

    /// Whether the device has the positions of a set that were placed last.
    fn holds(&self, set: usize) -> bool;

    /// Whether that is so of the first `sets` sets, asked at once.
    fn holds_first(&self, sets: usize) -> bool;

    /// The lattice has changed.
    ///
    /// Sets are sorted anew at the next job. Their positions stay where they are.
    fn outdate(&mut self);

    /// Writes the lists of a pair of sets.
    ///
    /// Blocks until starts, counts and entries of all targets are in `lists`, whose storage is lent
    /// by the device. Each list is checked to lie within that storage before it can be read.
    ///
    /// # Errors
    /// [`DeviceError::Fault`] when the device fails; `lists` are then to be searched for anew.
    /// [`DeviceError::Host`] when the host has no memory for them.
    fn find(
        &self,
        input: &StepInput<'_>,
        job: Job,
        lists: &mut NeighborLists,
    ) -> Result<(), DeviceError>;

    /// Writes the lists of a pair of sets and the geometry of their pairs, in any order.
    ///
    /// Blocks until all arrays are in `geometry`, whose memory the device may lend.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    fn geometry(
        &self,
        input: &StepInput<'_>,
        job: Job,
        geometry: &mut PairGeometry,
    ) -> Result<(), DeviceError>;

    /// As [`geometry`](Self::geometry), of the sets at other positions and within another radius;
    /// filters do not count. Asked only where lists with a skin are supported.
    ///
    /// # Errors
    /// As there.
    fn geometry_of_now(
        &self,
        _: &StepInput<'_>,
        _: Job,
        _: PairsOfNow<'_>,
        _: &mut PairGeometry,
    ) -> Result<(), DeviceError> {
        let why = "it has no lists with a skin".to_owned();
        Err(Fault::Failed(why).into())
    }

    /// Number of neighbours in the lists of a pair of sets, for what is to be known before any are
    /// written. A [`find`](Self::find) that follows need not count again.
    ///
    /// # Errors
    /// [`DeviceError::Fault`] when the device fails.
    fn measure(&self, input: &StepInput<'_>, job: Job) -> Result<u64, DeviceError>;

    /// Writes the neighbours of free positions among the points of a set, in any order; full lists
    /// whatever the options say.
    ///
    /// # Errors
    /// As [`find`](Self::find), with the error of the memory limit.
    fn query(
        &self,
        input: &StepInput<'_>,
        query: Query<'_>,
        to: QueryTo<'_>,
    ) -> Result<(), DeviceError>;

    /// Counts the neighbours of every target, for lists or pairs that are written a range at a
    /// time.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    fn measure_rows(
        &self,
        input: &StepInput<'_>,
        job: Job,
        what: RowsOf,
    ) -> Result<MeasuredRows, DeviceError>;

    /// Makes room for ranges of up to `targets` with up to `pairs` neighbours together, in memory
    /// that the device writes to.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    fn lend_rows(&self, rows: &mut ListRows, targets: usize, pairs: u64)
    -> Result<(), DeviceError>;

    /// Writes the lists of a range in any order; waits for them.
    ///
    /// # Errors
    /// As [`find`](Self::find), and [`Fault::Reordered`].
    fn write_rows(
        &self,
        input: &StepInput<'_>,
        measured: &MeasuredRows,
        range: &RowRange,
        rows: &mut ListRows,
    ) -> Result<(), DeviceError>;

    /// Gives the pairs of `ranges`, which were measured for [`RowsOf::Pairs`], to `receive`, one
    /// range after the other; the next is on its way meanwhile. Ends early where `receive` says so,
    /// and returns what it said last.
    ///
    /// # Errors
    /// As [`write_rows`](Self::write_rows); ranges that were received before are good.
    fn stream_rows(
        &self,
        input: &StepInput<'_>,
        measured: &MeasuredRows,
        ranges: &[RowRange],
        receive: &mut OnRows<'_>,
    ) -> Result<ControlFlow<()>, DeviceError>;

    /// Computes values of all targets and gives them to `receive` as they arrive.
    ///
    /// `receive` is called once, with the pieces in the order of the targets; it returns when it
    /// has taken the last one. A target has `work.width` numbers.
    ///
    /// # Errors
    /// As [`find`](Self::find); pieces that were received before a fault do not count.
    fn values(
        &self,
        input: &StepInput<'_>,
        job: Job,
        work: &ValueWork<'_>,
        receive: &mut OnResults<'_>,
    ) -> Result<(), DeviceError>;

    /// Room for lists of both backends, in memory that the device writes to.
    ///
    /// Starts and counts are those of all `targets`. The entries are two ranges, the device's in
    /// front, each as long as `room` says; a CPU backend whose range is too short puts the rest
    /// elsewhere, a device answers that its part has not [fitted](GpuDone::fitted).
    fn begin_joint<'l>(
        &self,
        lists: &'l mut NeighborLists,
        targets: usize,
        room: JointRoom,
    ) -> Result<JointLists<'l>, DeviceError>;

    /// Writes the lists of a part. `placed` gets the starts and lengths of all targets as soon as
    /// they are there, before the entries.
    ///
    /// The CPU backend puts starts and lengths of its own targets over the device's as soon as
    /// `placed` was called, so `placed` hands both arrays over for good.
    fn find_part<'a>(
        &self,
        input: &StepInput<'_>,
        part: DevicePart<'_>,
        to: HostLists<'a>,
        placed: &mut OnPlaced<'_, 'a>,
    ) -> Result<GpuDone, DeviceError>;

    /// Sends what a part of values needs, before both backends begin; gives the number under which
    /// the device has it. All workers together copy faster than some of them while others sort.
    fn prepare_part(&self, input: &StepInput<'_>, work: &ValueWork<'_>) -> u64;

    /// Computes the values of a part, which was prepared under that number; numbers of all targets
    /// in the caller's order, in memory that is to be [given back](Self::give_back).
    fn values_part(
        &self,
        input: &StepInput<'_>,
        part: DevicePart<'_>,
        work: &ValueWork<'_>,
        prepared: u64,
    ) -> Result<(HostMemory, GpuDone), DeviceError>;

    /// Takes memory back for the next results.
    fn give_back(&self, numbers: HostMemory);
}

/// Whether a device has the positions of all sets as they are now. It lacks those that were placed
/// while it could not work.
///
/// All sets are asked about, not those of one job alone: a device sorts all of them onto one
/// lattice.
pub(super) fn is_complete(device: &dyn Accelerator, input: &StepInput<'_>) -> bool {
    if input.delivered {
        return device.holds_first(input.sets.len());
    }
    let mut sets = input.all_sets().enumerate();
    sets.all(|(number, set)| set.grid.copied().is_some() && device.holds(number))
}

/// The device's part of a job that two backends share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DevicePart<'a> {
    pub(crate) job: Job,
    pub(crate) planned: &'a BrickPlan,
    /// When both backends began.
    pub(crate) began: Instant,
}

/// Entries of lists that both backends are expected to find.
///
/// A guess from earlier steps, with a margin; correctness does not depend on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JointRoom {
    pub(crate) device: usize,
    pub(crate) cpu: usize,
}

/// Callback that takes results as they arrive.
pub(crate) type OnResults<'f> =
    dyn for<'r> FnMut(&mut dyn ResultStream<'r>) -> Result<(), DeviceLost> + 'f;

/// Callback that takes starts and lengths of lists, once.
pub(crate) type OnPlaced<'f, 'a> = dyn FnMut(&'a mut [u64], &'a mut [u32]) + 'f;

/// Values that the code of the CPU backend can compute for a device that has no other.
pub(crate) trait Numbers: Sync {
    /// Computes the numbers of all targets of a pair of sets, one target after the other.
    fn compute(
        &self,
        cpu: &CpuBackend,
        of: PairOfSets<'_>,
        numbers: &mut [f32],
    ) -> Result<(), Error>;
}

/// The values to compute for every target.
#[derive(Clone, Copy)]
pub(crate) struct ValueWork<'a> {
    /// None for counts of neighbours, which are `u32` in the bits of an `f32`.
    pub(crate) kernel: Option<&'a KernelWork<'a>>,
    /// Numbers of a target.
    pub(crate) width: usize,
    pub(crate) by_cpu_code: &'a dyn Numbers,
}

/// A pair kernel and what it reads.
#[derive(Debug)]
pub(crate) struct KernelWork<'a> {
    /// The name of its type.
    pub(crate) name: &'static str,
    /// Its CUDA text with its uniforms, or why there is none.
    pub(crate) program: Result<Program, String>,
    /// Arrays of the caller, one number per channel of a point, in the order of the points as
    /// given.
    pub(crate) fields: Fields<'a>,
    /// Where its pairs come from.
    pub(crate) pairs: PairsFrom<'a>,
}

/// Where a pair kernel takes its pairs from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PairsFrom<'a> {
    /// A search, as it goes.
    Search,
    /// Full lists, which the device keeps; it finds them if it has none of the sets as they are.
    Lists,
    /// Such lists, where points have moved since they were found; no pair is missing from them.
    Moved {
        /// Pairs beyond it are passed over.
        radius: Radius,
        /// Targets and sources; None for a set that has not moved.
        now: [Option<MovedSet<'a>>; 2],
    },
}

/// Targets and sources at positions that are not those of the sets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PairsOfNow<'a> {
    /// Within which pairs are found.
    pub(crate) radius: Radius,
    /// Of each set three numbers a point, in double precision six words, and their bounds.
    pub(crate) sets: [(Field<'a>, Bounds); 2],
}

/// Where the points of a set are now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MovedSet<'a> {
    /// Three numbers a point, in double precision six words.
    pub(crate) positions: Field<'a>,
    /// Tells them from others.
    pub(crate) stamp: u64,
}
