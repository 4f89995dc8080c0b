//! Pairs handed out in batches on the CPU lane's workers.
//!
//! For callers whose code cannot be compiled into a traversal, such as a function pointer of
//! another language: one call serves some hundred pairs, in arrays that its loops can be vectorised
//! over.

use crate::{Engine, Error, PointSetId};
use nearfield_cpu::PairOfSets;
use rayon::prelude::*;
use std::ops::ControlFlow;

/// A batch ends with the target that brings it to so many pairs…
const PAIRS: usize = 1 << 10;
/// …or to so many targets.
const TARGETS: usize = 1 << 8;
/// Sorted targets that a worker takes at a time.
const TASK: usize = 1 << 10;

/// Some targets with all their neighbours, lent for one call.
///
/// The neighbours of target number `k` are the entries `offsets[k]..offsets[k + 1]` of all arrays
/// of pairs.
#[derive(Debug, Clone, Copy)]
pub struct PairBatch<'a> {
    /// The targets, by their index in their set.
    pub targets: &'a [u32],
    /// First pair of each target, and the number of pairs behind the last.
    pub offsets: &'a [u32],
    /// Of every pair the source, by its index in its set; once per periodic image.
    pub sources: &'a [u32],
    /// Of every pair x_j − x_i, periodic image included, axis by axis.
    pub d: [&'a [f32]; 3],
    /// Of every pair the squared distance.
    pub d2: &'a [f32],
}

/// Arrays of a batch being put together.
#[derive(Debug, Default)]
struct Collected {
    targets: Vec<u32>,
    offsets: Vec<u32>,
    sources: Vec<u32>,
    d: [Vec<f32>; 3],
    d2: Vec<f32>,
}

impl Engine {
    /// Calls `visit` with all targets and their neighbours, batch by batch, from several threads at
    /// a time; every target is in exactly one batch. [`ControlFlow::Break`] ends it early, which is
    /// then also what is returned. Always on the CPU lane; lists are neither needed nor written.
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
    /// # Errors
    /// [`Error::UnknownPointSet`] and [`Error::NoRadii`].
    pub fn for_each_batch(
        &self,
        targets: PointSetId,
        sources: PointSetId,
        visit: impl Fn(PairBatch<'_>) -> ControlFlow<()> + Sync,
    ) -> Result<ControlFlow<()>, Error> {
        let (t, s) = (targets.0, sources.0);
        let _span = tracing::debug_span!("engine.batches", targets = t, sources = s).entered();
        let of = self.pair_of_sets(targets, sources)?;
        let len = of.targets.points().len();
        Ok(self.lane.install(|| {
            (0..len.div_ceil(TASK)).into_par_iter().try_for_each_init(
                Collected::default,
                |collected, task| {
                    let slots = task * TASK..((task + 1) * TASK).min(len);
                    slots.into_iter().try_for_each(|slot| {
                        collected.add(&of, slot);
                        match collected.is_full() {
                            true => collected.hand_out(&visit),
                            false => ControlFlow::Continue(()),
                        }
                    })?;
                    collected.hand_out(&visit)
                },
            )
        }))
    }
}

impl Collected {
    /// Adds a sorted target and its neighbours.
    fn add(&mut self, of: &PairOfSets<'_>, slot: usize) {
        self.targets.push(of.targets.points().index()[slot]);
        self.offsets.push(self.sources.len() as u32);
        of.for_each_neighbor(slot, |source, _, pair| {
            self.sources.push(source);
            for (axis, d) in self.d.iter_mut().zip(pair.d) {
                axis.push(d);
            }
            self.d2.push(pair.d2);
        });
    }

    fn is_full(&self) -> bool {
        self.sources.len() >= PAIRS || self.targets.len() >= TARGETS
    }

    /// Hands out what there is, if anything, and begins anew.
    fn hand_out(&mut self, visit: impl Fn(PairBatch<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
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
