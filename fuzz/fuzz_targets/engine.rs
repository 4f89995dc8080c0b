//! Any sequence of calls on an engine, against the brute force.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nearfield_fuzz::engine::{self, Session};

fuzz_target!(|session: Session| engine::run(&session));
