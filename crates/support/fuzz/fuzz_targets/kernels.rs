//! Random functions of the kernels' subset, as Rust and as their CUDA text compiled as C++.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nearfield_fuzz::target("kernels")(bytes));
