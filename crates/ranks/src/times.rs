//! Where the time of a step goes.

use std::time::{Duration, Instant};

/// The times of a step on this rank, from
/// [`RankedEngine::last_step`](crate::RankedEngine::last_step).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct StepTimes {
    /// From the moment at which the points or fields of a halo were posted to the moment at which
    /// those of the other ranks had come, summed over all exchanges.
    pub halo: Duration,
    /// The part of `halo` that this rank spent in waiting.
    pub waiting: Duration,
    /// Time spent in agreeing with the other ranks, which is time spent in waiting for the slowest.
    pub agreement: Duration,
    /// Lists, counts and kernels of owned points among owned points.
    pub interior: Duration,
    /// Those of points at the border among the halo.
    pub border: Duration,
}

impl StepTimes {
    /// The share of the halo's time that was hidden behind work, 0 to 1; 1 if there was no halo.
    pub fn hidden(&self) -> f64 {
        hidden(self.halo, self.waiting)
    }
}

/// The times of halos on the GPU of this rank, from
/// [`DeviceRankedEngine::halo_times`](crate::device::DeviceRankedEngine::halo_times).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct HaloTimes {
    /// From the moment at which the positions or fields of a halo were gathered to the moment at
    /// which those of the other ranks were on the GPU, summed over all exchanges.
    pub halo: Duration,
    /// The part of `halo` after the work of the GPU among owned points had ended.
    pub waiting: Duration,
}

impl HaloTimes {
    /// The share of the halo's time that was hidden behind work, 0 to 1; 1 if there was no halo.
    pub fn hidden(&self) -> f64 {
        hidden(self.halo, self.waiting)
    }
}

fn hidden(halo: Duration, waiting: Duration) -> f64 {
    if halo.is_zero() {
        return 1.0;
    }
    1.0 - waiting.as_secs_f64() / halo.as_secs_f64()
}

/// The times of the steps so far.
#[derive(Debug)]
pub(crate) struct Clock {
    /// The step, but for the time spent in agreeing.
    times: StepTimes,
    /// Time spent in agreeing before the step.
    agreed: Duration,
    /// True once the points of the step were searched: the next positions begin another.
    searched: bool,
    /// When halos of points were posted.
    posted: Option<Instant>,
}

impl Clock {
    /// A clock that begins now.
    pub(crate) fn new() -> Self {
        Self {
            times: StepTimes::default(),
            agreed: Duration::ZERO,
            searched: false,
            posted: None,
        }
    }

    /// Points get new positions. `agreed` is the time spent in agreeing so far.
    pub(crate) fn moved(&mut self, agreed: Duration) {
        if std::mem::take(&mut self.searched) {
            (self.times, self.agreed) = (StepTimes::default(), agreed);
        }
    }

    /// The step as it is. `agreed` is the time spent in agreeing so far.
    pub(crate) fn times(&self, agreed: Duration) -> StepTimes {
        StepTimes {
            agreement: agreed.saturating_sub(self.agreed),
            ..self.times
        }
    }

    /// Halos of points were posted now.
    pub(crate) fn posted(&mut self) {
        self.posted.get_or_insert_with(Instant::now);
    }

    /// Halos of points have come, for which this rank waited so long.
    pub(crate) fn came(&mut self, waited: Duration) {
        if let Some(posted) = self.posted.take() {
            self.exchanged(posted, waited);
        }
    }

    /// An exchange is complete that began at `posted`.
    pub(crate) fn exchanged(&mut self, posted: Instant, waited: Duration) {
        self.times.halo += posted.elapsed();
        self.times.waiting += waited;
    }

    /// Runs work among owned points.
    pub(crate) fn interior<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let begin = Instant::now();
        let result = work();
        self.searched = true;
        self.times.interior += begin.elapsed();
        result
    }

    /// Work among the halo took so long.
    pub(crate) fn border(&mut self, time: Duration) {
        self.times.border += time;
    }
}
