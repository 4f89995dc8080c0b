//! Tests in children of this process that find the null GPU in the driver's place: which transfers
//! programs make, what engines and the C
//! interface refuse, and which GPUs ranks take.
#![cfg(target_os = "linux")]

mod c_interface;
mod common;
mod portions;
mod ranks;
mod seam;
mod transfers;
