//! Any bytes as an archive of NumPy.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nearfield_fuzz::target("npz")(bytes));
