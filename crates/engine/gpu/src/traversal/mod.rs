//! The program of a traversal: strategy, job, and the macros that make a program of a source.
//!
//! A traversal is compiled for exactly one job: what is done with a pair, how candidates are found,
//! and the user's kernel are all known to the compiler, so the loop over candidates has no branch
//! on them and calls no function. The price is a program per combination. They are compiled when
//! they first run, kept on disk, and looked up in a table of loaded kernels by a key that is cheap
//! to hash.
//!
//! [`Strategy`] names how cells are mapped to threads, [`PairProgram`] is the text of a pair
//! kernel, and `programs` makes the program of both.

mod pair_program;
mod programs;
mod strategy;

pub use pair_program::PairProgram;
pub(crate) use programs::{Candidates, Filtering, Traversal, Traversals, Work};
pub use strategy::Strategy;
