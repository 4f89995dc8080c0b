//! Translated functions and kernels, compared with Rust and compiled for GPUs.

mod common;
mod kernel;
mod subset;
