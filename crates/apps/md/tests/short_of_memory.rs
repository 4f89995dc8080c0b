//! Frames and checkpoints that memory is too short for are errors, and what was there stays. A
//! process of its own, whose allocator refuses what the test tells it to.

#[path = "../../../engine/nearfield/tests/refusing/mod.rs"]
mod refusing;

use nearfield::kernels::{Coefficients, LennardJones, Mixing, Truncation};
use nearfield_md::{Cell, Checkpoint, Error, ForceField, Options, Simulation, System, Trajectory};
use refusing::Refusing;
use std::fs;

#[global_allocator]
static MEMORY: Refusing = Refusing::nothing();

const SIDE: u32 = 20;

/// Requests from here on grow with the number of atoms.
const GROWS: usize = (SIDE * SIDE * SIDE) as usize * 4;

/// Grants one request more every time until `work` succeeds; before that it must say what it
/// lacked.
fn squeeze<T>(mut work: impl FnMut() -> Result<T, Error>) -> (T, usize) {
    for granted in 0.. {
        match MEMORY.while_short(GROWS, granted, &mut work) {
            Ok(done) => return (done, granted),
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("out of memory"), "{text}");
            }
        }
    }
    unreachable!("ranges without an end have none")
}

#[test]
fn frames_and_checkpoints_that_memory_is_too_short_for_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let positions = (0..SIDE * SIDE * SIDE)
        .map(|k| [k % SIDE, k / SIDE % SIDE, k / SIDE / SIDE].map(|x| 1.1 * f64::from(x)))
        .collect();
    let system = System::new(positions, Cell::cube(1.1 * f64::from(SIDE)).unwrap()).unwrap();

    let path = folder.path().join("run.xyz");
    let mut trajectory = Trajectory::open(&path, vec!["Ar".to_owned()], false).unwrap();
    trajectory.frame(&system, 0.0).unwrap();
    let one = fs::read(&path).unwrap();
    let error = MEMORY.while_short(GROWS, 0, || trajectory.frame(&system, 1.0));
    assert!(error.is_err(), "a frame was never short of memory");
    assert_eq!(fs::read(&path).unwrap(), one, "half a frame is none");
    squeeze(|| trajectory.frame(&system, 1.0));

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
    let (taken, refused) = squeeze(|| run.checkpoint());
    assert!(
        refused > 5,
        "a checkpoint was short of memory {refused} times"
    );
    let path = folder.path().join("run.checkpoint");
    fs::write(&path, "old").unwrap();
    let error = MEMORY.while_short(GROWS, 0, || taken.write(&path));
    assert!(error.is_err(), "writing was never short of memory");
    assert_eq!(fs::read(&path).unwrap(), b"old", "what was there stays");
    squeeze(|| taken.write(&path));
    let (read, refused) = squeeze(|| Checkpoint::read(&path));
    assert_eq!(read, taken);
    assert!(refused > 3, "reading was short of memory {refused} times");
}
