//! A fluid on a GPU as the body of a simulation.

use glam::Vec3;
use nearfield::{device::Transfers, prelude::Device};

use super::DeviceBody;
use crate::{
    Config, Error, ErrorKind, FrontRule, Moment, PendingMoment, Running,
    advance::{Advance, Kick},
    body::Body,
    budget::Sums,
    guard::Watch,
    particles::Particles,
    probes::{ProbeSums, Probes},
    walls::Walls,
};

impl Body for DeviceBody {
    fn advance(&mut self, config: &Config, dt: f64, watch: Watch) -> Result<Advance, Error> {
        self.step(config, dt, watch)
    }

    fn observe(&mut self, _: &Config) -> Result<Kick, Error> {
        self.look_at_kick()
    }

    fn sort_fluid(&mut self) -> Result<(), Error> {
        self.sort()
    }

    fn counts(&self) -> [usize; 2] {
        [self.count, self.walls]
    }

    /// As it was last seen when the GPU has failed, which the next step reports.
    fn fluid(&self) -> &Particles {
        &self.seen().fluid
    }

    fn walls(&self) -> &Walls {
        &self.seen().walls
    }

    fn gathered_walls(&self) -> Result<Walls, Error> {
        self.seen().walls.try_clone()
    }

    fn neighbor_counts(&self) -> Result<Vec<u32>, Error> {
        self.count_neighbors()
    }

    fn sums(&self, _: &Config) -> Result<Sums, Error> {
        self.measure()
    }

    fn probe(&self, config: &Config, probes: &Probes) -> Result<Vec<ProbeSums>, Error> {
        self.read_probes(config, probes)
    }

    fn front(&self, rule: &FrontRule) -> Result<Option<f32>, Error> {
        Ok(rule.front_of(&self.tally(rule)?))
    }

    fn moment(&self, config: &Config, step: u64, time: f64) -> Result<PendingMoment, Error> {
        let (config, all, arrive) = (*config, self.count, self.depart()?);
        let wait = move || Ok(Moment::new(config, arrive()?, all, step, time));
        Ok(PendingMoment::new(all, wait))
    }

    fn set_velocity(&mut self, id: u64, velocity: Vec3) -> Result<(), Error> {
        let last = self.count as u64 - 1;
        let found = self.seen().fluid.id.iter().position(|&other| other == id);
        let index = found.ok_or(ErrorKind::NoSuchParticle { id, last })?;
        self.write_velocity(index, velocity)
    }

    fn transfers(&self) -> Option<Transfers> {
        Some(self.engine.transfers())
    }

    fn running(&self) -> Running {
        let device = self.engine.device();
        Running {
            device: Device::Gpu(device.index),
            reason: format!(
                "asked for; every stage of a step runs on the {}",
                device.name
            ),
            threads: 0,
        }
    }
}
