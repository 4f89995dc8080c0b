//! New positions as one rank sees them, and what all ranks decide about them.
//!
//! **Invariant:** decisions follow from minima over all ranks, so they are the same everywhere.

use crate::{cell_classes::Special, domains::Domains, routes::Destinations};
use nearfield_grid::Bounds;

/// What follows from new positions.
pub(crate) enum Accepted {
    /// The domains stay.
    Kept(Plan),
    /// The points have left the extent of the domains: these new ones are to be cut.
    Outgrown(Box<Domains>),
}

/// Whether the ranks that give the points of a set own them.
///
/// Each rank has its own answer; the smallest is the decision of all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Placement {
    /// Some points have another owner than their caller.
    Away,
    /// All callers own their points and have them in the order of their ids.
    Home,
    /// The same, and all ranks have the previous halo: messages may list only the changes of ids.
    HomeWithHalo,
}

impl Placement {
    const ALL: [Self; 3] = [Self::Away, Self::Home, Self::HomeWithHalo];

    /// The answer of a rank that owns all its points if `home`, and has the previous halo if
    /// `halo`.
    pub(crate) fn new(home: bool, halo: bool) -> Self {
        match (home, halo) {
            (false, _) => Self::Away,
            (true, false) => Self::Home,
            (true, true) => Self::HomeWithHalo,
        }
    }

    /// A number for a reduction, in the same order.
    pub(crate) fn number(self) -> f64 {
        f64::from(self as u8)
    }

    /// The smallest of all ranks, by the minimum of their numbers.
    pub(crate) fn smallest(minimum: f64) -> Self {
        let found = Self::ALL.into_iter().find(|one| one.number() >= minimum);
        found.unwrap_or(Self::HomeWithHalo)
    }
}

/// The points of a rank before they are sent anywhere.
pub(crate) struct Plan {
    /// Their extent.
    pub(crate) bounds: Bounds,
    /// Whether they stay on this rank.
    pub(crate) placement: Placement,
    /// The points outside the interior of this rank.
    pub(crate) special: Vec<Special>,
    /// The ranks that need them.
    pub(crate) destinations: Destinations,
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
