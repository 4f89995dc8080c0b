//! Runs of atoms: on a GPU, and against published numbers and what must always hold.

mod common;
mod on_gpu;
mod physics;
