//! Arrays of the caller that follow their points to the owners.
//!
//! The way is that of the positions before: from each caller to each owner, owned points only. The
//! plan outlives the set's own routes, which a migration replaces, so that any number of arrays can
//! follow.

use crate::{
    Error, RankedEngine, RankedSet, Scalar,
    communicator::MIGRATE,
    error::Refusal,
    routes::{Part, Routes},
    set::{Home, Set},
};
use nearfield_grid::memory::{Shortage, filled, make_room};

/// The way that the points of a set took, made by [`RankedEngine::migrate`].
#[derive(Debug, Clone)]
#[must_use = "arrays beside the positions are in their old order until they are brought along"]
pub struct Migration {
    routes: Routes,
    /// By local index: the place in the caller's new arrays.
    places: Vec<u32>,
    /// Points of the caller before.
    before: usize,
    /// Points of the caller now.
    now: usize,
}

impl Migration {
    /// The way from the callers of a set to the owners.
    pub(crate) fn new<T: Scalar>(set: &Set<T>) -> Result<Self, Shortage> {
        let local = &set.local;
        let mut places = filled(local.ids.len(), 0, "the order after a migration")?;
        for (place, index) in local.owned.iter().zip(0..) {
            places[*place as usize] = index;
        }
        Ok(Self {
            routes: set.routes.clone(),
            places,
            before: set.home.ids.len(),
            now: local.owned.len(),
        })
    }

    /// An array with one element per point in the order before the migration, brought into the
    /// order after it. Collective: all ranks bring the same arrays in the same order.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) if the array has another length on some
    /// rank, or memory is short there.
    pub fn bring<T: Scalar, V: bytemuck::Pod>(
        &self,
        engine: &mut RankedEngine<T>,
        values: &[V],
    ) -> Result<Vec<V>, Error> {
        let (found, expected) = (values.len(), self.before);
        let room = if found == expected {
            let room = filled(self.now, V::zeroed(), "an array of points that have moved");
            room.map_err(Refusal::from)
        } else {
            Err(Refusal::new(format!(
                "{found} values for {expected} points: bring arrays in the order before"
            )))
        };
        let comm = &mut engine.comm;
        let mut brought = comm.agree(room, &mut [])?;
        let pack = |index: usize, message: &mut Vec<u8>| {
            message.extend_from_slice(bytemuck::bytes_of(&values[index]));
        };
        self.routes.post(comm, MIGRATE, Part::Owned, pack)?;
        self.routes.own(comm.rank(), Part::Owned, |index, place| {
            brought[self.places[place] as usize] = values[index];
        });
        self.routes.collect(
            comm,
            MIGRATE,
            Part::Owned,
            size_of::<V>(),
            |place, bytes| {
                brought[self.places[place] as usize] = bytemuck::pod_read_unaligned(bytes);
            },
        )?;
        Ok(brought)
    }
}

impl<T: Scalar> RankedEngine<T> {
    /// Gives the points of a set new positions and makes the owner of every point its caller: from
    /// now on the caller's order on this rank is that of the points it owns, by ascending id
    /// ([`ids`](Self::ids)). [`Migration::bring`] takes arrays of the caller along.
    ///
    /// Where most points are on the rank that owns them, messages go between neighbouring ranks
    /// only.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    pub fn migrate(&mut self, set: RankedSet, positions: &[[T; 3]]) -> Result<Migration, Error> {
        self.update(set, positions)?;
        let own = &self.sets[set.0];
        let home = || {
            let local = &own.local;
            let mut home = Home::default();
            make_room(&mut home.ids, local.owned.len(), "global ids")?;
            make_room(&mut home.positions, local.owned.len(), "positions")?;
            make_room(&mut home.radii, local.radii.len(), "radii")?;
            for place in local.owned.iter().map(|place| *place as usize) {
                home.ids.push(local.ids[place]);
                home.positions.push(local.positions[place]);
                home.radii.extend(local.radii.get(place));
            }
            let migration = Migration::new(own)?;
            Ok((home, migration))
        };
        let (home, migration) = self.comm.agree(home(), &mut [])?;
        let own = &mut self.sets[set.0];
        if std::mem::take(&mut own.fresh) {
            own.links.renew();
        }
        let before = std::mem::replace(&mut own.home, home);
        self.place_set(set.0)
            .inspect_err(|_| self.sets[set.0].home = before)?;
        Ok(migration)
    }
}
