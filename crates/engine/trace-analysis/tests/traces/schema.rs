//! `docs/trace.schema.json` describes what is written.

use crate::made::{at, bytes, span};
use nearfield_trace_analysis::model::{
    GPU_LOST, Lost, Note, Occupancy, Record, Retune, Step, Subregion, Theta, VIRTUAL,
    Value as Field,
};
use serde_json::Value;
use std::{collections::BTreeSet, env, fs, process::Command};

fn path() -> String {
    format!(
        "{}/../../../docs/trace.schema.json",
        env!("CARGO_MANIFEST_DIR")
    )
}

/// One record of every kind with every field.
fn full() -> Vec<Record> {
    let mut stage = span("gpu.upload", (2, 1), at(1, 2));
    for (name, value) in [
        ("points", Field::Count(3)),
        ("ratio", Field::Number(0.5)),
        ("offset", Field::Signed(-2)),
        ("kernel", Field::Text("Density".into())),
        ("fast", Field::Bool(true)),
    ] {
        stage.fields.insert(name.into(), value);
    }
    let theta = Some(Theta(f64::INFINITY));
    let subregion = Subregion {
        step: Some(1),
        subregion: 2,
        backend: "gpu".into(),
        rank: Some(1),
        pass: 1,
        points: 3,
        cells: 2,
        work: 70,
        pairs: Some(20),
        bytes_up: 48,
        bytes_down: 12,
        upload: Some(at(1, 2)),
        compute: Some(at(2, 3)),
        download: Some(at(3, 4)),
        exchange: Some(at(4, 5)),
        clock_error: 700,
        clock: Some(VIRTUAL.into()),
        job: 3,
        origin: Some(1),
        theta: Some(Theta(12.5)),
        theta_ties: Some(4),
    };
    let retune = Retune {
        step: Some(1),
        at: 9,
        kernel: Some("lists".into()),
        targets: Some(0),
        sources: Some(1),
        subregion: Some(2),
        policy: "band".into(),
        theta_before: Some(Theta(3.0)),
        theta,
        share_before: Some(0.0),
        share: Some(1.0),
        exploration: true,
        reason: GPU_LOST.into(),
    };
    vec![
        Record::Span(stage.clone()),
        Record::Step(Step {
            step: 1,
            time: at(0, 9),
            points: Some(5),
            pairs: Some(6),
            theta,
            share: Some(0.5),
        }),
        Record::Subregion(subregion.clone()),
        Record::Retune(retune.clone()),
        Record::Job(Subregion {
            step: None,
            ..subregion.clone()
        }),
        Record::JobRetune(Retune {
            step: None,
            ..retune.clone()
        }),
        Record::Occupancy(Occupancy {
            at: 3,
            of: "cells".into(),
            one_in: 2,
            counts: vec![[0, 4], [1, 5]],
        }),
        Record::Note(Note {
            at: 4,
            level: "warn".into(),
            message: "the CPU backend takes over".into(),
            fields: stage.fields,
        }),
        Record::Lost(Lost { records: 3 }),
    ]
}

#[test]
fn the_schema_names_every_field_of_every_record() {
    let schema: Value = serde_json::from_str(&fs::read_to_string(path()).unwrap()).unwrap();
    let text = String::from_utf8(bytes(&full())).unwrap();
    let mut kinds = BTreeSet::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let kind = line["record"].as_str().unwrap().to_owned();
        let keys = |value: &Value| -> BTreeSet<String> {
            value.as_object().unwrap().keys().cloned().collect()
        };
        assert_eq!(
            keys(&line),
            keys(&schema["$defs"][&kind]["properties"]),
            "{kind}"
        );
        kinds.insert(kind);
    }
    let described = schema["allOf"].as_array().unwrap().iter();
    let described: BTreeSet<String> = described
        .map(|rule| {
            rule["if"]["properties"]["record"]["const"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(kinds, described);
}

/// Prints for every line of standard input whether the schema allows it.
const CHECK: &str = "
import json, sys
from jsonschema import Draft202012Validator
schema = json.load(open(sys.argv[1]))
Draft202012Validator.check_schema(schema)
validator = Draft202012Validator(schema)
for line in open(sys.argv[2]):
    errors = [error.message for error in validator.iter_errors(json.loads(line))]
    print('yes' if not errors else 'no: ' + errors[0].replace('\\n', ' '))
";

/// The interpreter with jsonschema that `NEARFIELD_PYTHON` names; without one the test is skipped,
/// or fails when `NEARFIELD_REQUIRE_PYTHON=1`.
fn python() -> Option<String> {
    let python = env::var("NEARFIELD_PYTHON").unwrap_or_default();
    let import = Command::new(&python)
        .args(["-c", "import jsonschema"])
        .output();
    if import.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    let required = env::var_os("NEARFIELD_REQUIRE_PYTHON").is_some_and(|value| value == "1");
    assert!(
        !required,
        "{python:?} cannot import jsonschema, and NEARFIELD_REQUIRE_PYTHON=1"
    );
    eprintln!("skipped: NEARFIELD_PYTHON names no interpreter with jsonschema");
    None
}

fn allowed(python: &str, lines: &[u8]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lines.jsonl");
    fs::write(&file, lines).unwrap();
    let output = Command::new(python)
        .args(["-c", CHECK, &path()])
        .arg(&file)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let answers = String::from_utf8(output.stdout).unwrap();
    answers.lines().map(str::to_owned).collect()
}

#[test]
fn an_independent_validator_accepts_what_is_written_and_refuses_what_is_not() {
    let Some(python) = python() else { return };
    let written = allowed(&python, &bytes(&full()));
    assert_eq!(written.len(), full().len() + 2);
    assert!(written.iter().all(|answer| answer == "yes"), "{written:?}");
    let wrong = [
        r#"{"record":"step","step":-1,"time":[0,1]}"#,
        r#"{"record":"step","step":1,"time":[0,1,2]}"#,
        r#"{"record":"step","step":1,"time":[0,1],"theta":"many"}"#,
        r#"{"record":"subregion","step":1}"#,
        r#"{"record":"header","format":"other"}"#,
        r#"{"at":1}"#,
    ];
    let refused = allowed(&python, wrong.join("\n").as_bytes());
    assert!(
        refused.iter().all(|answer| answer.starts_with("no: ")),
        "{refused:?}"
    );
    let later = br#"{"record":"weather","rain":true}"#;
    assert_eq!(allowed(&python, later), ["yes"]);
}
