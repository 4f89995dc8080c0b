//! A run whose atoms live on a GPU against the same on the host. Without a GPU the tests do
//! nothing, or fail if `NEARFIELD_REQUIRE_GPU=1`.

use crate::common::{REDUCED, salt, salt_in, with_skin};
use nearfield::{
    Device,
    kernels::{LennardJones, Mixing, Truncation},
};
use nearfield_md::{Cell, ErrorKind, Evaluator, ForceField, Options, Simulation, System};

/// The host's side of every comparison.
fn host(skin: f32) -> Options {
    Options {
        device: Device::Cpu,
        ..with_skin(skin)
    }
}

/// The GPU's side.
fn gpu(skin: f32) -> Options {
    Options {
        device: Device::Gpu(0),
        ..with_skin(skin)
    }
}

/// Starts on the first GPU; None where a test is to be skipped.
fn on_gpu(system: &System, field: &ForceField, skin: f32) -> Option<Simulation> {
    let required = std::env::var("NEARFIELD_REQUIRE_GPU").is_ok_and(|value| value == "1");
    match Simulation::new(system.clone(), field.clone(), gpu(skin)) {
        Ok(simulation) => {
            assert!(simulation.transfers().is_some(), "the atoms are on the GPU");
            Some(simulation)
        }
        Err(error) if required => panic!("NEARFIELD_REQUIRE_GPU=1, but {error}"),
        Err(error) => match error.kind() {
            ErrorKind::Engine(cause)
                if matches!(cause.kind(), nearfield::ErrorKind::DeviceUnavailable { .. }) =>
            {
                eprintln!("skipped: {error}");
                None
            }
            _ => panic!("{error}"),
        },
    }
}

/// Force fields that take every path of the kernels.
fn fields() -> Vec<ForceField> {
    let (_, charged) = salt();
    let table = |truncation| {
        let table = LennardJones::new(&[REDUCED; 2], Mixing::default(), &[], 2.5, truncation);
        ForceField::from(table.unwrap())
    };
    let one = LennardJones::new(
        &[REDUCED],
        Mixing::default(),
        &[],
        2.5,
        Truncation::EnergyShift,
    );
    let one = ForceField::from(one.unwrap());
    vec![
        charged,
        table(Truncation::ForceShift),
        table(Truncation::Plain),
        one,
    ]
}

/// A straight box and a tilted one.
fn boxes() -> [Cell; 2] {
    let (edge, tilt) = (1.15 * 8.0, 1.15 * 2.0);
    let tilted = [[edge, 0.0, 0.0], [tilt, edge, 0.0], [-tilt, tilt, edge]];
    [
        Cell::cube(edge).unwrap(),
        Cell::new(tilted.map(Some)).unwrap(),
    ]
}

/// The system that a force field is for.
fn system_of(field: usize) -> System {
    system_in(field, boxes()[0])
}

fn system_in(field: usize, cell: Cell) -> System {
    let (mut system, _) = salt_in(cell);
    if field == 3 {
        let atoms = system.len();
        system = system.with_types(vec![0; atoms], vec![1.0]).unwrap();
    }
    system.heat(0.9, 17);
    system
}

#[test]
fn forces_energies_and_virials_are_those_of_the_host() {
    let cases = fields().into_iter().enumerate();
    for ((number, field), cell) in cases.flat_map(|case| boxes().map(|cell| (case.clone(), cell))) {
        let system = system_in(number, cell);
        let Some(mut run) = on_gpu(&system, &field, 0.3) else {
            return;
        };
        let seen = run.observe().unwrap();
        // In the order of the GPU.
        let system = run.system().unwrap().clone();
        let mut evaluator = Evaluator::new(&system, &field, &host(0.0)).unwrap();
        let expected = evaluator.evaluate(&system, &field).unwrap();
        assert!((seen.potential - expected.energy).abs() < 1e-5 * expected.energy.abs());
        assert!((seen.virial - expected.virial).abs() < 1e-4 * expected.energy.abs());
        assert!((seen.temperature - 0.9).abs() < 1e-9);
        let found = run.forces().unwrap();
        let largest = found
            .as_flattened()
            .iter()
            .fold(0.0f64, |most, f| most.max(f.abs()));
        for (atom, (force, other)) in found.iter().zip(evaluator.forces()).enumerate() {
            for axis in 0..3 {
                let apart = (force[axis] - other[axis]).abs();
                assert!(
                    apart < 1e-5 * largest,
                    "field {number}, atom {atom}: {force:?} {other:?}"
                );
            }
        }
    }
}

#[test]
fn a_run_goes_where_the_host_goes_and_keeps_its_energy_through_many_builds() {
    for cell in boxes() {
        goes_where_the_host_goes(cell);
    }
}

fn goes_where_the_host_goes(cell: Cell) {
    let (field, system) = (fields().swap_remove(0), system_in(0, cell));
    let Some(mut run) = on_gpu(&system, &field, 0.3) else {
        return;
    };
    let mut other = Simulation::new(system, field, host(0.3)).unwrap();
    for _ in 0..60 {
        run.step(0.002).unwrap();
        other.step(0.002).unwrap();
    }
    let by_id = |system: &System| {
        let mut positions = vec![[0.0; 3]; system.len()];
        for (id, position) in system.ids().iter().zip(system.positions()) {
            positions[*id as usize] = *position;
        }
        positions
    };
    let (a, b) = (by_id(run.system().unwrap()), by_id(other.system().unwrap()));
    let apart = |(a, b): (&f64, &f64)| (a - b).abs();
    let farthest = a
        .as_flattened()
        .iter()
        .zip(b.as_flattened())
        .map(apart)
        .fold(0.0, f64::max);
    assert!(farthest < 1e-3, "{farthest}");
    for _ in 0..2000 {
        run.step(0.002).unwrap();
        if run.steps() % 20 == 0 {
            run.observe().unwrap();
        }
    }
    let (seen, drift) = (run.observe().unwrap(), run.energy_drift());
    assert!(run.builds() > 20, "{} builds", run.builds());
    assert!(drift.most() < 2e-3 * seen.kinetic, "{drift:?} {seen:?}");
    assert!(seen.momentum.iter().all(|p| p.abs() < 1e-3), "{seen:?}");
}

#[test]
fn a_run_goes_on_from_a_checkpoint_on_either_side() {
    let (field, system) = (fields().swap_remove(1), system_of(1));
    let Some(mut run) = on_gpu(&system, &field, 0.3) else {
        return;
    };
    for _ in 0..30 {
        run.step(0.002).unwrap();
    }
    let saved = run.checkpoint().unwrap();
    let total = run.observe().unwrap().total();
    let mut again = Simulation::resume(saved.clone(), field.clone(), gpu(0.3)).unwrap();
    assert_eq!(again.steps(), 30);
    assert!((again.observe().unwrap().total() - total).abs() < 1e-6 * total.abs());
    let mut there = Simulation::resume(saved, field, host(0.3)).unwrap();
    assert!((there.look().unwrap().total() - total).abs() < 1e-6 * total.abs());
}
