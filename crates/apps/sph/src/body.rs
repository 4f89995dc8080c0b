//! The interface between a simulation and its particles, which are in host memory, on a GPU, or on
//! many ranks.

use glam::Vec3;
use nearfield::device::copies::Transfers;

use crate::{
    Config, Error, FrontRule, PendingMoment, Running,
    advance::Advance,
    advance::Kick,
    budget::Sums,
    guard::Watch,
    neighborhood::Spread,
    particles::{Particles, Take},
    probes::{ProbeSums, Probes},
    walls::Walls,
};

/// The particles of a simulation. On ranks, sums and counts are those of all ranks.
pub(crate) trait Body: Send + Sync {
    /// A step of `dt` seconds. `watch` holds the time at its end.
    fn advance(&mut self, config: &Config, dt: f64, watch: Watch) -> Result<Advance, Error>;

    /// Sums and maxima of the fluid now.
    fn observe(&mut self, config: &Config) -> Result<Kick, Error>;

    /// Brings the particles into spatial order.
    fn sort_fluid(&mut self) -> Result<(), Error>;

    /// Number of fluid and of wall particles.
    fn counts(&self) -> [usize; 2];

    /// The fluid, or this rank's share of it.
    fn fluid(&self) -> &Particles;

    /// The walls, or this rank's share of them.
    fn walls(&self) -> &Walls;

    /// A copy of all walls; on ranks, on rank 0 only.
    fn gathered_walls(&self) -> Result<Walls, Error>;

    /// Number of fluid neighbours of every fluid particle.
    fn neighbor_counts(&self) -> Result<Vec<u32>, Error>;

    /// Energies and momentum.
    fn sums(&self, config: &Config) -> Result<Sums, Error>;

    /// Sums of probes over the fluid.
    fn probe(&self, config: &Config, probes: &Probes) -> Result<Vec<ProbeSums>, Error>;

    /// The front by `rule`, metres along x.
    fn front(&self, rule: &FrontRule) -> Result<Option<f32>, Error>;

    /// A copy of all fluid as it is now, after `step` steps; on ranks, on rank 0 only.
    fn moment(&self, config: &Config, step: u64, time: f64) -> Result<PendingMoment, Error>;

    /// A copy of the fluid of this rank alone.
    fn piece(&self, config: &Config, step: u64, time: f64) -> Result<PendingMoment, Error> {
        self.moment(config, step, time)
    }

    /// Hands all fluid to `take`, with the number of particles before, and with the forces where
    /// they are in the memory of the host; on ranks by ids, on rank 0 only, in parts of a limited
    /// size.
    fn hand_over(&self, config: &Config, take: Take<'_>) -> Result<(), Error>;

    /// Waits until all ranks have made this call.
    fn meet(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Gives a particle another velocity.
    fn set_velocity(&mut self, id: u64, velocity: Vec3) -> Result<(), Error>;

    /// Bytes copied between host and device so far.
    fn transfers(&self) -> Option<Transfers> {
        None
    }

    /// Where this runs.
    fn running(&self) -> Running;

    /// The number of this rank.
    fn rank(&self) -> usize {
        0
    }

    /// Tells other ranks that this one cannot go on.
    fn give_up(&self, reason: &str) {
        let _ = reason;
    }

    /// The particles by rank, if there are ranks.
    fn spread(&self) -> Result<Option<Spread>, Error> {
        Ok(None)
    }
}
