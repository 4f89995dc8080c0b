//! Any bytes as a legacy VTK file.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nearfield_fuzz::target("vtk")(bytes));
