//! One value per target by both backends: counts, and sums of pair kernels.

use super::{
    BUFFERS, Backends, Clock, OF_CPU, Shared, Work, WorkKind,
    emulated::{EmulatedDevice, Marks, pair},
    have_grown, is_taken, locked,
    plan::Planned,
    share,
    step::{Seen, Step, gpu_part, learn, learn_alone, on_both},
};
use crate::{
    Engine, Error, PointSetId,
    backend::gpu::{GpuDone, GpuPart, GpuSide},
};
use nearfield_balance::Backend;
use nearfield_cpu::{CpuBackend, PairOfSets};
use nearfield_grid::{
    memory::{Shortage, filled},
    parallel::PoolLoops,
};
use rayon::prelude::*;
use std::{sync::Mutex, time::Instant};

/// Results that one thread merges at a time.
const MIN_LEN: usize = 1 << 13;

/// What is evaluated.
pub(crate) trait Values: Sync {
    /// Of a target.
    type Value: Copy + Send + Sync;
    /// Of all targets, as the GPU hands them over.
    type OfGpu: Send + Sync;

    /// The pair kernel's name; None for counts.
    fn kernel(&self) -> Option<&'static str>;

    /// A value of no neighbours.
    fn blank(&self) -> Self::Value;

    /// Evaluates on a CPU backend, into the caller's values or, `fresh`, over what is there.
    fn evaluate(
        &self,
        backend: &CpuBackend,
        of: PairOfSets<'_>,
        values: &mut [Self::Value],
        fresh: bool,
    ) -> Result<(), Error>;

    /// Evaluates everything on the GPU alone; false when the CPU backend has to.
    fn evaluate_on_gpu(&self, engine: &Engine, values: &mut [Self::Value]) -> Result<bool, Error>;

    /// Brings what the GPU needs to it, before both backends begin: all workers copy faster than some beside
    /// others that sort.
    fn prepare_on_gpu(&self, engine: &Engine, gpu: &GpuSide);

    /// Evaluates a part on the GPU, both backends having begun then; None when it has failed.
    fn part_on_gpu(
        &self,
        engine: &Engine,
        gpu: &GpuSide,
        part: GpuPart<'_>,
        began: Instant,
    ) -> Result<Option<(Self::OfGpu, GpuDone)>, Error>;

    /// The GPU's value of a target.
    fn of_gpu(&self, found: &Self::OfGpu, target: usize) -> Self::Value;

    /// Takes back what the GPU has handed over.
    fn give_back(&self, gpu: &GpuSide, found: Self::OfGpu);

    /// Puts a device's value where the caller wants it.
    fn put(&self, place: &mut Self::Value, value: Self::Value);
}

impl Engine {
    /// Evaluates on both backends; false when a single backend has to.
    pub(crate) fn values_by_both<V: Values>(
        &self,
        of: &V,
        (targets, sources): (PointSetId, PointSetId),
        values: &mut [V::Value],
    ) -> Result<bool, Error> {
        self.in_place()?;
        let Some((hybrid, gpu)) = self.hybrid_sides() else {
            return Ok(false);
        };
        let Some(mut shared) = hybrid.try_lock() else {
            return Ok(false);
        };
        let shared = &mut *shared;
        let work = Work {
            kind: of.kernel().map_or(WorkKind::Counts, WorkKind::Kernel),
            targets: targets.0,
            sources: sources.0,
        };
        let clock = Clock::start(hybrid);
        let (backends, fits) = self.backends(hybrid, shared, work)?;
        let planning_ms = clock.since_begin_ms();
        let points = values.len();
        let emulated = match fits {
            true => hybrid.virtual_times(shared, work),
            false => None,
        };
        let alone = match (backends, gpu) {
            (Backends::Device, Some(_)) if hybrid.emulated.is_none() => {
                if !of.evaluate_on_gpu(self, values)? {
                    return Ok(false);
                }
                Backend::Gpu
            }
            (Backends::Cpu, _) => {
                let pair = self.pair_of_sets(targets, sources)?;
                of.evaluate(&self.backend, pair, values, false)?;
                Backend::Cpu
            }
            _ => {
                let step = Step {
                    hybrid,
                    work,
                    clock,
                    planning_ms,
                    emulated,
                };
                return self.values_joint(of, &step, gpu, shared, values);
            }
        };
        let took = (clock.ms(), planning_ms);
        if let Some(state) = shared.works.get_mut(&work).filter(|_| fits) {
            learn_alone(state, alone, points, took, emulated)?;
        }
        Ok(true)
    }

    fn values_joint<V: Values>(
        &self,
        of: &V,
        step: &Step<'_>,
        gpu: Option<&GpuSide>,
        shared: &mut Shared,
        values: &mut [V::Value],
    ) -> Result<bool, Error> {
        let Step { hybrid, work, .. } = *step;
        shared.clear(values.len())?;
        let Shared {
            works,
            taken,
            spent,
            sorted,
            unmarked,
            ..
        } = shared;
        let Some(state) = works.get_mut(&work) else {
            return Ok(false);
        };
        let Some(planned) = state.planned() else {
            return Ok(false);
        };
        let on_cpu = |pair: PairOfSets<'_>, parts: (u8, u8), values: &mut [V::Value]| {
            let pair = PairOfSets {
                share: Some(share(planned, (taken, spent), parts)),
                ..pair
            };
            of.evaluate(&self.backend, pair, values, false)
        };
        let mut found = None;
        let emulated;
        let cpu = || {
            let pair = self.sets_of_share((hybrid, sorted), planned, work)?;
            on_cpu(pair, (OF_CPU, u8::MAX), values)
        };
        let (both, theirs) = match (&hybrid.emulated, gpu) {
            (Some(device), _) => {
                emulated = ValuesOnEmulated::new(device, planned, of, work, taken.len())?;
                let compute = |subregion, buffer| emulated.compute(subregion, buffer);
                let download = |subregion, buffer| emulated.download(subregion, buffer);
                let both = step.on_emulated((device, planned), compute, download, cpu)?;
                (both, Some(&emulated))
            }
            (None, Some(gpu)) => {
                of.prepare_on_gpu(self, gpu);
                let (part, began) = (gpu_part(planned, work), Instant::now());
                let drive = || {
                    let evaluated = of.part_on_gpu(self, gpu, part, began).map_err(Some)?;
                    found = Some(evaluated.ok_or(None)?);
                    Ok(())
                };
                (on_both((&self.backend, began), drive, cpu)?, None)
            }
            (None, None) => return Ok(false),
        };
        let mut recovery_ms = 0.0;
        if both.failed {
            let begin = step.clock.ms();
            let pair = self.pair_of_sets(PointSetId(work.targets), PointSetId(work.sources))?;
            on_cpu(pair, (0, OF_CPU - 1), values)?;
            recovery_ms = step.clock.ms() - begin;
        } else {
            let arrived = theirs.map(|device| locked(&device.arrived));
            let value = |target: usize| match (&found, &arrived) {
                (Some((found, _)), _) => of.of_gpu(found, target),
                (None, Some(arrived)) => arrived[target],
                (None, None) => of.blank(),
            };
            let _span = tracing::debug_span!("engine.deliver").entered();
            self.backend.install(|| {
                let places = values.par_iter_mut().zip(&mut taken[..]).enumerate();
                let places = places.with_min_len(MIN_LEN);
                places.run(|(target, (place, taken))| {
                    if !std::mem::take(taken.get_mut()) {
                        of.put(place, value(target));
                    }
                });
            });
            *unmarked = true;
        }
        let (found, done) = found.unzip();
        if let (Some(gpu), Some(found)) = (gpu, found) {
            of.give_back(gpu, found);
        }
        let took_memory = gpu.is_some_and(GpuSide::took_memory);
        // A GPU that another job was using has shown nothing of how fast it is, nor that it is lost.
        let was_busy = both.failed && gpu.is_some_and(|gpu| !gpu.failed());
        let seen = Seen {
            both: &both,
            spent,
            targets: taken.len(),
            gpu: done.as_ref(),
            lost: gpu.is_some_and(GpuSide::lost),
            recovery_ms,
            grew: took_memory | have_grown(sorted) | was_busy,
        };
        learn(&self.backend, state, step, seen)?;
        Ok(true)
    }
}

/// Values of the subregions of an emulated device.
struct ValuesOnEmulated<'a, V: Values> {
    device: &'a EmulatedDevice,
    planned: &'a Planned,
    of: &'a V,
    work: Work,
    /// The device's own memory.
    buffers: [Mutex<Buffer<V::Value>>; BUFFERS],
    arrived: Mutex<Vec<V::Value>>,
}

/// Values of a subregion, in the device's memory.
struct Buffer<T> {
    values: Vec<T>,
    marks: Marks,
}

impl<'a, V: Values> ValuesOnEmulated<'a, V> {
    fn new(
        device: &'a EmulatedDevice,
        planned: &'a Planned,
        of: &'a V,
        work: Work,
        targets: usize,
    ) -> Result<Self, Error> {
        let blank = || filled(targets, of.blank(), "values on the device");
        let buffer = || {
            Ok::<_, Shortage>(Mutex::new(Buffer {
                values: blank()?,
                marks: Marks::new(targets)?,
            }))
        };
        Ok(Self {
            device,
            planned,
            of,
            work,
            buffers: [buffer()?, buffer()?],
            arrived: Mutex::new(blank()?),
        })
    }

    fn compute(&self, subregion: usize, buffer: usize) -> Result<(), Error> {
        let mut buffer = locked(&self.buffers[buffer]);
        let Buffer { values, marks } = &mut *buffer;
        marks.clear();
        let sets = self.device.locked();
        let Some(of) = pair(&sets, self.work.targets, self.work.sources) else {
            return Ok(());
        };
        let part = subregion as u8;
        let of = PairOfSets {
            share: Some(share(
                self.planned,
                (&marks.taken, &marks.spent),
                (part, part),
            )),
            ..of
        };
        self.of.evaluate(self.device.backend(), of, values, true)
    }

    fn download(&self, _: usize, buffer: usize) -> Result<(), Error> {
        let buffer = locked(&self.buffers[buffer]);
        let mut arrived = locked(&self.arrived);
        for (target, taken) in buffer.marks.taken.iter().enumerate() {
            if is_taken(taken) {
                arrived[target] = buffer.values[target];
            }
        }
        Ok(())
    }
}
