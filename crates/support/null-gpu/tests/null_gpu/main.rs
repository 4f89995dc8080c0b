//! Tests in children of this process that find the null GPU in the driver's place: which transfers
//! programs make, what engines refuse, and which GPUs ranks take.
#![cfg(target_os = "linux")]

mod common;
mod portions;
mod ranks;
mod seam;
mod transfers;
