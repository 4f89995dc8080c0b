//! Any bytes as a NumPy file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nearfield_fuzz::{Format, readers};

fuzz_target!(|bytes: &[u8]| readers::read(bytes, Format::Npy));
