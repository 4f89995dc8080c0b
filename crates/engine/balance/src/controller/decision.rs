//! The answer of a policy after a step: cuts for the next one, and why.
//!
//! Every decision carries its reason in words with the measured and predicted numbers, because a
//! user who sees an odd split wants to know which measurement caused it. The words go to traces
//! and reports and are never parsed.
//!
//! **Invariant:** a decision is complete: applying its cuts needs no state of the policy.

use crate::{Cut, Layout};

/// The kind of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The first thresholds, chosen to learn from.
    Start,
    /// As before.
    Keep,
    /// As before, until the next step confirms or refutes what the last one seemed to show.
    Wait,
    /// New thresholds.
    Move,
    /// An exploration step: θ differs from the settled value for one step, to sample another split.
    /// The next decision goes back.
    Explore,
    /// The GPU gets less or nothing because it failed.
    Fault,
}

/// Thresholds for the next step.
///
/// The number of cuts is that of the layout's subregions.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// One cut per subregion.
    pub cuts: Vec<Cut>,
    /// The kind of the decision.
    pub action: Action,
    /// Why, in words, with the numbers.
    pub reason: String,
}

impl Decision {
    /// A decision with its reason.
    pub(super) fn new(cuts: Vec<Cut>, action: Action, reason: String) -> Self {
        Self {
            cuts,
            action,
            reason,
        }
    }
}

/// The last cuts, for as many subregions as there are now: each takes the cut of the one at the
/// corresponding place.
pub(super) fn carried(layout: &Layout, last: &[Cut]) -> Vec<Cut> {
    let count = layout.subregions().len();
    (0..count)
        .map(|subregion| match last.len() {
            0 => Cut::NONE,
            before => last[(subregion * before / count).min(before - 1)],
        })
        .collect()
}
