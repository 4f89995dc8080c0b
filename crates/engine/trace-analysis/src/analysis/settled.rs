//! The steps that a verdict is about: those after the policy settled, without exploration steps,
//! without the first steps while memory is new, and without single stalls.
//!
//! What those other steps cost is a finding of its own; averaged in, they would hide what a step
//! is like for the rest of a long run.

use super::{course::Course, statistics::median, summary::StepRow};

/// Steps at the beginning that may be cold.
const MAX_COLD: usize = 3;
/// A cold step takes longer than the median by this factor.
const COLD: f64 = 1.5;
/// A stall takes longer than the median by this factor.
const STALL: f64 = 3.0;
/// Fewest steps of which the usual ones are known.
const FEWEST: usize = 4;

/// What a step is to the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// It counts.
    Settled,
    /// Slow because it is among the first.
    Cold,
    /// Before the policy settled.
    Settling,
    /// To sample another split.
    Exploration,
    /// Much slower than most.
    Stall,
}

/// The parts of a run.
#[derive(Debug)]
pub(crate) struct Settled {
    /// Of every step.
    pub(crate) parts: Vec<Part>,
    /// Number of steps that count.
    pub(crate) steps: usize,
    /// Mean milliseconds of such a step.
    pub(crate) ms: f64,
}

impl Settled {
    /// Divides the steps; `course` is that of the share, or else of the threshold.
    pub(crate) fn of(rows: &[StepRow], course: Option<&Course>) -> Self {
        let mut parts = vec![Part::Settled; rows.len()];
        let settling = course.and_then(|course| course.settle_steps).unwrap_or(0);
        let mut known = 0;
        for (part, row) in parts.iter_mut().zip(rows) {
            if row.exploration {
                *part = Part::Exploration;
                continue;
            }
            let has = row.share.is_some() || row.theta.is_some();
            if has && known < settling {
                known += 1;
                *part = Part::Settling;
            }
        }
        let rest = || (0..rows.len()).filter(|at| parts[*at] == Part::Settled);
        let usual = median(rest().map(|at| rows[at].ms)).unwrap_or(0.0);
        if rest().count() >= FEWEST {
            let stalls: Vec<usize> = rest().filter(|at| rows[*at].ms > STALL * usual).collect();
            stalls.into_iter().for_each(|at| parts[at] = Part::Stall);
            // A step before the policy settled is cold only if it is slow among those, too.
            let cold = |at: &usize| match parts[*at] {
                Part::Exploration => false,
                Part::Settling => rows[*at].ms > COLD * rows[at + 1].ms.max(usual),
                _ => rows[*at].ms > COLD * usual,
            };
            let count = (0..MAX_COLD).take_while(cold).count();
            parts[..count].fill(Part::Cold);
        }
        let mut settled = Self {
            parts,
            steps: 0,
            ms: 0.0,
        };
        settled.steps = settled.places(Part::Settled).count();
        if settled.steps == 0 {
            settled.parts.fill(Part::Settled);
            settled.steps = rows.len();
        }
        settled.ms = settled.mean(|at| rows[at].ms);
        settled
    }

    /// The steps of a part.
    pub(crate) fn places(&self, part: Part) -> impl Iterator<Item = usize> {
        (0..self.parts.len()).filter(move |at| self.parts[*at] == part)
    }

    /// The mean over the steps that count.
    pub(crate) fn mean(&self, of: impl Fn(usize) -> f64) -> f64 {
        self.places(Part::Settled).map(of).sum::<f64>() / self.steps.max(1) as f64
    }
}
