//! What the commands do when memory is short: they say so, with the bytes, and fail.
#![cfg(target_os = "linux")]

use crate::{Workplace, text, words};
use std::process::{Command, Output};

/// Runs the command with an address space of the given number of megabytes.
fn within(place: &Workplace, megabytes: u64, args: &[&str]) -> Output {
    Command::new("sh")
        .args(["-c", "ulimit -v \"$0\" && exec \"$@\""])
        .arg((megabytes << 10).to_string())
        .arg(env!("CARGO_BIN_EXE_nearfield"))
        .args(args)
        .current_dir(place.0.path())
        .output()
        .unwrap()
}

/// The command must fail with exit code 1 and a line that names bytes.
fn refuses(place: &Workplace, megabytes: u64, args: &[&str]) {
    let output = within(place, megabytes, args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        output.status.code(),
        Some(1),
        "{args:?}: {}: {errors}",
        output.status
    );
    assert!(errors.contains("out of memory"), "{args:?}: {errors}");
    assert!(
        errors.contains("bytes are needed for"),
        "{args:?}: {errors}"
    );
    assert!(output.stdout.is_empty(), "{args:?} printed a result");
}

#[test]
fn a_grid_that_does_not_fit_is_refused_with_the_bytes() {
    let place = Workplace::new();
    let atoms = place.file("atoms.txt", "0 0 0 1\n1 0 0 -1\n");
    let coulomb = format!("coulomb {} --spacing 0.1 --device cpu", text(&atoms));
    let coulomb = words(&coulomb);
    let one = ["--threads", "1"];
    for grid in ["2048,2048,2048", "1073741824,1,1"] {
        for more in [
            &[][..],
            &["--field"],
            &["--precision", "f64"],
            &["--cutoff", "1"],
        ] {
            refuses(
                &place,
                256,
                &[&coulomb[..], &one, &["--grid", grid], more].concat(),
            );
        }
    }
}

#[test]
fn lists_that_do_not_fit_are_refused_with_the_bytes() {
    let place = Workplace::new();
    let points: Vec<[f32; 3]> = (0..20_000).map(|k| [k as f32 * 1e-5, 0.0, 0.0]).collect();
    let file = place.points("dense.npy", &points);
    let neighbors = format!(
        "neighbors {} --radius 1 --device cpu --threads 1",
        text(&file)
    );
    let neighbors = words(&neighbors);
    for precision in ["f32", "f64"] {
        refuses(
            &place,
            256,
            &[&neighbors[..], &["--precision", precision, "--json"]].concat(),
        );
    }
}

#[test]
fn a_box_200_times_smaller_than_the_radius_is_searched_without_a_copy_of_its_list() {
    let place = Workplace::new();
    let file = place.points("one.npy", &[[0.25, 0.5, 0.75]]);
    for precision in ["f32", "f64"] {
        let args = format!(
            "neighbors {} --radius 200 --box 1,1,1 --periodic xyz --device cpu --threads 1 --precision {precision} --json",
            text(&file)
        );
        let args = words(&args);
        let output = within(&place, 300, &args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {errors}", output.status);
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(found["pairs"].as_u64().unwrap() > 33_500_000, "{found}");
    }
}
