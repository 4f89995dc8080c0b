//! Copies of the particles that go to the host while the solver continues.
//!
//! The particles are first copied on the device, in the order of the solver's stream, which takes
//! microseconds. From there they go to page-locked memory on a stream of their own, while the
//! solver changes the originals.

use std::sync::{Arc, Mutex, PoisonError};

use glam::Vec3;
use nearfield::{
    device::{
        DeviceEngine, DeviceView,
        copies::{Arriving, HostBuffer, Queue},
    },
    error::gpu::{Error as GpuError, ErrorKind as GpuErrorKind},
};
use nearfield_grid::{OfProcess, memory::collected};

use super::arrays::{Arrays, PARTICLES, id_of, unallocated};
use crate::{Error, particles::Particles};

/// The stream of the copies, and page-locked memory that no copy uses.
pub(super) struct Flights {
    queue: Queue,
    spare: Arc<Mutex<Vec<OfProcess<Landing>>>>,
}

/// Page-locked memory for at least as many particles; numbers per particle in brackets.
struct Landing {
    /// [3]
    position: HostBuffer<f32>,
    /// Velocity and compression [4].
    moving: HostBuffer<f32>,
    /// Words [2].
    id: HostBuffer<u32>,
}

/// A copy of `count` particles under way.
pub(super) struct Flight {
    count: usize,
    arrays: OfProcess<(Arriving<f32>, Arriving<f32>, Arriving<u32>)>,
    spare: Arc<Mutex<Vec<OfProcess<Landing>>>>,
}

impl Flights {
    pub(super) fn new(engine: &DeviceEngine) -> Result<Self, Error> {
        Ok(Self {
            queue: engine.queue().beside()?,
            spare: Arc::default(),
        })
    }

    /// Starts to copy `count` particles with these ids, at least one.
    pub(super) fn start(
        &self,
        engine: &DeviceEngine,
        arrays: &Arrays,
        ids: &DeviceView<'_, u32>,
        count: usize,
    ) -> Result<Flight, Error> {
        let stream = engine.stream();
        let floats = |values: DeviceView<'_, f32>| stream.clone_dtod(&values).map_err(unallocated);
        let position = Arc::new(floats(arrays.position.slice(0..3 * count))?);
        let moving = Arc::new(floats(arrays.moving.slice(0..4 * count))?);
        let id = Arc::new(
            stream
                .clone_dtod(&ids.slice(0..2 * count))
                .map_err(unallocated)?,
        );
        let kept = lock(&self.spare).pop().map(OfProcess::into_inner);
        let landing = match kept.filter(|landing| landing.id.len() >= 2 * count) {
            Some(landing) => landing,
            None => Landing {
                position: engine.host_buffer(3 * count)?,
                moving: engine.host_buffer(4 * count)?,
                id: engine.host_buffer(2 * count)?,
            },
        };
        self.queue.join(stream).map_err(unallocated)?;
        let start = (
            (self.queue).start_copy(PARTICLES, position, landing.position),
            (self.queue).start_copy(PARTICLES, moving, landing.moving),
            (self.queue).start_copy(PARTICLES, id, landing.id),
        );
        Ok(Flight {
            count,
            arrays: OfProcess::new((start.0?, start.1?, start.2?)),
            spare: self.spare.clone(),
        })
    }
}

impl Flight {
    /// Waits for the particles.
    pub(super) fn land(self) -> Result<Particles, Error> {
        if self.arrays.is_inherited() {
            return Err(GpuError::from(GpuErrorKind::Forked).into());
        }
        let (position, moving, id) = self.arrays.into_inner();
        let landed = Landing {
            position: position.wait()?,
            moving: moving.wait()?,
            id: id.wait()?,
        };
        let moving = &landed.moving.as_chunks::<4>().0[..self.count];
        let positions = landed.position.as_chunks::<3>().0[..self.count].iter();
        let ids = landed.id.as_chunks::<2>().0[..self.count].iter();
        let velocities = moving.iter().map(|&[x, y, z, _]| Vec3::new(x, y, z));
        let particles = Particles {
            position: collected(positions.map(|&x| Vec3::from(x)), PARTICLES)?,
            velocity: collected(velocities, PARTICLES)?,
            compression: collected(moving.iter().map(|&[.., s]| s), PARTICLES)?,
            id: collected(ids.map(|&words| id_of(words)), PARTICLES)?,
        };
        lock(&self.spare).push(OfProcess::new(landed));
        Ok(particles)
    }
}

/// A panic leaves the list whole: memory is in it or not.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
