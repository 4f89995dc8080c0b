//! What engines do to the process they live in: threads, forks, memory that is refused.
//!
//! Threads and limits belong to a whole process, so every test here runs in a process of its own:
//! it starts this program again for itself alone. A child that hangs is ended by an alarm, and one
//! that aborts shows it by how it ended.
#![cfg(target_os = "linux")]

mod fork;
mod memory;
mod small_box;
mod system;
mod threads;
mod uses;
