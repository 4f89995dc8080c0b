//! The Nearfield neighbour engine on many ranks: the same neighbours, lists and deterministic sums,
//! bit for bit, on any number of them.
//!
//! A rank is a thread or a process with points of its own and an engine of its own. Space is
//! divided among the ranks; a rank owns the points in its part, and has copies of other ranks'
//! points within the radius, its *halo* (ghosts). Any rank may give any points. Results are always
//! in the order in which this rank gave its points.
//!
//! ```
//! use nearfield::kernels::SphDensity;
//! use nearfield_ranks::{RankedEngine, transport::threads};
//!
//! let densities = threads::run(3, |transport| {
//!     let mut engine = RankedEngine::builder(1.0).threads(1).build::<f32>(transport)?;
//!     // Each rank gives 50 points of a row.
//!     let first = 50 * engine.rank();
//!     let points: Vec<_> = (first..first + 50).map(|i| [0.5 * i as f32, 0.0, 0.0]).collect();
//!     let row = engine.add_point_set(&points, None)?;
//!
//!     engine.find_neighbors()?;
//!     let lists = engine.lists_by_id(row, row)?;
//!     if engine.rank() == 1 {
//!         assert_eq!(lists.of(0), [48, 49, 51, 52], "two of them were given by rank 0");
//!     }
//!     let kernel = SphDensity::with_support(1.0);
//!     engine.traverse(&kernel, row, row).sources(&vec![1.0; 50]).run()
//! });
//! for density in densities {
//!     assert_eq!(density.unwrap()?.len(), 50);
//! }
//! # Ok::<(), nearfield_ranks::Error>(())
//! ```
//!
//! # A step
//!
//! A solver keeps its arrays where the points are owned: [`RankedEngine::migrate`] takes new
//! positions and moves points that have left, [`Migration::bring`] moves the other arrays, and
//! fields of [`RankedEngine::traverse`] then travel only to halos. A program that does not migrate
//! calls [`RankedEngine::update`]; positions, fields and results then travel at every step.
//!
//! # What is exact
//!
//! The contract of a neighbour is that of [`nearfield`], with the coordinates as given. Lists
//! ascend by global id. Sums have the same bits on any number of ranks with
//! [`RankedBuilder::deterministic`].
//!
//! # Errors
//!
//! Bad input on one rank is the same [`Error`] on all ranks, which names rank and point. If a rank
//! panics or leaves, every rank returns a [fault](ErrorKind::Fault). No call hangs, and none has a
//! time limit.

mod balance;
mod builder;
mod cell_classes;
mod collective;
mod communicator;
mod complete;
mod curve;
mod cut;
#[cfg(feature = "dam-break")]
pub mod dam_break;
pub mod device;
mod division;
mod domains;
mod engine;
mod error;
mod exact;
mod fields;
mod filters;
mod follow;
mod geometry;
pub mod gpus;
mod halo;
mod halo_message;
mod ids;
mod lists;
mod migration;
mod moving;
mod parts;
mod placing;
mod plan;
mod point_data;
mod points;
mod query;
mod routes;
mod scalar;
mod set;
mod spans;
mod times;
pub mod transport;
mod traverse;

pub use builder::RankedBuilder;
pub use engine::{RankedEngine, RankedSet};
pub use error::{Error, ErrorKind, PointOfRank};
pub use exact::ExactSum;
pub use follow::Following;
pub use geometry::{IdGeometry, IdPair};
pub use lists::{IdLists, RankedLists};
pub use migration::Migration;
pub use scalar::Scalar;
pub use times::{HaloTimes, StepTimes};
pub use traverse::RankedTraversal;
