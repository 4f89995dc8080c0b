//! `nearfield tune`, run as a user would run it, on emulated machines.

use nearfield_plot::Picture;
use serde_json::Value;
use std::{
    path::Path,
    process::{Command, Output},
};

fn run(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nearfield"))
        .arg("tune")
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn json(folder: &Path, args: &[&str]) -> Value {
    let output = run(folder, &[args, &["--json"]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
    serde_json::from_slice(&output.stdout).expect("one JSON object and nothing else")
}

fn number(value: &Value, key: &str) -> f64 {
    let number = value[key].as_f64();
    number.unwrap_or_else(|| panic!("{key} is not a number in {value}"))
}

/// A small cloud with dense and sparse places.
const SPRAY: [&str; 7] = [
    "pool-spray",
    "--points",
    "3e4",
    "--rows",
    "40",
    "--device",
    "emulated:speed=3,bandwidth=10",
];

#[test]
fn the_json_has_the_documented_fields_and_the_best_row_is_the_best() {
    let folder = tempfile::tempdir().unwrap();
    let found = json(folder.path(), &SPRAY);
    assert_eq!(found["cloud"], "pool-spray");
    assert_eq!(found["points"], 30_000);
    assert_eq!(found["radius"], 2.0);
    assert_eq!(found["work"], "lists");
    assert_eq!(found["bricks"], 2);
    assert_eq!(found["subregions"], 32);
    let device = found["device"].as_str().unwrap();
    assert!(device.starts_with("emulated:speed=3,"), "{device}");
    let sweep = found["sweep"].as_array().unwrap();
    assert_eq!(sweep.len(), 41);
    let (first, last) = (&sweep[0], &sweep[40]);
    assert_eq!(
        (number(first, "theta"), number(first, "cpu_ms")),
        (0.0, 0.0)
    );
    assert_eq!((number(last, "share"), number(last, "gpu_ms")), (1.0, 0.0));
    let best = number(&found["best"], "total_ms");
    for row in sweep {
        let total = number(row, "total_ms");
        let backends = number(row, "cpu_ms").max(number(row, "gpu_ms"));
        assert!(best <= total && backends <= total * (1.0 + 1e-12), "{row}");
        assert!((0.0..=1.0).contains(&number(row, "share")), "{row}");
    }
    assert!(sweep.contains(&found["best"]));
    assert!(best < 0.9 * number(first, "total_ms").min(number(last, "total_ms")));
    let policies = found["policies"].as_object().unwrap();
    assert_eq!(policies.len(), 3);
    for name in ["model", "band", "fraction"] {
        let policy = &policies[name];
        assert!(number(policy, "theta") >= 0.0, "{name}");
        let ratio = number(policy, "total_ms") / best;
        assert!(
            (ratio / number(policy, "to_best") - 1.0).abs() < 1e-9,
            "{name}"
        );
        assert!(
            policy["steps"].is_u64() || policy["steps"].is_null(),
            "{name}"
        );
    }
    assert!(number(&policies["model"], "to_best") < 1.03);
    assert!(number(&policies["model"], "steps") <= 8.0);
}

#[test]
fn files_are_written_and_the_same_command_gives_the_same_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let jittered = ["--device", "emulated:jitter=0.05,seed=3"];
    let args = [&SPRAY[..5], &jittered, &["--output", "some/place"]].concat();
    let found = json(folder.path(), &args);
    let place = folder.path().join("some/place");
    let written = std::fs::read(place.join("tune.json")).unwrap();
    let written: Value = serde_json::from_slice(&written).unwrap();
    assert_eq!(written, found);
    assert_eq!(json(folder.path(), &args), found);
    // Seed 1 is what a named cloud has without the flag; another one has other points.
    let seeded = |seed| json(folder.path(), &[&args[..], &["--seed", seed]].concat());
    assert_eq!(seeded("1"), found);
    assert_ne!(seeded("2")["best"], found["best"]);

    let picture = Picture::read_png(&place.join("tune.png")).unwrap();
    assert_eq!(picture.size(), (1600, 820));
    assert_eq!(picture.pixels()[0], [255; 3], "a light background");
    let dark = (picture.pixels().iter().filter(|pixel| pixel[0] < 100)).count();
    assert!(dark > 5_000, "curves and text: {dark} dark pixels");

    let svg = std::fs::read_to_string(place.join("tune.svg")).unwrap();
    assert!(svg.starts_with("<svg width=\"1600\" height=\"820\""));
    for label in ["threshold", "model: ", "fraction: ", "GPU backend"] {
        assert!(svg.contains(label), "{label}");
    }
}

#[test]
fn several_bricks_and_subregions_are_compared_and_the_best_one_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let more = [
        "--bricks",
        "1,2,4",
        "--subregions",
        "8,32",
        "--policy",
        "fixed:10,band,band:0.5:0.6",
    ];
    let found = json(folder.path(), &[&SPRAY[..], &more].concat());
    let all = found["combinations"].as_array().unwrap();
    assert_eq!(all.len(), 6);
    let best = |one: &Value| number(&one["best"], "total_ms");
    let least = all.iter().map(best).fold(f64::INFINITY, f64::min);
    assert_eq!(best(&found), least);
    let shown =
        |one: &&Value| one["bricks"] == found["bricks"] && one["subregions"] == found["subregions"];
    assert_eq!(all.iter().find(shown).map(best), Some(least));
    let policies = found["policies"].as_object().unwrap();
    let names: Vec<&String> = policies.keys().collect();
    assert_eq!(names, ["band:0.5:0.6", "band:0.8:0.95", "fixed:10"]);
}

#[test]
fn a_file_of_points_in_a_periodic_box_is_divided_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "x,y,z\n".to_owned();
    for n in 0..1000 {
        text += &format!("{},{},{}\n", n % 10, n / 10 % 10, n / 100);
    }
    std::fs::write(folder.path().join("cube.csv"), text).unwrap();
    // One subregion, whose fixed cost is small beside the work.
    let args = [
        "--cloud",
        "cube.csv",
        "--radius",
        "1.5",
        "--rows",
        "4",
        "--subregions",
        "1",
    ];
    let open = json(folder.path(), &args);
    assert_eq!(
        (&open["points"], &open["radius"]),
        (&1000.into(), &1.5.into())
    );
    // Neighbours through the faces are work too.
    let boxed = json(folder.path(), &[&args[..], &["--box", "10,10,10"]].concat());
    let cpu = |found: &Value| number(&found["sweep"][4], "cpu_ms");
    assert!(cpu(&boxed) > 1.1 * cpu(&open));
}

#[test]
fn people_read_a_table_and_a_sentence_per_policy() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &SPRAY);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "pool-spray",
        "theta",
        "  best\n",
        "GPU alone",
        "model settles in",
        "the best\n",
    ] {
        assert!(text.contains(part), "\"{part}\" is not in\n{text}");
    }
    let written = format!("tune{}tune.png", std::path::MAIN_SEPARATOR);
    assert!(text.contains(&written) && folder.path().join(written).exists());
    assert!(output.stderr.is_empty());
}

#[test]
fn the_model_finds_the_best_of_20_random_machines() {
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "pool-spray",
        "--points",
        "3e4",
        "--sweep-machines",
        "20",
        "--steps",
        "40",
    ];
    let found = json(folder.path(), &args);
    let machines = found["machines"].as_array().unwrap();
    assert_eq!(machines.len(), 20);
    for machine in machines {
        assert!(
            (0.05..=50.0).contains(&number(machine, "speed")),
            "{machine}"
        );
        assert!(
            (1.0..=60.0).contains(&number(machine, "bandwidth")),
            "{machine}"
        );
        let model = &machine["policies"]["model"];
        assert!(number(model, "to_best") <= 1.03, "{machine}");
        assert!(number(model, "steps") <= 8.0, "{machine}");
    }
    assert_eq!(found["within"], true);
    let largest = machines
        .iter()
        .map(|one| number(&one["policies"]["model"], "to_best"));
    assert_eq!(
        number(&found["worst"]["model"], "to_best"),
        largest.fold(0.0, f64::max)
    );
    // Other seeds are other machines; a row of the table is one of them.
    let output = run(folder.path(), &[&args[..4], &["2", "--seed", "7"]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("model does worst on seed") && text.contains("\n    8 "),
        "{text}"
    );
    assert!(
        std::fs::read_dir(folder.path()).unwrap().next().is_none(),
        "no files"
    );
}

#[test]
fn wrong_usage_ends_with_2_and_failures_with_1() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("taken"), "").unwrap();
    for (code, culprit, args) in [
        (2, "it has one backend", &["--device", "cpu"][..]),
        (2, "it has one backend", &["--device", "gpu:1"]),
        (2, "unknown device \"tpu\"", &["--device", "tpu"]),
        (2, "speed=0", &["--device", "emulated:speed=0"]),
        (2, "unknown key \"fast\"", &["--device", "emulated:fast=1"]),
        (2, "unknown policy \"best\"", &["--policy", "model,best"]),
        (2, "0 < alpha < beta < 1", &["--policy", "band:0.9:0.8"]),
        (2, "9 is not in 1..=8", &["--bricks", "2,9"]),
        (2, "65 is not in 1..=64", &["--subregions", "65"]),
        (2, "0 is not in 1..=", &["--rows", "0"]),
        (2, "cannot be used with", &["lattice", "--cloud", "lattice"]),
        (
            2,
            "cannot be used with",
            &["--sweep-machines", "2", "--device", "emulated"],
        ),
        (2, "invalid digit", &["--seed", "two"]),
        (2, "unknown cloud \"nowhere\"", &["nowhere"]),
        (2, "radius -1", &["--points", "100", "--radius=-1"]),
        (1, "taken", &["--points", "1000", "--output", "taken"]),
        (
            2,
            "give one --bricks",
            &[
                "--points",
                "100",
                "--sweep-machines",
                "2",
                "--bricks",
                "1,2",
            ],
        ),
    ] {
        let output = run(folder.path(), args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {errors}");
        assert!(
            errors.contains(culprit),
            "{args:?}: \"{culprit}\" is not in {errors}"
        );
        assert!(output.stdout.is_empty(), "{args:?} printed a result");
    }
}
