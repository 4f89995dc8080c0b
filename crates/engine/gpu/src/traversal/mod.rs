//! The program of a traversal: strategy, job, and the macros that make a program of a source.

mod pair_program;
mod programs;
mod strategy;

pub use pair_program::PairProgram;
pub(crate) use programs::{Candidates, Traversal, Traversals, Work};
pub use strategy::Strategy;
