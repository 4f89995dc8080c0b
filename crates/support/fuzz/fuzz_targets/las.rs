//! Any bytes as a laser scan.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nearfield_fuzz::target("las")(bytes));
