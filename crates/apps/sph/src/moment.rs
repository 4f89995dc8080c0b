//! The fluid at one time, separate from the simulation that continues.
//!
//! A [`Moment`] owns its arrays, so another thread can write or draw it while the solver steps. A
//! simulation returns a [`PendingMoment`], whose copy may still be under way. The thread that reads
//! the numbers waits for them; the solver does not.
//!
//! On ranks a moment is whole on rank 0, or a *piece*: the particles of one rank. Pieces are files
//! of the same kind, which one more file joins.

use std::path::Path;

use glam::Vec3;
use nearfield_grid::memory::{copied, with_room};
use nearfield_io::{PointData, VtpWriter};

use crate::particles::Particles;
use crate::{Config, Error};

/// The fluid as it was at one time.
#[derive(Clone, Debug)]
pub struct Moment {
    config: Config,
    fluid: Particles,
    /// Particles of all ranks, whose ids are below that.
    all: u64,
    step: u64,
    time: f64,
}

impl Moment {
    /// The fluid after `step` steps, at `time`, of `all` particles.
    pub(crate) fn new(config: Config, fluid: Particles, all: usize, step: u64, time: f64) -> Self {
        Self {
            config,
            fluid,
            all: all as u64,
            step,
            time,
        }
    }

    /// The particles.
    pub(crate) fn into_fluid(self) -> Particles {
        self.fluid
    }

    /// The physics and numerics.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Steps done until then.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// Simulated time, seconds.
    #[must_use]
    pub fn time(&self) -> f64 {
        self.time
    }

    /// Positions of the fluid particles, metres. All slices have the same order;
    /// [`ids`](Self::ids) tells which particle is which.
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
    pub fn ids(&self) -> &[u64] {
        &self.fluid.id
    }

    /// Densities of the fluid particles, kg/m³.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn densities(&self) -> Result<Vec<f32>, Error> {
        let mut values = copied(self.compressions(), "densities of particles")?;
        (values.iter_mut()).for_each(|s| *s = self.config.density * (1.0 + *s));
        Ok(values)
    }

    /// Pressures of the fluid particles, Pa.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn pressures(&self) -> Result<Vec<f32>, Error> {
        let water = self.config.water_state();
        let mut values = copied(self.compressions(), "pressures of particles")?;
        (values.iter_mut()).for_each(|s| *s = water.pressure(*s));
        Ok(values)
    }

    /// Writes the fluid as VTK PolyData (`.vtp`): positions with `velocity`, `density`, `pressure`
    /// and `id`, and the time and step of the frame.
    ///
    /// # Errors
    /// When the file cannot be written or there is no memory for its arrays.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        Ok(self.file()?.write(path)?)
    }

    /// Writes the file that joins pieces of this moment (`.pvtp`), by their paths relative to it.
    /// The particles of this moment are not in it.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_parallel(&self, path: &Path, pieces: &[String]) -> Result<(), Error> {
        Ok(self.file()?.write_parallel(path, pieces)?)
    }

    /// The moment without its particles, for [`write_parallel`](Self::write_parallel) later.
    #[must_use]
    pub fn emptied(self) -> Self {
        let fluid = Particles::default();
        Self { fluid, ..self }
    }

    fn file(&self) -> Result<VtpWriter<'_>, Error> {
        // In 32 bits wherever that suffices for all ranks, which is half the file's share.
        let ids = if self.all <= 1 << 32 {
            let mut narrow = with_room(self.ids().len(), "ids of particles")?;
            narrow.extend(self.ids().iter().map(|id| *id as u32));
            PointData::scalars("id", narrow)
        } else {
            PointData::scalars("id", self.ids())
        };
        let data = [
            PointData::vectors("velocity", bytemuck::cast_slice(self.velocities())),
            PointData::scalars("density", self.densities()?),
            PointData::scalars("pressure", self.pressures()?),
            ids,
        ];
        let frame = VtpWriter::new(bytemuck::cast_slice(self.positions()))
            .time(self.time)
            .field("step", vec![self.step]);
        Ok(data.into_iter().fold(frame, VtpWriter::data))
    }
}

/// A [`Moment`] that may still be on its way into the host's memory. It may be sent to another
/// thread and outlive the simulation.
#[must_use]
pub struct PendingMoment {
    particles: usize,
    wait: Box<dyn FnOnce() -> Result<Moment, Error> + Send>,
}

impl PendingMoment {
    /// A moment of `particles` fluid particles that `wait` delivers, on the thread that calls
    /// [`wait`](Self::wait).
    pub fn new(
        particles: usize,
        wait: impl FnOnce() -> Result<Moment, Error> + Send + 'static,
    ) -> Self {
        Self {
            particles,
            wait: Box::new(wait),
        }
    }

    /// A moment that is there.
    pub(crate) fn ready(moment: Moment) -> Self {
        Self::new(moment.fluid.len(), || Ok(moment))
    }

    /// Bytes of the particle arrays, for programs that bound how many moments are under way.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let per_particle = 2 * size_of::<Vec3>() + size_of::<f32>() + size_of::<u64>();
        self.particles.saturating_mul(per_particle)
    }

    /// Returns the moment, once it is there.
    ///
    /// # Errors
    /// When the copy failed.
    pub fn wait(self) -> Result<Moment, Error> {
        (self.wait)()
    }
}

impl std::fmt::Debug for PendingMoment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("PendingMoment");
        shown.field("particles", &self.particles);
        shown.finish_non_exhaustive()
    }
}
