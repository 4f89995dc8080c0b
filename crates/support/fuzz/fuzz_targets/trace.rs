//! Any bytes as a trace, which is then analysed and exported.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nearfield_fuzz::target("trace")(bytes));
