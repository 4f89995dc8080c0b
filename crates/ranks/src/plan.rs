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

/// Where the points of a set are given, compared with where they are owned.
///
/// Each rank knows its own; the smallest of all is the decision, the same on all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Placement {
    /// Some points have another owner than their caller.
    Away,
    /// All callers own their points, in the order of their ids.
    Home,
    /// The same, and all ranks have the halo before: messages may have the changes of ids.
    HomeWithHalo,
}

impl Placement {
    const ALL: [Self; 3] = [Self::Away, Self::Home, Self::HomeWithHalo];

    /// That of a rank whose points are all its own if `home`, and which has the halo before if
    /// `halo`.
    pub(crate) fn new(home: bool, halo: bool) -> Self {
        match (home, halo) {
            (false, _) => Self::Away,
            (true, false) => Self::Home,
            (true, true) => Self::HomeWithHalo,
        }
    }

    /// A number for a reduction, which orders as this does.
    pub(crate) fn number(self) -> f64 {
        f64::from(self as u8)
    }

    /// The smallest of all ranks, by the minimum of their numbers.
    pub(crate) fn smallest(minimum: f64) -> Self {
        let found = Self::ALL.into_iter().find(|one| one.number() >= minimum);
        found.unwrap_or(Self::HomeWithHalo)
    }
}

/// The points of a rank, before they are brought anywhere.
pub(crate) struct Plan {
    /// Their extent.
    pub(crate) bounds: Bounds,
    /// Whether they stay.
    pub(crate) placement: Placement,
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
