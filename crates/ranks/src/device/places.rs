//! Points by their places on the device, and those that go to other ranks.

use super::staging::Packed;
use crate::{
    communicator::{Communicator, Exchange},
    error::Refusal,
    routes::Parcel,
    transport::{Fault, Tag},
};
use nearfield::device::{DeviceBuffer, DeviceEngine, DeviceView};
use std::sync::Arc;

/// Places of some points, on the device: a part of an array.
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

    /// As the kernels take them.
    pub(super) fn view(&self) -> DeviceView<'_, u32> {
        self.indices.slice(self.first..self.first + self.count)
    }
}

/// Points that go to other ranks.
pub(super) struct Parcels {
    /// By rank, ascending; none without points.
    pub(super) to: Vec<Parcel>,
    /// The points of one after those of the other.
    pub(super) places: Places,
}

impl Parcels {
    pub(super) fn new(to: Vec<Parcel>, places: Places) -> Self {
        Self { to, places }
    }

    /// Where the points that go to a rank begin and end among all of them.
    pub(super) fn range_to(&self, rank: usize) -> std::ops::Range<usize> {
        let before = self.to.iter().take_while(|parcel| parcel.rank < rank);
        let first = before.map(|parcel| parcel.points).sum();
        let own = self.to.iter().find(|parcel| parcel.rank == rank);
        first..first + own.map_or(0, |parcel| parcel.points)
    }

    /// Sends words of these points, `words` for each. A rank whose message there is no memory for
    /// gets an empty one; the inner error is that shortage.
    pub(super) fn post(
        &self,
        comm: &mut Communicator,
        on: (Tag, Exchange),
        words: usize,
        packed: &Packed,
    ) -> Result<Result<(), Refusal>, Fault> {
        let (mut first, mut posted) = (0, Ok(()));
        for Parcel { rank, points } in self.to.iter().filter(|_| words != 0) {
            let end = first + points * words;
            let message = packed.message(first..end).unwrap_or_else(|shortage| {
                posted = Err(shortage);
                (Vec::new(), None)
            });
            comm.post_with(*rank, on.0, on.1, message)?;
            first = end;
        }
        Ok(posted)
    }
}
