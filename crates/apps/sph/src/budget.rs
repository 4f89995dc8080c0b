//! Budgets of mass, momentum and energy.
//!
//! All sums are in double precision. The energy budget has the energy of the fluid (kinetic,
//! potential, internal), the energy that it has lost (to viscosity, density diffusion and rough
//! walls), and the energy that the walls gave it; the residual is the error of the time step. The
//! momentum budget compares the momentum of the fluid with the impulse of gravity and walls.

use glam::DVec3;

use crate::Config;

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
    /// All its numbers, for a file.
    pub(crate) fn numbers(&self) -> [f64; 13] {
        let ([px, py, pz], [gx, gy, gz], [wx, wy, wz]) = (
            self.initial_momentum.to_array(),
            self.gravity_impulse.to_array(),
            self.wall_impulse.to_array(),
        );
        let losses = [self.viscous_loss, self.diffusion_loss, self.friction_loss];
        let [viscous, diffusion, friction] = losses;
        let work = self.wall_work;
        [
            px, py, pz, viscous, diffusion, friction, work, gx, gy, gz, wx, wy, wz,
        ]
    }

    /// The ledger of these numbers.
    pub(crate) fn of(numbers: [f64; 13]) -> Self {
        let [
            px,
            py,
            pz,
            viscous_loss,
            diffusion_loss,
            friction_loss,
            wall_work,
            rest @ ..,
        ] = numbers;
        let [gx, gy, gz, wx, wy, wz] = rest;
        Self {
            initial_momentum: DVec3::new(px, py, pz),
            viscous_loss,
            diffusion_loss,
            friction_loss,
            wall_work,
            gravity_impulse: DVec3::new(gx, gy, gz),
            wall_impulse: DVec3::new(wx, wy, wz),
        }
    }

    /// The ledger of a fluid at its start, with this momentum for each unit of mass.
    pub(crate) fn open(config: &Config, momentum: DVec3) -> Self {
        Self {
            initial_momentum: config.particle_mass() * momentum,
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
