//! Copies of the particles on their way to the host, beside the steps that follow.
//!
//! The particles are first copied on the device, in the order of the solver's stream and in
//! microseconds. From there they go to page-locked memory on a stream of their own, while the
//! solver goes on to change the originals.

use std::sync::{Arc, Mutex, PoisonError};

use glam::Vec3;
use nearfield::device::{Arriving, DeviceEngine, GpuErrorKind, HostBuffer, Queue};
use nearfield_grid::{OfProcess, memory::collected};

use super::arrays::{Arrays, PARTICLES, failed, unallocated};
use crate::{Error, particles::Particles};

/// The stream of the copies, and page-locked memory that no copy uses.
pub(super) struct Flights {
    queue: Queue,
    spare: Arc<Mutex<Vec<OfProcess<Landing>>>>,
}

/// Page-locked memory for the particles; numbers per particle in brackets.
struct Landing {
    /// [3]
    position: HostBuffer<f32>,
    /// Velocity and compression [4].
    moving: HostBuffer<f32>,
    id: HostBuffer<u32>,
}

/// A copy under way.
pub(super) struct Flight {
    arrays: OfProcess<(Arriving<f32>, Arriving<f32>, Arriving<u32>)>,
    spare: Arc<Mutex<Vec<OfProcess<Landing>>>>,
}

impl Flights {
    pub(super) fn new(engine: &DeviceEngine) -> Result<Self, Error> {
        Ok(Self {
            queue: engine.queue().beside().map_err(failed)?,
            spare: Arc::default(),
        })
    }

    /// Starts to copy `count` particles.
    pub(super) fn start(
        &self,
        engine: &DeviceEngine,
        arrays: &Arrays,
        count: usize,
    ) -> Result<Flight, Error> {
        let stream = engine.stream();
        let position = Arc::new(stream.clone_dtod(&arrays.position).map_err(unallocated)?);
        let moving = Arc::new(stream.clone_dtod(&arrays.moving).map_err(unallocated)?);
        let id = Arc::new(stream.clone_dtod(&arrays.id).map_err(unallocated)?);
        let landing = match lock(&self.spare).pop() {
            Some(landing) => landing.into_inner(),
            None => Landing {
                position: engine.host_buffer(3 * count)?,
                moving: engine.host_buffer(4 * count)?,
                id: engine.host_buffer(count)?,
            },
        };
        self.queue.join(stream).map_err(unallocated)?;
        let start = (
            (self.queue).start_copy(PARTICLES, position, landing.position),
            (self.queue).start_copy(PARTICLES, moving, landing.moving),
            (self.queue).start_copy(PARTICLES, id, landing.id),
        );
        Ok(Flight {
            arrays: OfProcess::new((
                start.0.map_err(failed)?,
                start.1.map_err(failed)?,
                start.2.map_err(failed)?,
            )),
            spare: self.spare.clone(),
        })
    }
}

impl Flight {
    /// Waits for the particles.
    pub(super) fn land(self) -> Result<Particles, Error> {
        if self.arrays.is_inherited() {
            return Err(failed(GpuErrorKind::Forked.into()));
        }
        let (position, moving, id) = self.arrays.into_inner();
        let landed = Landing {
            position: position.wait().map_err(failed)?,
            moving: moving.wait().map_err(failed)?,
            id: id.wait().map_err(failed)?,
        };
        let moving = landed.moving.as_chunks::<4>().0;
        let positions = landed.position.as_chunks::<3>().0.iter();
        let velocities = moving.iter().map(|&[x, y, z, _]| Vec3::new(x, y, z));
        let particles = Particles {
            position: collected(positions.map(|&x| Vec3::from(x)), PARTICLES)?,
            velocity: collected(velocities, PARTICLES)?,
            compression: collected(moving.iter().map(|&[.., s]| s), PARTICLES)?,
            id: collected(landed.id.iter().map(|&id| u64::from(id)), PARTICLES)?,
        };
        lock(&self.spare).push(OfProcess::new(landed));
        Ok(particles)
    }
}

/// A panic leaves the list whole: memory is in it or not.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
