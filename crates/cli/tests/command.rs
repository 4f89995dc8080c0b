//! The built command, run as a user would run it.

use nearfield_testkit::{
    cloud::Cloud,
    conformance::Case,
    digest,
    oracle::{ListKind, Pairing, Problem},
    random::Random,
};
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

    /// As [`refuses`](Self::refuses), with these variables of the environment.
    fn refuses_with(&self, variables: &[(&str, &str)], culprit: &str, args: &[&str]) {
        let output = self.run_with(variables, args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{args:?}: {errors}");
        assert!(
            errors.contains(culprit),
            "{args:?}: \"{culprit}\" is not in {errors}"
        );
        assert!(output.stdout.is_empty(), "{args:?} printed a result");
    }
}

fn oracle_digest(points: &[[f32; 3]], radius: f32, periodic: [Option<f64>; 3]) -> (u64, String) {
    digest_of(&Problem {
        periodic,
        ..Problem::open(radius, points, Pairing::Within(ListKind::Full))
    })
}

/// Number of pairs and digest of the oracle's lists.
fn digest_of(problem: &Problem) -> (u64, String) {
    let lists = problem.index_lists();
    let pairs = lists.iter().map(|list| list.len() as u64).sum();
    (pairs, digest::digest(&lists).to_string())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn neighbors_gives_the_oracles_pairs_and_digest_on_random_clouds() {
    let place = Workplace::new();
    let mut random = Random::new(42);
    for (number, count) in [1, 2, 10, 100, 1_000, 10_000, 100_000]
        .into_iter()
        .enumerate()
    {
        let side = (count as f64).cbrt();
        let points: Vec<[f32; 3]> = (0..count)
            .map(|_| [0; 3].map(|_| random.between(-side, side) as f32 * 0.5))
            .collect();
        let file = place.points(&format!("cloud{number}.npy"), &points);
        let found = place.json(&["neighbors", text(&file), "--radius", "1.1", "--json"]);
        let (pairs, digest) = oracle_digest(&points, 1.1, [None; 3]);
        assert_eq!(found["points"], count);
        assert_eq!(found["pairs"], pairs);
        assert_eq!(found["digest"], digest, "{count} points");
        assert!((found["mean"].as_f64().unwrap() - pairs as f64 / f64::from(count)).abs() < 1e-9);
    }
}

#[test]
fn neighbors_in_f64_keeps_the_digits_of_files_and_of_the_radius() {
    let place = Workplace::new();
    let mut random = Random::new(7);
    let points: Vec<[f64; 3]> = (0..400)
        .map(|_| [0; 3].map(|_| 1e8 + random.between(0.0, 1.0)))
        .collect();
    let bytes: Vec<u8> = (points.iter().flatten())
        .flat_map(|x| x.to_le_bytes())
        .collect();
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (400, 3), }\n";
    let mut content = b"\x93NUMPY\x01\x00".to_vec();
    content.extend((header.len() as u16).to_le_bytes());
    content.extend(header.as_bytes());
    content.extend(bytes);
    let binary = place.file("far.npy", content);
    let mut lines = "x,y,z\n".to_owned();
    for [x, y, z] in &points {
        lines += &format!("{x},{y},{z}\n");
    }
    let text_file = place.file("far.csv", lines);
    let problem = Problem::open(0.1, &points, Pairing::Within(ListKind::Full));
    let lists = problem.index_lists();
    let digest = digest::digest(&lists).to_string();
    for file in [binary, text_file] {
        let args = ["neighbors", text(&file), "--radius", "0.1", "--json"];
        let found = place.json(&[&args[..], &["--precision", "f64"]].concat());
        assert_eq!(found["digest"], digest, "{file:?}");
        assert_eq!(found["radius"], 0.1);
        // In f32 all of these coordinates are one.
        assert_eq!(place.json(&args)["pairs"], 400 * 399);
    }
    // 0.1 as f32 is more than 0.1.
    let pair = place.file("pair.csv", "0,0,0\n0.100000001,0,0\n");
    let args = ["neighbors", text(&pair), "--radius", "0.1", "--json"];
    assert_eq!(place.json(&args)["pairs"], 2);
    let args = [&args[..], &["--precision", "f64"]].concat();
    assert_eq!(place.json(&args)["pairs"], 0);
    place.refuses(
        "single precision",
        &[&args[..], &["--device", "gpu"]].concat(),
    );
    // A file of f32 is taken as it is.
    let single = place.points("single.npy", &[[0.0; 3], [0.1, 0.0, 0.0]]);
    let args = ["neighbors", text(&single), "--radius", "0.1", "--json"];
    assert_eq!(place.json(&args)["pairs"], 2);
    let args = [&args[..], &["--precision", "f64"]].concat();
    assert_eq!(place.json(&args)["pairs"], 0);
}

#[test]
fn neighbors_honours_a_periodic_box() {
    let place = Workplace::new();
    let points = Cloud::Uniform.points(500, 9);
    let file = place.points("cloud.csv", &points);
    let args = ["neighbors", text(&file), "--radius", "1.5", "--json"];
    let boxed = [&args[..], &["--box", "7.9,8,2.5", "--periodic", "xz"]].concat();
    let (pairs, digest) = oracle_digest(&points, 1.5, [Some(7.9), None, Some(2.5)]);
    let found = place.json(&boxed);
    assert_eq!(found["pairs"], pairs);
    assert_eq!(found["digest"], digest);
    let mut frame =
        "500\nLattice=\"7.9 0 0 0 8 0 0 0 2.5\" pbc=\"T F T\" Properties=pos:R:3\n".to_owned();
    for [x, y, z] in &points {
        frame += &format!("{x} {y} {z}\n");
    }
    let file = place.file("frame.extxyz", frame);
    let found = place.json(&["neighbors", text(&file), "--radius", "1.5", "--json"]);
    assert_eq!(found["digest"], digest, "the file's own box");
}

#[test]
fn neighbors_honours_a_tilted_box() {
    let place = Workplace::new();
    let points = Cloud::Uniform.points(500, 9);
    let search = |vectors| Problem {
        vectors: Some(vectors),
        ..Problem::open(1.5, &points, Pairing::Within(ListKind::Full))
    };
    let file = place.points("cloud.csv", &points);
    let args = ["neighbors", text(&file), "--radius", "1.5", "--json"];
    let vectors = [[7.9, 0.0, 0.0], [-9.5, 8.0, 0.0], [2.25, -1.0, 2.5]];
    let (pairs, digest) = digest_of(&search(vectors.map(Some)));
    let found = place.json(&[&args[..], &["--box", "7.9,8,2.5,-9.5,2.25,-1"]].concat());
    assert_eq!(found["pairs"], pairs);
    assert_eq!(found["digest"], digest);
    let lattices = [
        ("7.9 0 0 -9.5 8 0 2.25 -1 2.5", "T T T", vectors.map(Some)),
        // The open vector leans, which makes no difference.
        (
            "7.9 0 0 3 8 0 2.25 -1 2.5",
            "T T F",
            [Some(vectors[0]), Some([3.0, 8.0, 0.0]), None],
        ),
        // No triangular matrix.
        (
            "0 4 4 4 0 4 4 4 0",
            "T T T",
            [[0.0, 4.0, 4.0], [4.0, 0.0, 4.0], [4.0, 4.0, 0.0]].map(Some),
        ),
    ];
    for (lattice, pbc, vectors) in lattices {
        let comment = format!("Lattice=\"{lattice}\" pbc=\"{pbc}\" Properties=pos:R:3");
        let lines: String = points
            .iter()
            .map(|[x, y, z]| format!("{x} {y} {z}\n"))
            .collect();
        let file = place.file("frame.extxyz", format!("500\n{comment}\n{lines}"));
        let found = place.json(&["neighbors", text(&file), "--radius", "1.5", "--json"]);
        assert_eq!(found["digest"], digest_of(&search(vectors)).1, "{lattice}");
    }
}

#[test]
fn real_frames_have_the_oracles_neighbours() {
    let place = Workplace::new();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../io/tests/data/frames");
    for (name, radius) in [
        ("double_dam_break_frame_26_4732_particles.vtk", 0.1),
        ("fluid_250_particles.vtu", 0.5),
    ] {
        let path = data.join(name);
        let points = nearfield_io::read_points(&path).unwrap().positions;
        let shown = radius.to_string();
        let found = place.json(&["neighbors", text(&path), "--radius", &shown, "--json"]);
        let (pairs, digest) = oracle_digest(&points, radius, [None; 3]);
        assert!(
            pairs > 10 * points.len() as u64,
            "{pairs} pairs are no fluid"
        );
        assert_eq!(found["pairs"], pairs);
        assert_eq!(found["digest"], digest);
    }
}

#[test]
fn lists_are_written_as_compressed_sparse_rows() {
    let place = Workplace::new();
    let case = Case::new("cloud", 1.2, Cloud::Uniform.points(300, 4));
    let file = place.points("cloud.npy", case.targets());
    place.json(&[
        "neighbors",
        text(&file),
        "--radius",
        "1.2",
        "--json",
        "--output",
        "lists.npz",
    ]);
    let archive = std::fs::File::open(place.0.path().join("lists.npz")).unwrap();
    let mut archive = zip::ZipArchive::new(archive).unwrap();
    let offsets: Vec<u64> = npyz::NpyFile::new(archive.by_name("offsets.npy").unwrap())
        .unwrap()
        .into_vec()
        .unwrap();
    let indices: Vec<u32> = npyz::NpyFile::new(archive.by_name("indices.npy").unwrap())
        .unwrap()
        .into_vec()
        .unwrap();
    let lists: Vec<Vec<u32>> = offsets
        .windows(2)
        .map(|row| indices[row[0] as usize..row[1] as usize].to_vec())
        .collect();
    assert_eq!(lists, case.expected(), "ascending lists");
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
        ("good.unknown", "good.unknown"),
    ] {
        place.refuses(culprit, &[&["neighbors", file], &radius[..]].concat());
    }
    for (culprit, args) in [
        ("radius 0 ", &["--radius", "0"][..]),
        ("radius -1 ", &["--radius", "-1"]),
        ("radius NaN ", &["--radius", "nan"]),
        ("radius inf ", &["--radius", "inf"]),
        (
            "box length along x is 0",
            &["--radius", "1", "--box", "0,1,1"],
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
        ("at most 4096", &["--radius", "1", "--threads", "5000"]),
    ] {
        place.refuses(culprit, &[&["neighbors", "good.csv"], args].concat());
    }
    place.refuses("nowhere", &["bench", "--cloud", "nowhere"]);
    for (culprit, args) in [
        ("unknown cloud \"good.csv\"", &["--cloud", "good.csv"][..]),
        (
            "--from 2000 is more than --to 1000",
            &["--from", "2e3", "--to", "1e3"],
        ),
        ("radius -1 ", &["--to", "1e4", "--radius=-1"]),
        ("gpu:0", &["--device", "gpu"]),
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
        &[
            "neighbors",
            "good.csv",
            "--radius",
            "1",
            "--device",
            "quantum",
        ],
        &["neighbors", "good.csv", "--radius", "1", "--box", "1,2"],
        &["bench", "--repetitions", "0"],
        &["bench", "--points", "1.5"],
        &["scaling", "--from", "0"],
        &["scaling", "--to", "many"],
        &["scaling", "--works", "lists,magic"],
        &["scaling", "--repetitions", "0"],
        &["frobnicate"],
    ] {
        let output = place.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn bench_reports_medians_pairs_and_a_checksum_for_every_work() {
    let place = Workplace::new();
    for work in ["lists", "density", "count", "force"] {
        let args = [
            "bench",
            "--points",
            "3e3",
            "--repetitions",
            "2",
            "--json",
            "--work",
            work,
        ];
        let shuffled = place.json(&args);
        let again = place.json(&args);
        assert_eq!(shuffled["points"], 2744, "the nearest cube number");
        assert!(shuffled["milliseconds"]["total"].as_f64().unwrap() > 0.0);
        assert!(shuffled["pairs"].as_u64().unwrap() > 30_000);
        assert_eq!(shuffled["checksum"], again["checksum"], "{work}");
        let sorted = place.json(&[&args[..], &["--order", "sorted"]].concat());
        assert_eq!(sorted["order"], "sorted");
        let double = place.json(&[&args[..], &["--precision", "f64"]].concat());
        assert_eq!(shuffled["precision"], "f32");
        assert_eq!(double["precision"], "f64");
        // They differ where the last bit of f32 decides.
        let pairs = |summary: &Value| summary["pairs"].as_i64().unwrap();
        assert!((pairs(&double) - pairs(&shuffled)).abs() < 10, "{double}");
    }
    let args = [
        "bench",
        "--points",
        "1000",
        "--repetitions",
        "1",
        "--json",
        "--compare",
    ];
    let compared = place.json(&[&args[..], &["--save-cloud", "cloud.npy"]].concat());
    assert_eq!(compared["compare"]["pairs"], compared["pairs"]);
    let saved = nearfield_io::read_points(place.0.path().join("cloud.npy")).unwrap();
    assert_eq!(saved.positions, Cloud::Lattice.points(1000, 1));
}

/// The entries of `array` in `summary`, and of each the number of points and the work.
fn points_and_works<'a>(summary: &'a Value, array: &str) -> (Vec<&'a Value>, Vec<(u64, &'a str)>) {
    let entries: Vec<&Value> = summary[array].as_array().unwrap().iter().collect();
    let of = |entry: &&'a Value| {
        let (points, work) = (entry["points"].as_u64(), entry["work"].as_str());
        (points.unwrap(), work.unwrap())
    };
    let named = entries.iter().map(of).collect();
    (entries, named)
}

#[test]
fn scaling_times_every_work_at_every_size_as_bench_does() {
    let place = Workplace::new();
    let args = ["--repetitions", "2", "--threads", "2", "--json"];
    let series = [
        &[
            "scaling",
            "--from",
            "1e3",
            "--to",
            "8e3",
            "--works",
            "density,lists,density",
        ],
        &args[..],
    ];
    let summary = place.json(&series.concat());
    assert_eq!(summary["cloud"], "lattice");
    assert_eq!(summary["radius"], 2.0);
    assert_eq!(summary["order"], "sorted");
    assert_eq!(summary["threads"], 2);
    assert_eq!(summary["device"], "cpu");
    assert_eq!(summary["version"], env!("CARGO_PKG_VERSION"));
    for name in ["simd", "processor"] {
        assert!(!summary[name].as_str().unwrap().is_empty(), "{name}");
    }
    assert_eq!(summary["skipped"].as_array().unwrap().len(), 0);
    let (entries, named) = points_and_works(&summary, "points");
    // Between the ends lies 2,800, to which 2,744 is the nearest cube.
    let sizes = [1000, 2744, 8000];
    let expected: Vec<_> = sizes
        .iter()
        .flat_map(|&size| [(size, "density"), (size, "lists")])
        .collect();
    assert_eq!(named, expected);
    for (entry, (points, work)) in entries.into_iter().zip(named) {
        let size = points.to_string();
        let single = [
            "bench", "--points", &size, "--work", work, "--order", "sorted",
        ];
        let bench = place.json(&[&single[..], &args].concat());
        assert_eq!(entry["pairs"], bench["pairs"], "{points} {work}");
        let times = &entry["milliseconds"];
        let [build, search, total] =
            ["build", "search", "total"].map(|stage| times[stage].as_f64().unwrap());
        assert!(build > 0.0 && search > 0.0 && total > build);
        let nanoseconds = entry["nanoseconds_per_point"].as_f64().unwrap();
        assert!((nanoseconds * points as f64 / (total * 1e6) - 1.0).abs() < 1e-9);
        let bytes = entry["bytes_per_point"].as_f64().unwrap();
        assert!((20.0..2000.0).contains(&bytes), "{bytes} bytes per point");
    }
    let picture = std::fs::read(place.0.path().join("scaling.png")).unwrap();
    assert!(picture.starts_with(b"\x89PNG"));
    let side = |at: usize| u32::from_be_bytes(picture[at..at + 4].try_into().unwrap());
    assert_eq!([side(16), side(20)], [1500, 840]);
}

#[test]
fn scaling_leaves_out_what_does_not_fit_and_says_so() {
    let place = Workplace::new();
    let args = [
        "scaling",
        "--from",
        "500",
        "--to",
        "1e5",
        "--works",
        "lists,count",
    ];
    let limits = [
        "--cloud",
        "uniform",
        "--memory-mib",
        "1",
        "--repetitions",
        "1",
    ];
    let series = [
        &args[..],
        &limits,
        &["--radius", "3", "--output", "few.png"],
    ]
    .concat();
    let summary = place.json(&[&series[..], &["--json"]].concat());
    let (_, timed) = points_and_works(&summary, "points");
    let (skipped, left_out) = points_and_works(&summary, "skipped");
    // Lists of 1,400 and 4,200 points need some 0.6 and 1.9 MiB, 12,000 points 1.2 MiB without lists.
    assert_eq!(
        timed,
        [
            (500, "lists"),
            (500, "count"),
            (1_400, "lists"),
            (1_400, "count"),
            (4_200, "count")
        ]
    );
    let beyond = [(4_200, "lists"), (12_000, "lists"), (12_000, "count")];
    assert_eq!(left_out[..3], beyond, "in the order of the sizes");
    assert_eq!(left_out.last(), Some(&(100_000, "count")));
    for skip in skipped {
        assert_eq!(skip["bytes_allowed"], 1 << 20);
        assert!(skip["bytes_needed"].as_u64().unwrap() > 1 << 20);
    }
    assert!(place.0.path().join("few.png").exists());
    let plain = place.run(&series);
    let lines = String::from_utf8_lossy(&plain.stdout).into_owned();
    assert!(
        lines.contains("left out: lists of 4,200 points need"),
        "{lines}"
    );
    assert!(
        plain.stderr.is_empty(),
        "no progress bar without a terminal"
    );
}

#[test]
fn scaling_of_a_cloud_of_fixed_size_gives_the_radius_of_each_size() {
    let place = Workplace::new();
    let args = [
        "scaling", "--cloud", "plummer", "--from", "200", "--to", "2000",
    ];
    let summary = place.json(&[&args[..], &["--works", "count", "--json"]].concat());
    assert!(summary["radius"].is_null());
    let (entries, _) = points_and_works(&summary, "points");
    let radii: Vec<f64> = entries
        .iter()
        .map(|entry| entry["radius"].as_f64().unwrap())
        .collect();
    assert!(
        radii.len() == 3 && radii.is_sorted_by(|one, next| one > next),
        "{radii:?}"
    );
}

#[test]
fn info_says_what_would_be_used() {
    let place = Workplace::new();
    let info = place.json(&["info", "--json"]);
    assert_eq!(info["auto"], "cpu");
    assert!(info["cores"].as_u64().unwrap() > 0);
    let plain = place.run(&["info"]);
    assert!(String::from_utf8_lossy(&plain.stdout).contains("CPU lane"));
}

/// No library of CUDA lies there.
const NO_CUDA: (&str, &str) = ("NEARFIELD_CUDA_PATH", "/nowhere");

#[test]
fn what_the_gpu_lacks_is_said_with_its_remedy() {
    let place = Workplace::new();
    let plain = place.run_with(&[NO_CUDA], &["info"]);
    assert!(plain.status.success());
    let plain = String::from_utf8_lossy(&plain.stdout);
    for line in ["missing      nvrtc: ", "pip install", "nvidia-nvjitlink"] {
        assert!(plain.contains(line), "{plain}");
    }
    let json = place.run_with(
        &[NO_CUDA, ("NEARFIELD_CACHE_DIR", "/cache")],
        &["info", "--json"],
    );
    let gpu = &serde_json::from_slice::<Value>(&json.stdout).unwrap()["gpu"];
    assert_eq!(gpu["nvrtc"], Value::Null);
    assert_eq!(gpu["cache"], "/cache");
    let lacks = |what: &str| {
        let missing = gpu["missing"].as_array().unwrap();
        missing.iter().any(|missing| missing["what"] == what)
    };
    assert!(
        lacks("nvrtc") && lacks("nvjitlink") && lacks("device runtime"),
        "{gpu}"
    );
    assert_eq!(lacks("driver"), gpu["cuda"].is_null(), "{gpu}");

    place.refuses_with(&[NO_CUDA], "NVRTC", &["kernels", "check"]);
    let build = ["kernels", "build", "--arch", "90"];
    place.refuses_with(&[NO_CUDA], "/nowhere", &build);
    place.refuses_with(&[("NEARFIELD_CACHE_DIR", "")], "--output", &build);
    let wrong = place.run(&["kernels", "build", "--arch", "ninety"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn kernels_are_checked_and_built_where_the_compiler_is() {
    let place = Workplace::new();
    // For all architectures they are compiled by the tests of the crate that holds the compiler.
    let check = ["kernels", "check", "grid", "share", "children_probe"];
    let found = place.run(&[&check[..], &["--arch", "90", "--json"]].concat());
    if !found.status.success() {
        let errors = String::from_utf8_lossy(&found.stderr);
        let required = std::env::var("NEARFIELD_REQUIRE_NVRTC").is_ok_and(|value| value == "1");
        assert!(!required, "NEARFIELD_REQUIRE_NVRTC=1, but {errors}");
        eprintln!("skipped: {errors}");
        return;
    }
    let checked: Value = serde_json::from_slice(&found.stdout).unwrap();
    let programs = checked["programs"].as_array().unwrap();
    assert_eq!(programs.len(), 3, "{checked}");
    assert_eq!(checked["unknown"], serde_json::json!([]));
    for program in programs {
        assert!(program["bytes"].as_u64().unwrap() > 0, "{program}");
        assert_eq!(program["arch"], "sm_90");
    }
    place.refuses("does not know", &["kernels", "check", "--arch", "20"]);
    let unknown = ["kernels", "check", "gird"];
    place.refuses("no program \"gird\"; there are all_pairs, ", &unknown);

    let folder = place.0.path().join("cache");
    let args = [
        "kernels",
        "build",
        "--arch",
        "90,sm_90",
        "--arch",
        "9.0",
        "--output",
        text(&folder),
        "--json",
    ];
    let built = place.json(&args);
    let entries = built["programs"].as_array().unwrap();
    assert!(entries.len() > 50, "{built}");
    for entry in entries {
        let bytes = std::fs::metadata(entry["path"].as_str().unwrap())
            .unwrap()
            .len();
        assert!(
            bytes > entry["bytes"].as_u64().unwrap(),
            "a header comes before the code"
        );
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), entries.len());
    let file = place.file("file", "in the way");
    let args = ["kernels", "build", "--arch", "90", "--output", text(&file)];
    place.refuses("cannot write into", &args);
}

/// Two equal bodies on a circle of diameter 1 around each other, as a table.
const PAIR: &str = "name,mass,x,y,z,vx,vy,vz\n\
    a,1,-0.5,0,0,0,-0.7071067811865476,0\nb,1,0.5,0,0,0,0.7071067811865476,0\n";

#[test]
fn gravity_tells_energies_and_writes_frames_energies_a_picture_and_checkpoints() {
    let place = Workplace::new();
    let file = place.file("pair.csv", PAIR);
    let out = place.0.path().join("out");
    let run = |file: &[&str], steps: &str, more: &[&str]| {
        let args = [
            &["gravity"],
            file,
            &["--steps", steps, "--device", "cpu", "--json"],
            more,
        ];
        place.json(&args.concat())
    };
    let folder = [
        "--output",
        text(&out),
        "--frames",
        "3",
        "--checkpoint",
        "60",
    ];
    let begun = [&["--dt", "0.01"], &folder[..]].concat();
    let found = run(&[text(&file)], "100", &begun);
    let number = |found: &Value, name: &str, part: &str| found[name][part].as_f64().unwrap();
    assert_eq!(
        (&found["bodies"], &found["steps"], &found["frames"]),
        (&2.into(), &100.into(), &3.into())
    );
    assert!(
        (number(&found, "energy_before", "total") + 0.5).abs() < 1e-12,
        "{found}"
    );
    assert!(
        found["energy_change"].as_f64().unwrap().abs() < 1e-4,
        "{found}"
    );
    for name in [
        "frame_0000.vtp",
        "frame_0001.npy",
        "frame_0002.vtp",
        "energy.csv",
        "gravity.png",
    ] {
        assert!(
            std::fs::metadata(out.join(name)).unwrap().len() > 0,
            "{name}"
        );
    }
    assert_eq!(
        std::fs::read_to_string(out.join("energy.csv"))
            .unwrap()
            .lines()
            .count(),
        4
    );

    // A run that goes on from step 60 ends with the bytes of the one that was not interrupted.
    let last = std::fs::read(out.join("frame_0002.npy")).unwrap();
    let checkpoint = out.join("gravity.checkpoint");
    let kept = place.0.path().join("kept");
    std::fs::copy(&checkpoint, &kept).unwrap();
    let found = run(&["--restart", text(&kept)], "100", &folder);
    assert_eq!(
        (&found["first_step"], &found["dt"]),
        (&60.into(), &0.01.into())
    );
    assert_eq!(std::fs::read(out.join("frame_0002.npy")).unwrap(), last);
    place.refuses(
        "--dt 0.5",
        &[
            "gravity",
            "--restart",
            text(&kept),
            "--steps",
            "100",
            "--dt",
            "0.5",
        ],
    );
    place.refuses(
        "f64",
        &[
            "gravity",
            "--restart",
            text(&kept),
            "--steps",
            "9",
            "--precision",
            "f32",
        ],
    );
    let bare = place.file("bare.csv", "x,y,z\n0,0,0\n");
    place.refuses(
        "no column mass",
        &["gravity", text(&bare), "--steps", "1", "--dt", "1"],
    );
}

#[test]
fn coulomb_gives_the_potentials_of_atoms_as_arrays_and_images() {
    let place = Workplace::new();
    // One atom on a grid point, which it does not count for, and one beside the grid.
    let file = place.file("atoms.csv", "x,y,z,charge\n0,0,0,2\n0,0,5,-1\n");
    let array = place.0.path().join("potential.npy");
    let grid = [
        "--grid",
        "3,2,1",
        "--spacing",
        "1",
        "--origin",
        "0,0,0",
        "--device",
        "cpu",
        "--json",
    ];
    let run = |more: &[&str]| place.json(&[&["coulomb", text(&file)], &grid[..], more].concat());
    let potential = |x: f64, y: f64, cutoff: f64| {
        let [near, far] = [x.hypot(y), x.hypot(y).hypot(5.0)];
        let from = |charge: f64, d: f64| {
            if d > 0.0 && d <= cutoff {
                charge / d
            } else {
                0.0
            }
        };
        from(2.0, near) + from(-1.0, far)
    };
    for (more, cutoff, most) in [
        (&[][..], f64::INFINITY, 1e-6),
        (&["--exact", "--precision", "f64"], f64::INFINITY, 1e-15),
        (&["--cutoff", "2"], 2.0, 1e-6),
    ] {
        let found = run(&[more, &["--output", text(&array)]].concat());
        assert_eq!(found["atoms"], 2);
        let bytes = std::fs::read(&array).unwrap();
        let npy = npyz::NpyFile::new(&bytes[..]).unwrap();
        assert_eq!(npy.shape(), [1, 2, 3]);
        let values: Vec<f64> = match more.contains(&"f64") {
            true => npy.into_vec().unwrap(),
            false => npy
                .into_vec::<f32>()
                .unwrap()
                .into_iter()
                .map(f64::from)
                .collect(),
        };
        for (n, value) in values.iter().enumerate() {
            let expected = potential((n % 3) as f64, (n / 3) as f64, cutoff);
            assert!(
                (value - expected).abs() <= most,
                "{more:?}: point {n}: {value}, {expected}"
            );
        }
        let max = values.iter().copied().fold(f64::MIN, f64::max);
        assert!((found["max"].as_f64().unwrap() - max).abs() < 1e-12);
    }
    let found = run(&["--field", "--output", text(&array)]);
    assert_eq!(found["output"].as_array().unwrap().len(), 2);
    let bytes = std::fs::read(place.0.path().join("potential_field.npy")).unwrap();
    let npy = npyz::NpyFile::new(&bytes[..]).unwrap();
    assert_eq!(npy.shape(), [1, 2, 3, 3]);
    let field: Vec<f32> = npy.into_vec().unwrap();
    // At (1, 0, 0): along x from the charge of 2, and towards the one of -1.
    let far = 26f32.powf(-1.5);
    for (found, expected) in field[3..6].iter().zip([2.0 - far, 0.0, 5.0 * far]) {
        assert!((found - expected).abs() < 1e-6, "{field:?}");
    }
    let image = place.0.path().join("potential.vti");
    run(&["--field", "--output", text(&image)]);
    let start = String::from_utf8_lossy(&std::fs::read(&image).unwrap()[..600]).into_owned();
    assert!(
        start.contains("WholeExtent=\"0 2 0 1 0 0\"") && start.contains("\"field\""),
        "{start}"
    );
    let bare = place.file("bare.txt", "0 0 0\n");
    let refused = |culprit: &str, file: &Path, more: &[&str]| {
        place.refuses(
            culprit,
            &[&["coulomb", text(file), "--grid", "2,2,2"], more].concat(),
        );
    };
    refused("3 columns", &bare, &["--spacing", "1"]);
    refused("spacing is 0", &file, &["--spacing", "0"]);
    refused(
        ".npy or .vti",
        &file,
        &["--spacing", "1", "--output", "potential.csv"],
    );
}

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
