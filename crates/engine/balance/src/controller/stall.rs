//! Tells a stall from a change of speed, for the policies that fit no model.
//!
//! On a shared machine a step may take twice as long because another program ran for a moment. A
//! policy that followed it would move work to and fro. So a step whose speed is off its median by
//! more than half is doubted once and ignored; if the next step is off too, the backend has
//! changed, and the past is forgotten.

use crate::{Backend, Plan, StepTimes};
use std::collections::VecDeque;

/// Steps remembered.
const MEMORY: usize = 5;
/// Beyond this factor a step is doubted.
const DOUBT: f64 = 1.5;

/// Milliseconds per pair of both backends in the last steps that were believed.
///
/// A median of five, so that two odd steps do not move it.
#[derive(Debug, Clone, Default)]
pub(super) struct Speeds {
    /// Milliseconds per pair of the last steps that were believed, by backend.
    recent: [VecDeque<f64>; 2],
    /// The last step of a backend was doubted.
    doubted: [bool; 2],
}

impl Speeds {
    /// Takes a step in. Says so when a backend's speed is so far from its median that the step
    /// should be ignored; if the next one is off too, the backend has changed and the past is
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
            let speed = ms / work;
            let (recent, doubted) = (
                &mut self.recent[backend as usize],
                &mut self.doubted[backend as usize],
            );
            let usual = median(recent.iter().copied());
            let factor = usual.map_or(1.0, |usual| speed / usual);
            let off = !(1.0 / DOUBT..=DOUBT).contains(&factor);
            if off && !*doubted {
                *doubted = true;
                doubt = Some(format!(
                    "the {backend:?} backend took {factor:.2} times its median per pair: once is ignored"
                ));
                continue;
            }
            if off {
                recent.clear();
            }
            *doubted = false;
            recent.push_back(speed);
            if recent.len() > MEMORY {
                recent.pop_front();
            }
        }
        doubt
    }

    /// Median milliseconds per pair of a backend, if it has worked.
    pub(super) fn ms_per_pair(&self, backend: Backend) -> Option<f64> {
        median(self.recent[backend as usize].iter().copied())
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
