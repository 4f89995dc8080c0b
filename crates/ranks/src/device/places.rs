//! Points by their places on the device, and send lists of such places.

use super::staging::Packed;
use crate::{
    communicator::{Communicator, Exchange},
    error::{Failure, Refusal},
    routes::Peer,
    transport::Tag,
};
use nearfield::device::{DeviceBuffer, DeviceEngine, DeviceView};
use std::sync::Arc;

/// Places of some points, in a part of an array of the device.
#[derive(Clone)]
pub(super) struct Places {
    pub(super) indices: Arc<DeviceBuffer<u32>>,
    pub(super) first: usize,
    pub(super) count: usize,
}

impl Places {
    pub(super) fn none(engine: &DeviceEngine) -> Result<Self, Refusal> {
        Self::of(engine, &[])
    }

    pub(super) fn of(engine: &DeviceEngine, indices: &[u32]) -> Result<Self, Refusal> {
        Ok(Self {
            indices: Arc::new(engine.queue().array("places of points", indices)?),
            first: 0,
            count: indices.len(),
        })
    }

    /// The places, as kernels take them.
    pub(super) fn view(&self) -> DeviceView<'_, u32> {
        self.indices.slice(self.first..self.first + self.count)
    }
}

/// Send lists: the points that go to each rank.
pub(super) struct SendLists {
    /// The ranks, ascending; none without points.
    pub(super) to: Vec<Peer>,
    /// The points of all ranks, rank by rank.
    pub(super) places: Places,
}

impl SendLists {
    pub(super) fn new(to: Vec<Peer>, places: Places) -> Self {
        Self { to, places }
    }

    /// The range of a rank's points among all of them.
    pub(super) fn range_to(&self, rank: usize) -> std::ops::Range<usize> {
        let before = self.to.iter().take_while(|peer| peer.rank < rank);
        let first = before.map(|peer| peer.points).sum();
        let own = self.to.iter().find(|peer| peer.rank == rank);
        first..first + own.map_or(0, |peer| peer.points)
    }

    /// Sends `words` words of each point. If memory is short for the message of a rank, that rank
    /// gets an empty one, and this rank refuses.
    pub(super) fn post(
        &self,
        comm: &mut Communicator,
        on: (Tag, Exchange),
        words: usize,
        packed: &Packed,
    ) -> Result<(), Failure> {
        let (mut first, mut posted) = (0, Ok(()));
        for Peer { rank, points } in self.to.iter().filter(|_| words != 0) {
            let end = first + points * words;
            let message = packed.message(first..end).unwrap_or_else(|shortage| {
                posted = Err(shortage);
                (Vec::new(), None)
            });
            comm.post_with(*rank, on.0, on.1, message)?;
            first = end;
        }
        Ok(posted?)
    }
}
