//! Strategy `auto`: the fastest configuration of strategy and cells to a radius, found by running.
//!
//! Pure code: times go in, configurations come out; the caller has the clock. Times are kept per
//! [`Class`] of occupancy, because a strategy that is fast with five points in a cell is slow with
//! five hundred, and per job, because a force costs more than a count.
//!
//! ```
//! use nearfield_balance::{Chooser, Class, Configuration, candidates};
//!
//! let (class, force) = (Class::of(100_000, 12_500.0), 7);
//! let mut chooser = Chooser::default();
//! // Three cells to a radius are the fastest on this machine.
//! let milliseconds = |config: Configuration| 4.0 - config.subdivision as f32;
//! for _step in 0..30 {
//!     let config = chooser.choose(class, force, &candidates(3));
//!     chooser.record(class, force, config, milliseconds(config));
//! }
//! let chosen = chooser.trials().into_iter().find(|trial| trial.chosen).unwrap();
//! assert_eq!((chosen.configuration.subdivision, chosen.milliseconds), (3, Some(1.0)));
//! ```
//!
//! # Policy
//!
//! Results are the same by any strategy, so candidates are measured on real steps and no step is
//! wasted. For every class and job:
//!
//! 1. *Sampling.* Candidates run in their order until each has three times that count. The first
//!    time of each is dropped, because it includes compiling programs and cold caches. A candidate
//!    is given up as soon as the best of two times is more than 1.5 times the fastest median: one
//!    time alone may have been a stall.
//! 2. *Settled.* The candidate with the smallest median runs. The median is over the last nine
//!    times, so it follows a cloud that changes and ignores single stalls.
//! 3. *Second chance.* Every 256th step goes to the second fastest if it is within 15 % of the
//!    fastest. So a lasting change of the ranking is noticed, and costs at most 15 % of one step in
//!    256.
//!
//! # What others rely on
//!
//! A choice depends on the recorded times alone, and [`Chooser::choose`] changes nothing: asking
//! twice gives the same answer. The module has no clock and no device, so its tests run anywhere.

use super::Strategy;
use std::{collections::BTreeMap, fmt};

/// Counted times of every candidate before the fastest is settled on.
const SAMPLES: usize = 3;
/// How many times slower than the fastest a candidate may be and still be run again.
const HOPELESS: f32 = 1.5;
/// Steps after which a candidate close behind has another chance…
const SECOND_CHANCE: u64 = 256;
/// …if it was no slower than the fastest by more than this factor.
const CLOSE: f32 = 1.15;
/// Times kept of a candidate.
const KEPT: usize = 9;

/// Strategy and cells of a traversal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Configuration {
    /// How cells and targets are mapped to threads.
    pub strategy: Strategy,
    /// Cells to a radius.
    pub subdivision: u32,
}

/// Occupancy of the cells: the binary logarithm of the mean number of points in a cell of the
/// radius' edge, rounded down.
///
/// A class is a factor of 2 wide: the ranking of strategies depends on the occupancy, but a cloud
/// in motion must not begin the sampling anew at every step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Class(i32);

/// A configuration and how long it took.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Trial {
    /// Occupancy of the cells.
    pub class: Class,
    /// The strategy and the cells to a radius that were timed.
    pub configuration: Configuration,
    /// Median of its times, milliseconds of the device for sorting and traversing; None before
    /// there is one that counts.
    pub milliseconds: Option<f32>,
    /// Whether it is the one that runs.
    pub chosen: bool,
}

/// Finds the fastest configuration for every class and work.
#[derive(Debug, Clone, Default)]
pub struct Chooser {
    /// By class and the caller's number for the job.
    known: BTreeMap<(Class, u64), TrialHistory>,
}

/// Times of one class and job.
#[derive(Debug, Clone, Default)]
struct TrialHistory {
    /// In the order in which they were first run.
    trials: Vec<Samples>,
    /// Steps recorded, those whose time was dropped included.
    steps: u64,
}

/// Times of one configuration, milliseconds.
#[derive(Debug, Clone)]
struct Samples {
    /// Strategy and cells to a radius.
    config: Configuration,
    /// After the first.
    times: Vec<f32>,
}

impl Class {
    /// The class of `points` points in `cells` cells whose edge is the radius. Counts every cell of
    /// the box around the points, occupied or not; fewer than one cell counts as one.
    pub fn of(points: usize, cells: f64) -> Self {
        let mean = (points as f64 / cells.max(1.0)).max(1e-9);
        Self(mean.log2().floor() as i32)
    }

    /// The least mean number of points in a cell of this class.
    pub fn least(self) -> f64 {
        f64::from(self.0).exp2()
    }
}

/// Configurations that can be the fastest: `flat` with 1 to 3 cells to a radius, of which the table
/// allows `finer` at most. Never empty.
///
/// The strategies that launch a kernel per cell, or per 256 cells, are not among them: they were
/// slower on every cloud that was measured, dense ones too (docs/measurements/gpu.md).
pub fn candidates(finer: u32) -> Vec<Configuration> {
    (1..=finer.clamp(1, 3))
        .map(|subdivision| Configuration {
            strategy: Strategy::Flat,
            subdivision,
        })
        .collect()
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let least = self.least();
        write!(f, "{least} to {} points in a cell", 2.0 * least)
    }
}

impl Chooser {
    /// The configuration for the next step of this class and job, out of `candidates`, which must
    /// not be empty: [`candidates`] never are.
    pub fn choose(&self, class: Class, work: u64, candidates: &[Configuration]) -> Configuration {
        let none = TrialHistory::default();
        let known = self.known.get(&(class, work)).unwrap_or(&none);
        let best = known.best(candidates);
        let wanting = candidates.iter().copied().find(|&config| {
            let Some(trial) = known.trial(config) else {
                return true;
            };
            let behind = match best {
                Some((_, fastest)) => trial.is_behind(fastest),
                None => false,
            };
            trial.times.len() < SAMPLES && !behind
        });
        let fallback = Configuration {
            strategy: Strategy::Flat,
            subdivision: 1,
        };
        match (wanting, best) {
            (Some(config), _) => config,
            (None, Some((config, fastest))) => known
                .second_chance(candidates, fastest)
                .filter(|_| known.steps % SECOND_CHANCE == SECOND_CHANCE - 1)
                .unwrap_or(config),
            (None, None) => candidates.first().copied().unwrap_or(fallback),
        }
    }

    /// Notes that a step of this class and job took `milliseconds` of the device by a
    /// configuration. The first time of every configuration is dropped; nine are kept.
    pub fn record(&mut self, class: Class, work: u64, config: Configuration, milliseconds: f32) {
        let known = self.known.entry((class, work)).or_default();
        known.steps += 1;
        let at = known.trials.iter().position(|trial| trial.config == config);
        match at {
            None => known.trials.push(Samples {
                config,
                times: Vec::new(),
            }),
            Some(at) => {
                let times = &mut known.trials[at].times;
                if times.len() == KEPT {
                    times.remove(0);
                }
                times.push(milliseconds);
            }
        }
    }

    /// All that was tried, by class and in the order it was tried.
    ///
    /// Jobs of one class follow each other, each with its own trials and its own chosen one; trials
    /// do not say whose they are.
    pub fn trials(&self) -> Vec<Trial> {
        let mut found = Vec::new();
        for ((class, _), known) in &self.known {
            let configs: Vec<Configuration> =
                known.trials.iter().map(|trial| trial.config).collect();
            let best = known.best(&configs).map(|best| best.0);
            found.extend(known.trials.iter().map(|trial| Trial {
                class: *class,
                configuration: trial.config,
                milliseconds: trial.median(),
                chosen: best == Some(trial.config),
            }));
        }
        found
    }
}

impl TrialHistory {
    /// The times of a configuration, if it was ever run.
    fn trial(&self, config: Configuration) -> Option<&Samples> {
        self.trials.iter().find(|trial| trial.config == config)
    }

    /// The fastest of the candidates, with its time.
    fn best(&self, candidates: &[Configuration]) -> Option<(Configuration, f32)> {
        let timed = candidates.iter().filter_map(|&config| {
            let time = self.trial(config)?.median()?;
            Some((config, time))
        });
        timed.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The second of the candidates, if it is close.
    fn second_chance(&self, candidates: &[Configuration], fastest: f32) -> Option<Configuration> {
        let mut timed: Vec<(Configuration, f32)> = candidates
            .iter()
            .filter_map(|&config| Some((config, self.trial(config)?.median()?)))
            .collect();
        timed.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (config, time) = *timed.get(1)?;
        (time <= CLOSE * fastest).then_some(config)
    }
}

impl Samples {
    /// Whether even the best of two or more times is too slow; one alone may have been a stall.
    fn is_behind(&self, fastest: f32) -> bool {
        let least = self.times.iter().copied().fold(f32::INFINITY, f32::min);
        self.times.len() > 1 && least > HOPELESS * fastest
    }

    /// The upper median; None before a time counts.
    fn median(&self) -> Option<f32> {
        let mut sorted = self.times.clone();
        sorted.sort_by(f32::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASS: Class = Class(3);

    /// Runs steps with these times and gives the configurations that were taken.
    fn run(
        chooser: &mut Chooser,
        steps: usize,
        time: impl Fn(Configuration, usize) -> f32,
    ) -> Vec<Configuration> {
        let candidates = candidates(3);
        (0..steps)
            .map(|step| {
                let config = chooser.choose(CLASS, 7, &candidates);
                chooser.record(CLASS, 7, config, time(config, step));
                config
            })
            .collect()
    }

    fn flat(subdivision: u32) -> Configuration {
        Configuration {
            strategy: Strategy::Flat,
            subdivision,
        }
    }

    #[test]
    fn the_fastest_way_is_found_and_stays() {
        let mut chooser = Chooser::default();
        let configs = run(&mut chooser, 40, |config, _| match config.subdivision {
            2 => 1.0,
            k => 1.2 + k as f32,
        });
        assert!(
            configs[15..].iter().all(|&config| config == flat(2)),
            "{configs:?}"
        );
        let chosen: Vec<_> = chooser
            .trials()
            .into_iter()
            .filter(|one| one.chosen)
            .collect();
        assert_eq!(chosen.len(), 1);
        assert_eq!(
            (chosen[0].configuration, chosen[0].milliseconds),
            (flat(2), Some(1.0))
        );
    }

    #[test]
    fn first_times_do_not_count() {
        let mut chooser = Chooser::default();
        let seen = std::cell::RefCell::new(Vec::new());
        let configs = run(&mut chooser, 40, |config, _| {
            let first = !seen.borrow().contains(&config);
            seen.borrow_mut().push(config);
            match (first, config.subdivision) {
                (true, _) => 500.0,
                (false, 3) => 1.0,
                (false, _) => 2.0,
            }
        });
        assert_eq!(configs.last(), Some(&flat(3)));
    }

    #[test]
    fn a_stall_does_not_decide() {
        let mut chooser = Chooser::default();
        let configs = run(&mut chooser, 60, |config, step| {
            match (config.subdivision, step) {
                (2, 5) => 30.0,
                (2, _) => 1.0,
                _ => 1.4,
            }
        });
        assert_eq!(configs.last(), Some(&flat(2)));
    }

    #[test]
    fn what_is_far_behind_runs_three_times_and_never_again() {
        let mut chooser = Chooser::default();
        let configs = run(&mut chooser, 600, |config, _| match config.subdivision {
            1 => 1.0,
            2 => 1.1,
            _ => 50.0,
        });
        let slow = configs.iter().filter(|&&config| config == flat(3)).count();
        assert_eq!(slow, 3);
        assert!(
            configs[100..].contains(&flat(2)),
            "close behind, so it has another chance"
        );
    }

    #[test]
    fn a_lasting_change_is_noticed_by_the_second() {
        let mut chooser = Chooser::default();
        let configs = run(&mut chooser, 4000, |config, step| {
            match config.subdivision {
                1 if step < 300 => 1.0,
                1 => 3.0,
                2 => 1.1,
                _ => 9.0,
            }
        });
        assert_eq!(configs.last(), Some(&flat(2)));
    }

    #[test]
    fn there_is_a_candidate_for_every_table() {
        assert_eq!(candidates(0), [flat(1)]);
        assert_eq!(candidates(9), [flat(1), flat(2), flat(3)]);
    }
}
