//! The solver: on a GPU, and against what physics demands of it.

mod on_gpu;
mod physics;
