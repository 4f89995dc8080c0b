//! Builds a simulation, and refuses settings and particles that cannot run.

use nearfield_grid::memory::{Shortage, collected, filled, make_room, with_room};
use std::path::PathBuf;

use glam::{DVec3, Vec3};
use nearfield::{
    Engine,
    balance::{Equal, Policy, Strategy},
    device::DeviceEngine,
    prelude::Device,
};

use crate::{
    Checkpoint, Config, Dimensions, Error, ErrorKind, Neighborhood, Simulation,
    body::Body,
    budget::Ledger,
    device::{DeviceBody, DeviceNeighborhood, OneGpu},
    host::HostBody,
    matter::Matter,
    neighborhood::OneEngine,
    particles::Particles,
    walls::Walls,
};

/// Particles with consecutive numbers that a rank takes before the next one is given some.
const RUN: u64 = 4096;

/// A simulation in the making; see [`Simulation::builder`].
#[must_use]
pub struct SimulationBuilder {
    config: Config,
    share: Share,
    fluid: DescribedSet,
    velocity: Option<(Vec<Vec3>, u64)>,
    walls: Walls,
    wall_ids: DescribedSet,
    pressure: Box<dyn Fn(Vec3) -> f32>,
    device: Device,
    threads: usize,
    strategy: Strategy,
    policy: Policy,
    equal_subregions: Equal,
    evidence: Option<PathBuf>,
    resumed: Option<Checkpoint>,
    /// The first memory that was refused, which [`build`](Self::build) reports.
    shortage: Option<Shortage>,
}

/// Which particles of a scene this rank keeps when it is described.
#[derive(Clone, Copy)]
struct Share {
    rank: u64,
    ranks: u64,
}

impl Share {
    fn holds(self, number: u64) -> bool {
        number / RUN % self.ranks == self.rank
    }
}

/// Particles of one set that were described, on all ranks alike.
#[derive(Default)]
struct DescribedSet {
    /// Those of this rank.
    position: Vec<Vec3>,
    ids: Vec<u64>,
    /// All of them.
    count: u64,
    /// The first that cannot be used.
    refused: Option<ErrorKind>,
}

/// The engine of a fluid on GPU `number`.
fn on_gpu(config: &Config, number: u32, strategy: Strategy) -> Result<DeviceEngine, Error> {
    let builder = DeviceEngine::builder(config.kernel().support()).strategy(strategy);
    let builder = match (config.domain.low, config.domain.high) {
        (low, high) if low.is_finite() && high.is_finite() => {
            builder.within(low.to_array(), high.to_array())
        }
        _ => builder,
    };
    Ok(builder.on_gpu(number)?)
}

impl Simulation {
    /// Starts the description of a simulation.
    pub fn builder(config: Config) -> SimulationBuilder {
        SimulationBuilder::new(config, Share { rank: 0, ranks: 1 })
    }

    /// Starts the description of a simulation on many ranks. All ranks describe the whole of it,
    /// and this one keeps its share; [`SimulationBuilder::build_on`] ends it.
    ///
    /// # Errors
    /// When `rank` is not below `ranks`.
    pub fn builder_on(
        config: Config,
        rank: usize,
        ranks: usize,
    ) -> Result<SimulationBuilder, Error> {
        if rank >= ranks {
            return Err(Error::no_such_rank(rank));
        }
        let (rank, ranks) = (rank as u64, ranks as u64);
        Ok(SimulationBuilder::new(config, Share { rank, ranks }))
    }
}

impl DescribedSet {
    /// Takes the share of `positions`, and refuses what cannot be simulated. `what` names them
    /// where memory is short.
    fn add(
        &mut self,
        what: &'static str,
        positions: &[Vec3],
        share: Share,
        refuse: impl Fn(usize, Vec3) -> Option<ErrorKind>,
    ) -> Result<(), Shortage> {
        let mine = |number: &u64| share.holds(*number);
        let numbers = self.count..self.count + positions.len() as u64;
        let len = self.ids.len() + numbers.clone().filter(mine).count();
        make_room(&mut self.position, len, what)?;
        make_room(&mut self.ids, len, what)?;
        for (number, &position) in numbers.zip(positions) {
            if self.refused.is_none() {
                self.refused = refuse(number as usize, position);
            }
            if share.holds(number) {
                self.position.push(position);
                self.ids.push(number);
            }
        }
        self.count += positions.len() as u64;
        Ok(())
    }
}

/// Why a vector cannot be used, if it cannot.
fn refuse(
    dimensions: Dimensions,
    [set, what, culprit]: [&'static str; 3],
    index: usize,
    value: Vec3,
) -> Option<ErrorKind> {
    if !value.is_finite() {
        return Some(ErrorKind::NotFinite {
            what,
            set,
            index,
            value,
        });
    }
    (dimensions == Dimensions::Two && value.z != 0.0).then_some(ErrorKind::OffPlane {
        what: culprit,
        index,
        z: value.z,
    })
}

impl SimulationBuilder {
    fn new(config: Config, share: Share) -> Self {
        Self {
            config,
            share,
            fluid: DescribedSet::default(),
            velocity: None,
            walls: Walls::default(),
            wall_ids: DescribedSet::default(),
            pressure: Box::new(|_| 0.0),
            device: Device::Auto,
            threads: 0,
            strategy: Strategy::Flat,
            policy: Policy::Model,
            equal_subregions: Equal::Work,
            evidence: None,
            resumed: None,
            shortage: None,
        }
    }

    /// Adds fluid particles at these positions, metres; ids count up in the
    /// order of the calls.
    pub fn fluid(mut self, positions: &[Vec3]) -> Self {
        let names = ["fluid", "position", "fluid particle"];
        let refuse = |index, value| refuse(self.config.dimensions, names, index, value);
        let what = "positions of particles";
        if let Err(shortage) = self.fluid.add(what, positions, self.share, refuse) {
            self.note(shortage);
        }
        self
    }

    /// Sets the velocities of all fluid particles, m/s; at rest without.
    pub fn velocities(mut self, velocities: &[Vec3]) -> Self {
        let share = self.share;
        let mine = (0..).zip(velocities);
        let mine = mine.filter(|(number, _)| share.holds(*number));
        let mine = mine.map(|(_, velocity)| *velocity);
        match collected(mine, "velocities of particles") {
            Ok(kept) => self.velocity = Some((kept, velocities.len() as u64)),
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
        let names = ["wall", "position", "wall particle"];
        let refuse = |index, value| refuse(self.config.dimensions, names, index, value);
        let mut added = (self.wall_ids).add("wall particles", positions, self.share, refuse);
        if added.is_ok() {
            added = self.walls.add(&self.wall_ids.position, roughness);
            self.wall_ids.position.clear();
        }
        if let Err(shortage) = added {
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

    /// Goes on from a checkpoint: the fluid is that of the checkpoint, whatever was described. The
    /// walls have to be those of its run.
    pub fn resume(mut self, checkpoint: Checkpoint) -> Self {
        self.resumed = Some(checkpoint);
        self
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

    /// How a GPU maps cells to threads; [`Strategy::Flat`] without.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// The policy that divides the work between two backends; [`Policy::Model`] without.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// What the parts of a step that two backends share have about as much of; [`Equal::Work`]
    /// without.
    pub fn equal_subregions(mut self, equal: Equal) -> Self {
        self.equal_subregions = equal;
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
    pub fn build(self) -> Result<Simulation, Error> {
        let (device, strategy) = (self.device, self.strategy);
        match device {
            Device::Gpu(number) => self.finish(|config, matter, _| {
                let velocities = matter.fluid.velocity.iter();
                let momentum: DVec3 = velocities.map(|v| v.as_dvec3()).sum();
                let near = OneGpu::new(on_gpu(config, number, strategy)?);
                let body = DeviceBody::new(config, near, matter, &[])?;
                Ok((Box::new(body) as Box<dyn Body>, Some(momentum)))
            }),
            _ => {
                let engine = Engine::builder(self.config.kernel().support());
                let engine = engine.device(device).threads(self.threads);
                let engine = engine.strategy(strategy).policy(self.policy);
                let engine = engine.equal_subregions(self.equal_subregions);
                self.finish(|config, matter, wall_ids| {
                    let near = OneEngine::new(engine)?;
                    let body = HostBody::new(config, near, matter, wall_ids)?;
                    Ok((Box::new(body) as Box<dyn Body>, None))
                })
            }
        }
    }

    /// Builds the simulation in a neighbourhood, which has a device and threads of its own, and
    /// evaluates the first forces. Collective.
    ///
    /// # Errors
    /// As [`build`](Self::build), and when the neighbourhood is one of other ranks than the
    /// [builder's](Simulation::builder_on).
    pub fn build_on<N: Neighborhood + 'static>(self, near: N) -> Result<Simulation, Error> {
        let place = [near.rank(), near.ranks()];
        let give_up = |near: &mut N, reason: &str| near.give_up(reason);
        self.finish_on(near, place, give_up, |config, near, matter, wall_ids| {
            let body = HostBody::new(config, near, matter, wall_ids)?;
            Ok(Box::new(body))
        })
    }

    /// As [`build_on`](Self::build_on), with the particles on a GPU of every rank: every stage of a
    /// step runs there, and particles are copied to the host when they are looked at. Collective.
    ///
    /// # Errors
    /// As [`build_on`](Self::build_on).
    pub fn build_on_gpus<N: DeviceNeighborhood + 'static>(
        self,
        near: N,
    ) -> Result<Simulation, Error> {
        let place = [near.rank(), near.ranks()];
        let give_up = |near: &mut N, reason: &str| near.give_up(reason);
        self.finish_on(near, place, give_up, |config, near, matter, wall_ids| {
            let body = DeviceBody::new(config, near, matter, wall_ids)?;
            Ok(Box::new(body))
        })
    }

    /// Ends the description in a neighbourhood of a rank, which `give_up` tells other ranks by that
    /// it is not used.
    fn finish_on<N>(
        self,
        near: N,
        [rank, ranks]: [usize; 2],
        give_up: impl FnOnce(&mut N, &str),
        body: impl FnOnce(&Config, N, Matter, &[u64]) -> Result<Box<dyn Body>, Error>,
    ) -> Result<Simulation, Error> {
        let (rank, ranks) = (rank as u64, ranks as u64);
        if (rank, ranks) != (self.share.rank, self.share.ranks) {
            let other = ErrorKind::Setting {
                name: "rank of the neighbourhood",
                value: rank as f64,
                wanted: "that of the builder, of as many ranks",
            };
            return Err(other.into());
        }
        let mut near = Some(near);
        let built = self.finish(|config, matter, wall_ids| {
            let Some(near) = near.take() else {
                return Err(Error::elsewhere("a neighbourhood serves one simulation"));
            };
            Ok((body(config, near, matter, wall_ids)?, None))
        });
        if let (Err(error), Some(mut near)) = (&built, near) {
            give_up(&mut near, &error.to_string());
        }
        built
    }

    /// Checks what was described and hands it to `body`, which may know the momentum.
    fn finish(
        mut self,
        body: impl FnOnce(&Config, Matter, &[u64]) -> Result<(Box<dyn Body>, Option<DVec3>), Error>,
    ) -> Result<Simulation, Error> {
        if let Some(shortage) = self.shortage {
            return Err(shortage.into());
        }
        self.config.check()?;
        if self.fluid.count == 0 {
            return Err(ErrorKind::NoFluid.into());
        }
        let refused = self.fluid.refused.take();
        if let Some(refused) = refused.or(self.wall_ids.refused.take()) {
            return Err(refused.into());
        }
        let resumed = self.resumed.take();
        let (fluid, forces, past) = match resumed {
            Some(checkpoint) => {
                checkpoint.check(&self.config, self.fluid.count)?;
                let past = checkpoint.past();
                (checkpoint.fluid, checkpoint.forces, Some(past))
            }
            None => (self.particles()?, None, None),
        };
        let walls = self.walls;
        let matter = Matter {
            fluid,
            walls,
            forces,
        };
        let (body, momentum) = body(&self.config, matter, &self.wall_ids.ids)?;
        let (ledger, since) = match past {
            Some(past) => past,
            None => {
                let momentum = match momentum {
                    Some(momentum) => momentum,
                    None => body.sums(&self.config)?.momentum,
                };
                (Ledger::open(&self.config, momentum), (0, 0.0))
            }
        };
        Simulation::start(self.config, body, ledger, self.evidence, since)
    }

    /// The fluid as it was described.
    fn particles(&mut self) -> Result<Particles, Error> {
        let (position, id) = (
            std::mem::take(&mut self.fluid.position),
            std::mem::take(&mut self.fluid.ids),
        );
        let velocity = match self.velocity.take() {
            Some((velocity, count)) if count == self.fluid.count => velocity,
            Some((_, count)) => {
                let unequal = ErrorKind::VelocityCount {
                    count: count as usize,
                    particles: self.fluid.count as usize,
                };
                return Err(unequal.into());
            }
            None => filled(id.len(), Vec3::ZERO, "velocities of particles")?,
        };
        let names = ["fluid", "velocity", "velocity of fluid particle"];
        for (id, velocity) in id.iter().zip(&velocity) {
            let refused = refuse(self.config.dimensions, names, *id as usize, *velocity);
            refused.map_or(Ok(()), Err)?;
        }
        let water = self.config.water_state();
        let compress = |&x: &Vec3| water.compression((self.pressure)(x) / self.config.density);
        let mut compression = with_room(id.len(), "densities of particles")?;
        compression.extend(position.iter().map(compress));
        Ok(Particles {
            position,
            velocity,
            compression,
            id,
        })
    }
}
