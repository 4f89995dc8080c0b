//! `nearfield info` and `nearfield kernels`.

use crate::{Workplace, text, words};
use serde_json::Value;
use std::path::Path;

#[test]
fn info_says_what_would_be_used() {
    let place = Workplace::new();
    let info = place.json(&["info", "--json"]);
    assert_eq!(info["auto"], "cpu");
    assert!(info["cores"].as_u64().unwrap() > 0);
    let plain = place.run(&["info"]);
    assert!(String::from_utf8_lossy(&plain.stdout).contains("CPU backend"));
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

#[cfg(unix)]
#[test]
fn a_cache_that_other_users_may_write_is_refused_with_the_reason() {
    use std::{fs, os::unix::fs::PermissionsExt};
    let place = Workplace::new();
    let folder = place.0.path().join("cache");
    fs::create_dir(&folder).unwrap();
    let link = place.0.path().join("link");
    std::os::unix::fs::symlink(&folder, &link).unwrap();
    let mode = |mode| fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
    let lack = |named: &Path| {
        let info = place.run_with(&[("NEARFIELD_CACHE_DIR", text(named))], &["info", "--json"]);
        assert!(info.status.success());
        let gpu = &serde_json::from_slice::<Value>(&info.stdout).unwrap()["gpu"];
        let missing = gpu["missing"].as_array().unwrap();
        let lack = missing.iter().find(|lack| lack["what"] == "cache")?;
        Some(lack["message"].as_str().unwrap().to_owned())
    };
    mode(0o700);
    assert_eq!(lack(&folder), None);
    for (refused, who) in [
        (0o770, "its group may write"),
        (0o1777, "its group and every user may write"),
    ] {
        mode(refused);
        for named in [&folder, &link] {
            let said = lack(named).unwrap();
            let expected = ["NEARFIELD_CACHE_DIR", text(named), who];
            assert!(expected.iter().all(|part| said.contains(part)), "{said}");
            let build = ["kernels", "build", "--arch", "90"];
            place.refuses_with(&[("NEARFIELD_CACHE_DIR", text(named))], who, &build);
            let build = ["kernels", "build", "--arch", "90", "--output", text(named)];
            place.refuses(who, &build);
        }
    }
    let plain = place.run_with(&[("NEARFIELD_CACHE_DIR", text(&folder))], &["info"]);
    let plain = String::from_utf8_lossy(&plain.stdout);
    assert!(plain.contains("missing      cache: "), "{plain}");

    mode(0o700);
    if std::os::unix::fs::chown(&folder, Some(54321), None).is_ok() {
        assert!(lack(&folder).unwrap().contains("belongs to the user 54321"));
    } else {
        eprintln!("not tested: folders of other users, which only root can make");
    }
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
    // Sorting is a program in either precision.
    assert_eq!(programs.len(), 4, "{checked}");
    assert_eq!(checked["unknown"], serde_json::json!([]));
    for program in programs {
        assert!(program["bytes"].as_u64().unwrap() > 0, "{program}");
        assert_eq!(program["arch"], "sm_90");
    }
    place.refuses("does not know", &["kernels", "check", "--arch", "20"]);
    let unknown = ["kernels", "check", "gird"];
    place.misused("no program \"gird\": use one of all_pairs, ", &unknown);

    let folder = place.0.path().join("cache");
    let args = format!(
        "kernels build share ascend children_probe --arch 90,sm_90 --arch 9.0 --output {} --json",
        text(&folder)
    );
    let args = words(&args);
    let built = place.json(&args);
    let entries = built["programs"].as_array().unwrap();
    assert_eq!(entries.len(), 4, "{built}");
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
    let args = [
        "kernels",
        "build",
        "share",
        "--arch",
        "90",
        "--output",
        text(&file),
    ];
    place.refuses("cannot write into", &args);
    let unknown = ["kernels", "build", "shar", "--arch", "90"];
    place.misused("no program \"shar\": use one of all_pairs, ", &unknown);
}
