//! A point set on one rank: the caller's points, and the points that this rank sees.
//!
//! # Order
//!
//! The points that a rank sees, its own and those of the halo, stand in the ascending order of
//! their global ids. So the order of two sources in an ascending list is the same on every rank
//! that has both, and it is the order of one engine that holds all points by ascending ids.
//! Lists, and sums over them, then have the same bits on any number of ranks.

use crate::{
    communicator::{Communicator, Links, PLACE},
    error::{PointOfRank, Refusal},
    routes::{Routes, Send, Source},
    scalar::Scalar,
    transport::Fault,
};
use nearfield::PointSetId;
use nearfield_grid::{
    Bounds,
    memory::{Shortage, filled, make_room},
};

/// The caller's points, in the caller's order.
#[derive(Debug, Clone)]
pub(crate) struct Home<T> {
    pub(crate) ids: Vec<u64>,
    pub(crate) positions: Vec<[T; 3]>,
    /// One per point, or none at all.
    pub(crate) radii: Vec<f32>,
}

impl<T> Default for Home<T> {
    fn default() -> Self {
        Self {
            ids: Vec::new(),
            positions: Vec::new(),
            radii: Vec::new(),
        }
    }
}

impl<T: Scalar> Home<T> {
    /// A refusal of one of the points.
    pub(crate) fn refuse(&self, message: impl ToString, index: Option<usize>) -> Refusal {
        let named = |index| {
            let id = *self.ids.get(index)?;
            Some(PointOfRank { index, id })
        };
        Refusal {
            message: message.to_string(),
            point: index.and_then(named),
        }
    }

    /// Ids, positions and radii of some points as a message, behind the number of those that the
    /// receiver owns. `radii` says whether the points of all ranks have radii.
    pub(crate) fn pack(&self, send: &Send, radii: bool) -> Vec<u8> {
        let width = Arrived::<T>::width(radii);
        let mut message = Vec::with_capacity(8 + send.indices.len() * width);
        message.extend_from_slice(&(send.owned as u64).to_ne_bytes());
        for index in send.indices.iter().map(|index| *index as usize) {
            message.extend_from_slice(&self.ids[index].to_ne_bytes());
            message.extend_from_slice(bytemuck::bytes_of(&self.positions[index]));
            if radii {
                message.extend_from_slice(&self.radii[index].to_ne_bytes());
            }
        }
        message
    }
}

/// Points that have come, source after source.
#[derive(Debug)]
pub(crate) struct Arrived<T> {
    pub(crate) sources: Vec<Source>,
    pub(crate) points: Home<T>,
}

impl<T: Scalar> Arrived<T> {
    /// Bytes of a point in a message.
    fn width(radii: bool) -> usize {
        8 + size_of::<[T; 3]>() + if radii { 4 } else { 0 }
    }

    /// Exchanges points with all partners: `sends` go out, and what comes is returned.
    pub(crate) fn exchange(
        comm: &mut Communicator,
        links: &Links,
        home: &Home<T>,
        sends: &[Send],
        radii: bool,
    ) -> Result<Self, Fault> {
        let me = comm.rank();
        for partner in links.partners().iter().filter(|partner| **partner != me) {
            let send = sends.iter().find(|send| send.rank == *partner);
            let message = send.map(|send| home.pack(send, radii));
            comm.post(*partner, PLACE, message.unwrap_or_default())?;
        }
        let mut arrived = Self {
            sources: Vec::new(),
            points: Home::default(),
        };
        for partner in links.partners() {
            if *partner == me {
                if let Some(own) = sends.iter().find(|send| send.rank == me) {
                    arrived.take_own(home, own);
                }
                continue;
            }
            let message = comm.receive(*partner, PLACE)?;
            if !message.is_empty() && !arrived.take(*partner, &message, radii) {
                return Err(comm.wrong_length(message.len(), Self::width(radii)));
            }
        }
        Ok(arrived)
    }

    /// Takes the points that stay on this rank.
    fn take_own(&mut self, home: &Home<T>, send: &Send) {
        let indices = || send.indices.iter().map(|index| *index as usize);
        let points = &mut self.points;
        points.ids.extend(indices().map(|index| home.ids[index]));
        let positions = indices().map(|index| home.positions[index]);
        points.positions.extend(positions);
        if !home.radii.is_empty() {
            points
                .radii
                .extend(indices().map(|index| home.radii[index]));
        }
        self.sources.push(Source {
            rank: send.rank,
            points: send.indices.len(),
            owned: send.owned,
        });
    }

    /// Takes the points of a message; false if its length is wrong.
    fn take(&mut self, rank: usize, message: &[u8], radii: bool) -> bool {
        let Some((owned, items)) = message.split_first_chunk() else {
            return false;
        };
        let (width, split) = (Self::width(radii), 8 + size_of::<[T; 3]>());
        let owned = u64::from_ne_bytes(*owned) as usize;
        let points = items.len() / width;
        for item in items.chunks_exact(width) {
            let (id, at) = (&item[..8], &item[8..split]);
            self.points.ids.push(bytemuck::pod_read_unaligned(id));
            self.points.positions.push(bytemuck::pod_read_unaligned(at));
            if radii {
                let radius = bytemuck::pod_read_unaligned(&item[split..]);
                self.points.radii.push(radius);
            }
        }
        self.sources.push(Source {
            rank,
            points,
            owned,
        });
        items.len() % width == 0 && owned <= points
    }

    /// Brings the points into the order of their ids. `sends` are those of the same exchange.
    ///
    /// # Errors
    /// A shortage of memory, and a refusal if an id stands twice.
    pub(crate) fn sorted(self, sends: Vec<Send>) -> Result<(Routes, Local<T>), Refusal> {
        let Self { sources, points } = self;
        let what = "the order of points by id";
        if points.ids.len() >= u32::MAX as usize {
            let many = nearfield_grid::ErrorKind::TooManyPoints(points.ids.len());
            return Err(Refusal::new(many));
        }
        let mut places = filled(points.ids.len(), 0u32, what)?;
        let mut local = Local::with_room(points.ids.len())?;
        // Two equal ids in a row are found below.
        if points.ids.is_sorted() {
            (places.iter_mut().zip(0..)).for_each(|(place, item)| *place = item);
            (local.ids, local.positions, local.radii) =
                (points.ids, points.positions, points.radii);
        } else {
            local.fill(&points, &mut places)?;
        }
        if let Some(twice) = local.ids.windows(2).find(|pair| pair[0] == pair[1]) {
            let id = twice[0];
            return Err(Refusal::new(format!("two points have the id {id}")));
        }
        let mut first = 0;
        for source in &sources {
            for place in &places[first..first + source.owned] {
                local.is_owned[*place as usize] = true;
            }
            first += source.points;
        }
        let numbers = 0..places.len() as u32;
        let owned = numbers.filter(|place| local.is_owned[*place as usize]);
        local.owned.extend(owned);
        let routes = Routes {
            sends,
            sources,
            places,
        };
        Ok((routes, local))
    }
}

/// The points that a rank sees, by ascending id.
#[derive(Debug, Clone)]
pub(crate) struct Local<T> {
    pub(crate) ids: Vec<u64>,
    pub(crate) positions: Vec<[T; 3]>,
    pub(crate) radii: Vec<f32>,
    /// False for points of the halo.
    pub(crate) is_owned: Vec<bool>,
    /// Local indices of the owned points, ascending.
    pub(crate) owned: Vec<u32>,
}

impl<T: Scalar> Local<T> {
    /// None of `points` points yet; all of them are marked as halo points.
    fn with_room(points: usize) -> Result<Self, Shortage> {
        let what = "the points that a rank sees";
        let mut local = Self {
            ids: Vec::new(),
            positions: Vec::new(),
            radii: Vec::new(),
            is_owned: filled(points, false, what)?,
            owned: Vec::new(),
        };
        make_room(&mut local.owned, points, what)?;
        Ok(local)
    }

    /// Takes `points` in the order of their ids, and writes where each has come to.
    fn fill(&mut self, points: &Home<T>, places: &mut [u32]) -> Result<(), Shortage> {
        let what = "the order of points by id";
        let mut order: Vec<u32> = Vec::new();
        make_room(&mut order, places.len(), what)?;
        order.extend(0..places.len() as u32);
        // Every source comes in runs of ascending ids, which this sort merges.
        order.sort_by_key(|item| points.ids[*item as usize]);
        make_room(&mut self.ids, order.len(), what)?;
        make_room(&mut self.positions, order.len(), what)?;
        make_room(&mut self.radii, points.radii.len(), what)?;
        for (place, item) in order.iter().enumerate() {
            let item = *item as usize;
            places[item] = place as u32;
            self.ids.push(points.ids[item]);
            self.positions.push(points.positions[item]);
            self.radii.extend(points.radii.get(item));
        }
        Ok(())
    }
}

/// A point set on this rank.
#[derive(Debug)]
pub(crate) struct Set<T> {
    /// Its name in the engine of this rank.
    pub(crate) id: PointSetId,
    pub(crate) home: Home<T>,
    /// The extent of the points of all ranks.
    pub(crate) bounds: Bounds,
    /// True once radii of single points were given, on all ranks.
    pub(crate) has_radii: bool,
    pub(crate) links: Links,
    /// True until the first migration after points were given by other ranks than their owners.
    pub(crate) fresh: bool,
    pub(crate) routes: Routes,
    pub(crate) local: Local<T>,
    /// Why the set cannot be used: it could not be placed after it was taken in. Also if another
    /// rank could not.
    pub(crate) broken: Option<String>,
}

impl<T: Scalar> Set<T> {
    /// A set without points.
    pub(crate) fn new(id: PointSetId) -> Result<Self, Shortage> {
        Ok(Self {
            id,
            home: Home::default(),
            bounds: Bounds::EMPTY,
            has_radii: false,
            links: Links::new(),
            fresh: true,
            routes: Routes::default(),
            local: Local::with_room(0)?,
            broken: None,
        })
    }
}
