//! Observables of a system, and the change of its energy, which should be constant.

use crate::{Error, ErrorKind, Evaluation};

/// A system at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Observation {
    /// Steps since the start.
    pub step: u64,
    /// Time since the start.
    pub time: f64,
    /// Energy of all pairs.
    pub potential: f64,
    /// Σ m·v²/2.
    pub kinetic: f64,
    /// Virial of all pairs, −Σ r·dU/dr.
    pub virial: f64,
    /// 2K/(3N − 3), with k = 1.
    pub temperature: f64,
    /// Σ m·v.
    pub momentum: [f64; 3],
}

/// Sums over the current atoms, on the host or a GPU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AtomSums {
    pub(crate) pairs: Evaluation,
    /// Σ m·v²/2.
    pub(crate) kinetic: f64,
    /// Σ m·v.
    pub(crate) momentum: [f64; 3],
}

impl Observation {
    /// Potential and kinetic energy together.
    pub fn total(&self) -> f64 {
        self.potential + self.kinetic
    }
}

/// Tells a run that has blown up from one that keeps its energy.
///
/// The energy may wander by as much as there is of it, kinetic and potential, and by the depth of a
/// well per atom: more is not the error of a step but the end of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EnergyGuard {
    first: f64,
    room: f64,
}

impl EnergyGuard {
    /// For a run that begins with `seen`, of `atoms` atoms in wells of at most `depth`.
    pub fn new(seen: &Observation, atoms: usize, depth: f64) -> Self {
        Self {
            first: seen.total(),
            room: seen.kinetic.abs() + seen.potential.abs() + depth * atoms as f64,
        }
    }

    /// Refuses a system whose total energy is not a number or far from the first.
    ///
    /// # Errors
    /// [`ErrorKind::Diverged`].
    pub fn check(&self, seen: &Observation) -> Result<(), Error> {
        let near = (seen.total() - self.first).abs() <= self.room;
        self.unless(near, seen.step, seen.total())
    }

    /// The same by the potential energy alone, which costs nothing to know: it can be no larger
    /// than the total.
    ///
    /// # Errors
    /// [`ErrorKind::Diverged`].
    pub fn check_potential(&self, step: u64, potential: f64) -> Result<(), Error> {
        self.unless(potential - self.first <= self.room, step, potential)
    }

    fn unless(&self, good: bool, step: u64, energy: f64) -> Result<(), Error> {
        if good {
            return Ok(());
        }
        Err(ErrorKind::Diverged {
            step,
            energy,
            first: self.first,
        }
        .into())
    }
}

/// The trend of the total energy: a straight line fitted to the observations.
#[derive(Debug, Clone, Copy, Default)]
pub struct Drift {
    first: Option<(f64, f64)>,
    count: f64,
    time: f64,
    energy: f64,
    time_time: f64,
    time_energy: f64,
    most: f64,
}

impl Drift {
    /// Takes an observation.
    pub fn take(&mut self, seen: &Observation) {
        let (time0, energy0) = *self.first.get_or_insert((seen.time, seen.total()));
        // From the first on, so that large numbers do not swallow small changes.
        let (time, energy) = (seen.time - time0, seen.total() - energy0);
        self.count += 1.0;
        self.time += time;
        self.energy += energy;
        self.time_time += time * time;
        self.time_energy += time * energy;
        self.most = self.most.max(energy.abs());
    }

    /// The first energy; NaN before one was seen.
    pub(crate) fn first(&self) -> f64 {
        self.first.map_or(f64::NAN, |(_, energy)| energy)
    }

    /// Energy per time by least squares; 0 before two moments were seen.
    pub fn slope(&self) -> f64 {
        let spread = self.count * self.time_time - self.time * self.time;
        if spread > 0.0 {
            (self.count * self.time_energy - self.time * self.energy) / spread
        } else {
            0.0
        }
    }

    /// The largest distance from the first energy.
    pub fn most(&self) -> f64 {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drift_is_the_slope_through_what_was_seen() {
        let mut drift = Drift::default();
        assert_eq!(drift.slope(), 0.0);
        for (step, wobble) in [1.0, -1.0, -1.0, 1.0].into_iter().enumerate() {
            drift.take(&Observation {
                time: 5.0 + step as f64,
                potential: 1e6,
                kinetic: 0.25 * step as f64 + 0.01 * wobble,
                ..Observation::default()
            });
        }
        assert!((drift.slope() - 0.25).abs() < 1e-9, "{}", drift.slope());
        assert!((drift.most() - 0.75).abs() < 1e-6);
    }
}
