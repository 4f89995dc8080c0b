//! `nearfield lj`.

use crate::Workplace;
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
    let shifted = [
        "lj",
        &nist(1),
        "--cutoff",
        "3",
        "--shift",
        "force",
        "--json",
    ];
    assert!(near(&place.json(&shifted)["pair_energy"], -3870.9));

    let table = place.file("ions.txt", "Na 0.1 2.0 1\nCl 0.2 3.0 -1\n");
    let ions =
        "2\nLattice=\"9 0 0 2 9 0 0 0 9\" Properties=species:S:1:pos:R:3\nNa 0 0 0\nCl 0 0 8\n";
    let ions = place.file("ions.extxyz", ions);
    let (table, ions) = (table.to_str().unwrap(), ions.to_str().unwrap());
    let salt = [
        "lj",
        ions,
        "--cutoff",
        "4",
        "--coefficients",
        table,
        "--json",
    ];
    let bare = place.json(&salt);
    let charged = place.json(&[&salt[..], &["--charges"]].concat());
    assert_eq!(charged["pairs"], 1);
    let between = |of: &Value| of["pair_energy"].as_f64().unwrap();
    assert!(
        (between(&charged) - between(&bare) + 1.0).abs() < 1e-5,
        "{bare} {charged}"
    );

    let other = place.file("other.xyz", "1\n\nK 0 0 0\n");
    let other = [
        "lj",
        other.to_str().unwrap(),
        "--cutoff",
        "4",
        "--coefficients",
        table,
    ];
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
    let start = [
        &configuration[..],
        "--temperature",
        "0.9",
        "--output",
        "one",
    ];
    let whole = run(&[&start[..], &["--steps", "40", "--checkpoint", "20"]].concat());
    assert_eq!(whole["steps"], 40);
    let deviation = whole["energy_deviation"].as_f64().unwrap();
    assert!(
        deviation < 2e-3 * whole["kinetic_energy"].as_f64().unwrap(),
        "{whole}"
    );
    let start = [
        &configuration[..],
        "--temperature",
        "0.9",
        "--output",
        "two",
    ];
    run(&[&start[..], &["--steps", "20", "--checkpoint", "20"]].concat());
    let saved = ["--restart", "two/run.checkpoint", "--output", "two"];
    let rest = run(&[&saved[..], &["--steps", "20", "--checkpoint", "20"]].concat());
    assert_eq!(rest["total_energy"], whole["total_energy"]);
    let read = |name: &str| std::fs::read(place.0.path().join(name)).unwrap();
    assert!(read("one/trajectory.extxyz") == read("two/trajectory.extxyz"));
    assert!(read("one/run.checkpoint") == read("two/run.checkpoint"));
    let table = String::from_utf8(read("two/observations.csv")).unwrap();
    assert_eq!(table.lines().count(), 6, "{table}");
}
