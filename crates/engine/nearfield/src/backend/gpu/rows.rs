//! Lists of sorted targets, a range at a time.
//!
//! Sets are sorted into the cells of the *host*, so targets come as the CPU backend has them, and
//! it can go on after a fault. A job that works in the GPU's own cells sorts again, which takes a
//! fraction of the time of the copies here.

use super::{
    buffers::{RowBuffer, RowBuffers},
    lists::Lender,
    state::{GpuJobError, GpuState},
};
use crate::backend::{
    Fault, Job, StepInput,
    rows::{MeasuredRows, OnRows, RowGeometry, RowPairs, RowRange, RowsOf},
};
use nearfield_cpu::ListRows;
use nearfield_gpu::{DeviceLists, HostPairs, HostRows, ListPart, PairOfPoints};
use nearfield_grid::{Precision, memory::zeroed};
use std::ops::ControlFlow;

impl GpuState {
    /// Counts the neighbours of every target in the order of the host's cells.
    pub(super) fn measure_rows(
        &mut self,
        input: &StepInput<'_>,
        job: Job,
        what: RowsOf,
    ) -> Result<MeasuredRows, GpuJobError> {
        self.sort_as_host(input)?;
        self.take_filters(input, job)?;
        let _span = tracing::debug_span!("gpu.measure").entered();
        let mut storage = std::mem::take(&mut self.lists);
        storage.nearest_first(self.reads.nearest());
        let measured = self.measured(input, job, what, &mut storage);
        storage.nearest_first(false);
        self.lists = storage;
        measured
    }

    fn measured(
        &self,
        input: &StepInput<'_>,
        job: Job,
        what: RowsOf,
        storage: &mut DeviceLists,
    ) -> Result<MeasuredRows, GpuJobError> {
        const WHAT: &str = "the lengths of neighbour lists";
        let pair = self.pair(job)?;
        let points = pair.targets.len();
        let mut targets = zeroed(points, WHAT).map_err(crate::Error::from)?;
        let mut lengths = zeroed(points, WHAT).map_err(crate::Error::from)?;
        let (kind, geometry) = (what.kind(input), what == RowsOf::Pairs);
        let to = (&mut targets[..], &mut lengths[..]);
        let (pairs, ranks) = (self.backend).measure_rows(pair, kind, geometry, storage, to)?;
        Ok(MeasuredRows {
            job,
            what,
            targets,
            lengths,
            pairs,
            ranks,
            sort: sort_of(&pair),
        })
    }

    /// Room for ranges, in page-locked memory.
    pub(super) fn lend_rows(
        &self,
        rows: &mut ListRows,
        targets: usize,
        pairs: u64,
    ) -> Result<(), GpuJobError> {
        rows.borrow(targets, pairs, &Lender::of(&self.backend, None))
    }

    /// Writes the lists of a range.
    pub(super) fn write_rows(
        &mut self,
        input: &StepInput<'_>,
        measured: &MeasuredRows,
        range: &RowRange,
        rows: &mut ListRows,
    ) -> Result<(), GpuJobError> {
        let lengths = &measured.lengths[range.slots.clone()];
        self.on_rows(input, measured, |state, pair, storage| {
            rows.receive(lengths, |entries| {
                let first = HostRows {
                    entries,
                    pairs: None,
                };
                let none = HostRows {
                    entries: &mut [],
                    pairs: None,
                };
                let (kind, parts) = (measured.what.kind(input), [part(measured, range)]);
                let receive = &mut |_, _: &HostRows<'_>| ControlFlow::Continue(());
                (state.backend)
                    .deliver_rows(pair, kind, storage, &parts, [first, none], receive)
                    .map(drop)
                    .map_err(GpuJobError::from)
            })
        })
    }

    /// Gives the pairs of ranges to `receive`.
    pub(super) fn stream_rows(
        &mut self,
        input: &StepInput<'_>,
        measured: &MeasuredRows,
        ranges: &[RowRange],
        receive: &mut OnRows<'_>,
    ) -> Result<ControlFlow<()>, GpuJobError> {
        let parts: Vec<ListPart> = ranges.iter().map(|range| part(measured, range)).collect();
        let longest = (ranges.iter()).map(|range| range.entries.end - range.entries.start);
        let longest = longest.max().unwrap_or(0) as usize;
        let precision = input.lattice.radius().precision();
        let [first, second] = std::mem::take(&mut self.rows).0;
        let others = if ranges.len() > 1 { longest } else { 0 };
        let mut buffers = [
            RowBuffer::room(&self.backend, first, longest, precision)?,
            RowBuffer::room(&self.backend, second, others, precision)?,
        ];
        let to = buffers.each_mut().map(RowBuffer::host_rows);
        let done = self.on_rows(input, measured, |state, pair, storage| {
            let kind = measured.what.kind(input);
            let receive = &mut |number: usize, rows: &HostRows<'_>| {
                let range = &ranges[number];
                let len = (range.entries.end - range.entries.start) as usize;
                let Some(pairs) = &rows.pairs else {
                    return ControlFlow::Break(());
                };
                let HostPairs {
                    displacements,
                    squares,
                    ..
                } = pairs;
                let geometry = match precision {
                    Precision::Single => RowGeometry::Single {
                        displacements: &displacements[..len],
                        squares: &squares[..len],
                    },
                    Precision::Double => RowGeometry::Double {
                        displacements: &displacements.as_flattened().as_chunks().0[..len],
                        squares: &squares.as_chunks().0[..len],
                    },
                };
                let sources = &rows.entries[..len];
                receive(number, RowPairs { sources, geometry })
            };
            Ok((state.backend).deliver_rows(pair, kind, storage, &parts, to, receive)?)
        });
        self.rows = RowBuffers(buffers.map(Some));
        done
    }

    /// Does work with the sets that were measured, sorted as they were then.
    fn on_rows<T>(
        &mut self,
        input: &StepInput<'_>,
        measured: &MeasuredRows,
        work: impl FnOnce(&Self, PairOfPoints<'_>, &mut DeviceLists) -> Result<T, GpuJobError>,
    ) -> Result<T, GpuJobError> {
        self.sort_as_host(input)?;
        self.take_filters(input, measured.job)?;
        let _span = tracing::debug_span!("gpu.search").entered();
        let mut storage = std::mem::take(&mut self.lists);
        storage.nearest_first(self.reads.nearest());
        let done = match self.pair(measured.job) {
            Ok(pair) if sort_of(&pair) != measured.sort => Err(Fault::Reordered.into()),
            Ok(pair) => work(self, pair, &mut storage),
            Err(error) => Err(error.into()),
        };
        storage.nearest_first(false);
        self.lists = storage;
        done
    }
}

/// The number of the sort of the targets, if another sort may order them otherwise: bricks of cells
/// of a sparse table come in any order.
fn sort_of(pair: &PairOfPoints<'_>) -> Option<u64> {
    (pair.targets.is_sparse()).then(|| pair.targets.last_sort())
}

/// The part of the lists that a range is: where targets are chosen, of those.
fn part(measured: &MeasuredRows, range: &RowRange) -> ListPart {
    let rank = |slot: usize| match &measured.ranks {
        Some(ranks) => ranks.get(slot).map_or(0, |&rank| rank as usize),
        None => slot,
    };
    ListPart {
        slots: rank(range.slots.start)..rank(range.slots.end),
        entries: range.entries.clone(),
    }
}
