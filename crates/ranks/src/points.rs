//! Points, and how they travel.
//!
//! # Order
//!
//! Owned points are sorted by ascending global id, and so are those of the halo. So two sources
//! have the same order in an ascending list on every rank that has both, and it is the order of one
//! engine that holds all points by ascending id.

use crate::{
    communicator::{Communicator, Exchange, Links, Untaken, message},
    error::{Failure, Refusal},
    point_data::{Carried, Columns, Rows},
    routes::{Destinations, Peer, to},
    scalar::Scalar,
};
use nearfield_grid::memory::{Shortage, filled, make_room, make_room_for_one, with_room};

/// Some points of a set.
#[derive(Debug, Clone)]
pub(crate) struct Points<T> {
    pub(crate) ids: Vec<u64>,
    pub(crate) positions: Vec<[T; 3]>,
    /// Radii and other data of the points.
    pub(crate) columns: Columns,
    /// What they exclude; halos do not have it.
    pub(crate) excluded: Rows,
}

impl<T> Default for Points<T> {
    fn default() -> Self {
        Self {
            ids: Vec::new(),
            positions: Vec::new(),
            columns: Columns::default(),
            excluded: Rows::default(),
        }
    }
}

/// Bytes of a point with these data in a message, without what it excludes.
fn width<T: Scalar>(carried: Carried) -> usize {
    8 + size_of::<[T; 3]>() + carried.width()
}

impl<T: Scalar> Points<T> {
    /// Number of points.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Appends the points of `from` at these places, without what they exclude.
    pub(crate) fn take(&mut self, from: &Self, indices: &[u32]) -> Result<(), Shortage> {
        let what = "points of a rank";
        let at = || indices.iter().map(|index| *index as usize);
        let points = self.len() + indices.len();
        make_room(&mut self.ids, points, what)?;
        make_room(&mut self.positions, points, what)?;
        self.ids.extend(at().map(|index| from.ids[index]));
        self.positions
            .extend(at().map(|index| from.positions[index]));
        self.columns.take(&from.columns, indices)
    }

    /// Appends ids, positions and columns of points to a message.
    fn pack(&self, indices: &[u32], carried: Carried, message: &mut Vec<u8>) {
        for index in indices.iter().map(|index| *index as usize) {
            message.extend_from_slice(&self.ids[index].to_ne_bytes());
            message.extend_from_slice(bytemuck::bytes_of(&self.positions[index]));
            self.columns.pack(index, carried, message);
        }
    }

    /// Appends the points of a message.
    fn unpack(&mut self, items: &[u8], carried: Carried) -> Result<(), Shortage> {
        let (width, split) = (width::<T>(carried), 8 + size_of::<[T; 3]>());
        let (what, points) = ("points from other ranks", self.len() + items.len() / width);
        make_room(&mut self.ids, points, what)?;
        make_room(&mut self.positions, points, what)?;
        self.columns.make_room(carried, points)?;
        for item in items.chunks_exact(width) {
            let (id, at) = (&item[..8], &item[8..split]);
            self.ids.push(bytemuck::pod_read_unaligned(id));
            self.positions.push(bytemuck::pod_read_unaligned(at));
            self.columns.unpack(carried, &item[split..]);
        }
        Ok(())
    }

    /// Overwrites positions and columns by those of the same points in another order: point k has
    /// the place `places[k]`.
    pub(crate) fn put_at(&mut self, places: &[u32], points: &Self) -> Result<(), Shortage> {
        for (place, position) in places.iter().zip(&points.positions) {
            self.positions[*place as usize] = *position;
        }
        self.columns.put_at(places, &points.columns)
    }

    /// The points in the order of their ids, and the new place of each.
    ///
    /// # Errors
    /// A shortage of memory, and a refusal if two points have one id.
    pub(crate) fn sorted(self) -> Result<(Self, Vec<u32>), Refusal> {
        let what = "the order of points by id";
        if self.len() >= u32::MAX as usize {
            let many = nearfield_grid::ErrorKind::TooManyPoints(self.len());
            return Err(Refusal::new(many));
        }
        let mut places = filled(self.len(), 0u32, what)?;
        // Two equal ids in a row are found below.
        let sorted = if self.ids.is_sorted() {
            (places.iter_mut().zip(0..)).for_each(|(place, item)| *place = item);
            self
        } else {
            let order = order_by_id(&self.ids)?;
            for (place, item) in (0..).zip(&order) {
                places[*item as usize] = place;
            }
            let mut sorted = Self::default();
            sorted.take(&self, &order)?;
            sorted.excluded.take(&self.excluded, &order)?;
            sorted
        };
        if let Some(twice) = sorted.ids.windows(2).find(|pair| pair[0] == pair[1]) {
            let id = twice[0];
            return Err(Refusal::new(format!("two points have the id {id}")));
        }
        Ok((sorted, places))
    }
}

/// The places of the ids, in ascending order of the ids.
///
/// The ids are runs of ascending ids, one per source, which are merged two by two. The sort of the
/// standard library does so too, but aborts the program if memory is short.
pub(crate) fn order_by_id(ids: &[u64]) -> Result<Vec<u32>, Shortage> {
    let what = "the order of points by id";
    let mut order: Vec<u32> = with_room(ids.len(), what)?;
    order.extend(0..ids.len() as u32);
    let mut ends = Vec::new();
    for at in 1..=ids.len() {
        if at == ids.len() || ids[at] < ids[at - 1] {
            make_room_for_one(&mut ends, what)?;
            ends.push(at);
        }
    }
    let mut merged: Vec<u32> = with_room(if ends.len() > 1 { ids.len() } else { 0 }, what)?;
    while ends.len() > 1 {
        merged.clear();
        let (mut begin, mut runs) = (0, 0);
        for pair in 0..ends.len().div_ceil(2) {
            let middle = ends[2 * pair];
            let end = ends[(2 * pair + 1).min(ends.len() - 1)];
            let (mut first, mut second) = (begin, middle);
            while first < middle && second < end {
                let [a, b] = [order[first], order[second]];
                if ids[b as usize] < ids[a as usize] {
                    merged.push(b);
                    second += 1;
                } else {
                    merged.push(a);
                    first += 1;
                }
            }
            merged.extend_from_slice(&order[first..middle]);
            merged.extend_from_slice(&order[second..end]);
            ends[runs] = end;
            (begin, runs) = (end, runs + 1);
        }
        ends.truncate(runs);
        std::mem::swap(&mut order, &mut merged);
    }
    Ok(order)
}

/// Points that have arrived, source after source.
#[derive(Debug)]
pub(crate) struct Arrived<T> {
    pub(crate) points: Points<T>,
    pub(crate) sources: Vec<Peer>,
    /// True if these are the points of the previous halo, from the same ranks in the same order.
    pub(crate) same: bool,
}

impl<T> Default for Arrived<T> {
    fn default() -> Self {
        Self {
            points: Points::default(),
            sources: Vec::new(),
            same: false,
        }
    }
}

impl<T> Arrived<T> {
    /// Notes that points of a rank have arrived.
    pub(crate) fn came(&mut self, rank: usize, points: usize) {
        if points != 0 {
            self.sources.push(Peer { rank, points });
        }
    }
}

/// Sends points to owners and halos on other ranks: a message to every partner, an empty one if it
/// needs none. A partner is told if memory is short for its message.
pub(crate) fn post<T: Scalar>(
    comm: &mut Communicator,
    exchange: Exchange,
    links: &Links,
    points: &Points<T>,
    (destinations, carried): (&Destinations, Carried),
) -> Result<(), Failure> {
    links.post_each(comm, exchange, |partner| {
        let both = [&destinations.leaving, &destinations.ghosts].map(|sends| to(sends, partner));
        let items = both[0].len() + both[1].len();
        if items == 0 {
            return Ok(message(0)?);
        }
        let rows = match carried.rows {
            true => points.excluded.bytes(both[0]),
            false => 0,
        };
        let mut message = message(8 + rows + items * width::<T>(carried))?;
        message.extend_from_slice(&(both[0].len() as u64).to_ne_bytes());
        if carried.rows {
            points.excluded.pack(both[0], &mut message);
        }
        for indices in both {
            points.pack(indices, carried, &mut message);
        }
        Ok(message)
    })
}

/// Waits for the points from all partners: those that this rank owns, and those of its halo.
pub(crate) fn receive<T: Scalar>(
    comm: &mut Communicator,
    exchange: Exchange,
    links: &Links,
    carried: Carried,
) -> Result<[Arrived<T>; 2], Failure> {
    let mut arrived = [Arrived::default(), Arrived::default()];
    let width = width::<T>(carried);
    links.receive_each(comm, exchange, |partner, message| {
        let short = Untaken::Length { least: 8 };
        let (owned, items) = message.split_first_chunk().ok_or(short)?;
        let owned = u64::from_ne_bytes(*owned) as usize;
        let items = match carried.rows {
            true => {
                let rows = &mut arrived[0].points.excluded;
                let rest = rows.unpack(owned, items);
                rest.ok_or(Untaken::Length { least: 8 + width })??
            }
            false => items,
        };
        let end = owned.checked_mul(width).filter(|end| *end <= items.len());
        let Some(end) = end.filter(|_| items.len().is_multiple_of(width)) else {
            return Err(Untaken::Length { least: 8 + width });
        };
        let (owned, halo) = items.split_at(end);
        for (arrived, items) in arrived.iter_mut().zip([owned, halo]) {
            arrived.came(partner, items.len() / width);
            arrived.points.unpack(items, carried)?;
        }
        Ok(())
    })?;
    Ok(arrived)
}

/// Adds the points that stay on this rank, without what they exclude, to those that have arrived.
pub(crate) fn stay<T: Scalar>(
    arrived: &mut Arrived<T>,
    points: &Points<T>,
    indices: &[u32],
    rank: usize,
) -> Result<(), Shortage> {
    arrived.points.take(points, indices)?;
    arrived.came(rank, indices.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_ids_are_merged_in_order() {
        let shapes: [&[u64]; 7] = [
            &[],
            &[3],
            &[1, 2, 3],
            &[3, 2, 1],
            &[5, 7, 9, 0, 6, 8, u64::MAX, 1],
            &[4, 4, 2, 2, 4],
            &[9, 1, 8, 2, 7, 3, 6, 4, 5],
        ];
        for ids in shapes {
            let order = order_by_id(ids).unwrap();
            let mut expected: Vec<u32> = (0..ids.len() as u32).collect();
            expected.sort_by_key(|item| ids[*item as usize]);
            assert_eq!(order, expected, "{ids:?}");
        }
    }
}
