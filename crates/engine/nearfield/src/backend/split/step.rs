//! A step of an engine's job: which backends have work in it, and what is learnt from its times.
//!
//! [`EngineStep`] is the part that lists and values have in common. It asks the device whether it
//! is ready, makes a plan if there is none, and checks that the device has all positions. If any of
//! that fails the CPU backend does the job, and the step says why.
//!
//! Times of a step count for both backends from the moment at which its positions began to be
//! placed, because placing is work that the device's part needs.
//!
//! # From a step to a lesson
//!
//! | step | report | controller |
//! | --- | --- | --- |
//! | both backends, nothing special | times of both | learns, unless it is [calm](super::plan) |
//! | one backend, as planned | its time | learns |
//! | memory was taken | times of both | not asked |
//! | too little room, or the device alone failed | all as the CPU backend's | not asked |
//! | device not ready, in use or behind | nothing new | not asked |
//! | fault in a step of both | times, and points of the CPU backend alone | learns the fault |
//!
//! On a virtual clock the times of both backends are the clock's, and steps that took memory teach
//! too: their times do not contain it.
//!
//! Time before both begin and after both have ended (placing, dividing, joining) counts for each of
//! them. It does not favour one, and a step is as long as the slower backend and this time.

use super::{
    super::{
        DeviceError, Fault, Job, StepInput,
        accelerator::{Accelerator, is_complete},
        support::Backend as Kind,
    },
    done::GpuDone,
    plan::JobState,
    planned::BrickPlan,
    protocol::{Backends, Outcome, milliseconds},
    shared::{Shared, Split},
    sorted::{PartOfSet, have_grown},
    times::{BackendTimes, StepMeasurement, step_times},
    trace::{self, Origin},
};
use crate::Error;
use nearfield_balance::{Backend, DeviceFault, StepTimes};
use nearfield_cpu::{ShareOfLists, Spent};
use std::{
    collections::HashMap,
    sync::{MutexGuard, atomic::AtomicBool},
    time::{Duration, Instant},
};

/// A job of an engine that is about to be done.
pub(super) struct EngineStep<'s> {
    pub(super) input: &'s StepInput<'s>,
    pub(super) device: &'s dyn Accelerator,
    pub(super) job: Job,
    split: &'s Split,
    /// None if the device cannot take part.
    pub(super) shared: Option<MutexGuard<'s, Shared>>,
    timed: StepTiming,
    /// Why the device does not take part, though it might have been planned to.
    fault: Option<Fault>,
}

/// Input of both parts of a step.
pub(super) struct DividedStep<'a> {
    pub(super) planned: &'a BrickPlan,
    /// Neighbours that the CPU backend and the device are expected to find.
    pub(super) expected: [usize; 2],
    pub(super) taken: &'a [AtomicBool],
    pub(super) spent: &'a Spent,
    pub(super) lists: &'a mut ShareOfLists,
    pub(super) sorted: &'a mut HashMap<usize, PartOfSet>,
}

impl<'s> EngineStep<'s> {
    /// Begins a step of a job, which gets a device that is ready and the state that two backends
    /// share, unless another job has either. Otherwise the CPU backend does the job.
    pub(super) fn begin(
        device: &'s dyn Accelerator,
        split: &'s Split,
        input: &'s StepInput<'s>,
        job: Job,
    ) -> Self {
        let mut fault = device.ready().err();
        let shared = fault.is_none().then(|| split.try_lock()).flatten();
        if shared.is_none() {
            fault = fault.or(Some(Fault::Busy));
        }
        Self {
            input,
            device,
            job,
            split,
            shared,
            timed: StepTiming {
                clock: StepClock::start(Some(split)),
                planning_ms: 0.0,
                virtual_times: None,
            },
            fault,
        }
    }

    /// The backends that work in this step. A plan is made if there is none. The device cannot
    /// work on sets that it does not have; it gets them at the next update.
    pub(super) fn plan(&mut self) -> Result<Backends, Error> {
        if self.fault.is_some() {
            return Ok(Backends::Cpu);
        }
        let (input, job) = (self.input, self.job);
        let mut backends = Backends::Device;
        if let Some(shared) = self.shared.as_deref_mut() {
            let settings = &self.split.settings;
            let state = shared.state_of(job, settings.policy)?;
            if state.is_stale(input.points_of(job), settings.deterministic) {
                let traffic = self.device.traffic(job.kind);
                state.plan_for(input.pair(job)?, settings, traffic)?;
            }
            backends = state.backends();
            // As long as both backends work, positions are checked and copied by the same workers
            // too.
            let real = self.device.backend() == Kind::Gpu;
            input.cpu.stay_beside(backends == Backends::Both && real);
        }
        self.timed.planning_ms = self.timed.clock.since_begin_ms();
        if backends != Backends::Cpu && !is_complete(self.device, input) {
            self.fault = Some(Fault::Behind);
            return Ok(Backends::Cpu);
        }
        let planned = self.state().and_then(|state| state.planned());
        self.timed.virtual_times = planned.and_then(|plan| self.device.virtual_times(plan));
        Ok(backends)
    }

    /// The job's memory, where two backends share it.
    fn state(&self) -> Option<&JobState> {
        self.shared.as_deref()?.jobs.get(&self.job)
    }

    /// Begins a step of both backends; no target is taken yet.
    ///
    /// Cost: clears one mark per target, unless the last step has left none.
    pub(super) fn divide(&mut self, targets: usize) -> Result<DividedStep<'_>, DeviceError> {
        let job = self.job;
        if let Some(shared) = self.shared.as_deref_mut() {
            shared.clear(targets).map_err(Error::from)?;
        }
        // A step is planned before it is divided.
        self.divided(job).ok_or(DeviceError::Fault(Fault::Behind))
    }

    /// A step of both backends that was begun.
    pub(super) fn begun(&mut self) -> Option<DividedStep<'_>> {
        self.divided(self.job)
    }

    /// The plan of a job, with the memory that a step of both backends uses.
    fn divided(&mut self, job: Job) -> Option<DividedStep<'_>> {
        let Shared {
            jobs,
            taken,
            spent,
            lists,
            sorted,
            ..
        } = self.shared.as_deref_mut()?;
        let state = jobs.get(&job)?;
        Some(DividedStep {
            planned: state.planned()?,
            expected: state.expected_pairs(),
            taken,
            spent,
            lists,
            sorted,
        })
    }

    /// Takes the number of neighbours that each backend has found.
    pub(super) fn found(&mut self, pairs: [u64; 2]) {
        let job = self.job;
        let state = self.shared.as_deref_mut();
        if let Some(state) = state.and_then(|shared| shared.jobs.get_mut(&job)) {
            state.found(pairs);
        }
    }

    /// Lets the job's controller learn from a step that was done as planned.
    pub(super) fn learn(&mut self, outcome: &Outcome, done: &GpuDone) -> Result<(), Error> {
        if self.fault.is_some() {
            return Ok(());
        }
        let (input, job) = (self.input, self.job);
        let Some(shared) = self.shared.as_deref_mut() else {
            return Ok(());
        };
        // Memory that a device alone has taken is not the next shared step's.
        let grew = self.device.took_memory() | have_grown(&mut shared.sorted);
        let grew = grew && outcome.backends == Backends::Both;
        let Some(state) = shared.jobs.get_mut(&job) else {
            return Ok(());
        };
        let seen = StepObservations {
            targets: input.points_of(job)[0],
            spent: &shared.spent,
            threads: input.cpu.threads_beside(),
            done,
            lost: self.device.lost(),
            // A GPU that another job was using has shown nothing of how fast it is.
            grew: grew || outcome.fault == Some(Fault::Busy),
        };
        learn(state, &self.timed, outcome, seen)
    }

    /// Why the CPU backend did the whole job though the device had a part in it.
    pub(super) fn instead(&self, outcome: &Outcome) -> Option<String> {
        let no_room = || "more neighbours were found than there was room for".to_owned();
        let fault = self.fault.as_ref().or(outcome.fault.as_ref());
        fault
            .map(|fault| fault.to_string())
            .or_else(|| outcome.no_room.then(no_room))
    }
}

/// A clock that begins with the positions' placing.
#[derive(Debug)]
pub(crate) struct StepClock {
    begin: Instant,
    before: Duration,
}

impl StepClock {
    pub(crate) fn start(split: Option<&Split>) -> Self {
        Self {
            begin: Instant::now(),
            before: split.map_or(Duration::ZERO, Split::take_placing),
        }
    }

    /// Milliseconds since the job began, placing left out.
    pub(crate) fn since_begin_ms(&self) -> f64 {
        milliseconds(self.begin.elapsed())
    }

    /// Milliseconds of the step so far.
    fn ms(&self) -> f64 {
        milliseconds(self.begin.elapsed() + self.before)
    }
}

/// The clock of a step, and times that are not those of its backends.
#[derive(Debug)]
pub(crate) struct StepTiming {
    pub(crate) clock: StepClock,
    /// Milliseconds that planning took before both backends began.
    pub(crate) planning_ms: f64,
    /// Times of the step on the virtual clock of an emulated device.
    pub(crate) virtual_times: Option<StepTimes>,
}

/// What was observed of a step, in addition to its outcome.
pub(crate) struct StepObservations<'a> {
    /// All targets.
    pub(crate) targets: usize,
    /// Time that workers spent on the CPU backend's part, and their number.
    pub(crate) spent: &'a Spent,
    pub(crate) threads: usize,
    /// Report of the device on its part.
    pub(crate) done: &'a GpuDone,
    /// Whether a device that has failed cannot work again.
    pub(crate) lost: bool,
    /// Whether a backend took memory, so that its time says little.
    pub(crate) grew: bool,
}

/// Lets the controller of a job learn from a step.
pub(crate) fn learn(
    state: &mut JobState,
    timed: &StepTiming,
    outcome: &Outcome,
    seen: StepObservations<'_>,
) -> Result<(), Error> {
    let done_again = outcome.no_room || (outcome.failed() && outcome.backends != Backends::Both);
    if done_again && timed.virtual_times.is_none() {
        // A step that had to be done twice says little.
        state.note(StepMeasurement::by_cpu(seen.targets, timed.clock.ms()));
        return Ok(());
    }
    if outcome.backends == Backends::Both {
        learn_of_both(state, timed, outcome, &seen)
    } else {
        learn_of_one(state, timed, outcome, &seen)
    }
}

/// Lets the controller learn from a step of both backends. A step in which memory was taken is
/// noted and not learnt from.
fn learn_of_both(
    state: &mut JobState,
    timed: &StepTiming,
    outcome: &Outcome,
    seen: &StepObservations<'_>,
) -> Result<(), Error> {
    let Some(planned) = state.planned() else {
        return Ok(());
    };
    let total_ms = timed.clock.ms();
    let (of_cpu, all) = (seen.spent.targets() as usize, seen.targets);
    let real = timed.virtual_times.is_none();
    let times = match timed.virtual_times.clone() {
        Some(times) => times,
        None => times_of_both(state, timed, outcome, seen, total_ms),
    };
    let origin = Origin::before_now(outcome.began.elapsed(), !real);
    let told = real.then_some((seen.done, outcome.device_ms));
    trace::subregions(planned, &times, origin, told);
    let setups = times.setup.map(|setup| setup.ms());
    let measured = StepMeasurement {
        share: planned.plan().share(),
        points: if outcome.failed() {
            [all, 0]
        } else {
            [of_cpu, all.saturating_sub(of_cpu)]
        },
        backend_ms: [times.cpu_ms(), times.gpu_ms()],
        total_ms: total_ms - timed.planning_ms,
        planning_ms: timed.planning_ms,
    };
    state.note(measured);
    if seen.grew && real {
        return Ok(());
    }
    state.set_up(setups);
    if state.asks(times.total_ms(), times.fault.is_some(), real) {
        state.learn(&times)?;
    }
    Ok(())
}

/// Times of a step of both backends on a real clock, for the controller.
fn times_of_both(
    state: &JobState,
    timed: &StepTiming,
    outcome: &Outcome,
    seen: &StepObservations<'_>,
    total_ms: f64,
) -> StepTimes {
    let Some(planned) = state.planned() else {
        return StepTimes::default();
    };
    let (cpu_ms, device_ms) = (outcome.cpu_ms, outcome.device_ms);
    // The time before both backends begin and after both have ended counts for each of them.
    let both_ms = timed.planning_ms + outcome.recovery_ms + cpu_ms.max(device_ms);
    let common = (total_ms - both_ms).max(0.0);
    let (cpu_ms, device_ms) = (cpu_ms + common, device_ms + common);
    let cpu = BackendTimes::of_cpu(cpu_ms, seen.spent, seen.threads, planned.subregions());
    let stages = planned.plan().stages().iter();
    let loads: Vec<_> = stages.map(|stage| stage.gpu.load).collect();
    let done = seen.done;
    let device = BackendTimes::of_device(device_ms, &done.pieces, &done.bounds).told_apart(
        &loads,
        done.per_cell,
        planned.cells_of_brick(),
    );
    let fault = outcome.failed().then_some(if seen.lost {
        DeviceFault::Lost
    } else {
        DeviceFault::OutOfMemory
    });
    let recovery_ms = outcome.recovery_ms;
    step_times(planned, (&cpu, &device), state.setups(), recovery_ms, fault)
}

/// The same for a step that one backend did alone.
fn learn_of_one(
    state: &mut JobState,
    timed: &StepTiming,
    outcome: &Outcome,
    seen: &StepObservations<'_>,
) -> Result<(), Error> {
    let Some(planned) = state.planned() else {
        return Ok(());
    };
    let took_ms = timed.clock.ms() - timed.planning_ms;
    let virtual_times = timed.virtual_times.clone();
    match &virtual_times {
        Some(times) => {
            let took = Duration::from_secs_f64(took_ms.max(0.0) / 1e3);
            trace::subregions(planned, times, Origin::before_now(took, true), None);
        }
        None => trace::alone(planned),
    }
    let backend = if outcome.backends == Backends::Device {
        Backend::Gpu
    } else {
        Backend::Cpu
    } as usize;
    let worked = if outcome.failed() { 0 } else { backend };
    let mut measured = StepMeasurement {
        share: planned.plan().share(),
        points: [0; 2],
        backend_ms: [0.0; 2],
        total_ms: took_ms,
        planning_ms: timed.planning_ms,
    };
    measured.points[worked] = seen.targets;
    let all_ms = match &virtual_times {
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
    if !state.asks(all_ms, outcome.failed(), virtual_times.is_none()) {
        return Ok(());
    }
    let times = match (virtual_times, state.planned()) {
        (Some(times), _) => times,
        (None, Some(planned)) => {
            let mut backends = [BackendTimes::default(), BackendTimes::default()];
            backends[backend] = BackendTimes::whole(took_ms);
            // All of it goes with the work: a backend alone prepares other things before its
            // subregions than one that shares the step.
            step_times(planned, (&backends[0], &backends[1]), [0.0; 2], 0.0, None)
        }
        (None, None) => return Ok(()),
    };
    state.learn(&times)
}
