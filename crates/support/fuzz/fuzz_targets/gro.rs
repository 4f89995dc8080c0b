//! Any bytes as coordinates of GROMACS.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nearfield_fuzz::target("gro")(bytes));
