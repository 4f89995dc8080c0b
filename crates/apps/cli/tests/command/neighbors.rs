//! `nearfield neighbors`.

use crate::{Workplace, text, words};
use nearfield_testkit::{
    cloud::Cloud,
    conformance::Case,
    digest,
    oracle::{ListKind, Pairing, Problem},
    random::Random,
};
use std::path::Path;

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
    (pairs, digest::digest(&lists).unwrap().to_string())
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
    let digest = digest::digest(&lists).unwrap().to_string();
    for file in [binary, text_file] {
        let args = ["neighbors", text(&file), "--radius", "0.1", "--json"];
        let found = place.json(&[&args[..], &["--precision", "f64"]].concat());
        assert_eq!(found["digest"], digest, "{file:?}");
        assert_eq!(found["radius"], 0.1);
        assert_eq!(found["precision"], "f64");
        // In f32 all of these coordinates are one, so that is not taken unless it is asked for.
        let rounded = place.run(&[&args[..], &["--precision", "f32"]].concat());
        let warning = String::from_utf8(rounded.stderr).unwrap();
        assert!(warning.contains("warning: f32 moves point"), "{warning}");
        let rounded: serde_json::Value = serde_json::from_slice(&rounded.stdout).unwrap();
        assert_eq!(rounded["pairs"], 400 * 399);
        assert_eq!(rounded["precision"], "f32");
        let chosen = place.run(&args);
        let notice = String::from_utf8(chosen.stderr).unwrap();
        assert!(notice.contains("using f64"), "{notice}");
        assert_eq!(notice.lines().count(), 1, "{notice}");
        let chosen: serde_json::Value = serde_json::from_slice(&chosen.stdout).unwrap();
        assert_eq!(chosen["digest"], digest, "{file:?}");
        assert_eq!(chosen["precision"], "f64");
    }
    // 0.1 as f32 is more than 0.1.
    let pair = place.file("pair.csv", "0,0,0\n0.100000001,0,0\n");
    let args = ["neighbors", text(&pair), "--radius", "0.1", "--json"];
    assert_eq!(place.json(&args)["pairs"], 2);
    let args = [&args[..], &["--precision", "f64"]].concat();
    assert_eq!(place.json(&args)["pairs"], 0);
    place.refuses(
        "single precision",
        &[&args[..], &["--device", "hybrid:0"]].concat(),
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
        // One or two vectors that lean along open axes, whose own vectors make no difference.
        (
            "7.9 0 0 3 8 0 2.25 -1 2.5",
            "F T T",
            [None, Some([3.0, 8.0, 0.0]), Some(vectors[2])],
        ),
        (
            "1 2 3 1 2 3 0 0 0",
            "T F F",
            [Some([1.0, 2.0, 3.0]), None, None],
        ),
        (
            "5 0 0 0 5 0 0.2 0.4 0.6",
            "F F T",
            [None, None, Some([0.2, 0.4, 0.6])],
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
        let double = format!(
            "neighbors {} --radius 1.5 --json --precision f64",
            text(&file)
        );
        let double = words(&double);
        assert!(
            place.json(&double)["pairs"].as_u64().unwrap() > 0,
            "{lattice}"
        );
    }
}

#[test]
fn real_frames_have_the_oracles_neighbours() {
    let place = Workplace::new();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../support/io/tests/data/frames");
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
            "{pairs} pairs are not a fluid"
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
    place.json(&words(&format!(
        "neighbors {} --radius 1.2 --json --output lists.npz",
        text(&file)
    )));
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
fn backends_are_those_that_ran() {
    let place = Workplace::new();
    let file = place.points("cloud.npy", &Cloud::Uniform.points(20_000, 3));
    let args = format!("neighbors {} --radius 1.2 --json --device", text(&file));
    let args = words(&args);
    let alone = place.json(&[&args[..], &["cpu"]].concat());
    assert_eq!(alone["backends"].as_array().unwrap().len(), 1);
    assert_eq!(alone["backends"][0]["name"], "cpu");
    assert_eq!(alone["backends"][0]["points"], 20_000);
    assert_eq!(
        alone["backends"][0]["milliseconds"],
        alone["milliseconds"]["search"]
    );
    assert!(alone["reason"].as_str().is_some());
    let both = place.json(&[&args[..], &["emulated"], &["--policy", "fixed:12"]].concat());
    assert_eq!(both["digest"], alone["digest"]);
    let backends = both["backends"].as_array().unwrap();
    let names: Vec<_> = backends
        .iter()
        .map(|backend| backend["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["cpu", "gpu"]);
    let points: Vec<_> = backends
        .iter()
        .map(|backend| backend["points"].as_u64().unwrap())
        .collect();
    assert_eq!(points.iter().sum::<u64>(), 20_000, "{both}");
    assert!(points.iter().all(|&points| points > 0), "{both}");
    for backend in backends {
        assert!(backend["milliseconds"].as_f64().unwrap() > 0.0, "{both}");
    }
}

#[test]
fn a_box_in_the_plane_has_two_lengths() {
    let place = Workplace::new();
    let flat: Vec<[f32; 3]> = (Cloud::Uniform.points(300, 5).into_iter())
        .map(|[x, y, _]| [x, y, 0.0])
        .collect();
    let lines: String = flat.iter().map(|[x, y, _]| format!("{x},{y}\n")).collect();
    let plane = place.file("plane.csv", format!("x,y\n{lines}"));
    let space = place.points("space.npy", &flat);
    let (pairs, digest) = oracle_digest(&flat, 1.5, [Some(7.9), Some(8.0), None]);
    for (file, more) in [(&plane, &[][..]), (&space, &["--periodic", "xy"])] {
        let args = format!("neighbors {} --radius 1.5 --json --box 7.9,8", text(file));
        let args = words(&args);
        let found = place.json(&[&args[..], more].concat());
        assert_eq!(found["pairs"], pairs);
        assert_eq!(found["digest"], digest);
    }
    let args = format!("neighbors {} --radius 1.5 --box 7.9,8", text(&space));
    let args = words(&args);
    place.misused("--periodic xy", &args);
}

#[test]
fn timing_commands_say_that_points_are_rounded() {
    let place = Workplace::new();
    place.file("far.csv", "x,y,z\n1e8,0,0\n100000001.3,0,0\n");
    for args in [
        &words("bench --cloud far.csv --radius 2 --repetitions 1")[..],
        &[
            "tune", "far.csv", "--radius", "2", "--rows", "2", "--steps", "2",
        ],
    ] {
        let output = place.run(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {errors}");
        assert!(errors.contains("f32 moves point 1"), "{args:?}: {errors}");
    }
}

#[test]
fn negative_numbers_are_those_of_their_flags() {
    let place = Workplace::new();
    place.file("v.csv", "0,0,0\n1,0,0\n");
    place.file("q.csv", "0,0,0,1\n");
    for (culprit, line) in [
        (
            "box length along x is -1",
            "neighbors v.csv --radius 0.1 --box -1,1,1",
        ),
        ("cut-off -1", "lj v.csv --cutoff -1"),
        ("time step is -1", "lj v.csv --cutoff 1 --steps 1 --dt -1"),
        ("spacing is -1", "coulomb q.csv --grid 2,2,2 --spacing -1"),
    ] {
        place.refuses(culprit, &words(line));
    }
    let output = place.run(&words("neighbors v.csv --radius 0.1 --threads -1"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors.contains("'-1' for '--threads"), "{errors}");
}

#[test]
fn a_view_shows_the_points_by_their_number_of_neighbours() {
    let place = Workplace::new();
    let points = [[0.0; 3], [0.5, 0.0, 0.0], [1.0, 0.0, 0.0], [9.0, 0.0, 0.0]];
    place.points("<b>.npy", &points);
    let output = place.run(&words("neighbors <b>.npy --radius 0.7 --view near.html"));
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && told.contains("wrote       near.html"),
        "{told}"
    );
    let page = std::fs::read_to_string(place.0.path().join("near.html")).unwrap();
    assert!(page.contains("<h1>&lt;b&gt;.npy, radius 0.7</h1>"));
    let scale = "\"name\":\"neighbours\",\"low\":0.0,\"high\":2.0,\"whole\":true";
    assert!(page.contains(scale) && page.contains("{\"points\":4,"));
    place.misused(
        "views are written as .html",
        &words("neighbors <b>.npy --radius 0.7 --view near.png"),
    );
    place.misused(
        "the extension '.foo' is not known",
        &words("neighbors a.foo --radius 0.7"),
    );
}
