//! The sweep on real lanes.

use super::{Combination, Task};
use crate::failure::Failure;

/// Sweeps thresholds and runs the policies on the CPU lane and the GPU with this number together:
/// one [`Combination`] per pair of [`Task::combinations`].
pub(super) fn run(task: &Task, number: u32) -> Result<Vec<Combination>, Failure> {
    // HYBRID: to be replaced by the run on both lanes.
    Err(Failure::Tune(format!(
        "device hybrid:{number} is not available for {} points on {} threads: both lanes do not work \
         on one step in this build; use emulated[:KEY=VALUE,…]",
        task.positions.len(),
        task.threads
    )))
}
