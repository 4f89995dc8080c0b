//! Standard streams that are full, closed, or named as files; odd names of files.

use super::{Workplace, words};
use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    process::{Command, Stdio},
};

/// The program, run by a shell script in the workplace.
fn shell(place: &Workplace, script: &str, arguments: &[&str]) -> std::process::Output {
    Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_nearfield")])
        .args(arguments)
        .current_dir(place.0.path())
        .output()
        .unwrap()
}

/// The exit code of a command line, run by a shell with this redirection of standard error.
fn code(place: &Workplace, line: &str, redirection: &str) -> Option<i32> {
    let script = format!("exec \"$0\" {line} {redirection}");
    let status = Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_nearfield")])
        .current_dir(place.0.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.unwrap().code()
}

#[test]
fn a_full_or_closed_standard_error_changes_no_exit_code() {
    let place = Workplace::new();
    place.points("v.npy", &[[0.0; 3], [0.5; 3]]);
    place.file("far.csv", "x,y,z\n100000000.3,0,0\n100000000.9,0,0\n");
    place.file("b.txt", "0 1 0 0 0 0 0 0\n1 1 1 0 0 0 0 0\n");
    place.file("bad.jsonl", "{\n");
    for (line, expected) in [
        ("neighbors v.npy --radius 1", 0),
        // Each of these has something to say.
        ("neighbors far.csv --radius 1", 0),
        ("neighbors far.csv --radius 1 --precision f32", 0),
        ("neighbors v.npy --radius 1 --trace /dev/full", 0),
        ("neighbors missing.npy --radius 1", 1),
        ("neighbors v.npy --radius -1", 2),
        ("neighbors v.npy --radius 1 --output /dev/full", 1),
        ("gravity b.txt --steps 10 --dt 1e300", 1),
        ("lj v.npy --cutoff 1 --steps 10 --dt 1e300", 1),
        ("trace summary bad.jsonl", 1),
        ("dam-break --scene missing.toml", 1),
        ("neighbors v.npy --radius", 2),
        ("neighbors v.npy --radius 1 --output v.npy", 2),
    ] {
        for redirection in ["", "2>/dev/full", "2>&-", "2>&- <&-"] {
            let found = code(&place, line, redirection);
            assert_eq!(found, Some(expected), "{line} {redirection}");
        }
    }
}

#[test]
fn a_full_standard_output_is_a_failed_run() {
    let place = Workplace::new();
    place.points("v.npy", &[[0.0; 3], [0.5; 3]]);
    for line in ["neighbors v.npy --radius 1", "info --json"] {
        let script = format!("exec \"$0\" {line} >/dev/full");
        let output = shell(&place, &script, &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(
            errors.contains("cannot write to standard output"),
            "{errors}"
        );
    }
}

#[test]
fn help_that_cannot_be_written_is_a_failure() {
    let place = Workplace::new();
    for line in [
        "--help",
        "help",
        "-h",
        "--version",
        "lj --help",
        "help trace",
    ] {
        let script = format!("exec \"$0\" {line} >/dev/full");
        let output = shell(&place, &script, &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}: {errors}");
        assert!(
            errors.contains("cannot write to standard output"),
            "{line}: {errors}"
        );
        let script = format!("\"$0\" {line} | true; exec \"$0\" {line} >/dev/null");
        assert!(shell(&place, &script, &[]).status.success(), "{line}");
    }
}

#[test]
fn outputs_are_named_for_what_they_are() {
    let place = Workplace::new();
    place.points("v.npy", &[[0.0; 3], [0.5; 3]]);
    place.file("atoms.csv", "x,y,z,charge\n0,0,0,1\n");
    for (line, known) in [
        ("neighbors v.npy --radius 1 --output", ".npz"),
        ("bench --cloud v.npy --repetitions 1 --save-cloud", ".npy"),
        (
            "coulomb atoms.csv --grid 2,2,2 --spacing 1 --output",
            ".npy or .vti",
        ),
        ("lj v.npy --cutoff 1 --output", ".xyz or .extxyz or .csv"),
        ("scaling --from 1e3 --to 1e3 --output", ".png"),
        ("trace report t.jsonl --output", ".html or .htm"),
    ] {
        for name in ["x.txt", "x"] {
            let said = format!("{name}: ");
            let line = format!("{line} {name}");
            place.misused(&said, &words(&line));
            place.misused(&format!("are written as {known}"), &words(&line));
            assert!(!place.0.path().join(name).exists(), "{line}");
        }
    }
}

#[test]
fn outputs_on_a_full_disk_fail_with_one_line() {
    let place = Workplace::new();
    place.points("v.npy", &[[0.0; 3], [0.5; 3]]);
    place.file("atoms.csv", "x,y,z,charge\n0,0,0,1\n");
    std::os::unix::fs::symlink("/dev/full", place.0.path().join("full.npy")).unwrap();
    for line in [
        "neighbors v.npy --radius 1 --output /dev/full",
        "coulomb atoms.csv --grid 2,2,2 --spacing 1 --output full.npy",
        "bench --cloud v.npy --radius 1 --repetitions 1 --save-cloud full.npy",
    ] {
        place.refuses("cannot write", &words(line));
    }
    // A file that may not grow fails in the middle.
    let points: Vec<[f32; 3]> = (0..5000).map(|i| [i as f32, 0.0, 0.0]).collect();
    place.points("many.npy", &points);
    let before = fs::read_dir(place.0.path()).unwrap().count();
    let output = shell(
        &place,
        "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"",
        &words("neighbors many.npy --radius 1 --output lists.npz"),
    );
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(
        errors.starts_with("nearfield: lists.npz: cannot write"),
        "{errors}"
    );
    assert_eq!(errors.lines().count(), 1, "{errors}");
    let after = fs::read_dir(place.0.path()).unwrap().count();
    assert_eq!(before, after, "nothing stays behind");
}

#[test]
fn json_is_alone_on_standard_output() {
    let place = Workplace::new();
    place.points("v.npy", &[[0.0; 3], [0.5; 3]]);
    for line in [
        "neighbors v.npy --radius 1 --json --output /dev/stdout",
        "neighbors v.npy --radius 1 --json --trace /dev/stdout",
        "bench --cloud v.npy --radius 1 --json --save-cloud /dev/stdout",
        "lj v.npy --cutoff 1 --json --output /dev/fd/1",
        "dam-break --quick --json --trace /dev/stdout",
    ] {
        let output = place.run(&words(line));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {errors}");
        assert!(
            errors.contains("is standard output, where --json"),
            "{errors}"
        );
        assert!(output.stdout.is_empty(), "{line}");
    }
    // A device that swallows everything may be both.
    for line in [
        "neighbors v.npy --radius 1 --json --output /dev/null",
        "neighbors v.npy --radius 1 --output /dev/stdout --trace t.jsonl",
    ] {
        assert_eq!(code(&place, line, ""), Some(0), "{line}");
    }
}

#[test]
fn names_may_be_no_text_or_begin_with_a_dash() {
    let place = Workplace::new();
    let points = fs::read(place.points("v.npy", &[[0.0; 3], [0.5; 3]])).unwrap();
    let odd = OsStr::from_bytes(b"\xff\xfe v\n.npy");
    for name in [odd, OsStr::new("-v.npy"), OsStr::new("--radius.npy")] {
        fs::write(place.0.path().join(name), &points).unwrap();
        let out = OsStr::from_bytes(b"-\xfe.npz");
        let trace = OsStr::from_bytes(b"--\xfd.jsonl");
        let with = |flag: &str, name: &OsStr| {
            let mut word = OsStr::new(flag).to_owned();
            word.push(name);
            word
        };
        let output = Command::new(env!("CARGO_BIN_EXE_nearfield"))
            .args(["neighbors", "--radius", "1", "--json"])
            .args([with("--output=", out), with("--trace=", trace)])
            .arg("--")
            .arg(name)
            .current_dir(place.0.path())
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        for made in [out, trace] {
            fs::remove_file(place.0.path().join(made)).unwrap();
        }
    }
    // Errors show such a name on one line.
    let output = Command::new(env!("CARGO_BIN_EXE_nearfield"))
        .args(["neighbors", "--radius", "1"])
        .arg(OsStr::from_bytes(b"no\n\xff.npy"))
        .current_dir(place.0.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1);
}

#[test]
fn paths_that_are_too_long_and_folders_that_are_read_only_are_refused() {
    let place = Workplace::new();
    place.points("v.npy", &[[0.0; 3], [0.5; 3]]);
    let long = "n".repeat(300);
    let deep = "d/".repeat(3000) + "v.npy";
    for name in [long.as_str(), deep.as_str()] {
        for flag in ["--output", "--trace"] {
            let args = ["neighbors", "v.npy", "--radius", "1", flag, name];
            place.refuses("File name too long", &args);
        }
        let input = format!("{name}.npy");
        place.refuses(
            "File name too long",
            &["neighbors", &input, "--radius", "1"],
        );
    }
    // A name that the file system just takes, beside which a temporary one must fit too.
    let longest = "m".repeat(251) + ".npz";
    let args = [
        "neighbors",
        "v.npy",
        "--radius",
        "1",
        "--json",
        "--output",
        &longest,
    ];
    place.json(&args);
    // The system's own folder, which is read-only for root too.
    if fs::metadata("/proc/self").is_ok() {
        for args in [
            &[
                "neighbors",
                "v.npy",
                "--radius",
                "1",
                "--output",
                "/proc/x.npz",
            ][..],
            &[
                "lj", "v.npy", "--cutoff", "1", "--steps", "1", "--output", "/proc/x",
            ],
            &[
                "dam-break",
                "--quick",
                "--frames",
                "1",
                "--output",
                "/proc/x",
            ],
        ] {
            place.refuses("/proc/x", args);
        }
    }
    place.file("file", "");
    for args in [
        &[
            "lj", "v.npy", "--cutoff", "1", "--steps", "1", "--output", "file",
        ][..],
        &["dam-break", "--quick", "--frames", "1", "--output", "file"],
    ] {
        place.refuses("this is a file; name a folder", args);
    }
}
