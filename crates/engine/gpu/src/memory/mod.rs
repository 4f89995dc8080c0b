//! Memory of the device and of the host, and the stream on which copies between them are ordered.
//!
//! Copies pass through a [`Queue`], which counts their bytes and, while a trace is recorded, times
//! them.

mod arrivals;
mod buffer;
mod host;
mod queue;

pub use arrivals::{Arrivals, Destination};
pub(crate) use buffer::Buffer;
#[doc(hidden)]
pub use buffer::poison_new_memory;
pub use host::{HostBuffer, copy_for_gpu};
pub use queue::{Arriving, HostCopy, Queue, Transfers};
