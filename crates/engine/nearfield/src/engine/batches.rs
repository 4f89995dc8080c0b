//! Pairs handed out in batches on the engine's workers.
//!
//! For callers whose code cannot be compiled into a traversal, such as a function pointer of
//! another language: one call serves some hundred pairs, in arrays that its loops can be vectorised
//! over.
//!
//! Workers take 1,024 sorted targets at a time and collect pairs until there are 1,024, or 256
//! targets, so a batch fits into the caches and a call costs little per pair. Targets of a batch
//! are near each other.
//!
//! A batch exceeds 1,024 pairs by at most the neighbours of its last target. Its arrays belong to
//! the worker and are used again for the next batch, so a traversal allocates by the workers and
//! not by the pairs.
//!
//! If a GPU finds the pairs, they come a [range](RANGE) of targets at a time, while workers hand
//! out the range before; batches are cut at the same places. Displacements come point by point and
//! are brought into an array per axis; everything else is handed out where the GPU has written it.
//! After a fault the CPU backend hands out the targets that are left.
//!
//! **Invariant:** all neighbours of a target are in one batch, and every target is in exactly one.

use crate::{
    Device, Engine, Error, PointSetId,
    backend::{
        AttachedDevice, JobKind,
        rows::{MeasuredRows, RowPairs, RowRange, RowsOf},
        support::Feature,
    },
    engine::jobs::{Assigned, job},
};
use nearfield_cpu::{PairScratch, PairsOfImage, VisitPairs};
use nearfield_grid::{
    Stop,
    memory::{Shortage, make_room_for_one, with_room, zeroed},
    parallel,
};
use rayon::prelude::*;
use std::{
    ops::{ControlFlow, Range},
    sync::OnceLock,
};

/// Number of pairs from which on a batch ends with the target it has reached…
const PAIRS: usize = 1 << 10;
/// …or maximum number of targets of a batch.
const TARGETS: usize = 1 << 8;
/// Sorted targets that a worker takes at a time.
const TASK: usize = 1 << 10;
/// Pairs that a device sends at a time, about: enough for a copy to run at full speed.
const RANGE: u64 = 1 << 20;

/// Some targets with all their neighbours, lent for one call.
///
/// The neighbours of target number `k` are the entries `offsets[k]..offsets[k + 1]` of all arrays
/// of pairs.
///
/// All indices are those of the caller. Arrays of pairs are equally long; `offsets` is one longer
/// than `targets` and begins with 0. Targets without neighbours are among the targets, with an
/// empty range. The slices end with the call: copy what is to be kept.
#[derive(Debug, Clone, Copy)]
pub struct PairBatch<'a> {
    /// The targets, by their index in their set.
    pub targets: &'a [u32],
    /// First pair of each target, and the number of pairs behind the last.
    pub offsets: &'a [u32],
    /// The source of every pair, by its index in its set; once per periodic image.
    pub sources: &'a [u32],
    /// x_j − x_i of every pair, periodic image included, axis by axis.
    pub d: [&'a [f32]; 3],
    /// The squared distance of every pair.
    pub d2: &'a [f32],
}

/// Arrays of a batch being put together.
#[derive(Debug, Default)]
struct Collected {
    /// Index of every target.
    targets: Vec<u32>,
    /// First pair of every target.
    offsets: Vec<u32>,
    /// Index of the source of every pair.
    sources: Vec<u32>,
    /// Displacements, axis by axis.
    d: [Vec<f32>; 3],
    /// Squared distances.
    d2: Vec<f32>,
    /// Memory that there was none of for a pair.
    refused: Option<Shortage>,
}

impl Engine {
    /// Calls `visit` with all targets and their neighbours, batch by batch, from several threads at
    /// a time; every target is in exactly one batch. [`ControlFlow::Break`] ends it early, which is
    /// then also what is returned. Lists are neither needed nor written.
    ///
    /// [`traverse`](Self::traverse) is faster wherever a [`PairKernel`](crate::PairKernel) can be
    /// compiled.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// use std::{ops::ControlFlow, sync::atomic::{AtomicUsize, Ordering}};
    /// let mut engine = Engine::builder(1.0).build()?;
    /// let points = engine.add_point_set(&[[0.0f32; 3], [0.5, 0.0, 0.0], [1.0, 0.0, 0.0]])?;
    /// let pairs = AtomicUsize::new(0);
    /// let _ = engine.for_each_batch(points, points, |batch| {
    ///     pairs.fetch_add(batch.sources.len(), Ordering::Relaxed);
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(pairs.into_inner(), 6);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// After a break other threads finish the call that they are in, so some batches may still be
    /// visited. Neither the order of the batches nor the thread of a batch is fixed; the batches
    /// themselves are, by the points and the settings.
    ///
    /// A GPU finds the pairs if the engine was asked for one alone, and `visit` is called by the
    /// engine's workers while the next pairs are on their way. The GPU is in use until all batches
    /// are handed out, so jobs of this engine that `visit` begins are done by the CPU pool. An
    /// engine that shares its jobs leaves this one to the CPU pool.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`](crate::ErrorKind::UnknownPointSet) and
    /// [`ErrorKind::NoRadii`](crate::ErrorKind::NoRadii); [`ErrorKind::Cpu`](crate::ErrorKind::Cpu)
    /// when memory is short, after some batches.
    pub fn for_each_batch(
        &self,
        targets: PointSetId,
        sources: PointSetId,
        visit: impl Fn(PairBatch<'_>) -> ControlFlow<()> + Sync,
    ) -> Result<ControlFlow<()>, Error> {
        let (t, s) = (targets.slot(), sources.slot());
        let _span = tracing::debug_span!("engine.batches", targets = t, sources = s).entered();
        let pair = self.pair(targets, sources)?;
        self.in_place()?;
        let job = job(JobKind::Batches, targets, sources);
        match self.assign_pair(&Feature::Batches, pair.map(|slot| slot as usize))? {
            Assigned::Cpu(reason) => {
                let flow = self.batches_on_cpu([targets, sources], &visit, None)?;
                self.was_done(job, Device::Cpu, reason);
                Ok(flow)
            }
            Assigned::Device(device) => self.batches_on_device(device, [targets, sources], &visit),
        }
    }

    /// Hands out the pairs of all targets, or of those that were not `handed_out`, by index.
    fn batches_on_cpu(
        &self,
        [targets, sources]: [PointSetId; 2],
        visit: &Visit<'_>,
        handed_out: Option<&[bool]>,
    ) -> Result<ControlFlow<()>, Error> {
        let of = self.pair_of_sets(targets, sources)?;
        let (len, index) = (of.targets.points().len(), of.targets.points().index());
        let left = match handed_out {
            Some(done) => ranges_left(&index[..len], done)?,
            None => Vec::new(),
        };
        let tasks = match handed_out {
            Some(_) => left.len(),
            None => len.div_ceil(TASK),
        };
        let task = |worker: &mut Worker, task: usize| {
            let slots = match handed_out {
                Some(_) => left[task].clone(),
                None => task * TASK..((task + 1) * TASK).min(len),
            };
            let mut visiting = Visiting {
                collected: &mut worker.collected,
                index,
                visit,
                flow: ControlFlow::Continue(()),
            };
            let done = (self.backend).visit_pairs(of, slots, &mut worker.scratch, &mut visiting);
            let flow = visiting.flow;
            worker.refused()?;
            done?;
            Ok(if flow.is_continue() {
                worker.collected.hand_out(visit)
            } else {
                flow
            })
        };
        self.on_workers_each(tasks, &task)
    }

    /// Hands out the pairs that a device finds, a range of targets at a time; after a fault the CPU
    /// backend goes on with the others.
    fn batches_on_device(
        &self,
        device: AttachedDevice<'_>,
        [targets, sources]: [PointSetId; 2],
        visit: &Visit<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        let (input, job) = (self.input(), job(JobKind::Batches, targets, sources));
        let on_cpu = |handed_out: Option<&[bool]>| {
            self.batches_on_cpu([targets, sources], visit, handed_out)
        };
        let measured = device.alone(&input, |device| {
            device.measure_rows(&input, job, RowsOf::Pairs)
        });
        let measured = match measured? {
            Ok(measured) => measured,
            Err(fault) => {
                let flow = on_cpu(None)?;
                self.ran(job, Some(fault.to_string()));
                return Ok(flow);
            }
        };
        let (ranges, starts) = ranges_of(&measured.lengths)?;
        let (mut slots, mut handed) = (0, Ok(ControlFlow::Continue(())));
        let mut receive = |number: usize, pairs: RowPairs<'_>| {
            let range: &RowRange = &ranges[number];
            slots = range.slots.end;
            handed = self.hand_out_range(&measured, range, &starts, pairs, visit);
            match handed {
                Ok(flow) => flow,
                Err(_) => ControlFlow::Break(()),
            }
        };
        let streamed = device.alone(&input, |device| {
            device.stream_rows(&input, &measured, &ranges, &mut receive)
        })?;
        let flow = handed?;
        let Err(fault) = streamed else {
            self.ran(job, None);
            return Ok(flow);
        };
        if flow.is_continue() {
            let mut handed_out = zeroed::<u8>(measured.targets.len(), MARKS)?;
            for &target in &measured.targets[..slots] {
                if let Some(mark) = handed_out.get_mut(target as usize) {
                    *mark = 1;
                }
            }
            let mut marks = with_room(handed_out.len(), MARKS)?;
            marks.extend(handed_out.iter().map(|&mark| mark == 1));
            let flow = on_cpu(Some(&marks))?;
            self.ran(job, Some(fault.to_string()));
            return Ok(flow);
        }
        self.ran(job, Some(fault.to_string()));
        Ok(flow)
    }

    /// Hands out the pairs of a range of sorted targets; `starts` has the number of the first entry
    /// of every task.
    fn hand_out_range(
        &self,
        measured: &MeasuredRows,
        range: &RowRange,
        starts: &[u64],
        pairs: RowPairs<'_>,
        visit: &Visit<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        let stop = Stop::current();
        let first = range.slots.start / TASK;
        let task = |worker: &mut Worker, task: usize| {
            if stop.is_asked() {
                return Err(nearfield_cpu::ErrorKind::Interrupted.into());
            }
            let begin = (first + task) * TASK;
            let slots = begin..(begin + TASK).min(range.slots.end);
            let entry = (starts[first + task] - range.entries.start) as usize;
            let flow = worker.hand_out(measured, slots, (entry, pairs), visit);
            worker.refused()?;
            Ok(flow)
        };
        if stop.is_asked_now() {
            return Err(nearfield_cpu::Error::from(nearfield_cpu::ErrorKind::Interrupted).into());
        }
        self.on_workers_each(range.slots.len().div_ceil(TASK), &task)
    }

    /// Does tasks on the workers until one fails or ends the visit.
    fn on_workers_each(&self, tasks: usize, task: &Task<'_>) -> Result<ControlFlow<()>, Error> {
        let failed = OnceLock::new();
        let task = |worker: &mut Worker, number: usize| match task(worker, number) {
            Ok(flow) => flow,
            Err(error) => {
                // The first counts.
                let _ = failed.set(error);
                ControlFlow::Break(())
            }
        };
        self.backend.start()?;
        let flow = self.backend.install(|| {
            let mut tasks = 0..tasks;
            if parallel::is_shared() {
                (tasks.into_par_iter()).try_for_each_init(Worker::default, task)
            } else {
                let mut worker = Worker::default();
                tasks.try_for_each(|number| task(&mut worker, number))
            }
        });
        match failed.into_inner() {
            Some(error) => Err(error.into()),
            None => Ok(flow),
        }
    }
}

/// Name of the memory of marks in messages.
const MARKS: &str = "marks of targets";

/// The ranges of sorted targets of these lengths in which a device sends pairs, each some whole
/// tasks, and the number of the first entry of every task.
fn ranges_of(lengths: &[u32]) -> Result<(Vec<RowRange>, Vec<u64>), Shortage> {
    const WHAT: &str = "ranges of targets";
    let (mut ranges, mut starts) = (Vec::new(), with_room(lengths.len().div_ceil(TASK), WHAT)?);
    let mut range = RowRange {
        slots: 0..0,
        entries: 0..0,
    };
    for task in lengths.chunks(TASK) {
        starts.push(range.entries.end);
        range.slots.end += task.len();
        range.entries.end += task.iter().map(|&length| u64::from(length)).sum::<u64>();
        let is_full = range.entries.end - range.entries.start >= RANGE;
        if is_full || range.slots.end == lengths.len() {
            make_room_for_one(&mut ranges, WHAT)?;
            let next = RowRange {
                slots: range.slots.end..range.slots.end,
                entries: range.entries.end..range.entries.end,
            };
            ranges.push(std::mem::replace(&mut range, next));
        }
    }
    Ok((ranges, starts))
}

/// The ranges of sorted targets, of one task each, that were not handed out; `index` are the
/// caller's indices of the sorted targets, by which `done` says so.
fn ranges_left(index: &[u32], done: &[bool]) -> Result<Vec<Range<usize>>, Shortage> {
    const WHAT: &str = "ranges of targets";
    let mut left: Vec<Range<usize>> = Vec::new();
    for (slot, &target) in index.iter().enumerate() {
        if done.get(target as usize) == Some(&true) {
            continue;
        }
        match left.last_mut() {
            Some(range) if range.end == slot && slot % TASK != 0 => range.end = slot + 1,
            _ => {
                make_room_for_one(&mut left, WHAT)?;
                left.push(slot..slot + 1);
            }
        }
    }
    Ok(left)
}

/// Memory that a worker keeps from task to task.
#[derive(Debug, Default)]
struct Worker {
    /// The batch being put together.
    collected: Collected,
    /// Buffers of the search.
    scratch: PairScratch,
}

impl Worker {
    /// An error if there was no memory for a pair.
    fn refused(&self) -> Result<(), nearfield_cpu::Error> {
        let refused = self.collected.refused;
        refused.map_or(Ok(()), |shortage| Err(shortage.into()))
    }

    /// Hands out the pairs of a task that a device has found: those of the sorted targets `slots`,
    /// which begin with number `first` of `pairs`.
    fn hand_out(
        &mut self,
        measured: &MeasuredRows,
        slots: Range<usize>,
        (mut first, pairs): (usize, RowPairs<'_>),
        visit: &Visit<'_>,
    ) -> ControlFlow<()> {
        let collected = &mut self.collected;
        let mut next = slots.start;
        while next < slots.end {
            let begin = next;
            let mut end = 0usize;
            collected.offsets.clear();
            collected.offsets.push(0);
            while next < slots.end && end < PAIRS && next - begin < TARGETS {
                end += measured.lengths[next] as usize;
                collected.offsets.push(end as u32);
                next += 1;
            }
            let of_batch = first..first + end;
            first += end;
            let Collected { d, d2, .. } = collected;
            if let Err(shortage) = pairs.geometry.round_to(of_batch.clone(), d, d2) {
                collected.refused = Some(shortage);
                return ControlFlow::Break(());
            }
            visit(PairBatch {
                targets: &measured.targets[begin..next],
                offsets: &collected.offsets,
                sources: &pairs.sources[of_batch.clone()],
                d: collected.d.each_ref().map(Vec::as_slice),
                d2: &collected.d2,
            })?;
        }
        ControlFlow::Continue(())
    }
}

/// A task of a visit, by its number.
type Task<'a> =
    dyn Fn(&mut Worker, usize) -> Result<ControlFlow<()>, nearfield_cpu::Error> + Sync + 'a;

/// Takes batches: the caller's function, as an object, so that nothing is compiled for each.
type Visit<'a> = dyn Fn(PairBatch<'_>) -> ControlFlow<()> + Sync + 'a;

/// A task's way from pairs to batches.
struct Visiting<'a> {
    /// The batch being put together.
    collected: &'a mut Collected,
    /// The caller's index of every sorted target.
    index: &'a [u32],
    /// The caller's.
    visit: &'a Visit<'a>,
    /// The last answer of `visit`.
    flow: ControlFlow<()>,
}

impl VisitPairs for Visiting<'_> {
    fn target(&mut self, slot: usize) -> ControlFlow<()> {
        let collected = &mut *self.collected;
        if collected.refused.is_some() {
            return ControlFlow::Break(());
        }
        if collected.is_full() {
            self.flow = collected.hand_out(self.visit);
            self.flow?;
        }
        collected.targets.push(self.index[slot]);
        collected.offsets.push(collected.sources.len() as u32);
        ControlFlow::Continue(())
    }

    /// If memory runs out, the target's other pairs are left out and `refused` says so. The batch
    /// is never handed out then.
    fn pairs(&mut self, pairs: PairsOfImage<'_>) {
        let (collected, more) = (&mut *self.collected, pairs.sources.len());
        if collected.sources.capacity() - collected.sources.len() < more && !collected.grow(more) {
            return;
        }
        collected.sources.extend_from_slice(pairs.sources);
        for (axis, d) in collected.d.iter_mut().zip(pairs.d) {
            axis.extend_from_slice(d);
        }
        collected.d2.extend_from_slice(pairs.d2);
    }
}

impl Collected {
    /// Makes room for `more` pairs at least; false where there is none.
    ///
    /// Doubles the arrays, or begins with the pairs of a full batch; a worker calls it a few times
    /// in all.
    #[cold]
    fn grow(&mut self, more: usize) -> bool {
        let (len, more) = (self.d2.len(), self.d2.len().max(PAIRS).max(more));
        let mut grown = self.d2.try_reserve(more);
        for axis in &mut self.d {
            grown = grown.and_then(|()| axis.try_reserve(more));
        }
        // The sources last: by them it is told whether there is room.
        grown = grown.and_then(|()| self.sources.try_reserve_exact(more));
        if grown.is_err() {
            let bytes_of_pair = size_of::<[f32; 4]>() + size_of::<u32>();
            self.refused = Some(Shortage {
                bytes: bytes_of_pair.saturating_mul(len + more),
                what: "a batch of pairs",
            });
        }
        grown.is_ok()
    }

    /// Asked between targets only, so no target is divided. The bound on targets keeps batches of
    /// points with few neighbours from growing without end.
    fn is_full(&self) -> bool {
        self.sources.len() >= PAIRS || self.targets.len() >= TARGETS
    }

    /// Hands out what there is, if anything, and begins anew.
    fn hand_out(&mut self, visit: &Visit<'_>) -> ControlFlow<()> {
        if self.targets.is_empty() {
            return ControlFlow::Continue(());
        }
        self.offsets.push(self.sources.len() as u32);
        let flow = visit(PairBatch {
            targets: &self.targets,
            offsets: &self.offsets,
            sources: &self.sources,
            d: self.d.each_ref().map(Vec::as_slice),
            d2: &self.d2,
        });
        self.targets.clear();
        self.offsets.clear();
        self.sources.clear();
        self.d.iter_mut().for_each(Vec::clear);
        self.d2.clear();
        flow
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::emulated::EmulatedDevice;
    use nearfield_testkit::cloud::Cloud;
    use std::sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    };

    fn emulated() -> Device {
        Device::Emulated(Default::default())
    }

    /// An engine of points whose device fails after this number of ranges.
    fn failing(points: &[[f32; 3]], ranges: usize) -> (Engine, PointSetId) {
        let builder = Engine::builder(2.0).device(emulated()).threads(2);
        let mut engine = builder.memory_limit(1 << 20).build().unwrap();
        let device = EmulatedDevice::new(Default::default()).unwrap();
        device.fail_after(ranges);
        engine.accelerator = Some(Box::new(device));
        let set = engine.add_point_set(points).unwrap();
        (engine, set)
    }

    /// Every target with its sorted sources and the bits of their squared distances.
    fn pairs_of(engine: &Engine, set: PointSetId) -> Vec<(u32, Vec<(u32, u32)>)> {
        let found = Mutex::new(Vec::new());
        let flow = engine.for_each_batch(set, set, |batch| {
            let mut found = found.lock().unwrap();
            for (k, &target) in batch.targets.iter().enumerate() {
                let pairs = batch.offsets[k] as usize..batch.offsets[k + 1] as usize;
                let mut list: Vec<_> = pairs
                    .map(|pair| (batch.sources[pair], batch.d2[pair].to_bits()))
                    .collect();
                list.sort_unstable();
                found.push((target, list));
            }
            ControlFlow::Continue(())
        });
        assert!(flow.unwrap().is_continue());
        let mut found = found.into_inner().unwrap();
        found.sort_unstable();
        found
    }

    #[test]
    fn batches_are_handed_out_once_whatever_becomes_of_the_device() {
        // Some two million pairs: two ranges.
        let points = Cloud::Lattice.points(60_000, 1);
        let (mut engine, set) = failing(&points, usize::MAX);
        engine.accelerator = None;
        let expected = pairs_of(&engine, set);
        assert_eq!(expected.len(), points.len());
        for ranges in 0..2 {
            let (engine, set) = failing(&points, ranges);
            assert!(pairs_of(&engine, set) == expected, "{ranges}");
            let report = &engine.report().jobs[0];
            assert_eq!(report.device, Device::Cpu);
            assert!(report.reason.contains("it is lost"), "{}", report.reason);
        }
        let (engine, set) = failing(&points, usize::MAX);
        assert!(pairs_of(&engine, set) == expected);
        assert_eq!(engine.report().jobs[0].device, emulated());
    }

    #[test]
    fn a_break_ends_batches_of_a_device() {
        let points = Cloud::Lattice.points(60_000, 1);
        let (engine, set) = failing(&points, usize::MAX);
        let calls = AtomicUsize::new(0);
        let flow = engine.for_each_batch(set, set, |_| {
            calls.fetch_add(1, Ordering::Relaxed);
            ControlFlow::Break(())
        });
        assert!(flow.unwrap().is_break());
        // Both workers may have been in a call.
        assert!(calls.into_inner() <= 2);
    }

    #[test]
    fn ranges_are_whole_tasks_with_all_entries() {
        let lengths: Vec<u32> = (0..10 * TASK as u32 + 7).map(|k| 200 + k % 3).collect();
        let (ranges, starts) = ranges_of(&lengths).unwrap();
        assert_eq!(starts.len(), 11);
        let mut end = RowRange {
            slots: 0..0,
            entries: 0..0,
        };
        for range in ranges {
            assert_eq!(range.slots.start, end.slots.end);
            assert_eq!(range.entries.start, end.entries.end);
            assert_eq!(range.slots.start % TASK, 0);
            assert_eq!(starts[range.slots.start / TASK], range.entries.start);
            end = range;
        }
        assert_eq!(end.slots.end, lengths.len());
        assert_eq!(
            end.entries.end,
            lengths.iter().map(|&n| u64::from(n)).sum::<u64>()
        );
        assert!(ranges_of(&[]).unwrap().0.is_empty());
    }

    #[test]
    fn targets_that_are_left_are_cut_into_tasks() {
        let index: Vec<u32> = (0..3 * TASK as u32).rev().collect();
        let mut done = vec![false; index.len()];
        for target in 0..TASK + 10 {
            done[target] = true;
        }
        done[index[5] as usize] = true;
        let left = ranges_left(&index, &done).unwrap();
        assert_eq!(left, [0..5, 6..TASK, TASK..2 * TASK - 10]);
        assert!(
            ranges_left(&index, &vec![true; index.len()])
                .unwrap()
                .is_empty()
        );
    }
}
