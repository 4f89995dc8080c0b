//! Systems as callers give them, on the device or on the host.
//!
//! Lengths of arrays are checked here, because the host knows them. What stands in the arrays is
//! for kernels to check.

use super::gpu::GpuBackend;
use crate::{
    error::{Error, fits},
    handles::{DeviceValue, DeviceView, InUse},
    launch::SystemArrays,
};

/// Systems whose arrays are on the device.
///
/// The fields are those of `nearfield::systems::Systems`, flattened: numbers of a point, of a cell
/// and of a periodicity lie side by side. Arrays that are one for all systems have the numbers of a
/// single one. All of them are read by the work that a search puts on the stream.
#[derive(Debug)]
pub struct DeviceSystems<'a, T> {
    /// Three numbers of every point, system after system.
    pub positions: DeviceView<'a, T>,
    /// The first point of every system, and the number of points behind the last.
    pub offsets: DeviceView<'a, i64>,
    /// Radius of every system, or one for all; rounded to the precision of the coordinates.
    pub radii: DeviceView<'a, f64>,
    /// Nine numbers of every system, or of one for all, the rows being vectors. None where all are
    /// open.
    pub cells: Option<DeviceView<'a, f64>>,
    /// Three flags of every system, or of one for all: whether it repeats along a vector.
    pub periodic: Option<DeviceView<'a, u8>>,
    /// Pairs exactly as far apart as the radius are not neighbours.
    pub strict: bool,
}

/// The addresses of systems, while they are in use.
pub(super) struct SystemsInUse<'a> {
    pub(super) arrays: SystemArrays,
    /// Number of systems, and of points.
    pub(super) shape: [usize; 2],
    _held: [Option<InUse<'a>>; 5],
}

impl<T: DeviceValue> DeviceSystems<'_, T> {
    /// The addresses, for work on the stream of the backend.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] for arrays that do not fit each other, and
    /// [`ErrorKind::OtherDevice`].
    pub(super) fn lend<'a>(&'a self, backend: &'a GpuBackend) -> Result<SystemsInUse<'a>, Error> {
        let Self {
            positions,
            offsets,
            radii,
            cells,
            periodic,
            strict,
        } = self;
        backend.holds("positions of systems", positions.ordinal())?;
        backend.holds("offsets of systems", offsets.ordinal())?;
        backend.holds("radii of systems", radii.ordinal())?;
        let count = offsets.len().saturating_sub(1);
        let points = positions.len() / 3;
        fits("positions of systems", positions.len(), 3 * points)?;
        fits("offsets of systems", offsets.len(), count + 1)?;
        let many = one_or_many("radii of systems", radii.len(), count, 1)?;
        let (mut many, mut addresses) = (u32::from(many), [0; 2]);
        let (mut cells_held, mut periodic_held) = (None, None);
        if let Some(cells) = cells {
            backend.holds("cells of systems", cells.ordinal())?;
            many |= u32::from(one_or_many("cells of systems", cells.len(), count, 9)?) << 1;
            let (address, held) = cells.device_ptr(&backend.stream);
            (addresses[0], cells_held) = (address, Some(held));
        }
        if let Some(periodic) = periodic {
            backend.holds("periodicities of systems", periodic.ordinal())?;
            let flags = one_or_many("periodicities of systems", periodic.len(), count, 3)?;
            many |= u32::from(flags) << 2;
            let (address, held) = periodic.device_ptr(&backend.stream);
            (addresses[1], periodic_held) = (address, Some(held));
        }
        let (positions, a) = positions.device_ptr(&backend.stream);
        let (offsets, b) = offsets.device_ptr(&backend.stream);
        let (radii, c) = radii.device_ptr(&backend.stream);
        let arrays = SystemArrays {
            positions,
            offsets,
            radii,
            cells: addresses[0],
            periodic: addresses[1],
            many,
            strict: u32::from(*strict),
            ..SystemArrays::default()
        };
        Ok(SystemsInUse {
            arrays,
            shape: [count, points],
            _held: [Some(a), Some(b), Some(c), cells_held, periodic_held],
        })
    }
}

/// The same on the host.
#[derive(Debug, Clone, Copy)]
pub struct HostSystems<'a, T> {
    /// Coordinates of every point.
    pub positions: &'a [[T; 3]],
    /// The first point of every system, and the number of points behind the last.
    pub offsets: &'a [i64],
    /// Radius of every system, or one for all.
    pub radii: &'a [f64],
    /// Cell of every system, or one for all, or none.
    pub cells: &'a [[[f64; 3]; 3]],
    /// Periodicity of every system, or one for all, or none.
    pub periodic: &'a [[bool; 3]],
    /// Pairs exactly as far apart as the radius are not neighbours.
    pub strict: bool,
}

/// Whether an array of `each` numbers per system has those of every system, and not those of one
/// for all. A single system has one and all at once, which kernels need not tell apart.
///
/// `what` is the name of the array in the message.
///
/// # Errors
/// [`ErrorKind::FieldLength`] if it has neither.
pub(super) fn one_or_many(
    what: &'static str,
    found: usize,
    systems: usize,
    each: usize,
) -> Result<bool, Error> {
    if found == each {
        return Ok(false);
    }
    fits(what, found, systems.saturating_mul(each))?;
    Ok(true)
}
