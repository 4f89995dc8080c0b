//! The CPU backend: neighbour lists and fused traversal on a pool of worker threads.
//!
//! # How it searches
//!
//! Work is dealt out as ranges of sorted targets. For each cell of targets the backend copies the
//! runs of candidates once into a scratch that stays in the first-level cache, keeping only those
//! within the radius of the **bounding box of the cell's targets**, and then tests every target
//! against that scratch. The box test is done by vectors, in exactly the arithmetic of the pair
//! test: each rounded operation is monotone, so a candidate whose box distance exceeds the radius
//! cannot pass the pair test for any target inside, and pruning needs no safety margin.
//!
//! In double precision the same loops run over `f32` proxies of the points with a radius that is
//! enlarged by what the proxies may be off by, and what passes is decided in `f64`.
//!
//! # Besides searching
//!
//! [`CpuBackend::measure`] counts first, for lists whose memory must be known before it is taken, for
//! lists of a range of targets at a time, and for lists with [the geometry](PairGeometry) of every
//! pair. [`CpuBackend::traverse_lists`] evaluates kernels over [`StoredPairs`]: lists that were found
//! earlier, at positions of now.
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
//! # What others rely on
//!
//! The set of neighbours is the contract's, bit for bit, at every [`SimdLevel`]. The order inside
//! a list and the sums of a traversal depend on the input alone, never on the number of threads or
//! the SIMD level: tasks are cut by target number, candidates come in the order of the grid's
//! runs, and sums are kept in sixteen partial sums at every level.

mod aligned;
mod all_pairs;
mod candidates;
mod coordinate;
mod double;
mod error;
mod evaluate;
mod geometry;
mod group;
mod half_lists;
mod image;
mod joint;
mod listed;
mod lists;
mod long_list;
mod measured;
mod over_lists;
mod pool;
mod radii;
mod search;
mod share;
mod simd;
mod storage;
mod stored;
mod symmetric;
mod traverse;
mod window;
mod work;

pub use coordinate::Coordinate;
pub use error::Error;
pub use geometry::{NeighborPair, PairGeometry};
pub use joint::{JointLists, ShareOfLists};
pub use lists::{Checked, Inside, ListOrder, NeighborLists};
pub use measured::{ListRows, MeasuredLists};
pub use pool::CpuBackend;
pub use radii::{RadiusRule, SetRadii, SortedRadii};
pub use search::PairOfSets;
pub use share::{Share, Spent};
pub use simd::SimdLevel;
pub use storage::{Lender, LentMemory};
pub use stored::StoredPairs;
pub use traverse::{Fields, Output};
