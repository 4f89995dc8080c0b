//! Any bytes as a structure of VASP.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nearfield_fuzz::target("poscar")(bytes));
