//! The specification of lists: which pairs they hold, and their order.
//!
//! A search has one specification ([`ListSpec`]). From it follows for each group whether its lists
//! ascend without sorting or are sorted afterwards ([`GroupSelection`]).

use super::neighbor_lists::ListOrder;
use nearfield_pairs::ListKind;

/// The kind and the order of the lists of a search.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListSpec {
    /// Full or half lists. Half lists of two sets hold all pairs, as full ones do.
    pub(super) kind: ListKind,
    /// The order inside a list.
    pub(super) order: ListOrder,
}

impl ListSpec {
    /// For lists of which only the lengths are needed, so that order does not matter.
    pub(super) fn lengths(kind: ListKind) -> Self {
        let order = ListOrder::Unspecified;
        Self { kind, order }
    }
}

/// How the lists of one group are selected and finished.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupSelection {
    /// Half lists of one set: a source is kept if its rank is above the target's index.
    pub(super) half: bool,
    /// Lists are sorted after they were selected, because the candidates do not ascend.
    pub(super) sort: bool,
}
