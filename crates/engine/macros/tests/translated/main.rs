//! Translated functions and kernels, compared with Rust and compiled for GPUs.

mod common;
mod drawn;
mod kernel;
mod kinds;
mod subset;
