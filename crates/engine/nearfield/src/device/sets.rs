//! The sets of an engine on the device, and the cells that all of them share.
//!
//! The host does not see coordinates, so it cannot make cells for them at every step. Cells are
//! made once, with room around the points ([`with_room`]), and later updates sort into them
//! without asking. The device notes the points that have left the room, and
//! [`settle_all`](DeviceEngine::settle_all) reads that note when the caller waits anyway. Then the
//! set is measured, and gets new room: one step in many is repeated, and none waits.
//!
//! **Invariant:** after `settle_all` has answered true, every set is sorted, and results since the
//! last call are those of its positions. A set whose positions are refused has its last good ones,
//! sorted if that was possible.
//!
//! # How a sort can have gone
//!
//! | the device says | then |
//! | --- | --- |
//! | as before | results count |
//! | points of large cells were put in order only now | last bits of sums may differ: repeat |
//! | an earlier sort, not looked at, was wrong | repeat |
//! | points are outside of the room | measure, new room, sort, repeat |
//! | coordinates are not finite | the last good positions, and an error |
//!
//! All sets share one lattice, so a set that gets new room may give all of them other cells. Sets
//! whose sort has not been looked at yet are measured before that, because a new sort would
//! overwrite the note that tells of them.

use super::{builder::DeviceEngineBuilder, engine::DeviceEngine, set::DeviceSetId};
use crate::{
    Error, ErrorKind, PointSetId,
    backend::gpu::{GpuCells, Occupancy},
    balance::Strategy,
    error::MissingLists,
};
use nearfield_gpu::{self as gpu, DeviceLattice, PositionBounds, SortOutcome};
use nearfield_grid::{Bounds, Domain, Lattice, Precision, Radius};

/// Room around the points of an open axis, in edges of the radius…
const ROOM_IN_RADII: f64 = 2.0;
/// …and as a share of their extent, whichever is more.
const ROOM_IN_EXTENTS: f64 = 1.0 / 16.0;

/// Points from which it pays to look how they lie before cells are chosen: that takes as long as a
/// step of a few.
const MANY_POINTS: usize = 1 << 14;

impl DeviceEngine {
    /// Waits for the device and looks how the sets were sorted; those that have outgrown their
    /// cells are sorted anew, and the answer is false.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub(crate) fn settle_all(&mut self) -> Result<bool, Error> {
        let settled = self.settle_each();
        self.sorted_anew |= !matches!(settled, Ok(true));
        settled
    }

    /// The same, set by set; the first refusal is returned when all have been looked at.
    fn settle_each(&mut self) -> Result<bool, Error> {
        let mut valid = true;
        for slot in 0..self.sets.len() {
            let set = self.slots.id(slot);
            let points = &self.sets[set.slot()].points;
            let well = if !points.is_sorted() {
                // Sorting failed when it was tried before.
                self.make_room(set)?;
                false
            } else {
                !points.is_provisional() || self.settle(set)?
            };
            if !well {
                self.outdate(set);
                valid = false;
            }
        }
        match self.refused.take() {
            Some(error) => Err(error),
            None => Ok(valid),
        }
    }

    /// Looks how the last sort of a set went; false when what was computed from it is not valid.
    fn settle(&mut self, set: PointSetId) -> Result<bool, Error> {
        let Some(lattice) = &*self.lattice else {
            return Ok(true);
        };
        let DeviceSetId { points, room, .. } = &mut self.sets[set.slot()];
        match self.backend.finish(points, lattice, room) {
            Ok(SortOutcome::AsBefore) => Ok(true),
            Ok(SortOutcome::Reordered | SortOutcome::Missed) => Ok(false),
            Err(error) if matches!(error.kind(), gpu::ErrorKind::Outside { .. }) => {
                let made = self.make_room(set);
                made.inspect_err(|_| self.take_back(set)).map(|()| false)
            }
            Err(source) => {
                self.take_back(set);
                Err(ErrorKind::OnDevice { set, source }.into())
            }
        }
    }

    /// Lists of the set are not those of its points any more.
    pub(super) fn outdate(&mut self, set: PointSetId) {
        self.named.outdate(Some(set));
        for ((targets, sources), lists) in &mut *self.lists {
            if [*targets, *sources].contains(&set.slot()) && std::mem::take(&mut lists.current) {
                lists.missing = MissingLists::Changed { set };
            }
        }
    }

    /// Gives a set the last positions that could be used, in the place of those that are refused.
    /// Where they cannot be sorted now, the set stays unsorted: traversals of it are refused, and
    /// the next [`finish`](Self::finish) tries again.
    pub(super) fn take_back(&mut self, set: PointSetId) {
        self.outdate(set);
        self.sorted_anew = true;
        self.sets[set.slot()].points.take_back();
        if let Err(error) = self.make_room(set) {
            tracing::warn!(set = set.slot(), %error, "the last good positions cannot be sorted");
        }
    }

    /// Measures a set and sorts it into cells with room around it. Waits for the device.
    pub(super) fn make_room(&mut self, set: PointSetId) -> Result<(), Error> {
        let bounds = self.measure(set)?;
        self.refit(&bounds, set)
    }

    /// Bounds of a set, which gets room around them.
    pub(super) fn measure(&mut self, set: PointSetId) -> Result<Bounds, Error> {
        let domain = self.settings.domain.clone().map_err(ErrorKind::Setup)?;
        // Free positions may lie wherever there are points.
        let others = if self.queries == Some(set) {
            let others = (self.sets.iter().enumerate()).filter(|&(slot, _)| slot != set.slot());
            others.fold(Bounds::EMPTY, |all, (_, other)| all.union(&other.room))
        } else {
            Bounds::EMPTY
        };
        let DeviceSetId { points, .. } = &mut self.sets[set.slot()];
        let on_device = |source| Error::from(ErrorKind::OnDevice { set, source });
        let bounds = match self.backend.measure(points).map_err(on_device)? {
            PositionBounds::Bounds(bounds) => bounds,
            PositionBounds::NotFinite { first, count } => {
                return Err(on_device(gpu::ErrorKind::NotFinite { first, count }.into()));
            }
        };
        let DeviceSetId { measured, room, .. } = &mut self.sets[set.slot()];
        (*measured, *room) = (bounds, bounds);
        let bulk = self.bulk()?;
        let DeviceEngineBuilder {
            radius, precision, ..
        } = self.settings;
        let radius = bulk.map_or(radius, |bulk| bulk.value_f64());
        let DeviceSetId { points, room, .. } = &mut self.sets[set.slot()];
        *room = with_room(&bounds, &domain, radius, precision);
        if !points.is_empty() {
            *room = room.union(&self.settings.within).union(&others);
        }
        Ok(bounds)
    }

    /// Sorts a set into the room around it, and all others if the cells are others now.
    ///
    /// Cost: a sort of one set, or of all if the lattice changes.
    pub(super) fn refit(&mut self, bounds: &Bounds, set: PointSetId) -> Result<(), Error> {
        let bulk = self.bulk()?;
        let cells = self.cells_for(bounds, set, bulk)?;
        let mut lattice = self.lattice_of(cells, bulk)?;
        let largest = self.settings.checked_radius().map_err(ErrorKind::Setup)?;
        let same = |old: &DeviceLattice| *old.lattice() == lattice && old.largest() == largest;
        let others = !self.lattice.as_ref().is_some_and(same);
        if others {
            if self.look_at_others(set) {
                lattice = self.lattice_of(cells, bulk)?;
            }
            let made = self.backend.lattice(&lattice, cells.per_radius)?;
            let cubic = GpuCells {
                along_x: 1,
                ..cells
            };
            let cubic = self.lattice_of(cubic, bulk)?;
            let made = made.dividing(cubic, cells.along_x);
            *self.lattice = match bulk {
                Some(_) => made.for_bulk(largest),
                None => Some(made),
            };
            self.sets.iter_mut().for_each(|set| set.points.unsort());
            self.named.outdate(None);
            for lists in self.lists.values_mut() {
                if std::mem::take(&mut lists.current) {
                    lists.missing = MissingLists::Changed { set };
                }
            }
        }
        let Some(lattice) = &mut *self.lattice else {
            return Ok(());
        };
        lattice.set_points(self.sets.iter().map(|set| set.points.len()).sum());
        for (index, device) in self.sets.iter_mut().enumerate() {
            if index == set.slot() || others {
                let id = self.slots.id(index);
                self.backend
                    .sort(&mut device.points, lattice, &device.room)
                    .map_err(|source| ErrorKind::OnDevice { set: id, source })?;
            }
        }
        for index in 0..self.sets.len() {
            if index == set.slot() || others {
                self.arrange(self.slots.id(index))?;
            }
        }
        Ok(())
    }

    /// The cells that all sets share; `bounds` are those of `set`, for whose points they are chosen
    /// if it is the first that has some.
    fn cells_for(
        &mut self,
        bounds: &Bounds,
        set: PointSetId,
        bulk: Option<Radius>,
    ) -> Result<GpuCells, Error> {
        let radius = bulk.map_or(self.settings.radius, |bulk| bulk.value_f64());
        let same = |lattice: &DeviceLattice| lattice.bulk() == bulk.map(|bulk| bulk.value());
        Ok(match (self.settings.subdivision, &*self.lattice) {
            // Cells for no points suit none.
            (0, Some(lattice)) if lattice.points() != 0 && same(lattice) => GpuCells {
                per_radius: lattice.subdivision(),
                along_x: lattice.along_x(),
            },
            (0, _) => {
                let edges = [radius; 3];
                let points = self.sets[set.slot()].points.len();
                let occupancy = Occupancy::new(points, bounds.extent(), edges);
                let occupancy = match self.settings.strategy {
                    Strategy::Flat if points >= MANY_POINTS => {
                        occupancy.of_points(self.occupancy(set, bulk)?)
                    }
                    _ => occupancy,
                };
                occupancy.cells(self.settings.strategy)
            }
            (given, _) => GpuCells {
                per_radius: given,
                along_x: 1,
            },
        })
    }

    /// Mean occupancy of the cells of a set's points, which is sorted into cells whose edge is the
    /// radius.
    fn occupancy(&mut self, set: PointSetId, bulk: Option<Radius>) -> Result<f64, Error> {
        let cells = GpuCells {
            per_radius: 1,
            along_x: 1,
        };
        let lattice = self.lattice_of(cells, bulk)?;
        let lattice = self.backend.lattice(&lattice, 1)?;
        let DeviceSetId { points, room, .. } = &mut self.sets[set.slot()];
        let sorted = self.backend.sort(points, &lattice, room);
        let occupancy = sorted.and_then(|()| self.backend.occupancy(points));
        occupancy.map_err(|source| ErrorKind::OnDevice { set, source }.into())
    }

    /// A lattice for the rooms of all sets, with cells for all radii or for the `bulk` of them.
    pub(super) fn lattice_of(
        &self,
        cells: GpuCells,
        bulk: Option<Radius>,
    ) -> Result<Lattice, Error> {
        let domain = self.settings.domain.clone().map_err(ErrorKind::Setup)?;
        let all = self.sets.iter().map(|set| set.room);
        let all = all.fold(Bounds::EMPTY, |all, room| all.union(&room));
        let radius = self.settings.checked_radius().map_err(ErrorKind::Setup)?;
        (cells.lattice(bulk.unwrap_or(radius), domain, &all))
            .map_err(|source| ErrorKind::Setup(source).into())
    }

    /// Measures the sets but one whose positions are provisional, before all are sorted into other
    /// cells; those that cannot be used are refused. True when any was measured.
    fn look_at_others(&mut self, but: PointSetId) -> bool {
        let mut any = false;
        for slot in 0..self.sets.len() {
            let set = self.slots.id(slot);
            if set == but || !self.sets[set.slot()].points.is_provisional() {
                continue;
            }
            any = true;
            // Results computed from them may be invalid.
            self.sorted_anew = true;
            if let Err(error) = self.measure(set) {
                self.refused.get_or_insert(error);
                self.sets[set.slot()].points.take_back();
                if let Err(error) = self.measure(set) {
                    self.refused.get_or_insert(error);
                }
            }
        }
        any
    }
}

/// Bounds with room for points to move. Along periodic axes that is a box either way: coordinates
/// may leave the box, and cells are a little larger the farther they do.
fn with_room(bounds: &Bounds, domain: &Domain, radius: f64, precision: Precision) -> Bounds {
    let mut room = *bounds;
    let (extent, lengths) = (bounds.extent(), domain.lengths());
    for axis in 0..3 {
        if bounds.min[axis] > bounds.max[axis] {
            continue;
        }
        let more = match lengths[axis] {
            Some(length) => length,
            None => (ROOM_IN_RADII * radius).max(ROOM_IN_EXTENTS * extent[axis]),
        };
        let finite = |value: f64| match precision {
            Precision::Single => f64::from((value as f32).clamp(f32::MIN, f32::MAX)),
            Precision::Double => value.clamp(f64::MIN, f64::MAX),
        };
        room.min[axis] = finite(bounds.min[axis] - more);
        room.max[axis] = finite(bounds.max[axis] + more);
    }
    room
}
