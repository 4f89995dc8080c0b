//! `--trace` and `nearfield trace`, from recording to every way of showing it.

use crate::words;
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};
use tempfile::TempDir;

fn nearfield(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nearfield"))
        .args(arguments)
        .output()
        .unwrap()
}

fn succeed(arguments: &[&str]) -> String {
    let output = nearfield(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&succeed(arguments)).unwrap()
}

/// A trace of a short bench, and what the bench printed.
fn bench(folder: &Path, name: &str) -> (PathBuf, Value) {
    let path = folder.join(name);
    let printed = json(&words(&format!(
        "bench --points 20000 --repetitions 5 --json --threads 2 --trace {}",
        path.to_str().unwrap()
    )));
    (path, printed)
}

#[test]
fn a_bench_is_recorded_and_summarised() {
    let folder = TempDir::new().unwrap();
    let (path, printed) = bench(folder.path(), "bench.jsonl");
    let summary = json(&["trace", "summary", path.to_str().unwrap(), "--json"]);
    // The uncounted repetition is a step too.
    assert_eq!(summary["steps"], 6);
    assert_eq!(summary["damage"], "");
    assert_eq!(summary["program"]["name"], "nearfield");
    let stages = summary["stages"].as_object().unwrap();
    for stage in [
        "bench.step",
        "engine.update",
        "cpu.check",
        "grid.sort",
        "engine.find_neighbors",
        "cpu.search",
    ] {
        assert_eq!(stages[stage]["count"], 6, "{stage}");
    }
    let found = stages["cpu.search"]["pairs"].as_u64().unwrap();
    let last = printed["pairs"].as_u64().unwrap();
    // Points move a little from one repetition to the next.
    assert!(
        (found as f64 / (6 * last) as f64 - 1.0).abs() < 0.02,
        "{found} and {last}"
    );
    let work = stages["cpu.search"]["work"].as_u64().unwrap();
    assert!(
        work > 2 * found && work < 20 * found,
        "{work} tested for {found}"
    );
    let cpu = &summary["backends"]["cpu"];
    let sum: f64 = ["busy", "waiting", "idle"]
        .iter()
        .map(|part| cpu[part].as_f64().unwrap())
        .sum();
    assert!((sum / summary["total_ms"].as_f64().unwrap() - 1.0).abs() < 1e-9);
    assert!(cpu["utilisation"].as_f64().unwrap() > 0.5);
    let text = succeed(&["trace", "summary", path.to_str().unwrap()]);
    assert!(
        text.starts_with("verdict     ")
            && text.contains("\nprogram     nearfield ")
            && text.contains("\ngrid.sort "),
        "{text}"
    );
}

#[test]
fn an_emulated_device_is_analysed_on_its_virtual_clock() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("emulated.jsonl");
    let path = path.to_str().unwrap();
    let printed = json(&words(&format!(
        "bench --points 20000 --repetitions 5 --device emulated --json --trace {path}"
    )));
    let summary = json(&["trace", "summary", path, "--json"]);
    assert_eq!(
        (&summary["clock"], &summary["steps"]),
        (&"virtual".into(), &6.into())
    );
    let verdict = summary["verdict"].as_str().unwrap();
    assert!(
        verdict.starts_with("on the emulated device's virtual clock, "),
        "{verdict}"
    );
    let total = summary["total_ms"].as_f64().unwrap();
    let stages = summary["stages"].as_object().unwrap();
    // The stages that stand in for the device have other times, and none here.
    assert!(
        stages.keys().all(|name| name.ends_with("(subregions)")),
        "{stages:?}"
    );
    for (name, stage) in stages {
        assert!(
            stage["self_ms"].as_f64().unwrap() <= total,
            "{name}: {stage}"
        );
    }
    assert!(total > 0.0, "{printed}");
    let text = succeed(&["trace", "summary", path]);
    assert!(text.contains("\nclock       virtual: "), "{text}");
    let markdown = succeed(&["trace", "summary", path, "--markdown"]);
    assert!(
        markdown.starts_with("**On the emulated device's virtual clock, ")
            && markdown.contains("| backend | computes |"),
        "{markdown}"
    );
    let (real, _) = bench(folder.path(), "real.jsonl");
    let refused = nearfield(&["trace", "compare", path, real.to_str().unwrap()]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        said.contains("emulated.jsonl has times of an emulated"),
        "{said}"
    );
}

#[test]
fn what_a_fixed_threshold_costs_is_said() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("fixed.jsonl");
    let path = path.to_str().unwrap();
    let device = "--device emulated:speed=8,bandwidth=10";
    succeed(&words(&format!(
        "bench --points 20000 --repetitions 5 {device} --policy fixed:100000 --trace {path}"
    )));
    let summary = json(&["trace", "summary", path, "--json"]);
    let causes: Vec<&str> = (summary["findings"].as_array().unwrap().iter())
        .map(|one| one["cause"].as_str().unwrap())
        .collect();
    assert!(causes.contains(&"idle_backend"), "{summary}");
}

/// `docs/load-balance.md` shows the first decisions of a run as `step N: REASON`, wrapped.
#[test]
fn the_recorded_run_of_the_documentation_is_recorded_so() {
    let page = include_str!("../../../../../docs/load-balance.md");
    let (_, section) = page.split_once("## Policy `band`").unwrap();
    let mut blocks = section.split("```").skip(1).step_by(2);
    let command = blocks.next().unwrap().lines().nth(1).unwrap();
    let shown = blocks.next().unwrap().strip_prefix("text").unwrap();
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("band.jsonl");
    let arguments = command.strip_prefix("nearfield ").unwrap();
    let arguments = arguments.replace("band.jsonl", path.to_str().unwrap());
    succeed(&words(&arguments));
    let trace = fs::read_to_string(&path).unwrap();
    let records = trace
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let decisions = records.filter(|record| record["record"] == "retune");
    let said = decisions.map(|record| {
        let reason = record["reason"].as_str().unwrap().to_owned();
        format!("step {}: {reason}", record["step"])
    });
    let shown = words(shown).join(" ");
    let is_shown = |step: &usize| shown.contains(&format!("step {step}: "));
    let first = (0..).take_while(is_shown).count();
    assert!(first >= 6, "{shown}");
    let said: Vec<_> = said.take(first).collect();
    assert_eq!(shown, said.join(" "));
}

#[test]
fn what_the_cpu_does_after_a_fault_is_on_the_virtual_clock_too() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("fault.jsonl");
    let path = path.to_str().unwrap();
    succeed(&words(&format!(
        "bench --points 20000 --repetitions 5 --device emulated:fail=oom@2 --trace {path}"
    )));
    let table = succeed(&["trace", "export", path, "--format", "activities-csv"]);
    // In the step that fails the CPU has a second pass, after everything that the device did.
    let of_step: Vec<Vec<&str>> = (table.lines().map(|line| line.split(',').collect()))
        .filter(|row: &Vec<&str>| row[0] == "2")
        .collect();
    let number = |text: &str| text.parse::<f64>().unwrap();
    let (again, before): (Vec<_>, Vec<_>) = of_step.iter().partition(|row| row[5] == "1");
    assert_eq!(again.len(), 1, "{table}");
    assert_eq!((again[0][1], again[0][2]), ("cpu", "compute"));
    for row in before {
        assert!(
            number(row[7]) <= number(again[0][6]) + 1e-6,
            "{row:?}, {again:?}"
        );
    }
}

#[test]
fn neighbors_of_a_file_are_recorded_too() {
    let folder = TempDir::new().unwrap();
    let (points, path) = (
        folder.path().join("points.csv"),
        folder.path().join("trace.jsonl"),
    );
    fs::write(&points, "x,y,z\n0,0,0\n0.5,0,0\n3,0,0\n").unwrap();
    let path = path.to_str().unwrap();
    succeed(&words(&format!(
        "neighbors {} --radius 1 --trace {path}",
        points.to_str().unwrap()
    )));
    let summary = json(&["trace", "summary", path, "--json"]);
    assert_eq!(
        (&summary["steps"], &summary["stages"]["cpu.search"]["pairs"]),
        (&1.into(), &2.into())
    );
}

#[test]
fn the_dam_break_marks_its_steps() {
    let folder = TempDir::new().unwrap();
    let (output, path) = (folder.path().join("dam"), folder.path().join("dam.jsonl"));
    let printed = json(&words(&format!(
        "dam-break --dim 2 --particles 200 --seconds 0.02 --frames 1 --json --output {} --trace {}",
        output.to_str().unwrap(),
        path.to_str().unwrap()
    )));
    let summary = json(&["trace", "summary", path.to_str().unwrap(), "--json"]);
    assert_eq!(summary["steps"], printed["steps"]);
    let stages = summary["stages"].as_object().unwrap();
    for stage in [
        "sph.step",
        "sph.kick",
        "sph.forces",
        "engine.traverse (Forces)",
        "cpu.traverse (Forces)",
    ] {
        assert!(stages.contains_key(stage), "{stage}");
    }
}

#[test]
fn steps_of_both_backends_on_an_emulated_machine_are_told_apart() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("hybrid.jsonl");
    let path = path.to_str().unwrap();
    let run = || {
        let printed = json(&words(&format!(
            "bench --points 20000 --repetitions 40 --json --threads 2 --device emulated:speed=3,bandwidth=10 --trace {path}"
        )));
        (printed, json(&["trace", "summary", path, "--json"]))
    };
    // On a busy machine the times of the CPU may not settle.
    let settled = |(_, summary): &(Value, Value)| summary["settle_steps"].is_u64();
    let (printed, summary) = (0..5)
        .map(|_| run())
        .find(settled)
        .expect("one of five runs settles");
    assert_eq!(
        (&summary["steps"], &summary["damage"]),
        (&41.into(), &"".into())
    );
    let device = summary["device"].as_str().unwrap();
    assert!(device.starts_with("emulated:speed=3,"), "{device}");
    for backend in ["cpu", "gpu"] {
        let parts = &summary["backends"][backend];
        let busy = parts["busy"].as_f64().unwrap();
        let sum = busy + parts["waiting"].as_f64().unwrap() + parts["idle"].as_f64().unwrap();
        let total = summary["total_ms"].as_f64().unwrap();
        assert!(
            busy > 0.0 && (sum / total - 1.0).abs() < 1e-9,
            "{backend}: {parts}"
        );
    }
    // The GPU is three times as fast, but small copies take their time: both have work to the end.
    let share = summary["share"]["settled_at"].as_f64().unwrap();
    assert!((0.2..0.8).contains(&share), "{}", summary["share"]);
    for part in ["imbalance", "overlap"] {
        let value = summary[part].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&value), "{part}: {value}");
    }
    assert!(summary["retunes"].as_u64().unwrap() > 0);
    assert!(summary["settle_steps"].as_u64().unwrap() <= 30);
    let backends = printed["backends"][0]["backends"].as_array().unwrap();
    assert_eq!(backends.len(), 2, "{printed}");
    let page = folder.path().join("hybrid.html");
    succeed(&["trace", "report", path, "--output", page.to_str().unwrap()]);
    let page = fs::read_to_string(&page).unwrap();
    assert!(
        page.contains("everything to the") || page.contains("theta"),
        "no decisions"
    );
}

#[test]
fn a_trace_becomes_a_page_tables_and_events() {
    let folder = TempDir::new().unwrap();
    let (path, _) = bench(folder.path(), "bench.jsonl");
    let path = path.to_str().unwrap();
    let page = folder.path().join("report.html");
    let written = json(&words(&format!(
        "trace report {path} --output {} --json",
        page.to_str().unwrap()
    )));
    let text = fs::read_to_string(&page).unwrap();
    assert_eq!(written["bytes"].as_u64().unwrap(), text.len() as u64);
    assert!(text.starts_with("<!doctype html>") && text.contains("\"cpu.search\""));
    let table = succeed(&["trace", "export", path, "--format", "csv"]);
    assert_eq!(table.lines().count(), 7);
    let events: Value = serde_json::from_str(&succeed(&["trace", "export", path])).unwrap();
    assert!(events["traceEvents"].as_array().unwrap().len() > 30);
    let packets = folder.path().join("trace.pftrace");
    let to = packets.to_str().unwrap();
    succeed(&words(&format!(
        "trace export {path} --format perfetto --output {to}"
    )));
    // The first field of a trace is a packet.
    assert_eq!(fs::read(&packets).unwrap()[0], 0x0a);
    let activities = folder.path().join("activities.csv");
    let to = activities.to_str().unwrap();
    succeed(&words(&format!(
        "trace export {path} --format activities-csv --output {to}"
    )));
    assert!(fs::read_to_string(&activities).unwrap().lines().count() > 18);
}

#[test]
fn two_traces_are_compared() {
    let folder = TempDir::new().unwrap();
    let (one, _) = bench(folder.path(), "one.jsonl");
    let (other, _) = bench(folder.path(), "other.jsonl");
    let (one, other) = (one.to_str().unwrap(), other.to_str().unwrap());
    let same = json(&["trace", "compare", one, one, "--json"]);
    assert_eq!(
        (&same["step"]["verdict"], &same["step"]["ratio"]),
        (&"same".into(), &1.0.into())
    );
    let text = succeed(&["trace", "compare", one, other]);
    assert!(
        text.contains("\ngrid.sort ") && text.contains("\ncpu busy "),
        "{text}"
    );
}

#[test]
fn a_cut_trace_is_shown_with_a_warning_and_a_foreign_file_is_refused() {
    let folder = TempDir::new().unwrap();
    let (path, _) = bench(folder.path(), "bench.jsonl");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() * 2 / 3]).unwrap();
    let output = nearfield(&["trace", "export", path.to_str().unwrap(), "--format", "csv"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success() && said.contains("was not closed"),
        "{said}"
    );
    fs::write(&path, "x,y,z\n").unwrap();
    let refused = nearfield(&["trace", "summary", path.to_str().unwrap()]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        said.contains("is not a trace: its first line is not JSON") && said.lines().count() == 1,
        "{said}"
    );
}

#[test]
fn a_full_disk_is_said_once_and_the_run_goes_on() {
    if !Path::new("/dev/full").exists() {
        eprintln!("skipped: there is no /dev/full");
        return;
    }
    let output = nearfield(&words(
        "bench --points 2000 --repetitions 2 --json --trace /dev/full",
    ));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert_eq!(
        said.matches("cannot write /dev/full: No space left")
            .count(),
        1,
        "{said}"
    );
    serde_json::from_slice::<Value>(&output.stdout).unwrap();
}
