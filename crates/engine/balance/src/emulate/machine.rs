//! The times of an emulated machine.
//!
//! Policies are tested on machines that do not exist: a line of text describes the GPU, and a
//! virtual clock gives the times of any plan, with jitter, stalls, changes of speed and faults
//! from a seed. The same seed gives the same
//! run on any computer.
//!
//! # Costs of the backends
//!
//! The CPU backend tests a pair in 0.1 ns (two cores with wide vectors) and prepares a target in
//! the time of 24 pairs. The GPU tests full cells `speed` times as fast; cells of t targets take
//! 1+6/t times as long, because they do not fill its threads. Policies do not know either formula:
//! the rates that they fit, by octave of a brick's occupancy, only come near it, as on a real
//! machine.
//!
//! **Invariant:** random numbers are drawn per step and in a fixed order, so a fault or another
//! plan does not change the noise of later steps.
//!
//! # Faults
//!
//! A lost device fails in the middle of its part: half of the GPU's subregions are done, and the
//! CPU backend does the rest after it has done its own and knows of the fault. Too little memory
//! fails in the same way, in every step whose plan needs more than the device has.

use crate::{
    Backend, Brick, DeviceFault, Durations, EmulatedSpec, FaultAt, Layout, Plan, Span, Stage,
    StepTimes, in_turn, overlapped,
};
use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{Rng, SeedableRng},
};

/// Milliseconds per pair tested on the CPU backend.
const CPU_MS_PER_PAIR: f64 = 1e-7;
/// Pairs that could be tested while the CPU backend prepares one target.
const PAIRS_PER_TARGET: f64 = 24.0;
/// Milliseconds that the CPU backend needs to begin a subregion.
const CPU_MS_PER_SUBREGION: f64 = 0.002;
/// Targets per cell at which the GPU takes twice as long per pair as on full cells.
const HALF_SPEED_TARGETS: f64 = 6.0;

/// A machine on a virtual clock.
///
/// It has no clock of its own: a step's times follow from the plan, and the only state is the
/// number of the step and the changes of speed so far.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The description.
    spec: EmulatedSpec,
    /// Number of the next step.
    step: u64,
    /// Factor of the CPU backend's speed.
    cpu_speed: f64,
    /// Factor of the GPU's speed.
    gpu_speed: f64,
    /// Factor of the CPU backend's time while the GPU works.
    contention: f64,
    /// A stall of the next step.
    stall: Option<(Backend, f64)>,
}

impl Machine {
    /// A machine before its first step.
    pub fn new(spec: EmulatedSpec) -> Self {
        Self {
            spec,
            step: 0,
            cpu_speed: 1.0,
            gpu_speed: 1.0,
            contention: 1.0,
            stall: None,
        }
    }

    /// From the next step on a backend computes `factor` times as fast as it did.
    ///
    /// Factors multiply, so two changes by 2 make 4.
    pub fn change_speed(&mut self, backend: Backend, factor: f64) {
        match backend {
            Backend::Cpu => self.cpu_speed *= factor,
            Backend::Gpu => self.gpu_speed *= factor,
        }
    }

    /// From the next step on the CPU backend takes `factor` times as long in steps in which the GPU
    /// works too, as where both share the memory's bandwidth.
    ///
    /// The effect that makes a backend alone faster than its part of a step of both.
    pub fn set_contention(&mut self, factor: f64) {
        self.contention = factor;
    }

    /// In the next step only, a backend takes `factor` times as long.
    ///
    /// Tests that a policy ignores what happens once.
    pub fn stall_once(&mut self, backend: Backend, factor: f64) {
        self.stall = Some((backend, factor));
    }

    /// Steps done.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// Times of the next step, jitter and faults included.
    ///
    /// Random numbers depend on the seed and the number of the step.
    pub fn step(&mut self, layout: &Layout, plan: &Plan) -> StepTimes {
        let step = self.step;
        self.step += 1;
        // Every step has random numbers of its own, whatever was planned before.
        let mut noise = Noise::new(self.spec.jitter, self.spec.seed, step);
        let stall = self.stall.take();
        let uses_gpu = !plan.load(Backend::Gpu).is_empty();
        let fault = match self.spec.fail {
            Some(FaultAt::Lost(at)) if step >= at && uses_gpu => Some(DeviceFault::Lost),
            Some(FaultAt::OutOfMemory(at)) if step == at && uses_gpu => {
                Some(DeviceFault::OutOfMemory)
            }
            _ if plan.device_bytes() > self.memory() => Some(DeviceFault::OutOfMemory),
            _ => None,
        };
        self.run(layout, plan, &mut noise, stall, fault)
    }

    /// Times of a step at the present speeds without jitter, stalls and faults other than too
    /// little memory. The clock does not advance.
    ///
    /// Tests compare a policy's steps with the best quiet step over all thresholds.
    pub fn quiet(&self, layout: &Layout, plan: &Plan) -> StepTimes {
        let fault = (plan.device_bytes() > self.memory()).then_some(DeviceFault::OutOfMemory);
        self.run(layout, plan, &mut Noise::new(0.0, 0, 0), None, fault)
    }

    /// Bytes of device memory.
    fn memory(&self) -> f64 {
        self.spec.memory_mib as f64 * 1_048_576.0
    }

    /// Times of one step at the present speeds.
    fn run(
        &self,
        layout: &Layout,
        plan: &Plan,
        noise: &mut Noise,
        stall: Option<(Backend, f64)>,
        fault: Option<DeviceFault>,
    ) -> StepTimes {
        let slower = |backend: Backend| match stall {
            Some((stalled, factor)) if stalled == backend => factor,
            _ => 1.0,
        };
        let shared = !plan.load(Backend::Gpu).is_empty() && fault != Some(DeviceFault::Lost);
        let cpu_factor = slower(Backend::Cpu) * noise.factor() / self.cpu_speed
            * if shared { self.contention } else { 1.0 };
        let gpu_factor = slower(Backend::Gpu) * noise.factor() / self.gpu_speed;
        let reached = stages_before_fault(plan, fault);
        let cpu: Vec<f64> = plan
            .stages()
            .iter()
            .map(|stage| {
                cpu_ms(bricks(layout, plan, stage, Backend::Cpu)) * cpu_factor * noise.factor()
            })
            .collect();
        let gpu: Vec<Durations> = plan
            .stages()
            .iter()
            .enumerate()
            .map(|(number, stage)| {
                // All numbers are drawn, so that a fault does not change what follows.
                let durations = self.gpu_durations(layout, plan, stage, gpu_factor, noise);
                if number < reached {
                    durations
                } else {
                    Durations::default()
                }
            })
            .collect();
        let unfinished = &plan.stages()[reached..];
        let rest: f64 = unfinished
            .iter()
            .map(|stage| cpu_ms(bricks(layout, plan, stage, Backend::Gpu)) * cpu_factor)
            .sum();
        let mut times = StepTimes {
            cpu: in_turn(cpu),
            gpu: overlapped(gpu),
            fault,
            ..StepTimes::default()
        };
        if rest > 0.0 {
            // The CPU backend goes on with the rest when it has done its own and knows of the
            // fault.
            let start_ms = times.total_ms();
            times.recovery = Span {
                start_ms,
                end_ms: start_ms + rest,
            };
        }
        times
    }

    /// Durations of a subregion's three stages.
    fn gpu_durations(
        &self,
        layout: &Layout,
        plan: &Plan,
        stage: &Stage,
        factor: f64,
        noise: &mut Noise,
    ) -> Durations {
        let launch = self.spec.launch_us * 1e-3;
        let mut timed = |needed: bool, ms: f64| {
            let factor = noise.factor();
            if needed { (launch + ms) * factor } else { 0.0 }
        };
        let copy = |bytes: f64| bytes / (self.spec.bandwidth * 1e6);
        let pairs: f64 = bricks(layout, plan, stage, Backend::Gpu)
            .map(|brick| {
                let per_cell = f64::from(brick.targets) / f64::from(brick.cells);
                brick.work as f64 * (1.0 + HALF_SPEED_TARGETS / per_cell)
            })
            .sum();
        Durations {
            upload: timed(stage.upload > 0.0, copy(stage.upload)),
            compute: timed(
                !stage.gpu.load.is_empty(),
                pairs * CPU_MS_PER_PAIR / self.spec.speed * factor,
            ),
            download: timed(stage.download > 0.0, copy(stage.download)),
        }
    }
}

/// Subregions that the GPU finishes: half of those it was given when it fails, all without a
/// fault.
fn stages_before_fault(plan: &Plan, fault: Option<DeviceFault>) -> usize {
    match fault {
        None => plan.stages().len(),
        Some(_) => {
            let used = |&(_, stage): &(usize, &Stage)| !stage.gpu.load.is_empty();
            let count = plan.stages().iter().enumerate().filter(used).count();
            let failing = plan.stages().iter().enumerate().filter(used).nth(count / 2);
            failing.map_or(plan.stages().len(), |(number, _)| number)
        }
    }
}

/// The bricks of a backend in a subregion.
fn bricks<'a>(
    layout: &'a Layout,
    plan: &'a Plan,
    stage: &Stage,
    backend: Backend,
) -> impl Iterator<Item = &'a Brick> {
    let part = match backend {
        Backend::Cpu => &stage.cpu,
        Backend::Gpu => &stage.gpu,
    };
    plan.order()[part.bricks.clone()]
        .iter()
        .map(|&brick| &layout.bricks().as_slice()[brick as usize])
}

/// Milliseconds of the CPU backend for bricks of a subregion.
fn cpu_ms<'a>(bricks: impl Iterator<Item = &'a Brick>) -> f64 {
    let mut ms = 0.0;
    let mut any = false;
    for brick in bricks {
        any = true;
        ms += (brick.work as f64 + PAIRS_PER_TARGET * f64::from(brick.targets)) * CPU_MS_PER_PAIR;
    }
    if any { ms + CPU_MS_PER_SUBREGION } else { 0.0 }
}

/// Factors around 1.
///
/// Log-normal, so that durations stay positive and twice as long is as likely as half as long.
struct Noise {
    /// Standard deviation of the logarithm.
    jitter: f64,
    /// The generator of the step.
    random: Xoshiro256PlusPlus,
}

impl Noise {
    /// The noise of one step.
    fn new(jitter: f64, seed: u64, step: u64) -> Self {
        let mix = seed.wrapping_add(step.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Self {
            jitter,
            random: Xoshiro256PlusPlus::seed_from_u64(mix),
        }
    }

    /// exp(jitter · n) with n about standard normal (the sum of twelve even numbers; Irwin–Hall),
    /// cut off at six deviations.
    fn factor(&mut self) -> f64 {
        if self.jitter == 0.0 {
            return 1.0;
        }
        let unit = 1.0 / (1u64 << 53) as f64;
        let sum: f64 = (0..12)
            .map(|_| (self.random.next_u64() >> 11) as f64 * unit)
            .sum();
        (self.jitter * (sum - 6.0)).exp()
    }
}
