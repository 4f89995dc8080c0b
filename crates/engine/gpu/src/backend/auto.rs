//! Strategy `auto`: the fastest configuration of strategy and cells to a radius, found by running.
//!
//! Pure code: times go in, configurations come out; the caller has the clock. Times are kept per
//! [`Class`] of occupancy, because a strategy that is fast with five points in a cell is slow with
//! five hundred, and per job, because a force costs more than a count.
//!
//! Every candidate is run on three real steps, whose results are the same by any strategy. The
//! first time of each is dropped: it includes compiling programs and cold caches. A candidate that
//! is more than 1.5 times slower is not run again. From then on the fastest runs; every 256 steps
//! one that was within 15 % of it has another chance, so a lasting change is noticed.

use crate::traversal::Strategy;
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
/// Mean points in a cell from which a warp, or a kernel launched from a kernel, per cell can pay.
const DENSE: f64 = 16.0;

/// A way of traversing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Way {
    /// How cells and targets are mapped to threads.
    pub strategy: Strategy,
    /// Cells to a radius.
    pub subdivision: u32,
}

/// Occupancy of the cells: the binary logarithm of the mean number of points in a cell of the
/// radius' edge, rounded down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Class(i32);

/// A way and how long it took.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Trial {
    /// Occupancy of the cells.
    pub class: Class,
    /// The way.
    pub way: Way,
    /// Median of its times, milliseconds of the device for sorting and traversing; None before
    /// there is one that counts.
    pub milliseconds: Option<f32>,
    /// Whether it is the one that runs.
    pub chosen: bool,
}

/// Finds the fastest way for every class and work.
#[derive(Debug, Clone, Default)]
pub struct Chooser {
    known: BTreeMap<(Class, u64), Known>,
}

#[derive(Debug, Clone, Default)]
struct Known {
    trials: Vec<Samples>,
    steps: u64,
}

#[derive(Debug, Clone)]
struct Samples {
    way: Way,
    /// After the first.
    times: Vec<f32>,
}

impl Class {
    /// The class of so many points in so many cells of the radius' edge.
    pub fn of(points: usize, cells: f64) -> Self {
        let mean = (points as f64 / cells.max(1.0)).max(1e-9);
        Self(mean.log2().floor() as i32)
    }

    /// The least mean number of points in a cell of this class.
    pub fn least(self) -> f64 {
        f64::from(self.0).exp2()
    }

    /// Ways that can be the fastest for the class. `finer` says how many cells to a radius the
    /// table may have at most.
    pub fn candidates(self, finer: u32) -> Vec<Way> {
        let way = |strategy, subdivision| Way {
            strategy,
            subdivision,
        };
        let flat = (1..=finer.clamp(1, 3)).map(|k| way(Strategy::Flat, k));
        let tiles = (1..=finer.clamp(1, 2)).filter(|&k| {
            let in_cell = self.least() / f64::from(k).powi(3);
            in_cell >= DENSE
        });
        let tiles = tiles.flat_map(|k| {
            [Strategy::CellTasks, Strategy::ChildAggregated].map(|strategy| way(strategy, k))
        });
        flat.chain(tiles).collect()
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} to {} points in a cell",
            self.least(),
            2.0 * self.least()
        )
    }
}

impl Chooser {
    /// The way for the next step of this class and work, out of `candidates`, which must not be
    /// empty: [`Class::candidates`] never are.
    pub fn choose(&self, class: Class, work: u64, candidates: &[Way]) -> Way {
        let none = Known::default();
        let known = self.known.get(&(class, work)).unwrap_or(&none);
        let best = known.best(candidates);
        let wanting = candidates.iter().copied().find(|&way| {
            let Some(trial) = known.trial(way) else {
                return true;
            };
            let behind = match best {
                Some((_, fastest)) => trial.is_behind(fastest),
                None => false,
            };
            trial.times.len() < SAMPLES && !behind
        });
        let fallback = Way {
            strategy: Strategy::Flat,
            subdivision: 1,
        };
        match (wanting, best) {
            (Some(way), _) => way,
            (None, Some((way, fastest))) => known
                .second_chance(candidates, fastest)
                .filter(|_| known.steps % SECOND_CHANCE == SECOND_CHANCE - 1)
                .unwrap_or(way),
            (None, None) => candidates.first().copied().unwrap_or(fallback),
        }
    }

    /// A step of this class and work has taken so long that way.
    pub fn record(&mut self, class: Class, work: u64, way: Way, milliseconds: f32) {
        let known = self.known.entry((class, work)).or_default();
        known.steps += 1;
        let at = known.trials.iter().position(|trial| trial.way == way);
        match at {
            None => known.trials.push(Samples {
                way,
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
    pub fn trials(&self) -> Vec<Trial> {
        let mut found = Vec::new();
        for ((class, _), known) in &self.known {
            let ways: Vec<Way> = known.trials.iter().map(|trial| trial.way).collect();
            let best = known.best(&ways).map(|best| best.0);
            found.extend(known.trials.iter().map(|trial| Trial {
                class: *class,
                way: trial.way,
                milliseconds: trial.median(),
                chosen: best == Some(trial.way),
            }));
        }
        found
    }
}

impl Known {
    fn trial(&self, way: Way) -> Option<&Samples> {
        self.trials.iter().find(|trial| trial.way == way)
    }

    /// The fastest of the candidates, with its time.
    fn best(&self, candidates: &[Way]) -> Option<(Way, f32)> {
        let timed = candidates.iter().filter_map(|&way| {
            let time = self.trial(way)?.median()?;
            Some((way, time))
        });
        timed.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The second of the candidates, if it is close.
    fn second_chance(&self, candidates: &[Way], fastest: f32) -> Option<Way> {
        let mut timed: Vec<(Way, f32)> = candidates
            .iter()
            .filter_map(|&way| Some((way, self.trial(way)?.median()?)))
            .collect();
        timed.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (way, time) = *timed.get(1)?;
        (time <= CLOSE * fastest).then_some(way)
    }
}

impl Samples {
    /// Whether even the best of two or more times is no match; one alone may have been a stall.
    fn is_behind(&self, fastest: f32) -> bool {
        let least = self.times.iter().copied().fold(f32::INFINITY, f32::min);
        self.times.len() > 1 && least > HOPELESS * fastest
    }

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

    /// Runs steps with these times and gives the ways that were taken.
    fn run(chooser: &mut Chooser, steps: usize, time: impl Fn(Way, usize) -> f32) -> Vec<Way> {
        let candidates = CLASS.candidates(3);
        (0..steps)
            .map(|step| {
                let way = chooser.choose(CLASS, 7, &candidates);
                chooser.record(CLASS, 7, way, time(way, step));
                way
            })
            .collect()
    }

    fn flat(subdivision: u32) -> Way {
        Way {
            strategy: Strategy::Flat,
            subdivision,
        }
    }

    #[test]
    fn the_fastest_way_is_found_and_stays() {
        let mut chooser = Chooser::default();
        let ways = run(&mut chooser, 40, |way, _| match way.subdivision {
            2 => 1.0,
            k => 1.2 + k as f32,
        });
        assert!(ways[15..].iter().all(|&way| way == flat(2)), "{ways:?}");
        let chosen: Vec<_> = chooser
            .trials()
            .into_iter()
            .filter(|one| one.chosen)
            .collect();
        assert_eq!(chosen.len(), 1);
        assert_eq!(
            (chosen[0].way, chosen[0].milliseconds),
            (flat(2), Some(1.0))
        );
    }

    #[test]
    fn first_times_do_not_count() {
        let mut chooser = Chooser::default();
        let seen = std::cell::RefCell::new(Vec::new());
        let ways = run(&mut chooser, 40, |way, _| {
            let first = !seen.borrow().contains(&way);
            seen.borrow_mut().push(way);
            match (first, way.subdivision) {
                (true, _) => 500.0,
                (false, 3) => 1.0,
                (false, _) => 2.0,
            }
        });
        assert_eq!(ways.last(), Some(&flat(3)));
    }

    #[test]
    fn a_stall_does_not_decide() {
        let mut chooser = Chooser::default();
        let ways = run(&mut chooser, 60, |way, step| {
            match (way.subdivision, step) {
                (2, 5) => 30.0,
                (2, _) => 1.0,
                _ => 1.4,
            }
        });
        assert_eq!(ways.last(), Some(&flat(2)));
    }

    #[test]
    fn what_is_far_behind_runs_three_times_and_never_again() {
        let mut chooser = Chooser::default();
        let ways = run(&mut chooser, 600, |way, _| match way.subdivision {
            1 => 1.0,
            2 => 1.1,
            _ => 50.0,
        });
        let slow = ways.iter().filter(|&&way| way == flat(3)).count();
        assert_eq!(slow, 3);
        assert!(
            ways[100..].contains(&flat(2)),
            "close behind, so it has another chance"
        );
    }

    #[test]
    fn a_lasting_change_is_noticed_by_the_second() {
        let mut chooser = Chooser::default();
        let ways = run(&mut chooser, 4000, |way, step| match way.subdivision {
            1 if step < 300 => 1.0,
            1 => 3.0,
            2 => 1.1,
            _ => 9.0,
        });
        assert_eq!(ways.last(), Some(&flat(2)));
    }

    #[test]
    fn tiles_are_candidates_at_high_occupancy() {
        let ways = Class::of(1000, 1000.0).candidates(3);
        assert!(ways.iter().all(|way| way.strategy == Strategy::Flat));
        let ways = Class::of(200_000, 1000.0).candidates(3);
        assert!(
            ways.iter()
                .any(|way| way.strategy == Strategy::ChildAggregated && way.subdivision == 2)
        );
        assert!(
            ways.iter()
                .all(|way| way.strategy != Strategy::ChildPerCell)
        );
        assert_eq!(Class::of(10, 1e12).candidates(1), [flat(1)]);
    }
}
