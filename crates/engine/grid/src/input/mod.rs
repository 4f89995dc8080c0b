//! What the caller hands in, checked before anything is built from it: positions in any layout,
//! their bounds, and the search radius.
//!
//! **Invariant:** a [`Radius`](radius::Radius) is finite and positive and its square is a normal
//! number; [`Bounds`](bounds::Bounds) that [`Bounds::of`](bounds::Bounds::of) returned belong to
//! finite coordinates that lie at most 2³⁰ boxes from the origin along periodic axes. The rest of
//! the crate relies on both and checks neither again.

pub(crate) mod bounds;
pub(crate) mod positions;
pub(crate) mod radius;
pub(crate) mod value;
