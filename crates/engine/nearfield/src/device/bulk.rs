//! Cells for the bulk of the radii of single points: the choice of an engine on the device.
//!
//! All sets share one lattice, so it follows from the radii of all sets together, where the host
//! has seen them. Radii that come from the device are not counted: cells are then those of the
//! engine's radius, as they are with free positions, whose radius may be any up to it.
//!
//! **Invariant:** cells are for the bulk only if every set that has points has radii for them.

use super::{engine::DeviceEngine, set::DeviceSetId};
use crate::{
    Error, ErrorKind, PointSetId, RadiusRule,
    backend::gpu::{BulkModel, GpuCells, RadiusClasses},
    balance::Strategy,
};
use nearfield_gpu::DeviceLattice;
use nearfield_grid::{Bounds, Precision, Radius};

impl DeviceEngine {
    /// The radius that cells are to be made for, if not the engine's.
    pub(super) fn bulk(&self) -> Result<Option<Radius>, Error> {
        let (rule, settings) = (self.filters.rule(), &self.settings);
        let plain = settings.strategy == Strategy::Flat
            && settings.subdivision == 0
            && settings.precision == Precision::Single;
        if rule == RadiusRule::Uniform || !plain || self.queries.is_some() {
            return Ok(None);
        }
        let (mut all, mut points, mut room) = (RadiusClasses::NONE, 0, Bounds::EMPTY);
        for set in self.sets.iter().filter(|set| !set.points.is_empty()) {
            let Some(classes) = known_radii(set) else {
                return Ok(None);
            };
            all = all.and(classes);
            points += set.points.len();
            room = room.union(&set.room);
        }
        let largest = settings.checked_radius().map_err(ErrorKind::Setup)?;
        let domain = settings.domain.clone().map_err(ErrorKind::Setup)?;
        let counts = [rule.needs_targets(), rule.needs_sources()];
        let model = BulkModel::new(all, counts, points, (&room, &domain));
        let present = (self.lattice.as_ref()).and_then(DeviceLattice::bulk);
        let Some(bulk) = model.choose(largest.value(), present) else {
            return Ok(None);
        };
        let bulk = Radius::new(bulk).map_err(ErrorKind::Setup)?;
        let cells = GpuCells {
            per_radius: 1,
            along_x: 1,
        };
        let lattice = self.lattice_of(cells, Some(bulk))?;
        Ok(DeviceLattice::may_be_for_bulk(&lattice, largest).then_some(bulk))
    }

    /// Sorts all sets into other cells, if those for the radii that there are now are others. Waits
    /// for the device then.
    pub(super) fn fit_radii(&mut self, set: PointSetId) -> Result<(), Error> {
        let wanted = self.bulk()?.map(|bulk| bulk.value());
        let Some(lattice) = &*self.lattice else {
            return Ok(());
        };
        if self.sets[set.slot()].points.is_empty() || lattice.bulk() == wanted {
            return Ok(());
        }
        let bounds = self.measure(set)?;
        for slot in 0..self.sets.len() {
            let other = self.slots.id(slot);
            if other != set && !self.sets[slot].points.is_empty() {
                self.measure(other)?;
            }
        }
        self.refit(&bounds, set)
    }
}

/// How large the radii of a set are, if it has some for its points and the host has seen them.
fn known_radii(set: &DeviceSetId) -> Option<RadiusClasses> {
    set.radii
        .filter(|_| set.given.radii == Some(set.points.len()))
}
