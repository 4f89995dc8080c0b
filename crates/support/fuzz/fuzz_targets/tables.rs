//! Any bytes as each of the tables of numbers that commands read.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nearfield_fuzz::target("tables")(bytes));
