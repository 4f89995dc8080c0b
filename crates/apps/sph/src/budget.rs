//! Where mass, momentum and energy are, and where they went.
//!
//! All sums are in double precision. The energy budget counts what the fluid
//! has (kinetic, potential, internal), what it lost for good (to viscosity,
//! to density diffusion and to rough walls) and what the walls gave it; what remains is the error
//! of the time step. Momentum likewise: what the fluid has against the impulse
//! that gravity and walls gave it.

use glam::DVec3;

use crate::{Config, particles::Particles};

/// The energy of the fluid and its history since the start, joules (in the
/// plane: per metre of depth).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Energy {
    /// ½ Σ m v².
    pub kinetic: f64,
    /// −Σ m g·x, measured from the origin.
    pub potential: f64,
    /// Energy of compression, Σ m ∫ p/ρ² dρ.
    pub internal: f64,
    /// Lost to viscosity so far; never shrinks.
    pub viscous_loss: f64,
    /// Lost to density diffusion so far.
    pub diffusion_loss: f64,
    /// Lost to friction at rough walls so far; never shrinks.
    pub friction_loss: f64,
    /// Given to the fluid by the pressure of the walls so far. Wall particles rest, but their
    /// extrapolated pressure works on fluid that approaches or leaves them.
    pub wall_work: f64,
}

impl Energy {
    /// Energy of the fluid: kinetic, potential and internal.
    #[must_use]
    pub fn mechanical(&self) -> f64 {
        self.kinetic + self.potential + self.internal
    }

    /// The sum that is conserved but for the error of the time step: the mechanical
    /// energy with the losses added and the work of the walls taken off.
    #[must_use]
    pub fn total(&self) -> f64 {
        let lost = self.viscous_loss + self.diffusion_loss + self.friction_loss;
        self.mechanical() + lost - self.wall_work
    }
}

/// The momentum of the fluid and the impulses it received since the start,
/// kg·m/s (in the plane: per metre of depth).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Momentum {
    /// Σ m v now.
    pub fluid: DVec3,
    /// Σ m v at the start.
    pub initial: DVec3,
    /// Impulse of gravity so far.
    pub gravity: DVec3,
    /// Impulse of the walls so far.
    pub walls: DVec3,
}

impl Momentum {
    /// Momentum that is not accounted for: zero but for rounding, because forces
    /// between fluid particles cancel.
    #[must_use]
    pub fn residual(&self) -> DVec3 {
        self.fluid - self.initial - self.gravity - self.walls
    }
}

/// The running sums behind [`Energy`] and [`Momentum`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) initial_momentum: DVec3,
    pub(crate) viscous_loss: f64,
    pub(crate) diffusion_loss: f64,
    pub(crate) friction_loss: f64,
    pub(crate) wall_work: f64,
    pub(crate) gravity_impulse: DVec3,
    pub(crate) wall_impulse: DVec3,
}

impl Ledger {
    /// The ledger of a fluid at its start.
    pub(crate) fn open(config: &Config, particles: &Particles) -> Self {
        Self {
            initial_momentum: config.particle_mass() * Sums::of(config, particles).momentum,
            ..Self::default()
        }
    }

    /// The energies now.
    pub(crate) fn energy(&self, config: &Config, sums: &Sums) -> Energy {
        let mass = config.particle_mass();
        Energy {
            kinetic: 0.5 * mass * sums.squares,
            potential: -mass * sums.heights,
            internal: mass * sums.internal,
            viscous_loss: self.viscous_loss,
            diffusion_loss: self.diffusion_loss,
            friction_loss: self.friction_loss,
            wall_work: self.wall_work,
        }
    }

    /// The momenta now.
    pub(crate) fn momentum(&self, config: &Config, sums: &Sums) -> Momentum {
        Momentum {
            fluid: config.particle_mass() * sums.momentum,
            initial: self.initial_momentum,
            gravity: self.gravity_impulse,
            walls: self.wall_impulse,
        }
    }
}

/// Sums over the fluid behind its energies and its momentum, for each unit of mass.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sums {
    /// Σ v².
    pub(crate) squares: f64,
    /// Σ g·x.
    pub(crate) heights: f64,
    /// Σ ∫ p/ρ² dρ.
    pub(crate) internal: f64,
    /// Σ v.
    pub(crate) momentum: DVec3,
}

impl Sums {
    /// Those of particles in the host's memory.
    pub(crate) fn of(config: &Config, particles: &Particles) -> Self {
        let water = config.water_state();
        let gravity = config.gravity.as_dvec3();
        let velocities = || particles.velocity.iter().map(|v| v.as_dvec3());
        let heights = particles.position.iter().map(|x| gravity.dot(x.as_dvec3()));
        let compressions = particles.compression.iter();
        Self {
            squares: velocities().map(|v| v.length_squared()).sum(),
            heights: heights.sum(),
            internal: compressions.map(|&s| water.internal_energy(s)).sum(),
            momentum: velocities().sum(),
        }
    }
}
