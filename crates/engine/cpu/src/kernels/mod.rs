//! Pair kernels evaluated over gathered candidates.
//!
//! [`traverse`] is the entry. A kernel's loops are compiled for each kernel and each SIMD level in
//! the program that uses it; everything that does not depend on the kernel is compiled once in this
//! crate, behind functions and trait objects: gathering, dealing out tasks, adding up windows. A
//! program with one more kernel takes a few seconds longer to compile.
//!
//! # Pairs evaluated once
//!
//! A kernel that computes both directions of a pair ([`PairKernel::SYMMETRIC`]) is evaluated once
//! per pair of a set, by Newton's third law ([`symmetric`]). Half of the candidates remain to be
//! tested. The difficulty is that a task then adds to points of other tasks. Atomics would make
//! sums depend on timings, and a colouring of the cells would leave workers waiting for each
//! colour. Instead every task sums in a [`window`] of its own, and windows are added up in the
//! order of the tasks ([`together`]).
//!
//! **Invariant:** sums depend on the input alone, not on the number of threads or the SIMD level:
//! tasks are cut by target number, and partial sums are folded in a fixed order ([`reduce`]).
//! Vectors without neighbours add nothing and are left out ([`single`]).
//!
//! [`PairKernel::SYMMETRIC`]: nearfield_pairs::PairKernel::SYMMETRIC

mod evaluate;
pub(crate) mod fields;
mod filtered;
mod noted;
mod pack;
pub(crate) mod reduce;
pub(crate) mod repeats;
mod single;
mod symmetric;
pub(crate) mod together;
mod traverse;
pub(crate) mod window;
