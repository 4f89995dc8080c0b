//! Any bytes as a CSV file.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nearfield_fuzz::target("csv")(bytes));
