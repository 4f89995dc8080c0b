//! The CUDA driver: its presence and version, the GPUs it shows, and contexts on them.
//!
//! The library is loaded when it is first needed. Every function here returns an error where it is
//! missing, so the crate can be linked and called on machines without a GPU.
//!
//! # States
//!
//! - *absent*: `libcuda.so.1` cannot be loaded
//!   ([`ErrorKind::NoDriver`](crate::ErrorKind::NoDriver));
//! - *present*: it is loaded and tells its version, which is cheap and starts nothing
//!   ([`find_driver`]);
//! - *started*: `cuInit` has run in this process. Devices can be listed and contexts made;
//! - *inherited*: `cuInit` ran in the process that this one was forked from. CUDA does not work
//!   then, and every call is refused ([`ErrorKind::Forked`](crate::ErrorKind::Forked)) instead of
//!   failing somewhere inside the driver.

mod calls;

pub(crate) use calls::{ContextId, Driver, describe, link, load, release};
pub use calls::{DeviceInfo, find_driver, open, visible};
