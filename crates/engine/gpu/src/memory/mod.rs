//! Memory of the device and of the host, and the stream on which copies between them are ordered.
//!
//! Copies pass through a [`Queue`], which counts their bytes and, while a trace is recorded, times
//! them.
//!
//! | type | memory | lives |
//! | --- | --- | --- |
//! | `Buffer` | of the device, uninitialised | as long as its owner; grows, shrinks only when released |
//! | [`HostBuffer`] | of the host, page-locked, zero at first | until dropped, which waits |
//! | [`HostCopy`] | a page-locked answer of a few numbers | read again and again |
//! | [`Arriving`] | page-locked, with a copy under way | until waited for |
//! | [`Destination`] | borrowed from the caller | until all pieces have arrived |
//!
//! # Why copies are sound
//!
//! The driver copies while the host goes on, and Rust does not know that. Each type therefore owns
//! or borrows the memory of its copies until they have ended: `HostBuffer` waits for the device
//! before it is freed, `HostCopy` and `Arriving` give their contents out only behind a wait, and
//! [`Arrivals`] waits for the stream when it is dropped, on errors and panics too.

mod arrivals;
mod buffer;
mod host;
mod launch;
mod queue;
mod timeline;

pub use arrivals::{Arrivals, Destination};
#[doc(hidden)]
pub use buffer::poison_new_memory;
pub(crate) use buffer::{Buffer, kept_buffers};
pub use host::HostBuffer;
pub(crate) use launch::Launch;
pub use queue::{Arriving, HostCopy, Queue, Transfers};
pub use timeline::Moment;
