//! Pairs handed out in batches on the CPU backend's workers.
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
//! **Invariant:** all neighbours of a target are in one batch, and every target is in exactly one.

use crate::{
    Engine, Error, PointSetId,
    backend::{JobKind, support::Feature},
    engine::jobs::job,
};
use nearfield_cpu::{PairScratch, PairsOfImage, VisitPairs};
use nearfield_grid::{memory::Shortage, parallel};
use rayon::prelude::*;
use std::{ops::ControlFlow, sync::OnceLock};

/// Number of pairs from which on a batch ends with the target it has reached…
const PAIRS: usize = 1 << 10;
/// …or maximum number of targets of a batch.
const TARGETS: usize = 1 << 8;
/// Sorted targets that a worker takes at a time.
const TASK: usize = 1 << 10;

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
    /// then also what is returned. Always on the CPU backend; lists are neither needed nor written.
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
    /// An engine that was asked for a GPU alone, or for an emulated one, refuses this with
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported).
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
        let kind = JobKind::OfCpu("for_each_batch");
        self.assign_to_cpu(&Feature::Batches, job(kind, targets, sources))?;
        let of = self.pair_of_sets(targets, sources)?;
        let len = of.targets.points().len();
        let failed = OnceLock::new();
        let task = |worker: &mut Worker, task: usize| {
            let mut visiting = Visiting {
                collected: &mut worker.collected,
                index: of.targets.points().index(),
                visit: &visit,
                flow: ControlFlow::Continue(()),
            };
            let slots = task * TASK..((task + 1) * TASK).min(len);
            let done = (self.backend).visit_pairs(of, slots, &mut worker.scratch, &mut visiting);
            let flow = visiting.flow;
            let refused = worker
                .collected
                .refused
                .map(|shortage| Err(shortage.into()));
            if let Err(error) = refused.unwrap_or(done) {
                // The first counts.
                let _ = failed.set(error);
                return ControlFlow::Break(());
            }
            flow?;
            worker.collected.hand_out(&visit)
        };
        self.backend.start()?;
        let flow = self.backend.install(|| {
            let mut tasks = 0..len.div_ceil(TASK);
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

/// Memory that a worker keeps from task to task.
#[derive(Debug, Default)]
struct Worker {
    /// The batch being put together.
    collected: Collected,
    /// Buffers of the search.
    scratch: PairScratch,
}

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
