//! The contributions of a step to the budgets, wherever it was computed.

use glam::DVec3;

use crate::{Config, budget::Ledger};

/// Sums over the fluid of a change of velocities, per unit of mass and time, and the fastest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Kick {
    /// Heating by viscosity, W/kg.
    pub(crate) viscous: f64,
    /// Heating by friction at rough walls.
    pub(crate) rubbed: f64,
    /// Work of the walls at the velocity in the middle of the kick.
    pub(crate) work: f64,
    /// Accelerations by the walls, m/s².
    pub(crate) wall_force: DVec3,
    /// Largest speed after the kick, m/s.
    pub(crate) max_speed: f64,
    /// Largest acceleration, m/s².
    pub(crate) max_acceleration: f64,
}

/// Sums over the fluid of a change of compressions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Compression {
    /// Lost to density diffusion, W/kg.
    pub(crate) diffused: f64,
    /// Work of the walls.
    pub(crate) work: f64,
}

/// A whole step: half a kick, a drift with its compression, and the other half.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Advance {
    pub(crate) first: Kick,
    pub(crate) compression: Compression,
    pub(crate) second: Kick,
}

impl Ledger {
    /// Books a step of `dt` seconds of fluid of this mass, kg.
    pub(crate) fn book(&mut self, config: &Config, mass: f64, dt: f64, step: &Advance) {
        let particle = config.particle_mass();
        for kick in [&step.first, &step.second] {
            let half = 0.5 * dt;
            self.viscous_loss += particle * half * kick.viscous;
            self.friction_loss += particle * half * kick.rubbed;
            self.wall_work += particle * half * (kick.work + kick.rubbed);
            self.wall_impulse += half * particle * kick.wall_force;
            self.gravity_impulse += half * mass * config.gravity.as_dvec3();
        }
        self.diffusion_loss += particle * dt * step.compression.diffused;
        self.wall_work += particle * dt * step.compression.work;
    }
}
