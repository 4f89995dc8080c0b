//! Any bytes as a PCD file.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nearfield_fuzz::target("pcd")(bytes));
