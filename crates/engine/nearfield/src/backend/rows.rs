//! Lists of sorted targets, a range at a time, and lists of free positions: what a device does for
//! callers that do not hold all lists of a set.
//!
//! A device first says how long every list is ([`MeasuredRows`]); ranges of targets are then
//! written when they are wanted. Nothing is kept on the device in between: if another job has used
//! it since, it counts again, and finds the same. So ranges need no memory of the device while the
//! caller works on them, and any number of callers may take turns.
//!
//! **Invariant:** targets come in the order of the host's cells, as the CPU backend has them,
//! except where the device's table of cells is sparse; then the order is the device's own, and a
//! range is refused if the points were sorted anew since they were measured ([`Fault::Reordered`]).
//!
//! [`Fault::Reordered`]: super::Fault::Reordered

use super::{Job, StepInput};
use nearfield_cpu::{NeighborLists, PairGeometry, SetRadii};
use nearfield_grid::Bounds;
use nearfield_pairs::{Field, ListKind};
use std::{
    num::NonZeroU32,
    ops::{ControlFlow, Range},
};

/// Targets of a job in sorted order, and the lengths of their lists, as a device counted them.
#[derive(Debug)]
pub(crate) struct MeasuredRows {
    pub(crate) job: Job,
    /// What is written.
    pub(crate) what: RowsOf,
    /// The caller's index of every sorted target.
    pub(crate) targets: Vec<u32>,
    /// Neighbours of every sorted target.
    pub(crate) lengths: Vec<u32>,
    /// All lengths together.
    pub(crate) pairs: u64,
    /// Where targets are chosen, how many of them come before each sorted target and behind the
    /// last.
    pub(crate) ranks: Option<Vec<u32>>,
    /// The number of the sort, where another one may order the targets otherwise.
    pub(crate) sort: Option<u64>,
}

/// What a range of targets has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowsOf {
    /// The lists of the engine, full or half.
    Lists,
    /// All neighbours, with displacements and squared distances.
    Pairs,
}

impl RowsOf {
    /// The lists in an engine with these options.
    pub(super) fn kind(self, input: &StepInput<'_>) -> ListKind {
        match self {
            Self::Lists => input.options.lists,
            Self::Pairs => ListKind::Full,
        }
    }
}

/// Consecutive sorted targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowRange {
    /// Their places in sorted order.
    pub(crate) slots: Range<usize>,
    /// The numbers of their entries among those of all lists.
    pub(crate) entries: Range<u64>,
}

/// The pairs of a range, whose lists lie one behind the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowPairs<'a> {
    /// The caller's index of every source.
    pub(crate) sources: &'a [u32],
    /// From the target to the source in its image.
    pub(crate) displacements: &'a [[f32; 3]],
    /// Squared lengths of the displacements.
    pub(crate) squares: &'a [f32],
}

/// Callback that takes ranges: the number of each, and its pairs.
pub(crate) type OnRows<'f> = dyn FnMut(usize, RowPairs<'_>) -> ControlFlow<()> + 'f;

/// Free positions that search a set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Query<'a> {
    /// Slot of the set that is searched.
    pub(crate) sources: usize,
    /// Three numbers a position.
    pub(crate) positions: Field<'a>,
    /// Of the positions.
    pub(crate) bounds: Bounds,
    /// How many of the nearest are kept.
    pub(crate) nearest: Option<NonZeroU32>,
    /// The radii that count, of the positions and of the points of the set that is searched.
    pub(crate) radii: SetRadii<&'a [f32]>,
    /// Tells the radii of the set from those before.
    pub(crate) radii_stamp: u64,
}

/// Where the neighbours of free positions go, in any order.
#[derive(Debug)]
pub(crate) enum QueryTo<'a> {
    Lists(&'a mut NeighborLists),
    Geometry(&'a mut PairGeometry),
}
