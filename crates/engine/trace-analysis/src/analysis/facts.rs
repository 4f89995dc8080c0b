//! What findings and the verdict are made from: the settled steps with the times of their backends,
//! and the backends whose idle time matters.

use super::{
    gaps::Gaps,
    run::Run,
    settled::{Part, Settled},
    stages::StageTimes,
    summary::{StepRow, Summary},
};
use nearfield_trace::{
    Trace,
    ranks::{is_gpu, named},
};

/// What findings are made from.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) run: &'a Run,
    pub(crate) gaps: &'a Gaps,
    pub(crate) rows: &'a [StepRow],
    pub(crate) stages: &'a [StageTimes],
    pub(crate) settled: &'a Settled,
    /// Everything but findings and verdict.
    pub(crate) summary: &'a Summary,
}

/// Whose idle time matters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Focus {
    /// Ranks that divide the work by space: their backends of the kind that computes most.
    Ranks(Vec<usize>),
    /// Backends that share the steps.
    Shared,
    /// One backend that does the work.
    Alone(usize),
    /// No backend computes.
    None,
}

impl Facts<'_> {
    /// Milliseconds of a settled step in which a backend computes.
    pub(crate) fn busy(&self, backend: usize) -> f64 {
        self.settled.mean(|at| self.rows[at].backends[backend][0])
    }

    /// The part of a settled step in which a backend computes.
    pub(crate) fn utilisation(&self, backend: usize) -> f64 {
        self.share_of_step(self.busy(backend))
    }

    /// The backend that computes most of those chosen.
    pub(crate) fn busiest(&self, of: impl IntoIterator<Item = usize>) -> Option<usize> {
        of.into_iter()
            .max_by(|a, b| self.busy(*a).total_cmp(&self.busy(*b)))
    }

    /// Whose idle time matters.
    pub(crate) fn focus(&self) -> Focus {
        let count = self.run.backends.len();
        if count == 0 {
            return Focus::None;
        }
        let both = |at: &usize| match self.rows[*at].share {
            Some(share) => share > 0.0 && share < 1.0,
            None => self.rows[*at].imbalance.is_some(),
        };
        let shared = self.settled.places(Part::Settled).filter(both).count();
        if 2 * shared >= self.settled.steps && self.run.shared_by.len() > 1 {
            return Focus::Shared;
        }
        let of_kind = |gpu: bool| -> Vec<usize> {
            let is = |at: &usize| {
                let name = &self.run.backends[*at];
                is_rank(name) && is_gpu(name) == gpu
            };
            (0..count).filter(is).collect()
        };
        let kinds = [of_kind(false), of_kind(true)];
        let busy = |kind: &Vec<usize>| kind.iter().map(|at| self.busy(*at)).sum::<f64>();
        if let Some(ranks) = (kinds.into_iter().filter(|kind| kind.len() > 1))
            .max_by(|a, b| busy(a).total_cmp(&busy(b)))
        {
            return Focus::Ranks(ranks);
        }
        // Where backends divide no work, the GPU is the one to keep busy; a policy that leaves the
        // work to the CPU has found the GPU slower.
        let decided = self.summary.shared_steps > 0 || self.summary.share.is_some();
        let device = (0..count).find(|at| self.run.backends[*at] != "cpu");
        match device.filter(|_| !decided).or(self.busiest(0..count)) {
            Some(backend) => Focus::Alone(backend),
            None => Focus::None,
        }
    }

    /// The part of a settled step that a time is.
    pub(crate) fn share_of_step(&self, ms: f64) -> f64 {
        ms / self.settled.ms.max(f64::MIN_POSITIVE)
    }
}

/// True for a backend of a rank.
fn is_rank(name: &str) -> bool {
    name.split_once(" gpu")
        .map_or(named(name), |(rank, _)| named(rank))
        .is_some()
}
