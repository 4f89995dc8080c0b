//! Which program a traversal runs: the strategy, what is done with pairs, and the macros that make a
//! program of a source.

mod pair_program;
mod programs;
mod strategy;

pub use pair_program::PairProgram;
pub(crate) use programs::{Open, Traversal, Traversals, Work};
pub use strategy::{ParseStrategyError, Strategy};
