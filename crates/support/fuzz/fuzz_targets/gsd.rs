//! Any bytes as a trajectory of HOOMD-blue.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nearfield_fuzz::target("gsd")(bytes));
