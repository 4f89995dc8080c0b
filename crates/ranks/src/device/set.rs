//! A point set on one rank, on the device: the points that the rank owns, and its halo.
//!
//! As on the host, it has three sets: the owned points, in the engine of the rank, and the points
//! at the border and the halo, in the [engine of the border](super::border). Lists of owned points
//! among themselves need no halo; lists of the border among the halo are the rest.

use super::{
    border::Border,
    destinations::{Destinations, Table},
    places::{Places, SendLists},
    staging::zeros,
};
use crate::{
    communicator::{Exchange, Links},
    error::Refusal,
    routes::Peer,
};
use nearfield::{
    PointSetId,
    device::{DeviceBuffer, DeviceEngine, DeviceView},
};
use nearfield_grid::Bounds;

/// Words of a position and of an id.
pub(super) const POSITION: usize = 3;
pub(super) const ID: usize = 2;

/// The id of these words.
pub(super) fn id_of([low, high]: [u32; ID]) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// The sets in the engines of this rank that make up a point set.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartIds {
    pub(super) owned: PointSetId,
    pub(super) border: PointSetId,
    pub(super) halo: PointSetId,
}

impl PartIds {
    /// Adds empty parts. After an error none of them is left.
    pub(super) fn add(engine: &mut DeviceEngine, border: &mut Border) -> Result<Self, Refusal> {
        let none = zeros::<f32>(engine, 1)?;
        let none = none.slice(0..0);
        let owned = engine.add_point_set(&none)?;
        let border = &mut border.engine;
        let first = border.add_point_set(&none).map_err(|error| (error, None));
        let both = first.and_then(|first| {
            let second = border.add_point_set(&none);
            Ok((first, second.map_err(|error| (error, Some(first)))?))
        });
        match both {
            Ok((border, halo)) => Ok(Self {
                owned,
                border,
                halo,
            }),
            Err((error, first)) => {
                // The error tells more than another one would.
                let _ = engine.remove_point_set(owned);
                let _ = first.map(|first| border.remove_point_set(first));
                Err(error.into())
            }
        }
    }

    /// Removes the parts. One that cannot be removed is not used again.
    pub(super) fn remove(self, engine: &mut DeviceEngine, border: &mut Border) {
        let _ = engine.remove_point_set(self.owned);
        for part in [self.border, self.halo] {
            let _ = border.engine.remove_point_set(part);
        }
    }
}

/// A point set.
pub(super) struct DeviceSet {
    pub(super) names: PartIds,
    pub(super) links: Links,
    /// True until the first migration after points were given by other ranks than their owners.
    pub(super) fresh: bool,
    /// Extent of the points of all ranks.
    pub(super) bounds: Bounds,
    /// Number of points that this rank owns.
    pub(super) points: usize,
    pub(super) positions: DeviceBuffer<f32>,
    /// Room for the positions after the next migration.
    pub(super) next: DeviceBuffer<f32>,
    pub(super) ids: DeviceBuffer<u32>,
    /// The points in the halos of other ranks, rank by rank.
    pub(super) sends: SendLists,
    /// The ranks that the points of the halo come from, in any order.
    pub(super) sources: Vec<Peer>,
    /// The points in the halos of other ranks, each once.
    pub(super) border: Places,
    pub(super) halo_points: usize,
    /// The exchange of the halo while it is under way.
    pub(super) pending: Option<Exchange>,
    /// The number of the domains that the points are placed by, the same on all ranks; 0 for none.
    pub(super) domains: u64,
    /// Why the set cannot be used on this rank.
    pub(super) broken: Option<String>,
    /// Classes of the cells around its points, and the number of their domains. Each set has a
    /// table of its own, because sets with different extents would replace a shared one in turn.
    pub(super) table: Option<(Table, u64)>,
}

impl DeviceSet {
    /// A set without points, the `at`-th.
    pub(super) fn new(engine: &DeviceEngine, names: PartIds, at: usize) -> Result<Self, Refusal> {
        let none = Places::none(engine)?;
        Ok(Self {
            names,
            links: Links::of_set(at),
            fresh: true,
            bounds: Bounds::EMPTY,
            points: 0,
            positions: zeros(engine, 1)?,
            next: zeros(engine, 1)?,
            ids: zeros(engine, 1)?,
            sends: SendLists::new(Vec::new(), none.clone()),
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
    pub(super) fn view(&self) -> DeviceView<'_, f32> {
        self.positions.slice(0..POSITION * self.points)
    }

    /// The ids of owned points, as words.
    pub(super) fn id_words(&self) -> DeviceView<'_, u32> {
        self.ids.slice(0..ID * self.points)
    }

    /// Takes the send lists of owned points.
    pub(super) fn take_send_lists(&mut self, destinations: Destinations) {
        (self.sends, self.border) = (destinations.ghosts, destinations.border);
    }

    /// Returns true if points at the border may have neighbours in the halo of `sources`.
    pub(super) fn meets(&self, sources: &Self) -> bool {
        self.border.count != 0 && sources.halo_points != 0
    }

    /// Gives a halo that has arrived, and the border, to the engine of the border, whose stream has
    /// waited for the positions.
    pub(super) fn take_halo(
        &mut self,
        border: &mut Border,
        halo: &DeviceBuffer<u32>,
        sources: Vec<Peer>,
    ) -> Result<(), Refusal> {
        let points = sources.iter().map(|source| source.points).sum();
        let count = self.border.count;
        border.fit(POSITION * count)?;
        let Border {
            engine,
            kernels,
            rows,
        } = border;
        kernels.gather_whole(&self.view(), POSITION, &self.border.view(), rows)?;
        let parts = [
            (self.names.halo, halo, points),
            (self.names.border, &*rows, count),
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
