//! A step of a work on both lanes, whatever the work is.

use super::{
    Clock, HybridSide, OF_CPU, Work,
    emulated::EmulatedStages,
    is_taken,
    plan::{Planned, WorkState},
    times::{LaneTimes, Measured, step_times},
    trace,
};
use crate::{
    Error,
    gpu::{GpuDone, GpuPart},
};
use nearfield_cpu::{CpuLane, Spent};
use nearfield_sched::{Fault, Lane, Progress, Stages, StepTimes};
use std::{
    sync::{Mutex, PoisonError, atomic::AtomicBool},
    time::{Duration, Instant},
};

/// The device's part as one piece of work, which a real GPU divides and overlaps itself, by streams.
pub(super) struct Whole<F>(Mutex<Option<F>>);

impl<F: FnOnce() -> Result<(), Option<Error>> + Send> Whole<F> {
    pub(super) fn new(work: F) -> Self {
        Self(Mutex::new(Some(work)))
    }
}

impl<F: FnOnce() -> Result<(), Option<Error>> + Send> Stages for Whole<F> {
    type Error = Option<Error>;

    fn upload(&self, _: usize) -> Result<(), Self::Error> {
        Ok(())
    }

    fn compute(&self, _: usize, _: usize) -> Result<(), Self::Error> {
        let work = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        work.map_or(Ok(()), |work| work())
    }

    fn download(&self, _: usize, _: usize) -> Result<(), Self::Error> {
        Ok(())
    }
}

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
    /// When both lanes began, planning done.
    pub(super) fn began(&self) -> Instant {
        self.clock.begin + Duration::from_secs_f64(self.planning_ms / 1e3)
    }

    /// The emulated device's part: `compute` and `download` are given a subregion and a buffer. A step
    /// that fails on the virtual clock fails in the middle of its subregions.
    pub(super) fn on_emulated(
        &self,
        planned: &Planned,
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
        on_both(self.hybrid, &subregions, &stages, cpu)
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

/// How both lanes fared.
#[derive(Debug, Default)]
pub(super) struct Both {
    pub(super) cpu_ms: f64,
    pub(super) gpu_ms: f64,
    /// The device has failed, and none of its results count.
    pub(super) failed: bool,
}

/// Takes the device through `subregions` while `cpu` runs here. What goes wrong on the CPU lane, or
/// is wrong with what the caller gave, is an error; a device that fails is not.
pub(super) fn on_both<S: Stages<Error = Option<Error>>>(
    hybrid: &HybridSide,
    subregions: &[usize],
    device: &S,
    cpu: impl FnOnce() -> Result<(), Error>,
) -> Result<Both, Error> {
    let (done, progress): (_, Progress<_>) = hybrid.crew.run(subregions, device, cpu);
    done?;
    let ends = progress.spans.iter().map(|spans| {
        let ends = [spans.upload, spans.compute, spans.download].map(|span| span.end_ms);
        ends.into_iter().fold(0.0, f64::max)
    });
    let both = Both {
        cpu_ms: progress.cpu.ms(),
        gpu_ms: ends.fold(0.0, f64::max),
        failed: progress.fault.is_some(),
    };
    match progress.fault {
        Some(Some(error)) => Err(error),
        _ => Ok(both),
    }
}

/// Targets that the CPU lane has taken, and all.
pub(super) fn targets_of_cpu(taken: &[AtomicBool]) -> [usize; 2] {
    let of_cpu = taken.iter().filter(|taken| is_taken(taken)).count();
    [of_cpu, taken.len()]
}

/// What a step has shown, for the controller and the report.
pub(super) struct Seen<'a> {
    pub(super) both: &'a Both,
    pub(super) spent: &'a Spent,
    /// Targets of the CPU lane, and all.
    pub(super) targets: [usize; 2],
    /// What the GPU said; None where there is none.
    pub(super) gpu: Option<&'a GpuDone>,
    /// What the CPU lane then did of the device's part, milliseconds.
    pub(super) recovery_ms: f64,
}

/// Lets the controller of a work learn from a step of both lanes.
pub(super) fn learn(
    lane: &CpuLane,
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
    } = *seen.both;
    let total_ms = step.clock.ms();
    let [of_cpu, all] = seen.targets;
    // What comes before both lanes begin and after both have ended is part of either's time.
    let common = (total_ms - step.planning_ms - seen.recovery_ms - cpu_ms.max(gpu_ms)).max(0.0);
    let times = match step.emulated.clone() {
        Some(times) => times,
        None => {
            let subregions = planned.subregions();
            let (cpu_ms, gpu_ms) = (cpu_ms + common, gpu_ms + common);
            let threads = lane.threads_beside_another();
            let cpu = LaneTimes::of_cpu(cpu_ms, seen.spent, threads, subregions);
            let gpu = match seen.gpu {
                Some(done) => {
                    let stages = planned.plan().stages().iter();
                    let loads: Vec<_> = stages.map(|stage| stage.gpu.load).collect();
                    LaneTimes::of_device(gpu_ms, &done.pieces, &done.bounds).told_apart(
                        &loads,
                        done.per_cell,
                        planned.cells_of_brick(),
                    )
                }
                None => LaneTimes::whole(gpu_ms),
            };
            let fault = failed.then_some(Fault::Lost);
            step_times(
                planned,
                (&cpu, &gpu),
                state.setups(),
                seen.recovery_ms,
                fault,
            )
        }
    };
    trace::subregions(planned, &times, seen.both, seen.gpu, step.began());
    let setups = times.setup.map(|setup| setup.ms());
    let measured = Measured {
        share: planned.plan().share(),
        points: match failed {
            true => [all, 0],
            false => [of_cpu, all - of_cpu],
        },
        lane_ms: [times.cpu_ms(), times.gpu_ms()],
        total_ms: total_ms - step.planning_ms,
        planning_ms: step.planning_ms,
    };
    state.set_up(setups);
    state.learn(&times, measured)
}

/// The same for a step that one lane did alone.
pub(super) fn learn_alone(
    state: &mut WorkState,
    lane: Lane,
    targets: usize,
    (total_ms, planning_ms): (f64, f64),
    emulated: Option<StepTimes>,
) -> Result<(), Error> {
    let Some(planned) = state.planned() else {
        return Ok(());
    };
    trace::alone(planned);
    let took = LaneTimes::whole(total_ms - planning_ms);
    let none = LaneTimes::default();
    let times = match (emulated, lane) {
        (Some(times), _) => times,
        (None, Lane::Cpu) => step_times(planned, (&took, &none), state.setups(), 0.0, None),
        (None, Lane::Gpu) => step_times(planned, (&none, &took), state.setups(), 0.0, None),
    };
    let points = match lane {
        Lane::Cpu => [targets, 0],
        Lane::Gpu => [0, targets],
    };
    let measured = Measured {
        share: planned.plan().share(),
        points,
        lane_ms: [times.cpu_ms(), times.gpu_ms()],
        total_ms: total_ms - planning_ms,
        planning_ms,
    };
    state.learn(&times, measured)
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
