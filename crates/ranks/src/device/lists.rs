//! Lists of neighbours on the device.
//!
//! The neighbours of a point are in two lists: those among the points that its rank owns, and, for
//! a point at the border, those in the halo. Global ids of a halo travel only if lists by id are
//! asked for.

use super::{
    engine::DeviceRankedEngine,
    set::{ID, id_of},
    staging::{Outgoing, download},
};
use crate::{
    Error, IdLists, RankedSet,
    communicator::FIELDS,
    error::{Failure, Refusal},
    spans::Spans,
};
use nearfield::device::{DeviceEngine, DeviceListsView, DeviceView};
use nearfield_grid::memory::{collected, make_room, with_room};

/// Lists of the points that a rank owns, from [`DeviceRankedEngine::neighbors`]; provisional until
/// [`DeviceRankedEngine::finish`].
#[derive(Debug)]
pub struct DeviceRankedLists<'a> {
    /// Neighbours among the owned points, in the order of the targets.
    pub owned: DeviceListsView<'a>,
    /// Neighbours in the halo of the points at the border; `None` without such points or without a
    /// halo.
    pub halo: Option<DeviceListsView<'a>>,
    /// The points at the border, ascending: list k of `halo` is that of point `border[k]`.
    pub border: DeviceView<'a, u32>,
}

/// Lists on the host.
struct OnHost {
    start: Vec<u64>,
    count: Vec<u32>,
    entries: Vec<u32>,
}

impl OnHost {
    fn of(engine: &DeviceEngine, lists: &DeviceListsView<'_>) -> Result<Self, Refusal> {
        let what = "lists of neighbours";
        let start = download(engine, what, &lists.start)?;
        let count = download(engine, what, &lists.count)?;
        // Behind the last list is room that nothing has written.
        let ends = start.iter().zip(&count);
        let end = ends.map(|(start, count)| *start as usize + *count as usize);
        let written = lists.entries.try_slice(0..end.max().unwrap_or(0));
        let written = written.ok_or_else(|| {
            Refusal::new("lists had too little room: call finish, and repeat the search")
        })?;
        Ok(Self {
            entries: download(engine, what, &written)?,
            start,
            count,
        })
    }

    fn list(&self, k: usize) -> &[u32] {
        let begin = self.start[k] as usize;
        &self.entries[begin..begin + self.count[k] as usize]
    }
}

impl DeviceRankedEngine {
    /// Computes the lists of `targets` among `sources`: those among owned points while halos are
    /// under way, then those of the border.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) if memory is short, or a set is not on its
    /// ranks.
    pub fn find_neighbors(&mut self, targets: RankedSet, sources: RankedSet) -> Result<(), Error> {
        let names = self.both(targets, sources);
        let owned = names.map(|[of, among]| (of.names, among.names));
        let owned = owned.and_then(|(of, among)| {
            self.engine.find_neighbors(of.owned, among.owned)?;
            self.device.staging.clock.worked(&self.engine)?;
            Ok((of, among))
        });
        let settled = self.settle();
        let found = owned.map_err(Failure::from).and_then(|(of, among)| {
            settled?;
            let [targets, sources] = self.both(targets, sources)?;
            if targets.meets(sources) {
                let border = &mut self.device.border.engine;
                border.find_neighbors(of.border, among.halo)?;
            }
            Ok(())
        });
        let joined = self.join_border();
        self.comm
            .agree(found.and(joined.map_err(Failure::from)), &mut [])
    }

    /// The lists from [`find_neighbors`](Self::find_neighbors). Not collective.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) on this rank if there are no lists of the
    /// sets as they are.
    pub fn neighbors(
        &self,
        targets: RankedSet,
        sources: RankedSet,
    ) -> Result<DeviceRankedLists<'_>, Error> {
        self.local(self.lists(targets, sources))
    }

    fn lists(
        &self,
        targets: RankedSet,
        sources: RankedSet,
    ) -> Result<DeviceRankedLists<'_>, Refusal> {
        let [of, among] = self.both(targets, sources)?;
        if of.pending.is_some() || among.pending.is_some() {
            return Err(Refusal::new(format!(
                "there are no lists of point sets {} and {} as they are: call find_neighbors",
                targets.0, sources.0
            )));
        }
        let owned = self.engine.neighbors(of.names.owned, among.names.owned)?;
        let halo = if of.meets(among) {
            let border = &self.device.border.engine;
            Some(border.neighbors(of.names.border, among.names.halo)?)
        } else {
            None
        };
        Ok(DeviceRankedLists {
            owned,
            halo,
            border: of.border.view(),
        })
    }

    /// The lists of the points of `targets` that this rank owns, in the order of its points, with
    /// global ids, each ascending. Copies them to the host. Call [`finish`](Self::finish) first.
    ///
    /// # Errors
    /// As [`neighbors`](Self::neighbors), on all ranks.
    pub fn lists_by_id(
        &mut self,
        targets: RankedSet,
        sources: RankedSet,
    ) -> Result<IdLists, Error> {
        let on = (FIELDS, self.comm.begin());
        let begun = self.begin_ids(targets, sources);
        let begun = begun.map_err(|refusal| self.comm.refuse(on, refusal));
        let written = begun.and_then(|packed| {
            if let Some(packed) = packed {
                self.post_to_halos(sources.0, ID, packed, on)?;
            }
            let halo = self.collect_of_halo(sources.0, ID, on)?;
            let points = self.device.sets[sources.0].halo_points;
            let view = halo.slice(0..ID * points);
            let ids = download(&self.device.border.engine, "ids of halos", &view)?;
            Ok(self.write_ids(targets, sources, &ids)?)
        });
        self.comm.agree(written, &mut [])
    }

    /// Checks that there are lists, and starts the copy of the ids that halos need.
    fn begin_ids(
        &mut self,
        targets: RankedSet,
        sources: RankedSet,
    ) -> Result<Option<Outgoing>, Refusal> {
        self.lists(targets, sources)?;
        let device = &mut *self.device;
        let among = &device.sets[sources.0];
        if among.sends.to.is_empty() {
            return Ok(None);
        }
        let places = &among.sends.places;
        let mut packed = device.staging.room(&self.engine, ID * places.count)?;
        (device.kernels).gather_whole(&among.id_words(), ID, &places.view(), &mut packed)?;
        let what = "ids of halos";
        Ok(Some(device.staging.leave(&self.engine, what, packed)?))
    }

    /// All lists with global ids; `halo` has the ids of the halo, as words.
    fn write_ids(
        &self,
        targets: RankedSet,
        sources: RankedSet,
        halo: &[u32],
    ) -> Result<IdLists, Refusal> {
        let lists = self.lists(targets, sources)?;
        let own = self.ids_on_host(sources.0)?;
        let owned = OnHost::of(&self.engine, &lists.owned)?;
        let far = lists.halo.as_ref().map(|far| OnHost::of(&self.engine, far));
        let far = far.transpose()?;
        let border = download(&self.engine, "places of the border", &lists.border)?;
        let (halo, _) = halo.as_chunks::<ID>();
        let halo: Vec<u64> = collected(halo.iter().map(|words| id_of(*words)), "ids of halos")?;
        let points = owned.count.len();
        let (mut spans, mut at) = (Spans::with_room(points)?, 0);
        let mut list: Vec<u64> = with_room(0, "lists of global ids")?;
        for k in 0..points {
            list.clear();
            let here = owned.list(k).iter().map(|j| own[*j as usize]);
            let mut there: &[u32] = &[];
            if border.get(at) == Some(&(k as u32)) {
                there = far.as_ref().map_or(&[], |far| far.list(at));
                at += 1;
            }
            make_room(&mut list, here.len() + there.len(), "lists of global ids")?;
            list.extend(here);
            list.extend(there.iter().map(|j| halo[*j as usize]));
            list.sort_unstable();
            spans.put(k, list.iter().copied())?;
        }
        Ok(spans.in_order()?.into())
    }
}
