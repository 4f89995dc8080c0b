//! A step of a work on both backends, whatever the work is.

use super::{
    Clock, HybridSide, OF_CPU, Work,
    emulated::{EmulatedDevice, EmulatedStages},
    plan::{Planned, WorkState},
    times::{BackendTimes, Measured, step_times},
    trace::{self, Origin},
};
use crate::{
    Error,
    backend::gpu::{GpuDone, GpuPart},
};
use nearfield_balance::{Backend, Fault, Progress, StepTimes};
use nearfield_cpu::{CpuBackend, Spent};
use std::time::{Duration, Instant};

/// A step that is under way.
pub(super) struct Step<'a> {
    pub(super) hybrid: &'a HybridSide,
    pub(super) work: Work,
    pub(super) clock: Clock,
    /// Milliseconds that planning took before.
    pub(super) planning_ms: f64,
    /// What it takes on the virtual clock of an emulated device.
    pub(super) emulated: Option<StepTimes>,
}

impl Step<'_> {
    /// When both backends began, planning done.
    pub(super) fn began(&self) -> Instant {
        self.clock.begin + Duration::from_secs_f64(self.planning_ms / 1e3)
    }

    /// The part of an emulated device, which its crew takes through its stages: `compute` and
    /// `download` are given a subregion and a buffer. A step that fails on the virtual clock fails in
    /// the middle of its subregions.
    pub(super) fn on_emulated(
        &self,
        (device, planned): (&EmulatedDevice, &Planned),
        compute: impl Fn(usize, usize) -> Result<(), Error> + Sync,
        download: impl Fn(usize, usize) -> Result<(), Error> + Sync,
        cpu: impl FnOnce() -> Result<(), Error>,
    ) -> Result<Both, Error> {
        let subregions = subregions_of_device(planned);
        let stages = EmulatedStages {
            compute,
            download,
            fault: self.emulated.as_ref().and_then(|times| times.fault),
            fails_at: subregions[subregions.len() / 2],
        };
        let run = device.crew().run(&subregions, &stages, cpu);
        let (done, progress): (_, Progress<_>) = run.map_err(Error::Schedule)?;
        done?;
        let ends = progress.spans.iter().map(|spans| {
            let ends = [spans.upload, spans.compute, spans.download].map(|span| span.end_ms);
            ends.into_iter().fold(0.0, f64::max)
        });
        let both = Both {
            began: self.began(),
            cpu_ms: progress.cpu.ms(),
            gpu_ms: ends.fold(0.0, f64::max),
            failed: progress.fault.is_some(),
        };
        match progress.fault {
            Some(Some(error)) => Err(error),
            _ => Ok(both),
        }
    }
}

/// What a real GPU is to do of a work.
pub(super) fn gpu_part(planned: &Planned, work: Work) -> GpuPart<'_> {
    GpuPart {
        targets: work.targets,
        sources: work.sources,
        version: planned.version(),
        bricks: planned.parts(),
        parts: planned.subregions(),
        lattice: planned.lattice(),
    }
}

/// How both backends fared.
#[derive(Debug)]
pub(super) struct Both {
    /// When both began.
    pub(super) began: Instant,
    pub(super) cpu_ms: f64,
    pub(super) gpu_ms: f64,
    /// The device has failed, and none of its results count.
    pub(super) failed: bool,
}

/// From `began`, when both backends begin, drives a real GPU, which divides its part and overlaps it itself, by
/// streams, while the CPU backend does `cpu`. What goes wrong on the CPU backend, or is wrong with what the caller
/// gave, is an error; a GPU that fails, which is an error of None, is not.
pub(super) fn on_both(
    (backend, began): (&CpuBackend, Instant),
    gpu: impl FnOnce() -> Result<(), Option<Error>>,
    cpu: impl FnOnce() -> Result<(), Error> + Send,
) -> Result<Both, Error> {
    let ms = || began.elapsed().as_secs_f64() * 1e3;
    let ((driven, gpu_ms), (done, cpu_ms)) = backend.beside(|| (gpu(), ms()), || (cpu(), ms()));
    done?;
    match driven {
        Err(Some(error)) => Err(error),
        driven => Ok(Both {
            began,
            cpu_ms,
            gpu_ms,
            failed: driven.is_err(),
        }),
    }
}

/// What a step has shown, for the controller and the report.
pub(super) struct Seen<'a> {
    pub(super) both: &'a Both,
    pub(super) spent: &'a Spent,
    /// All targets.
    pub(super) targets: usize,
    /// What the GPU said; None where there is none.
    pub(super) gpu: Option<&'a GpuDone>,
    /// Whether a GPU that has failed cannot work again.
    pub(super) lost: bool,
    /// What the CPU backend then did of the device's part, milliseconds.
    pub(super) recovery_ms: f64,
    /// Whether a backend took memory, so that its time says little.
    pub(super) grew: bool,
}

/// Lets the controller of a work learn from a step of both backends.
pub(super) fn learn(
    backend: &CpuBackend,
    state: &mut WorkState,
    step: &Step<'_>,
    seen: Seen<'_>,
) -> Result<(), Error> {
    let Some(planned) = state.planned() else {
        return Ok(());
    };
    let Both {
        cpu_ms,
        gpu_ms,
        failed,
        ..
    } = *seen.both;
    let total_ms = step.clock.ms();
    let (of_cpu, all) = (seen.spent.targets() as usize, seen.targets);
    // What comes before both backends begin and after both have ended is part of either's time.
    let common = (total_ms - step.planning_ms - seen.recovery_ms - cpu_ms.max(gpu_ms)).max(0.0);
    let times = match step.emulated.clone() {
        Some(times) => times,
        None => {
            let subregions = planned.subregions();
            let (cpu_ms, gpu_ms) = (cpu_ms + common, gpu_ms + common);
            let threads = backend.threads_beside();
            let cpu = BackendTimes::of_cpu(cpu_ms, seen.spent, threads, subregions);
            let gpu = match seen.gpu {
                Some(done) => {
                    let stages = planned.plan().stages().iter();
                    let loads: Vec<_> = stages.map(|stage| stage.gpu.load).collect();
                    BackendTimes::of_device(gpu_ms, &done.pieces, &done.bounds).told_apart(
                        &loads,
                        done.per_cell,
                        planned.cells_of_brick(),
                    )
                }
                None => BackendTimes::whole(gpu_ms),
            };
            let fault = failed.then_some(if seen.lost {
                Fault::Lost
            } else {
                Fault::OutOfMemory
            });
            step_times(
                planned,
                (&cpu, &gpu),
                state.setups(),
                seen.recovery_ms,
                fault,
            )
        }
    };
    let origin = Origin::before_now(seen.both.began.elapsed(), step.emulated.is_some());
    trace::subregions(planned, &times, origin, seen.gpu.map(|done| (done, gpu_ms)));
    let setups = times.setup.map(|setup| setup.ms());
    let measured = Measured {
        share: planned.plan().share(),
        points: match failed {
            true => [all, 0],
            false => [of_cpu, all.saturating_sub(of_cpu)],
        },
        backend_ms: [times.cpu_ms(), times.gpu_ms()],
        total_ms: total_ms - step.planning_ms,
        planning_ms: step.planning_ms,
    };
    let real = step.emulated.is_none();
    state.note(measured);
    if seen.grew && real {
        return Ok(());
    }
    state.set_up(setups);
    match state.asks(times.total_ms(), times.fault.is_some(), real) {
        true => state.learn(&times),
        false => Ok(()),
    }
}

/// The same for a step that one backend did alone.
pub(super) fn learn_alone(
    state: &mut WorkState,
    backend: Backend,
    targets: usize,
    (total_ms, planning_ms): (f64, f64),
    emulated: Option<StepTimes>,
) -> Result<(), Error> {
    let Some(planned) = state.planned() else {
        return Ok(());
    };
    let took_ms = total_ms - planning_ms;
    match &emulated {
        Some(times) => {
            let took = Duration::from_secs_f64(took_ms.max(0.0) / 1e3);
            trace::subregions(planned, times, Origin::before_now(took, true), None);
        }
        None => trace::alone(planned),
    }
    let backend = backend as usize;
    let mut measured = Measured {
        share: planned.plan().share(),
        points: [0; 2],
        backend_ms: [0.0; 2],
        total_ms: took_ms,
        planning_ms,
    };
    measured.points[backend] = targets;
    let all_ms = match &emulated {
        Some(times) => {
            measured.backend_ms = [times.cpu_ms(), times.gpu_ms()];
            times.total_ms()
        }
        None => {
            measured.backend_ms[backend] = took_ms;
            took_ms
        }
    };
    state.note(measured);
    let failed = emulated.as_ref().is_some_and(|times| times.fault.is_some());
    if !state.asks(all_ms, failed, emulated.is_none()) {
        return Ok(());
    }
    let times = match (emulated, state.planned()) {
        (Some(times), _) => times,
        (None, Some(planned)) => {
            let mut backends = [BackendTimes::default(), BackendTimes::default()];
            backends[backend] = BackendTimes::whole(took_ms);
            // All of it goes with the work: what comes before the subregions of a backend alone is not what
            // does beside the other one.
            step_times(planned, (&backends[0], &backends[1]), [0.0; 2], 0.0, None)
        }
        (None, None) => return Ok(()),
    };
    state.learn(&times)
}

/// Subregions that the device has bricks of: those of the map, and the first, to which everything
/// outside belongs.
pub(super) fn subregions_of_device(planned: &Planned) -> Vec<usize> {
    let mut found = vec![false; planned.subregions().max(1)];
    found[0] = true;
    for &part in planned.parts().parts() {
        if part & OF_CPU == 0 {
            found[usize::from(part)] = true;
        }
    }
    (0..found.len()).filter(|&s| found[s]).collect()
}
