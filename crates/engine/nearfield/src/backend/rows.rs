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

use super::{Job, PairRules, StepInput};
use nearfield_cpu::{ExclusionArrays, NeighborLists, PairGeometry, SetRadii};
use nearfield_grid::{
    Bounds, Radii,
    memory::{Shortage, make_room},
};
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
    /// Their geometry.
    pub(crate) geometry: RowGeometry<'a>,
}

/// From the target to the source in its image, and the squared lengths of these, in the precision
/// of the search; those who read them round them to `f32`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RowGeometry<'a> {
    Single {
        displacements: &'a [[f32; 3]],
        squares: &'a [f32],
    },
    /// Two words of four bytes a number.
    Double {
        displacements: &'a [[f32; 6]],
        squares: &'a [[f32; 2]],
    },
}

impl RowGeometry<'_> {
    /// Writes displacements along each axis, and squares, of some of the pairs to the place of
    /// what the arrays hold, each number rounded once.
    ///
    /// # Errors
    /// The shortage of memory.
    pub(crate) fn round_to(
        self,
        some: Range<usize>,
        d: &mut [Vec<f32>; 3],
        d2: &mut Vec<f32>,
    ) -> Result<(), Shortage> {
        for numbers in d.iter_mut().chain([&mut *d2]) {
            numbers.clear();
            make_room(numbers, some.len(), "a batch of pairs")?;
        }
        match self {
            Self::Single {
                displacements,
                squares,
            } => {
                for (axis, d) in d.iter_mut().enumerate() {
                    d.extend(displacements[some.clone()].iter().map(|of| of[axis]));
                }
                d2.extend_from_slice(&squares[some]);
            }
            Self::Double {
                displacements,
                squares,
            } => {
                let rounded = |words: [f32; 2]| bytemuck::cast::<_, f64>(words) as f32;
                for (axis, d) in d.iter_mut().enumerate() {
                    let of_axis = |of: &[f32; 6]| rounded([of[2 * axis], of[2 * axis + 1]]);
                    d.extend(displacements[some.clone()].iter().map(of_axis));
                }
                d2.extend(squares[some].iter().map(|&words| rounded(words)));
            }
        }
        Ok(())
    }
}

/// Callback that takes ranges: the number of each, and its pairs.
pub(crate) type OnRows<'f> = dyn FnMut(usize, RowPairs<'_>) -> ControlFlow<()> + 'f;

/// Free positions that search a set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Query<'a> {
    /// Slot of the set that is searched.
    pub(crate) sources: usize,
    /// Three numbers a position, in double precision six words.
    pub(crate) positions: Field<'a>,
    /// Of the positions.
    pub(crate) bounds: Bounds,
    /// How many of the nearest are kept.
    pub(crate) nearest: Option<NonZeroU32>,
    /// The radii that count, of the positions and of the points of the set that is searched.
    pub(crate) radii: SetRadii<Radii<'a>>,
    /// Tells the radii of the set from those before.
    pub(crate) radii_stamp: u64,
    /// What filters ask of positions that are those of points; None for free positions.
    pub(crate) points: Option<QueriedPoints<'a>>,
}

/// Points whose positions search: what filters read of each, in the order of the positions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueriedPoints<'a> {
    /// The filters of their set with the set that is searched. Chosen targets do not count.
    pub(crate) rules: PairRules<'a>,
    /// Their types; read where there are cut-offs.
    pub(crate) types: &'a [u32],
    /// The points that they exclude; read where there are exclusions.
    pub(crate) exclusions: Option<ExclusionArrays<'a>>,
}

/// Where the neighbours of free positions go, in any order.
#[derive(Debug)]
pub(crate) enum QueryTo<'a> {
    Lists(&'a mut NeighborLists),
    Geometry(&'a mut PairGeometry),
}
