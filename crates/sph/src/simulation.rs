//! A fluid in motion: what there is, and how a step advances it.
//!
//! A step kicks the velocities by half a step, lets the positions drift,
//! compresses the fluid by the motion over exactly that drift, and makes the
//! second half kick with the forces at the new positions. Apart from viscosity
//! and diffusion that is reversible. It takes one search and five traversals;
//! sound waves stay stable up to a Courant number of about 1.8 (0.4 in the
//! usual schemes with one traversal for everything), which is why the
//! compression has a traversal of its own.

use std::path::{Path, PathBuf};

use glam::{DVec3, Vec3};
use nearfield_io::{PointData, VtpWriter};

use crate::budget::{Energy, Ledger, Momentum};
use crate::guard::Watch;
use crate::particles::Particles;
use crate::passes::{Continuity, Extrapolation, Forces, WallContinuity, WallForces};
use crate::search::Search;
use crate::time_step::stable_step;
use crate::walls::Walls;
use crate::{Config, Error, SimulationBuilder};

/// The least compression a particle may have. Stretched water has no pressure;
/// letting spray get ever thinner would only make it blind to the walls and
/// the water it falls on, whose first touch must already push it back.
const MOST_STRETCHED: f32 = -0.05;

/// Distance from a wall particle, in spacings, below which the contact
/// pressure begins. Fluid at rest stays a whole spacing away.
const CONTACT_DISTANCE: f32 = 0.75;

/// Contact pressure over ρ₀c₀²; enough to turn a particle of a tenth of the
/// sound speed.
const CONTACT_PRESSURE: f32 = 0.3;

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// Steps done so far, this one included.
    pub step: u64,
    /// Simulated time at the end of the step, seconds.
    pub time: f64,
    /// Length of the step, seconds.
    pub dt: f64,
    /// Speed of the fastest particle, m/s.
    pub max_speed: f64,
    /// Force of the walls on the fluid, newtons (in the plane: per metre of depth).
    pub wall_force: DVec3,
}

/// A fluid in motion.
///
/// ```
/// use nearfield_sph::{Config, Dimensions, Simulation, scene, scene::Top};
///
/// let config = Config::water(Dimensions::Two, 0.1, 0.5);
/// let mut simulation = Simulation::builder(config)
///     .fluid(&scene::block(Dimensions::Two, [0, 0, 0], [10, 5, 0], 0.1))
///     .walls(&scene::tank(Dimensions::Two, [10, 8, 0], Top::Open, (3, 0.1)))
///     .hydrostatic([0.0, 0.5, 0.0].into())
///     .build()?;
/// while simulation.time() < 0.05 {
///     simulation.step()?;
/// }
/// assert!((simulation.mass() - 500.0).abs() < 1e-3);
/// # Ok::<(), nearfield_sph::Error>(())
/// ```
pub struct Simulation {
    config: Config,
    search: Search,
    fluid: Particles,
    walls: Walls,
    results: Results,
    ledger: Ledger,
    evidence: Option<PathBuf>,
    step: u64,
    time: f64,
}

/// Results of the traversals, one per particle of the set that asked.
#[derive(Default)]
struct Results {
    rates: Vec<(f32, f32)>,
    wall_rates: Vec<f32>,
    extrapolated: Vec<(f32, f32)>,
    forces: Vec<(Vec3, f32)>,
    wall_forces: Vec<(Vec3, f32)>,
}

impl Results {
    fn new(fluid: usize, walls: usize) -> Self {
        Self {
            rates: vec![(0.0, 0.0); fluid],
            wall_rates: vec![0.0; fluid],
            extrapolated: vec![(0.0, 0.0); walls],
            forces: vec![(Vec3::ZERO, 0.0); fluid],
            wall_forces: vec![(Vec3::ZERO, 0.0); fluid],
        }
    }
}

impl Simulation {
    /// Starts the description of a simulation.
    pub fn builder(config: Config) -> SimulationBuilder {
        SimulationBuilder::new(config)
    }

    pub(crate) fn start(
        config: Config,
        search: Search,
        (fluid, walls): (Particles, Walls),
        evidence: Option<PathBuf>,
    ) -> Result<Self, Error> {
        let mut simulation = Self {
            results: Results::new(fluid.len(), walls.len()),
            ledger: Ledger::open(&config, &fluid),
            config,
            search,
            fluid,
            walls,
            evidence,
            step: 0,
            time: 0.0,
        };
        simulation.sort_walls()?;
        simulation.evaluate_forces()?;
        Ok(simulation)
    }

    /// Advances the fluid by one stable step.
    ///
    /// # Errors
    /// [`Error::Lost`] names the particle that left the domain or is no longer
    /// a number; the simulation cannot go on then.
    pub fn step(&mut self) -> Result<StepReport, Error> {
        self.step_at_most(f64::INFINITY)
    }

    /// Advances the fluid by one stable step of at most `limit` seconds, so
    /// that outputs can be hit exactly.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn step_at_most(&mut self, limit: f64) -> Result<StepReport, Error> {
        let points = self.fluid.len() + self.walls.len();
        let _span = tracing::debug_span!("sph.step", step = self.step + 1, points).entered();
        let dt = self.stable_step().min(limit);
        self.step += 1;
        self.kick(0.5 * dt);
        self.drift(dt)?;
        self.compress(dt)?;
        self.evaluate_forces()?;
        self.kick(0.5 * dt);
        self.time += dt;
        self.refuse_losses(self.time)?;
        self.sort_fluid_when_due()?;
        Ok(StepReport {
            step: self.step,
            time: self.time,
            dt,
            max_speed: self.max_speed(),
            wall_force: self.wall_force(),
        })
    }

    /// Length of the next step, seconds, unless it is limited.
    #[must_use]
    pub fn stable_step(&self) -> f64 {
        let gravity = self.config.gravity;
        let forces = self.results.forces.iter().zip(&self.results.wall_forces);
        let squared = forces
            .map(|(fluid, wall)| (gravity + fluid.0 + wall.0).length_squared())
            .fold(0.0, f32::max);
        stable_step(&self.config, self.max_speed(), f64::from(squared).sqrt())
    }

    /// Changes the velocities by the forces over `dt` and books them.
    fn kick(&mut self, dt: f64) {
        let _span = tracing::debug_span!("sph.kick").entered();
        let (gravity, step) = (self.config.gravity, dt as f32);
        let forces = self.results.forces.iter().zip(&self.results.wall_forces);
        let (mut viscous, mut rubbed, mut work) = (0.0, 0.0, 0.0);
        for (velocity, (fluid, wall)) in self.fluid.velocity.iter_mut().zip(forces) {
            let change = step * (gravity + fluid.0 + wall.0);
            viscous += f64::from(fluid.1);
            rubbed += f64::from(wall.1);
            work += f64::from(wall.0.dot(*velocity + 0.5 * change));
            *velocity += change;
        }
        let mass = self.config.particle_mass();
        self.ledger.viscous_loss += mass * dt * viscous;
        self.ledger.friction_loss += mass * dt * rubbed;
        self.ledger.wall_work += mass * dt * (work + rubbed);
        self.ledger.wall_impulse += dt * self.wall_force();
        self.ledger.gravity_impulse += dt * self.mass() * gravity.as_dvec3();
    }

    /// Moves the particles with their velocities over `dt`.
    fn drift(&mut self, dt: f64) -> Result<(), Error> {
        let _span = tracing::debug_span!("sph.drift").entered();
        let step = dt as f32;
        for (position, &velocity) in self.fluid.position.iter_mut().zip(&self.fluid.velocity) {
            *position += step * velocity;
        }
        self.refuse_losses(self.time + dt)?;
        self.search.update(&self.fluid.position)
    }

    /// Refuses to go on when a particle is lost, and shows it.
    fn refuse_losses(&self, time: f64) -> Result<(), Error> {
        let watch = Watch {
            domain: self.config.domain,
            step: self.step,
            time,
        };
        let Some(mut lost) = watch.inspect(&self.fluid) else {
            return Ok(());
        };
        lost.evidence = self
            .evidence
            .as_deref()
            .map(|path| self.write_evidence(path));
        Err(Error::Lost(Box::new(lost)))
    }

    /// Changes the compressions by the motion of the drift over `dt` just made.
    fn compress(&mut self, dt: f64) -> Result<(), Error> {
        let _span = tracing::debug_span!("sph.compress").entered();
        let (kernel, volume) = (self.config.kernel(), self.config.particle_volume());
        let (half_dt, sound) = (0.5 * dt as f32, self.config.sound_speed);
        let continuity = Continuity {
            kernel,
            volume,
            half_dt,
            diffusion: 2.0 * self.config.diffusion * self.config.smoothing_length() * sound,
            hydrostatic: self.config.gravity / (sound * sound),
        };
        let walls = WallContinuity {
            kernel,
            volume,
            half_dt,
        };
        let (results, sets) = (&mut self.results, (&self.fluid, &self.walls));
        self.search
            .continuity(&continuity, &self.fluid, &mut results.rates)?;
        self.search
            .wall_continuity(&walls, sets, &mut results.wall_rates)?;
        self.apply_rates(dt);
        Ok(())
    }

    /// Changes the compressions by their rates over `dt` and books the work.
    fn apply_rates(&mut self, dt: f64) {
        let (water, step) = (self.config.water_state(), dt as f32);
        let rates = self.results.rates.iter().zip(&self.results.wall_rates);
        let (mut diffused, mut work) = (0.0, 0.0);
        for (s, (&(divergence, diffusion), &wall)) in self.fluid.compression.iter_mut().zip(rates) {
            let change = step * ((1.0 + *s) * (divergence + wall) + diffusion);
            let middle = *s + 0.5 * change;
            let pressure = water.specific_pressure(middle) / (1.0 + middle);
            diffused -= f64::from(pressure * diffusion / (1.0 + middle));
            work += f64::from(pressure * wall);
            *s = (*s + change).max(MOST_STRETCHED);
        }
        let mass = self.config.particle_mass();
        self.ledger.diffusion_loss += mass * dt * diffused;
        self.ledger.wall_work += mass * dt * work;
    }

    /// Gives the walls their pressure and evaluates all forces at the present
    /// positions.
    fn evaluate_forces(&mut self) -> Result<(), Error> {
        let _span = tracing::debug_span!("sph.forces").entered();
        let (kernel, volume) = (self.config.kernel(), self.config.particle_volume());
        let (water, h) = (self.config.water_state(), self.config.smoothing_length());
        let (sound, softening) = (self.config.sound_speed, 0.01 * h * h);
        let extrapolation = Extrapolation {
            kernel,
            water,
            gravity: self.config.gravity,
        };
        let viscosity = self.config.viscosity * sound * h;
        let forces = Forces {
            kernel,
            water,
            volume,
            viscosity,
            softening,
        };
        let friction = 2.0 * self.config.kinematic_viscosity(self.config.wall_friction) as f32;
        let contact = (CONTACT_DISTANCE * self.config.spacing).powi(-2);
        let contact_pressure = CONTACT_PRESSURE * sound * sound;
        let walls = WallForces {
            kernel,
            water,
            volume,
            friction,
            contact,
            contact_pressure,
        };
        let results = &mut self.results;
        self.search
            .extrapolation(&extrapolation, &self.fluid, &mut results.extrapolated)?;
        for (s, &(weight, sum)) in self.walls.compression.iter_mut().zip(&results.extrapolated) {
            *s = if weight > 0.0 {
                water.compression(sum / weight)
            } else {
                0.0
            };
        }
        self.search
            .forces(&forces, &self.fluid, &mut results.forces)?;
        self.search
            .wall_forces(&walls, (&self.fluid, &self.walls), &mut results.wall_forces)
    }

    /// Brings the walls into spatial order, once.
    fn sort_walls(&mut self) -> Result<(), Error> {
        self.walls.reorder(&self.search.wall_order()?)?;
        self.search.update_walls(&self.walls.position)
    }

    /// Brings the fluid into spatial order every so many steps.
    fn sort_fluid_when_due(&mut self) -> Result<(), Error> {
        let every = self.config.sort_every;
        if every == 0 || !self.step.is_multiple_of(every) {
            return Ok(());
        }
        let _span = tracing::debug_span!("sph.sort").entered();
        let order = self.search.fluid_order()?;
        self.fluid.reorder(&order)?;
        let refused = nearfield::Error::Permutation;
        order.apply(&mut self.results.forces).map_err(refused)?;
        order
            .apply(&mut self.results.wall_forces)
            .map_err(refused)?;
        self.search.update(&self.fluid.position)
    }

    fn write_evidence(&self, path: &Path) -> Result<PathBuf, String> {
        self.write_frame(path).map_err(|error| error.to_string())?;
        Ok(path.to_owned())
    }

    fn max_speed(&self) -> f64 {
        let squares = self.fluid.velocity.iter().map(|v| v.length_squared());
        f64::from(squares.fold(0.0, f32::max)).sqrt()
    }

    fn wall_force(&self) -> DVec3 {
        let sum: DVec3 = self
            .results
            .wall_forces
            .iter()
            .map(|(a, _)| a.as_dvec3())
            .sum();
        self.config.particle_mass() * sum
    }

    /// The physics and numerics.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Steps done so far.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// Simulated time, seconds.
    #[must_use]
    pub fn time(&self) -> f64 {
        self.time
    }

    /// Mass of the fluid, kg (in the plane: per metre of depth).
    #[must_use]
    pub fn mass(&self) -> f64 {
        self.config.particle_mass() * self.fluid.len() as f64
    }

    /// Positions of the fluid particles, metres. The order of all per-particle
    /// slices is the same and changes when a step sorts the particles;
    /// [`ids`](Self::ids) tells which is which.
    #[must_use]
    pub fn positions(&self) -> &[Vec3] {
        &self.fluid.position
    }

    /// Velocities of the fluid particles, m/s.
    #[must_use]
    pub fn velocities(&self) -> &[Vec3] {
        &self.fluid.velocity
    }

    /// Compressions ρ/ρ₀ − 1 of the fluid particles.
    #[must_use]
    pub fn compressions(&self) -> &[f32] {
        &self.fluid.compression
    }

    /// Ids of the fluid particles: their indices as they were given at first.
    #[must_use]
    pub fn ids(&self) -> &[u32] {
        &self.fluid.id
    }

    /// Densities of the fluid particles, kg/m³.
    #[must_use]
    pub fn densities(&self) -> Vec<f32> {
        self.fluid
            .compression
            .iter()
            .map(|s| self.config.density * (1.0 + s))
            .collect()
    }

    /// Pressures of the fluid particles, Pa.
    #[must_use]
    pub fn pressures(&self) -> Vec<f32> {
        let water = self.config.water_state();
        self.fluid
            .compression
            .iter()
            .map(|&s| water.pressure(s))
            .collect()
    }

    /// Positions of the wall particles, metres.
    #[must_use]
    pub fn wall_positions(&self) -> &[Vec3] {
        &self.walls.position
    }

    /// How many fluid particles are within the support of each fluid particle,
    /// itself left out.
    ///
    /// # Errors
    /// When the neighbour engine refuses.
    pub fn neighbor_counts(&self) -> Result<Vec<u32>, Error> {
        self.search.neighbor_counts()
    }

    /// The energy of the fluid and what it lost so far.
    #[must_use]
    pub fn energy(&self) -> Energy {
        self.ledger.energy(&self.config, &self.fluid)
    }

    /// The momentum of the fluid and the impulses it received so far.
    #[must_use]
    pub fn momentum(&self) -> Momentum {
        self.ledger.momentum(&self.config, &self.fluid)
    }

    /// What the neighbour engine runs on, and why.
    #[must_use]
    pub fn engine_report(&self) -> nearfield::Report {
        self.search.report()
    }

    /// Gives particle `id` another velocity, m/s. A velocity that is not
    /// finite is found by the next step.
    ///
    /// # Errors
    /// [`Error::NoSuchParticle`].
    pub fn set_velocity(&mut self, id: u32, velocity: Vec3) -> Result<(), Error> {
        let last = self.fluid.len() as u32 - 1;
        let found = self.fluid.id.iter().position(|&other| other == id);
        let index = found.ok_or(Error::NoSuchParticle { id, last })?;
        self.fluid.velocity[index] = velocity;
        Ok(())
    }

    /// Writes the fluid as VTK PolyData (`.vtp`): positions with `velocity`,
    /// `density`, `pressure` and `id`, and the time and step of the frame.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_frame(&self, path: &Path) -> Result<(), Error> {
        let data = [
            PointData::vectors("velocity", as_arrays(&self.fluid.velocity)),
            PointData::scalars("density", self.densities()),
            PointData::scalars("pressure", self.pressures()),
            PointData::scalars("id", &self.fluid.id),
        ];
        let frame = VtpWriter::new(as_arrays(&self.fluid.position))
            .time(self.time)
            .field("step", vec![self.step]);
        Ok(data.into_iter().fold(frame, VtpWriter::data).write(path)?)
    }

    /// Writes the wall particles as VTK PolyData (`.vtp`) with their
    /// `roughness` and extrapolated `pressure`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_walls(&self, path: &Path) -> Result<(), Error> {
        let water = self.config.water_state();
        let pressure: Vec<f32> = self
            .walls
            .compression
            .iter()
            .map(|&s| water.pressure(s))
            .collect();
        let data = [
            PointData::scalars("roughness", &self.walls.roughness),
            PointData::scalars("pressure", pressure),
        ];
        Ok(nearfield_io::write_vtp(
            path,
            as_arrays(&self.walls.position),
            &data,
        )?)
    }
}

fn as_arrays(vectors: &[Vec3]) -> &[[f32; 3]] {
    bytemuck::cast_slice(vectors)
}
