//! The CPU backend: neighbour lists and fused traversal on a pool of worker threads.
//!
//! # How it searches
//!
//! A job is split into ranges of sorted targets. For each cell of targets the backend copies the
//! runs of candidates once into a scratch that stays in the first-level cache, keeping only those
//! within the radius of the **bounding box of the cell's targets**, and then tests every target
//! against that scratch. The box test is done by vectors, in exactly the arithmetic of the pair
//! test: each rounded operation is monotone, so a candidate whose box distance exceeds the radius
//! cannot pass the pair test for any target inside, and pruning needs no safety margin.
//!
//! In double precision candidates are gathered by `f32` proxies of the points, with a radius that
//! is enlarged by the largest error of the proxies, and tested in `f64` by vectors half as long.
//!
//! # Other jobs
//!
//! [`CpuBackend::measure`] counts first, for lists whose memory must be known before allocation,
//! for lists of a range of targets at a time, and for lists with [the geometry](PairGeometry) of
//! every pair. [`CpuBackend::traverse_lists`] evaluates kernels over [`StoredPairs`]: lists that
//! were found earlier, at the positions that points have now. [`CpuBackend::sum_pairs`] sums over
//! all pairs.
//!
//! # Radii of single points
//!
//! The [`RadiusRule`] of [`PairOfSets::radii`] and [`StoredPairs::radii`] selects the deciding
//! radius. Grids are made for the largest radius and, where radii are very different, once more
//! with points sorted [by their radii](CpuBackend::sort_by_radii): one radius a hundred times the
//! others does not make a search quadratic then. Radii of points are part of the mode of the loops,
//! a constant parameter, so searches with one radius do not pay for them. Candidates then carry
//! their squared radii, and count within the larger of their radius and the target's. Where only
//! radii of sources count, the target's square is negative.
//!
//! # Lists that serve many steps
//!
//! A list with a skin holds the pairs of a larger radius. For point sets it is a list of sources
//! ([`StoredPairs`]), whose pairs are decided again at the current positions, with their
//! displacements on request. For many systems [`Candidates`] keep the image of every pair too, so a
//! step does not look for images. Both decide by the contract: their pairs are those of a search.
//!
//! # Filters
//!
//! [`PairOfSets::filter`] leaves out pairs within the radius: beyond the cut-off of their types,
//! excluded, of targets that are not chosen, or not among the k nearest. Filtered searches visit
//! pairs and decide target by target, so the loops of other searches have none of it.
//!
//! # Single targets
//!
//! [`PairOfSets::for_each_neighbor`] and [`CpuBackend::lists_of_some`] go target by target and skip
//! the preparation of a whole search, which takes longer than a handful of points out of a million.
//! They decide as a search does, so they find the same pairs.
//!
//! # Shares
//!
//! When two backends share a step, this one searches for the targets of some bricks only:
//! [`PairOfSets::share`] names them, and receives which points were taken and the time.
//! [`CpuBackend::search_share`] writes such lists into one part of a storage whose other part the
//! other backend fills.
//!
//! # Where to look
//!
//! | module | contents |
//! | --- | --- |
//! | `simd` | vectors, one file per instruction set; compiling a loop for each |
//! | `sets` | the two sets of a request, radii of single points, shares of the targets |
//! | `candidates` | groups of targets, gathering and pruning, the scan of the candidates |
//! | `filter` | cut-offs of types, exclusions, chosen targets, the k nearest |
//! | `lists` | searches, the storage of lists, geometry of pairs |
//! | `kernels` | pair kernels over gathered candidates, pairs evaluated once |
//! | `stored` | pair kernels over lists that were found earlier |
//! | `all_pairs` | sums without a radius |
//! | `systems` | many small sets of points in one search |
//! | `pool` | worker threads, their scratch, tasks |
//!
//! # Invariants
//!
//! The set of neighbours is the contract's, bit for bit, at every [`SimdLevel`]. The order inside
//! a list and the sums of a traversal depend on the input alone, never on the number of threads or
//! the SIMD level: tasks are cut by target number, candidates come in the order of the grid's
//! runs, and sums are kept in sixteen partial sums at every level.

mod all_pairs;
mod candidates;
mod contract;
mod error;
mod filter;
mod kernels;
mod lists;
mod pool;
mod sets;
mod simd;
mod stored;
mod systems;

pub use contract::Image;
pub use error::{Error, ErrorKind};
pub use filter::{
    PairFilter,
    chosen::ChosenPoints,
    cutoffs::{CutoffTable, PointTypes, TypeCutoffs},
    exclusions::{ExclusionArrays, Exclusions},
};
pub use kernels::fields::{Fields, Output};
pub use lists::{
    geometry::{NeighborPair, PairArrays, PairGeometry},
    joint::{JointLists, ShareOfLists},
    measured::MeasuredLists,
    neighbor_lists::{ListOrder, NeighborLists},
    received::{CheckedLists, Inside},
    received_geometry::ReceivedPairs,
    rows::ListRows,
    storage::{BorrowedBuffer, BufferProvider},
};
pub use pool::{CpuBackend, WorkerHandle};
pub use sets::{
    PairOfSets,
    pairs::{PairScratch, PairsOfImage, VisitPairs},
    radii::SortedRadii,
    rule::{RadiusRule, SetRadii},
    share::{Share, Spent},
};
pub use simd::level::SimdLevel;
pub use stored::{layout::Coordinate, pairs::StoredPairs};
pub use systems::{
    again::Candidates,
    input::{SystemReal, Systems},
    pairs::{PairColumns, ReceivedSystems, SystemPairs},
    quantities::{PairIndex, Quantities},
};
