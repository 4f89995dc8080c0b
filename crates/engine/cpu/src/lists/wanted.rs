//! The lists that a search is asked for: which pairs they hold, and in which order.
//!
//! Both go from the job to the loops as one value. Kind and order are settled per search
//! ([`Wanted`]); per group it follows whether its lists ascend by themselves or have to be sorted
//! ([`Listed`]).

use super::neighbor_lists::ListOrder;
use nearfield_pairs::ListKind;

/// The kind and the order of the lists of a search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// Full or half lists. Half lists of two sets hold all pairs, as full ones do.
    pub(super) kind: ListKind,
    /// The order inside a list.
    pub(super) order: ListOrder,
}

impl Wanted {
    /// Lists whose lengths are needed and nothing else, so that their order does not matter.
    pub(super) fn lengths(kind: ListKind) -> Self {
        let order = ListOrder::Unspecified;
        Self { kind, order }
    }
}

/// How the lists of one group are selected and finished.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listed {
    /// Half lists of one set: a source is kept if its rank is above the target's index.
    pub(super) half: bool,
    /// Lists are sorted after they were selected, because the candidates do not ascend.
    pub(super) sort: bool,
}
