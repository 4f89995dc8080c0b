//! A point set on one rank, on the device: the points that the rank owns, and those of its halo.
//!
//! As on the host, the engine of the rank has three sets for it: owned points, those of them at the
//! border, and the halo. Lists of owned points among themselves need no halo; those of the border
//! among the halo are the rest.

use super::{
    departures::{Departures, Table},
    kernels::Kernels,
    places::{Parcels, Places},
    staging::zeros,
};
use crate::{
    communicator::{Exchange, Links},
    error::Refusal,
    routes::Parcel,
};
use nearfield::{
    PointSetId,
    device::{
        DeviceEngine,
        cudarc::driver::{CudaSlice, CudaView},
    },
};
use nearfield_grid::Bounds;

/// Words of a position and of an id.
pub(super) const POSITION: usize = 3;
pub(super) const ID: usize = 2;

/// The id of these words.
pub(super) fn id_of([low, high]: [u32; ID]) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// The names of a set's parts in the engine of this rank.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names {
    pub(super) owned: PointSetId,
    pub(super) border: PointSetId,
    pub(super) halo: PointSetId,
}

impl Names {
    /// Parts without points. Those that were added before an error are removed.
    pub(super) fn add(engine: &mut DeviceEngine) -> Result<Self, Refusal> {
        let none = zeros::<f32>(engine, 1)?;
        let mut added = Vec::new();
        for _ in 0..3 {
            match engine.add_point_set(&none.slice(0..0)) {
                Ok(part) => added.push(part),
                Err(error) => {
                    for part in added {
                        // The error before tells more.
                        let _ = engine.remove_point_set(part);
                    }
                    return Err(error.into());
                }
            }
        }
        Ok(Self {
            owned: added[0],
            border: added[1],
            halo: added[2],
        })
    }

    /// Removes the parts.
    pub(super) fn remove(self, engine: &mut DeviceEngine) {
        for part in [self.owned, self.border, self.halo] {
            // A part that cannot be removed is not used again.
            let _ = engine.remove_point_set(part);
        }
    }
}

/// A point set.
pub(super) struct DeviceSet {
    pub(super) names: Names,
    pub(super) links: Links,
    /// True until the first migration after points were given by other ranks than their owners.
    pub(super) fresh: bool,
    /// Extent of the points of all ranks.
    pub(super) bounds: Bounds,
    /// Points that this rank owns.
    pub(super) points: usize,
    pub(super) positions: CudaSlice<f32>,
    pub(super) ids: CudaSlice<u32>,
    /// The points that are in the halos of others.
    pub(super) sends: Parcels,
    /// Where the points of the halo come from, in any order.
    pub(super) sources: Vec<Parcel>,
    /// The points that others see.
    pub(super) border: Places,
    pub(super) halo_points: usize,
    /// While the halo is under way.
    pub(super) pending: Option<Exchange>,
    /// The number of the domains that the points are with, the same on all ranks; 0 for none.
    pub(super) domains: u64,
    /// Why the set cannot be used on this rank.
    pub(super) broken: Option<String>,
    /// Classes of the cells around its points, and the number of the domains that they are of. Each
    /// set has its own: one for all would be made anew by sets in turn.
    pub(super) table: Option<(Table, u64)>,
}

impl DeviceSet {
    /// A set without points, the `at`-th.
    pub(super) fn new(engine: &DeviceEngine, names: Names, at: usize) -> Result<Self, Refusal> {
        let none = Places::none(engine)?;
        Ok(Self {
            names,
            links: Links::of_set(at),
            fresh: true,
            bounds: Bounds::EMPTY,
            points: 0,
            positions: zeros(engine, 1)?,
            ids: zeros(engine, 1)?,
            sends: Parcels::new(Vec::new(), none.clone()),
            sources: Vec::new(),
            border: none,
            halo_points: 0,
            pending: None,
            domains: 0,
            broken: None,
            table: None,
        })
    }

    /// The positions of owned points.
    pub(super) fn view(&self) -> CudaView<'_, f32> {
        self.positions.slice(0..POSITION * self.points)
    }

    /// The ids of owned points, as words.
    pub(super) fn id_words(&self) -> CudaView<'_, u32> {
        self.ids.slice(0..ID * self.points)
    }

    /// Takes the ways of points that this rank owns.
    pub(super) fn take_ways(&mut self, departures: Departures) {
        (self.sends, self.border) = (departures.seen, departures.border);
    }

    /// Whether points at the border find anything in the halo of `sources`.
    pub(super) fn meets(&self, sources: &Self) -> bool {
        self.border.count != 0 && sources.halo_points != 0
    }

    /// Brings a halo that has come, and the border, into the engine.
    pub(super) fn take_halo(
        &mut self,
        engine: &mut DeviceEngine,
        kernels: &Kernels,
        halo: &CudaSlice<u32>,
        sources: Vec<Parcel>,
    ) -> Result<(), Refusal> {
        let points = sources.iter().map(|source| source.points).sum();
        let mut border = zeros(engine, POSITION * self.border.count)?;
        let count = self.border.count;
        let rows = super::kernels::Rows {
            to: &mut border,
            first: 0,
            stride: POSITION,
        };
        kernels.gather(&self.view(), [POSITION; 2], &self.border.view(), rows)?;
        let parts = [
            (self.names.halo, halo, points),
            (self.names.border, &border, count),
        ];
        for (part, words, points) in parts {
            // Parts that were empty and are so again stay as they are.
            if points != 0 || engine.points(part)? != 0 {
                let positions = kernels.as_numbers(words, POSITION * points)?;
                engine.update(part, &positions)?;
            }
        }
        self.halo_points = points;
        self.sources = sources;
        Ok(())
    }
}
