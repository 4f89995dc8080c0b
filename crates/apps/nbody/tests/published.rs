//! Runs against published numbers, checkpoints, and files.

use nearfield::{Device, all_pairs::Arithmetic, report::SimdLevel};
use nearfield_nbody::{
    Bodies, ErrorKind, Integrator, Moment, Options, Simulation, Story, Trails, draw, read_bodies,
    write_snapshot,
};
use std::path::PathBuf;

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("data")
        .join(name)
}

fn options(time_step: f64) -> Options {
    Options {
        time_step,
        device: Device::Cpu,
        ..Options::default()
    }
}

/// The energy's digits as they are published: nine behind the point.
fn published(energy: f64) -> String {
    format!("{energy:.9}")
}

#[test]
fn the_five_body_benchmark_gives_its_published_energies() {
    let bodies = read_bodies(data("benchmarksgame_5body.csv")).unwrap();
    assert_eq!(bodies.len(), 5);
    for arithmetic in [Arithmetic::Fast, Arithmetic::Exact] {
        let options = Options {
            integrator: Integrator::SymplecticEuler,
            arithmetic,
            ..options(0.01)
        };
        let mut run = Simulation::new(bodies.clone(), options).unwrap();
        assert_eq!(published(run.energy().unwrap().total()), "-0.169075164");
        run.run(1000).unwrap();
        assert_eq!(published(run.energy().unwrap().total()), "-0.169087605");
        assert!(
            run.momentum().iter().all(|p| p.abs() < 1e-12),
            "{:?}",
            run.momentum()
        );
    }
}

#[test]
fn plummer_spheres_have_their_energy_and_keep_it() {
    for name in ["plummer_128.txt", "plummer_1k.txt"] {
        let bodies = read_bodies(data(name)).unwrap();
        let mut run = Simulation::new(bodies, options(1e-4)).unwrap();
        let energy = run.energy().unwrap();
        assert!(
            (energy.total() + 0.25).abs() < 1e-10,
            "{name}: {}",
            energy.total()
        );
        assert!((energy.kinetic - 0.25).abs() < 1e-10, "{name}: {energy:?}");
    }
    let bodies = read_bodies(data("plummer_128.txt")).unwrap();
    let mut run = Simulation::new(bodies, options(1e-4)).unwrap();
    let before = run.energy().unwrap().total();
    let momentum = run.momentum();
    run.run(10_000).unwrap();
    assert!((run.time() - 1.0).abs() < 1e-9);
    let change = (run.energy().unwrap().total() - before) / before;
    assert!(change.abs() < 1e-4, "{change:e}");
    for axis in 0..3 {
        assert!((run.momentum()[axis] - momentum[axis]).abs() < 1e-12);
    }
}

#[test]
fn single_precision_keeps_the_energy_of_softened_bodies() {
    let bodies = read_bodies(data("plummer_1k.txt"))
        .unwrap()
        .rounded::<f32>()
        .unwrap();
    let softened = Options {
        softening: 0.02,
        ..options(2e-3)
    };
    let mut run = Simulation::new(bodies, softened).unwrap();
    let before = run.energy().unwrap().total();
    run.run(100).unwrap();
    let change = (run.energy().unwrap().total() - before) / before;
    assert!(change.abs() < 1e-4, "{change:e}");
}

#[test]
fn a_restored_run_goes_on_with_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.checkpoint");
    let bodies = read_bodies(data("plummer_128.txt")).unwrap();
    for integrator in [Integrator::Leapfrog, Integrator::SymplecticEuler] {
        let options = Options {
            integrator,
            softening: 0.01,
            ..options(1e-3)
        };
        let mut straight = Simulation::new(bodies.clone(), options).unwrap();
        straight.run(7).unwrap();
        straight.save(&path, b"notes").unwrap();
        straight.run(13).unwrap();
        let other = Options::default();
        let (mut restored, notes) = Simulation::<f64>::restore(
            &path,
            Options {
                device: Device::Cpu,
                ..other
            },
        )
        .unwrap();
        assert_eq!((restored.steps(), restored.options()), (7, &options));
        assert_eq!(notes, b"notes");
        restored.run(13).unwrap();
        assert_eq!(restored.bodies(), straight.bodies());
        assert_eq!(restored.steps(), 20);
    }
    let error = Simulation::<f32>::restore(&path, options(1.0)).unwrap_err();
    assert!(error.to_string().contains("f64"), "{error}");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[1000] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let error = Simulation::<f64>::restore(&path, options(1.0)).unwrap_err();
    assert!(error.to_string().contains("checksum"), "{error}");
    std::fs::write(&path, &bytes[..900]).unwrap();
    let error = Simulation::<f64>::restore(&path, options(1.0)).unwrap_err();
    assert!(error.to_string().contains("truncated"), "{error}");
    bytes[8] = 1;
    std::fs::write(&path, &bytes).unwrap();
    let error = Simulation::<f64>::restore(&path, options(1.0)).unwrap_err();
    assert!(error.to_string().contains("version 1"), "{error}");
}

#[test]
fn exact_runs_are_the_same_bits_at_every_width_and_number_of_threads() {
    let bodies = read_bodies(data("plummer_128.txt"))
        .unwrap()
        .rounded::<f32>()
        .unwrap();
    let mut expected: Option<Vec<[f32; 3]>> = None;
    for &level in SimdLevel::available() {
        for threads in [1, 2] {
            let mut sums = nearfield::Engine::all_pairs()
                .device(Device::Cpu)
                .arithmetic(Arithmetic::Exact)
                .simd(level)
                .threads(threads)
                .build()
                .unwrap();
            let found = sums
                .gravity(&bodies.positions, &bodies.masses, 0.0)
                .unwrap();
            assert_eq!(
                expected.get_or_insert_with(|| found.clone()),
                &found,
                "{level:?}"
            );
        }
    }
}

#[test]
fn a_snapshot_is_read_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot");
    let bodies = read_bodies(data("plummer_128.txt")).unwrap();
    let run = Simulation::new(bodies.clone(), options(1e-3)).unwrap();
    write_snapshot(&path, &run).unwrap();
    let found = read_bodies(path.with_extension("vtp")).unwrap();
    assert_eq!(
        (&found.masses, &found.positions),
        (&bodies.masses, &bodies.positions)
    );
    let bytes = std::fs::read(path.with_extension("npy")).unwrap();
    // Data begin at a multiple of 64 bytes.
    assert!(bytes.starts_with(b"\x93NUMPY") && bytes.len().is_multiple_of(64));
    let moments = [0.0, 1.0].map(|time| Moment {
        time,
        energy: -0.25 - 1e-6 * time,
    });
    let picture = folder.path().join("run.png");
    let none = Trails::default();
    let long = Trails {
        every: 1,
        places: (0..240).map(|n| [0.01 * f64::from(n), 0.5]).collect(),
    };
    let story = |trails, names| Story {
        first: &bodies,
        last: &found,
        moments: &moments,
        trails,
        names,
    };
    draw(&picture, &story(&none, &[])).unwrap();
    let bare = std::fs::metadata(&picture).unwrap().len();
    draw(&picture, &story(&long, &[])).unwrap();
    assert!(std::fs::metadata(&picture).unwrap().len() > bare && bare > 10_000);
}

#[test]
fn what_is_no_run_is_refused_by_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bodies.csv");
    let refused = |text: &str| {
        std::fs::write(&path, text).unwrap();
        read_bodies(&path).unwrap_err().to_string()
    };
    let text = refused("mass,x,y,z,vx,vy\n1,0,0,0,0,0\n");
    assert!(
        text.contains("no column vz") && text.contains("bodies.csv"),
        "{text}"
    );
    let text = refused("1 0 0 0\n");
    assert!(text.contains("4 columns"), "{text}");
    let text = refused("m,x,y,z,vx,vy,vz\n1,0,nan,0,0,0,0\n");
    assert!(text.contains("position of body 0"), "{text}");
    let two = |velocities: usize| Bodies {
        masses: vec![1.0, 1.0],
        positions: vec![[0.0; 3], [1e-9, 0.0, 0.0]],
        velocities: vec![[0.0; 3]; velocities],
    };
    let error = Simulation::new(two(1), options(1e-3)).unwrap_err();
    assert!(error.to_string().contains("1 velocities for 2"), "{error}");
    let error = Simulation::new(two(2), options(0.0)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::TimeStep(_)), "{error}");
    let far = Bodies {
        velocities: vec![[f64::MAX, 0.0, 0.0], [0.0; 3]],
        ..two(2)
    };
    let error = Simulation::new(far, options(1e9))
        .unwrap()
        .run(3)
        .unwrap_err();
    assert!(error.to_string().contains("position of body 0"), "{error}");
}
