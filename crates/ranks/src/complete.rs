//! Points at the border with all of their neighbours, for sums that must not depend on the ranks,
//! and for filters that decide about all neighbours of a point together.
//!
//! A sum has the same bits on any number of ranks if its terms are added in the same order, that of
//! the ids. Points of the interior have all their neighbours among the owned points, whose lists
//! ascend by id. Points at the border do not. For them the engine has one more set: the border, the
//! points near it, and the halo, by ascending id. Sums over its lists replace those of the border;
//! sums of the other points of the set are discarded.
//!
//! The k nearest are those among all neighbours, and exclusions hold in the engine among the points
//! of one of its sets. So lists of the border are those of this set too where points have filters
//! of these kinds.
//!
//! **Invariant:** the set has all points within the radius of every point at the border.

use crate::{RankedBuilder, points::Points, points::order_by_id, scalar::Scalar};
use nearfield_grid::memory::{Shortage, collected, with_room};

/// The purpose of the memory, for messages.
const WHAT: &str = "points around the border of a rank";

/// What the settings need the points around the border for. Exclusions need them besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surrounded {
    Never,
    /// For deterministic sums.
    ForSums,
    /// For lists, and for all sums.
    ForLists,
}

impl Surrounded {
    /// By the settings of an engine.
    pub(crate) fn by(settings: &RankedBuilder) -> Self {
        if settings.nearest {
            Self::ForLists
        } else if settings.deterministic {
            Self::ForSums
        } else {
            Self::Never
        }
    }
}

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

    /// The origin of the member at a place: false and its place among the owned points, or true and
    /// its place in the halo.
    pub(crate) fn origin(&self, place: usize) -> (bool, u32) {
        let member = self.members[place];
        match (member as usize).checked_sub(self.owned) {
            Some(halo) => (true, halo as u32),
            None => (false, member),
        }
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
