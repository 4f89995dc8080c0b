//! The arrays of a fluid on a GPU, which are at least as long as its numbers of particles say.

use crate::constants::FRONT_BINS;
use nearfield::{
    device::{
        DeviceBuffer, DeviceEngine, DeviceValue, DriverError,
        copies::{HostCopy, Queue},
    },
    error::gpu::Error as GpuError,
};
use nearfield_grid::memory::collected;

use super::kernels::{MAX_BLOCKS, MEASURE_SLOTS, TOTALS};
use crate::{Error, particles::Particles, walls::Walls};

/// Names of copies in messages and traces.
pub(super) const KEPT: &str = "velocities before a step";
pub(super) const PARTICLES: &str = "particles";
pub(super) const STEP: &str = "totals of a step";

/// Arrays of the device for sums outside a step.
pub(super) struct Notes {
    pub(super) neighbors: DeviceBuffer<u32>,
    /// Particles by bin of the front.
    pub(super) bins: DeviceBuffer<u32>,
    pub(super) partials: DeviceBuffer<f64>,
    pub(super) totals: DeviceBuffer<f64>,
}

/// Arrays of the device; numbers per particle in brackets.
pub(super) struct Arrays {
    /// [3]
    pub(super) position: DeviceBuffer<f32>,
    /// Velocity and compression [4].
    pub(super) moving: DeviceBuffer<f32>,
    /// [2] and [1]
    pub(super) rates: DeviceBuffer<f32>,
    pub(super) wall_rates: DeviceBuffer<f32>,
    /// Acceleration and heating [4].
    pub(super) forces: DeviceBuffer<f32>,
    pub(super) wall_forces: DeviceBuffer<f32>,
    /// Velocity, relative volume and specific pressure [5].
    pub(super) pressed: DeviceBuffer<f32>,
    /// Of wall particles: [3]; relative volume, specific pressure and roughness [3]; [2].
    pub(super) wall_position: DeviceBuffer<f32>,
    pub(super) still: DeviceBuffer<f32>,
    pub(super) extrapolated: DeviceBuffer<f32>,
    /// `moving` before the compression, in case that has to be repeated; also room for sorting.
    pub(super) kept: DeviceBuffer<f32>,
    pub(super) wall_spare: DeviceBuffer<f32>,
    pub(super) partials: DeviceBuffer<f64>,
    pub(super) totals: DeviceBuffer<f64>,
    /// The totals on the host.
    pub(super) found: HostCopy<f64>,
}

impl Arrays {
    pub(super) fn of(
        engine: &DeviceEngine,
        fluid: &Particles,
        walls: &Walls,
    ) -> Result<Self, Error> {
        let particles = fluid.velocity.iter().zip(&fluid.compression);
        let moving = collected(particles.map(|(v, &s)| [v.x, v.y, v.z, s]), PARTICLES)?;
        let particles = walls.volume.iter().zip(&walls.pressure);
        let particles = particles.zip(&walls.roughness);
        let still = particles.map(|((&volume, &pressure), &rough)| [volume, pressure, rough]);
        let still = collected(still, PARTICLES)?;
        let queue = engine.queue();
        let uploaded = |values: &[f32]| queue.array(PARTICLES, values).map_err(Error::from);
        let none = || zeros::<f32>(queue, 0);
        let mut arrays = Self {
            position: uploaded(bytemuck::cast_slice(&fluid.position))?,
            moving: uploaded(moving.as_flattened())?,
            rates: none()?,
            wall_rates: none()?,
            forces: none()?,
            wall_forces: none()?,
            pressed: none()?,
            wall_position: uploaded(bytemuck::cast_slice(&walls.position))?,
            still: uploaded(still.as_flattened())?,
            extrapolated: none()?,
            kept: none()?,
            wall_spare: none()?,
            partials: zeros(queue, MAX_BLOCKS * TOTALS)?,
            totals: zeros(queue, TOTALS)?,
            found: engine.host_copy(TOTALS)?,
        };
        arrays.fit(queue, [fluid.len(), walls.len()])?;
        Ok(arrays)
    }

    /// Makes room for this many fluid and wall particles. Arrays that are too short lose their
    /// values.
    pub(super) fn fit(&mut self, queue: &Queue, [fluid, walls]: [usize; 2]) -> Result<(), Error> {
        for (values, len) in [
            (&mut self.rates, 2 * fluid),
            (&mut self.wall_rates, fluid),
            (&mut self.forces, 4 * fluid),
            (&mut self.wall_forces, 4 * fluid),
            (&mut self.pressed, 5 * fluid),
            (&mut self.kept, 4 * fluid),
            (&mut self.extrapolated, 2 * walls),
            (&mut self.wall_spare, 3 * walls),
            // Empty ones, which cannot be cut.
            (&mut self.position, 1),
            (&mut self.moving, 4),
            (&mut self.wall_position, 1),
            (&mut self.still, 1),
        ] {
            if values.len() < len {
                // The number of particles changes; the first one often stays.
                let more = if values.len() > 4 { len / 8 } else { 0 };
                *values = zeros(queue, len + more)?;
            }
        }
        Ok(())
    }
}

impl Notes {
    pub(super) fn of(queue: &Queue, count: usize) -> Result<Self, Error> {
        Ok(Self {
            neighbors: zeros(queue, count)?,
            bins: zeros(queue, FRONT_BINS as usize)?,
            partials: zeros(queue, MAX_BLOCKS * MEASURE_SLOTS)?,
            totals: zeros(queue, MEASURE_SLOTS)?,
        })
    }
}

/// An array of `len` zeros, at least one: there may be no walls, but arrays cannot be empty.
pub(super) fn zeros<T: DeviceValue>(queue: &Queue, len: usize) -> Result<DeviceBuffer<T>, Error> {
    queue.alloc_zeros(len.max(1)).map_err(unallocated)
}

/// The id of these words.
pub(super) fn id_of([low, high]: [u32; 2]) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

pub(super) fn unallocated(error: DriverError) -> Error {
    GpuError::driver("allocating arrays of particles", error).into()
}
