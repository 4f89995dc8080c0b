//! Everything that engines promise on the CPU. One program for all of it, because each would
//! compile the same traversals anew.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/portions.rs"]
mod portions_of;

mod basics;
mod conformance;
mod double;
mod fields;
mod filters;
mod geometry;
mod hybrid;
mod indices;
mod interrupt;
mod leaning;
mod list_order;
mod memory_limit;
mod nested;
mod over_lists;
mod portions;
mod radii;
mod sets;
mod stress;
mod support;
mod systems;
mod verlet;
