//! Handles of a GPU: contexts, streams, events, arrays and kernels, as programs hold them.
//!
//! Each type wraps the one of the library that calls the driver and costs nothing. The library's
//! own types stand in no signature that users see, so a new version of it changes this crate alone.
//! Programs that hold handles of other libraries exchange them as numbers: addresses as `u64`,
//! contexts and streams as pointers.
//!
//! Methods that call the driver return its [`DriverError`], which is a code. Callers know what they
//! were doing and say so in the [`Error`](crate::Error) that they make of it.

mod address;
mod array;
mod context;
mod copies;
mod launch;
mod presence;
mod stream;

pub use address::{MemoryKind, memory_at};
pub use array::{
    DeviceArray, DeviceArrayMut, DeviceBuffer, DeviceValue, DeviceView, DeviceViewMut, InUse,
    PositionNumber,
};
pub use context::{Context, CurrentContext};
pub(crate) use launch::Function;
pub use launch::{KernelArgument, KernelArguments};
pub(crate) use presence::is_present;
pub(crate) use stream::FailedCall;
pub use stream::{DriverError, Event, Stream};
