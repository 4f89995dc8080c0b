//! Files of the user are never destroyed: no output is an input, and a failed run leaves what was
//! there.

use crate::{Workplace, text, words};
use std::{fs, path::Path};

/// A configuration of the NIST reference calculations.
const ATOMS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../md/tests/data/lj_sample_config_periodic4.txt"
);

const BODIES: &str = "mass,x,y,z,vx,vy,vz\n1,-0.5,0,0,0,-0.7,0\n1,0.5,0,0,0,0.7,0\n";

impl Workplace {
    /// The command must refuse its flags with exit code 2 and name all of these, and every file
    /// must be as it was.
    fn refuses_files(&self, names: &[&str], args: &[&str]) {
        let before = contents(self.0.path());
        let output = self.run(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{args:?}: {errors}");
        for name in names {
            assert!(errors.contains(name), "{args:?}: {name} not in {errors}");
        }
        assert!(output.stdout.is_empty(), "{args:?} printed a result");
        assert!(contents(self.0.path()) == before, "{args:?} changed files");
    }
}

/// All files below a folder with what they hold.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(contents(&path));
        } else {
            let bytes = fs::read(&path).unwrap_or_default();
            all.push((path.display().to_string(), bytes));
        }
    }
    all.sort();
    all
}

#[test]
fn outputs_that_are_inputs_are_refused_on_every_command() {
    let place = Workplace::new();
    place.points("v.npy", &[[0.0; 3], [0.5; 3]]);
    place.file("bodies.csv", BODIES);
    place.file("atoms.csv", "x,y,z,charge\n0,0,0,2\n0,0,5,-1\n");
    fs::copy(ATOMS, place.0.path().join("atoms.txt")).unwrap();
    place.file("ljs.txt", "Ar 1 1\n");
    let run = |args: &[&str]| assert!(place.run(args).status.success(), "{args:?}");
    run(&["neighbors", "v.npy", "--radius", "1", "--trace", "t.jsonl"]);
    let gravity = ["gravity", "bodies.csv", "--steps", "4", "--dt", "0.01"];
    run(&[&gravity[..], &["--output", "run", "--checkpoint", "2"]].concat());
    let lj = ["lj", "atoms.txt", "--cutoff", "3", "--steps", "2"];
    run(&[&lj[..], &["--output", "run", "--checkpoint", "1"]].concat());

    let near = ["neighbors", "v.npy", "--radius", "1"];
    for flag in ["--trace", "--output", "--view"] {
        place.refuses_files(
            &[flag, "v.npy", "./v.npy"],
            &[&near[..], &[flag, "./v.npy"]].concat(),
        );
    }
    let both = ["--output", "new", "--trace", "./new"];
    place.refuses_files(
        &["--output new", "--trace ./new"],
        &[&near[..], &both].concat(),
    );
    for (flag, args) in [
        ("--trace", &["bench", "--cloud", "v.npy"][..]),
        ("--save-cloud", &["bench", "--cloud", "v.npy"]),
        ("--trace", &["tune", "v.npy"]),
        ("--trace", &["trace", "summary", "t.jsonl"]),
        ("--output", &["trace", "report", "t.jsonl"]),
        ("--output", &["trace", "export", "t.jsonl"]),
        ("--trace", &["trace", "compare", "v.npy", "t.jsonl"]),
        ("--trace", &gravity),
        ("--trace", &lj),
        (
            "--output",
            &["coulomb", "atoms.csv", "--grid", "2,2,2", "--spacing", "1"],
        ),
    ] {
        let input = args.iter().rfind(|word| {
            [".npy", ".jsonl", ".csv", ".txt"]
                .iter()
                .any(|end| word.ends_with(end))
        });
        let input = input.unwrap();
        place.refuses_files(&[flag, input], &[args, &[flag, input]].concat());
    }
    let table = ["--coefficients", "ljs.txt", "--trace", "ljs.txt"];
    place.refuses_files(&["--trace", "ljs.txt"], &[&lj[..], &table].concat());
    // Folders whose files would replace an input.
    for (input, more) in [
        ("run/frame_0000.vtp", &["--dt", "0.01"][..]),
        (
            "run/gravity.checkpoint",
            &["--dt", "0.01", "--checkpoint", "1"],
        ),
    ] {
        let args = ["gravity", input, "--steps", "2", "--output", "./run"];
        place.refuses_files(&["--output", input], &[&args, more].concat());
    }
    let again = words("lj run/trajectory.extxyz --cutoff 3 --steps 2");
    place.refuses_files(
        &["--output run", "trajectory.extxyz"],
        &[&again[..], &["--output", "run"]].concat(),
    );
    place.refuses_files(
        &["--trace", "--output"],
        &[
            &lj[..],
            &["--output", "run", "--trace", "run/observations.csv"],
        ]
        .concat(),
    );
    let field = ["coulomb", "run/u_field.npy", "--grid", "2,2,2", "--spacing"];
    place.file("run/u_field.npy", "x,y,z,charge\n0,0,0,2\n");
    place.refuses_files(
        &["--field", "u_field.npy"],
        &[&field[..], &["1", "--field", "--output", "run/u.npy"]].concat(),
    );
    let dam = ["dam-break", "--quick", "--output", "run", "--trace"];
    place.refuses_files(
        &["--trace run/summary.json", "--output run"],
        &[&dam[..], &["run/summary.json"]].concat(),
    );
}

#[cfg(unix)]
#[test]
fn links_to_inputs_are_refused() {
    let place = Workplace::new();
    place.points("v.npy", &[[0.0; 3], [0.5; 3]]);
    let at = |name: &str| place.0.path().join(name);
    fs::hard_link(at("v.npy"), at("hard.npy")).unwrap();
    std::os::unix::fs::symlink("v.npy", at("soft.npy")).unwrap();
    std::os::unix::fs::symlink(".", at("here")).unwrap();
    for other in ["hard.npy", "soft.npy", "here/v.npy"] {
        for flag in ["--trace", "--output"] {
            place.refuses_files(
                &["v.npy", flag, other],
                &["neighbors", "v.npy", "--radius", "1", flag, other],
            );
        }
        place.refuses_files(
            &["v.npy", other],
            &["neighbors", other, "--radius", "1", "--output", "v.npy"],
        );
    }
}

#[test]
fn failed_runs_keep_the_old_files() {
    let place = Workplace::new();
    place.points("v.npy", &[[0.0; 3], [0.5; 3]]);
    place.file("bad.csv", "0,0,0\n1,2,abc\n");
    place.file("bad.bodies", "mass,x,y,z,vx,vy,vz\n1,0,0,0,0,0,nan\n");
    for name in ["old.npz", "old.jsonl", "old.npy", "old.html"] {
        place.file(name, "precious");
    }
    for args in [
        &["neighbors", "bad.csv", "--radius", "1"][..],
        &["neighbors", "v.npy", "--radius", "-1"],
        &["neighbors", "v.npy", "--radius", "1", "--device", "gpu:77"],
    ] {
        let files = ["--output", "old.npz", "--trace", "old.jsonl"];
        let output = place.run(&[args, &files].concat());
        let code = if args.contains(&"-1") { 2 } else { 1 };
        assert_eq!(output.status.code(), Some(code), "{args:?}");
    }
    for args in [
        &words("gravity bad.bodies --steps 1 --dt 1 --trace old.jsonl")[..],
        &["trace", "report", "v.npy", "--output", "old.html"],
        &["bench", "--cloud", "bad.csv", "--save-cloud", "old.npy"],
    ] {
        assert_eq!(place.run(args).status.code(), Some(1), "{args:?}");
    }
    let names: Vec<_> = contents(place.0.path());
    assert_eq!(names.len(), 7, "temporary files stay behind");
    for name in ["old.npz", "old.jsonl", "old.npy", "old.html"] {
        let kept = fs::read_to_string(place.0.path().join(name)).unwrap();
        assert_eq!(kept, "precious", "{name}");
    }
}

#[cfg(unix)]
#[test]
fn devices_are_written_directly() {
    let place = Workplace::new();
    place.points("v.npy", &[[0.0; 3], [0.5; 3]]);
    let near = ["neighbors", "v.npy", "--radius", "1"];
    let null = ["--output", "/dev/null", "--trace", "/dev/null"];
    assert!(place.run(&[&near[..], &null].concat()).status.success());
    place.json(&[&near[..], &["--json"], &null].concat());
    let printed = place.run(&[&near[..], &["--trace", "/dev/stderr"]].concat());
    let trace = String::from_utf8(printed.stderr).unwrap();
    assert!(trace.starts_with("{\"record\":\"header\""), "{trace}");
    assert!(trace.contains("\"record\":\"end\""), "{trace}");

    // Standard output that the shell has opened as a file is written where it stands.
    let place_of = |name: &str| place.0.path().join(name);
    let all = fs::File::create(place_of("all.txt")).unwrap();
    let traced = std::process::Command::new(env!("CARGO_BIN_EXE_nearfield"))
        .args(near)
        .args(["--trace", "/dev/stdout"])
        .current_dir(place.0.path())
        .stdout(all)
        .status()
        .unwrap();
    assert!(traced.success());
    let all = fs::read_to_string(place_of("all.txt")).unwrap();
    assert!(
        all.contains("pairs       2") && all.contains("\"record\":\"header\""),
        "{all}"
    );
}

#[test]
fn outputs_replace_old_files_in_full() {
    let place = Workplace::new();
    let file = place.points("v.npy", &[[0.0; 3], [0.5; 3]]);
    for name in ["old.npz", "old.jsonl"] {
        place.file(name, vec![b'x'; 1 << 16]);
    }
    let args = ["neighbors", text(&file), "--radius", "1", "--json"];
    place.json(&[&args[..], &["--output", "old.npz", "--trace", "old.jsonl"]].concat());
    assert_eq!(contents(place.0.path()).len(), 3);
    let trace = fs::read_to_string(place.0.path().join("old.jsonl")).unwrap();
    assert!(trace.lines().last().unwrap().contains("\"record\":\"end\""));
    assert!(!trace.contains('x') || !trace.contains("xxxx"));
    let lists = fs::File::open(place.0.path().join("old.npz")).unwrap();
    assert_eq!(zip::ZipArchive::new(lists).unwrap().len(), 2);
}
