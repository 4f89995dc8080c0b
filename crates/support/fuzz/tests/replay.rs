//! Every target on inputs that are known: its seeds, what fuzzing found (`found/`), what it has
//! learnt here (`corpus/`, where there is one), and changed copies of these. Without libFuzzer, so
//! it runs wherever the crates build, under a sanitizer too.
//!
//! `NEARFIELD_FUZZ_CHANGED` is the number of changed copies for each target, 400 unless set. They
//! are the same in every run. An input on which a target fails is kept in `artifacts/`.

use nearfield_fuzz::{TARGETS, describe, target};
use std::{
    env, fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
    time::Duration,
};

/// An input that takes longer is taken for a hang.
const DEADLINE: Duration = Duration::from_secs(120);
/// Longest changed copy.
const LONGEST: usize = 16 << 10;

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// A generator of numbers that are the same everywhere (SplitMix64; Steele, Lea and Flood 2014).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// Files of a folder by name; none where there is no such folder.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let read = |path: PathBuf| Some((path.clone(), fs::read(path).ok()?));
    paths.into_iter().filter_map(read).collect()
}

fn known(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folders = ["seeds", "found", "corpus"].map(|kind| here().join(kind).join(name));
    let mut inputs: Vec<_> = folders.iter().flat_map(|folder| files(folder)).collect();
    if ["npy", "csv", "xyz", "vtk", "vtk_xml", "ply", "tables"].contains(&name) {
        inputs.extend(files(&here().join("../io/tests/data/made")));
    }
    inputs
}

/// A copy of one of `inputs` with some bytes changed, removed, repeated or taken from another; or,
/// for targets that make calls of bytes, bytes at random.
fn changed(inputs: &[Vec<u8>], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = inputs
        .get(numbers.below(inputs.len() + 1))
        .cloned()
        .unwrap_or_default();
    if bytes.is_empty() {
        let length = 1 + numbers.below(600);
        return (0..length).map(|_| numbers.next() as u8).collect();
    }
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(bytes.len());
        let end = (at + 1 + numbers.below(24)).min(bytes.len());
        match numbers.below(6) {
            0 => bytes[at] = numbers.next() as u8,
            1 => bytes[at] ^= 1 << numbers.below(8),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let part = bytes[at..end].to_vec();
                let to = numbers.below(bytes.len());
                bytes.splice(to..to, part);
            }
            4 => bytes.truncate(at.max(1)),
            _ => {
                let odd: [&[u8]; 8] = [
                    b"nan",
                    b"-1",
                    b"1e999",
                    b"4294967296",
                    b"\0",
                    b"\xff\xff\xff\xff",
                    b"\n",
                    b"0",
                ];
                bytes.splice(at..at, odd[numbers.below(8)].iter().copied());
            }
        }
        if bytes.is_empty() {
            break;
        }
    }
    bytes.truncate(LONGEST);
    bytes
}

/// Runs a target on an input; keeps the input where it fails.
fn give(name: &'static str, origin: &str, bytes: &[u8]) {
    let run = || target(name)(bytes);
    if catch_unwind(AssertUnwindSafe(run)).is_err() {
        let folder = here().join("artifacts").join(name);
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("replayed");
        fs::write(&path, bytes).unwrap();
        let input = describe(name, bytes);
        panic!(
            "{name} fails on {origin}, kept as {}:\n{input}",
            path.display()
        );
    }
}

fn replay(name: &'static str) {
    let inputs = known(name);
    let count = env::var("NEARFIELD_FUZZ_CHANGED").map_or(400, |count| count.parse().unwrap());
    let (alive, news) = mpsc::channel();
    let work = thread::spawn(move || {
        for (path, bytes) in &inputs {
            let origin = path.display().to_string();
            alive.send(origin.clone()).unwrap();
            give(name, &origin, bytes);
        }
        let mut numbers = Numbers(name.bytes().map(u64::from).sum());
        let inputs: Vec<_> = inputs.into_iter().map(|(_, bytes)| bytes).collect();
        for n in 0..count {
            let bytes = changed(&inputs, &mut numbers);
            let origin = format!("changed input {n}");
            alive.send(origin.clone()).unwrap();
            give(name, &origin, &bytes);
        }
    });
    let mut last = String::from("the start");
    loop {
        match news.recv_timeout(DEADLINE) {
            Ok(origin) => last = origin,
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                panic!("{name} has worked on {last} for {} s", DEADLINE.as_secs())
            }
        }
    }
    if let Err(panic) = work.join() {
        std::panic::resume_unwind(panic);
    }
}

macro_rules! targets {
    ($($name:ident),*) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*

        #[test]
        fn every_target_is_replayed_has_seeds_and_a_program() {
            let replayed = [$(stringify!($name)),*];
            assert_eq!(replayed, TARGETS.map(|(name, _)| name));
            for name in replayed {
                assert!(here().join(format!("fuzz_targets/{name}.rs")).is_file(), "{name}");
                assert!(!known(name).is_empty(), "{name} has no seeds");
            }
        }
    };
}

targets!(
    npy,
    csv,
    xyz,
    comment,
    vtk,
    vtk_xml,
    ply,
    npz,
    cloud,
    lammps_dump,
    lammps_data,
    gro,
    pdb,
    cif,
    poscar,
    pcd,
    las,
    gsd,
    tables,
    checkpoints,
    trace,
    texts,
    capsules,
    capi,
    engine
);
