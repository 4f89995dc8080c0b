//! Frames and checkpoints that memory is too short for are errors, and what was there stays. A
//! process of its own, whose allocator refuses what the test tells it to.

use nearfield::kernels::{Coefficients, LennardJones, Mixing, Truncation};
use nearfield_md::{Cell, Checkpoint, ForceField, Options, Simulation, System, Trajectory};
use nearfield_testkit::memory::Refusing;
use std::fs;

#[global_allocator]
static MEMORY: Refusing = Refusing::nothing();

const SIDE: u32 = 20;

/// Requests from here on grow with the number of atoms.
const GROWS: usize = (SIDE * SIDE * SIDE) as usize * 4;

/// Part of the message of an error for lack of memory.
const SAID: &str = "out of memory";

#[test]
fn frames_and_checkpoints_that_memory_is_too_short_for_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let positions = (0..SIDE * SIDE * SIDE)
        .map(|k| [k % SIDE, k / SIDE % SIDE, k / SIDE / SIDE].map(|x| 1.1 * f64::from(x)))
        .collect();
    let system = System::new(positions, Cell::cube(1.1 * f64::from(SIDE)).unwrap()).unwrap();

    let path = folder.path().join("run.xyz");
    let mut trajectory = Trajectory::create(&path, vec!["Ar".to_owned()]).unwrap();
    trajectory.frame(&system, 0.0).unwrap();
    let one = fs::read(&path).unwrap();
    let error = MEMORY.while_short(GROWS, 0, || trajectory.frame(&system, 1.0));
    assert!(error.is_err(), "a frame was never short of memory");
    assert_eq!(fs::read(&path).unwrap(), one, "half a frame is none");
    MEMORY.squeeze(GROWS, SAID, || trajectory.frame(&system, 1.0));

    let argon = Coefficients {
        epsilon: 1.0,
        sigma: 1.0,
    };
    let field = LennardJones::new(&[argon], Mixing::default(), &[], 2.5, Truncation::Plain);
    let field = ForceField::from(field.unwrap());
    let options = Options {
        threads: 1,
        ..Options::default()
    };
    let mut run = Simulation::new(system, field, options).unwrap();
    let (taken, refused) = MEMORY.squeeze(GROWS, SAID, || run.checkpoint());
    assert!(
        refused > 5,
        "a checkpoint was short of memory {refused} times"
    );
    let path = folder.path().join("run.checkpoint");
    fs::write(&path, "old").unwrap();
    let error = MEMORY.while_short(GROWS, 0, || taken.write(&path));
    assert!(error.is_err(), "writing was never short of memory");
    assert_eq!(fs::read(&path).unwrap(), b"old", "what was there stays");
    MEMORY.squeeze(GROWS, SAID, || taken.write(&path));
    let (read, refused) = MEMORY.squeeze(GROWS, SAID, || Checkpoint::read(&path));
    assert_eq!(read, taken);
    assert!(refused > 3, "reading was short of memory {refused} times");
}
