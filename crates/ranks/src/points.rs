//! Points, and how they travel.
//!
//! # Order
//!
//! The points that a rank owns stand in the ascending order of their global ids, and so do those of
//! its halo. So the order of two sources in an ascending list is the same on every rank that has
//! both, and it is the order of one engine that holds all points by ascending ids.

use crate::{
    communicator::{Communicator, Links},
    error::Refusal,
    routes::{Departures, Source, to},
    scalar::Scalar,
    transport::Fault,
};
use nearfield_grid::memory::{Shortage, filled, make_room, with_room};

/// Some points of a set.
#[derive(Debug, Clone)]
pub(crate) struct Points<T> {
    pub(crate) ids: Vec<u64>,
    pub(crate) positions: Vec<[T; 3]>,
    /// One per point, or none at all.
    pub(crate) radii: Vec<f32>,
}

impl<T> Default for Points<T> {
    fn default() -> Self {
        Self {
            ids: Vec::new(),
            positions: Vec::new(),
            radii: Vec::new(),
        }
    }
}

/// Bytes of a point in a message. `radii` says whether the points of all ranks have radii.
fn width<T: Scalar>(radii: bool) -> usize {
    8 + size_of::<[T; 3]>() + if radii { 4 } else { 0 }
}

impl<T: Scalar> Points<T> {
    /// Number of points.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Appends the points at some places of `from`.
    pub(crate) fn take(&mut self, from: &Self, indices: &[u32]) -> Result<(), Shortage> {
        let what = "points of a rank";
        let at = || indices.iter().map(|index| *index as usize);
        let points = self.len() + indices.len();
        make_room(&mut self.ids, points, what)?;
        make_room(&mut self.positions, points, what)?;
        self.ids.extend(at().map(|index| from.ids[index]));
        self.positions
            .extend(at().map(|index| from.positions[index]));
        if !from.radii.is_empty() {
            make_room(&mut self.radii, points, what)?;
            self.radii.extend(at().map(|index| from.radii[index]));
        }
        Ok(())
    }

    /// Appends ids, positions and radii of points to a message.
    fn pack(&self, indices: &[u32], radii: bool, message: &mut Vec<u8>) {
        for index in indices.iter().map(|index| *index as usize) {
            message.extend_from_slice(&self.ids[index].to_ne_bytes());
            message.extend_from_slice(bytemuck::bytes_of(&self.positions[index]));
            if radii {
                message.extend_from_slice(&self.radii[index].to_ne_bytes());
            }
        }
    }

    /// Appends the points of a message.
    fn unpack(&mut self, items: &[u8], radii: bool) -> Result<(), Shortage> {
        let (width, split) = (width::<T>(radii), 8 + size_of::<[T; 3]>());
        let (what, points) = ("points from other ranks", self.len() + items.len() / width);
        make_room(&mut self.ids, points, what)?;
        make_room(&mut self.positions, points, what)?;
        if radii {
            make_room(&mut self.radii, points, what)?;
        }
        for item in items.chunks_exact(width) {
            let (id, at) = (&item[..8], &item[8..split]);
            self.ids.push(bytemuck::pod_read_unaligned(id));
            self.positions.push(bytemuck::pod_read_unaligned(at));
            if radii {
                let radius = bytemuck::pod_read_unaligned(&item[split..]);
                self.radii.push(radius);
            }
        }
        Ok(())
    }

    /// The points in the order of their ids, and where each has come to.
    ///
    /// # Errors
    /// A shortage of memory, and a refusal if an id stands twice.
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
            sorted
        };
        if let Some(twice) = sorted.ids.windows(2).find(|pair| pair[0] == pair[1]) {
            let id = twice[0];
            return Err(Refusal::new(format!("two points have the id {id}")));
        }
        Ok((sorted, places))
    }
}

/// The places of ids in ascending order.
pub(crate) fn order_by_id(ids: &[u64]) -> Result<Vec<u32>, Shortage> {
    let mut order: Vec<u32> = with_room(ids.len(), "the order of points by id")?;
    order.extend(0..ids.len() as u32);
    // Every source comes in runs of ascending ids, which this sort merges.
    order.sort_by_key(|item| ids[*item as usize]);
    Ok(order)
}

/// Points that have come, source after source.
#[derive(Debug)]
pub(crate) struct Arrived<T> {
    pub(crate) points: Points<T>,
    pub(crate) sources: Vec<Source>,
    /// The memory that was short. Points are missing then, and `sources` has them all the same.
    pub(crate) short: Option<Shortage>,
}

impl<T> Default for Arrived<T> {
    fn default() -> Self {
        Self {
            points: Points::default(),
            sources: Vec::new(),
            short: None,
        }
    }
}

impl<T> Arrived<T> {
    /// Notes that points of a rank have come.
    fn came(&mut self, rank: usize, points: usize) {
        if points != 0 {
            self.sources.push(Source { rank, points });
        }
    }
}

/// Sends points to owners and halos on other ranks, a message to every partner.
pub(crate) fn post<T: Scalar>(
    comm: &mut Communicator,
    links: &Links,
    points: &Points<T>,
    departures: &Departures,
    radii: bool,
) -> Result<(), Fault> {
    let me = comm.rank();
    for partner in links.partners().iter().filter(|partner| **partner != me) {
        let both = [&departures.leaving, &departures.seen].map(|sends| to(sends, *partner));
        let mut message = Vec::new();
        if both.iter().any(|indices| !indices.is_empty()) {
            let items = both[0].len() + both[1].len();
            message.reserve_exact(8 + items * width::<T>(radii));
            message.extend_from_slice(&(both[0].len() as u64).to_ne_bytes());
            for indices in both {
                points.pack(indices, radii, &mut message);
            }
        }
        comm.post(*partner, links.tag, message)?;
    }
    Ok(())
}

/// Waits for the points of all partners: those that this rank owns, and those of its halo.
pub(crate) fn receive<T: Scalar>(
    comm: &mut Communicator,
    links: &Links,
    radii: bool,
) -> Result<[Arrived<T>; 2], Fault> {
    let mut arrived = [Arrived::default(), Arrived::default()];
    let (me, width) = (comm.rank(), width::<T>(radii));
    for partner in links.partners().iter().filter(|partner| **partner != me) {
        let message = comm.receive(*partner, links.tag)?;
        let Some((owned, items)) = message.split_first_chunk() else {
            if message.is_empty() {
                continue;
            }
            return Err(comm.wrong_length(message.len(), 8));
        };
        let owned = u64::from_ne_bytes(*owned) as usize;
        let end = owned.checked_mul(width).filter(|end| *end <= items.len());
        let Some(end) = end.filter(|_| items.len() % width == 0) else {
            return Err(comm.wrong_length(message.len(), 8 + width));
        };
        let (owned, halo) = items.split_at(end);
        for (arrived, items) in arrived.iter_mut().zip([owned, halo]) {
            arrived.came(*partner, items.len() / width);
            if let Err(shortage) = arrived.points.unpack(items, radii) {
                arrived.short = Some(shortage);
            }
        }
    }
    Ok(arrived)
}

/// Adds the points that stay on this rank to those that have come.
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
