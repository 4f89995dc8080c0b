//! Cells for the bulk of the radii of single points: the choice of an engine on the device.
//!
//! All sets share one lattice, so it follows from the radii of all sets together. Those that come
//! from the device are counted there, and the host reads the numbers in
//! [`finish`](DeviceEngine::finish), which waits anyway. Until then the cells there are stay. If
//! others are better, or more points are wide than kernels look at, sets are sorted again and the
//! step is to be repeated. So the same radii give the same cells, whoever they come from. With free
//! positions cells are those of the engine's radius, because theirs may be any up to it.
//!
//! **Invariant:** cells are for the bulk only if every set that has points has radii.

use super::{
    engine::DeviceEngine,
    set::{DeviceSetId, RadiusSizes},
};
use crate::{
    Error, ErrorKind, RadiusRule,
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
        let (mut all, mut points, mut around) = (RadiusClasses::NONE, 0, Bounds::EMPTY);
        let mut counting = false;
        for set in self.sets.iter().filter(|set| !set.points.is_empty()) {
            match known_radii(set) {
                RadiusSizes::Counted(classes) => all = all.and(classes),
                RadiusSizes::Counting => counting = true,
                RadiusSizes::Unknown => return Ok(None),
            }
            points += set.points.len();
            around = around.union(&set.measured);
        }
        let present = (self.lattice.as_ref()).and_then(DeviceLattice::bulk);
        let as_radius = |bulk| Radius::new(bulk).map_err(|source| ErrorKind::Setup(source).into());
        if counting {
            return present.map(as_radius).transpose();
        }
        // Cells cover that too.
        around = around.union(&settings.within);
        let largest = settings.checked_radius().map_err(ErrorKind::Setup)?;
        let domain = settings.domain.clone().map_err(ErrorKind::Setup)?;
        let counts = [rule.needs_targets(), rule.needs_sources()];
        let model = BulkModel::new(all, counts, points, (&around, &domain));
        let Some(bulk) = model.choose(largest.value(), present) else {
            return Ok(None);
        };
        let bulk = as_radius(bulk)?;
        let cells = GpuCells {
            per_radius: 1,
            along_x: 1,
        };
        let lattice = self.lattice_of(cells, Some(bulk))?;
        Ok(DeviceLattice::may_be_for_bulk(&lattice, largest).then_some(bulk))
    }

    /// Sorts all sets into other cells, if those for the radii that there are now are others; the
    /// answer is then true. Waits for the device then.
    pub(super) fn fit_radii(&mut self) -> Result<bool, Error> {
        let wanted = self.bulk()?.map(|bulk| bulk.value());
        if self
            .lattice
            .as_ref()
            .is_none_or(|lattice| lattice.bulk() == wanted)
        {
            return Ok(false);
        }
        let mut last = None;
        for slot in 0..self.sets.len() {
            if !self.sets[slot].points.is_empty() {
                let set = self.slots.id(slot);
                last = Some((self.measure(set)?, set));
            }
        }
        let Some((bounds, set)) = last else {
            return Ok(false);
        };
        self.refit(&bounds, set)?;
        Ok(true)
    }
}

/// What is known of the radii of a set. Those for other points than it has now count as unseen: no
/// job is run until there are others.
fn known_radii(set: &DeviceSetId) -> RadiusSizes {
    match set.given.radii {
        None => RadiusSizes::Unknown,
        Some(points) if points == set.points.len() => set.radii,
        Some(_) => RadiusSizes::Counting,
    }
}
