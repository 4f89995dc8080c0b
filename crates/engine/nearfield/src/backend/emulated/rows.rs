//! Free positions, and lists a range at a time, on the emulated device: the code of the CPU backend
//! on positions that were sent.

use super::{EmulatedDevice, deliver, failed, memory::OwnLender};
use crate::{
    Error,
    backend::{
        DeviceError, Fault, Job, StepInput,
        accelerator::OnPlaced,
        rows::{MeasuredRows, OnRows, Query, QueryTo, RowGeometry, RowPairs, RowRange, RowsOf},
        transfer::numbers_of,
    },
};
use nearfield_cpu::{
    ErrorKind, Inside, ListOrder, ListRows, NeighborLists, PairOfSets, PairScratch, PairsOfImage,
    SetRadii, VisitPairs,
};
use nearfield_grid::{
    Grid, HostLists, Lattice,
    memory::{Shortage, copied, make_room, zeroed},
};
use nearfield_pairs::ListKind;
use std::{ops::ControlFlow, sync::atomic::Ordering};

/// Name of the memory in messages.
const WHAT: &str = "lists on the emulated device";

impl EmulatedDevice {
    /// In tests: the device fails after it has written this number of ranges of lists.
    #[cfg(test)]
    pub(crate) fn fail_after(&self, ranges: usize) {
        self.ranges_left.store(ranges, Ordering::Relaxed);
    }

    /// A fault if the device is to fail now.
    fn range(&self) -> Result<(), Fault> {
        let left = self.ranges_left.load(Ordering::Relaxed);
        if left == usize::MAX {
            return Ok(());
        }
        let left = left.checked_sub(1).ok_or_else(|| failed("it is lost"))?;
        self.ranges_left.store(left, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn find_query(
        &self,
        input: &StepInput<'_>,
        query: Query<'_>,
        to: QueryTo<'_>,
    ) -> Result<(), DeviceError> {
        let state = &mut *self.take()?;
        let fault = self.begin()?;
        let numbers = numbers_of(&query.positions);
        let mut positions = zeroed(numbers, "positions on the device").map_err(Error::from)?;
        query.positions.copy_to(0, &mut positions);
        let (radius, domain) = (input.lattice.radius(), *input.lattice.domain());
        let (cells, all) = (input.options.subdivision, input.bounds.union(&query.bounds));
        let wide = Lattice::new(radius, domain, cells, &all);
        let lattice = match wide {
            Ok(wide) if domain.is_periodic() => wide,
            _ => input.lattice.clone(),
        };
        state.sort_onto(&self.cpu, input, &lattice)?;
        let mut targets = Grid::new(lattice.clone());
        let built = targets.build(positions.as_chunks::<3>().0.into(), query.bounds, &lattice);
        built.map_err(|source| Error::from(crate::ErrorKind::Query(source)))?;
        let sources = state.sets.get(query.sources);
        let of = PairOfSets {
            targets: &targets,
            sources: (sources.and_then(|set| set.grid.as_ref())).ok_or(Fault::Behind)?,
            same_set: false,
            radii: SetRadii::Uniform,
            filter: Default::default(),
            share: None,
        };
        match to {
            QueryTo::Lists(lists) => self.deliver_query(input, of, lists, fault),
            QueryTo::Geometry(geometry) => {
                let measured = self.cpu.measure(of, ListKind::Full)?;
                let written = measured.write_geometry(ListOrder::Unspecified, geometry);
                match written {
                    Err(error) if matches!(error.kind(), ErrorKind::FarImage { .. }) => {
                        Err(Fault::FarImages.into())
                    }
                    written => {
                        written?;
                        fault.map_or(Ok(()), |fault| Err(fault.into()))
                    }
                }
            }
        }
    }

    fn deliver_query(
        &self,
        input: &StepInput<'_>,
        of: PairOfSets<'_>,
        lists: &mut NeighborLists,
        fault: Option<Fault>,
    ) -> Result<(), DeviceError> {
        let mut found = NeighborLists::default();
        let measured = self.cpu.measure(of, ListKind::Full)?;
        let (targets, pairs) = (of.targets.points().len(), measured.pairs());
        (input.options).admit_lists(targets, pairs, lists)?;
        measured.write(ListOrder::Unspecified, &mut found)?;
        let fill = |start: &mut [u64], count: &mut [u32], entries: &mut [u32], inside: Inside| {
            let to = HostLists {
                start,
                count,
                entries,
            };
            let (mut inside, mut checked) = (Some(inside), None);
            let placed: &mut OnPlaced<'_, '_> = &mut |start: &mut [u64], count: &mut [u32]| {
                checked = inside.take().map(|inside| inside.check(start, count));
            };
            deliver(&found, |_| true, to, placed, fault)?;
            Ok(checked)
        };
        let receive = || lists.receive(targets, pairs, &OwnLender, fill);
        input.cpu.install(receive)
    }

    pub(super) fn count_rows(
        &self,
        input: &StepInput<'_>,
        job: Job,
        what: RowsOf,
    ) -> Result<MeasuredRows, DeviceError> {
        let state = &mut *self.take()?;
        if let Some(fault) = self.begin()? {
            return Err(fault.into());
        }
        state.sort(&self.cpu, input)?;
        let of = state.pair(job, None)?;
        let measured = self.cpu.measure(of, what.kind(input))?;
        Ok(MeasuredRows {
            job,
            what,
            targets: copied(measured.targets(), WHAT).map_err(Error::from)?,
            pairs: measured.pairs(),
            lengths: measured.into_lengths(),
            ranks: None,
            sort: None,
        })
    }

    pub(super) fn find_rows(
        &self,
        input: &StepInput<'_>,
        measured: &MeasuredRows,
        range: &RowRange,
        rows: &mut ListRows,
    ) -> Result<(), DeviceError> {
        let state = &mut *self.take()?;
        self.range()?;
        state.sort(&self.cpu, input)?;
        let of = state.pair(measured.job, None)?;
        let counted = self.cpu.measure(of, measured.what.kind(input))?;
        Ok(counted.write_range(range.slots.clone(), ListOrder::Unspecified, rows)?)
    }

    pub(super) fn send_rows(
        &self,
        input: &StepInput<'_>,
        measured: &MeasuredRows,
        ranges: &[RowRange],
        receive: &mut OnRows<'_>,
    ) -> Result<ControlFlow<()>, DeviceError> {
        let state = &mut *self.take()?;
        state.sort(&self.cpu, input)?;
        let of = state.pair(measured.job, None)?;
        let (mut scratch, mut pairs) = (PairScratch::default(), Pairs::default());
        for (number, range) in ranges.iter().enumerate() {
            self.range()?;
            pairs.clear();
            (self.cpu).visit_pairs(of, range.slots.clone(), &mut scratch, &mut pairs)?;
            if let Some(shortage) = pairs.failed.take() {
                return Err(Error::from(shortage).into());
            }
            if receive(number, pairs.as_rows()).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// The pairs of a range, collected.
#[derive(Default)]
struct Pairs {
    sources: Vec<u32>,
    displacements: Vec<[f32; 3]>,
    squares: Vec<f32>,
    /// Memory that was refused.
    failed: Option<Shortage>,
}

impl Pairs {
    /// Makes room for so many pairs more.
    fn make_room(&mut self, more: usize) -> Result<(), Shortage> {
        let held = self.sources.len();
        if more <= self.squares.capacity() - held {
            return Ok(());
        }
        let all = (held + more).max(2 * held);
        make_room(&mut self.sources, all, WHAT)?;
        make_room(&mut self.displacements, all, WHAT)?;
        make_room(&mut self.squares, all, WHAT)
    }

    fn clear(&mut self) {
        self.sources.clear();
        self.displacements.clear();
        self.squares.clear();
    }

    fn as_rows(&self) -> RowPairs<'_> {
        RowPairs {
            sources: &self.sources,
            geometry: RowGeometry::Single {
                displacements: &self.displacements,
                squares: &self.squares,
            },
        }
    }
}

impl VisitPairs for Pairs {
    fn target(&mut self, _: usize) -> ControlFlow<()> {
        match self.failed {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }

    fn pairs(&mut self, pairs: PairsOfImage<'_>) {
        if self.failed.is_none() {
            self.failed = self.make_room(pairs.sources.len()).err();
        }
        if self.failed.is_some() {
            return;
        }
        self.sources.extend_from_slice(pairs.sources);
        self.squares.extend_from_slice(pairs.d2);
        let d = (0..pairs.sources.len()).map(|k| pairs.d.map(|axis| axis[k]));
        self.displacements.extend(d);
    }
}
