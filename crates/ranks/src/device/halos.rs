//! Messages of a rank's points: halos that are sent and awaited, and words that come.

use super::{
    departures::Departures,
    engine::DeviceRankedEngine,
    kernels::Rows,
    places::Parcels,
    set::POSITION,
    staging::{Packed, behind, words_in},
};
use crate::{
    communicator::{Exchange, Links, message},
    error::Refusal,
    routes::Parcel,
    transport::{Fault, Handed, Tag},
};
use nearfield::device::{DeviceBuffer, Event};
use nearfield_grid::memory::make_room_for_one;
use std::sync::Arc;

/// The purpose of memory, for messages.
const WHAT: &str = "points from other ranks";

/// Positions of a set that are where they belong.
pub(super) enum Copied {
    /// The engine does not have them yet.
    Unsorted,
    /// It has, and this is behind the positions and the lists of places, if that is known.
    Sorted(Option<Arc<Event>>),
}

/// The message of the points that go to a rank; of none, where nothing was packed.
pub(super) fn message_to(
    packed: Result<Option<&Packed>, &Refusal>,
    parcels: &Parcels,
    words: usize,
    rank: usize,
) -> Result<(Vec<u8>, Option<Handed>), Refusal> {
    let Some(packed) = packed.map_err(Refusal::clone)? else {
        return Ok((message(0)?, None));
    };
    let points = parcels.range_to(rank);
    packed.message(points.start * words..points.end * words)
}

impl DeviceRankedEngine {
    /// Waits for points of all partners, of `words` words each, and returns where they come from.
    pub(super) fn receive(
        &mut self,
        at: usize,
        exchange: Exchange,
        words: usize,
    ) -> Result<Result<Vec<Parcel>, Refusal>, Fault> {
        let device = &mut *self.device;
        let (staging, engine) = (&mut device.staging, &self.engine);
        let links: &Links = &device.sets[at].links;
        let mut sources = Vec::new();
        staging.begin();
        let received = links.receive_each_with(&mut self.comm, exchange, |rank, bytes, with| {
            let found = words_in(bytes, with.as_ref());
            if !found.is_some_and(|found| found.is_multiple_of(words)) {
                return Err(4 * words);
            }
            let points = found.unwrap_or(0) / words;
            let landed = make_room_for_one(&mut sources, WHAT).map_err(Refusal::from);
            Ok(landed.and_then(|()| {
                sources.push(Parcel { rank, points });
                staging.land(engine, bytes, with)
            }))
        })?;
        let fetched = match received {
            Ok(()) => staging.fetch(engine, &mut self.comm)?,
            Err(refusal) => Err(refusal),
        };
        Ok(fetched.map(|()| sources))
    }

    /// Sends halos of points that are where they belong, and gives the engine these points. A
    /// failure on this rank is the error of the next call that needs the set, on all ranks.
    pub(super) fn send_halo(
        &mut self,
        at: usize,
        copied: Result<Copied, Refusal>,
        departures: Departures,
    ) -> Result<(), Fault> {
        let _span = tracing::debug_span!("ranks.send").entered();
        let exchange = self.comm.begin();
        let packed = copied.and_then(|copied| self.pack_halo(at, copied, departures));
        self.device.staging.clock.posted(exchange);
        let set = &mut self.device.sets[at];
        set.pending = (self.comm.ranks() > 1).then_some(exchange);
        let sent = set
            .links
            .post_each_with(&mut self.comm, exchange, |partner| {
                let packed = packed.as_ref().map(Some);
                message_to(packed, &set.sends, POSITION, partner)
            })?;
        set.broken = match (&packed, sent) {
            (Err(refusal), _) => Some(refusal.message.clone()),
            (_, sent) => sent.err().map(|refusal| refusal.message),
        };
        set.domains = self.divided;
        if let Ok(packed) = packed {
            self.device.staging.give_back(packed);
        }
        Ok(())
    }

    /// Gathers the positions of halos, on the stream of the border. The device sorts the points
    /// while they are under way.
    fn pack_halo(
        &mut self,
        at: usize,
        copied: Copied,
        departures: Departures,
    ) -> Result<Packed, Refusal> {
        let device = &mut *self.device;
        let (set, border, staging) = (&mut device.sets[at], &device.border, &mut device.staging);
        set.take_ways(departures);
        let (sorted, ready) = match copied {
            Copied::Sorted(ready) => (true, ready),
            Copied::Unsorted => (false, None),
        };
        let ready = match ready {
            Some(ready) => ready,
            None => behind(&self.engine)?,
        };
        border.follow(&ready)?;
        let places = &set.sends.places;
        let mut packed = staging.room(&border.engine, POSITION * places.count)?;
        let rows = Rows {
            to: &mut packed,
            first: 0,
            stride: POSITION,
        };
        (border.kernels).gather(&set.view(), [POSITION; 2], &places.view(), rows)?;
        let packed = staging.leave(&border.engine, "positions of halos", packed)?;
        staging.clock.left(&border.engine)?;
        if !sorted {
            self.engine.update(set.names.owned, &set.view())?;
        }
        packed.wait()
    }

    /// Waits for the halo of a set, and brings it into the engine. The inner error is one of this
    /// rank.
    pub(super) fn receive_halo(
        &mut self,
        at: usize,
        exchange: Exchange,
    ) -> Result<Result<(), Refusal>, Fault> {
        let _span = tracing::debug_span!("ranks.halo").entered();
        self.device.staging.clock.comes(exchange);
        let received = self.receive(at, exchange, POSITION)?;
        Ok(received.and_then(|sources| {
            let device = &mut *self.device;
            let border = &mut device.border;
            let halo = (device.staging).upload(&border.engine, "positions of halos")?;
            device.sets[at].take_halo(border, &halo, sources)
        }))
    }

    /// Waits for values of points that come from other ranks, `words` words each, and brings them
    /// to the device, for the stream of the border or that of owned points. The inner error is one
    /// of this rank, or the refusal of another one.
    pub(super) fn collect(
        &mut self,
        parcels: &[Parcel],
        words: usize,
        for_border: bool,
        on: (Tag, Exchange),
    ) -> Result<Result<Arc<DeviceBuffer<u32>>, Refusal>, Fault> {
        let device = &mut *self.device;
        let staging = &mut device.staging;
        let engine = match for_border {
            true => &device.border.engine,
            false => &self.engine,
        };
        let mut landed = Ok(());
        staging.begin();
        for parcel in parcels.iter().filter(|_| words != 0) {
            let (rank, expected) = (parcel.rank, parcel.points * words);
            let (bytes, with) = self.comm.receive_with(rank, on.0, on.1)?;
            if bytes.is_empty() {
                return Ok(Err(Refusal::echo(rank)));
            }
            if words_in(&bytes, with.as_ref()) != Some(expected) {
                return Err(self.comm.wrong_length(bytes.len(), 4 * expected));
            }
            landed = landed.and_then(|()| staging.land(engine, &bytes, with));
        }
        if let Err(refusal) = landed {
            return Ok(Err(refusal));
        }
        let fetched = staging.fetch(engine, &mut self.comm)?;
        Ok(fetched.and_then(|()| staging.upload(engine, WHAT)))
    }
}
