//! What policy `model` knows about the machine: the cost of every stage, and how far lanes as a
//! whole are off what their stages add up to.
//!
//! # Stalls and changes
//!
//! The speed of a stage in a step is the median, over subregions, of measured by predicted time. A
//! step whose speed is off is put aside. If the next is off to the same side and about as far, the
//! machine has changed: costs are scaled, what came before is forgotten, and both steps count.
//!
//! # Alone and together
//!
//! Lanes may slow each other down. How far a lane is off its prediction is therefore remembered
//! separately for steps in which it worked alone.

use super::{
    fit::{Amounts, Cost, Sample},
    stall::median,
};
use crate::{CLASSES, Durations, Estimate, Lane, Plan, StepTimes, overlapped};
use std::collections::VecDeque;

/// Steps remembered.
const MEMORY: usize = 12;
/// Weight of a step relative to the one after it.
const FADING: f64 = 0.85;
/// Beyond this factor a step is doubted.
const DOUBT: f64 = 1.25;
/// Two doubted steps confirm each other when they differ by less than this factor.
const AGREEMENT: f64 = 1.5;
/// A subregion that is off by this factor more than the others of its step does not count.
const OUTLIER: f64 = 3.0;

const STAGES: usize = 4;
const CPU: usize = 0;
const UPLOAD: usize = 1;
const COMPUTE: usize = 2;
const DOWNLOAD: usize = 3;
const NAMES: [&str; STAGES] = ["the CPU lane", "upload", "the GPU's work", "download"];

/// Milliseconds of both lanes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Predicted {
    pub(super) cpu: f64,
    pub(super) gpu: f64,
}

impl Predicted {
    pub(super) fn total(&self) -> f64 {
        self.cpu.max(self.gpu)
    }
}

/// Which lanes worked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Regime {
    Together,
    CpuAlone,
    GpuAlone,
}

#[derive(Debug, Clone)]
struct Record {
    parts: Vec<Estimate>,
    durations: Vec<[f64; STAGES]>,
    lanes: [f64; 2],
    regime: Regime,
    trusted: [bool; STAGES],
}

#[derive(Debug, Clone, Default)]
pub(super) struct Knowledge {
    costs: [Option<Cost>; STAGES],
    doubted: [Option<f64>; STAGES],
    /// The latest last.
    history: VecDeque<Record>,
    /// The latest of each regime that the history has lost.
    older: [Option<Record>; 3],
}

impl Knowledge {
    /// Takes a step in; says what is doubted or has changed.
    pub(super) fn learn(&mut self, plan: &Plan, times: &StepTimes) -> Vec<String> {
        self.history.push_back(Record::new(plan, times));
        if self.history.len() > MEMORY {
            let old = self.history.pop_front();
            if let Some(old) = old {
                let regime = old.regime as usize;
                self.older[regime] = Some(old);
            }
        }
        let notes = (0..STAGES)
            .filter_map(|stage| self.judge(stage))
            .collect();
        for stage in 0..STAGES {
            self.refit(stage);
        }
        notes
    }

    /// Whether the last step was put aside, in whole or in part.
    pub(super) fn doubts(&self) -> bool {
        self.doubted.iter().any(Option::is_some)
    }

    /// Compares the last step's stage with its prediction.
    fn judge(&mut self, stage: usize) -> Option<String> {
        let speed = self.speed(stage)?;
        let name = NAMES[stage];
        if (1.0 / DOUBT..=DOUBT).contains(&speed) {
            self.doubted[stage] = None;
            return None;
        }
        let last = self.history.len() - 1;
        match self.doubted[stage] {
            Some(before) if (1.0 / AGREEMENT..AGREEMENT).contains(&(speed / before)) => {
                self.doubted[stage] = None;
                self.changed(stage, (speed * before).sqrt());
                Some(format!("{name} takes {speed:.2} times as long again: it has changed"))
            }
            _ => {
                self.doubted[stage] = Some(speed);
                self.history[last].trusted[stage] = false;
                Some(format!("{name} took {speed:.2} times as long as predicted: once is ignored"))
            }
        }
    }

    fn changed(&mut self, stage: usize, factor: f64) {
        if let Some(cost) = &mut self.costs[stage] {
            cost.scale(factor);
        }
        let last_two = self.history.len().saturating_sub(2);
        for (place, record) in self.history.iter_mut().enumerate() {
            record.trusted[stage] = place >= last_two;
        }
        for record in self.older.iter_mut().flatten() {
            record.trusted[stage] = false;
        }
    }

    /// Median of measured by predicted durations of the last step.
    fn speed(&self, stage: usize) -> Option<f64> {
        let cost = self.costs[stage].as_ref()?;
        let record = self.history.back()?;
        let ratios = record.samples(stage, 1.0).filter_map(|sample| {
            let predicted = cost.of(&sample.amounts);
            (predicted > 0.0).then(|| sample.ms / predicted)
        });
        median(ratios)
    }

    fn refit(&mut self, stage: usize) {
        let usual = self.speed(stage);
        let last = self.history.len() - 1;
        let mut samples = Vec::new();
        let mut weight = 1.0;
        for (place, record) in self.history.iter().enumerate().rev() {
            if record.trusted[stage] {
                samples.extend(record.samples(stage, weight).filter(|sample| {
                    let (Some(cost), Some(usual)) = (&self.costs[stage], usual) else {
                        return true;
                    };
                    let off = sample.ms / (cost.of(&sample.amounts) * usual);
                    place != last || (1.0 / OUTLIER..OUTLIER).contains(&off)
                }));
            }
            weight *= FADING;
        }
        if samples.is_empty() {
            return;
        }
        if self.costs[stage].is_none() {
            self.costs[stage] = Cost::flat(&samples);
        }
        if let Some(cost) = &mut self.costs[stage] {
            cost.refit(&samples);
        }
    }

    /// What both lanes would take; `None` while a stage that is needed has never been seen.
    pub(super) fn predict(&self, parts: impl Iterator<Item = Estimate> + Clone) -> Option<Predicted> {
        let regime = Regime::of(parts.clone());
        let [cpu, gpu] = self.plain(parts)?;
        Some(Predicted {
            cpu: cpu * self.bias(Lane::Cpu, regime).exp(),
            gpu: gpu * self.bias(Lane::Gpu, regime).exp(),
        })
    }

    /// The sum of the stages' costs, lane by lane.
    fn plain(&self, parts: impl Iterator<Item = Estimate>) -> Option<[f64; 2]> {
        let mut cpu = 0.0;
        let mut gpu = Vec::new();
        for part in parts {
            let mut ms = [0.0; STAGES];
            for (stage, ms) in ms.iter_mut().enumerate() {
                let amounts = amounts(stage, &part);
                if amounts.iter().any(|&amount| amount > 0.0) {
                    *ms = self.costs[stage].as_ref()?.of(&amounts);
                }
            }
            cpu += ms[CPU];
            gpu.push(Durations {
                upload: ms[UPLOAD],
                compute: ms[COMPUTE],
                download: ms[DOWNLOAD],
            });
        }
        let end = StepTimes {
            gpu: overlapped(gpu),
            ..StepTimes::default()
        };
        Some([cpu, end.gpu_ms()])
    }

    /// Logarithm of measured by predicted time of a lane as a whole.
    fn bias(&self, lane: Lane, regime: Regime) -> f64 {
        self.mean_bias(lane, self.history.iter().rev().filter(|r| r.regime == regime))
            .or_else(|| self.mean_bias(lane, self.older[regime as usize].iter()))
            .or_else(|| self.mean_bias(lane, self.history.iter().rev()))
            .unwrap_or(0.0)
    }

    /// Weighted mean over records, the latest first.
    fn mean_bias<'a>(
        &self,
        lane: Lane,
        records: impl Iterator<Item = &'a Record>,
    ) -> Option<f64> {
        let stages = match lane {
            Lane::Cpu => CPU..CPU + 1,
            Lane::Gpu => UPLOAD..STAGES,
        };
        let (mut sum, mut weights, mut weight) = (0.0, 0.0, 1.0);
        for record in records {
            if !record.trusted[stages.clone()].iter().all(|&trusted| trusted) {
                continue;
            }
            let measured = record.lanes[lane as usize];
            let predicted = self.plain(record.parts.iter().copied())?[lane as usize];
            if measured > 0.0 && predicted > 0.0 {
                sum += weight * (measured / predicted).ln();
                weights += weight;
                weight *= FADING;
            }
        }
        (weights > 0.0).then(|| sum / weights)
    }
}

impl Regime {
    fn of(parts: impl Iterator<Item = Estimate>) -> Self {
        let (mut cpu, mut gpu) = (false, false);
        for part in parts {
            cpu |= !part.cpu.is_empty();
            gpu |= !part.gpu.is_empty();
        }
        match (cpu, gpu) {
            (true, false) => Self::CpuAlone,
            (false, true) => Self::GpuAlone,
            _ => Self::Together,
        }
    }
}

impl Record {
    fn new(plan: &Plan, times: &StepTimes) -> Self {
        let parts: Vec<Estimate> = plan
            .stages()
            .iter()
            .map(|stage| Estimate {
                cpu: stage.cpu.load,
                gpu: stage.gpu.load,
                upload: stage.upload,
                download: stage.download,
            })
            .collect();
        let durations = times
            .cpu
            .iter()
            .zip(&times.gpu)
            .map(|(cpu, gpu)| {
                [
                    cpu.ms(),
                    gpu.upload.ms(),
                    gpu.compute.ms(),
                    gpu.download.ms(),
                ]
            })
            .collect();
        Self {
            regime: Regime::of(parts.iter().copied()),
            parts,
            durations,
            lanes: [times.cpu_ms(), times.gpu_ms()],
            trusted: [true; STAGES],
        }
    }

    fn samples(&self, stage: usize, weight: f64) -> impl Iterator<Item = Sample> {
        self.parts
            .iter()
            .zip(&self.durations)
            .map(move |(part, durations)| Sample {
                amounts: amounts(stage, part),
                ms: durations[stage],
                weight,
            })
            .filter(|sample| sample.amounts.iter().any(|&amount| amount > 0.0))
    }
}

/// What a stage's duration is explained by.
fn amounts(stage: usize, part: &Estimate) -> Amounts {
    let bytes = |bytes: f64| {
        let mut amounts = [0.0; CLASSES];
        amounts[0] = bytes;
        amounts
    };
    match stage {
        CPU => part.cpu.by_class.map(|work| work as f64),
        UPLOAD => bytes(part.upload),
        COMPUTE => part.gpu.by_class.map(|work| work as f64),
        _ => {
            debug_assert_eq!(stage, DOWNLOAD);
            bytes(part.download)
        }
    }
}
