//! Any tensor or array interface, as other libraries describe arrays on a GPU.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nearfield_fuzz::target("capsules")(bytes));
