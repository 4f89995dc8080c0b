//! The built command, run as a user would run it: a module per command, and here what they refuse.

mod bench;
mod files;
mod gpu;
mod input;
mod lj;
mod memory;
mod nbody;
mod neighbors;
#[cfg(unix)]
mod resume;
mod scene;
#[cfg(unix)]
mod streams;
mod texts;
mod trace;
mod tune;

use serde_json::Value;
use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

struct Workplace(tempfile::TempDir);

impl Workplace {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    fn points(&self, name: &str, points: &[[f32; 3]]) -> PathBuf {
        let path = self.0.path().join(name);
        nearfield_io::write_points(&path, points).unwrap();
        path
    }

    fn run(&self, args: &[&str]) -> Output {
        self.run_with(&[], args)
    }

    /// Runs the command with these variables of the environment.
    fn run_with(&self, variables: &[(&str, &str)], args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_nearfield"))
            .args(args)
            .envs(variables.iter().copied())
            .current_dir(self.0.path())
            .output()
            .unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {errors}");
        serde_json::from_slice(&output.stdout).expect("one JSON object and nothing else")
    }

    /// The command must fail with exit code 1 and one line that contains `culprit`.
    fn refuses(&self, culprit: &str, args: &[&str]) {
        self.refuses_with(&[], culprit, args);
    }

    /// The command must fail with exit code 2 and one line that contains `culprit`.
    fn misused(&self, culprit: &str, args: &[&str]) {
        self.fails_with(&[], 2, culprit, args);
    }

    /// As [`refuses`](Self::refuses), with these variables of the environment.
    fn refuses_with(&self, variables: &[(&str, &str)], culprit: &str, args: &[&str]) {
        self.fails_with(variables, 1, culprit, args);
    }

    fn fails_with(&self, variables: &[(&str, &str)], code: i32, culprit: &str, args: &[&str]) {
        let output = self.run_with(variables, args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{args:?}: {errors}");
        assert!(
            errors.contains(culprit),
            "{args:?}: \"{culprit}\" is not in {errors}"
        );
        assert!(output.stdout.is_empty(), "{args:?} printed a result");
    }
}

/// The arguments of a command line without quotes.
fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn bad_input_gives_exit_code_1_and_one_line_that_names_the_culprit() {
    let place = Workplace::new();
    let good = "x,y,z\n0,0,0\n1,0,0\n";
    place.file("good.csv", good);
    place.file("nan.csv", "0,0,0\n1,nan,0\n");
    place.file("inf.csv", "0,0,0\n1,2,inf\n");
    place.file("text.csv", "0,0,0\n1,2,abc\n");
    place.file("columns.csv", "0,0,0\n1,2,3,4,5\n");
    place.file("empty.csv", "");
    place.file("empty.npy", "");
    place.file("noise.npy", [0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0]);
    place.file("short.xyz", "5\n\nH 0 0 0\nH 1 1 1\n");
    place.file("good.unknown", good);
    let whole = std::fs::read(place.points("whole.npy", &[[0.5; 3]; 100])).unwrap();
    place.file("truncated.npy", &whole[..whole.len() / 2]);
    let radius = ["--radius", "1"];
    for (culprit, file) in [
        ("point 1 has y = NaN", "nan.csv"),
        ("point 1 has z = inf", "inf.csv"),
        ("abc", "text.csv"),
        ("columns.csv", "columns.csv"),
        ("empty.csv", "empty.csv"),
        ("empty.npy", "empty.npy"),
        ("noise.npy", "noise.npy"),
        ("short.xyz", "short.xyz"),
        ("truncated.npy", "truncated.npy"),
        ("missing.csv", "missing.csv"),
    ] {
        place.refuses(culprit, &[&["neighbors", file], &radius[..]].concat());
    }
    let unknown = ["neighbors", "good.unknown"];
    place.misused("good.unknown", &[&unknown[..], &radius].concat());
    for (culprit, args) in [
        ("radius 0 ", &["--radius", "0"][..]),
        ("radius -1 ", &["--radius", "-1"]),
        ("radius NaN ", &["--radius", "nan"]),
        ("radius inf ", &["--radius", "inf"]),
        ("at most 4096", &["--radius", "1", "--threads", "5000"]),
        ("two lengths, but z", &["--radius", "1", "--box", "1,1"]),
    ] {
        place.misused(culprit, &[&["neighbors", "good.csv"], args].concat());
    }
    for (culprit, args) in [
        (
            "box length along x is 0",
            &["--radius", "1", "--box", "0,1,1"][..],
        ),
        ("give --box", &["--radius", "1", "--periodic", "x"]),
        (
            "(tilt xy), but the y axis is open",
            &["--radius", "1", "--box", "4,4,4,1,0,0", "--periodic", "xz"],
        ),
        (
            "nearly lie in one plane",
            &["--radius", "1", "--box", "1,1,1,5000,0,0"],
        ),
        (
            "across its x faces",
            &["--radius", "1e3", "--box", "1,1,1,2,0,0"],
        ),
        ("gpu:0", &["--radius", "1", "--device", "gpu"]),
        ("hybrid:1", &["--radius", "1", "--device", "hybrid:1"]),
    ] {
        place.refuses(culprit, &[&["neighbors", "good.csv"], args].concat());
    }
    place.misused("nowhere", &["bench", "nowhere"]);
    place.misused("--frame is for files", &words("bench lattice --frame 2"));
    for (culprit, args) in [
        ("unknown cloud \"good.csv\"", &["--cloud", "good.csv"][..]),
        (
            "--from 2000 is more than --to 1000",
            &["--from", "2e3", "--to", "1e3"],
        ),
        ("radius -1 ", &["--to", "1e4", "--radius=-1"]),
        ("x.pdf: ", &["--output", "x.pdf"]),
    ] {
        place.misused(culprit, &[&["scaling"], args].concat());
    }
    for (culprit, args) in [
        ("gpu:0", &["--device", "gpu"][..]),
        ("nowhere/plot.png", &["--output", "nowhere/plot.png"]),
        ("it is a folder", &["--output", "."]),
        ("points need", &["--to", "1e4", "--memory-mib", "0"]),
    ] {
        place.refuses(culprit, &[&["scaling"], args].concat());
    }
    assert!(!place.0.path().join("scaling.png").exists());
}

#[test]
fn wrong_usage_gives_exit_code_2() {
    let place = Workplace::new();
    place.file("good.csv", "0,0,0\n");
    for args in [
        &["neighbors", "good.csv"][..],
        &["neighbors", "good.csv", "--radius", "one"],
        &words("neighbors good.csv --radius 1 --device quantum"),
        &["neighbors", "good.csv", "--radius", "1", "--box", "1"],
        &["bench", "--repetitions", "0"],
        &["bench", "--points", "1.5"],
        &["scaling", "--from", "0"],
        &["scaling", "--to", "many"],
        &["scaling", "--work", "lists,magic"],
        &words("bench lattice --cloud lattice"),
        &["scaling", "--repetitions", "0"],
        &words("dam-break --ranks 0"),
        &words("dam-break --ranks -1"),
        &words("dam-break --ranks 2.5"),
        &["frobnicate"],
    ] {
        let output = place.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
}

/// Every command, with the words that call it.
const COMMANDS: [&str; 18] = [
    "info",
    "neighbors",
    "convert",
    "lj",
    "bench",
    "scaling",
    "tune",
    "dam-break",
    "gravity",
    "coulomb",
    "kernels build",
    "kernels check",
    "kernels constants",
    "trace summary",
    "trace report",
    "trace export",
    "trace merge",
    "trace compare",
];

#[test]
fn help_fits_the_terminal_and_ends_with_examples() {
    let place = Workplace::new();
    for command in COMMANDS {
        let args = [words(command), vec!["--help"]].concat();
        let output = place.run_with(&[("COLUMNS", "80")], &args);
        let help = String::from_utf8(output.stdout).unwrap();
        let (_, examples) = help.split_once("Examples:\n").expect(command);
        for line in examples.lines() {
            let line = line.trim();
            assert!(line.starts_with(&format!("nearfield {command}")), "{line}");
        }
        let wide = help.lines().find(|line| {
            // A word that is longer than the column for texts cannot be broken.
            line.chars().count() > 80 && !line.contains("nearfield ") && !line.contains('<')
        });
        assert_eq!(wide, None, "{command}");
    }
    let listed = place.run(&["--help"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    for command in COMMANDS {
        assert!(listed.contains(words(command)[0]), "{command}");
    }
}

#[test]
fn examples_in_help_are_command_lines_that_are_understood() {
    let place = Workplace::new();
    for command in COMMANDS {
        let args = [words(command), vec!["--help"]].concat();
        let help = String::from_utf8(place.run(&args).stdout).unwrap();
        let (_, examples) = help.split_once("Examples:\n").expect(command);
        for line in examples.lines().map(str::trim) {
            // `--version` ends the command after its flags are read.
            let args = [words(line)[1..].to_vec(), vec!["--version"]].concat();
            let output = place.run(&args);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{line}: {errors}");
        }
    }
}

#[test]
fn commands_say_what_they_wrote() {
    let place = Workplace::new();
    place.points("v.npy", &[[0.0; 3], [0.5; 3]]);
    place.file("atoms.csv", "x,y,z,charge\n0,0,0,1\n");
    place.file("b.txt", "0 1 0 0 0 0 0 0\n1 1 1 0 0 0 0 0\n");
    for (line, written) in [
        (
            "neighbors v.npy --radius 1 --trace t.jsonl --output l.npz",
            "l.npz",
        ),
        (
            "bench v.npy --radius 1 --repetitions 1 --save-cloud c.npy",
            "c.npy",
        ),
        ("convert v.npy v.csv", "v.csv"),
        ("lj v.npy --cutoff 1 --output f.csv", "f.csv"),
        ("lj v.npy --cutoff 1 --steps 1 --output run", "run"),
        (
            "coulomb atoms.csv --grid 2,2,2 --spacing 1 --output p.npy",
            "p.npy",
        ),
        ("gravity b.txt --steps 2 --dt 0.01 --output moved", "moved"),
        (
            "scaling --from 500 --to 500 --repetitions 1 --output s.png",
            "s.png",
        ),
        ("trace report t.jsonl --output r.html", "r.html"),
        ("trace export t.jsonl --output e.json", "e.json"),
    ] {
        let output = place.run(&words(line));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {errors}");
        let text = String::from_utf8(output.stdout).unwrap();
        let last = text.lines().last().unwrap().to_lowercase();
        assert!(
            last.starts_with("wrote ") && last.contains(written),
            "{line}: {text}"
        );
        assert!(place.0.path().join(written).exists(), "{line}");
    }
}

#[test]
fn seeds_and_words_choose_the_cloud() {
    let place = Workplace::new();
    let of = |line: &str| {
        let found = place.json(&words(line));
        (found["cloud"].clone(), found["checksum"].clone())
    };
    let flags = "--points 1000 --repetitions 1 --json";
    let one = of(&format!("bench uniform {flags}"));
    assert_eq!(one, of(&format!("bench --cloud uniform --seed 1 {flags}")));
    assert_ne!(one, of(&format!("bench uniform --seed 2 {flags}")));
    let flags = "--from 500 --to 500 --repetitions 1 --json";
    for flag in ["--work", "--works"] {
        let found = place.json(&words(&format!("scaling uniform {flags} {flag} count")));
        assert_eq!(
            (&found["cloud"], &found["points"][0]["work"]),
            (&"uniform".into(), &"count".into())
        );
    }
}
