//! A point set on the device: its memory there, and the box that its cells cover.

use crate::backend::gpu::RadiusClasses;
use nearfield_gpu::{DevicePointData, DevicePoints, GpuBackend};
use nearfield_grid::{Bounds, Precision};

/// A point set.
#[derive(Debug)]
pub(super) struct DeviceSetId {
    pub(super) points: DevicePoints,
    /// Box around its points when they were last measured. Empty for a set without points.
    pub(super) measured: Bounds,
    /// Box that its cells cover: that of the points when they were last measured, and room around
    /// it. Empty for a set without points.
    pub(super) room: Bounds,
    /// What filters read of the points.
    pub(super) data: DevicePointData,
    pub(super) given: GivenData,
    /// How large their radii are.
    pub(super) radii: RadiusSizes,
}

/// What is known of how large the radii of a set's points are.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum RadiusSizes {
    /// Nothing: there are none, or they are in double precision.
    #[default]
    Unknown,
    /// The device counts them, and the host has not looked.
    Counting,
    Counted(RadiusClasses),
}

/// Of how many points there are data, where some were given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct GivenData {
    pub(super) types: Option<usize>,
    pub(super) exclusions: Option<usize>,
    pub(super) chosen: Option<usize>,
    pub(super) radii: Option<usize>,
}

impl DeviceSetId {
    /// A set of no points.
    pub(super) fn new(backend: &GpuBackend, precision: Precision) -> Self {
        Self {
            points: backend.points_in(precision),
            measured: Bounds::EMPTY,
            room: Bounds::EMPTY,
            data: DevicePointData::default(),
            given: GivenData::default(),
            radii: RadiusSizes::Unknown,
        }
    }
}
