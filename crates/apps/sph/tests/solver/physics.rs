//! The solver against what physics demands of it.

use glam::Vec3;
use nearfield_sph::scene::{self, Top};
use nearfield_sph::{Checkpoint, Config, Dimensions, Domain, ErrorKind, Loss, Simulation};

const PLANE: Dimensions = Dimensions::Two;
const SPACE: Dimensions = Dimensions::Three;

/// Water one metre deep at rest in a tank it fills from side to side.
fn still_water(dimensions: Dimensions, cells: i32) -> Simulation {
    let spacing = 1.0 / cells as f32;
    let size = match dimensions {
        Dimensions::Two => [cells, cells, 0],
        Dimensions::Three => [cells / 2, cells / 2, cells],
    };
    let mut inside = size;
    inside[if dimensions == PLANE { 1 } else { 2 }] += 3;
    Simulation::builder(Config::water(dimensions, spacing, 1.0))
        .fluid(&scene::block(dimensions, [0; 3], size, spacing).unwrap())
        .walls(&scene::tank(dimensions, inside, Top::Open, 3, spacing).unwrap())
        .hydrostatic(dimensions.up())
        .build()
        .unwrap()
}

/// A column that collapses in a closed tank with a rough floor.
fn collapse(config: Config, threads: usize) -> Simulation {
    let walls = scene::tank(PLANE, [40, 30, 0], Top::Closed, 3, config.spacing).unwrap();
    let (floor, sides): (Vec<Vec3>, Vec<Vec3>) = walls.iter().partition(|wall| wall.y < 0.0);
    Simulation::builder(config)
        .fluid(&scene::block(PLANE, [0; 3], [10, 20, 0], config.spacing).unwrap())
        .walls(&sides)
        .rough_walls(&floor)
        .threads(threads)
        .build()
        .unwrap()
}

fn collapsing_water() -> Config {
    Config {
        sort_every: 7,
        ..Config::water(PLANE, 0.1, 2.0)
    }
}

/// Positions in the order of the ids.
fn by_id(simulation: &Simulation) -> Vec<Vec3> {
    let mut sorted = vec![Vec3::NAN; simulation.ids().len()];
    for (&id, &position) in simulation.ids().iter().zip(simulation.positions()) {
        sorted[id as usize] = position;
    }
    sorted
}

/// Slope of the line through (x, y) with the least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = points
        .iter()
        .fold((0.0, 0.0), |m, p| (m.0 + p.0 / count, m.1 + p.1 / count));
    let both: f64 = points.iter().map(|p| (p.0 - mean.0) * (p.1 - mean.1)).sum();
    let own: f64 = points.iter().map(|p| (p.0 - mean.0).powi(2)).sum();
    both / own
}

/// Pressures of the fluid particles now, Pa.
fn pressures(simulation: &Simulation) -> Vec<f32> {
    let moment = simulation.moment().unwrap().wait().unwrap();
    moment.pressures().unwrap()
}

/// Pa per metre of depth.
fn pressure_gradient(simulation: &Simulation) -> f64 {
    let up = simulation.config().dimensions.up();
    let depths = simulation.positions().iter().map(|x| f64::from(-x.dot(up)));
    let pressures = pressures(simulation).into_iter().map(f64::from);
    slope(&depths.zip(pressures).collect::<Vec<_>>())
}

#[test]
fn still_water_stays_still_and_its_pressure_grows_with_depth() {
    for (dimensions, cells) in [(PLANE, 20), (SPACE, 10)] {
        let mut simulation = still_water(dimensions, cells);
        let start = by_id(&simulation);
        let mut gradients = Vec::new();
        while simulation.time() < 1.5 {
            simulation.step().unwrap();
            if simulation.time() > 0.5 {
                gradients.push(pressure_gradient(&simulation));
            }
        }
        // The lattice settles into a denser packing and breathes a little as
        // it does, with a few hundredths of the speed of waves.
        let now = by_id(&simulation);
        let moved = now
            .iter()
            .zip(&start)
            .map(|(a, b)| a.distance(*b))
            .fold(0.0, f32::max);
        let spacing = simulation.config().spacing;
        assert!(
            moved < 1.5 * spacing,
            "{dimensions:?}: moved {moved} at spacing {spacing}"
        );
        let speed = (2.0 * simulation.energy().unwrap().kinetic / simulation.mass()).sqrt();
        assert!(speed < 0.1, "{dimensions:?}: {speed} m/s");

        // The surface is as sharp as the spacing, and the depth is one metre.
        let gradient = gradients.iter().sum::<f64>() / gradients.len() as f64;
        let error = (gradient / 9810.0 - 1.0).abs();
        assert!(
            error < f64::from(1.2 * spacing),
            "{dimensions:?}: {gradient} Pa/m"
        );
        for (x, pressure) in simulation.positions().iter().zip(pressures(&simulation)) {
            let expected = 9810.0 * (1.0 - x.dot(dimensions.up()));
            let error = (pressure - expected).abs();
            assert!(
                error < 0.15 * 9810.0,
                "{dimensions:?} at {x}: {pressure} Pa, not {expected}"
            );
        }
    }
}

#[test]
fn walls_carry_the_weight_of_still_water() {
    let mut simulation = still_water(PLANE, 20);
    let (mut sum, mut steps) = (0.0, 0.0);
    while simulation.time() < 1.0 {
        let report = simulation.step().unwrap();
        if report.time > 0.5 {
            sum += report.wall_force.y;
            steps += 1.0;
        }
    }
    let weight = 9.81 * simulation.mass();
    assert!(
        (sum / steps / weight - 1.0).abs() < 0.01,
        "{} of {weight}",
        sum / steps
    );
}

#[test]
fn no_particle_is_lost_or_doubled() {
    let mut simulation = collapse(collapsing_water(), 0);
    let mass = simulation.mass();
    for _ in 0..100 {
        simulation.step().unwrap();
    }
    assert_eq!(simulation.mass(), mass);
    let mut ids = simulation.ids().to_vec();
    assert!(!ids.is_sorted(), "the particles were never sorted in space");
    ids.sort_unstable();
    assert!(ids.iter().copied().eq(0..200));
}

#[test]
fn momentum_comes_from_gravity_and_walls_alone() {
    let mut simulation = collapse(collapsing_water(), 0);
    while simulation.time() < 1.0 {
        simulation.step().unwrap();
    }
    let momentum = simulation.momentum().unwrap();
    assert!(momentum.walls.length() > 0.1 * momentum.gravity.length());
    assert!(
        momentum.residual().length() < 1e-6 * momentum.gravity.length(),
        "{momentum:?}"
    );
}

#[test]
fn colliding_water_keeps_its_momentum_without_walls() {
    let config = Config {
        gravity: Vec3::ZERO,
        ..Config::water(SPACE, 0.1, 1.0)
    };
    let mut fluid = scene::block(SPACE, [0; 3], [6, 6, 6], 0.1).unwrap();
    fluid.extend(scene::block(SPACE, [7, 1, 2], [13, 7, 8], 0.1).unwrap());
    let velocity = |x: &Vec3| {
        if x.x < 0.65 {
            Vec3::new(2.0, 0.0, 0.5)
        } else {
            -Vec3::X
        }
    };
    let velocities: Vec<Vec3> = fluid.iter().map(velocity).collect();
    let mut simulation = Simulation::builder(config)
        .fluid(&fluid)
        .velocities(&velocities)
        .build()
        .unwrap();
    let before = simulation.momentum().unwrap().fluid;
    let kinetic = simulation.energy().unwrap().kinetic;
    while simulation.time() < 0.3 {
        simulation.step().unwrap();
    }
    let change = (simulation.momentum().unwrap().fluid - before).length();
    assert!(change < 1e-6 * before.length(), "{change}");
    assert!(
        simulation.energy().unwrap().kinetic < 0.95 * kinetic,
        "the blocks did not meet"
    );
}

#[test]
fn energy_is_accounted_for_and_never_grows() {
    let mut simulation = collapse(collapsing_water(), 0);
    let start = simulation.energy().unwrap();
    let mut lowest = start.mechanical();
    while simulation.time() < 1.5 {
        simulation.step().unwrap();
        let energy = simulation.energy().unwrap();
        assert!(energy.mechanical() < 1.001 * start.mechanical());
        // Walls lend a little when water meets them and take it back.
        let own = energy.mechanical() - energy.wall_work;
        let gained = own - lowest;
        assert!(
            gained < 1e-3 * start.mechanical(),
            "{gained} J at {} s",
            simulation.time()
        );
        lowest = lowest.min(own);
    }
    let end = simulation.energy().unwrap();
    let drift = (end.total() - start.total()) / start.mechanical();
    assert!(drift.abs() < 5e-3, "{drift}");
    assert!(end.viscous_loss > 0.0 && end.friction_loss > 0.0 && end.diffusion_loss > 0.0);
    assert!(end.mechanical() < 0.9 * start.mechanical());
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let run = |threads| {
        let mut simulation = collapse(collapsing_water(), threads);
        for _ in 0..60 {
            simulation.step().unwrap();
        }
        by_id(&simulation)
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn sorting_in_space_changes_rounding_only() {
    let run = |sort_every| {
        let mut simulation = collapse(
            Config {
                sort_every,
                ..collapsing_water()
            },
            0,
        );
        for _ in 0..40 {
            simulation.step_at_most(1e-3).unwrap();
        }
        by_id(&simulation)
    };
    let apart = run(0)
        .iter()
        .zip(run(1))
        .map(|(a, b)| a.distance(b))
        .fold(0.0, f32::max);
    assert!(apart < 1e-4, "{apart}");
}

#[test]
fn water_slips_along_smooth_walls_and_is_braked_by_rough_ones() {
    let config = Config::water(PLANE, 0.1, 0.5);
    let fluid = scene::block(PLANE, [5, 0, 0], [15, 4, 0], 0.1).unwrap();
    let floor = scene::block(PLANE, [-3, -3, 0], [43, 0, 0], 0.1).unwrap();
    let still = Simulation::builder(config)
        .fluid(&fluid)
        .velocities(&vec![Vec3::X; fluid.len()])
        .hydrostatic(0.4 * Vec3::Y);
    let mut smooth = still.walls(&floor).build().unwrap();
    let mut rough = Simulation::builder(config)
        .fluid(&fluid)
        .velocities(&vec![Vec3::X; fluid.len()])
        .hydrostatic(0.4 * Vec3::Y)
        .rough_walls(&floor)
        .build()
        .unwrap();
    let speed = |simulation: &mut Simulation| {
        while simulation.time() < 0.3 {
            simulation.step().unwrap();
        }
        simulation.momentum().unwrap().fluid.x / simulation.mass()
    };
    assert!((speed(&mut smooth) - 1.0).abs() < 0.02);
    assert!(speed(&mut rough) < 0.95);
}

#[test]
fn a_particle_that_is_no_number_stops_the_run_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lost.vtp");
    let mut simulation = Simulation::builder(collapsing_water())
        .fluid(&scene::block(PLANE, [0; 3], [10, 10, 0], 0.1).unwrap())
        .evidence(&path)
        .build()
        .unwrap();
    for _ in 0..10 {
        simulation.step().unwrap();
    }
    simulation
        .set_velocity(42, Vec3::new(f32::NAN, 0.0, 0.0))
        .unwrap();
    let error = simulation.step().unwrap_err();
    assert!(
        error
            .to_string()
            .contains("particle 42 is no longer a number at step 11"),
        "{error}"
    );
    assert!(error.to_string().contains("lost.vtp"), "{error}");
    let ErrorKind::Lost(lost) = error.kind() else {
        panic!("{error}")
    };
    assert_eq!(
        (lost.id, lost.reason, lost.count),
        (42, Loss::NotANumber, 1)
    );
    let frame = nearfield_io::read_points(&path).unwrap();
    assert_eq!(frame.len(), 100);
    let ids = frame
        .quantity("id")
        .and_then(nearfield_io::PointData::to_scalars)
        .unwrap();
    let row = ids.iter().position(|&id| id == 42.0).unwrap();
    assert!(frame.positions[row][0].is_nan());
}

#[test]
fn a_particle_that_leaves_the_domain_stops_the_run_by_name() {
    let domain = Domain {
        low: Vec3::splat(-0.1),
        high: Vec3::new(3.0, 3.0, 0.1),
    };
    let mut simulation = Simulation::builder(Config {
        domain,
        ..collapsing_water()
    })
    .fluid(&scene::block(PLANE, [0; 3], [4, 4, 0], 0.1).unwrap())
    .build()
    .unwrap();
    simulation
        .set_velocity(5, Vec3::new(500.0, 0.0, 0.0))
        .unwrap();
    let error = loop {
        if let Err(error) = simulation.step() {
            break error;
        }
    };
    let ErrorKind::Lost(lost) = error.kind() else {
        panic!("{error}")
    };
    assert_eq!((lost.id, lost.reason), (5, Loss::LeftDomain));
    assert!(lost.position.x > 3.0 && lost.velocity.x > 100.0 && lost.evidence.is_none());
}

#[test]
fn scenes_that_cannot_run_are_refused_by_name() {
    let refusal = |fluid: &[Vec3], velocities: &[Vec3]| {
        let scene = Simulation::builder(collapsing_water())
            .fluid(fluid)
            .velocities(velocities);
        scene
            .build()
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    assert!(refusal(&[], &[]).contains("no fluid particle"));
    assert!(refusal(&[Vec3::ZERO; 3], &[Vec3::ZERO; 2]).contains("2 velocities were given for 3"));
    let wild = [Vec3::ZERO, Vec3::new(0.0, f32::INFINITY, 0.0)];
    assert!(refusal(&wild, &[Vec3::ZERO; 2]).contains("position of fluid particle 1"));
    let raised = [Vec3::ZERO, Vec3::Z];
    assert!(refusal(&raised, &[Vec3::ZERO; 2]).contains("fluid particle 1 has z = 1"));
    let unknown = collapse(collapsing_water(), 0)
        .set_velocity(200, Vec3::ZERO)
        .unwrap_err();
    assert!(
        unknown
            .to_string()
            .contains("no particle 200: ids run from 0 to 199"),
        "{unknown}"
    );
}

#[test]
fn a_moment_stays_while_the_simulation_goes_on() {
    let mut simulation = collapse(collapsing_water(), 1);
    simulation.step().unwrap();
    let then = (simulation.steps(), simulation.time());
    let (positions, pressures) = (simulation.positions().to_vec(), pressures(&simulation));
    let pending = simulation.moment().unwrap();
    for _ in 0..20 {
        simulation.step().unwrap();
    }
    let moment = std::thread::spawn(|| pending.wait())
        .join()
        .unwrap()
        .unwrap();
    assert_eq!((moment.steps(), moment.time()), then);
    assert_eq!(moment.positions(), positions);
    assert_eq!(moment.pressures().unwrap(), pressures);
    assert!(moment.positions() != simulation.positions());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("moment.vtp");
    moment.write(&path).unwrap();
    let cloud = nearfield_io::read_points(&path).unwrap();
    assert_eq!(cloud.positions.len(), positions.len());
    assert_eq!(cloud.time, Some(then.1));
}

#[test]
fn a_run_goes_on_from_a_checkpoint_and_damaged_ones_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("checkpoint");
    let scene = || {
        let config = collapsing_water();
        let fluid = scene::block(PLANE, [0; 3], [10, 20, 0], config.spacing).unwrap();
        let walls = scene::tank(PLANE, [40, 30, 0], Top::Open, 3, config.spacing).unwrap();
        Simulation::builder(config)
            .fluid(&fluid)
            .walls(&walls)
            .threads(1)
    };
    let mut whole = scene().build().unwrap();
    for _ in 0..30 {
        whole.step().unwrap();
    }
    whole.checkpoint().unwrap().write(&path, b"notes").unwrap();
    let read = Checkpoint::read(&path, 0, 1).unwrap();
    assert_eq!((read.steps(), read.time()), (30, whole.time()));
    assert_eq!(read.notes(), b"notes");
    let mut resumed = scene().resume(read).build().unwrap();
    assert_eq!(resumed.energy().unwrap(), whole.energy().unwrap());
    for _ in 0..30 {
        whole.step().unwrap();
        resumed.step().unwrap();
    }
    let (there, here) = (by_id(&whole), by_id(&resumed));
    let off = |(a, b): (&Vec3, &Vec3)| a.distance(*b);
    let largest = there.iter().zip(&here).map(off).fold(0.0, f32::max);
    assert!(largest < 1e-4, "{largest} m apart after 30 steps");
    // Shares of ranks make up the whole.
    let steps = |rank| Checkpoint::read(&path, rank, 3).unwrap().steps();
    assert_eq!((0..3).map(steps).sum::<u64>(), 90);

    let bytes = std::fs::read(&path).unwrap();
    let refused = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        Checkpoint::read(&path, 0, 1).unwrap_err().to_string()
    };
    for len in [0, 10, 60, bytes.len() - 1] {
        let text = refused(&bytes[..len]);
        assert!(text.contains("checkpoint"), "{text}");
    }
    let at = |place: usize, with: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[place..place + with.len()].copy_from_slice(with);
        refused(&bytes)
    };
    let header = b"nearfield-sph checkpoint 2\n".len();
    for count in [u64::MAX, 1 << 62, 199, 0] {
        assert!(at(header, &count.to_le_bytes()).contains("bytes are not those"));
    }
    assert!(at(header + 32, &f64::NAN.to_le_bytes()).contains("not finite"));
    let last = bytes.len() - 8;
    assert!(at(last, &u64::MAX.to_le_bytes()).contains("it has the id"));
    let other = bytes[last - 8..last].to_vec();
    assert!(at(last, &other).contains("two of its particles"));
    assert!(at(header - 2, b"1").contains("checkpoint 1, and this program reads"));
    assert!(at(header + 24, &[2]).contains("bytes are not those"));
    let foot = last - 200 * 12;
    assert!(at(foot, &f32::NAN.to_le_bytes()).contains("is not finite"));
}
