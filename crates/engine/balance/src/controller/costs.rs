//! The predicted cost of any threshold, on one layout and with current knowledge.
//!
//! A search for the best threshold asks for tens of predictions, after every step that is learnt
//! from, so each must be cheap. The costs of either backend are summed once along the ladders, at a
//! thousand places or two; the computing time of a backend in a subregion is then a difference of
//! two sums, between places in proportion to work. Copies follow from the layout's own
//! sums of bytes, and the event model of [`overlapped`] adds up the GPU's three streams.
//!
//! # The search
//!
//! The CPU backend takes longer the higher the threshold is, and the GPU takes shorter. The total,
//! the larger of both, is therefore least where they cross, which bisection finds. Both extremes
//! are compared with the crossing, because a backend that works alone has another setup and does
//! not slow the other down.
//!
//! # Monotony
//!
//! Keys ascend along a ladder, and so do the sums before each place, because costs are not
//! negative. Hence the CPU backend's time rises with θ and the GPU's computing time falls. Uploads
//! and the overlap of the streams are not monotone to the last digit, so the result of the
//! bisection is compared with its neighbours' candidates rather than taken for granted.

use super::{
    fit::Cost,
    knowledge::Knowledge,
    record::{COMPUTE, CPU, DOWNLOAD, Regime, UPLOAD},
};
use crate::{Backend, CLASSES, Durations, Layout, StepTimes, layout::LadderCut, overlapped};
use nearfield_grid::memory::{Shortage, collected};
use std::ops::Range;

/// Milliseconds of both backends.
///
/// A backend without work takes no time at all, not even its setup.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Predicted {
    /// Milliseconds of the CPU backend.
    pub(super) cpu: f64,
    /// Milliseconds of the GPU backend.
    pub(super) gpu: f64,
}

impl Predicted {
    /// Milliseconds until both backends have ended.
    pub(super) fn total(&self) -> f64 {
        self.cpu.max(self.gpu)
    }

    /// The backends that have work.
    pub(super) fn regime(&self) -> Regime {
        Regime::of(self.cpu > 0.0, self.gpu > 0.0)
    }
}

/// Predictions on one layout.
#[derive(Debug)]
pub(super) struct Costs<'a> {
    /// The layout.
    layout: &'a Layout,
    /// Knowledge of the machine so far.
    knowledge: &'a Knowledge,
    /// Milliseconds on either backend before those places of the ladders at which the layout keeps
    /// [sums](crate::layout::class_sums::ClassSums).
    before: Vec<[f64; 2]>,
    /// Milliseconds for beginning a subregion.
    bases: [f64; 2],
}

/// A threshold and the times predicted for it, as [`Costs::best`] finds them.
///
/// If several candidates take equally long, it is the first of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Best {
    /// Threshold of all subregions.
    pub(super) theta: f64,
    /// Times of a step that is divided by it.
    pub(super) predicted: Predicted,
}

impl<'a> Costs<'a> {
    /// `None` while a backend has never been seen at work.
    pub(super) fn new(
        layout: &'a Layout,
        knowledge: &'a Knowledge,
    ) -> Result<Option<Self>, Shortage> {
        let (Some(cpu), Some(compute)) = (knowledge.cost(CPU), knowledge.cost(COMPUTE)) else {
            return Ok(None);
        };
        let costs = [cpu, compute];
        let rates = costs.map(|cost| std::array::from_fn(|class| cost.rate(class)));
        let taken = |rates: &[f64; CLASSES], works: &[f64; CLASSES]| {
            let products = rates.iter().zip(works).map(|(rate, work)| rate * work);
            products.sum::<f64>()
        };
        let sums = layout.by_class().sums();
        let before = sums
            .iter()
            .map(|works| [0, 1].map(|backend| taken(&rates[backend], works)));
        let before = collected(before, "predicted times")?;
        Ok(Some(Self {
            layout,
            knowledge,
            before,
            bases: costs.map(Cost::base),
        }))
    }

    /// Milliseconds of a backend for places of a subregion's ladder.
    fn of(&self, backend: Backend, subregion: usize, places: &Range<usize>) -> f64 {
        let backend = backend as usize;
        if places.is_empty() {
            return 0.0;
        }
        let before = |place: usize| self.before(backend, subregion, place);
        self.bases[backend] + before(places.end) - before(places.start)
    }

    /// Milliseconds of a backend before a place of a subregion's ladder.
    fn before(&self, backend: usize, subregion: usize, place: usize) -> f64 {
        let (sum, [begin, next]) = self.layout.by_class().around(subregion, place);
        let before = self.before[sum][backend];
        if begin == place {
            return before;
        }
        let next = next.min(self.layout.ladder_end(subregion));
        let [begin, here, end] = [begin, place, next].map(|place| self.layout.work_before(place));
        let part = (here - begin) / (end - begin).max(1.0);
        before + part * (self.before[sum + 1][backend] - before)
    }

    /// With one threshold for all subregions.
    pub(super) fn at(&self, theta: f64) -> Predicted {
        self.with(theta, None)
    }

    /// With another threshold in one subregion. The bytes sent to the GPU for the subregions around
    /// it is taken to be as before.
    ///
    /// Used for exploration steps, which change one subregion.
    pub(super) fn with(&self, theta: f64, elsewhere: Option<(usize, f64)>) -> Predicted {
        let (mut cpu_ms, mut cpu_works, mut gpu_works) = (0.0, false, false);
        let stages: Vec<Durations> = (0..self.layout.subregions().len())
            .map(|subregion| {
                let theta = match elsewhere {
                    Some((other, theta)) if other == subregion => theta,
                    _ => theta,
                };
                let LadderCut { cpu, gpu } = self.layout.places(subregion, theta);
                cpu_ms += self.of(Backend::Cpu, subregion, &cpu);
                cpu_works |= !cpu.is_empty();
                gpu_works |= !gpu.is_empty();
                Durations {
                    upload: self.copy(UPLOAD, self.layout.upload(subregion, theta)),
                    compute: self.of(Backend::Gpu, subregion, &gpu),
                    download: self.copy(DOWNLOAD, self.layout.download(gpu)),
                }
            })
            .collect();
        let gpu = StepTimes {
            gpu: overlapped(stages),
            ..StepTimes::default()
        };
        let regime = Regime::of(cpu_works, gpu_works);
        let whole = |backend: Backend, works: bool, ms: f64| {
            if works {
                self.knowledge.setup(backend, regime) + ms * self.knowledge.factor(backend, regime)
            } else {
                0.0
            }
        };
        Predicted {
            cpu: whole(Backend::Cpu, cpu_works, cpu_ms),
            gpu: whole(Backend::Gpu, gpu_works, gpu.gpu_ms()),
        }
    }

    /// Milliseconds of a copy.
    fn copy(&self, stage: usize, bytes: f64) -> f64 {
        let cost = self.knowledge.cost(stage);
        cost.map_or(0.0, |cost| cost.of_bytes(bytes))
    }

    /// The best threshold, and its predicted times. The GPU is to hold at most `memory` bytes, and
    /// the CPU backend's share of the work to lie between `shares`.
    ///
    /// Four candidates are compared: the two ends of the allowed range, and the two bricks at the
    /// crossing.
    pub(super) fn best(&self, memory: Option<f64>, shares: [f64; 2]) -> Best {
        let last = self.layout.sorted_keys().len();
        let most = if shares[1] < 1.0 {
            self.first(|theta| self.layout.share_at(theta) > shares[1])
                .saturating_sub(1)
        } else {
            last
        };
        let least = if shares[0] > 0.0 {
            self.first(|theta| self.layout.share_at(theta) >= shares[0])
        } else {
            0
        };
        let lowest = memory.map_or(0, |bytes| self.first(|theta| self.needs(theta) <= bytes));
        let lowest = lowest.max(least.min(most));
        // The CPU backend takes longer the higher the threshold is, the GPU backend shorter.
        let crossing = self.first(|theta| {
            let predicted = self.at(theta);
            predicted.cpu >= predicted.gpu
        });
        let at = |theta| Best {
            theta,
            predicted: self.at(theta),
        };
        let mut best: Option<Best> = None;
        for place in [lowest, most, crossing, crossing.saturating_sub(1)] {
            let found = at(self.theta(place.min(most).max(lowest)));
            if best.is_none_or(|best| found.predicted.total() < best.predicted.total()) {
                best = Some(found);
            }
        }
        best.unwrap_or_else(|| at(0.0))
    }

    /// The threshold that gives the first `bricks` bricks of all ladders, by key, to the CPU
    /// backend.
    fn theta(&self, bricks: usize) -> f64 {
        let keys = self.layout.sorted_keys();
        match bricks {
            0 => 0.0,
            _ => keys
                .get(bricks)
                .copied()
                .unwrap_or_else(|| self.layout.highest()),
        }
    }

    /// The least number of bricks for which `holds` is true, if it is true for all larger numbers.
    /// Found by bisection.
    fn first(&self, holds: impl Fn(f64) -> bool) -> usize {
        let (mut low, mut high) = (0, self.layout.sorted_keys().len());
        while low < high {
            let middle = (low + high) / 2;
            if holds(self.theta(middle)) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// Maximum number of bytes on the device.
    ///
    /// All sources, and the results of three subregions at a time.
    fn needs(&self, theta: f64) -> f64 {
        let (mut upload, mut results) = (0.0, 0.0f64);
        for subregion in 0..self.layout.subregions().len() {
            upload += self.layout.upload(subregion, theta);
            let gpu = self.layout.places(subregion, theta).gpu;
            results = results.max(self.layout.download(gpu));
        }
        upload + 3.0 * results
    }
}
