//! How the points of a rank have moved, for arrays that follow them.

use super::{
    kernels::Refill,
    places::{Places, SendLists},
};
use crate::routes::Peer;

/// The permutation from the order before a migration to the order after it, with the points that
/// were sent and received.
pub(super) struct Remap {
    /// The points that have left.
    pub(super) leaving: SendLists,
    /// The same, ascending.
    pub(super) left: Places,
    /// The ranks that points came from.
    pub(super) sources: Vec<Peer>,
    /// Points of this rank before.
    pub(super) before: usize,
    /// And after.
    pub(super) now: usize,
}

impl Remap {
    /// How arrays are filled again.
    pub(super) fn order(&self) -> Refill<'_> {
        Refill {
            left: self.left.view(),
            before: self.before,
            arrivals: self.sources.iter().map(|source| source.points).sum(),
        }
    }
}
