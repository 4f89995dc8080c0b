//! Any bytes as a NumPy file.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nearfield_fuzz::target("npy")(bytes));
