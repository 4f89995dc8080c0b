//! The hand-offs between threads in a step of two backends. Nothing is decided here, and no data is
//! touched: callers say what copying, sending and putting mean.
//!
//! The calling thread drives the device, a real GPU or an emulated one, while the workers of the
//! CPU pool copy and compute. Three hand-offs connect them:
//!
//! ```text
//!  workers   copy stretches ─┐                  ┌─ put stretches     CPU backend's part ─▶ waits
//!                            ▼                  │                                          ▲
//!                        [Staging]          [Scatter]                                 [hand_over]
//!                            │                  ▲                                          │
//!  driver      sends pieces ─┴─▶  the device  ──┴─ receives pieces      all starts and lengths ─┘
//! ```
//!
//! 1. [`Staging`]: workers copy an array stretch by stretch to where the device reads it. The
//!    driver sends a piece, some stretches, once all of them are copied. *A stretch is copied by
//!    exactly one thread, and a piece is sent after its last stretch was written.*
//! 2. [`Scatter`]: the driver receives results piece by piece, and workers put them where the
//!    caller wants them. *A stretch is put by exactly one thread, after its piece has arrived. When
//!    nothing more comes, because all has or the device failed, no thread waits any longer.*
//! 3. [`hand_over`]: one value for the thread that waits for it. *An end that is dropped without
//!    giving the value ends the wait.*
//!
//! Each hand-off waits for work that another thread has already begun, so there is no circle of
//! waits. `scripts/loom` runs these loops, which production runs, under every interleaving of their
//! threads; only `sync.rs`, which wraps atomics and channels, is exchanged for it.

mod hand_over;
mod scatter;
mod staging;
#[cfg_attr(loom, path = "sync_loom.rs")]
pub(crate) mod sync;

pub use hand_over::{Awaited, HandOver, hand_over};
pub use scatter::Scatter;
pub use staging::Staging;
