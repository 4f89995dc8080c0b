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
fn clouds_that_do_not_fit_are_refused_with_the_bytes() {
    let place = Workplace::new();
    for cloud in ["lattice", "pool-spray", "clusters", "plummer", "uniform"] {
        let bench = format!("bench --cloud {cloud} --points 1e8 --device cpu --threads 1");
        refuses(&place, 1024, &words(&bench));
        let tune = format!("tune {cloud} --points 1e8 --threads 1");
        refuses(&place, 1024, &words(&tune));
    }
    for work in ["force", "density", "lists", "count"] {
        let bench = format!(
            "bench --points 4e6 --work {work} --radius 1.1 --device cpu --threads 1 --repetitions 1"
        );
        refuses(&place, 128, &words(&bench));
    }
    // More than an engine can number are refused on any machine.
    for points in ["5e9", "1e12", "1e18"] {
        for command in [
            "bench",
            "tune uniform",
            "scaling --memory-mib 1000000000000000 --from 5e9 --to",
        ] {
            let line = format!("{command} {points}");
            let line = line.replace("bench ", "bench --points ");
            let line = line.replace("uniform ", "uniform --points ");
            place.refuses("bytes are needed", &words(&line));
        }
    }
}

/// A file that is read in whole, in address spaces from too small for its text to large enough: no
/// size may end the process.
#[test]
fn files_are_read_or_refused_in_any_address_space() {
    let place = Workplace::new();
    let rows: String = (0..300_000)
        .map(|k| format!("0.{:06},0.5,0.5\n", k % 999_983))
        .collect();
    place.file("many.csv", format!("x,y,z\n{rows}"));
    let args = words("neighbors many.csv --radius 1e-9 --device cpu --threads 2");
    let mut done = [0; 2];
    for megabytes in (34..130).step_by(4) {
        let output = within(&place, megabytes, &args);
        let errors = String::from_utf8_lossy(&output.stderr);
        let code = output.status.code();
        assert!(
            code == Some(0) || code == Some(1) && errors.starts_with("nearfield: "),
            "{megabytes} MB: {}: {errors}",
            output.status
        );
        done[usize::from(code == Some(0))] += 1;
    }
    assert!(done[0] > 2 && done[1] > 2, "{done:?}");
}

/// Records and reports grow with a trace.
#[test]
fn traces_are_read_or_refused_in_any_address_space() {
    let place = Workplace::new();
    let bench = "bench --cloud lattice --points 1e3 --device cpu --threads 2 --repetitions 3000 \
                 --trace t.jsonl";
    place.run(&words(bench));
    for task in ["summary t.jsonl", "report t.jsonl --output r.html"] {
        let line = format!("trace {task}");
        let args = words(&line);
        let mut done = [0; 2];
        for megabytes in (34..90).step_by(4) {
            let output = within(&place, megabytes, &args);
            let errors = String::from_utf8_lossy(&output.stderr);
            let code = output.status.code();
            let refused = code == Some(1) && errors.contains("bytes are needed for");
            assert!(
                code == Some(0) || refused,
                "{task}, {megabytes} MB: {}: {errors}",
                output.status
            );
            done[usize::from(refused)] += 1;
        }
        assert!(done[0] > 2 && done[1] > 0, "{task}: {done:?}");
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
fn a_box_150_times_smaller_than_the_radius_is_searched_without_a_copy_of_its_list() {
    let place = Workplace::new();
    let file = place.points("one.npy", &[[0.25, 0.5, 0.75]]);
    let args = format!(
        "neighbors {} --radius 150 --box 1,1,1 --periodic xyz --device cpu --threads 1 --json",
        text(&file)
    );
    let output = within(&place, 165, &words(&args));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(found["pairs"].as_u64().unwrap() > 14_000_000, "{found}");
}

/// Libraries that draw and encode cannot bear a refusal: they draw on memory that was set aside.
#[test]
fn dam_breaks_are_drawn_or_refused_in_any_address_space() {
    let place = Workplace::new();
    let args =
        words("dam-break --quick --dim 2 --seconds 0.1 --frames 4 --threads 2 --output water");
    let mut done = [0; 2];
    for megabytes in (120..1000).step_by(40) {
        let output = within(&place, megabytes, &args);
        let errors = String::from_utf8_lossy(&output.stderr);
        let code = output.status.code();
        let refused = code == Some(1) && errors.contains("nearfield: ");
        assert!(
            code == Some(0) || refused,
            "{megabytes} MB: {}: {errors}",
            output.status
        );
        done[usize::from(refused)] += 1;
    }
    assert!(done[0] > 2 && done[1] > 2, "{done:?}");
}
