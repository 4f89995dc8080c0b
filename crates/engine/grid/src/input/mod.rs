//! What the caller hands in, checked before anything is built from it: positions in any layout,
//! their bounds, and the search radius.
//!
//! **Invariant:** a [`Radius`](radius::Radius) is finite and positive and its square is a normal
//! number; [`Bounds`](bounds::Bounds) that [`Bounds::of`](bounds::Bounds::of) returned belong to
//! finite coordinates that lie at most 2³⁰ boxes from the origin along periodic axes. The rest of
//! the crate relies on both and checks neither again.
//!
//! # Checked once
//!
//! An engine checks positions at every update, at the speed of memory, and everything after that
//! trusts them. Errors name the first offender by the caller's index and count all, so a user can
//! repair the input without a debugger.
//!
//! # Values
//!
//! [`Value`](value::Value) carries a number in the caller's precision to a message.

pub(crate) mod bounds;
pub(crate) mod positions;
pub(crate) mod radii;
pub(crate) mod radius;
pub(crate) mod value;
