//! Searches and sums of the CPU backend beside the oracle.

mod all_pairs;
mod boxes;
mod lists;
mod sound;
mod symmetric;
mod systems;
