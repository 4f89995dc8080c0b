//! Any bytes as a checkpoint.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nearfield_fuzz::target("checkpoints")(bytes));
