//! `nearfield lj`.

use crate::{Workplace, words};
use serde_json::Value;

/// A configuration of the NIST reference calculations.
fn nist(configuration: usize) -> String {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../md/tests/data");
    format!("{data}/lj_sample_config_periodic{configuration}.txt")
}

#[test]
fn lj_gives_the_published_energies_and_says_what_it_cannot_read() {
    let place = Workplace::new();
    let near = |value: &Value, expected: f64| (value.as_f64().unwrap() - expected).abs() < 0.051;
    let found = place.json(&["lj", &nist(1), "--cutoff", "3", "--json"]);
    assert_eq!(found["pairs"], 35_677);
    assert_eq!(found["atoms"], 800);
    assert!(near(&found["pair_energy"], -4351.5), "{found}");
    assert!(near(&found["pair_virial"], -568.67), "{found}");
    assert!(near(&found["long_range_correction"], -198.49), "{found}");
    let shifted = format!("lj {} --cutoff 3 --shift force --json", nist(1));
    let shifted = words(&shifted);
    assert!(near(&place.json(&shifted)["pair_energy"], -3870.9));

    let table = place.file("ions.txt", "Na 0.1 2.0 1\nCl 0.2 3.0 -1\n");
    let ions =
        "2\nLattice=\"9 0 0 2 9 0 0 0 9\" Properties=species:S:1:pos:R:3\nNa 0 0 0\nCl 0 0 8\n";
    let ions = place.file("ions.extxyz", ions);
    let (table, ions) = (table.to_str().unwrap(), ions.to_str().unwrap());
    let salt = format!("lj {ions} --cutoff 4 --coefficients {table} --json");
    let salt = words(&salt);
    let bare = place.json(&salt);
    let charged = place.json(&[&salt[..], &["--charges"]].concat());
    assert_eq!(charged["pairs"], 1);
    let between = |of: &Value| of["pair_energy"].as_f64().unwrap();
    assert!(
        (between(&charged) - between(&bare) + 1.0).abs() < 1e-5,
        "{bare} {charged}"
    );

    let other = place.file("other.xyz", "1\n\nK 0 0 0\n");
    let other = format!(
        "lj {} --cutoff 4 --coefficients {table}",
        other.to_str().unwrap()
    );
    let other = words(&other);
    place.refuses("no coefficients of 'K'", &other);
    place.refuses("cut-off -1", &["lj", &nist(4), "--cutoff=-1"]);
}

#[test]
fn lj_runs_and_goes_on_from_a_checkpoint() {
    let place = Workplace::new();
    let flags = [
        "--cutoff", "2.5", "--shift", "force", "--dt", "0.002", "--every", "10", "--json",
    ];
    let run = |more: &[&str]| place.json(&[&["lj"], more, &flags[..]].concat());
    let configuration = nist(1);
    let start = format!("{configuration} --temperature 0.9 --output one");
    let start = words(&start);
    let whole = run(&[&start[..], &["--steps", "40", "--checkpoint", "20"]].concat());
    assert_eq!(whole["steps"], 40);
    let deviation = whole["energy_deviation"].as_f64().unwrap();
    assert!(
        deviation < 2e-3 * whole["kinetic_energy"].as_f64().unwrap(),
        "{whole}"
    );
    let start = format!("{configuration} --temperature 0.9 --output two");
    let start = words(&start);
    run(&[&start[..], &["--steps", "20", "--checkpoint", "20"]].concat());
    let saved = ["--restart", "two/run.checkpoint", "--output", "two"];
    let rest = run(&[&saved[..], &["--steps", "20", "--checkpoint", "20"]].concat());
    assert_eq!(rest["total_energy"], whole["total_energy"]);
    let read = |name: &str| std::fs::read(place.0.path().join(name)).unwrap();
    assert!(read("one/trajectory.extxyz") == read("two/trajectory.extxyz"));
    assert!(read("one/run.checkpoint") == read("two/run.checkpoint"));
    assert!(read("one/lj.png") == read("two/lj.png") && read("one/lj.png").len() > 10_000);
    let table = String::from_utf8(read("two/observations.csv")).unwrap();
    assert_eq!(table.lines().count(), 6, "{table}");
}

/// Atoms in a box with energy, virial and forces by every pair and its nearest image, in double
/// precision: U, W and the forces.
fn by_hand(atoms: &[[f64; 3]], edge: f64, cutoff: f64) -> (f64, f64, Vec<[f64; 3]>) {
    let (mut energy, mut virial) = (0.0, 0.0);
    let mut forces = vec![[0.0; 3]; atoms.len()];
    for i in 0..atoms.len() {
        for j in 0..i {
            let d: [f64; 3] = std::array::from_fn(|k| {
                let plain = atoms[j][k] - atoms[i][k];
                plain - edge * (plain / edge).round()
            });
            let square: f64 = d.iter().map(|x| x * x).sum();
            if square <= cutoff * cutoff {
                let s6 = square.powi(-3);
                energy += 4.0 * (s6 * s6 - s6);
                let of_pair = 24.0 * (2.0 * s6 * s6 - s6);
                virial += of_pair;
                for k in 0..3 {
                    forces[i][k] -= of_pair / square * d[k];
                    forces[j][k] += of_pair / square * d[k];
                }
            }
        }
    }
    (energy, virial, forces)
}

#[test]
fn lj_in_f64_has_the_digits_of_f64_and_writes_forces() {
    let place = Workplace::new();
    for configuration in [1, 4] {
        let path = nist(configuration);
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines = text.lines();
        let first = lines.next().unwrap().split_whitespace().next().unwrap();
        let edge: f64 = first.parse().unwrap();
        let atoms: Vec<[f64; 3]> = (lines.skip(1).filter(|line| !line.trim().is_empty()))
            .map(|line| {
                let words: Vec<f64> = line
                    .split_whitespace()
                    .map(|w| w.parse().unwrap())
                    .collect();
                [words[1], words[2], words[3]]
            })
            .collect();
        let (energy, virial, forces) = by_hand(&atoms, edge, 3.0);
        let args = ["lj", &path, "--cutoff", "3", "--json", "--precision"];
        let near = |found: &Value, name: &str, expected: f64, most: f64| {
            let off = (found[name].as_f64().unwrap() / expected - 1.0).abs();
            assert!(off < most, "{name}: {found} for {expected}: {off:e}");
        };
        for (precision, most) in [("f64", 1e-12), ("f32", 1e-4)] {
            let output = ["--output", "forces.csv"];
            let found = place.json(&[&args[..], &[precision], &output].concat());
            assert_eq!(found["precision"], precision);
            near(&found, "pair_energy", energy, most);
            near(&found, "pair_virial", virial, 20.0 * most);
            let table = std::fs::read_to_string(place.0.path().join("forces.csv")).unwrap();
            assert_eq!(table.lines().next(), Some("id,species,x,y,z,fx,fy,fz"));
            let largest = forces
                .as_flattened()
                .iter()
                .fold(0.0, |a: f64, b| a.max(b.abs()));
            for (n, line) in table.lines().skip(1).enumerate() {
                let words: Vec<&str> = line.split(',').collect();
                assert_eq!(words[0], n.to_string());
                for k in 0..3 {
                    let force: f64 = words[5 + k].parse().unwrap();
                    let off = (force - forces[n][k]).abs() / largest;
                    assert!(off < most, "{precision}, atom {n}: {force} {:?}", forces[n]);
                }
            }
            assert_eq!(table.lines().count(), atoms.len() + 1);
        }
    }
    place.json(&[
        "lj",
        &nist(4),
        "--cutoff",
        "3",
        "--json",
        "--output",
        "f.extxyz",
    ]);
    let frame = nearfield_io::read_points(place.0.path().join("f.extxyz")).unwrap();
    let forces = frame.quantity("forces").unwrap();
    assert_eq!((forces.components(), forces.points()), (3, 30));
    place.misused(
        ".extxyz or .csv",
        &["lj", &nist(4), "--cutoff", "3", "--output", "forces.dat"],
    );
}

#[test]
fn lj_in_f64_goes_on_from_a_checkpoint_with_the_same_bits() {
    let place = Workplace::new();
    let flags =
        words("--cutoff 2.5 --shift force --every 5 --checkpoint 10 --json --precision f64");
    let run = |more: &[&str]| place.json(&[&["lj"], more, &flags[..]].concat());
    let start = nist(1);
    let start = [&start[..], "--temperature", "0.9"];
    let whole = run(&[&start[..], &["--steps", "20", "--output", "one"]].concat());
    run(&[&start[..], &["--steps", "10", "--output", "two"]].concat());
    let rest = run(&words(
        "--restart two/run.checkpoint --steps 10 --output two",
    ));
    assert_eq!(rest["total_energy"], whole["total_energy"]);
    let read = |name: &str| std::fs::read(place.0.path().join(name)).unwrap();
    assert!(read("one/trajectory.extxyz") == read("two/trajectory.extxyz"));
    assert!(
        read("one/trajectory.extxyz")
            .windows(10)
            .any(|at| at == b"forces:R:3")
    );
    let off =
        whole["energy_deviation"].as_f64().unwrap() / whole["kinetic_energy"].as_f64().unwrap();
    assert!(off < 2e-3, "{whole}");
}

#[test]
fn lj_that_blows_up_fails_names_the_step_and_keeps_what_was_good() {
    let place = Workplace::new();
    for precision in ["f32", "f64"] {
        let configuration = nist(1);
        let args = format!(
            "lj {configuration} --cutoff 2.5 --steps 500 --dt 0.08 --temperature 2 --every 1 --checkpoint 1 --output {precision} --precision {precision} --json"
        );
        let args = words(&args);
        let output = place.run(&args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(output.stdout.is_empty());
        let step = errors.split("at step ").nth(1).expect("names the step");
        let step: u64 = step.split_whitespace().next().unwrap().parse().unwrap();
        assert!((1..500).contains(&step), "{errors}");
        let at = |name: &str| place.0.path().join(precision).join(name);
        let table = std::fs::read_to_string(at("observations.csv")).unwrap();
        // The header, the start, and every step before the bad one.
        assert_eq!(table.lines().count() as u64, step + 1, "{errors}\n{table}");
        let frames = std::fs::read_to_string(at("trajectory.extxyz")).unwrap();
        assert_eq!(frames.lines().count() as u64, step * 802);
        if step > 1 {
            let on = [
                "lj",
                "--restart",
                &format!("{precision}/run.checkpoint"),
                "--cutoff",
                "2.5",
                "--steps",
                "1",
                "--dt",
                "1e-6",
                "--precision",
                precision,
                "--json",
            ];
            assert_eq!(place.json(&on)["steps"], step);
        }
    }
}

#[test]
fn atoms_without_a_well_take_part_by_their_charges_alone() {
    let place = Workplace::new();
    // Water as SPC/E has it.
    place.file(
        "spce.txt",
        "O 0.650 3.166 -0.8476 15.999\nH 0 0 0.4238 1.008\n",
    );
    let water = "4\nProperties=species:S:1:pos:R:3\nO 0 0 0\nO 3 0 0\nH 1 0 0\nH 1 1e-8 0\n";
    place.file("water.extxyz", water);
    let args = words("lj water.extxyz --cutoff 4 --coefficients spce.txt --json");
    let s6 = (3.166f64 / 3.0).powi(6);
    let expected = 4.0 * 0.65 * (s6 * s6 - s6);
    for precision in ["f32", "f64"] {
        let found = place.json(&[&args[..], &["--precision", precision]].concat());
        let energy = found["pair_energy"].as_f64().unwrap();
        assert!((energy / expected - 1.0).abs() < 1e-5, "{found}");
    }
    place.file("bad.txt", "O 0.650 3.166\nH 0.1 0\n");
    place.refuses(
        "sigma positive unless epsilon is 0",
        &words("lj water.extxyz --cutoff 4 --coefficients bad.txt"),
    );
    let far = "2\nProperties=species:S:1:pos:R:3\nAr 10000000 0 0\nAr 10000001.1 0 0\n";
    place.file("far.extxyz", far);
    let found = place.json(&["lj", "far.extxyz", "--cutoff", "3", "--json"]);
    assert_eq!(found["precision"], "f64");
    let s6 = 1.1f64.powi(-6);
    let expected = 4.0 * (s6 * s6 - s6);
    assert!(
        (found["pair_energy"].as_f64().unwrap() / expected - 1.0).abs() < 1e-7,
        "{found}"
    );
}

#[test]
fn atoms_of_several_kinds_are_not_taken_for_one_unawares() {
    let place = Workplace::new();
    let water = "3\n\nO 0 0 0\nH 1 0 0\nH 0 1 0\n";
    place.file("water.xyz", water);
    let lj = |more: &str| format!("lj water.xyz --cutoff 3 --json {more}");
    for more in ["", "--epsilon 2", "--sigma 2", "--steps 1"] {
        place.refuses("2 kinds (O, H)", &words(&lj(more)));
        place.refuses("--coefficients FILE", &words(&lj(more)));
    }
    let asked = place.json(&words(&lj("--epsilon 1 --sigma 1")));
    place.file("one.xyz", water.replace('H', "O"));
    let one = place.json(&words("lj one.xyz --cutoff 3 --json"));
    assert_eq!(asked["pair_energy"], one["pair_energy"]);
    // The one kind of a file of coefficients has a name too.
    place.file("argon", "Ar 1 1\n");
    place.refuses(
        "no coefficients of 'O'; known are Ar",
        &words(&lj("--coefficients argon")),
    );
    place.file(
        "many.xyz",
        "9\n\nA 0 0 0\nB 1 0 0\nC 2 0 0\nD 3 0 0\nE 4 0 0\nF 5 0 0\nG 6 0 0\nI 7 0 0\nJ 8 0 0\n",
    );
    place.refuses(
        "(A, B, C, D, E, F, G, I, …)",
        &words("lj many.xyz --cutoff 3"),
    );
}

#[test]
fn atoms_that_overlap_are_named_with_their_distance_and_long_steps_by_their_length() {
    let place = Workplace::new();
    place.file("twice.xyz", "3\n\nAr 0 0 0\nAr 2 0 0\nAr 2 0 0\n");
    place.file("near.xyz", "3\n\nAr 0 0 0\nAr 5 0 0\nAr 5 1e-6 0\n");
    for precision in ["f32", "f64"] {
        let line = format!("lj twice.xyz --cutoff 3 --precision {precision}");
        place.refuses(
            "atom 2, is 0 away; move or remove one of both",
            &words(&line),
        );
    }
    place.refuses(
        "atom 2, is 1e-6 away; move",
        &words("lj near.xyz --cutoff 3 --precision f32"),
    );
    place.file("two.xyz", "2\n\nAr 0 0 0\nAr 1.1 0 0\n");
    for dt in ["1e300", "1e60"] {
        let line = format!("lj two.xyz --cutoff 3 --steps 9 --dt {dt}");
        place.refuses("at step 1 atom 0", &words(&line));
        place.refuses(&format!("a time step of {dt} is too long"), &words(&line));
    }
}

#[test]
fn charges_that_nothing_has_are_refused_and_those_of_a_table_act() {
    let place = Workplace::new();
    place.file("bare.csv", "x,y,z\n0,0,0\n1.5,0,0\n");
    place.file("charged.csv", "x,y,z,q\n0,0,0,1\n1.5,0,0,-1\n");
    place.file("text.csv", "x,y,z,charge\n0,0,0,1\n1.5,0,0,plus\n");
    place.file("vector.xyz", "1\nProperties=pos:R:3:q:R:2\n0 0 0 1 1\n");
    place.file("bare.txt", "9 9 9\n2\n1 0 0 0\n2 1.5 0 0\n");
    place.file("table", "LJ 1 1\n");
    place.file("charged", "LJ 1 1 0.5\n");
    let with = |file: &str, more: &str| format!("lj {file} --cutoff 3 --json {more}");
    for file in ["bare.csv", "bare.txt"] {
        place.refuses(
            "has no column or quantity charge",
            &words(&with(file, "--charges")),
        );
        let zeros = with(file, "--charges --coefficients table");
        place.refuses("leave out --charges", &words(&zeros));
        let plain = place.json(&words(&with(file, "")));
        let charged = place.json(&words(&with(file, "--charges --coefficients charged")));
        let difference =
            charged["pair_energy"].as_f64().unwrap() - plain["pair_energy"].as_f64().unwrap();
        assert!((difference - 0.25 / 1.5).abs() < 1e-6, "{difference}");
    }
    let plain = place.json(&words(&with("charged.csv", "")));
    let charged = place.json(&words(&with("charged.csv", "--charges")));
    let difference =
        charged["pair_energy"].as_f64().unwrap() - plain["pair_energy"].as_f64().unwrap();
    assert!((difference + 1.0 / 1.5).abs() < 1e-6, "{difference}");
    place.refuses("line 3, column 4", &words(&with("text.csv", "--charges")));
    place.refuses(
        "needs one number per point",
        &words(&with("vector.xyz", "--charges")),
    );
    place.file("none.xyz", "0\n\n");
    place.json(&words(&with("none.xyz", "--charges")));
}

#[test]
fn temperatures_that_are_none_are_wrong_usage() {
    let place = Workplace::new();
    place.file("v.csv", "0,0,0\n1.5,0,0\n");
    for temperature in ["nan", "inf", "-1", "warm"] {
        let line = format!("lj v.csv --cutoff 3 --temperature {temperature} --steps 1");
        let output = place.run(&words(&line));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains("expected a finite number"), "{errors}");
    }
}

#[test]
fn no_atoms_have_no_energy() {
    let place = Workplace::new();
    place.file("none.xyz", "0\n\n");
    let run = place.json(&words("lj none.xyz --cutoff 1 --steps 2 --json"));
    for key in [
        "pair_energy",
        "kinetic_energy",
        "total_energy",
        "temperature",
        "energy_drift",
    ] {
        assert_eq!(run[key].as_f64().map(f64::to_bits), Some(0), "{key}: {run}");
    }
}
