//! Texts that no flag should be given: the command says so in a line, or takes them, and ends.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A command that takes longer is taken for a hang; these take milliseconds.
const DEADLINE: Duration = Duration::from_secs(120);

const NUMBERS: [&str; 12] = [
    "", "-1", "0", "1e-45", "1e39", "1e999", "nan", "-inf", "0x10", "1,1", "١", "1\n",
];
const BOXES: [&str; 14] = [
    "",
    ",,",
    "1,2",
    "1,2,3,4",
    "nan,1,1",
    "0,1,1",
    "-1,1,1",
    "inf,1,1",
    "1e308,1e308,1e308",
    "1e-300,1,1",
    "4,4,4,nan,0,0",
    "4,4,4,1e300,0,0",
    "4,4,4,0,0,-1e308",
    "4;4;4",
];
const AXES: [&str; 6] = ["w", "xyzw", "X", "xx", "x y", "é"];
const DEVICES: [&str; 14] = [
    "",
    ":",
    "cpu:0",
    "gpu:-1",
    "gpu:4294967296",
    "hybrid:99999",
    "emulated:",
    "emulated:=",
    "emulated:speed",
    "emulated:speed=0",
    "emulated:speed=1,speed=2",
    "emulated:fail=oom@",
    "emulated:speed=1e-308,launch_us=1e308",
    "emulated:memory_mib=18446744073709551615",
];
const POLICIES: [&str; 10] = [
    "",
    "band:",
    "band:1",
    "band:0.9:0.8",
    "band:nan:nan",
    "band:0,8:0,95",
    "fixed",
    "fixed:nan",
    "fixed:-1",
    "fixed:1e308",
];

/// Runs the command; its exit code and what it wrote to standard error.
fn run(folder: &Path, args: &[&str]) -> (i32, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_nearfield"))
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(folder.join("errors")).unwrap())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begin.elapsed() > DEADLINE {
            child.kill().unwrap();
            panic!("{args:?} has not ended after {} s", DEADLINE.as_secs());
        }
        thread::sleep(Duration::from_millis(2));
    };
    let errors = fs::read_to_string(folder.join("errors")).unwrap();
    let code = status.code();
    (
        code.unwrap_or_else(|| panic!("{args:?}: {status}, {errors}")),
        errors,
    )
}

#[test]
fn odd_texts_are_refused_in_words_or_taken() {
    let place = tempfile::tempdir().unwrap();
    let points = (0..60).map(|n| format!("{},{},{}\n", n % 4, n / 4 % 4, n / 16));
    fs::write(place.path().join("points.csv"), points.collect::<String>()).unwrap();
    let flags: [(&str, &[&str]); 7] = [
        ("--radius", &NUMBERS),
        ("--threads", &NUMBERS),
        ("--box", &BOXES),
        ("--periodic", &AXES),
        ("--device", &DEVICES),
        ("--policy", &POLICIES),
        ("--strategy", &POLICIES),
    ];
    let mut refused = 0;
    for (flag, texts) in flags {
        for text in texts {
            let given = format!("{flag}={text}");
            let radius = if flag == "--radius" {
                &given
            } else {
                "--radius=1"
            };
            let mut args = vec!["neighbors", "points.csv", radius];
            if flag != "--radius" {
                args.push(&given);
            }
            let (code, errors) = run(place.path(), &args);
            assert!(
                [0, 1, 2].contains(&code),
                "{args:?} ends with {code}: {errors}"
            );
            assert!(!errors.contains("panicked"), "{args:?}: {errors}");
            assert!(
                code == 0 || !errors.trim().is_empty(),
                "{args:?} says nothing"
            );
            refused += usize::from(code != 0);
        }
    }
    assert!(refused > 50, "only {refused} were refused");
}
