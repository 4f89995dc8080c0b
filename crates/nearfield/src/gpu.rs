//! The GPU's side of an engine: its sets on the device, and the work it takes over there.
//!
//! The host keeps everything too, so nothing is lost when the GPU fails: the step is finished on
//! the CPU lane, as are all that follow, and the report says why.

use crate::{
    Device, Engine, Error, GpuReport, ListOrder, PairKernel, PointSetId, Strategy, Traversal,
};
use nearfield_cpu::{ListKind, Output, RadiusRule};
use nearfield_gpu::{
    self as gpu, DeviceLattice, DeviceLists, DevicePoints, GpuLane, PairFields, PairOfPoints,
    PairProgram, PairScratch,
};
use nearfield_grid::{Bounds, Lattice};
use nearfield_pairs::{Channels, Field};
use std::{
    borrow::Cow,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tracing::field::Empty;

/// Mean points in a cell of the radius' edge from which finer cells are worth their table.
const FINER_FROM: f64 = 4.0;
/// Cells per point that the finer table may have.
const FINER_CELLS: f64 = 12.0;

/// The GPU and what it holds of an engine.
#[derive(Debug)]
pub(crate) struct GpuSide {
    number: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    lane: GpuLane,
    /// Positions on the device are current; sorting waits for the first search.
    sets: Vec<Placed>,
    lattice: Option<DeviceLattice>,
    lists: DeviceLists,
    scratch: PairScratch,
    failed: Option<String>,
}

#[derive(Debug)]
struct Placed {
    points: DevicePoints,
    sorted: bool,
}

impl GpuSide {
    pub(crate) fn new(number: u32) -> Result<Self, gpu::Error> {
        Ok(Self {
            number,
            state: Mutex::new(State {
                lane: GpuLane::new(number)?,
                sets: Vec::new(),
                lattice: None,
                lists: DeviceLists::default(),
                scratch: PairScratch::default(),
                failed: None,
            }),
        })
    }

    /// Copies the checked positions of a set to the device.
    pub(crate) fn place(&mut self, set: usize, positions: &[[f32; 3]]) {
        let bytes = size_of_val(positions);
        self.attempt(|state| {
            let _span = tracing::debug_span!("gpu.upload", bytes).entered();
            while state.sets.len() <= set {
                let points = state.lane.points();
                let sorted = false;
                state.sets.push(Placed { points, sorted });
            }
            let target = &mut state.sets[set];
            target.sorted = false;
            state.lane.upload(&mut target.points, positions).map(drop)
        });
    }

    /// The lattice has changed.
    pub(crate) fn outdate(&mut self) {
        self.locked().lattice = None;
    }

    pub(crate) fn report(&self, strategy: Strategy) -> GpuReport {
        let state = self.locked();
        let sets = state.sets.iter().map(|set| set.points.bytes());
        GpuReport {
            name: state.lane.device().name.clone(),
            strategy,
            subdivision: state.lattice.as_ref().map_or(1, DeviceLattice::subdivision),
            bytes: sets.sum::<usize>() + state.lists.bytes(),
            failed: state.failed.clone(),
        }
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        // What a panic leaves behind is sorted anew at the next step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `work` gives, or None when the GPU has failed, now or before.
    fn attempt<T>(&self, work: impl FnOnce(&mut State) -> Result<T, gpu::Error>) -> Option<T> {
        let mut state = self.locked();
        if state.failed.is_some() {
            return None;
        }
        match work(&mut state) {
            Ok(done) => Some(done),
            Err(error) => {
                tracing::warn!(%error, "the CPU lane takes over from the GPU");
                state.failed = Some(error.to_string());
                None
            }
        }
    }
}

impl State {
    /// Brings all sets onto a lattice for the GPU, which has its own cell size.
    fn sort(&mut self, engine: &Engine) -> Result<(), gpu::Error> {
        let _span = tracing::debug_span!("gpu.sort").entered();
        let all = engine.bounds();
        let subdivision = engine.gpu_subdivision(&all);
        let (radius, domain) = (engine.lattice.radius(), *engine.lattice.domain());
        let lattice = match Lattice::new(radius, domain, subdivision, &all) {
            Ok(lattice) => lattice,
            // The engine's own lattice was made for the same radius, domain and points.
            Err(_) => engine.lattice.clone(),
        };
        if (self.lattice.as_ref()).is_none_or(|old| *old.lattice() != lattice) {
            self.lattice = Some(self.lane.lattice(&lattice, subdivision)?);
            for set in &mut self.sets {
                set.sorted = false;
            }
        }
        let Some(lattice) = &self.lattice else {
            return Ok(());
        };
        for (set, on_host) in self.sets.iter_mut().zip(&engine.sets) {
            if !set.sorted {
                self.lane
                    .sort(&mut set.points, lattice, on_host.grid.bounds())?;
                set.sorted = true;
            }
        }
        Ok(())
    }

    fn pair(&self, targets: usize, sources: usize) -> Option<PairOfPoints<'_>> {
        Some(PairOfPoints {
            lattice: self.lattice.as_ref()?,
            targets: &self.sets.get(targets)?.points,
            sources: &self.sets.get(sources)?.points,
            same_set: targets == sources,
        })
    }
}

impl Engine {
    /// Where the work is done.
    pub(crate) fn device(&self) -> Device {
        match &self.gpu {
            Some(gpu) if gpu.locked().failed.is_none() => Device::Gpu(gpu.number),
            _ => Device::Cpu,
        }
    }

    /// Cells to a radius on the GPU: finer ones test fewer candidates, but their table has to be
    /// filled every step.
    fn gpu_subdivision(&self, bounds: &Bounds) -> u32 {
        if self.settings.subdivision > 1 {
            return self.settings.subdivision;
        }
        let edges = self.lattice.edges();
        let extent = bounds.extent();
        let cells: f64 = (0..3)
            .map(|axis| extent[axis] / edges[axis] + 1.0)
            .product();
        let points: usize = self.sets.iter().map(|set| set.grid.points().len()).sum();
        let points = points.max(1) as f64;
        match points / cells >= FINER_FROM || 8.0 * cells <= FINER_CELLS * points {
            true => 2,
            false => 1,
        }
    }

    /// The GPU, where it can do what the engine's settings ask for.
    fn gpu_for_lists(&self) -> Option<&GpuSide> {
        self.gpu
            .as_ref()
            .filter(|_| self.settings.rule == RadiusRule::Uniform)
    }

    /// Writes all lists that are out of date; false when the CPU lane has to.
    pub(crate) fn find_on_gpu(&mut self) -> Result<bool, Error> {
        if self.gpu_for_lists().is_none() {
            return Ok(false);
        }
        let sets = self.sets.len();
        for at in 0..self.pairs.len() {
            if self.pairs[at].active && !self.pairs[at].current && !self.list_on_gpu(at, sets)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes the lists of one pair of sets; false when the CPU lane has to.
    fn list_on_gpu(&mut self, at: usize, sets: usize) -> Result<bool, Error> {
        let mut lists = std::mem::take(&mut self.pairs[at].lists);
        let kind = match self.settings.lists {
            ListKind::Full => gpu::ListKind::Full,
            ListKind::Half => gpu::ListKind::Half,
        };
        let strategy = self.settings.strategy;
        let found = self.gpu.as_ref().and_then(|side| {
            side.attempt(|state| {
                state.sort(self)?;
                let mut storage = std::mem::take(&mut state.lists);
                if let Some(pair) = state.pair(at / sets, at % sets) {
                    let span = tracing::debug_span!("gpu.search", pairs = Empty).entered();
                    state.lane.search(pair, kind, strategy, &mut storage)?;
                    span.record("pairs", storage.pairs());
                }
                let bytes = 12 * storage.len() as u64 + 4 * storage.pairs();
                let _span = tracing::debug_span!("gpu.download", bytes).entered();
                let received =
                    lists.receive(storage.len(), storage.pairs(), |start, count, entries| {
                        storage
                            .download(&state.lane, start, count, entries)
                            .map_err(Received::Gpu)
                    });
                state.lists = storage;
                match received {
                    Err(Received::Gpu(error)) => Err(error),
                    Err(Received::Cpu(error)) => Ok(Err(Error::Cpu(error))),
                    Ok(()) => Ok(Ok(())),
                }
            })
        });
        if found.is_some() && self.settings.order == ListOrder::Ascending {
            self.lane.install(|| lists.sort());
        }
        let pair = &mut self.pairs[at];
        pair.lists = lists;
        pair.current = matches!(found, Some(Ok(())));
        found.transpose().map(|found| found.is_some())
    }

    /// Neighbours of every target, or None when the CPU lane has to count.
    pub(crate) fn count_on_gpu(
        &self,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Option<Vec<u32>> {
        let side = self.gpu_for_lists()?;
        let counted = side.attempt(|state| {
            state.sort(self)?;
            let Some(pair) = state.pair(targets.0, sources.0) else {
                return Ok(None);
            };
            let _span = tracing::debug_span!("gpu.count").entered();
            let counts = state
                .lane
                .count(pair, gpu::ListKind::Full, self.settings.strategy)?;
            Ok(Some(counts))
        });
        counted.flatten()
    }
}

/// Why lists did not arrive.
enum Received {
    Gpu(gpu::Error),
    Cpu(nearfield_cpu::Error),
}

impl From<nearfield_cpu::Error> for Received {
    fn from(error: nearfield_cpu::Error) -> Self {
        Self::Cpu(error)
    }
}

impl<K: PairKernel> Traversal<'_, K> {
    /// Evaluates the kernel on the GPU; gives `output` back when the CPU lane has to.
    pub(crate) fn run_on_gpu<'o>(
        &self,
        output: Output<'o, K::Output>,
    ) -> Result<Option<Output<'o, K::Output>>, Error> {
        let engine = self.engine;
        let Some(side) = engine.gpu_for_lists() else {
            return Ok(Some(output));
        };
        let (targets, sources) = (engine.points(self.targets)?, engine.points(self.sources)?);
        self.fields.check::<K>(targets, sources)?;
        let (Output::Write(values) | Output::Combine(values)) = &output;
        if values.len() != targets {
            // The CPU lane says what is wrong.
            return Ok(Some(output));
        }
        // A kernel without CUDA text is the caller's mistake, not the GPU's.
        let (program, uniforms) = PairProgram::of(self.kernel).map_err(Error::Gpu)?;
        let of_targets = interleaved(self.fields.targets, targets, K::Target::COUNT);
        let of_sources = interleaved(self.fields.sources, sources, K::Source::COUNT);
        let mut results = vec![0.0f32; targets * K::Output::COUNT];
        let mut refused = None;
        let done = side.attempt(|state| {
            state.sort(engine)?;
            let mut scratch = std::mem::take(&mut state.scratch);
            let Some(pair) = state.pair(self.targets.0, self.sources.0) else {
                return Ok(());
            };
            let fields = PairFields {
                targets: &of_targets,
                sources: &of_sources,
            };
            let kernel = std::any::type_name::<K>();
            let _span = tracing::debug_span!("gpu.evaluate", targets, kernel).entered();
            let evaluated = state.lane.evaluate(
                pair,
                (&program, &uniforms),
                fields,
                engine.settings.strategy,
                &mut results,
                &mut scratch,
            );
            state.scratch = scratch;
            match evaluated {
                Err(error @ gpu::Error::Compile { .. }) => {
                    refused = Some(error);
                    Ok(())
                }
                evaluated => evaluated,
            }
        });
        if let Some(error) = refused {
            return Err(Error::Gpu(error));
        }
        if done.is_none() {
            return Ok(Some(output));
        }
        deliver::<K>(&results, output);
        Ok(None)
    }
}

/// Results of the device into the caller's values.
fn deliver<K: PairKernel>(results: &[f32], output: Output<'_, K::Output>) {
    let channels = K::Output::COUNT;
    let result = |target: usize, k: usize| results[target * channels + k];
    match output {
        Output::Write(values) => {
            for (target, value) in values.iter_mut().enumerate() {
                *value = K::Output::read(|k| result(target, k));
            }
        }
        Output::Combine(values) => {
            for (target, value) in values.iter_mut().enumerate() {
                let mut before = [0.0; 16];
                value.write(|k, channel| before[k] = channel);
                *value = K::Output::read(|k| K::REDUCE.combine(before[k], result(target, k)));
            }
        }
    }
}

/// The channels of every point side by side; copied only when they come from several fields.
fn interleaved<'a>(fields: &[Field<'a>], points: usize, channels: usize) -> Cow<'a, [f32]> {
    if let [field] = fields {
        return Cow::Borrowed(field.values());
    }
    let mut values = vec![0.0; points * channels];
    let mut first = 0;
    for field in fields {
        let width = field.channels();
        for (to, from) in values
            .chunks_mut(channels)
            .zip(field.values().chunks(width))
        {
            to[first..first + width].copy_from_slice(from);
        }
        first += width;
    }
    Cow::Owned(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_interleaved_in_their_order() {
        let velocity = [[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let mass = [7.0f32, 8.0];
        let fields = [Field::from(&velocity), Field::from(&mass)];
        let found = interleaved(&fields, 2, 4);
        assert_eq!(*found, [1.0, 2.0, 3.0, 7.0, 4.0, 5.0, 6.0, 8.0]);
        assert!(matches!(interleaved(&fields[..1], 2, 3), Cow::Borrowed(_)));
        assert!(interleaved(&[], 2, 0).is_empty());
    }
}
