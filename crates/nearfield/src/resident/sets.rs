//! The sets of an engine on the device, and the cells that all of them share.

use super::ResidentEngine;
use crate::{Error, PointSetId, gpu::finer_cells};
use nearfield_gpu::{self as gpu, DevicePoints, GpuLane, Measured, Settled};
use nearfield_grid::{Bounds, Domain, Lattice, Radius};

/// Room around the points of an open axis, in edges of the radius…
const ROOM_IN_RADII: f64 = 2.0;
/// …and as a share of their extent, whichever is more.
const ROOM_IN_EXTENTS: f64 = 1.0 / 16.0;

/// A point set.
#[derive(Debug)]
pub(super) struct ResidentSet {
    pub(super) points: DevicePoints,
    /// What its cells cover.
    pub(super) room: Bounds,
    /// Not looked at since it was sorted.
    pub(super) provisional: bool,
}

impl ResidentSet {
    /// A set of no points.
    pub(super) fn new(lane: &GpuLane) -> Self {
        Self {
            points: lane.points(),
            room: Bounds::EMPTY,
            provisional: false,
        }
    }
}

impl ResidentEngine {
    /// Looks how the last sort of a set went; false when its results are not valid.
    pub(super) fn settle(&mut self, set: PointSetId) -> Result<bool, Error> {
        let Some(lattice) = &self.lattice else {
            return Ok(true);
        };
        let ResidentSet {
            points,
            room,
            provisional,
        } = &mut self.sets[set.0];
        *provisional = false;
        match self.lane.finish(points, lattice, room) {
            Ok(Settled::AsBefore) => Ok(true),
            Ok(Settled::Reordered) => Ok(false),
            Err(gpu::Error::Outside { .. }) => self.make_room(set).map(|()| false),
            Err(source) => Err(Error::OnDevice { set, source }),
        }
    }

    /// Measures a set and sorts it into cells with room around it. Waits for the device.
    pub(super) fn make_room(&mut self, set: PointSetId) -> Result<(), Error> {
        let on_device = |source| Error::OnDevice { set, source };
        let measured = self.lane.measure(&self.sets[set.0].points);
        let bounds = match measured.map_err(on_device)? {
            Measured::Bounds(bounds) => bounds,
            Measured::NotFinite { first, count } => {
                return Err(on_device(gpu::Error::NotFinite { first, count }));
            }
        };
        let domain = self.settings.domain.clone().map_err(Error::Setup)?;
        let mut room = with_room(&bounds, &domain, self.settings.radius);
        if !self.sets[set.0].points.is_empty() {
            room = room.union(&self.settings.within);
        }
        self.sets[set.0].room = room;
        self.refit(&domain, &bounds, set)
    }

    /// Sorts a set into the room around it, and all others if the cells are others now.
    fn refit(&mut self, domain: &Domain, bounds: &Bounds, set: PointSetId) -> Result<(), Error> {
        let all = self.sets.iter().map(|set| set.room);
        let all = all.fold(Bounds::EMPTY, |all, room| all.union(&room));
        let radius = Radius::new(self.settings.radius).map_err(Error::Setup)?;
        let subdivision = match (self.settings.subdivision, &self.lattice) {
            (0, Some(lattice)) => lattice.subdivision(),
            (0, None) => {
                let edges = [f64::from(radius.value()); 3];
                finer_cells(self.sets[set.0].points.len(), bounds.extent(), edges)
            }
            (given, _) => given,
        };
        let lattice = Lattice::new(radius, *domain, subdivision, &all).map_err(Error::Setup)?;
        let others = self
            .lattice
            .as_ref()
            .is_none_or(|old| *old.lattice() != lattice);
        if others {
            let made = self.lane.lattice(&lattice, subdivision);
            self.lattice = Some(made.map_err(Error::Gpu)?);
        }
        let Some(lattice) = &self.lattice else {
            return Ok(());
        };
        for (index, resident) in self.sets.iter_mut().enumerate() {
            if index == set.0 || others {
                let id = PointSetId(index);
                self.lane
                    .sort(&mut resident.points, lattice, &resident.room)
                    .map_err(|source| Error::OnDevice { set: id, source })?;
            }
        }
        Ok(())
    }
}

/// Bounds with room for points to move. Along periodic axes that is a box either way: coordinates
/// may leave the box, and cells are a little larger the farther they do.
fn with_room(bounds: &Bounds, domain: &Domain, radius: f32) -> Bounds {
    let mut room = *bounds;
    let (extent, lengths) = (bounds.extent(), domain.lengths());
    for axis in 0..3 {
        if bounds.min[axis] > bounds.max[axis] {
            continue;
        }
        let more = match lengths[axis] {
            Some(length) => length,
            None => (ROOM_IN_RADII * f64::from(radius)).max(ROOM_IN_EXTENTS * extent[axis]),
        };
        let finite = |value: f64| f64::from((value as f32).clamp(f32::MIN, f32::MAX));
        room.min[axis] = finite(bounds.min[axis] - more);
        room.max[axis] = finite(bounds.max[axis] + more);
    }
    room
}
