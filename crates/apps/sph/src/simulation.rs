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
use nearfield::{device::Transfers, prelude::Device};
use nearfield_io::PointData;

use crate::advance::Kick;
use crate::budget::{Energy, Ledger, Momentum, Sums};
use crate::device::DeviceBody;
use crate::guard::Watch;
use crate::host::{HostBody, Request};
use crate::matter::Matter;
use crate::moment::{Moment, PendingMoment};
use crate::particles::Particles;
use crate::time_step::stable_step;
use crate::walls::Walls;
use crate::{Config, Error, ErrorKind, FrontRule};

/// Figures of a step.
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
///     .fluid(&scene::block(Dimensions::Two, [0, 0, 0], [10, 5, 0], 0.1)?)
///     .walls(&scene::tank(Dimensions::Two, [10, 8, 0], Top::Open, 3, 0.1)?)
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
    body: Body,
    ledger: Ledger,
    evidence: Option<PathBuf>,
    /// How the last step left the fluid.
    now: Kick,
    step: u64,
    time: f64,
}

/// Where the particles are.
enum Body {
    Host(Box<HostBody>),
    Device(Box<DeviceBody>),
}

/// Where a simulation runs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Running {
    /// The device that does the work.
    pub device: Device,
    /// Why that one.
    pub reason: String,
    /// Worker threads of the host that take part, 0 when none does.
    pub threads: usize,
}

impl Simulation {
    pub(crate) fn start(
        config: Config,
        request: Request,
        matter: Matter,
        evidence: Option<PathBuf>,
    ) -> Result<Self, Error> {
        let ledger = Ledger::open(&config, &matter.fluid);
        let body = match request.device {
            Device::Gpu(number) => {
                let body = DeviceBody::new(&config, number, matter)?;
                Body::Device(Box::new(body))
            }
            _ => {
                let body = HostBody::new(&config, request, matter)?;
                Body::Host(Box::new(body))
            }
        };
        let mut simulation = Self {
            config,
            body,
            ledger,
            evidence,
            now: Kick::default(),
            step: 0,
            time: 0.0,
        };
        simulation.observe()?;
        Ok(simulation)
    }

    /// Advances the fluid by one stable step.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] names the particle that left the domain or is no longer
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
        let points = self.len() + self.walls_len();
        let _span = tracing::debug_span!("sph.step", step = self.step + 1, points).entered();
        let dt = self.stable_step().min(limit);
        self.step += 1;
        let watch = Watch {
            domain: self.config.domain,
            step: self.step,
            time: self.time + dt,
        };
        let advanced = match &mut self.body {
            Body::Host(body) => body.advance(&self.config, dt, watch),
            Body::Device(body) => body.advance(&self.config, dt, watch),
        };
        let advance = advanced.map_err(|error| self.with_evidence(error))?;
        self.ledger.book(&self.config, self.mass(), dt, &advance);
        self.now = advance.second;
        self.time += dt;
        self.sort_fluid_when_due()?;
        Ok(StepReport {
            step: self.step,
            time: self.time,
            dt,
            max_speed: self.now.max_speed,
            wall_force: self.config.particle_mass() * self.now.wall_force,
        })
    }

    /// Length of the next step, seconds, unless it is limited.
    #[must_use]
    pub fn stable_step(&self) -> f64 {
        stable_step(&self.config, self.now.max_speed, self.now.max_acceleration)
    }

    /// Looks how the fluid is now.
    fn observe(&mut self) -> Result<(), Error> {
        self.now = match &mut self.body {
            Body::Host(body) => body.observe(&self.config),
            Body::Device(body) => body.observe()?,
        };
        Ok(())
    }

    /// Shows a lost particle among all others, if there is a place for that.
    fn with_evidence(&self, mut error: Error) -> Error {
        if let Some(lost) = error.lost_mut() {
            let evidence = self.evidence.as_deref();
            lost.evidence = evidence.map(|path| self.write_evidence(path));
        }
        error
    }

    /// Brings the fluid into spatial order every [`Config::sort_every`] steps.
    fn sort_fluid_when_due(&mut self) -> Result<(), Error> {
        let every = self.config.sort_every;
        if every == 0 || !self.step.is_multiple_of(every) {
            return Ok(());
        }
        match &mut self.body {
            Body::Host(body) => body.sort_fluid(),
            Body::Device(body) => body.sort_fluid(),
        }
    }

    /// Number of fluid particles.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.body {
            Body::Host(body) => body.matter.fluid.len(),
            Body::Device(body) => body.len(),
        }
    }

    /// Number of wall particles.
    #[must_use]
    pub fn walls_len(&self) -> usize {
        match &self.body {
            Body::Host(body) => body.matter.walls.len(),
            Body::Device(body) => body.walls_len(),
        }
    }

    /// False: a simulation without fluid is refused.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn fluid(&self) -> &Particles {
        match &self.body {
            Body::Host(body) => &body.matter.fluid,
            Body::Device(body) => body.particles(),
        }
    }

    fn walls(&self) -> &Walls {
        match &self.body {
            Body::Host(body) => &body.matter.walls,
            Body::Device(body) => body.walls(),
        }
    }

    fn write_evidence(&self, path: &Path) -> Result<PathBuf, String> {
        self.write_frame(path).map_err(|error| error.to_string())?;
        Ok(path.to_owned())
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
        self.config.particle_mass() * self.len() as f64
    }

    /// Positions of the fluid particles, metres. The order of all per-particle
    /// slices is the same and changes when a step sorts the particles;
    /// [`ids`](Self::ids) tells which is which.
    #[must_use]
    pub fn positions(&self) -> &[Vec3] {
        &self.fluid().position
    }

    /// Velocities of the fluid particles, m/s.
    #[must_use]
    pub fn velocities(&self) -> &[Vec3] {
        &self.fluid().velocity
    }

    /// Compressions ρ/ρ₀ − 1 of the fluid particles.
    #[must_use]
    pub fn compressions(&self) -> &[f32] {
        &self.fluid().compression
    }

    /// Ids of the fluid particles: their indices as they were given at first.
    #[must_use]
    pub fn ids(&self) -> &[u32] {
        &self.fluid().id
    }

    /// Positions of the wall particles, metres.
    #[must_use]
    pub fn wall_positions(&self) -> &[Vec3] {
        &self.walls().position
    }

    /// How many fluid particles are within the support of each fluid particle,
    /// itself left out.
    ///
    /// # Errors
    /// When the neighbour engine refuses.
    pub fn neighbor_counts(&self) -> Result<Vec<u32>, Error> {
        match &self.body {
            Body::Host(body) => body.neighbor_counts(),
            Body::Device(body) => body.neighbor_counts(),
        }
    }

    /// The energy of the fluid and what it lost so far.
    ///
    /// # Errors
    /// When the GPU fails.
    pub fn energy(&self) -> Result<Energy, Error> {
        Ok(self.ledger.energy(&self.config, &self.sums()?))
    }

    /// The momentum of the fluid and the impulses it received so far.
    ///
    /// # Errors
    /// When the GPU fails.
    pub fn momentum(&self) -> Result<Momentum, Error> {
        Ok(self.ledger.momentum(&self.config, &self.sums()?))
    }

    fn sums(&self) -> Result<Sums, Error> {
        match &self.body {
            Body::Host(body) => Ok(Sums::of(&self.config, &body.matter.fluid)),
            Body::Device(body) => body.sums(),
        }
    }

    /// The front of the fluid by `rule`, metres along x; `None` only without fluid.
    ///
    /// # Errors
    /// When there is no memory for counting, or the GPU fails.
    pub fn front(&self, rule: &FrontRule) -> Result<Option<f32>, Error> {
        match &self.body {
            Body::Host(body) => rule.front(&body.matter.fluid.position),
            Body::Device(body) => body.front(rule),
        }
    }

    /// Bytes copied between host and GPU so far; `None` where the particles are in the host's
    /// memory. A step copies the same few numbers however many particles there are.
    #[must_use]
    pub fn transfers(&self) -> Option<Transfers> {
        match &self.body {
            Body::Host(_) => None,
            Body::Device(body) => Some(body.transfers()),
        }
    }

    /// Where the simulation runs, and why there.
    #[must_use]
    pub fn running(&self) -> Running {
        match &self.body {
            Body::Host(body) => {
                let report = body.report();
                Running {
                    device: report.device,
                    reason: report.reason,
                    threads: report.threads,
                }
            }
            Body::Device(body) => {
                let (number, name) = body.gpu();
                Running {
                    device: Device::Gpu(number),
                    reason: format!("asked for; every stage of a step runs on the {name}"),
                    threads: 0,
                }
            }
        }
    }

    /// Gives particle `id` another velocity, m/s. A velocity that is not
    /// finite is found by the next step.
    ///
    /// # Errors
    /// [`ErrorKind::NoSuchParticle`].
    pub fn set_velocity(&mut self, id: u32, velocity: Vec3) -> Result<(), Error> {
        let last = self.len() as u32 - 1;
        let found = self.fluid().id.iter().position(|&other| other == id);
        let index = found.ok_or(ErrorKind::NoSuchParticle { id, last })?;
        match &mut self.body {
            Body::Host(body) => body.matter.fluid.velocity[index] = velocity,
            Body::Device(body) => body.set_velocity(index, velocity)?,
        }
        self.observe()
    }

    /// Copies the fluid as it is now, for another thread to write or draw while this one steps.
    ///
    /// With the particles on a GPU, the copy runs beside the steps that follow.
    ///
    /// # Errors
    /// When there is no memory for the copy, or the GPU fails.
    pub fn moment(&self) -> Result<PendingMoment, Error> {
        let (config, step, time) = (self.config, self.step, self.time);
        match &self.body {
            Body::Host(body) => {
                let fluid = body.matter.fluid.try_clone()?;
                Ok(PendingMoment::ready(Moment::new(config, fluid, step, time)))
            }
            Body::Device(body) => {
                let arrive = body.depart()?;
                let wait = move || Ok(Moment::new(config, arrive()?, step, time));
                Ok(PendingMoment::new(self.len(), wait))
            }
        }
    }

    /// Writes the fluid as VTK PolyData (`.vtp`), as [`Moment::write`] does.
    ///
    /// # Errors
    /// When the file cannot be written or there is no memory for a copy of the fluid.
    pub fn write_frame(&self, path: &Path) -> Result<(), Error> {
        self.moment()?.wait()?.write(path)
    }

    /// Writes the wall particles as VTK PolyData (`.vtp`) with their
    /// `roughness` and extrapolated `pressure`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_walls(&self, path: &Path) -> Result<(), Error> {
        let water = self.config.water_state();
        let walls = self.walls();
        let pressure = walls.compression.iter().map(|&s| water.pressure(s));
        let data = [
            PointData::scalars("roughness", &walls.roughness),
            PointData::scalars("pressure", pressure.collect::<Vec<f32>>()),
        ];
        let positions = bytemuck::cast_slice(&walls.position);
        Ok(nearfield_io::write_vtp(path, positions, &data)?)
    }
}
