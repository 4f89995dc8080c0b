//! Times of the strategy `auto`: what a step took, and which configuration the next one runs.
//!
//! A configuration is chosen at the sort, before it is known which jobs will follow. So it is
//! chosen for the sequence of jobs that the step before had, and the time counts only if the step
//! then had that sequence too. A program that alternates between two sequences teaches nothing; one
//! that repeats a step teaches from its second step on.
//!
//! Times are the device's own, between marks on its stream, so a busy host does not make a
//! configuration look slow.

use nearfield_balance::{Chooser, Class, Configuration, Trial, candidates};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Knowledge from past times, and the step that is being timed.
#[derive(Debug, Default)]
pub(super) struct Times {
    chooser: Chooser,
    step: Option<TimedStep>,
}

/// All that is done between two sorts, timed together, because the cells are the same for all of
/// it.
#[derive(Debug, Clone, Copy)]
struct TimedStep {
    class: Class,
    config: Configuration,
    milliseconds: f32,
    /// Tells one sequence of works from another.
    work: u64,
    /// The work that the choice was made for: that of the step before.
    expected: u64,
}

impl Times {
    /// The configuration of the present step; None when nothing is timed.
    pub(super) fn configuration(&self) -> Option<Configuration> {
        self.step.map(|step| step.config)
    }

    /// Begins a step of points whose occupancy is of `class`, with at most `finest` cells to a
    /// radius.
    pub(super) fn next(&mut self, class: Class, finest: u32) -> Configuration {
        let last = self.step.take();
        // Another sequence of works than the one before says nothing about either.
        if let Some(step) = last.filter(|step| step.work == step.expected) {
            self.chooser
                .record(step.class, step.work, step.config, step.milliseconds);
        }
        let expected = last.map_or(0, |step| step.work);
        let config = self.chooser.choose(class, expected, &candidates(finest));
        self.step = Some(TimedStep {
            class,
            config,
            milliseconds: 0.0,
            work: 0,
            expected,
        });
        config
    }

    /// The step that follows has cells that were not chosen by times, so it is not timed.
    pub(super) fn forget_step(&mut self) {
        self.step = None;
    }

    /// A part of the step is done.
    pub(super) fn book(&mut self, name: impl Hash, milliseconds: f32) {
        let Some(step) = &mut self.step else { return };
        step.milliseconds += milliseconds;
        let mut hasher = DefaultHasher::new();
        (step.work, name).hash(&mut hasher);
        step.work = hasher.finish();
    }

    /// All that was tried.
    pub(super) fn trials(&self) -> Vec<Trial> {
        self.chooser.trials()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of one work that takes so long.
    fn steps(
        times: &mut Times,
        count: usize,
        work: &str,
        time: impl Fn(Configuration) -> f32,
    ) -> Configuration {
        let class = Class::of(8000, 1000.0);
        for _ in 0..count {
            let config = times.next(class, 3);
            times.book("sort", 0.1);
            times.book(work, time(config));
        }
        times.next(class, 3)
    }

    #[test]
    fn every_sequence_of_works_has_its_own_fastest_way() {
        let mut times = Times::default();
        let fine = |config: Configuration| 4.0 - config.subdivision as f32;
        let coarse = |config: Configuration| config.subdivision as f32;
        assert_eq!(steps(&mut times, 30, "force", fine).subdivision, 3);
        assert_eq!(steps(&mut times, 30, "count", coarse).subdivision, 1);
        assert_eq!(steps(&mut times, 5, "force", fine).subdivision, 3);
        let chosen = times.trials().into_iter().filter(|one| one.chosen).count();
        assert_eq!(chosen, 2);
    }
}
