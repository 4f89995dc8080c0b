//! Any bytes as an XYZ or extended XYZ file.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nearfield_fuzz::target("xyz")(bytes));
