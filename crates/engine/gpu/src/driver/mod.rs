//! The CUDA driver: whether there is one, what GPUs it shows, and contexts on them.

mod calls;

pub use calls::{DeviceInfo, find_driver, open};
pub(crate) use calls::{Driver, describe, link, load, release};
