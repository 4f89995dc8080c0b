//! Messages of a rank's points: halos that are sent and awaited, and words that come.

use super::{
    engine::DeviceRankedEngine,
    kernels::Rows,
    set::{POSITION, range_to},
    staging::zeros,
};
use crate::{
    communicator::{Exchange, Links, message},
    error::Refusal,
    routes::{Departures, Send, Source, Way},
    transport::{Fault, Tag},
};
use nearfield::device::{HostBuffer, cudarc::driver::CudaSlice};
use nearfield_grid::memory::make_room_for_one;
use std::sync::Arc;

/// The purpose of memory, for messages.
const WHAT: &str = "points from other ranks";

/// Appends the words of some points to a message.
pub(super) fn put(
    packed: &[u32],
    points: std::ops::Range<usize>,
    words: usize,
    message: &mut Vec<u8>,
) {
    let words = &packed[points.start * words..points.end * words];
    message.extend_from_slice(bytemuck::cast_slice(words));
}

/// The message of the points that go to a rank.
pub(super) fn message_to(
    packed: &Result<HostBuffer<u32>, Refusal>,
    sends: &[Send],
    words: usize,
    rank: usize,
) -> Result<Vec<u8>, Refusal> {
    let packed = packed.as_ref().map_err(Refusal::clone)?;
    let points = range_to(sends, rank);
    let mut message = message(4 * words * points.len())?;
    put(packed, points, words, &mut message);
    Ok(message)
}

impl DeviceRankedEngine {
    /// Waits for points of all partners, of `words` words each, and returns where they come from.
    pub(super) fn receive(
        &mut self,
        at: usize,
        exchange: Exchange,
        words: usize,
    ) -> Result<Result<Vec<Source>, Refusal>, Fault> {
        let device = &mut *self.device;
        let (staging, engine) = (&mut device.staging, &self.engine);
        let links: &Links = &device.sets[at].links;
        let mut sources = Vec::new();
        staging.begin();
        let received = links.receive_each(&mut self.comm, exchange, |rank, bytes| {
            if !bytes.len().is_multiple_of(4 * words) {
                return Err(4 * words);
            }
            let points = bytes.len() / (4 * words);
            let landed = make_room_for_one(&mut sources, WHAT).map_err(Refusal::from);
            Ok(landed.and_then(|()| {
                sources.push(Source { rank, points });
                staging.land(engine, bytes)
            }))
        })?;
        Ok(received.map(|()| sources))
    }

    /// Sends halos of points that are where they belong, and gives the engine these points. A
    /// failure on this rank is the error of the next call that needs the set, on all ranks.
    pub(super) fn send_halo(
        &mut self,
        at: usize,
        copied: Result<(), Refusal>,
        departures: Departures,
    ) -> Result<(), Fault> {
        let exchange = self.comm.begin();
        let packed = copied.and_then(|()| self.pack_halo(at, departures));
        let set = &mut self.device.sets[at];
        set.pending = (self.comm.ranks() > 1).then_some(exchange);
        let sent = set.links.post_each(&mut self.comm, exchange, |partner| {
            message_to(&packed, &set.way.sends, POSITION, partner)
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

    /// Copies the positions of halos to the host. The device sorts the points meanwhile.
    fn pack_halo(&mut self, at: usize, departures: Departures) -> Result<HostBuffer<u32>, Refusal> {
        let device = &mut *self.device;
        let set = &mut device.sets[at];
        set.take_ways(&self.engine, departures)?;
        let mut packed = zeros(&self.engine, POSITION * set.sends.count)?;
        let (indices, count) = set.sends.view();
        let rows = Rows {
            to: &mut packed,
            first: 0,
            stride: POSITION,
        };
        (device.kernels).gather(&set.view(), [POSITION; 2], (&indices, count), rows)?;
        let packed = device
            .staging
            .leave(&self.engine, "positions of halos", packed)?;
        self.engine.update(set.names.owned, &set.view())?;
        Ok(packed.wait()?)
    }

    /// Waits for the halo of a set, and brings it into the engine. The inner error is one of this
    /// rank.
    pub(super) fn receive_halo(
        &mut self,
        at: usize,
        exchange: Exchange,
    ) -> Result<Result<(), Refusal>, Fault> {
        let received = self.receive(at, exchange, POSITION)?;
        Ok(received.and_then(|sources| {
            let device = &mut *self.device;
            let halo = device.staging.upload(&self.engine, "positions of halos")?;
            let set = &mut device.sets[at];
            set.take_halo(&mut self.engine, &device.kernels, &halo, sources)
        }))
    }

    /// Waits for values of points that come by a way, `words` words each, and brings them to the
    /// device. The inner error is one of this rank, or the refusal of another one.
    pub(super) fn collect(
        &mut self,
        way: &Way,
        words: usize,
        on: (Tag, Exchange),
    ) -> Result<Result<Arc<CudaSlice<u32>>, Refusal>, Fault> {
        let (staging, engine) = (&mut self.device.staging, &self.engine);
        let mut landed = Ok(());
        staging.begin();
        let came = way.collect_packed(&mut self.comm, on, 4 * words, |_, bytes| {
            if landed.is_ok() {
                landed = staging.land(engine, bytes);
            }
        })?;
        Ok(came.and(landed).and_then(|()| staging.upload(engine, WHAT)))
    }
}
