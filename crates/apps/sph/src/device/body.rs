//! A fluid on a GPU as the body of a simulation.

use glam::Vec3;
use nearfield::{device::copies::Transfers, prelude::Device};
use nearfield_grid::memory::copied;

use super::{DeviceBody, DeviceNeighborhood, flight::Flight};
use crate::{
    Config, Error, ErrorKind, FrontRule, Moment, PendingMoment, Running,
    advance::{Advance, Kick},
    body::Body,
    budget::Sums,
    guard::Watch,
    neighborhood::{Set, Spread},
    particles::{Particles, Take},
    probes::{ProbeSums, Probes},
    walls::Walls,
};

/// Waits for the particles on their way, on any thread.
fn land(flight: Option<Flight>) -> Result<Particles, Error> {
    flight.map_or_else(|| Ok(Particles::default()), Flight::land)
}

impl<N: DeviceNeighborhood + 'static> Body for DeviceBody<N> {
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
        self.all
    }

    /// As it was last seen when the GPU has failed, which the next step reports.
    fn fluid(&self) -> &Particles {
        &self.seen().fluid
    }

    fn walls(&self) -> &Walls {
        &self.seen().walls
    }

    fn gathered_walls(&self) -> Result<Walls, Error> {
        let mut walls = self.seen().walls.try_clone()?;
        self.near().gather(Set::Walls, None, walls.arrays())?;
        Ok(walls)
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
        if self.near().ranks() == 1 {
            return self.piece(config, step, time);
        }
        let fluid = self.depart().and_then(land);
        let mut fluid = self.own(fluid)?;
        let ids = copied(&fluid.id, "ids of particles")?;
        self.near().gather(Set::Fluid, Some(&ids), fluid.arrays())?;
        let moment = Moment::new(*config, fluid, self.all[0], step, time);
        Ok(PendingMoment::ready(moment))
    }

    fn piece(&self, config: &Config, step: u64, time: f64) -> Result<PendingMoment, Error> {
        let (config, all, flight) = (*config, self.all[0], self.depart()?);
        let wait = move || Ok(Moment::new(config, land(flight)?, all, step, time));
        Ok(PendingMoment::new(self.count, wait))
    }

    fn hand_over(&self, config: &Config, take: Take<'_>) -> Result<(), Error> {
        let (rank, ranks) = (self.rank(), self.near().ranks());
        if ranks == 1 {
            let moment = self.moment(config, 0, 0.0)?.wait()?;
            return take(0, &moment.into_fluid(), None);
        }
        let fluid = self.depart().and_then(land);
        let fluid = self.own(fluid)?;
        fluid.in_parts(None, self.all[0], [rank, ranks], take, |ids, part| {
            self.near().gather(Set::Fluid, Some(ids), part)
        })
    }

    fn meet(&self) -> Result<(), Error> {
        self.near().together(&mut [0.0], &mut [])
    }

    fn set_velocity(&mut self, id: u64, velocity: Vec3) -> Result<(), Error> {
        let last = self.all[0] as u64 - 1;
        let found = self.seen().fluid.id.iter().position(|&other| other == id);
        let mut owners = [f64::from(u8::from(found.is_some()))];
        self.near().together(&mut owners, &mut [])?;
        if owners[0] == 0.0 {
            return Err(ErrorKind::NoSuchParticle { id, last }.into());
        }
        let written = found.map_or(Ok(()), |index| self.write_velocity(index, velocity));
        self.own(written)
    }

    fn transfers(&self) -> Option<Transfers> {
        Some(self.near().engine().transfers())
    }

    fn running(&self) -> Running {
        let near = self.near();
        let device = near.engine().device();
        Running {
            device: Device::Gpu(device.index),
            reason: format!(
                "asked for; every stage of a step runs on the {}",
                device.name
            ),
            threads: 0,
            strategy: Some(near.engine().strategy()),
            policy: None,
        }
    }

    fn rank(&self) -> usize {
        self.near().rank()
    }

    fn give_up(&self, reason: &str) {
        self.near().give_up(reason);
    }

    fn spread(&self) -> Result<Option<Spread>, Error> {
        self.near().spread()
    }
}
