//! The times of a step and of its halos.

use std::time::{Duration, Instant};

/// The times of a step on this rank, from
/// [`RankedEngine::last_step`](crate::RankedEngine::last_step).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct StepTimes {
    /// Time from sending the points or fields of a halo until those of the other ranks had arrived,
    /// summed over all exchanges.
    pub halo: Duration,
    /// The part of `halo` that this rank spent waiting.
    pub waiting: Duration,
    /// Time spent in agreements: waiting for the slowest rank.
    pub agreement: Duration,
    /// Lists, counts and kernels of owned points among owned points.
    pub interior: Duration,
    /// The same for points at the border among the halo.
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
    /// Time from gathering the positions or fields of a halo until those of the other ranks were on
    /// the GPU, summed over all exchanges.
    pub halo: Duration,
    /// The part of `halo` after the GPU had finished its work among owned points.
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
    /// The step, without the time of agreements.
    times: StepTimes,
    /// Time spent in agreements before the step.
    agreed: Duration,
    /// True once the points of the step were searched: new positions then begin the next step.
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

    /// Points get new positions. `agreed` is the time spent in agreements so far.
    pub(crate) fn moved(&mut self, agreed: Duration) {
        if std::mem::take(&mut self.searched) {
            (self.times, self.agreed) = (StepTimes::default(), agreed);
        }
    }

    /// The times so far. `agreed` is the time spent in agreements so far.
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

    /// Halos of points have arrived, after this rank `waited` for them.
    pub(crate) fn came(&mut self, waited: Duration) {
        if let Some(posted) = self.posted.take() {
            self.exchanged(posted, waited);
        }
    }

    /// An exchange that began at `posted` has ended.
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

    /// Adds the time of work among the halo.
    pub(crate) fn border(&mut self, time: Duration) {
        self.times.border += time;
    }
}
