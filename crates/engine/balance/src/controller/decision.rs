//! What a policy answers after a step: cuts for the next one, and why.

use crate::{Cut, Layout};

/// What a decision is.
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
    /// One step aside to learn something; the next decision goes back.
    Explore,
    /// The GPU gets less or nothing because it failed.
    Fault,
}

/// Thresholds for the next step.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// One cut per subregion.
    pub cuts: Vec<Cut>,
    /// What kind of decision it is.
    pub action: Action,
    /// Why, in words, with the numbers.
    pub reason: String,
}

impl Decision {
    pub(super) fn new(cuts: Vec<Cut>, action: Action, reason: String) -> Self {
        Self {
            cuts,
            action,
            reason,
        }
    }
}

/// The last cuts, for as many subregions as there are now.
pub(super) fn carried(layout: &Layout, last: &[Cut]) -> Vec<Cut> {
    let count = layout.subregions().len();
    (0..count)
        .map(|subregion| match last.len() {
            0 => Cut::NONE,
            before => last[(subregion * before / count).min(before - 1)],
        })
        .collect()
}
