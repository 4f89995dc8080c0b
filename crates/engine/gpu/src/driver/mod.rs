//! The CUDA driver: its presence and version, the GPUs it shows, and contexts on them.
//!
//! The library is loaded when it is first needed. Every function here returns an error where it is
//! missing, so the crate can be linked and called on machines without a GPU.

mod calls;

pub use calls::{DeviceInfo, find_driver, open};
pub(crate) use calls::{Driver, describe, link, load, release};
