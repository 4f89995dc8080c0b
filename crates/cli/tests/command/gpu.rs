//! `nearfield info` and `nearfield kernels`.

use crate::{Workplace, text};
use serde_json::Value;

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
