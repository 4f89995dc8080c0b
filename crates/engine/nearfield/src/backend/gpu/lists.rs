//! Neighbour lists found on the GPU, written into page-locked memory of the host.
//!
//! The device counts first, so storage of the right size is lent before entries are written. Starts
//! and lengths come first; the host checks that every list lies within the storage while entries
//! are still on their way. After that, lists of a GPU are read like any others.
//!
//! Nothing is truncated, because the device counts every list before any entry is written. That
//! costs a pass, and needs no guess of the number of neighbours. A part of a job is written into
//! room that was lent before it was counted; if that is too short the part is given up before its
//! first entry, and the caller is told how many there are.
//!
//! The device's storage goes back into the state however a job ends: it is taken out only because
//! both have to be borrowed at once.

use super::state::{GpuJobError, GpuState, far_images};
use crate::{
    backend::{
        Job, StepInput,
        accelerator::{DevicePart, JointRoom, OnPlaced},
        split::{GpuDone, Piece},
    },
    balance::Strategy,
};
use nearfield_cpu::{
    BorrowedBuffer, BufferProvider, Inside, JointLists, NeighborLists, PairGeometry, ReceivedPairs,
};
use nearfield_gpu::{
    self as gpu, DeviceLists, GeometryQuantities, GpuBackend, HostBuffer, HostPairs, PairOfPoints,
};
use nearfield_grid::HostLists;
use nearfield_pairs::ListKind;
use std::{fmt, ptr::NonNull};
use tracing::field::Empty;

impl GpuState {
    /// Writes the lists of a pair of sets.
    pub(super) fn find(
        &mut self,
        input: &StepInput<'_>,
        job: Job,
        lists: &mut NeighborLists,
    ) -> Result<(), GpuJobError> {
        let strategy = self.sort(input, job)?;
        self.take_filters(input, job)?;
        let _span = tracing::debug_span!("gpu.search", pairs = Empty).entered();
        let begin = self.mark_begin()?;
        let mut storage = std::mem::take(self.storage(input, job));
        storage.nearest_first(self.reads.nearest());
        let kind = input.options.lists;
        let pair = self.pair(job).map_err(GpuJobError::from);
        let written =
            pair.and_then(|pair| self.write(input, (pair, kind), strategy, &mut storage, lists));
        storage.nearest_first(false);
        *self.storage(input, job) = storage;
        // An error of the host says nothing of the device's time.
        if !matches!(written, Err(GpuJobError::Gpu(_))) {
            self.book(job, begin, None)?;
        }
        written
    }

    /// Storage of the lists of a job: those that are kept for kernels, where there are some and
    /// lists are full.
    fn storage(&mut self, input: &StepInput<'_>, job: Job) -> &mut DeviceLists {
        let sets = [job.targets, job.sources];
        let full = input.options.lists == ListKind::Full || job.targets != job.sources;
        match self.kept.get_mut(&sets) {
            Some(kept) if full => kept.lists(),
            _ => &mut self.lists,
        }
    }

    /// Number of neighbours in the lists of a pair of sets, which are left counted.
    pub(super) fn measure(&mut self, input: &StepInput<'_>, job: Job) -> Result<u64, GpuJobError> {
        let strategy = self.sort(input, job)?;
        self.take_filters(input, job)?;
        let mut storage = std::mem::take(self.storage(input, job));
        let kind = input.options.lists;
        storage.nearest_first(self.reads.nearest());
        storage.want(GeometryQuantities::NONE);
        let measured = (self.pair(job))
            .and_then(|pair| (self.backend).measure_lists(pair, kind, strategy, &mut storage));
        storage.nearest_first(false);
        *self.storage(input, job) = storage;
        Ok(measured?)
    }

    /// Counts, unless that was done last, and writes the lists into memory that they are lent.
    pub(super) fn write(
        &self,
        input: &StepInput<'_>,
        (pair, kind): (PairOfPoints<'_>, ListKind),
        strategy: Strategy,
        storage: &mut DeviceLists,
        lists: &mut NeighborLists,
    ) -> Result<(), GpuJobError> {
        let backend = &self.backend;
        storage.want(GeometryQuantities::NONE);
        let pairs = if storage.are_measured(&pair, kind, strategy) {
            storage.measured()
        } else {
            backend.measure_lists(pair, kind, strategy, storage)?
        };
        tracing::Span::current().record("pairs", pairs);
        let (targets, limit) = (pair.targets.len(), input.options.memory_limit);
        (input.options).admit_lists(targets, pairs, lists)?;
        storage.limit(limit);
        let fill = |start: &mut [u64], count: &mut [u32], entries: &mut [u32], inside: Inside| {
            let to = HostLists {
                start,
                count,
                entries,
            };
            let mut checked = None;
            // While entries are still coming.
            let placed = |start: &mut [u64], count: &mut [u32]| {
                checked = Some(inside.check(start, count));
            };
            backend.deliver_lists(pair, storage, to, None, placed)?;
            Ok(checked)
        };
        let lender = Lender::of(backend, limit);
        lists.work_on(input.cpu);
        (input.cpu).install(|| lists.receive(targets, pairs, &lender, fill))
    }

    /// Writes the lists of a pair of sets and the geometry of their pairs. No image of a pair that
    /// has no 32-bit numbers is handed on: the job is then the CPU backend's.
    pub(super) fn geometry(
        &mut self,
        input: &StepInput<'_>,
        job: Job,
        geometry: &mut PairGeometry,
    ) -> Result<(), GpuJobError> {
        let strategy = self.sort(input, job)?;
        self.take_filters(input, job)?;
        let _span = tracing::debug_span!("gpu.geometry", pairs = Empty).entered();
        let begin = self.mark_begin()?;
        let mut storage = std::mem::take(&mut self.lists);
        storage.nearest_first(self.reads.nearest());
        let kind = input.options.lists;
        let pair = self.pair(job).map_err(GpuJobError::from);
        let written = pair.and_then(|pair| {
            self.write_geometry(input, (pair, kind), strategy, &mut storage, geometry)
        });
        storage.nearest_first(false);
        self.lists = storage;
        if !matches!(written, Err(GpuJobError::Gpu(_))) {
            self.book(job, begin, None)?;
        }
        written
    }

    /// Counts, and writes lists and geometry into memory that they are lent.
    pub(super) fn write_geometry(
        &self,
        input: &StepInput<'_>,
        of: (PairOfPoints<'_>, ListKind),
        strategy: Strategy,
        storage: &mut DeviceLists,
        geometry: &mut PairGeometry,
    ) -> Result<(), GpuJobError> {
        let written = self.write_pairs(input, of, strategy, storage, geometry);
        // The next lists are written without it.
        storage.want(GeometryQuantities::NONE);
        written.map_err(|error| match error {
            GpuJobError::Gpu(error) => far_images(error),
            error => error,
        })
    }

    /// The same; the storage wants the geometry of pairs afterwards.
    fn write_pairs(
        &self,
        input: &StepInput<'_>,
        (pair, kind): (PairOfPoints<'_>, ListKind),
        strategy: Strategy,
        storage: &mut DeviceLists,
        geometry: &mut PairGeometry,
    ) -> Result<(), GpuJobError> {
        let backend = &self.backend;
        let pairs = backend.measure_pairs(pair, kind, strategy, storage)?;
        tracing::Span::current().record("pairs", pairs);
        let (targets, limit) = (pair.targets.len(), input.options.memory_limit);
        let precision = input.lattice.radius().precision();
        (input.options).admit_geometry(targets, pairs, precision, geometry)?;
        storage.limit(limit);
        let fill = |to: ReceivedPairs<'_>, inside: Inside| {
            let arrays = HostPairs {
                images: Some(to.images),
                displacements: to.displacements,
                squares: to.squares,
            };
            let mut checked = None;
            let placed = |start: &mut [u64], count: &mut [u32]| {
                checked = Some(inside.check(start, count));
            };
            backend.deliver_pairs(pair, storage, to.lists, arrays, placed)?;
            Ok(checked)
        };
        let lender = Lender::of(backend, limit);
        (input.cpu).install(|| geometry.receive(precision, targets, pairs, &lender, fill))
    }

    /// Room for lists of both backends.
    pub(super) fn begin_joint<'l>(
        &self,
        lists: &'l mut NeighborLists,
        targets: usize,
        room: JointRoom,
    ) -> Result<JointLists<'l>, GpuJobError> {
        let lender = Lender::of(&self.backend, None);
        lists.begin_joint(targets, room.device, room.cpu, &lender)
    }

    /// Writes the lists of a part; `placed` gets all starts and lengths as soon as they are there.
    pub(super) fn find_part<'a>(
        &mut self,
        input: &StepInput<'_>,
        part: DevicePart<'_>,
        to: HostLists<'a>,
        placed: &mut OnPlaced<'_, 'a>,
    ) -> Result<GpuDone, gpu::Error> {
        let _span = tracing::debug_span!("gpu.search").entered();
        let asked = part.began.elapsed();
        let begin = self.backend.mark()?;
        let (shares, strategy) = self.gather(input, part)?;
        let mut storage = std::mem::take(&mut self.lists);
        let kind = input.options.lists;
        let found = (|| {
            let mut done = GpuDone::of(shares.share.bounds(), strategy);
            let pair = self.pair_of_share(part, &shares.share)?;
            let backend = &self.backend;
            done.pairs = tracing::debug_span!("gpu.measure")
                .in_scope(|| backend.measure_lists(pair, kind, strategy, &mut storage))?;
            let HostLists {
                start,
                count,
                entries,
            } = to;
            let Some(entries) = entries.get_mut(..done.pairs as usize) else {
                done.fitted = false;
                return Ok(done);
            };
            let to = HostLists {
                start,
                count,
                entries,
            };
            let span = tracing::debug_span!("gpu.deliver").entered();
            let placed = |start, count| placed(start, count);
            let since = Some(&begin);
            let delivered = backend.deliver_lists(pair, &mut storage, to, since, placed)?;
            drop(span);
            done.pieces = delivered
                .iter()
                .map(|part| Piece {
                    behind: part.slots.end as u64,
                    begin_ms: f64::from(part.compute[0]),
                    computed_ms: f64::from(part.compute[1]),
                    end_ms: f64::from(part.download[1]),
                })
                .collect();
            done.place(part.began, asked);
            Ok(done)
        })();
        self.lists = storage;
        self.shares = shares;
        found
    }
}

/// Lends page-locked memory to lists, which own it until they are dropped: they can be read after
/// the job has given its turn back.
pub(super) struct Lender<'a> {
    backend: &'a GpuBackend,
    /// Exactly what is needed, because a memory limit counts it.
    exact: bool,
}

impl<'a> Lender<'a> {
    /// A lender for lists within a memory limit, if there is one.
    pub(super) fn of(backend: &'a GpuBackend, limit: Option<u64>) -> Self {
        let exact = limit.is_some();
        Self { backend, exact }
    }
}

impl BufferProvider for Lender<'_> {
    type Error = GpuJobError;

    fn roomy(&self, len: usize) -> usize {
        let more = if self.exact { 0 } else { len / 8 };
        len.saturating_add(more)
    }

    fn starts(&self, len: usize) -> Result<Box<dyn BorrowedBuffer<u64>>, GpuJobError> {
        let buffer = self.backend.host_buffer(len)?;
        Ok(Box::new(PageLockedBuffer(buffer)))
    }

    fn words(&self, len: usize) -> Result<Box<dyn BorrowedBuffer<u32>>, GpuJobError> {
        let buffer = self.backend.host_buffer(len)?;
        Ok(Box::new(PageLockedBuffer(buffer)))
    }
}

#[derive(Debug)]
struct PageLockedBuffer<T>(HostBuffer<T>);

// SAFETY: the buffer's memory does not move, and is reached through `elements` alone.
unsafe impl<T: Send + Sync + fmt::Debug> BorrowedBuffer<T> for PageLockedBuffer<T> {
    fn elements(&mut self) -> NonNull<[T]> {
        NonNull::slice_from_raw_parts(self.0.place(), self.0.len())
    }
}
