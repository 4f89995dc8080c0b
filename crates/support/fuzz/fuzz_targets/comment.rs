//! Any bytes as the comment line of an extended XYZ file.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nearfield_fuzz::target("comment")(bytes));
