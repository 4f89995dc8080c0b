//! New positions as one rank sees them, and the decisions of all ranks about them.
//!
//! **Invariant:** decisions follow from minima over all ranks, so they are the same everywhere.

use crate::{domains::Domains, routes::Departures, seen::Special};
use nearfield_grid::Bounds;

/// The outcome of new positions.
pub(crate) enum Accepted {
    /// The domains stay.
    Kept(Plan),
    /// The points have left what the domains were made for: these are to be cut.
    Outgrown(Box<Domains>),
}

/// How the points of a set travel; the same on all ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum How {
    /// All callers own their points, in the order of their ids.
    Home {
        /// All ranks have the halo before, so that messages may have the changes of ids.
        changes: bool,
    },
    /// Some points have another owner than their caller.
    Abroad,
}

impl How {
    /// A rank's part of the decision, as numbers whose minima count.
    pub(crate) fn said(home: bool, knows_halo: bool) -> [f64; 2] {
        [home, knows_halo].map(|said| f64::from(u8::from(said)))
    }

    /// The decision that follows from the minima.
    pub(crate) fn of([home, changes]: [f64; 2]) -> Self {
        if home == 1.0 {
            Self::Home {
                changes: changes == 1.0,
            }
        } else {
            Self::Abroad
        }
    }
}

/// The points of a rank, before they are brought anywhere.
pub(crate) struct Plan {
    /// Their extent.
    pub(crate) bounds: Bounds,
    /// How they travel.
    pub(crate) how: How,
    /// The points that are not inside this rank's domain.
    pub(crate) special: Vec<Special>,
    /// Where they have to go.
    pub(crate) departures: Departures,
}

/// The ends of an extent, as numbers whose minima over all ranks are those of the whole.
pub(crate) fn ends(of: &Bounds) -> [f64; 6] {
    let ([x, y, z], [u, v, w]) = (of.min, of.max);
    [x, y, z, -u, -v, -w]
}

/// The extent with these ends.
pub(crate) fn extent_of(ends: &[f64]) -> Bounds {
    Bounds {
        min: std::array::from_fn(|axis| ends[axis]),
        max: std::array::from_fn(|axis| -ends[axis + 3]),
    }
}
