//! Any bytes as a data file of LAMMPS.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nearfield_fuzz::target("lammps_data")(bytes));
