//! Tells a stall from a change of speed, for the policies that fit no model.
//!
//! On a shared machine a step may take twice as long because another program ran for a moment. A
//! policy that followed it would move work to and fro. So a step that is off what its backend took
//! before by more than half is doubted once and ignored; if the next step is off too, the backend
//! has changed, and the past is forgotten.
//!
//! A backend that was given more work takes longer, at most in proportion, because some of its time
//! does not depend on the work. What a probe of a single brick took therefore says that a hundred
//! bricks take between as long and a hundred times as long, and only a step beyond that is off.

use crate::{Backend, Plan, StepTimes};
use std::collections::VecDeque;

/// Steps remembered.
const MEMORY: usize = 5;
/// Beyond this factor a step is doubted.
const DOUBT: f64 = 1.5;

/// What both backends took per pair in the last steps that were believed.
///
/// A median of five, so that two odd steps do not move it.
#[derive(Debug, Clone, Default)]
pub(super) struct Speeds {
    backends: [Speed; 2],
}

/// What one backend took per pair.
#[derive(Debug, Clone, Default)]
struct Speed {
    /// Milliseconds per pair of the last steps that were believed.
    recent: VecDeque<f64>,
    /// Pairs of the last of them.
    work: f64,
    /// The last step was doubted.
    doubted: bool,
    /// The last step confirmed a doubt.
    changed: bool,
}

impl Speeds {
    /// Takes a step in. Says so when a backend took so much longer or shorter than before that the
    /// step should be ignored; if the next one is off too, the backend has changed and the past is
    /// forgotten.
    ///
    /// Backends that had no work are passed over, so a backend that pauses keeps its median.
    pub(super) fn doubt(&mut self, plan: &Plan, times: &StepTimes) -> Option<String> {
        let mut doubt = None;
        for (backend, ms) in [
            (Backend::Cpu, times.cpu_ms()),
            (Backend::Gpu, times.gpu_ms()),
        ] {
            let work = plan.load(backend).work() as f64;
            if work == 0.0 || ms == 0.0 {
                continue;
            }
            if let Some(factor) = self.backends[backend as usize].doubt(work, ms) {
                let name = backend.name();
                doubt = Some(format!(
                    "the {name} took {factor:.2} times as long as before for its work: once is \
                     ignored"
                ));
            }
        }
        doubt
    }

    /// Whether the last step has shown that a backend has changed.
    pub(super) fn changed(&self) -> bool {
        self.backends.iter().any(|speed| speed.changed)
    }

    /// Median milliseconds per pair of a backend, if it has worked.
    pub(super) fn ms_per_pair(&self, backend: Backend) -> Option<f64> {
        median(self.backends[backend as usize].recent.iter().copied())
    }
}

impl Speed {
    /// Takes a step in, or doubts it: how many times as long it took as was to be expected.
    fn doubt(&mut self, work: f64, ms: f64) -> Option<f64> {
        let factor = self.off(work, ms);
        let off = !(1.0 / DOUBT..=DOUBT).contains(&factor);
        self.changed = off && self.doubted;
        if off && !self.doubted {
            self.doubted = true;
            return Some(factor);
        }
        // A median of steps with other work would say little about this one.
        let grown = self.work.max(work) > DOUBT * self.work.min(work);
        if off || grown {
            self.recent.clear();
        }
        self.doubted = false;
        self.work = work;
        self.recent.push_back(ms / work);
        if self.recent.len() > MEMORY {
            self.recent.pop_front();
        }
        None
    }

    /// How many times as long a step took as was to be expected: anything between as long as before
    /// and in proportion to the work. It is 1 if there is nothing to compare with.
    fn off(&self, work: f64, ms: f64) -> f64 {
        let Some(usual) = median(self.recent.iter().copied()) else {
            return 1.0;
        };
        let (least, most) = (usual * self.work.min(work), usual * self.work.max(work));
        if ms < least {
            ms / least
        } else {
            (ms / most).max(1.0)
        }
    }
}

/// The middle value, or the mean of the two in the middle; None without values.
pub(super) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}
