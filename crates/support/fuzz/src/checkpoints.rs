//! Checkpoints of molecular dynamics, of bodies and of fluids. All readers are given the same
//! bytes, that of bodies also with a checksum that fits, which no amount of guessing would find.

use crate::{files::with_file, message::check_line, tables::check_system};
use nearfield::{Device, all_pairs::Real};
use nearfield_files::checksum;
use nearfield_md::Checkpoint;
use nearfield_nbody::{Options, Simulation};
use nearfield_sph::Checkpoint as Fluid;

/// Begins a checkpoint of bodies, which ends with its checksum.
const BODIES: &[u8] = b"NF-BODY\n";
/// Bodies with which a simulation is begun, which sums all pairs.
const MAX_BODIES: usize = 2000;

/// Reads `bytes` as each kind of checkpoint and checks what comes out.
///
/// # Panics
/// When a reader breaks a promise.
pub fn read(bytes: &[u8]) {
    with_file("run.checkpoint", bytes, |path| {
        match Checkpoint::read(path) {
            Ok(checkpoint) => {
                check_system(checkpoint.system());
                // A checkpoint that was read can be written, and is then read the same.
                let again = path.with_extension("again");
                checkpoint
                    .write(&again)
                    .unwrap_or_else(|error| panic!("{error}"));
                let again = Checkpoint::read(&again).unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(again.system().positions(), checkpoint.system().positions());
                assert_eq!(again.steps(), checkpoint.steps());
            }
            Err(error) => check_line(&error.to_string()),
        }
    });
    fluid(bytes);
    if bytes.len() > 48 * MAX_BODIES {
        return;
    }
    restore::<f32>(bytes);
    restore::<f64>(bytes);
    if let Some(body) = bytes.strip_prefix(BODIES) {
        let kept = &body[..body.len().saturating_sub(8)];
        let mut fitting = [BODIES, kept].concat();
        fitting.extend(checksum(&fitting).to_le_bytes());
        restore::<f32>(&fitting);
        restore::<f64>(&fitting);
    }
}

/// The checkpoint of a fluid is that of one rank, and of three, which have as many particles
/// together. It has no two forms: what is written again is what was read.
fn fluid(bytes: &[u8]) {
    with_file("fluid.checkpoint", bytes, |path| {
        let share = |rank, ranks| Fluid::read(path, rank, ranks);
        let whole = match share(0, 1) {
            Ok(whole) => whole,
            Err(error) => return check_line(&error.to_string()),
        };
        assert!(whole.time().is_finite() && whole.steps() < u64::MAX);
        let shares = (0..3).map(|rank| share(rank, 3));
        let shares: Vec<Fluid> = shares
            .map(|share| share.unwrap_or_else(|error| panic!("{error}")))
            .collect();
        let particles: usize = shares.iter().map(Fluid::particles).sum();
        assert_eq!(particles, whole.particles());
        assert!(shares.iter().all(|share| share.notes() == whole.notes()));
        let again = path.with_extension("again");
        whole
            .write(&again, whole.notes())
            .unwrap_or_else(|error| panic!("{error}"));
        let again = std::fs::read(&again).unwrap_or_else(|error| panic!("{error}"));
        assert!(again == bytes, "it is written with other bytes");
    });
}

fn restore<T: Real>(bytes: &[u8]) {
    let options = Options {
        device: Device::Cpu,
        threads: 1,
        ..Options::default()
    };
    with_file(
        "bodies.checkpoint",
        bytes,
        |path| match Simulation::<T>::restore(path, options) {
            Ok((simulation, _)) => {
                let bodies = simulation.bodies();
                assert_eq!(bodies.positions.len(), bodies.masses.len());
                assert_eq!(bodies.velocities.len(), bodies.masses.len());
            }
            Err(error) => check_line(&error.to_string()),
        },
    );
}
