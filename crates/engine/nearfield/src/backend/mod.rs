//! The hardware that does a step: the CPU pool, a GPU, and both at once.

pub(crate) mod gpu;
pub(crate) mod hardware;
pub(crate) mod split;
