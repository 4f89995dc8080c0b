//! Any bytes as a dump of LAMMPS.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nearfield_fuzz::target("lammps_dump")(bytes));
