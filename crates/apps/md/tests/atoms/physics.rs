//! Published energies, and what must hold whatever the numbers: momentum, energy, forces as slopes
//! of the energy, boxes of any shape, lists that lose nothing, runs that go on as if never stopped.

use crate::common::{REDUCED, salt, with_skin};
use nearfield::{
    Device, Engine, Precision,
    kernels::{
        Coefficients, CutoffCoulomb, Interactions, LennardJones, Mixing, PairPotential, PowerLaw,
        Screening, Truncation,
    },
};
use nearfield_files::GrowingFile;
use nearfield_md::{
    Cell, Checkpoint, ErrorKind, Evaluator, ForceField, Options, Simulation, System, Trajectory,
    read_nist,
};
use std::path::PathBuf;

fn data(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "data", name]
        .iter()
        .collect()
}

fn nist(configuration: usize) -> System {
    read_nist(data(&format!(
        "lj_sample_config_periodic{configuration}.txt"
    )))
    .unwrap()
}

fn fluid(cutoff: f64, truncation: Truncation) -> ForceField {
    let table = LennardJones::new(&[REDUCED], Mixing::default(), &[], cutoff, truncation);
    ForceField::from(table.unwrap())
}

/// Whether a value agrees with one that is given to five digits.
fn is_published(value: f64, published: f64) -> bool {
    let last_digit = match published {
        0.0 => 1e-9,
        published => 10f64.powf(published.abs().log10().floor() - 4.0),
    };
    (value - published).abs() <= 0.51 * last_digit
}

#[test]
fn energies_and_virials_are_those_of_the_nist_reference_calculations() {
    let table = std::fs::read_to_string(data("reference_values.csv")).unwrap();
    let rows = table
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let mut seen = 0;
    for row in rows {
        let fields: Vec<&str> = row.split(',').collect();
        let [
            configuration,
            _,
            _,
            scheme,
            cutoff,
            energy,
            virial,
            correction,
        ] = fields[..]
        else {
            panic!("{row}");
        };
        let number = |text: &str| text.parse::<f64>().unwrap();
        let truncation = match scheme {
            "LRC" => Truncation::Plain,
            "LFS" => Truncation::ForceShift,
            other => panic!("{other}"),
        };
        let system = nist(configuration.parse().unwrap());
        let field = fluid(number(cutoff), truncation);
        let pairs = match (configuration, cutoff) {
            ("1", "3.0") => 35_677,
            ("1", "4.0") => 85_488,
            ("4", "3.0") => 129,
            ("4", "4.0") => 249,
            other => panic!("{other:?}"),
        };
        for (skin, precision) in [
            (0.0, Precision::Single),
            (0.0, Precision::Double),
            (0.3, Precision::Single),
            (0.3, Precision::Double),
        ] {
            let options = Options {
                precision,
                ..with_skin(skin)
            };
            let mut evaluator = Evaluator::new(&system, &field, &options).unwrap();
            let found = evaluator.evaluate(&system, &field).unwrap();
            let what = format!("{row} with skin {skin} in {precision:?}: {found:?}");
            assert!(is_published(found.energy, number(energy)), "{what}");
            assert!(is_published(found.virial, number(virial)), "{what}");
            assert_eq!(evaluator.pairs().unwrap(), pairs, "{what}");
        }
        let beyond = field.long_range(&system).energy;
        assert!(is_published(beyond, number(correction)), "{row}: {beyond}");
        seen += 1;
    }
    assert_eq!(seen, 6);
}

#[test]
fn rock_salt_has_its_madelung_constant() {
    // A cube of ions around one of them; those on its faces, edges and corners belong to it by a
    // half, a quarter and an eighth (Evjen 1932, DOI 10.1103/PhysRev.39.675), which makes it
    // neutral.
    const HALF: i32 = 20;
    let along = -HALF..=HALF;
    let mut ions = Vec::new();
    let mut charges = Vec::new();
    for x in along.clone() {
        for y in along.clone() {
            for z in along.clone() {
                let cut = [x, y, z].into_iter().filter(|c| c.abs() == HALF).count();
                let sign = if (x + y + z) % 2 == 0 { 1.0 } else { -1.0 };
                ions.push([x, y, z].map(f64::from));
                charges.push(sign * 0.5f32.powi(cut as i32));
            }
        }
    }
    let reach = 1.8 * f64::from(HALF);
    let mut engine = Engine::builder(reach)
        .precision(Precision::Double)
        .build()
        .unwrap();
    let all = engine.add_point_set(&ions).unwrap();
    let centre = ions.iter().position(|ion| *ion == [0.0; 3]).unwrap();
    let coulomb = CutoffCoulomb::new(1.0, reach, Screening::Plain);
    let (mut energy, mut single, mut found) = (0.0, 0.0, 0);
    engine
        .for_each_neighbor(all, all, centre, |ion, pair| {
            let charge = charges[ion as usize];
            // Squared distances are whole numbers here, which f32 holds.
            energy += f64::from(charge) * coulomb.at(f64::from(pair.d2).sqrt()).energy;
            single += f64::from(coulomb.evaluate(pair.d2, 1.0, charge).energy);
            found += 1;
        })
        .unwrap();
    assert_eq!(found, ions.len() - 1);
    let madelung = 1.747_564_594_633_182_2;
    assert!((energy + madelung).abs() < 1e-6, "{energy}");
    assert!((single + madelung).abs() < 1e-5, "{single}");
}

/// Energy of one atom with all others by the nearest image, in double precision.
fn energy_of(atom: usize, system: &System, at: [f64; 3]) -> f64 {
    let (table, box_length, cutoff) = (salt().1, 1.15 * 8.0, 2.5);
    let of = |kind: u32| match kind {
        0 => REDUCED,
        _ => Coefficients {
            epsilon: 0.6,
            sigma: 1.1,
        },
    };
    assert_eq!(table.cutoff(), cutoff);
    let others = (0..system.len()).filter(|&other| other != atom);
    others
        .map(|other| {
            let d = [0, 1, 2].map(|axis| {
                let d: f64 = system.positions()[other][axis] - at[axis];
                d - (d / box_length).round() * box_length
            });
            let r = (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]).sqrt();
            if r > cutoff {
                return 0.0;
            }
            let mixed = Mixing::default().of(of(system.types()[atom]), of(system.types()[other]));
            let charges = f64::from(system.charges()[atom]) * f64::from(system.charges()[other]);
            let shifted = 1.0 / r - 2.0 / cutoff + r / (cutoff * cutoff);
            mixed.truncated(r, cutoff, Truncation::ForceShift).energy + 1.3 * charges * shifted
        })
        .sum()
}

#[test]
fn forces_are_the_slopes_of_the_energy() {
    let (system, field) = salt();
    // Of f32 positions rounding is most of what is wrong with a force.
    for (precision, tolerance) in [(Precision::Double, 2e-6), (Precision::Single, 2e-5)] {
        let options = Options {
            precision,
            ..Options::default()
        };
        let mut evaluator = Evaluator::new(&system, &field, &options).unwrap();
        let total = evaluator.evaluate(&system, &field).unwrap().energy;
        let all: f64 = (0..system.len())
            .map(|atom| 0.5 * energy_of(atom, &system, system.positions()[atom]))
            .sum();
        assert!((total - all).abs() < 1e-6 * all.abs(), "{total} {all}");
        let forces: Vec<[f64; 3]> = evaluator.forces().collect();
        let size = |most: f64, force: &f64| most.max(force.abs());
        let largest = forces.as_flattened().iter().fold(0.0, size);
        for atom in (0..system.len()).step_by(41) {
            for axis in 0..3 {
                let moved = |by: f64| {
                    let mut at = system.positions()[atom];
                    at[axis] += by;
                    energy_of(atom, &system, at)
                };
                let step = 1e-5;
                let slope = (moved(step) - moved(-step)) / (2.0 * step);
                let force = forces[atom][axis];
                let apart = (force + slope).abs();
                assert!(
                    apart < tolerance * largest,
                    "{precision:?} {atom} {force} {slope}"
                );
            }
        }
    }
}

#[test]
fn a_tilted_box_of_the_same_crystal_gives_the_same() {
    let straight = nist(1);
    let tilted = Cell::new([
        Some([10.0, 0.0, 0.0]),
        Some([10.0, 10.0, 0.0]),
        Some([-10.0, 10.0, 10.0]),
    ]);
    let tilted = System::new(straight.positions().to_vec(), tilted.unwrap()).unwrap();
    let field = fluid(3.0, Truncation::ForceShift);
    for skin in [0.0, 0.3] {
        let of = |system: &System| {
            let mut evaluator = Evaluator::new(system, &field, &with_skin(skin)).unwrap();
            let found = evaluator.evaluate(system, &field).unwrap();
            (found.energy, found.virial, evaluator.pairs().unwrap())
        };
        let (a, b) = (of(&straight), of(&tilted));
        assert!((a.0 - b.0).abs() < 1e-6 * a.0.abs(), "{a:?} {b:?}");
        assert!((a.1 - b.1).abs() < 2e-5 * a.1.abs(), "{a:?} {b:?}");
        assert_eq!(a.2, b.2);
    }
}

#[test]
fn forces_add_up_to_nothing_and_momentum_stays() {
    let (mut system, field) = salt();
    system.heat(0.9, 11);
    for skin in [0.0, 0.3] {
        let mut run = Simulation::new(system.clone(), field.clone(), with_skin(skin)).unwrap();
        let forces = run.forces().unwrap().to_vec();
        let sum = |axis: usize| forces.iter().map(|f| f[axis]).sum::<f64>();
        let size: f64 = forces.as_flattened().iter().map(|f| f.abs()).sum();
        for axis in 0..3 {
            assert!(sum(axis).abs() < 1e-6 * size, "{} of {size}", sum(axis));
        }
        for _ in 0..50 {
            run.step(0.003).unwrap();
        }
        let moving: f64 = (run.system().unwrap().velocities().as_flattened().iter())
            .map(|v| v.abs())
            .sum();
        let seen = run.look().unwrap();
        assert!(
            seen.momentum.iter().all(|p| p.abs() < 1e-6 * moving),
            "{seen:?}"
        );
    }
}

#[test]
fn energy_is_kept_to_second_order_of_the_step() {
    let (mut system, field) = salt();
    system.heat(0.9, 5);
    // The same time by steps of two lengths.
    let wobble = [0.004, 0.002].map(|dt: f64| {
        let mut run = Simulation::new(system.clone(), field.clone(), with_skin(0.4)).unwrap();
        for _ in 0..(1.0 / dt).round() as usize {
            run.step(dt).unwrap();
            run.observe().unwrap();
        }
        let (drift, seen) = (run.energy_drift(), run.look().unwrap());
        assert!(
            drift.slope().abs() < 2e-4 * seen.kinetic,
            "{drift:?} {seen:?}"
        );
        assert!(
            run.builds() > 1 && run.builds() < run.steps() / 4,
            "{} builds",
            run.builds()
        );
        drift.most() / seen.kinetic
    });
    assert!(wobble[0] < 1e-3, "{wobble:?}");
    assert!((2.0..8.0).contains(&(wobble[0] / wobble[1])), "{wobble:?}");
}

#[test]
fn lists_with_a_skin_lose_no_pair_over_many_steps() {
    let (mut system, field) = salt();
    system.heat(2.0, 23);
    let mut run = Simulation::new(system, field.clone(), with_skin(0.25)).unwrap();
    for _ in 0..60 {
        run.step(0.004).unwrap();
        let mut fresh = Evaluator::new(run.system().unwrap(), &field, &Options::default()).unwrap();
        let found = fresh.evaluate(run.system().unwrap(), &field).unwrap();
        assert_eq!(
            run.pairs().unwrap(),
            fresh.pairs().unwrap(),
            "step {}",
            run.steps()
        );
        let seen = run.look().unwrap();
        assert!((found.energy - seen.potential).abs() < 1e-6 * seen.potential.abs());
    }
    assert!(run.builds() > 3, "{} builds", run.builds());
}

#[test]
fn a_run_goes_on_from_a_checkpoint_as_if_it_had_never_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.checkpoint");
    let (mut system, field) = salt();
    system.heat(1.2, 2);
    for (skin, threads) in [(0.0, 1), (0.3, 2)] {
        let options = Options {
            threads,
            ..with_skin(skin)
        };
        let mut run = Simulation::new(system.clone(), field.clone(), options.clone()).unwrap();
        let steps = |run: &mut Simulation, count: usize| {
            for _ in 0..count {
                run.step(0.003).unwrap();
            }
        };
        steps(&mut run, 17);
        run.checkpoint().unwrap().write(&path).unwrap();
        steps(&mut run, 25);
        let options = Options {
            threads: 3 - threads,
            ..options
        };
        let saved = Checkpoint::read(&path).unwrap();
        let mut again = Simulation::resume(saved, field.clone(), options).unwrap();
        steps(&mut again, 25);
        assert_eq!(again.steps(), 42);
        assert!(
            again.system().unwrap() == run.system().unwrap(),
            "the same bits"
        );
        assert_eq!(again.look().unwrap(), run.look().unwrap());
    }
}

#[test]
fn atoms_in_one_place_and_steps_that_make_no_sense_are_named() {
    let cell = Cell::cube(6.0).unwrap();
    let twice = System::new(vec![[1.0; 3], [3.0; 3], [3.0; 3]], cell).unwrap();
    let field = fluid(2.5, Truncation::Plain);
    let error = Simulation::new(twice, field.clone(), Options::default()).unwrap_err();
    assert!(
        matches!(
            error.kind(),
            ErrorKind::Overlap {
                step: 0,
                atom: 1 | 2,
                nearest: Some((1 | 2, 0.0)),
                ..
            }
        ),
        "{error}"
    );
    let said = error.to_string();
    assert!(said.contains("is 0 away; move or remove"), "{said}");
    // Across the border of the box, and too near for single precision.
    let near = System::new(vec![[1e-7, 1.0, 1.0], [5.9999999, 1.0, 1.0]], cell).unwrap();
    let error = Simulation::new(near, field.clone(), Options::default()).unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains("the nearest, atom 1, is 2.0000000") && said.contains("force on atom 0"),
        "{said}"
    );
    let apart = System::new(vec![[1.0; 3], [3.0; 3]], cell).unwrap();
    let mut run = Simulation::new(apart.clone(), field.clone(), Options::default()).unwrap();
    assert!(
        run.step(0.0)
            .unwrap_err()
            .to_string()
            .contains("time step is 0")
    );
    for long in [1e300, 1e60] {
        let pair = System::new(vec![[1.0; 3], [1.0, 1.0, 2.0]], cell).unwrap();
        let mut run = Simulation::new(pair, field.clone(), Options::default()).unwrap();
        let said = run.step(long).unwrap_err().to_string();
        assert!(
            said.contains("at step 1 atom") && said.contains("is too long"),
            "{said}"
        );
    }
    let error = Simulation::new(apart, field, with_skin(-1.0)).unwrap_err();
    assert!(error.to_string().contains("skin is -1"), "{error}");
    let (system, charged) = salt();
    let bare = System::new(system.positions().to_vec(), *system.cell()).unwrap();
    let error = Simulation::new(bare, charged, Options::default()).unwrap_err();
    assert!(
        error.to_string().contains("0 charges for 512 atoms"),
        "{error}"
    );
}

#[test]
fn frames_are_read_back_in_the_order_of_the_input() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trajectory.extxyz");
    let (mut system, field) = salt();
    system.heat(0.5, 8);
    let start = system.positions().to_vec();
    let mut run = Simulation::new(system, field, Options::default()).unwrap();
    let names = vec!["Na".to_owned(), "Cl".to_owned()];
    let mut frames = Trajectory::create(&path, names.clone()).unwrap();
    frames.frame(run.system().unwrap(), 0.5).unwrap();
    let length = std::fs::metadata(&path).unwrap().len();
    let grown = frames.grown().unwrap();
    // A killed run has written this frame behind its checkpoint.
    frames.frame(run.system().unwrap(), 0.625).unwrap();
    let file = GrowingFile::go_on(folder.path(), &grown).unwrap();
    let mut frames = Trajectory::over(file, names.clone());
    frames.frame(run.system().unwrap(), 0.75).unwrap();
    assert_eq!(
        std::fs::metadata(&path).unwrap().len(),
        2 * length + 1,
        "two frames"
    );
    let cloud = nearfield_io::read_points(&path).unwrap();
    assert_eq!(cloud.positions_f64.unwrap(), start);
    assert_eq!(cloud.time, Some(0.5));
    assert_eq!(cloud.species.unwrap().names, names);
    assert_eq!(
        cloud.simulation_box.unwrap().lengths(),
        Some([1.15 * 8.0; 3])
    );
    assert_eq!(cloud.data.len(), 2);
}

#[test]
fn a_power_law_over_all_pairs_is_its_sum_in_double_precision() {
    // A radius that is larger than the set: a triangle of pairs, each evaluated once.
    let law = PowerLaw::new(0.8, 0.4, 7, 0.05).unwrap();
    let point = |k: usize| {
        let share = |prime: f64| (k as f64 * prime).fract() as f32;
        [
            4.0 * share(0.754_877),
            3.0 * share(0.569_841),
            5.0 * share(0.438_579),
        ]
    };
    let points: Vec<[f32; 3]> = (0..9_000).map(point).collect();
    let mut engine = Engine::builder(20.0).device(Device::Cpu).build().unwrap();
    let set = engine.add_point_set(&points).unwrap();
    let found = engine.traverse(&Interactions(law), set, set).run().unwrap();
    for i in (0..points.len()).step_by(479) {
        let (mut energy, mut force, mut size) = (0.0, [0.0; 3], 0.0);
        for j in (0..points.len()).filter(|&j| j != i) {
            let d = [0, 1, 2].map(|k| f64::from(points[j][k]) - f64::from(points[i][k]));
            let r = (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]).sqrt();
            let of_pair = law.at(r);
            let push = of_pair.virial / r;
            energy += 0.5 * of_pair.energy;
            size += push;
            for axis in 0..3 {
                force[axis] -= push * d[axis] / r;
            }
        }
        let (of_point, _, on_point) = found[i];
        assert!(
            (f64::from(of_point) - energy).abs() < 1e-5 * energy,
            "{i}: {of_point} {energy}"
        );
        for axis in 0..3 {
            let apart = (f64::from(on_point[axis]) - force[axis]).abs();
            assert!(apart < 1e-5 * size, "{i}: {on_point:?} {force:?}");
        }
    }
    let sum = |axis: usize| {
        found
            .iter()
            .map(|(_, _, f)| f64::from(f[axis]))
            .sum::<f64>()
    };
    let size: f64 = found
        .iter()
        .map(|(_, _, f)| f.iter().map(|x| f64::from(x.abs())).sum::<f64>())
        .sum();
    assert!(
        (0..3).all(|axis| sum(axis).abs() < 1e-6 * size),
        "each action has its reaction"
    );
}
