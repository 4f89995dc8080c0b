//! A point set on the device.

use nearfield_gpu::{DevicePoints, GpuBackend};
use nearfield_grid::Bounds;

/// A point set.
#[derive(Debug)]
pub(super) struct DeviceSetId {
    pub(super) points: DevicePoints,
    /// Box that its cells cover.
    pub(super) room: Bounds,
}

impl DeviceSetId {
    /// A set of no points.
    pub(super) fn new(backend: &GpuBackend) -> Self {
        Self {
            points: backend.points(),
            room: Bounds::EMPTY,
        }
    }
}
