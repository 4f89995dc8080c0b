//! Programs and the backend on a GPU, compilers, and what is said where they are missing. Without a
//! GPU, or without the compiler, the tests that need it do nothing, or fail if
//! `NEARFIELD_REQUIRE_GPU=1` or `NEARFIELD_REQUIRE_NVRTC=1`.
#![allow(
    clippy::disallowed_methods,
    reason = "copies of a test need no counting"
)]

mod backend;
mod common;
mod compile;
mod device;
mod geometry;
mod probe;
