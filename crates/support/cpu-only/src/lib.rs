//! Depends on `nearfield` without its cargo feature `gpu`, as a program without use for a GPU does.
//!
//! The tests are here and not beside the engine because those of the engine need forty more crates,
//! which would be compiled once more with the features of this selection. Here it is thirty in all.
//! `cargo test --release -p nearfield-cpu-only --features alone` runs them.

pub use nearfield;
