//! Any bytes as a VTK XML file.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nearfield_fuzz::target("vtk_xml")(bytes));
