//! What a run of `nearfield gravity` reports.

use crate::output;
use nearfield_grid::Value;
use nearfield_nbody::Energy;
use serde::Serialize;
use std::path::PathBuf;

#[derive(Debug, Serialize)]
pub(super) struct Summary {
    pub(super) bodies: usize,
    pub(super) steps: u64,
    pub(super) first_step: u64,
    pub(super) time: f64,
    pub(super) dt: f64,
    pub(super) softening: f64,
    pub(super) integrator: String,
    pub(super) precision: &'static str,
    pub(super) exact: bool,
    pub(super) device: String,
    pub(super) reason: String,
    pub(super) energy_before: Energies,
    pub(super) energy_after: Energies,
    pub(super) energy_change: f64,
    pub(super) momentum_before: [f64; 3],
    pub(super) momentum_after: [f64; 3],
    pub(super) seconds: f64,
    pub(super) interactions_per_second: f64,
    pub(super) frames: usize,
    pub(super) output: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
pub(super) struct Energies {
    pub(super) kinetic: f64,
    pub(super) potential: f64,
    pub(super) total: f64,
}

impl From<Energy> for Energies {
    fn from(energy: Energy) -> Self {
        Self {
            kinetic: energy.kinetic,
            potential: energy.potential,
            total: energy.total(),
        }
    }
}

impl Summary {
    /// The lines that are printed, and what was written.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        let written = self.output.iter().map(|folder| output::wrote(folder));
        let lines = [
            format!("bodies      {}, in {}", self.bodies, self.precision),
            format!(
                "steps       {} of {}, to t = {} ({})",
                self.steps,
                Value::from(self.dt),
                Value::from(self.time),
                self.integrator
            ),
            format!(
                "energy      {} before, {} after: a change of {:.2e}",
                digits(self.energy_before.total),
                digits(self.energy_after.total),
                self.energy_change
            ),
            format!(
                "time        {:.3} s, {:.3e} interactions a second on {} ({})",
                self.seconds,
                self.interactions_per_second,
                self.device,
                output::brief(&self.reason)
            ),
        ];
        lines.into_iter().chain(written)
    }
}

/// Nine digits behind the point, or behind the first where the number is very small or large.
fn digits(number: f64) -> String {
    if number == 0.0 || (1e-4..1e9).contains(&number.abs()) {
        format!("{number:.9}")
    } else {
        format!("{number:.9e}")
    }
}

/// The change of an energy relative to it; 0 if nothing changed, even for an energy of 0.
pub(super) fn relative(change: f64, of: f64) -> f64 {
    if change == 0.0 {
        0.0
    } else {
        change / of.abs()
    }
}
