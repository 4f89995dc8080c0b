//! The CPU backend: neighbour lists and fused traversal on a pool of worker threads.
//!
//! # How it searches
//!
//! A job is dealt out as ranges of sorted targets. For each cell of targets the backend copies the
//! runs of candidates once into a scratch that stays in the first-level cache, keeping only those
//! within the radius of the **bounding box of the cell's targets**, and then tests every target
//! against that scratch. The box test is done by vectors, in exactly the arithmetic of the pair
//! test: each rounded operation is monotone, so a candidate whose box distance exceeds the radius
//! cannot pass the pair test for any target inside, and pruning needs no safety margin.
//!
//! In double precision candidates are gathered by `f32` proxies of the points, with a radius that
//! is enlarged by the largest error of the proxies, and tested in `f64` by vectors half as long.
//!
//! # Besides searching
//!
//! [`CpuBackend::measure`] counts first, for lists whose memory must be known before it is taken,
//! for lists of a range of targets at a time, and for lists with [the geometry](PairGeometry) of
//! every pair. [`CpuBackend::traverse_lists`] evaluates kernels over [`StoredPairs`]: lists that
//! were found earlier, at the positions that points have now. [`CpuBackend::sum_pairs`] sums over
//! all pairs.
//!
//! # Radii of single points
//!
//! [`PairOfSets::radii`] and [`StoredPairs::radii`] say by a [`RadiusRule`] whose radius decides.
//! The grids are those of the largest radius. In the loops a point's own radius is part of the
//! mode, a constant parameter, so that searches of one radius do not pay for it: candidates then
//! carry their squared radii, and count when within the larger of theirs and the target's (which is
//! below any square where only the sources' count).
//!
//! # Shares
//!
//! A backend that works beside another one searches for the targets of some bricks only:
//! [`PairOfSets::share`] names them, learns which points were taken, and how long it took.
//! [`CpuBackend::search_share`] writes such lists into one part of a storage
//! whose other part the other backend fills.
//!
//! # Where to look
//!
//! | module | contents |
//! | --- | --- |
//! | `simd` | vectors, one file per instruction set; compiling a loop for each |
//! | `sets` | the two sets of a request, radii of single points, shares of the targets |
//! | `candidates` | groups of targets, gathering and pruning, the scan of the candidates |
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
mod kernels;
mod lists;
mod pool;
mod sets;
mod simd;
mod stored;
mod systems;

pub use contract::Image;
pub use error::{Error, ErrorKind};
pub use kernels::fields::{Fields, Output};
pub use lists::{
    geometry::{NeighborPair, PairArrays, PairGeometry},
    joint::{JointLists, ShareOfLists},
    measured::{ListRows, MeasuredLists},
    neighbor_lists::{ListOrder, NeighborLists},
    received::{Checked, Inside},
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
    input::{SystemReal, Systems},
    pairs::{ReceivedPairs, SystemPairs},
    quantities::{PairIndex, Quantities},
};
