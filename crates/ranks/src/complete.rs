//! Points at the border with all of their neighbours, for sums that must not depend on the ranks.
//!
//! A sum has the same bits on any number of ranks if its terms are added in the same order, that of
//! the ids. Points of the interior have all their neighbours among the owned points, whose lists
//! ascend by id. Points at the border do not. For them the engine has one more set: the border, the
//! points near it, and the halo, by ascending id. Sums over its lists replace those of the border;
//! sums of the other points of the set are discarded.
//!
//! **Invariant:** the set has all points within the radius of every point at the border.

use crate::{points::Points, points::order_by_id, scalar::Scalar};
use nearfield_grid::memory::{Shortage, collected, with_room};

/// The purpose of the memory, for messages.
const WHAT: &str = "points around the border of a rank";

/// The members of the set, by their origin.
#[derive(Debug, Default)]
pub(crate) struct Complete {
    /// Places among the owned points, followed by those of the halo.
    pub(crate) members: Vec<u32>,
    /// The place in the set of every point of the border.
    pub(crate) border: Vec<u32>,
    /// Number of owned points.
    pub(crate) owned: usize,
}

impl Complete {
    /// The set of the `near` points among the `owned` ones, which include the `border`, and the
    /// halo.
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

    /// Calls `copy` for each owned member, with its place among the owned points and in the set.
    pub(crate) fn owned(&self, mut copy: impl FnMut(usize, usize)) {
        for (place, member) in self.members.iter().enumerate() {
            if (*member as usize) < self.owned {
                copy(*member as usize, place);
            }
        }
    }

    /// The same for members of the halo.
    pub(crate) fn halo(&self, mut copy: impl FnMut(usize, usize)) {
        for (place, member) in self.members.iter().enumerate() {
            if let Some(at) = (*member as usize).checked_sub(self.owned) {
                copy(at, place);
            }
        }
    }
}
