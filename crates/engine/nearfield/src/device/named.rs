//! Neighbours of some points, which are named by their indices in an array of the device.
//!
//! The points become a share of their set that searches with all filters, in the order in which
//! they were named, so nothing is sorted or waited for. Their lists stand in storage of their own
//! and are provisional as all lists are.

use super::{
    engine::{DeviceEngine, no_lists, pair},
    lists::{DeviceListsView, search},
};
use crate::{
    Error, ErrorKind, ListKind, ListOrder, PointSetId, balance::Strategy, error::MissingLists,
};
use nearfield_gpu::{DeviceFilter, DeviceView, PairOfPoints, PointNumber};

impl DeviceEngine {
    /// Writes the neighbours in `sources` of some points of `targets` into storage of the engine:
    /// list k has those of point `points[k]`. The indices are whole numbers of 32 or 64 bits, in
    /// any order, and are copied; a point may be named more than once.
    ///
    /// ```no_run
    /// use nearfield::device::{DeviceEngine, DeviceView, Progress};
    /// # use nearfield::{Error, PointSetId};
    /// # fn of(
    /// #     engine: &mut DeviceEngine, atoms: PointSetId, chosen: &DeviceView<'_, u32>,
    /// # ) -> Result<(), Error> {
    /// while {
    ///     engine.find_neighbors_of(atoms, atoms, chosen)?;
    ///     engine.finish()? == Progress::Repeat
    /// } {}
    /// let lists = engine.neighbors_of(atoms, atoms)?;
    /// assert_eq!(lists.count.len(), chosen.len());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Lists are full, also in an engine of half lists, and in the engine's
    /// [order](super::DeviceEngineBuilder::list_order). All filters hold, and so do radii of single
    /// points, but [chosen targets](Self::set_targets) do not concern this: every point that is
    /// named has its neighbours. Lists are those of this call until the next, for whatever sets,
    /// and provisional until [`finish`](Self::finish). Waits for the device the first time, and
    /// where only the k nearest are kept.
    ///
    /// # Errors
    /// As [`find_neighbors`](Self::find_neighbors); [`ErrorKind::OnDevice`] for an array of another
    /// GPU, and if a set without points is asked for some. Indices that no point has are found by
    /// [`finish`](Self::finish), which returns [`ErrorKind::UnknownPoint`] with the first of them.
    pub fn find_neighbors_of<T: PointNumber>(
        &mut self,
        targets: PointSetId,
        sources: PointSetId,
        points: &DeviceView<'_, T>,
    ) -> Result<(), Error> {
        self.usable()?;
        let with = (&self.sets[..], &*self.filters);
        let of = pair(&self.slots, &self.lattice, with, targets, sources)?;
        let named = &mut *self.named;
        (named.current, named.provisional) = (false, true);
        named.sets = Some([targets, sources]);
        (named.of_points, named.targets) = (of.targets.len(), points.len());
        (self.backend)
            .name_points(of.targets, points, &mut named.points)
            .map_err(|source| ErrorKind::OnDevice {
                set: targets,
                source,
            })?;
        let of = PairOfPoints {
            share: Some(named.points.targets()),
            ..of
        };
        let mut of = of;
        if let Some(k) = self.filters.kept() {
            // Those of points that were named before are others.
            named.nearest.forget();
            self.backend.find_nearest(of, k, &mut named.nearest)?;
            of.filter = DeviceFilter {
                nearest: Some(named.nearest.last()),
                ..of.filter
            };
        }
        let storage = &mut named.storage;
        if self.filters.has_nearest() {
            storage.nearest_first(true);
        } else {
            storage.ascend(self.settings.order == ListOrder::Ascending);
        }
        let how = (ListKind::Full, Strategy::Flat);
        search(&self.backend, of, how, storage, self.settings.memory_limit)?;
        if of.sources.is_empty() {
            storage.clear_share(&self.backend, named.targets)?;
        }
        named.current = true;
        Ok(())
    }

    /// The lists that [`find_neighbors_of`](Self::find_neighbors_of) wrote last, one for each point
    /// that was named.
    ///
    /// # Errors
    /// [`ErrorKind::NoLists`] if it has found none of these sets, or if one of them has changed
    /// since.
    pub fn neighbors_of(
        &self,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Result<DeviceListsView<'_>, Error> {
        self.known(targets)?;
        self.known(sources)?;
        let named = &*self.named;
        let missing = |why| no_lists(targets, sources, why);
        if named.sets != Some([targets, sources]) {
            return Err(missing(MissingLists::NotFound));
        }
        if !named.current {
            return Err(missing(MissingLists::Changed { set: targets }));
        }
        let views = named.storage.views_of_share(named.targets);
        let (start, count, entries) = views.ok_or_else(|| missing(MissingLists::NotFound))?;
        Ok(DeviceListsView {
            start,
            count,
            entries,
        })
    }

    /// Looks whether points were named that there are not.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPoint`] with the first index that no point has; the lists are gone then.
    pub(super) fn settle_indices(&mut self) -> Result<(), Error> {
        let named = &mut *self.named;
        let Some(refused) = self.backend.refused_indices(&mut named.points)? else {
            return Ok(());
        };
        named.current = false;
        self.sorted_anew = true;
        let Some([set, _]) = named.sets else {
            return Ok(());
        };
        Err(ErrorKind::UnknownPoint {
            set,
            point: refused.bits as usize,
            points: named.of_points,
        }
        .into())
    }
}
