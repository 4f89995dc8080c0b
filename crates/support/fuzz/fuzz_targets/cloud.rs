//! Any bytes as a point cloud as text.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nearfield_fuzz::target("cloud")(bytes));
