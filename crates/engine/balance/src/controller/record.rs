//! A step as policy `model` remembers it.
//!
//! Costs change as more is learnt, and then old steps have to be predicted anew to see how far the
//! model is off. So a record holds the amounts of every stage, not a prediction.
//!
//! Amounts are work by class of occupancy for computing and bytes for copies. Steps in which a
//! backend worked alone are a [`Regime`] of their own, because backends that work together slow
//! each other down, by memory bandwidth and by the core that drives the GPU.
//!
//! **Invariant:** a record can be predicted anew with any costs, and its measured times are never
//! changed.

use super::fit::{Amounts, Cost, Sample};
use crate::{CLASSES, Durations, Plan, Stage, StepTimes, overlapped};

/// Number of the stages of a step.
pub(super) const STAGES: usize = 4;
/// The CPU backend's computing.
pub(super) const CPU: usize = 0;
/// Sources to the GPU.
pub(super) const UPLOAD: usize = 1;
/// The GPU's computing.
pub(super) const COMPUTE: usize = 2;
/// Results back.
pub(super) const DOWNLOAD: usize = 3;

/// Kinds of [`Regime`].
pub(super) const REGIMES: usize = 3;

/// Which backends worked.
///
/// Knowledge of one regime is not applied to another, except while nothing better is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Regime {
    Together,
    CpuAlone,
    GpuAlone,
}

impl Regime {
    /// The regime in which the backends with work are those given.
    pub(super) fn of(cpu: bool, gpu: bool) -> Self {
        match (cpu, gpu) {
            (true, false) => Self::CpuAlone,
            (false, true) => Self::GpuAlone,
            _ => Self::Together,
        }
    }
}

/// Enough of a step to predict it anew when costs are known better.
#[derive(Debug, Clone)]
pub(super) struct Record {
    /// The CPU backend's work, and in how many subregions.
    cpu: (Amounts, usize),
    /// The GPU's amounts, by subregion.
    gpu: Vec<GpuAmounts>,
    /// Measured milliseconds of both backends, setup left out.
    pub(super) backends: [f64; 2],
    /// The backends that worked.
    pub(super) regime: Regime,
    /// Shares of the work of both.
    pub(super) shares: [f64; 2],
    /// Stages that count; others were stalled or said nothing.
    pub(super) trusted: [bool; STAGES],
}

/// Amounts of a subregion on the GPU.
#[derive(Debug, Clone)]
struct GpuAmounts {
    /// Bytes sent.
    upload: f64,
    /// Work by class.
    compute: Amounts,
    /// Bytes fetched.
    download: f64,
}

impl Record {
    /// The record of a step.
    pub(super) fn new(plan: &Plan, times: &StepTimes) -> Self {
        let mut cpu = ([0.0; CLASSES], 0);
        for stage in plan.stages() {
            for (sum, work) in cpu.0.iter_mut().zip(amounts(CPU, stage)) {
                *sum += work;
            }
            cpu.1 += usize::from(!stage.cpu.load.is_empty());
        }
        let gpu = plan.stages().iter().map(|stage| GpuAmounts {
            upload: stage.upload,
            compute: amounts(COMPUTE, stage),
            download: stage.download,
        });
        Self {
            cpu,
            gpu: gpu.collect(),
            backends: [
                times.cpu_ms() - times.setup[0].ms(),
                times.gpu_ms() - times.setup[1].ms(),
            ],
            regime: Regime::of(
                plan.stages().iter().any(|stage| !stage.cpu.load.is_empty()),
                plan.stages().iter().any(|stage| !stage.gpu.load.is_empty()),
            ),
            shares: [plan.share(), 1.0 - plan.share()],
            trusted: [true; STAGES],
        }
    }

    /// The amounts and the duration of every stage, subregion by subregion, where it had work.
    pub(super) fn samples(plan: &Plan, times: &StepTimes) -> [Vec<Sample>; STAGES] {
        let mut samples = [const { Vec::new() }; STAGES];
        for ((stage, cpu), gpu) in plan.stages().iter().zip(&times.cpu).zip(&times.gpu) {
            let spans = [cpu, &gpu.upload, &gpu.compute, &gpu.download];
            for (number, samples) in samples.iter_mut().enumerate() {
                let amounts = amounts(number, stage);
                if amounts.iter().any(|&amount| amount > 0.0) {
                    let ms = spans[number].ms();
                    samples.push(Sample { amounts, ms });
                }
            }
        }
        samples
    }

    /// Predicted milliseconds of both backends; a stage without a known cost takes no time.
    ///
    /// The GPU's stages overlap as [`overlapped`] has them, so the prediction is that of the whole
    /// backend and not a sum.
    pub(super) fn predicted<'a>(&self, cost: impl Fn(usize) -> Option<&'a Cost>) -> [f64; 2] {
        let copy = |stage: usize, bytes: f64| cost(stage).map_or(0.0, |cost| cost.of_bytes(bytes));
        let gpu = self.gpu.iter().map(|part| Durations {
            upload: copy(UPLOAD, part.upload),
            compute: cost(COMPUTE).map_or(0.0, |cost| cost.of(&part.compute)),
            download: copy(DOWNLOAD, part.download),
        });
        let gpu = StepTimes {
            gpu: overlapped(gpu),
            ..StepTimes::default()
        };
        let (amounts, parts) = &self.cpu;
        let cpu = cost(CPU).map_or(0.0, |cost| cost.of_several(amounts, *parts));
        [cpu, gpu.gpu_ms()]
    }
}

/// The amounts that a stage's duration is explained by.
fn amounts(number: usize, stage: &Stage) -> Amounts {
    let bytes = |bytes: f64| {
        let mut amounts = [0.0; CLASSES];
        amounts[0] = bytes;
        amounts
    };
    match number {
        CPU => stage.cpu.load.by_class.map(|work| work as f64),
        UPLOAD => bytes(stage.upload),
        COMPUTE => stage.gpu.load.by_class.map(|work| work as f64),
        _ => bytes(stage.download),
    }
}
