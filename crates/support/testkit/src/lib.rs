//! Tools of the tests and benches of Nearfield: named point clouds, a brute-force oracle, digests
//! of neighbour lists, and a conformance runner.
//!
//! Nothing here depends on an engine: a test passes its engine as a closure. With the feature
//! `kernels`, any pair kernel is compared with its CUDA text. [`memory`] has allocators that refuse
//! requests, and [`browser`] opens pages. **Invariant others rely on:** the same name, number of
//! points and seed give the same bits on every platform ([`cloud`]), and the oracle returns exactly
//! the set that the contract of a neighbour defines ([`oracle`]).
//!
//! ```
//! use nearfield_testkit::{Cloud, digest::digest, oracle::{ListKind, Pairing, Problem}};
//!
//! let points = Cloud::by_name("lattice", 1000, 1)?;
//! let problem = Problem::open(2.0, &points, Pairing::Within(ListKind::Full));
//! let lists = problem.index_lists();
//! assert_eq!(lists.len(), 1000);
//! println!("{}", digest(&lists)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(unsafe_code)]

pub mod browser;
pub mod cloud;
pub mod conformance;
pub mod digest;
#[cfg(feature = "kernels")]
pub mod kernels;
#[expect(unsafe_code, reason = "an allocator is unsafe to implement")]
pub mod memory;
pub mod oracle;
pub mod published;
pub mod random;
pub mod shapes;
#[cfg(feature = "proptest")]
pub mod strategy;
pub mod systems;

pub use cloud::{Cloud, UnknownCloud};
