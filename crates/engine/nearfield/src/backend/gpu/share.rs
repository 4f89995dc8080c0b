//! The GPU's part of a work that it shares with the CPU backend.

use super::{GpuSide, State};
use crate::{Engine, Error, PairKernel, Strategy, backend::split::Piece};
use nearfield_cpu::Fields;
use nearfield_gpu::{
    self as gpu, Destination, DeviceParts, DeviceShare, HostBuffer, HostLists, PairOfPoints,
    PairProgram,
};
use nearfield_grid::{BrickParts, Lattice};
use nearfield_pairs::{Channels, ListKind};
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// Plans whose bricks the device keeps.
pub(crate) const KEPT_PLANS: usize = 16;

/// What to work on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GpuPart<'a> {
    pub(crate) targets: usize,
    pub(crate) sources: usize,
    /// Tells one map of bricks from all others.
    pub(crate) version: u64,
    pub(crate) bricks: &'a BrickParts,
    /// Parts below this are the GPU's.
    pub(crate) parts: usize,
    /// The lattice that bricks are blocks of, and its cells to a radius.
    pub(crate) lattice: (&'a Lattice, u32),
}

/// What became of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct GpuDone {
    /// Targets that were the GPU's, and where each part of them ends.
    pub(crate) bounds: Vec<u64>,
    pub(crate) pieces: Vec<Piece>,
    /// When the device's clock began, milliseconds since both backends did, and how far off that may be
    /// in nanoseconds.
    pub(crate) origin_ms: f64,
    pub(crate) clock_error: u64,
    /// What a cell took beside its pairs, in pairs tested.
    pub(crate) per_cell: f64,
    /// Entries of its lists.
    pub(crate) pairs: u64,
    /// Whether there was room for them; nothing was written if not.
    pub(crate) fitted: bool,
}

/// What launching a kernel for a cell takes on an H200, about 5 µs, in pairs tested of 3 ps.
const LAUNCH: f64 = 1.7e6;

impl GpuDone {
    /// Nothing yet, of the targets of a share.
    pub(crate) fn of(share: &DeviceShare, strategy: Strategy) -> Self {
        Self {
            bounds: share.bounds().to_vec(),
            per_cell: match strategy {
                Strategy::ChildPerCell => LAUNCH,
                _ => 0.0,
            },
            fitted: true,
            ..Self::default()
        }
    }

    /// Places the device's clock on the host's: it began after the host had asked it to, `asked`
    /// after both backends began, and its last piece had ended when the host had it, now.
    pub(crate) fn place(&mut self, began: Instant, asked: Duration) {
        let Some(last) = self.pieces.last() else {
            return;
        };
        let now = began.elapsed().as_secs_f64() * 1e3;
        let asked = asked.as_secs_f64() * 1e3;
        let slack = (now - last.end_ms - asked).max(0.0);
        self.origin_ms = asked + slack / 2.0;
        self.clock_error = (slack / 2.0 * 1e6) as u64;
    }
}

/// Buffers of shares, kept between steps.
#[derive(Debug, Default)]
pub(super) struct Shares {
    share: DeviceShare,
    /// By the version of the plan.
    parts: HashMap<u64, DeviceParts>,
}

impl State {
    /// Sorts, and gathers the targets of a part. The result must be given back.
    fn gather(
        &mut self,
        engine: &Engine,
        part: GpuPart<'_>,
    ) -> Result<(Shares, Strategy), gpu::Error> {
        let strategy = engine.settings.strategy.of_share();
        self.begin_sort_by(engine, engine.gpu_subdivision(&engine.bounds()))?;
        self.finish_sort(engine)?;
        let mut shares = std::mem::take(&mut self.shares);
        let gathered = self.gather_into(&mut shares, part, strategy);
        match gathered {
            Ok(()) => Ok((shares, strategy)),
            Err(error) => {
                self.shares = shares;
                Err(error)
            }
        }
    }

    fn gather_into(
        &self,
        shares: &mut Shares,
        part: GpuPart<'_>,
        strategy: Strategy,
    ) -> Result<(), gpu::Error> {
        let (Some(lattice), Some(targets)) = (&self.lattice, self.sets.get(part.targets)) else {
            return Ok(());
        };
        if !shares.parts.contains_key(&part.version) {
            if shares.parts.len() >= KEPT_PLANS {
                shares.parts.clear();
            }
            let parts = self
                .backend
                .parts(part.bricks, part.parts, part.lattice, None)?;
            shares.parts.insert(part.version, parts);
        }
        let grouped = strategy == Strategy::Flat;
        let _span = tracing::debug_span!("gpu.share").entered();
        match shares.parts.get(&part.version) {
            Some(parts) => {
                self.backend
                    .share(&targets.points, lattice, parts, grouped, &mut shares.share)
            }
            None => Ok(()),
        }
    }

    fn pair_of_share<'a>(
        &'a self,
        part: GpuPart<'_>,
        share: &'a DeviceShare,
    ) -> Option<PairOfPoints<'a>> {
        let pair = self.pair(part.targets, part.sources)?;
        let share = Some(share);
        Some(PairOfPoints { share, ..pair })
    }
}

impl GpuSide {
    /// Writes the lists of a part; `placed` gets all starts and lengths as soon as they are there. None when
    /// the GPU has failed.
    pub(crate) fn find_part<'a>(
        &self,
        engine: &Engine,
        part: GpuPart<'_>,
        kind: ListKind,
        (to, placed): (HostLists<'a>, impl FnOnce(&'a mut [u64], &'a mut [u32])),
        began: Instant,
    ) -> Option<GpuDone> {
        self.attempt(|state| {
            let _span = tracing::debug_span!("gpu.search").entered();
            let asked = began.elapsed();
            let begin = state.backend.mark()?;
            let (shares, strategy) = state.gather(engine, part)?;
            let mut storage = std::mem::take(&mut state.lists);
            let found = (|| {
                let mut done = GpuDone::of(&shares.share, strategy);
                let Some(pair) = state.pair_of_share(part, &shares.share) else {
                    return Ok(done);
                };
                let backend = &state.backend;
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
                let delivered = backend.deliver_share(
                    pair,
                    kind,
                    strategy,
                    &mut storage,
                    to,
                    (&begin, placed),
                )?;
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
                done.place(began, asked);
                Ok(done)
            })();
            state.lists = storage;
            state.shares = shares;
            found
        })
    }

    /// Neighbours of every target of a part, by the caller's index, in page-locked memory, which is to be [given
    /// back](Self::give_back_counts); None when the GPU has failed.
    pub(crate) fn count_part(
        &self,
        engine: &Engine,
        part: GpuPart<'_>,
    ) -> Option<(HostBuffer<u32>, GpuDone)> {
        let targets = engine.sets[part.targets].grid.len();
        self.attempt(|state| {
            let _span = tracing::debug_span!("gpu.count").entered();
            let mut counts = state.backend.host_room(state.counts.take(), targets)?;
            let (shares, strategy) = state.gather(engine, part)?;
            let mut scratch = std::mem::take(&mut state.scratch);
            let done = GpuDone::of(&shares.share, strategy);
            let counted = match state.pair_of_share(part, &shares.share) {
                Some(pair) => {
                    let to = Destination::whole(&mut counts[..targets]);
                    let kind = ListKind::Full;
                    state.backend.count(pair, kind, strategy, to, &mut scratch)
                }
                None => Ok(()),
            };
            (state.shares, state.scratch) = (shares, scratch);
            counted.map(|()| (counts, done))
        })
    }

    /// Evaluates a pair kernel for a part whose fields were [prepared](Self::prepare_part), under the
    /// number that this gave; the results come in
    /// page-locked memory, which is to be [given back](Self::give_back). None when the GPU has failed.
    ///
    /// # Errors
    /// Those of the kernel's own CUDA text.
    pub(crate) fn evaluate_part<K: PairKernel>(
        &self,
        engine: &Engine,
        part: GpuPart<'_>,
        (program, uniforms): (&PairProgram, &[f32]),
        (fields, prepared): (Fields<'_>, u64),
        began: Instant,
    ) -> Result<Option<(HostBuffer<f32>, GpuDone)>, Error> {
        let targets = engine.sets[part.targets].grid.len();
        let mut refused = None;
        let evaluated = self.attempt(|state| {
            let kernel = std::any::type_name::<K>();
            let _span = tracing::debug_span!("gpu.evaluate", targets, kernel).entered();
            let asked = began.elapsed();
            let begin = state.backend.mark()?;
            let mut results = state.room(targets * K::Output::COUNT)?;
            let (shares, strategy) = state.gather(engine, part)?;
            if state.staged.number() != prepared {
                // Another job has used the GPU since they were sent.
                state.staged.fill(&state.backend, &engine.backend, fields)?;
            }
            let mut scratch = std::mem::take(&mut state.scratch);
            let mut staged = std::mem::take(&mut state.staged);
            let evaluated = match state.pair_of_share(part, &shares.share) {
                Some(pair) => state.backend.evaluate_staged(
                    pair,
                    (program, uniforms),
                    staged.fields(),
                    strategy,
                    Destination::whole(&mut results[..targets * K::Output::COUNT]),
                    &mut scratch,
                ),
                None => Ok(()),
            };
            let end_ms = f64::from(state.backend.since(&begin)?);
            let traversed = scratch.traversed(&begin)?.map(|times| times.map(f64::from));
            let [begin_ms, computed_ms] = traversed.unwrap_or([0.0, end_ms]);
            (state.scratch, state.staged) = (scratch, staged);
            let mut done = GpuDone::of(&shares.share, strategy);
            done.pieces.push(Piece {
                behind: shares.share.len() as u64,
                begin_ms,
                computed_ms,
                end_ms: computed_ms,
            });
            done.place(began, asked);
            state.shares = shares;
            match evaluated {
                Err(error @ gpu::Error::Compile { .. }) => {
                    refused = Some(error);
                    Ok(None)
                }
                Err(error) => Err(error),
                Ok(()) => Ok(Some((results, done))),
            }
        });
        match refused {
            Some(error) => Err(Error::Gpu(error)),
            None => Ok(evaluated.flatten()),
        }
    }

    /// Takes page-locked memory back, for the next results.
    pub(crate) fn give_back(&self, results: HostBuffer<f32>) {
        // Without a turn it is made anew for the next.
        if let Some(mut state) = self.state.take() {
            state.results = Some(results);
        }
    }

    /// The same, for the next counts.
    pub(crate) fn give_back_counts(&self, counts: HostBuffer<u32>) {
        if let Some(mut state) = self.state.take() {
            state.counts = Some(counts);
        }
    }
}
