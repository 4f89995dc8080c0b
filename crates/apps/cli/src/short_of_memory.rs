//! Commands with an allocator that refuses one request more every time. Each refusal is an error
//! that names the bytes, and none ends the process. Commands that draw pictures are left out: they
//! ask for the memory of a picture before it is drawn by libraries that cannot bear a refusal. The
//! allocator refuses all threads, so the commands run in a process without other tests.

use crate::{Command, run};
use clap::Parser;
use nearfield_testkit::memory::Refusing;
use std::{env, fmt::Write, path::Path, process};

#[global_allocator]
static MEMORY: Refusing = Refusing::nothing();

/// Points and atoms of the inputs.
const COUNT: usize = 40_000;
/// Bodies, whose pairs are all summed.
const BODIES: usize = 6_000;

/// Requests from here on grow with the number of points. Those of compressors, pictures and stacks
/// of threads do not.
const GROWS: usize = 12 * COUNT;

/// Part of the message of an error for lack of memory.
const SAID: &str = "bytes are needed";

/// Writes the inputs into a folder.
fn fill(folder: &Path) {
    let side = 50;
    let at = |k: usize| [k % side, k / side % side, k / side / side].map(|x| x as f64 * 1.3 + 0.1);
    let mut points = "x,y,z,charge\n".to_owned();
    let mut atoms = format!("{COUNT}\nProperties=species:S:1:pos:R:3:velo:R:3\n");
    let mut bodies = "mass,x,y,z,vx,vy,vz\n".to_owned();
    for k in 0..COUNT {
        let [x, y, z] = at(k);
        writeln!(points, "{x},{y},{z},1").unwrap();
        writeln!(atoms, "Ar {x} {y} {z} 0 0 0").unwrap();
        if k < BODIES {
            writeln!(bodies, "1e-6,{x},{y},{z},0,0,0").unwrap();
        }
    }
    for (name, text) in [("p.csv", points), ("a.xyz", atoms), ("b.csv", bodies)] {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

/// Runs a command line, whose files are in a folder, until no request of `from` bytes is refused;
/// returns how often one was.
fn refusals(folder: &Path, line: &str, from: usize) -> usize {
    let words = line.split(' ').map(|word| {
        let is_file = word.contains('.') && word.parse::<f64>().is_err();
        if is_file || word == "run" {
            folder.join(word).display().to_string()
        } else {
            word.to_owned()
        }
    });
    let mut words: Vec<String> = ["nearfield".to_owned()].into_iter().chain(words).collect();
    words.extend(["--device", "cpu", "--threads", "1", "--json"].map(str::to_owned));
    let command = Command::try_parse_from(words).unwrap();
    MEMORY.squeeze(from, SAID, || run(&command)).1
}

#[test]
fn commands_that_memory_is_too_short_for_are_errors() {
    let alone = "short_of_memory::commands_in_a_child";
    let ran = process::Command::new(env::current_exe().unwrap())
        .args([alone, "--exact", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let [text, errors] =
        [ran.stdout, ran.stderr].map(|of| String::from_utf8_lossy(&of).into_owned());
    assert!(ran.status.success(), "{text}\n{errors}");
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "runs in a child"]
fn commands_in_a_child() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fill(folder);
    for (line, times) in [
        ("neighbors p.csv --radius 1.4 --output l.npz", 4),
        ("neighbors p.csv --radius 1.4 --precision f64", 4),
        ("lj a.xyz --cutoff 1.4 --output f.csv", 4),
        (
            "lj a.xyz --cutoff 1.4 --precision f64 --steps 1 --output run --checkpoint 1",
            5,
        ),
        (
            "coulomb p.csv --grid 40,40,40 --spacing 1 --cutoff 2 --field --output u.vti",
            4,
        ),
        (
            "bench --points 5e4 --work lists --repetitions 1 --save-cloud c.npy",
            2,
        ),
        (
            "bench --points 5e4 --work force --repetitions 1 --order sorted",
            4,
        ),
    ] {
        let refused = refusals(folder, line, GROWS);
        assert!(refused >= times, "{line} was refused {refused} times");
    }
    let refused = refusals(folder, "gravity b.csv --steps 1 --dt 1e-3", 8 * BODIES);
    assert!(refused > 4, "gravity was refused {refused} times");
}
