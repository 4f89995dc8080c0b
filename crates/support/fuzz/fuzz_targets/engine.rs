//! Any sequence of calls on an engine, against the brute force.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nearfield_fuzz::target("engine")(bytes));
