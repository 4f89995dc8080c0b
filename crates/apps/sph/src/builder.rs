//! Puts a simulation together and refuses what cannot run.

use nearfield_grid::memory::{Shortage, copied, filled, make_room, with_room};
use std::path::PathBuf;

use glam::Vec3;
use nearfield::prelude::Device;

use crate::{
    Config, Dimensions, Error, ErrorKind, Simulation, host::Request, matter::Matter,
    particles::Particles, walls::Walls,
};

/// A simulation in the making; see [`Simulation::builder`].
#[must_use]
pub struct SimulationBuilder {
    config: Config,
    fluid: Vec<Vec3>,
    velocity: Option<Vec<Vec3>>,
    walls: Walls,
    pressure: Box<dyn Fn(Vec3) -> f32>,
    device: Device,
    threads: usize,
    evidence: Option<PathBuf>,
    /// The first memory that was refused, which [`build`](Self::build) reports.
    shortage: Option<Shortage>,
}

impl Simulation {
    /// Starts the description of a simulation.
    pub fn builder(config: Config) -> SimulationBuilder {
        SimulationBuilder::new(config)
    }
}

impl SimulationBuilder {
    fn new(config: Config) -> Self {
        Self {
            config,
            fluid: Vec::new(),
            velocity: None,
            walls: Walls::default(),
            pressure: Box::new(|_| 0.0),
            device: Device::Auto,
            threads: 0,
            evidence: None,
            shortage: None,
        }
    }

    /// Adds fluid particles at these positions, metres; ids count up in the
    /// order of the calls.
    pub fn fluid(mut self, positions: &[Vec3]) -> Self {
        let len = self.fluid.len() + positions.len();
        match make_room(&mut self.fluid, len, "positions of particles") {
            Ok(()) => self.fluid.extend_from_slice(positions),
            Err(shortage) => self.note(shortage),
        }
        self
    }

    /// Sets the velocities of all fluid particles, m/s; at rest without.
    pub fn velocities(mut self, velocities: &[Vec3]) -> Self {
        match copied(velocities, "velocities of particles") {
            Ok(velocities) => self.velocity = Some(velocities),
            Err(shortage) => self.note(shortage),
        }
        self
    }

    /// Adds resting wall particles at these positions, metres, along which
    /// the fluid slips freely.
    pub fn walls(self, positions: &[Vec3]) -> Self {
        self.add_walls(positions, 0.0)
    }

    /// Adds resting wall particles at these positions, metres, which hold the
    /// fluid by [`Config::wall_friction`].
    pub fn rough_walls(self, positions: &[Vec3]) -> Self {
        self.add_walls(positions, 1.0)
    }

    fn add_walls(mut self, positions: &[Vec3], roughness: f32) -> Self {
        if let Err(shortage) = self.walls.add(positions, roughness) {
            self.note(shortage);
        }
        self
    }

    fn note(&mut self, shortage: Shortage) {
        self.shortage.get_or_insert(shortage);
    }

    /// Sets the initial pressure, Pa, as a function of position; zero without.
    pub fn pressure(mut self, pressure: impl Fn(Vec3) -> f32 + 'static) -> Self {
        self.pressure = Box::new(pressure);
        self
    }

    /// Starts in hydrostatic balance under a free surface that holds `surface`.
    pub fn hydrostatic(self, surface: Vec3) -> Self {
        let weight = self.config.density * self.config.gravity;
        self.pressure(move |x| weight.dot(x - surface))
    }

    /// Where the work is done; [`Device::Auto`] without. With [`Device::Gpu`] the
    /// particles live on the GPU, where every stage of a step runs, and are
    /// copied to the host when they are looked at.
    pub fn device(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// How many threads the neighbour engine may use; 0, the default, is all cores.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Where to write a frame of all particles (VTK PolyData, `.vtp`) when a
    /// lost particle ends the run; nowhere without.
    pub fn evidence(mut self, path: impl Into<PathBuf>) -> Self {
        self.evidence = Some(path.into());
        self
    }

    /// Builds the simulation and evaluates the first forces.
    ///
    /// # Errors
    /// When a number of the [`Config`] is out of range, the scene has no fluid
    /// or holds a coordinate that is not finite, a velocity is missing, the
    /// engine refuses the device, or memory was too short for the scene.
    pub fn build(mut self) -> Result<Simulation, Error> {
        if let Some(shortage) = self.shortage {
            return Err(shortage.into());
        }
        self.config.check()?;
        if self.fluid.is_empty() {
            return Err(ErrorKind::NoFluid.into());
        }
        let count = self.fluid.len();
        let velocity = match self.velocity.take() {
            Some(velocity) => velocity,
            None => filled(count, Vec3::ZERO, "velocities of particles")?,
        };
        if velocity.len() != count {
            let unequal = ErrorKind::VelocityCount {
                count: velocity.len(),
                particles: count,
            };
            return Err(unequal.into());
        }
        self.check_vectors("fluid", "position", "fluid particle", &self.fluid)?;
        self.check_vectors("fluid", "velocity", "velocity of fluid particle", &velocity)?;
        self.check_vectors("wall", "position", "wall particle", &self.walls.position)?;
        let water = self.config.water_state();
        let compress = |&x: &Vec3| water.compression((self.pressure)(x) / self.config.density);
        let mut compression = with_room(count, "densities of particles")?;
        compression.extend(self.fluid.iter().map(compress));
        let fluid = Particles::new(self.fluid, velocity, compression)?;
        let request = Request {
            device: self.device,
            threads: self.threads,
        };
        let matter = Matter {
            fluid,
            walls: self.walls,
        };
        Simulation::start(self.config, request, matter, self.evidence)
    }

    fn check_vectors(
        &self,
        set: &'static str,
        what: &'static str,
        culprit: &'static str,
        values: &[Vec3],
    ) -> Result<(), Error> {
        for (index, &value) in values.iter().enumerate() {
            if !value.is_finite() {
                let not_finite = ErrorKind::NotFinite {
                    what,
                    set,
                    index,
                    value,
                };
                return Err(not_finite.into());
            }
            if self.config.dimensions == Dimensions::Two && value.z != 0.0 {
                let off_plane = ErrorKind::OffPlane {
                    what: culprit,
                    index,
                    z: value.z,
                };
                return Err(off_plane.into());
            }
        }
        Ok(())
    }
}
