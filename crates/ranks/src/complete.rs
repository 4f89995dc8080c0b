//! Points at the border with all of their neighbours, for sums that must not depend on the ranks.
//!
//! A sum has the same bits on any number of ranks if its terms are added in the same order: that of
//! the ids. Points inside a domain have all their neighbours among the owned points, whose lists
//! ascend by id. Those at the border do not. For them the engine has one more set: the border, the
//! points near it, and the halo, by ascending id. Sums over its lists replace those of the border;
//! the other points of the set are there to be found, and their sums are thrown away.
//!
//! **Invariant:** all points within the radius of a point at the border are in the set.

use crate::{points::Points, points::order_by_id, scalar::Scalar};
use nearfield_grid::memory::{Shortage, collected, with_room};

/// The purpose of the memory, for messages.
const WHAT: &str = "points around the border of a rank";

/// Where the points of the set come from.
#[derive(Debug, Default)]
pub(crate) struct Complete {
    /// Places among the owned points, or, behind these, among those of the halo.
    pub(crate) members: Vec<u32>,
    /// The place in the set of every point of the border.
    pub(crate) border: Vec<u32>,
    /// Number of owned points.
    pub(crate) owned: usize,
}

impl Complete {
    /// The set of the `near` points among the `owned` ones, the `border` among them, and the halo.
    pub(crate) fn new<T: Scalar>(
        owned: &Points<T>,
        [near, border]: [&[u32]; 2],
        halo: &Points<T>,
    ) -> Result<(Self, Points<T>), Shortage> {
        let mut both = Points::default();
        both.take(owned, near)?;
        let of_halo = collected(0..halo.len() as u32, WHAT)?;
        both.take(halo, &of_halo)?;
        let order = order_by_id(&both.ids)?;
        let mut points = Points::default();
        points.take(&both, &order)?;
        let mut complete = Self {
            members: with_room(order.len(), WHAT)?,
            border: with_room(border.len(), WHAT)?,
            owned: owned.len(),
        };
        for (place, item) in (0..).zip(order.iter().map(|item| *item as usize)) {
            let Some(at) = near.get(item) else {
                let of_halo = item - near.len();
                complete.members.push((owned.len() + of_halo) as u32);
                continue;
            };
            complete.members.push(*at);
            // Places among the owned points ascend as ids do, so the border comes in its order.
            if border.get(complete.border.len()) == Some(at) {
                complete.border.push(place);
            }
        }
        Ok((complete, points))
    }

    /// Calls `copy` with a place among the owned points and a place in the set, for all of these.
    pub(crate) fn owned(&self, mut copy: impl FnMut(usize, usize)) {
        for (place, member) in self.members.iter().enumerate() {
            if (*member as usize) < self.owned {
                copy(*member as usize, place);
            }
        }
    }

    /// The same for the places among those of the halo.
    pub(crate) fn halo(&self, mut copy: impl FnMut(usize, usize)) {
        for (place, member) in self.members.iter().enumerate() {
            if let Some(at) = (*member as usize).checked_sub(self.owned) {
                copy(at, place);
            }
        }
    }
}
