//! State of a GPU for one engine, used by one job at a time.
//!
//! Memory is kept between jobs and given back after a fault. Positions are placed at every update
//! and sorted at the first job that needs them ([`Order`]), so updates that no search follows cost
//! a copy only.
//!
//! **Invariant:** after a fault no set counts as sorted, and the lattice is made anew.

use super::{
    buffers::{Queries, RowBuffers},
    bulk::CountedRadii,
    faults::{FaultRecord, GPU_FAILED},
    fields::StagedFields,
    kept::{KeptLists, MovedSet, SetsOfNow},
    times::Times,
};
use crate::{
    Error,
    backend::{DataStamps, Fault, Job, PairRules, StepInput},
};
use nearfield_cpu::{ExclusionArrays, PairFilter, TypeCutoffs};
use nearfield_gpu::{
    self as gpu, DeviceCutoffs, DeviceFilter, DeviceLattice, DeviceLists, DeviceNearest,
    DeviceParts, DevicePointData, DevicePoints, DeviceShare, Event, GpuBackend, HostBuffer,
    HostExclusions, HostPointData, PairOfPoints, PairScratch, Stamped,
};
use std::collections::HashMap;

/// Plans whose bricks the device keeps.
pub(crate) const KEPT_PLANS: usize = 16;

/// Buffers of shares, kept between steps.
#[derive(Debug, Default)]
pub(super) struct Shares {
    /// Targets of the last part, gathered.
    pub(super) share: DeviceShare,
    /// By the version of the plan.
    pub(super) parts: HashMap<u64, DeviceParts>,
}

/// The GPU and its memory.
#[derive(Debug)]
pub(super) struct GpuState {
    pub(super) backend: GpuBackend,
    /// Positions on the device are current; sorting waits for the first search.
    pub(super) sets: Vec<GpuSet>,
    pub(super) times: Times,
    pub(super) lattice: Option<DeviceLattice>,
    pub(super) lists: DeviceLists,
    /// Lists that kernels run over, by the slots of targets and sources.
    pub(super) kept: HashMap<[usize; 2], KeptLists>,
    /// Sets at other positions than theirs.
    pub(super) now: SetsOfNow,
    /// Free positions.
    pub(super) queries: Queries,
    /// Where ranges of pairs arrive.
    pub(super) rows: RowBuffers,
    pub(super) scratch: PairScratch,
    pub(super) shares: Shares,
    pub(super) staged: StagedFields,
    /// Where results arrive, made when first needed.
    pub(super) results: Option<HostBuffer<f32>>,
    /// By the name of a kernel's type, why it cannot run here; `None` where it can.
    pub(super) refused: HashMap<&'static str, Option<String>>,
    /// Before and after the sort that was begun, where it is timed.
    pub(super) sorting: Option<[Event; 2]>,
    /// Page-locked buffers there were when that was last asked.
    pub(super) host_buffers: u64,
    pub(super) faults: FaultRecord,
    /// Cut-offs per pair of types.
    pub(super) cutoffs: DeviceCutoffs,
    /// The nearest pairs of the last job that kept these alone.
    pub(super) nearest: DeviceNearest,
    /// What the present job reads of the data of its sets.
    pub(super) reads: FilterUse,
}

/// Which filters a job has.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FilterUse {
    /// Cut-offs per pair of types.
    cutoffs: bool,
    /// Exclusions or molecules.
    excluded: bool,
    /// Chosen targets.
    chosen: bool,
    /// Radii of the targets, and of the sources.
    radii: [bool; 2],
    /// Only the nearest are kept.
    nearest: bool,
}

impl FilterUse {
    /// Returns true if only the nearest are kept.
    pub(super) fn nearest(self) -> bool {
        self.nearest
    }
}

/// A point set of the engine on the GPU.
#[derive(Debug)]
pub(super) struct GpuSet {
    pub(super) points: DevicePoints,
    pub(super) order: Order,
    /// What filters read of the points.
    pub(super) data: DevicePointData,
    /// How large the radii of single points are.
    pub(super) radii: CountedRadii,
    /// Where the points are, if they have moved since their lists were found.
    pub(super) moved: MovedSet,
}

/// How far a set has come since its positions were placed, or since the lattice changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Positions are there, in the caller's order.
    AsGiven,
    /// The device has been asked to sort it.
    Begun,
    /// Sorted into the cells of the lattice.
    Sorted,
}

/// Why a job ended before its results were there.
#[derive(Debug)]
pub(super) enum GpuJobError {
    Gpu(gpu::Error),
    Host(Error),
    /// The GPU works, but the CPU backend has to do the job.
    Fault(Fault),
}

impl From<gpu::Error> for GpuJobError {
    fn from(error: gpu::Error) -> Self {
        Self::Gpu(error)
    }
}

impl From<Fault> for GpuJobError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Error> for GpuJobError {
    fn from(error: Error) -> Self {
        Self::Host(error)
    }
}

impl From<nearfield_cpu::Error> for GpuJobError {
    fn from(error: nearfield_cpu::Error) -> Self {
        Self::Host(error.into())
    }
}

impl GpuState {
    /// The GPU has failed: it gives back what memory it does not need to go on later.
    ///
    /// Positions stay on the device, so a GPU that is tried again needs no update for sets that
    /// have not changed. Whether it is lost is asked of the driver by waiting once: after a
    /// kernel's fault that fails too, after too little memory it does not.
    pub(super) fn step_aside(&mut self, error: &gpu::Error) {
        // After the fault of a kernel every call fails.
        let lost = self.backend.wait().is_err();
        tracing::warn!(%error, lost, "{GPU_FAILED}");
        self.faults.note(error.to_string(), lost);
        self.lattice = None;
        for set in &mut self.sets {
            set.order = Order::AsGiven;
            set.data = DevicePointData::default();
            set.moved = MovedSet::default();
        }
        self.cutoffs = DeviceCutoffs::default();
        self.nearest = DeviceNearest::default();
        self.lists = DeviceLists::default();
        self.kept.clear();
        self.now = SetsOfNow::default();
        self.queries = Queries::default();
        self.rows = RowBuffers::default();
        self.scratch = PairScratch::default();
        self.shares = Shares::default();
        self.staged = StagedFields::default();
        self.sorting = None;
    }

    /// The sets of a job, which the device has sorted.
    ///
    /// # Errors
    /// [`gpu::ErrorKind::Unsorted`] for a set that the device does not have, and before the first
    /// sort.
    pub(super) fn pair(&self, job: Job) -> Result<PairOfPoints<'_>, gpu::Error> {
        let set = |set: usize| self.sets.get(set).ok_or(gpu::ErrorKind::Unsorted);
        let (targets, sources) = (set(job.targets)?, set(job.sources)?);
        Ok(PairOfPoints {
            lattice: self.lattice.as_ref().ok_or(gpu::ErrorKind::Unsorted)?,
            targets: &targets.points,
            sources: &sources.points,
            same_set: job.targets == job.sources,
            share: (self.reads.chosen).then(|| targets.data.chosen()),
            filter: DeviceFilter {
                targets: Some(&targets.data),
                sources: Some(&sources.data),
                cutoffs: (self.reads.cutoffs).then_some(&self.cutoffs),
                excluded: self.reads.excluded,
                radii: self.reads.radii,
                nearest: (self.reads.nearest).then(|| self.nearest.last()),
            },
        })
    }

    /// Brings what the filters of a job read to the device, where it is not there yet, in the order
    /// of the sets as they are sorted now.
    pub(super) fn take_filters(
        &mut self,
        input: &StepInput<'_>,
        job: Job,
    ) -> Result<(), GpuJobError> {
        let PairRules {
            filter,
            radii,
            cutoffs,
            stamps,
        } = input.rules(job).map_err(GpuJobError::Host)?;
        self.reads = FilterUse {
            cutoffs: filter.cutoffs.is_some(),
            excluded: filter.excluded.is_some(),
            chosen: filter.chosen.is_some(),
            radii: [radii.targets().is_some(), radii.sources().is_some()],
            nearest: false,
        };
        self.take_table(&filter, cutoffs)?;
        let backend = &self.backend;
        let sides = [
            (job.targets, radii.targets(), 0),
            (job.sources, radii.sources(), 1),
        ];
        for (slot, radii, side) in sides {
            let stamps = stamps[side];
            let given = HostPointData {
                chosen: (filter.chosen.filter(|_| side == 0))
                    .map(|chosen| stamped(stamps.chosen, chosen.mask())),
                radii: radii.map(|radii| stamped(stamps.radii, *radii)),
                ..named_data(&filter, side, stamps)
            };
            let set = self.sets.get_mut(slot).ok_or(gpu::ErrorKind::Unsorted);
            let GpuSet { points, data, .. } = set.map_err(gpu::Error::from)?;
            backend.take_point_data(data, given, points.len())?;
            backend.arrange(data, points)?;
        }
        let Some(k) = filter.nearest else {
            return Ok(());
        };
        let mut nearest = std::mem::take(&mut self.nearest);
        let found = (self.pair(job)).and_then(|of| self.backend.find_nearest(of, k, &mut nearest));
        self.nearest = nearest;
        found.map_err(far_images)?;
        self.reads.nearest = true;
        Ok(())
    }
}

impl GpuState {
    /// Brings the cut-offs of a filter to the device, if there are any.
    pub(super) fn take_table(
        &mut self,
        filter: &PairFilter<'_>,
        stamp: u64,
    ) -> Result<(), gpu::Error> {
        let Some(TypeCutoffs { table, .. }) = filter.cutoffs else {
            return Ok(());
        };
        let (types, precision) = (table.types(), table.precision());
        let squares = stamped(stamp, table.squares());
        (self.backend).take_cutoffs(&mut self.cutoffs, squares, types, precision)
    }
}

/// Types and exclusions of the points of a side, where filters read them.
pub(super) fn named_data<'a>(
    filter: &PairFilter<'a>,
    side: usize,
    stamps: DataStamps,
) -> HostPointData<'a> {
    HostPointData {
        types: (filter.cutoffs).map(|of| stamped(stamps.types, of.types[side].of_points())),
        exclusions: (filter.excluded)
            .map(|excluded| stamped(stamps.exclusions, exclusions(excluded.arrays()))),
        ..HostPointData::default()
    }
}

/// Exclusions as the device takes them.
pub(super) fn exclusions(arrays: ExclusionArrays<'_>) -> HostExclusions<'_> {
    match arrays {
        ExclusionArrays::Lists { offsets, indices } => HostExclusions::Lists { offsets, indices },
        ExclusionArrays::Molecules(of_points) => HostExclusions::Molecules(of_points),
    }
}

/// Images that have no 32-bit numbers are not a failure of the GPU.
pub(super) fn far_images(error: gpu::Error) -> GpuJobError {
    match error.kind() {
        gpu::ErrorKind::FarImages { .. } => GpuJobError::Fault(Fault::FarImages),
        _ => GpuJobError::Gpu(error),
    }
}

/// Values with their stamp.
pub(super) fn stamped<T>(stamp: u64, values: T) -> Stamped<T> {
    Stamped { values, stamp }
}
