//! Any text as the name of a device, a policy or a box.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nearfield_fuzz::target("texts")(bytes));
