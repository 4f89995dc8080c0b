//! A simulation on a GPU against the same on the CPU. Without a GPU the tests do nothing, or fail
//! if `NEARFIELD_REQUIRE_GPU=1`.

use glam::{DVec2, DVec3, Vec3};
use nearfield::Device;
use nearfield_sph::{
    Config, Dimensions, Domain, Error, ErrorKind, FrontRule, Loss, ProbeColumn, Probes, Readings,
    Simulation, SimulationBuilder,
    scene::{self, Top},
};

fn is_without_device(error: &Error) -> bool {
    let ErrorKind::Engine(engine) = error.kind() else {
        return false;
    };
    matches!(
        engine.kind(),
        nearfield::ErrorKind::DeviceUnavailable { .. }
    )
}

/// Starts on the first GPU; None where a test is to be skipped.
fn on_gpu(builder: SimulationBuilder) -> Option<Simulation> {
    let required = std::env::var("NEARFIELD_REQUIRE_GPU").is_ok_and(|value| value == "1");
    match builder.device(Device::Gpu(0)).build() {
        Ok(simulation) => Some(simulation),
        Err(error) if required => panic!("NEARFIELD_REQUIRE_GPU=1, but {error}"),
        Err(error) if is_without_device(&error) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A column of `edge`³·2 particles in a closed tank; spacing such that it is 1 m wide.
fn column(edge: u32) -> SimulationBuilder {
    let space = Dimensions::Three;
    let spacing = 1.0 / edge as f32;
    let edge = edge as i32;
    Simulation::builder(Config::water(space, spacing, 2.0))
        .fluid(&scene::block(space, [0, 0, 0], [edge, edge, 2 * edge], spacing).unwrap())
        .rough_walls(
            &scene::tank(space, [3 * edge, edge, 3 * edge], Top::Closed, 3, spacing).unwrap(),
        )
}

fn by_id<T: Copy>(simulation: &Simulation, values: &[T]) -> Vec<T> {
    let mut sorted: Vec<(u64, T)> = simulation
        .ids()
        .iter()
        .copied()
        .zip(values.iter().copied())
        .collect();
    sorted.sort_by_key(|pair| pair.0);
    sorted.into_iter().map(|pair| pair.1).collect()
}

#[test]
fn particles_move_as_on_the_cpu_while_rounding_has_not_grown() {
    let Some(mut gpu) = on_gpu(column(8)) else {
        return;
    };
    let mut cpu = column(8).device(Device::Cpu).build().unwrap();
    let spacing = cpu.config().spacing;
    for _ in 0..120 {
        let (one, other) = (gpu.step().unwrap(), cpu.step().unwrap());
        assert!(
            (one.dt - other.dt).abs() <= 1e-3 * other.dt,
            "{one:?} {other:?}"
        );
    }
    let (here, there) = (by_id(&gpu, gpu.positions()), by_id(&cpu, cpu.positions()));
    let apart = here
        .iter()
        .zip(&there)
        .map(|(a, b)| a.distance(*b))
        .fold(0.0, f32::max);
    assert!(apart < 0.02 * spacing, "{apart} of {spacing}");
    assert!(
        there
            .iter()
            .zip(scene::block(Dimensions::Three, [0, 0, 0], [8, 8, 16], spacing).unwrap())
            .any(|(now, before)| now.distance(before) > 0.5 * spacing),
        "nothing has moved"
    );
    let (here, there) = (gpu.energy().unwrap(), cpu.energy().unwrap());
    let scale = there.mechanical().abs();
    for (name, a, b) in [
        ("kinetic", here.kinetic, there.kinetic),
        ("potential", here.potential, there.potential),
        ("internal", here.internal, there.internal),
        ("viscous", here.viscous_loss, there.viscous_loss),
        ("friction", here.friction_loss, there.friction_loss),
        ("diffusion", here.diffusion_loss, there.diffusion_loss),
        ("walls", here.wall_work, there.wall_work),
    ] {
        assert!((a - b).abs() < 1e-4 * scale, "{name}: {a} and {b}");
        assert!(b == 0.0 || a != 0.0, "{name} was not booked");
    }
    let (here, there) = (gpu.momentum().unwrap(), cpu.momentum().unwrap());
    assert!(here.residual().length() < 1e-5 * here.gravity.length());
    assert!(here.walls.distance(there.walls) < 1e-3 * there.walls.length());
    assert_eq!(
        by_id(&gpu, &gpu.neighbor_counts().unwrap()).len(),
        gpu.positions().len()
    );
}

#[test]
fn after_a_thousand_steps_front_and_energy_are_those_of_the_cpu() {
    let Some(mut gpu) = on_gpu(column(12)) else {
        return;
    };
    let mut cpu = column(12).device(Device::Cpu).build().unwrap();
    for _ in 0..1000 {
        gpu.step().unwrap();
        cpu.step_at_most(gpu.time() - cpu.time()).unwrap();
        while gpu.time() - cpu.time() > 1e-9 {
            cpu.step_at_most(gpu.time() - cpu.time()).unwrap();
        }
    }
    let front = |simulation: &Simulation| {
        let mut x: Vec<f32> = simulation.positions().iter().map(|x| x.x).collect();
        x.sort_by(f32::total_cmp);
        // The last particles are spray.
        x[x.len() - x.len() / 100]
    };
    let (here, there) = (front(&gpu), front(&cpu));
    assert!(
        (here - there).abs() < 0.01,
        "{here} and {there} column widths"
    );
    let (here, there) = (gpu.energy().unwrap(), cpu.energy().unwrap());
    let scale = cpu.energy().unwrap().mechanical().abs();
    assert!(
        (here.mechanical() - there.mechanical()).abs() < 0.005 * scale,
        "{here:?} {there:?}"
    );
    assert!(
        (here.total() - there.total()).abs() < 0.005 * scale,
        "{here:?} {there:?}"
    );
}

/// The GPU sums up the figures of notes: they must be those of its particles.
#[test]
fn sums_and_front_are_those_of_the_particles() {
    let Some(mut gpu) = on_gpu(column(10)) else {
        return;
    };
    for _ in 0..150 {
        gpu.step().unwrap();
    }
    let (energy, momentum) = (gpu.energy().unwrap(), gpu.momentum().unwrap());
    let rule = FrontRule {
        share: 0.01,
        low: 0.0,
        high: 3.0,
    };
    for _ in 0..2 {
        let front = gpu.front(&rule).unwrap();
        assert_eq!(front, rule.front(gpu.positions()).unwrap());
        assert!(front.is_some_and(|x| x > 0.9), "{front:?}");
    }

    let (config, mass) = (gpu.config(), gpu.config().particle_mass());
    let water = config.water_state();
    let gravity = config.gravity.as_dvec3();
    let velocities = || gpu.velocities().iter().map(|v| v.as_dvec3());
    let kinetic = 0.5 * mass * velocities().map(|v| v.length_squared()).sum::<f64>();
    let heights = gpu.positions().iter().map(|x| gravity.dot(x.as_dvec3()));
    let potential = -mass * heights.sum::<f64>();
    let internal = gpu.compressions().iter().map(|&s| water.internal_energy(s));
    let internal = mass * internal.sum::<f64>();
    for (name, found, expected) in [
        ("kinetic", energy.kinetic, kinetic),
        ("potential", energy.potential, potential),
        ("internal", energy.internal, internal),
    ] {
        let off = (found - expected).abs();
        assert!(off <= 1e-12 * expected.abs(), "{name}: {found} {expected}");
        assert!(found != 0.0, "{name}");
    }
    let sum: DVec3 = velocities().sum();
    assert!((momentum.fluid - mass * sum).length() <= 1e-10 * (mass * sum).length());
}

/// On the GPU, sums of probes are those of its particles; they follow particles and probes.
#[test]
fn probes_read_what_they_read_on_the_cpu() {
    let Some(mut gpu) = on_gpu(column(10)) else {
        return;
    };
    let mut cpu = column(10).device(Device::Cpu).build().unwrap();
    let probes = |x: f64| Probes {
        points: vec![
            DVec3::new(x, 0.5, 0.3),
            DVec3::new(0.0, 0.52, 0.0),
            DVec3::new(2.5, 0.5, 2.5),
        ],
        columns: vec![ProbeColumn {
            middle: DVec2::new(x, 0.45),
            reach: 0.2,
        }],
    };
    assert_eq!(gpu.probe(&Probes::default()).unwrap(), Readings::default());
    let mut before = Readings::default();
    for x in [0.5, 0.5, 0.55] {
        for _ in 0..15 {
            let one = gpu.step().unwrap();
            let other = cpu.step_at_most(one.dt).unwrap();
            assert!(
                (one.dt - other.dt).abs() < 1e-3 * one.dt,
                "{one:?} {other:?}"
            );
        }
        let (here, there) = (
            gpu.probe(&probes(x)).unwrap(),
            cpu.probe(&probes(x)).unwrap(),
        );
        assert_eq!(here, gpu.probe(&probes(x)).unwrap(), "not deterministic");
        assert!(here.pressures[0] > 1000.0 && here.pressures[2] == 0.0);
        let values = |read: &Readings| [&read.pressures[..], &read.volumes].concat();
        for (a, b) in values(&here).into_iter().zip(values(&there)) {
            assert!((a - b).abs() <= 2e-3 * b.abs(), "{here:?} {there:?}");
        }
        assert_ne!(here, before);
        before = here;
    }
    let lost = Probes {
        points: vec![DVec3::NAN],
        ..Probes::default()
    };
    assert!(gpu.probe(&lost).is_err());
    assert!(gpu.step().is_ok());
}

#[test]
fn a_moment_is_the_fluid_when_it_was_asked_for() {
    let Some(mut gpu) = on_gpu(column(12)) else {
        return;
    };
    let mut seen = Vec::new();
    for _ in 0..6 {
        gpu.step().unwrap();
        let moment = gpu.moment().unwrap();
        let ids = gpu.ids().to_vec();
        seen.push((
            moment,
            gpu.positions().to_vec(),
            gpu.velocities().to_vec(),
            ids,
        ));
        gpu.step().unwrap();
    }
    let apart = seen[0].1 != seen[1].1;
    assert!(apart, "nothing moves");
    for (moment, positions, velocities, ids) in seen {
        let moment = std::thread::spawn(|| moment.wait().unwrap())
            .join()
            .unwrap();
        assert_eq!(moment.positions(), positions);
        assert_eq!(moment.velocities(), velocities);
        assert_eq!(moment.ids(), ids);
    }
    // It may outlive the simulation, and be forgotten.
    let (kept, forgotten) = (gpu.moment().unwrap(), gpu.moment().unwrap());
    let positions = gpu.positions().to_vec();
    drop(gpu);
    drop(forgotten);
    assert_eq!(kept.wait().unwrap().positions(), positions);
}

/// The same is checked without a GPU, with a driver that computes nothing
/// (crates/support/null-gpu).
#[test]
fn a_step_copies_the_same_bytes_however_many_particles_there_are() {
    let per_step = |edge: u32| {
        let mut gpu = on_gpu(column(edge))?;
        for _ in 0..4 {
            gpu.step().unwrap();
        }
        let before = gpu.transfers().unwrap();
        for _ in 0..8 {
            gpu.step().unwrap();
        }
        gpu.energy().unwrap();
        let after = gpu.transfers().unwrap();
        Some((
            after.to_host - before.to_host,
            after.to_device - before.to_device,
        ))
    };
    let (Some(few), Some(many)) = (per_step(6), per_step(16)) else {
        return;
    };
    assert!(few.0 > 0, "nothing was counted");
    // A step that has to be repeated looks at its points once more.
    let (few, many) = ((few.0.max(4096), few.1.max(4096)), many);
    assert!(many.0 <= few.0 && many.1 <= few.1, "{few:?} {many:?}");
}

#[test]
fn the_same_scene_gives_the_same_run() {
    let runs: Vec<_> = (0..2)
        .filter_map(|_| on_gpu(column(8)))
        .map(|mut simulation| {
            for _ in 0..150 {
                simulation.step().unwrap();
            }
            let bits = |x: &Vec3| x.to_array().map(f32::to_bits);
            let positions: Vec<_> = simulation.positions().iter().map(bits).collect();
            (positions, simulation.energy().unwrap())
        })
        .collect();
    if let [one, other] = &runs[..] {
        assert_eq!(one, other);
    }
}

#[test]
fn fluid_without_walls_falls_freely_however_far() {
    let space = Dimensions::Three;
    let drop = || {
        Simulation::builder(Config::water(space, 0.1, 1.0))
            .fluid(&scene::block(space, [0, 0, 0], [6, 6, 6], 0.1).unwrap())
    };
    let Some(mut gpu) = on_gpu(drop()) else {
        return;
    };
    while gpu.time() < 1.0 {
        gpu.step().unwrap();
    }
    let mean = |values: &[Vec3]| values.iter().sum::<Vec3>() / values.len() as f32;
    let fallen = 0.5 * 9.81 * gpu.time() * gpu.time();
    let centre =
        mean(gpu.positions()).z - mean(&scene::block(space, [0, 0, 0], [6, 6, 6], 0.1).unwrap()).z;
    assert!(
        (f64::from(centre) + fallen).abs() < 1e-3 * fallen,
        "{centre} {fallen}"
    );
}

#[test]
fn a_lost_particle_is_named_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let evidence = folder.path().join("lost.vtp");
    let scene = || {
        let mut config = Config::water(Dimensions::Three, 0.125, 1.0);
        config.domain = Domain {
            low: Vec3::splat(-1.0),
            high: Vec3::splat(4.0),
        };
        Simulation::builder(config)
            .fluid(&scene::block(Dimensions::Three, [0, 0, 0], [8, 8, 8], 0.125).unwrap())
            .evidence(&evidence)
    };
    for (velocity, reason) in [
        (Vec3::new(1e6, 0.0, 0.0), Loss::LeftDomain),
        (Vec3::new(f32::NAN, 0.0, 0.0), Loss::NotANumber),
    ] {
        let Some(mut gpu) = on_gpu(scene()) else {
            return;
        };
        gpu.set_velocity(77, velocity).unwrap();
        let error = (0..100).find_map(|_| gpu.step_at_most(1e-4).err()).unwrap();
        let ErrorKind::Lost(lost) = error.kind() else {
            panic!("{error}");
        };
        assert_eq!((lost.id, lost.reason), (77, reason));
        let evidence = lost.evidence.as_ref().unwrap().as_ref().unwrap();
        let shown = nearfield_io::read_points(evidence).unwrap();
        assert_eq!(shown.len(), 512);
    }
}
