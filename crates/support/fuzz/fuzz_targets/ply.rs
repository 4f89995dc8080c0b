//! Any bytes as a PLY file.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nearfield_fuzz::target("ply")(bytes));
