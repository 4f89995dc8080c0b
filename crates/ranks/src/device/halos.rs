//! Messages with the points of a rank: halos that are sent and received, and other words.

use super::{
    destinations::Destinations,
    engine::DeviceRankedEngine,
    places::SendLists,
    set::POSITION,
    staging::{Packed, behind, words_in},
};
use crate::{
    communicator::{Exchange, Links, Untaken, message},
    error::{Failure, Refusal},
    routes::Peer,
    transport::{Fault, Handed, Tag},
};
use nearfield::device::{DeviceBuffer, Event};
use nearfield_grid::memory::make_room_for_one;
use std::sync::Arc;

/// The purpose of memory, for messages.
const WHAT: &str = "points from other ranks";

/// Positions of a set that are on their owners.
pub(super) enum Copied {
    /// The engine does not have them yet.
    Unsorted,
    /// It has them, and this event is behind the positions and the send lists, if one was recorded.
    Sorted(Option<Arc<Event>>),
}

/// The message with the points for a rank, an empty one if nothing was packed.
pub(super) fn message_to(
    packed: Result<Option<&Packed>, &Refusal>,
    lists: &SendLists,
    words: usize,
    rank: usize,
) -> Result<(Vec<u8>, Option<Handed>), Refusal> {
    let Some(packed) = packed.map_err(Refusal::clone)? else {
        return Ok((message(0)?, None));
    };
    let points = lists.range_to(rank);
    packed.message(points.start * words..points.end * words)
}

impl DeviceRankedEngine {
    /// Waits for points of `words` words each from all partners, and returns the partners that sent
    /// any.
    pub(super) fn receive(
        &mut self,
        at: usize,
        exchange: Exchange,
        words: usize,
    ) -> Result<Vec<Peer>, Failure> {
        let device = &mut *self.device;
        let (staging, engine) = (&mut device.staging, &self.engine);
        let links: &Links = &device.sets[at].links;
        let mut sources = Vec::new();
        staging.begin();
        links.receive_each_with(&mut self.comm, exchange, |rank, bytes, with| {
            let found = words_in(bytes, with.as_ref());
            if !found.is_some_and(|found| found.is_multiple_of(words)) {
                return Err(Untaken::Length { least: 4 * words });
            }
            let points = found.unwrap_or(0) / words;
            make_room_for_one(&mut sources, WHAT)?;
            sources.push(Peer { rank, points });
            Ok(staging.land(engine, bytes, with)?)
        })?;
        staging.fetch(engine, &mut self.comm)?;
        Ok(sources)
    }

    /// Sends halos of points that are on their owners, and gives the engine these points. A failure
    /// on this rank becomes the error of the next call that needs the set, on all ranks.
    pub(super) fn send_halo(
        &mut self,
        at: usize,
        copied: Result<Copied, Refusal>,
        destinations: Destinations,
    ) -> Result<(), Fault> {
        let _span = tracing::debug_span!("ranks.send").entered();
        let exchange = self.comm.begin();
        let packed = copied.and_then(|copied| self.pack_halo(at, copied, destinations));
        self.device.staging.clock.posted(exchange);
        let set = &mut self.device.sets[at];
        set.pending = (self.comm.ranks() > 1).then_some(exchange);
        let sent = set
            .links
            .post_each_with(&mut self.comm, exchange, |partner| {
                let packed = packed.as_ref().map(Some);
                message_to(packed, &set.sends, POSITION, partner)
            });
        set.broken = match (&packed, &sent) {
            (_, Err(Failure::Lost(fault))) => return Err(fault.clone()),
            (Err(refusal), _) | (_, Err(Failure::Refused(refusal))) => {
                Some(refusal.message.clone())
            }
            (Ok(_), Ok(())) => None,
        };
        set.domains = self.divided;
        if let Ok(packed) = packed {
            self.device.staging.give_back(packed);
        }
        Ok(())
    }

    /// Gathers the positions of halos on the stream of the border. The device sorts the points
    /// while the halos are under way.
    fn pack_halo(
        &mut self,
        at: usize,
        copied: Copied,
        destinations: Destinations,
    ) -> Result<Packed, Refusal> {
        let device = &mut *self.device;
        let (set, border, staging) = (&mut device.sets[at], &device.border, &mut device.staging);
        set.take_send_lists(destinations);
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
        (border.kernels).gather_whole(&set.view(), POSITION, &places.view(), &mut packed)?;
        let packed = staging.leave(&border.engine, "positions of halos", packed)?;
        staging.clock.left(&border.engine)?;
        if !sorted {
            self.engine.update(set.names.owned, &set.view())?;
        }
        packed.wait()
    }

    /// Waits for the halo of a set, and gives it to the engine.
    pub(super) fn receive_halo(&mut self, at: usize, exchange: Exchange) -> Result<(), Failure> {
        let _span = tracing::debug_span!("ranks.halo").entered();
        self.device.staging.clock.comes(exchange);
        let sources = self.receive(at, exchange, POSITION)?;
        let device = &mut *self.device;
        let border = &mut device.border;
        let halo = (device.staging).upload(&border.engine, "positions of halos")?;
        Ok(device.sets[at].take_halo(border, &halo, sources)?)
    }

    /// Waits for values of points from other ranks, `words` words each, and uploads them for the
    /// stream of the border or that of owned points.
    pub(super) fn collect(
        &mut self,
        lists: &[Peer],
        words: usize,
        for_border: bool,
        on: (Tag, Exchange),
    ) -> Result<Arc<DeviceBuffer<u32>>, Failure> {
        let device = &mut *self.device;
        let staging = &mut device.staging;
        let engine = match for_border {
            true => &device.border.engine,
            false => &self.engine,
        };
        let mut landed: Result<(), Refusal> = Ok(());
        staging.begin();
        for peer in lists.iter().filter(|_| words != 0) {
            let (rank, expected) = (peer.rank, peer.points * words);
            let (bytes, with) = self.comm.receive_with(rank, on.0, on.1)?;
            if bytes.is_empty() {
                return Err(Refusal::echo(rank).into());
            }
            if words_in(&bytes, with.as_ref()) != Some(expected) {
                return Err(self.comm.wrong_length(bytes.len(), 4 * expected).into());
            }
            landed = landed.and_then(|()| staging.land(engine, &bytes, with));
        }
        landed?;
        staging.fetch(engine, &mut self.comm)?;
        Ok(staging.upload(engine, WHAT)?)
    }
}
