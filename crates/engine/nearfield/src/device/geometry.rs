//! The geometry of pairs, in arrays that stay on the device.
//!
//! The kernels that write the entries of lists also write what is asked for of every pair, so there
//! is no second search, and arrays are parallel to the entries by construction. They grow with the
//! storage of the lists and are provisional as these are.

use super::{
    engine::{DeviceEngine, no_lists, pair},
    lists::DeviceListsView,
};
use crate::{Error, ErrorKind, PointSetId, error::MissingLists};
use nearfield_gpu::{
    DeviceColumns, ErrorKind as GpuErrorKind, GeometryQuantities, PairViews, PointNumber,
    PositionNumber,
};

/// Lists of one pair of sets and the geometry of their pairs: value k of every array of `pairs`
/// belongs to entry k of the lists.
///
/// All are the engine's, on its stream, and provisional until
/// [`DeviceEngine::finish`]. Room behind the last list is part of every array.
#[derive(Debug)]
pub struct DeviceGeometry<'a> {
    /// Starts, lengths and entries.
    pub lists: DeviceListsView<'a>,
    /// What was asked for of every pair.
    pub pairs: PairViews<'a>,
}

impl DeviceEngine {
    /// Writes the neighbour lists of `targets` among `sources` and, beside the entries, the numbers
    /// of every pair that are asked for. Lists are those of
    /// [`find_neighbors`](Self::find_neighbors), in the same order, and are replaced by its next
    /// call for these sets, which gives the other arrays back.
    ///
    /// ```no_run
    /// use nearfield::device::{DeviceEngine, Progress, GeometryQuantities};
    /// # use nearfield::{Error, PointSetId};
    /// # fn of(engine: &mut DeviceEngine, atoms: PointSetId) -> Result<(), Error> {
    /// let mut wanted = GeometryQuantities::NONE;
    /// (wanted.displacements, wanted.squares) = (true, true);
    /// while {
    ///     engine.pair_geometry(atoms, atoms, wanted)?;
    ///     engine.finish()? == Progress::Repeat
    /// } {}
    /// let found = engine.geometry(atoms, atoms)?;
    /// let displacements = found.pairs.displacements.expect("they were asked for");
    /// assert_eq!(displacements.len(), found.lists.entries.len());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Displacements point from the target to the source in its periodic image; their bits are
    /// those of [`Engine::pair_geometry`](crate::Engine::pair_geometry) in `f32`. A pair takes
    /// [`GeometryQuantities::bytes_per_pair`] beside its entry. Waits for the device the first
    /// time, and when an array is asked for that was not before.
    ///
    /// # Errors
    /// Those of [`find_neighbors`](Self::find_neighbors).
    /// [`gpu::ErrorKind::FarImages`](crate::error::gpu::ErrorKind::FarImages) is found by
    /// [`finish`](Self::finish).
    pub fn pair_geometry(
        &mut self,
        targets: PointSetId,
        sources: PointSetId,
        quantities: GeometryQuantities,
    ) -> Result<(), Error> {
        self.find(targets, sources, quantities)
    }

    /// The lists and the geometry that [`pair_geometry`](Self::pair_geometry) wrote.
    ///
    /// # Errors
    /// [`ErrorKind::NoLists`](crate::ErrorKind::NoLists) when there are none, a set has been
    /// updated since, or lists without geometry were found last.
    pub fn geometry(
        &self,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Result<DeviceGeometry<'_>, Error> {
        let lists = self.neighbors(targets, sources)?;
        let found = self.lists.get(&(targets.slot(), sources.slot()));
        let found = found.filter(|found| !found.quantities.is_none());
        let pairs = found.and_then(|found| found.storage.pair_views());
        match pairs {
            Some(pairs) => Ok(DeviceGeometry { lists, pairs }),
            None => Err(no_lists(targets, sources, MissingLists::Geometry)),
        }
    }

    /// Writes all pairs of two sets to arrays of the caller, in the order of the targets, each with
    /// the numbers that there is an array for. Pairs of a target are in the order of its list.
    ///
    /// Takes the lists that are there if they are those of the sets as they are and otherwise
    /// searches. In a box more than twice as wide as the radius, and in open space, pairs are
    /// computed from lists of any kind as they are written; elsewhere lists have to come with the
    /// geometry that is wanted, as [`pair_geometry`](Self::pair_geometry) finds them.
    /// What is written is provisional until [`finish`](Self::finish). Nothing is written behind the
    /// shortest array: where there are more [pairs](Self::pair_count) than it has room for, call
    /// this again with longer ones, which does not search again.
    ///
    /// ```no_run
    /// use nearfield::device::{DeviceColumns, DeviceEngine, Progress};
    /// # use nearfield::PointSetId;
    /// # fn of(
    /// #     engine: &mut DeviceEngine, atoms: PointSetId,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let stream = engine.stream().clone();
    /// let mut room = 1000;
    /// loop {
    ///     let mut sources = stream.alloc_zeros::<i64>(room)?;
    ///     let mut to = DeviceColumns::<f32, i64>::default();
    ///     to.sources = Some(sources.as_view_mut());
    ///     engine.write_pairs(atoms, atoms, &mut to)?;
    ///     if engine.finish()? == Progress::Repeat {
    ///         continue;
    ///     }
    ///     let pairs = engine.pair_count(atoms, atoms)? as usize;
    ///     if pairs <= room {
    ///         break;
    ///     }
    ///     room = pairs;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`pair_geometry`](Self::pair_geometry), and [`ErrorKind::Gpu`] for arrays of another GPU
    /// or of another precision than the engine's.
    pub fn write_pairs<T: PositionNumber, I: PointNumber>(
        &mut self,
        targets: PointSetId,
        sources: PointSetId,
        to: &mut DeviceColumns<'_, T, I>,
    ) -> Result<(), Error> {
        if self.settings.precision != T::PRECISION {
            let (found, expected) = (T::PRECISION, self.settings.precision);
            let refused = GpuErrorKind::Precision { found, expected };
            return Err(ErrorKind::Gpu(refused.into()).into());
        }
        self.usable()?;
        let follows = self.pair(targets, sources)?.pairs_follow_from_lists();
        let asked = GeometryQuantities {
            images: to.images.is_some(),
            displacements: to.displacements.is_some(),
            distances: to.distances.is_some(),
            ..GeometryQuantities::NONE
        };
        let are_there = self
            .current_lists(targets, sources)
            .is_ok_and(|lists| follows || lists.quantities == asked);
        if !are_there {
            let wanted = if follows {
                GeometryQuantities::NONE
            } else {
                asked
            };
            self.find(targets, sources, wanted)?;
        }
        let with = (&self.sets[..], &*self.filters);
        let of = pair(&self.slots, &self.lattice, with, targets, sources)?;
        let key = (targets.slot(), sources.slot());
        let Some(lists) = self.lists.get_mut(&key) else {
            return Err(no_lists(targets, sources, MissingLists::NotFound));
        };
        // Whether images have 32-bit numbers is found as they are written.
        lists.provisional |= asked.images;
        Ok(self.backend.write_columns(of, &mut lists.storage, to)?)
    }

    /// Number of pairs of the lists of two sets, as the last [`finish`](Self::finish) found it.
    ///
    /// # Errors
    /// As [`neighbors`](Self::neighbors).
    pub fn pair_count(&self, targets: PointSetId, sources: PointSetId) -> Result<u64, Error> {
        Ok(self.current_lists(targets, sources)?.storage.pairs())
    }
}
