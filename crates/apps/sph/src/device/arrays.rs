//! The arrays of a fluid on a GPU, as long as its numbers of particles for its whole life.

use nearfield::device::{
    DeviceEngine, GpuError, HostCopy,
    cudarc::driver::{CudaSlice, DeviceRepr, DriverError, ValidAsZeroBits},
};
use nearfield_grid::memory::collected;
use nearfield_kernels::constants::sph::FRONT_BINS;

use super::kernels::{MAX_BLOCKS, MEASURE_SLOTS, TOTALS};
use crate::{Error, particles::Particles, walls::Walls};

/// Names of copies in messages and traces.
pub(super) const KEPT: &str = "velocities before a step";
pub(super) const PARTICLES: &str = "particles";
pub(super) const STEP: &str = "totals of a step";

/// Arrays of the device for sums beside those of a step.
pub(super) struct Notes {
    pub(super) neighbors: CudaSlice<u32>,
    /// Particles by bin of the front.
    pub(super) bins: CudaSlice<u32>,
    pub(super) partials: CudaSlice<f64>,
    pub(super) totals: CudaSlice<f64>,
}

/// Arrays of the device; numbers per particle in brackets.
pub(super) struct Arrays {
    /// [3]
    pub(super) position: CudaSlice<f32>,
    /// Velocity and compression [4].
    pub(super) moving: CudaSlice<f32>,
    pub(super) id: CudaSlice<u32>,
    /// [2] and [1]
    pub(super) rates: CudaSlice<f32>,
    pub(super) wall_rates: CudaSlice<f32>,
    /// Acceleration and heating [4].
    pub(super) forces: CudaSlice<f32>,
    pub(super) wall_forces: CudaSlice<f32>,
    /// Velocity, relative volume and specific pressure [5].
    pub(super) pressed: CudaSlice<f32>,
    /// Of wall particles: [3]; relative volume, specific pressure and roughness [3]; [2].
    pub(super) wall_position: CudaSlice<f32>,
    pub(super) still: CudaSlice<f32>,
    pub(super) extrapolated: CudaSlice<f32>,
    /// `moving` before the compression, should that have to be repeated; and room for sorting.
    pub(super) kept: CudaSlice<f32>,
    pub(super) spare_id: CudaSlice<u32>,
    pub(super) partials: CudaSlice<f64>,
    pub(super) totals: CudaSlice<f64>,
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
        let (count, wall_count) = (fluid.len(), walls.len());
        // An engine on a GPU takes fewer particles than 32 bits number.
        let ids = collected(fluid.id.iter().map(|&id| id as u32), PARTICLES)?;
        let uploaded = |values: &[f32]| engine.queue().array(PARTICLES, values).map_err(failed);
        let floats = |len| zeros::<f32>(engine, len);
        Ok(Self {
            position: uploaded(bytemuck::cast_slice(&fluid.position))?,
            moving: uploaded(moving.as_flattened())?,
            id: (engine.queue().array(PARTICLES, &ids)).map_err(failed)?,
            rates: floats(2 * count)?,
            wall_rates: floats(count)?,
            forces: floats(4 * count)?,
            wall_forces: floats(4 * count)?,
            pressed: floats(5 * count)?,
            wall_position: uploaded(bytemuck::cast_slice(&walls.position))?,
            still: uploaded(still.as_flattened())?,
            extrapolated: floats(2 * wall_count)?,
            kept: floats(4 * count)?,
            spare_id: zeros(engine, count)?,
            partials: zeros(engine, MAX_BLOCKS * TOTALS)?,
            totals: zeros(engine, TOTALS)?,
            found: engine.host_copy(TOTALS)?,
        })
    }
}

impl Notes {
    pub(super) fn of(engine: &DeviceEngine, count: usize) -> Result<Self, Error> {
        Ok(Self {
            neighbors: zeros(engine, count)?,
            bins: zeros(engine, FRONT_BINS as usize)?,
            partials: zeros(engine, MAX_BLOCKS * MEASURE_SLOTS)?,
            totals: zeros(engine, MEASURE_SLOTS)?,
        })
    }
}

/// An array of `len` zeros, or of one: there may be no walls, but arrays cannot be empty.
pub(super) fn zeros<T: DeviceRepr + ValidAsZeroBits>(
    engine: &DeviceEngine,
    len: usize,
) -> Result<CudaSlice<T>, Error> {
    engine.stream().alloc_zeros(len.max(1)).map_err(unallocated)
}

pub(super) fn failed(error: GpuError) -> Error {
    nearfield::Error::from(nearfield::ErrorKind::Gpu(error)).into()
}

pub(super) fn unallocated(error: DriverError) -> Error {
    failed(GpuError::driver("allocating arrays of particles", error))
}
