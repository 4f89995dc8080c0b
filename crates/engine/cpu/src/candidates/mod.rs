//! Turns a range of sorted targets into groups of targets with their gathered candidates.
//!
//! # Gather and prune
//!
//! The targets of one cell have the same neighbour cells. A group is the targets of one cell, or of
//! a few nearly empty cells of a row. The runs of its neighbour cells are copied once, as a
//! structure of arrays, into a scratch of a few KiB that stays in the first-level cache
//! ([`arrays`]); every target of the group is then tested against the copy ([`scan`]). Copying pays
//! three times:
//!
//! * coordinates are read from memory once per group instead of once per target;
//! * a test never ends in the middle of a vector, as the end of each of the nine runs would;
//! * most candidates are dropped while they are copied ([`gather`]).
//!
//! A candidate is kept if it is within the radius of the **bounding box of the group's targets**.
//! The distance to the box is computed in the contract's own arithmetic. Every rounded operation is
//! monotone: if |a| ≤ |b|, then fl(a) and fl(b) are in the same order, and so are their squares and
//! sums. The box distance per axis is at most the distance to any target inside, so a candidate
//! whose box distance exceeds the radius cannot pass the pair test of any target. Pruning is exact
//! and needs no safety margin, unless candidates are seen through an image ([`gather`]).
//!
//! # Order
//!
//! Candidates are in the order of the grid's runs: by row, then along x, then by index. So the
//! order of a list, and of the terms of a sum, follows from the input alone.
//!
//! # Batches
//!
//! Around a box much smaller than the radius a target has millions of candidates. Such a target is
//! a group of its own, which comes once per [`Batch`](groups::Batch) of its runs.

pub(crate) mod aligned;
pub(crate) mod arrays;
pub(crate) mod expected;
pub(crate) mod gather;
pub(crate) mod groups;
pub(crate) mod mixed;
pub(crate) mod mixing;
pub(crate) mod mode;
pub(crate) mod near;
pub(crate) mod piece;
pub(crate) mod pieces;
mod runs;
pub(crate) mod scan;
pub(crate) mod scratch;
pub(crate) mod walk;
