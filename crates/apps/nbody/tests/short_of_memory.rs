//! Snapshots and checkpoints that memory is too short for are errors, and what was there stays. A
//! process of its own, whose allocator refuses what the test tells it to.

use nearfield_nbody::{Bodies, Options, Simulation, write_snapshot};
use nearfield_testkit::memory::Refusing;
use std::fs;

#[global_allocator]
static MEMORY: Refusing = Refusing::nothing();

const COUNT: usize = 40_000;

/// Requests from here on grow with the number of bodies; those of a compressor or a picture do not.
const GROWS: usize = COUNT * 12;

/// Part of the message of an error for lack of memory.
const SAID: &str = "bytes are needed for";

#[test]
fn snapshots_and_checkpoints_that_memory_is_too_short_for_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = 1u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as f64 / u64::MAX as f64
    };
    let mut vectors = || (0..COUNT).map(|_| [random(), random(), random()]).collect();
    let bodies = Bodies {
        masses: vec![1e-6; COUNT],
        positions: vectors(),
        velocities: vectors(),
    };
    let options = || Options {
        softening: 0.1,
        time_step: 1e-3,
        ..Options::default()
    };
    let run = Simulation::new(bodies, options()).unwrap();
    let path = folder.path().join("snapshot.vtp");
    fs::write(&path, "old").unwrap();
    let ((), refused) = MEMORY.squeeze(GROWS, SAID, || write_snapshot(&path, &run));
    assert!(
        refused > 6,
        "a snapshot was short of memory {refused} times"
    );

    let path = folder.path().join("run.checkpoint");
    fs::write(&path, "old").unwrap();
    let error = MEMORY.while_short(GROWS, 0, || run.save(&path, b""));
    assert!(error.is_err(), "saving was never short of memory");
    assert_eq!(fs::read(&path).unwrap(), b"old", "what was there stays");
    MEMORY.squeeze(GROWS, SAID, || run.save(&path, b""));
}
