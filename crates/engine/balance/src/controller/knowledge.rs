//! What policy `model` knows about the machine: the cost of every stage, and the bias of each
//! backend as a whole against the sum of its stages.
//!
//! # Stalls and changes
//!
//! The speed of a stage in a step is measured by predicted time of all subregions. A step whose
//! speed is off by more than a quarter is put aside. If the next is off to the same side and about
//! as far, the machine has changed: costs are scaled, the steps before are forgotten, and both
//! steps count.
//!
//! There is an exception. When classes came in proportions from which no good prediction follows,
//! the prediction was wrong about how they compare, and both steps are kept with those before. That
//! matters most for a backend that computes everything in one launch: the division of its time
//! among subregions is then a guess, which can be far off, and only steps with other proportions
//! mend it. A kernel per cell, for example, spends most of its time on the sparse bricks; a GPU
//! that was relieved of those is not one that became ten times as fast.
//!
//! A change that undoes the one before, at another share of the work, was not a change: a backend
//! may take far less for little work than the costs for more predict. Its times at so small a share
//! are ignored from then on.
//!
//! # Alone and together
//!
//! Backends may slow each other down. Costs are those of both working together, and the bias of a
//! backend is remembered separately for steps in which it worked alone. So is its setup, the time
//! before its first subregion.
//!
//! # What is remembered
//!
//! The last 16 steps, older ones counting less, and the latest step of each regime beyond those;
//! five setups per backend and regime.
//!
//! # Outliers
//!
//! On a device that works piece by piece one subregion may include a wait. A subregion that is off
//! three times as far as the others of its step is left out, unless more than an eighth of them
//! are: then nothing is an outlier.
//!
//! # Setup
//!
//! Bringing data over, sorting and counting are paid once per step by every backend that has work.
//! The median of the last five is used, by regime, because a backend alone may sort differently.

use super::{
    fit::{Cost, Fit, Sample},
    record::{COMPUTE, CPU, REGIMES, Record, Regime, STAGES, UPLOAD},
    stall::median,
};
use crate::{Backend, Plan, StepTimes};
use std::collections::VecDeque;

/// Steps remembered.
const MEMORY: usize = 16;
/// Setups that are remembered per backend and regime.
const SETUPS: usize = 5;
/// Weight of a step relative to the one after it.
const FADING: f64 = 0.9;
/// Beyond this factor a step is doubted.
const DOUBT: f64 = 1.25;
/// Two doubted steps confirm each other when they differ by less than this factor.
const AGREEMENT: f64 = 1.5;
/// Work of a backend that takes less than this part of the step does not show that it is slow: most
/// of its time is the fixed cost.
const NEGLIGIBLE: f64 = 0.01;
/// A backend may be given as many times as much work as it has been seen to do.
const REACH: f64 = 8.0;
/// A prediction that can be off by more than this, relative, was none.
const UNKNOWN: f64 = 0.2;
/// A subregion that is off by this factor more than the others of its step does not count.
const OUTLIER: f64 = 3.0;
/// Where more than this part of the subregions is off so far, all count: they scatter.
const FEW: f64 = 0.125;

/// Stages in messages.
const NAMES: [&str; STAGES] = ["the CPU", "upload", "the GPU's work", "download"];

/// A speed that was off once, and what was measured then.
///
/// The samples are kept: if the next step agrees, both count.
#[derive(Debug, Clone)]
struct Doubt {
    /// Measured by predicted time.
    speed: f64,
    /// The samples of the step.
    samples: Vec<Sample>,
}

/// The state of policy `model` between steps.
#[derive(Debug, Clone, Default)]
pub(super) struct Knowledge {
    /// The cost of every stage.
    fits: [Fit; STAGES],
    /// By stage, the doubt of the last step.
    doubts: [Option<Doubt>; STAGES],
    /// By stage, the factor by which it has changed in this step.
    changed: [Option<f64>; STAGES],
    /// By stage, the factor by which it changed last, and the backend's share of the work then.
    changes: [Option<(f64, f64)>; STAGES],
    /// By stage, the share of the work up to which times say nothing about larger shares.
    crooked: [f64; STAGES],
    /// By stage, whether doubted steps were kept with those before, and no step has agreed since.
    unsettled: [bool; STAGES],
    /// The latest last.
    history: VecDeque<Record>,
    /// The latest of each regime that the history has lost.
    older: [Option<Record>; REGIMES],
    /// By backend and regime.
    biases: [[Bias; REGIMES]; 2],
    /// By backend, the greatest share of the work that it did in a step that counts.
    seen_to_do: [Option<f64>; 2],
    /// By backend and regime, the latest setups last.
    setups: [[VecDeque<f64>; REGIMES]; 2],
}

impl Knowledge {
    /// Takes a step in; returns notes on stages that are doubted or have changed.
    pub(super) fn learn(&mut self, plan: &Plan, times: &StepTimes) -> Vec<String> {
        let record = Record::new(plan, times);
        let samples = Record::samples(plan, times);
        let regime = record.regime;
        let worked = [times.cpu_ms(), times.gpu_ms()];
        for (backend, setups) in self.setups.iter_mut().enumerate() {
            let setups = &mut setups[regime as usize];
            if worked[backend] > 0.0 {
                setups.push_back(times.setup[backend].ms());
            }
            if setups.len() > SETUPS {
                setups.pop_front();
            }
        }
        self.history.push_back(record);
        if self.history.len() > MEMORY
            && let Some(old) = self.history.pop_front()
        {
            let regime = old.regime as usize;
            self.older[regime] = Some(old);
        }
        let least = NEGLIGIBLE * worked[0].max(worked[1]);
        let shares = [plan.share(), 1.0 - plan.share()];
        let notes = samples
            .into_iter()
            .enumerate()
            .filter_map(|(stage, samples)| {
                let spent: f64 = samples.iter().map(|sample| sample.ms).sum();
                let work = stage == CPU || stage == COMPUTE;
                let slow = || self.speed(stage, &samples).is_some_and(|speed| speed > 1.0);
                let share = shares[usize::from(stage != CPU)];
                if work && (spent < least && slow() || share <= self.crooked[stage]) {
                    self.pass_over(stage);
                    return None;
                }
                let note = self.judge(stage, samples, regime);
                self.look_back(stage, share);
                note
            })
            .collect();
        self.find_biases();
        self.look_how_much();
        notes
    }

    /// Returns true if the last step was put aside, in whole or in part.
    pub(super) fn doubts(&self) -> bool {
        self.doubts.iter().any(Option::is_some)
    }

    /// A stage has changed at a backend's share of the work. When that undoes the change before it,
    /// which was found at another share, it is not the machine that has changed: what the backend
    /// takes does not grow with the work as predicted, and what it takes for the smaller share says
    /// nothing about more.
    ///
    /// Such a pair of changes comes from probing a backend with very little work and going back.
    fn look_back(&mut self, stage: usize, share: f64) {
        let Some(factor) = self.changed[stage].take() else {
            return;
        };
        if let Some((before, at)) = self.changes[stage]
            && (1.0 / AGREEMENT..AGREEMENT).contains(&(factor * before))
            && !(1.0 / AGREEMENT..AGREEMENT).contains(&(share / at))
        {
            self.crooked[stage] = share.min(at) * AGREEMENT;
        }
        self.changes[stage] = Some((factor, share));
    }

    /// Learns nothing from the last step about a stage.
    fn pass_over(&mut self, stage: usize) {
        self.doubts[stage] = None;
        if let Some(last) = self.history.back_mut() {
            last.trusted[stage] = false;
        }
    }

    /// Compares the last step's stage with its prediction. A step that agrees is learnt from. A
    /// step that is off is doubted; if the one before was off to the same side and about as far,
    /// the stage has changed, or its classes compare differently than was believed.
    fn judge(&mut self, stage: usize, samples: Vec<Sample>, regime: Regime) -> Option<String> {
        if samples.is_empty() {
            self.doubts[stage] = None;
            return None;
        }
        let Some(speed) = self.speed(stage, &samples) else {
            self.fits[stage].add(&samples, FADING);
            return None;
        };
        if regime == Regime::Together {
            return self.judged(stage, speed, samples);
        }
        // Alone, the backend as a whole has a factor of its own; costs stay those of both together.
        let backend = usize::from(stage != CPU);
        let usual = self.biases[backend][regime as usize];
        if usual.known {
            self.judged(stage, speed / usual.mean.exp(), Vec::new())
        } else {
            None
        }
    }

    /// Believes a speed relative to the usual one, or doubts it, and learns from the samples.
    fn judged(&mut self, stage: usize, speed: f64, samples: Vec<Sample>) -> Option<String> {
        let name = NAMES[stage];
        if (1.0 / DOUBT..=DOUBT).contains(&speed) {
            self.doubts[stage] = None;
            self.unsettled[stage] = false;
            let samples = self.without_outliers(stage, &samples, speed);
            self.fits[stage].add(&samples, FADING);
            return None;
        }
        match self.doubts[stage].take() {
            Some(doubt) if (1.0 / AGREEMENT..AGREEMENT).contains(&(speed / doubt.speed)) => {
                let fit = &mut self.fits[stage];
                let unknown = !samples.is_empty() && fit.uncertainty(&samples) > UNKNOWN;
                // If those have not mended the prediction, it is not for want of proportions.
                if unknown && !std::mem::replace(&mut self.unsettled[stage], true) {
                    fit.add(&doubt.samples, FADING);
                    fit.add(&samples, FADING);
                    self.trust_last_two(stage);
                    return Some(format!(
                        "{name} takes {speed:.2} times as long for what it was not seen to do alone"
                    ));
                }
                self.unsettled[stage] = false;
                self.forget(stage);
                let fit = &mut self.fits[stage];
                let factor = (speed * doubt.speed).sqrt();
                self.changed[stage] = Some(factor);
                fit.restart(factor);
                fit.add(&doubt.samples, FADING);
                fit.add(&samples, FADING);
                Some(format!(
                    "{name} takes {speed:.2} times as long again: it has changed"
                ))
            }
            _ => {
                self.doubts[stage] = Some(Doubt { speed, samples });
                let last = self.history.len() - 1;
                self.history[last].trusted[stage] = false;
                Some(format!(
                    "{name} took {speed:.2} times as long as predicted: once is ignored"
                ))
            }
        }
    }

    /// The step before the last was doubted, and counts after all.
    fn trust_last_two(&mut self, stage: usize) {
        let last_two = self.history.iter_mut().rev().take(2);
        last_two.for_each(|record| record.trusted[stage] = true);
    }

    /// Only the last two steps count from now on.
    ///
    /// The step of the doubt and the one that confirmed it remain.
    fn forget(&mut self, stage: usize) {
        let last_two = self.history.len().saturating_sub(2);
        for (place, record) in self.history.iter_mut().enumerate() {
            record.trusted[stage] = place >= last_two;
        }
        for record in self.older.iter_mut().flatten() {
            record.trusted[stage] = false;
        }
    }

    /// Measured by predicted time of all subregions together. Not a median of theirs: costs are
    /// fitted to sums, and where subregions scatter to one side, as those of a device that works
    /// piece by piece do, a median would be off for good.
    ///
    /// One number per stage and step.
    fn speed(&self, stage: usize, samples: &[Sample]) -> Option<f64> {
        let cost = self.fits[stage].cost()?;
        let (mut measured, mut predicted) = (0.0, 0.0);
        for sample in samples {
            measured += sample.ms;
            predicted += cost.of(&sample.amounts);
        }
        (predicted > 0.0).then(|| measured / predicted)
    }

    /// The samples without those that are off much farther than the others of the step.
    fn without_outliers(&self, stage: usize, samples: &[Sample], speed: f64) -> Vec<Sample> {
        let Some(cost) = self.fits[stage].cost() else {
            return samples.to_vec();
        };
        let off = |sample: &Sample| sample.ms / (cost.of(&sample.amounts) * speed);
        let fits = |sample: &&Sample| (1.0 / OUTLIER..OUTLIER).contains(&off(sample));
        let usual: Vec<_> = samples.iter().filter(fits).copied().collect();
        // Where many are off nothing is: they scatter.
        if (samples.len() - usual.len()) as f64 > FEW * samples.len() as f64 {
            samples.to_vec()
        } else {
            usual
        }
    }

    /// The cost of a stage; `None` before it has been seen.
    pub(super) fn cost(&self, stage: usize) -> Option<&Cost> {
        self.fits[stage].cost()
    }

    /// Milliseconds that a backend needs before it begins with its subregions: the median of the
    /// latest in this regime, or beside the other backend while it has not been seen in this one.
    ///
    /// A regime that was never seen takes the setup of both together, which is the nearest guess.
    pub(super) fn setup(&self, backend: Backend, regime: Regime) -> f64 {
        let known = |regime: Regime| {
            let latest = &self.setups[backend as usize][regime as usize];
            median(latest.iter().copied())
        };
        (known(regime).or_else(|| known(Regime::Together))).unwrap_or(0.0)
    }

    /// Factor by which a backend as a whole differs from the sum of its stages.
    pub(super) fn factor(&self, backend: Backend, regime: Regime) -> f64 {
        self.biases[backend as usize][regime as usize].mean.exp()
    }

    /// The CPU backend's least and greatest share of the work for which what is known may hold: a
    /// backend is not given many times more than it has been seen to do since it changed last.
    pub(super) fn shares(&self) -> [f64; 2] {
        let most =
            |backend: usize| self.seen_to_do[backend].map_or(1.0, |share| (REACH * share).min(1.0));
        [1.0 - most(1), most(0)]
    }

    /// Notes how much of the work either backend has been seen to do, as far as steps that count go
    /// back; what it was where none does.
    ///
    /// A step whose stage was put aside does not count.
    fn look_how_much(&mut self) {
        for (backend, stage) in [CPU, COMPUTE].into_iter().enumerate() {
            let records = self.history.iter().chain(self.older.iter().flatten());
            let trusted = records.filter(|record| record.trusted[stage]);
            let most = trusted
                .map(|record| record.shares[backend])
                .reduce(f64::max);
            self.seen_to_do[backend] = most
                .filter(|share| *share > 0.0)
                .or(self.seen_to_do[backend]);
        }
    }

    /// Steps of this regime that are remembered.
    pub(super) fn seen(&self, regime: Regime) -> usize {
        let records = self
            .history
            .iter()
            .chain(self.older[regime as usize].iter());
        records.filter(|record| record.regime == regime).count()
    }

    /// How far the ratio of the backends' times can be off when both work, relative: one standard
    /// deviation.
    ///
    /// The bias of either backend scatters from step to step; both variances add up.
    pub(super) fn uncertainty(&self) -> f64 {
        let variance = |backend: usize| self.biases[backend][Regime::Together as usize].variance;
        (variance(0) + variance(1)).sqrt()
    }

    /// How far the time of a backend alone can be off, relative: one standard deviation. That of
    /// both together is 0 here.
    ///
    /// Used as a margin before a backend alone is preferred to both together.
    pub(super) fn spread(&self, regime: Regime) -> f64 {
        let backend = match regime {
            Regime::Together => return 0.0,
            Regime::CpuAlone => 0,
            Regime::GpuAlone => 1,
        };
        self.biases[backend][regime as usize].variance.sqrt()
    }

    /// Finds the biases anew: costs may have changed, so all remembered steps are predicted again.
    fn find_biases(&mut self) {
        let off = |record: &Record| (record.regime, self.off(record));
        let recent: Vec<_> = self.history.iter().rev().map(off).collect();
        let older: Vec<_> = self.older.iter().flatten().map(off).collect();
        let mut biases = [[Bias::default(); REGIMES]; 2];
        for (backend, biases) in biases.iter_mut().enumerate() {
            let of = |records: &[(Regime, [Option<f64>; 2])], regime: Option<Regime>| {
                let fits = |other| regime.is_none_or(|regime| regime == other);
                let values = records.iter().filter(|record| fits(record.0));
                Bias::of(values.filter_map(|record| record.1[backend]))
            };
            for regime in [Regime::Together, Regime::CpuAlone, Regime::GpuAlone] {
                let own = of(&recent, Some(regime)).or_else(|| of(&older, Some(regime)));
                biases[regime as usize] = own.unwrap_or_else(|| Bias {
                    known: false,
                    ..of(&recent, None).unwrap_or_default()
                });
            }
        }
        self.biases = biases;
    }

    /// Logarithms of measured by predicted times of both backends in a step.
    fn off(&self, record: &Record) -> [Option<f64>; 2] {
        let predicted = record.predicted(|stage| self.cost(stage));
        [(0, CPU..CPU + 1), (1, UPLOAD..STAGES)].map(|(backend, mut stages)| {
            let ratio = record.backends[backend] / predicted[backend];
            let trusted = stages.all(|stage| record.trusted[stage]);
            (trusted && ratio > 0.0 && ratio.is_finite()).then(|| ratio.ln())
        })
    }
}

/// Logarithm of measured by predicted time of a backend as a whole.
///
/// Logarithms, so that twice as long and half as long are equally far off.
#[derive(Debug, Clone, Copy, Default)]
struct Bias {
    /// Weighted mean.
    mean: f64,
    /// Of the mean.
    variance: f64,
    /// It was measured in this regime.
    known: bool,
}

impl Bias {
    /// From values, each counting less than the one before it.
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let (mut weight, mut weights, mut squares) = (1.0, 0.0, 0.0);
        let (mut sum, mut sum_of_squares) = (0.0, 0.0);
        for value in values {
            weights += weight;
            squares += weight * weight;
            sum += weight * value;
            sum_of_squares += weight * value * value;
            weight *= FADING;
        }
        if weights == 0.0 {
            return None;
        }
        let mean = sum / weights;
        // Share of the weights that is one value's: 1 for a single one, whose spread is unknown.
        let alone = squares / (weights * weights);
        let spread = (sum_of_squares / weights - mean * mean).max(0.0);
        let variance = if alone < 1.0 {
            spread * alone / (1.0 - alone)
        } else {
            0.0
        };
        Some(Self {
            mean,
            variance,
            known: true,
        })
    }
}
