//! The parameters of a simulation, their defaults and their limits.

use glam::Vec3;

use crate::{Dimensions, Domain, Error, ErrorKind, Tait, Wendland};

/// The physics and the numerics of a simulation.
///
/// [`Config::water`] gives values that suit a violent free-surface flow; every
/// field may be changed before it goes to [`Simulation::builder`].
///
/// [`Simulation::builder`]: crate::Simulation::builder
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Plane or space.
    pub dimensions: Dimensions,
    /// Distance of neighbouring particles at rest, metres. A particle has the
    /// mass ρ₀·spacing² (per metre of depth) or ρ₀·spacing³.
    pub spacing: f32,
    /// Smoothing length over spacing; the neighbour radius is twice the
    /// smoothing length. 1.25 gives about 20 neighbours in the plane and 80 in
    /// space.
    pub smoothing: f32,
    /// Rest density ρ₀, kg/m³.
    pub density: f32,
    /// Gravity, m/s².
    pub gravity: Vec3,
    /// Artificial sound speed c₀, m/s. Densities vary by about (v/c₀)², so ten
    /// times the fastest flow keeps them within one percent; steps get shorter
    /// in proportion.
    pub sound_speed: f32,
    /// Artificial viscosity α (Monaghan 1992): 0 for none; 0.01 to 0.1 is usual.
    pub viscosity: f32,
    /// Friction of rough walls: the α of the viscosity with which they hold
    /// the fluid. Along all other walls it slips freely.
    pub wall_friction: f32,
    /// Density diffusion δ (Molteni & Colagrossi 2009): 0 for none; 0.1 is usual.
    pub diffusion: f32,
    /// Courant number of the time step: Δt ≤ Courant · h/(c₀ + v).
    pub courant: f64,
    /// Steps between two sorts of the particle arrays into spatial order, for
    /// locality; 0 never sorts.
    pub sort_every: u64,
    /// The box that no particle may leave.
    pub domain: Domain,
}

impl Config {
    /// Water at the given spacing (metres) under gravity 9.81 m/s² downwards
    /// (along −y in the plane, −z in space), for flows driven by a water depth
    /// of `depth` metres: c₀ = 10·√(g·depth).
    #[must_use]
    pub fn water(dimensions: Dimensions, spacing: f32, depth: f32) -> Self {
        let gravity = 9.81;
        Self {
            dimensions,
            spacing,
            smoothing: 1.25,
            density: 1000.0,
            gravity: -gravity * dimensions.up(),
            sound_speed: 10.0 * (gravity * depth).sqrt(),
            viscosity: 0.05,
            wall_friction: 0.05,
            diffusion: 0.1,
            courant: 0.9,
            sort_every: 100,
            domain: Domain::UNBOUNDED,
        }
    }

    /// Smoothing length h, metres.
    #[must_use]
    pub fn smoothing_length(&self) -> f32 {
        self.smoothing * self.spacing
    }

    /// Volume of a particle at rest, m² or m³.
    #[must_use]
    pub fn particle_volume(&self) -> f32 {
        self.spacing.powi(self.dimensions.count() as i32)
    }

    /// Mass of a particle, kg (in the plane: per metre of depth). All
    /// particles have the same, and it never changes.
    #[must_use]
    pub fn particle_mass(&self) -> f64 {
        f64::from(self.density) * f64::from(self.spacing).powi(self.dimensions.count() as i32)
    }

    /// The kinematic viscosity that an artificial viscosity α stands for,
    /// m²/s: ν = α c₀ h/(2(d + 2)) in d dimensions (J. J. Monaghan 2005,
    /// DOI 10.1088/0034-4885/68/8/R01).
    #[must_use]
    pub fn kinematic_viscosity(&self, alpha: f32) -> f64 {
        let length = f64::from(self.smoothing_length());
        let sound = f64::from(self.sound_speed);
        f64::from(alpha) * sound * length / f64::from(2 * (self.dimensions.count() + 2))
    }

    /// The smoothing kernel.
    #[must_use]
    pub fn kernel(&self) -> Wendland {
        Wendland::new(self.dimensions, self.smoothing_length())
    }

    /// `−Σ V x ∂W/∂x` over the particles of the lattice: 1 for an integral, but the sum over a few
    /// particles is off, by −3.3 % in the plane and −2.1 % in space at a smoothing of 1.25. The
    /// solver divides gradients of the kernel by it. Undivided, water at rest would need a pressure
    /// gradient larger than its weight by as much.
    #[must_use]
    pub fn lattice_moment(&self) -> f32 {
        let kernel = Wendland::new(self.dimensions, self.smoothing);
        let reach = (2.0 * self.smoothing).ceil() as i32;
        let depth = match self.dimensions {
            Dimensions::Two => 0,
            Dimensions::Three => reach,
        };
        let mut sum = 0.0;
        for z in -depth..=depth {
            for y in -reach..=reach {
                for x in -reach..=reach {
                    let d2 = (x * x + y * y + z * z) as f32;
                    sum -= f64::from(kernel.gradient_factor(d2)) * f64::from(x * x);
                }
            }
        }
        sum as f32
    }

    /// The equation of state.
    #[must_use]
    pub fn water_state(&self) -> Tait {
        Tait::new(self.density, self.sound_speed)
    }

    /// Refuses numbers no simulation can run with.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let positive = [
            ("spacing", self.spacing),
            ("density", self.density),
            ("sound_speed", self.sound_speed),
            ("courant", self.courant as f32),
        ];
        for (name, value) in positive {
            require(name, value, value > 0.0, "finite and positive")?;
        }
        let damping = [
            ("viscosity", self.viscosity),
            ("wall_friction", self.wall_friction),
            ("diffusion", self.diffusion),
        ];
        for (name, value) in damping {
            require(name, value, value >= 0.0, "finite and not negative")?;
        }
        let smoothing = self.smoothing;
        require(
            "smoothing",
            smoothing,
            (1.0..=3.0).contains(&smoothing),
            "between 1 and 3",
        )?;
        for value in self.gravity.to_array() {
            require("gravity", value, true, "finite")?;
        }
        match self.dimensions {
            Dimensions::Two if self.gravity.z != 0.0 => {
                let off_plane = ErrorKind::OffPlane {
                    what: "gravity component",
                    index: 2,
                    z: self.gravity.z,
                };
                Err(off_plane.into())
            }
            _ => Ok(()),
        }
    }
}

fn require(name: &'static str, value: f32, holds: bool, wanted: &'static str) -> Result<(), Error> {
    if holds && value.is_finite() {
        return Ok(());
    }
    let out_of_range = ErrorKind::Setting {
        name,
        value: f64::from(value),
        wanted,
    };
    Err(out_of_range.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plane() -> Config {
        Config::water(Dimensions::Two, 0.1, 1.0)
    }

    #[test]
    fn the_defaults_pass() {
        assert!(plane().check().is_ok());
        assert!(Config::water(Dimensions::Three, 0.1, 1.0).check().is_ok());
    }

    #[test]
    fn the_moment_of_a_lattice_is_one_once_the_kernel_is_wide() {
        let moment = |dimensions, smoothing| {
            let config = Config::water(dimensions, 0.01, 1.0);
            Config {
                smoothing,
                ..config
            }
            .lattice_moment()
        };
        assert!((moment(Dimensions::Two, 1.25) - 0.9665).abs() < 1e-4);
        assert!((moment(Dimensions::Three, 1.25) - 0.9793).abs() < 1e-4);
        assert!((moment(Dimensions::Two, 3.0) - 1.0).abs() < 1e-3);
        assert!((moment(Dimensions::Three, 3.0) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn a_bad_number_is_refused_by_name() {
        let refused = Config {
            spacing: f32::NAN,
            ..plane()
        }
        .check()
        .unwrap_err()
        .to_string();
        assert!(refused.contains("spacing is NaN"), "{refused}");
        let refused = Config {
            smoothing: 0.4,
            ..plane()
        }
        .check()
        .unwrap_err()
        .to_string();
        assert!(refused.contains("between 1 and 3"), "{refused}");
        let refused = Config {
            viscosity: -1.0,
            ..plane()
        }
        .check()
        .unwrap_err()
        .to_string();
        assert!(refused.contains("viscosity is -1"), "{refused}");
    }

    #[test]
    fn gravity_out_of_the_plane_is_refused() {
        let tilted = Config {
            gravity: Vec3::new(0.0, 0.0, -9.81),
            ..plane()
        };
        let error = tilted.check().unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::OffPlane { index: 2, .. }),
            "{error}"
        );
    }
}
