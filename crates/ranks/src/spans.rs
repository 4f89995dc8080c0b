//! Lists of points on their way from owners to the ranks that gave the points, or asked for them.
//!
//! An entry is the id of a neighbour, or a pair with its geometry.

use crate::{
    communicator::Communicator,
    error::{Failure, Refusal},
    routes::Route,
};
use nearfield_grid::memory::{Shortage, filled, make_room};
use std::ops::Range;

/// Lists in the order of their arrival, owner after owner.
pub(crate) struct Spans<V> {
    /// The place of each list, by point of the caller.
    spans: Vec<Range<usize>>,
    values: Vec<V>,
}

/// The purpose of the memory, for messages.
const WHAT: &str = "lists of global ids";

impl<V: bytemuck::Pod> Spans<V> {
    /// No list yet, for `points` points.
    pub(crate) fn with_room(points: usize) -> Result<Self, Refusal> {
        Ok(Self {
            spans: filled(points, 0..0, "offsets of lists")?,
            values: Vec::new(),
        })
    }

    /// Takes the list of a point.
    pub(crate) fn put(
        &mut self,
        index: usize,
        list: impl ExactSizeIterator<Item = V>,
    ) -> Result<(), Refusal> {
        let begin = self.values.len();
        let room = self.values.try_reserve(list.len());
        room.map_err(|_| Shortage::of::<V>(begin + list.len(), WHAT))?;
        self.values.extend(list);
        self.spans[index] = begin..self.values.len();
        Ok(())
    }

    /// The list of a point.
    fn of(&self, index: usize) -> &[V] {
        &self.values[self.spans[index].clone()]
    }

    /// Brings lists back to the ranks that asked for them, along the route of the questions.
    pub(crate) fn bring(
        &mut self,
        comm: &mut Communicator,
        route: &Route,
        lists: &Self,
    ) -> Result<(), Failure> {
        let exchange = comm.begin();
        let bytes = |place: usize| size_of::<u64>() + size_of_val(lists.of(place));
        let packed = route.post_back(comm, exchange, bytes, |place, message| {
            let list = lists.of(place);
            message.extend_from_slice(&(list.len() as u64).to_ne_bytes());
            message.extend_from_slice(bytemuck::cast_slice(list));
        });
        let mut put = Ok(());
        route.own(comm.rank(), |index, place| {
            if put.is_ok() {
                put = self.put(index, lists.of(place).iter().copied());
            }
        });
        let collected = route.collect_back(comm, exchange, |index, rest| {
            let (count, rest) = rest.split_first_chunk()?;
            let count = usize::try_from(u64::from_ne_bytes(*count)).ok()?;
            let list = rest.get(..count.checked_mul(size_of::<V>())?)?;
            let values = list.chunks_exact(size_of::<V>());
            if put.is_ok() {
                put = self.put(index, values.map(bytemuck::pod_read_unaligned));
            }
            Some(size_of::<u64>() + list.len())
        });
        packed.and(put.map_err(Failure::from)).and(collected)
    }

    /// All lists in the order of the points: where each begins and the last ends, and the values.
    pub(crate) fn in_order(self) -> Result<(Vec<u64>, Vec<V>), Refusal> {
        let mut offsets = Vec::new();
        make_room(&mut offsets, self.spans.len() + 1, "offsets of lists")?;
        offsets.push(0);
        let mut end = 0;
        for span in &self.spans {
            end += span.len() as u64;
            offsets.push(end);
        }
        if self.spans.is_sorted_by_key(|span| span.start) {
            return Ok((offsets, self.values));
        }
        let mut values = Vec::new();
        make_room(&mut values, self.values.len(), WHAT)?;
        for span in self.spans {
            values.extend_from_slice(&self.values[span]);
        }
        Ok((offsets, values))
    }
}
