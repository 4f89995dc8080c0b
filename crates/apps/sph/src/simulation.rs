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
use nearfield::device::copies::Transfers;
use nearfield_grid::memory::copied;
use nearfield_io::{PointData, VtpWriter};

use crate::advance::Kick;
use crate::body::Body;
use crate::budget::{Energy, Ledger, Momentum, Sums};
use crate::checkpoint::{self, Checkpoint, Head};
use crate::guard::Watch;
use crate::moment::PendingMoment;
use crate::neighborhood::Spread;
use crate::particles::Particles;
use crate::probes::{Probes, Readings};
use crate::running::Running;
use crate::time_step::stable_step;
use crate::walls::Walls;
use crate::{Config, Error, FrontRule};

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
/// On many ranks ([`SimulationBuilder::build_on`](crate::SimulationBuilder::build_on)) every rank
/// has one of its own. All ranks then make the same calls in the same order, except for those that
/// only read. Counts, sums, energies and the front are those of the whole; slices hold the
/// particles of this rank; [`moment`](Self::moment) and the frames are whole on rank 0.
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
    body: Box<dyn Body>,
    ledger: Ledger,
    evidence: Option<PathBuf>,
    /// How the last step left the fluid.
    now: Kick,
    step: u64,
    time: f64,
}

impl Simulation {
    /// A simulation that begins with this ledger, after `step` steps.
    pub(crate) fn start(
        config: Config,
        body: Box<dyn Body>,
        ledger: Ledger,
        evidence: Option<PathBuf>,
        (step, time): (u64, f64),
    ) -> Result<Self, Error> {
        let mut simulation = Self {
            config,
            body,
            ledger,
            evidence,
            now: Kick::default(),
            step,
            time,
        };
        simulation.observe()?;
        Ok(simulation)
    }

    /// Advances the fluid by one stable step.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) names the particle that left the domain or is no
    /// longer a number; the simulation cannot go on then.
    pub fn step(&mut self) -> Result<StepReport, Error> {
        self.step_at_most(f64::INFINITY)
    }

    /// Advances the fluid by one stable step of at most `limit` seconds, so
    /// that outputs can be hit exactly.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn step_at_most(&mut self, limit: f64) -> Result<StepReport, Error> {
        let points: usize = self.body.counts().iter().sum();
        let _span = tracing::debug_span!("sph.step", step = self.step + 1, points).entered();
        let dt = self.stable_step().min(limit);
        self.step += 1;
        let watch = Watch {
            domain: self.config.domain,
            step: self.step,
            time: self.time + dt,
        };
        let advanced = self.body.advance(&self.config, dt, watch);
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
        self.now = self.body.observe(&self.config)?;
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
        self.body.sort_fluid()
    }

    /// Number of fluid particles.
    #[must_use]
    pub fn len(&self) -> usize {
        self.body.counts()[0]
    }

    /// Number of wall particles.
    #[must_use]
    pub fn walls_len(&self) -> usize {
        self.body.counts()[1]
    }

    /// False: a simulation without fluid is refused.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
        &self.body.fluid().position
    }

    /// Velocities of the fluid particles, m/s.
    #[must_use]
    pub fn velocities(&self) -> &[Vec3] {
        &self.body.fluid().velocity
    }

    /// Compressions ρ/ρ₀ − 1 of the fluid particles.
    #[must_use]
    pub fn compressions(&self) -> &[f32] {
        &self.body.fluid().compression
    }

    /// Ids of the fluid particles: their indices as they were given at first.
    #[must_use]
    pub fn ids(&self) -> &[u64] {
        &self.body.fluid().id
    }

    /// Positions of the wall particles, metres.
    #[must_use]
    pub fn wall_positions(&self) -> &[Vec3] {
        &self.body.walls().position
    }

    /// How many fluid particles are within the support of each fluid particle,
    /// itself left out.
    ///
    /// # Errors
    /// When the neighbour engine refuses.
    pub fn neighbor_counts(&self) -> Result<Vec<u32>, Error> {
        self.body.neighbor_counts()
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
        self.body.sums(&self.config)
    }

    /// The front of the fluid by `rule`, metres along x; `None` only without fluid.
    ///
    /// # Errors
    /// When there is no memory for counting, or the GPU fails.
    pub fn front(&self, rule: &FrontRule) -> Result<Option<f32>, Error> {
        self.body.front(rule)
    }

    /// Reads probes. That goes through all particles, where they are, and waits for it. On ranks
    /// the readings are those of all particles, on every rank.
    ///
    /// # Errors
    /// [`ErrorKind::Setting`](crate::ErrorKind::Setting) for a probe that lies nowhere or a column
    /// without width; otherwise when there is no memory for the sums, or the GPU fails.
    pub fn probe(&self, probes: &Probes) -> Result<Readings, Error> {
        probes.check()?;
        let sums = self.body.probe(&self.config, probes)?;
        Ok(probes.readings(&self.config, &sums))
    }

    /// Bytes copied between host and GPU so far; `None` where the particles are in the host's
    /// memory. A step copies the same few numbers however many particles there are.
    #[must_use]
    pub fn transfers(&self) -> Option<Transfers> {
        self.body.transfers()
    }

    /// Where the simulation runs, and why there.
    #[must_use]
    pub fn running(&self) -> Running {
        self.body.running()
    }

    /// The number of this rank; 0 where there are no ranks.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.body.rank()
    }

    /// Tells all other ranks that this one cannot go on, for reasons that they do not know: their
    /// calls return errors from now on. Not collective; without other ranks it does nothing.
    pub fn give_up(&self, reason: &str) {
        self.body.give_up(reason);
    }

    /// How the particles are spread over ranks; `None` where there are no ranks.
    ///
    /// # Errors
    /// When a rank is lost.
    pub fn spread(&self) -> Result<Option<Spread>, Error> {
        self.body.spread()
    }

    /// Gives particle `id` another velocity, m/s. A velocity that is not
    /// finite is found by the next step.
    ///
    /// # Errors
    /// [`ErrorKind::NoSuchParticle`](crate::ErrorKind::NoSuchParticle).
    pub fn set_velocity(&mut self, id: u64, velocity: Vec3) -> Result<(), Error> {
        self.body.set_velocity(id, velocity)?;
        self.observe()
    }

    /// Copies the fluid as it is now, for another thread to write or draw while this one steps.
    ///
    /// With the particles on a GPU, the copy runs concurrently with the steps that follow.
    ///
    /// # Errors
    /// When there is no memory for the copy, or the GPU fails.
    pub fn moment(&self) -> Result<PendingMoment, Error> {
        self.body.moment(&self.config, self.step, self.time)
    }

    /// The run as it is now, to go on from; on ranks, on rank 0 only, and without particles on
    /// others. On ranks in deterministic mode the run goes on with the same bits, on any number of
    /// ranks. On one engine it goes on with the same forces, but may add later ones in another
    /// order; on a GPU it evaluates the forces anew.
    ///
    /// # Errors
    /// When there is no memory for the copy, the GPU fails, or a rank is lost.
    pub fn checkpoint(&self) -> Result<Checkpoint, Error> {
        let head = self.head();
        let (mut fluid, mut forces) = (Particles::default(), None);
        self.body.hand_over(&self.config, &mut |_, part, of_part| {
            fluid.append(part, &mut forces, of_part)
        })?;
        Ok(Checkpoint::new(head, fluid, forces))
    }

    /// The numbers of a checkpoint before its particles.
    fn head(&self) -> Head {
        let now = (self.step, self.time);
        Head::new(&self.config, self.len(), now, self.ledger)
    }

    /// Writes the checkpoint that [`checkpoint`](Self::checkpoint) returns, with `notes` of the
    /// program's own; the file appears complete or not at all. On ranks the particles come to rank
    /// 0, which alone writes, in parts of a limited size.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint), and when the file cannot be written. On ranks that
    /// concerns rank 0 alone, which has to [give up](Self::give_up).
    pub fn write_checkpoint(&self, path: &Path, notes: &[u8]) -> Result<(), Error> {
        let head = self.head();
        let file = (self.rank() == 0).then(|| checkpoint::Writer::create(path, &head, notes));
        let mut file = file.transpose()?;
        self.body
            .hand_over(&self.config, &mut |before, part, forces| {
                file.as_mut()
                    .map_or(Ok(()), |file| file.put(before, part, forces))
            })?;
        file.map_or(Ok(()), checkpoint::Writer::finish)
    }

    /// Copies the fluid of this rank as it is now, which is all of it where there are no ranks. Not
    /// collective.
    ///
    /// # Errors
    /// As [`moment`](Self::moment).
    pub fn piece(&self) -> Result<PendingMoment, Error> {
        self.body.piece(&self.config, self.step, self.time)
    }

    /// Waits until all ranks have made this call: what they have written before is there then.
    ///
    /// # Errors
    /// When a rank is lost.
    pub fn meet(&self) -> Result<(), Error> {
        self.body.meet()
    }

    /// Writes the fluid as VTK PolyData (`.vtp`), as [`Moment::write`](crate::Moment::write) does.
    ///
    /// # Errors
    /// When the file cannot be written or there is no memory for a copy of the fluid.
    pub fn write_frame(&self, path: &Path) -> Result<(), Error> {
        let moment = self.moment()?.wait()?;
        if self.rank() == 0 {
            moment.write(path)?;
        }
        Ok(())
    }

    /// Writes the wall particles as VTK PolyData (`.vtp`) with their
    /// `roughness` and extrapolated `pressure`. Without a path, this rank helps others to write.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_walls(&self, path: Option<&Path>) -> Result<(), Error> {
        let walls = self.body.gathered_walls()?;
        match path {
            Some(path) if self.rank() == 0 => Ok(self.file_of(&walls)?.write(path)?),
            _ => Ok(()),
        }
    }

    /// As [`write_walls`](Self::write_walls), those of this rank alone. Not collective.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_wall_piece(&self, path: &Path) -> Result<(), Error> {
        Ok(self.file_of(self.body.walls())?.write(path)?)
    }

    /// Writes the file (`.pvtp`) that joins pieces of the walls, by their paths relative to it. Not
    /// collective.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_parallel_walls(&self, path: &Path, pieces: &[String]) -> Result<(), Error> {
        let none = Walls::default();
        Ok(self.file_of(&none)?.write_parallel(path, pieces)?)
    }

    fn file_of<'a>(&self, walls: &'a Walls) -> Result<VtpWriter<'a>, Error> {
        let mut pressure = copied(&walls.pressure, "pressures of walls")?;
        (pressure.iter_mut()).for_each(|specific| *specific *= self.config.density);
        Ok(VtpWriter::new(bytemuck::cast_slice(&walls.position))
            .data(PointData::scalars("roughness", &walls.roughness))
            .data(PointData::scalars("pressure", pressure)))
    }
}
