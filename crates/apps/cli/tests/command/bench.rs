//! `nearfield bench`.

use crate::{Workplace, words};
use nearfield_testkit::cloud::Cloud;
use serde_json::Value;

#[test]
fn bench_reports_medians_pairs_and_a_checksum_for_every_work() {
    let place = Workplace::new();
    for work in ["lists", "geometry", "density", "count", "force"] {
        let args = format!("bench --points 3e3 --repetitions 2 --json --work {work}");
        let args = words(&args);
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
    let args = ["bench", "--points", "1000", "--repetitions", "1", "--json"];
    place.json(&[&args[..], &["--save-cloud", "cloud.npy"]].concat());
    let saved = nearfield_io::read_points(place.0.path().join("cloud.npy")).unwrap();
    assert_eq!(saved.positions, Cloud::Lattice.points(1000, 1));
}

#[test]
fn the_comparison_with_kiddo_runs_or_names_the_feature_it_needs() {
    let place = Workplace::new();
    let args = words("bench --points 1000 --repetitions 1 --json --compare");
    if cfg!(feature = "kiddo") {
        let compared = place.json(&args);
        assert_eq!(compared["compare"]["pairs"], compared["pairs"]);
    } else {
        place.misused("--features kiddo", &args);
    }
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
        &words("scaling --from 1e3 --to 8e3 --work density,lists,density"),
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
    let args = words("scaling --from 500 --to 1e5 --works lists,count");
    let limits = words("--cloud uniform --memory-mib 1 --repetitions 1");
    let series = [
        &args[..],
        &limits,
        &["--radius", "3", "--output", "few.png"],
    ]
    .concat();
    let summary = place.json(&[&series[..], &["--json"]].concat());
    let (_, timed) = points_and_works(&summary, "points");
    let (skipped, left_out) = points_and_works(&summary, "skipped");
    // Lists of 1,400 and 4,200 points need some 0.6 and 1.9 MiB, 12,000 points 1.2 MiB without
    // lists.
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
