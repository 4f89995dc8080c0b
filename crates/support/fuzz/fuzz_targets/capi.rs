//! Any sequence of calls of the C interface.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nearfield_fuzz::target("capi")(bytes));
