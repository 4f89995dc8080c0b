//! Exports, read back as their readers do.

use crate::{
    device::device_run,
    made::{at, hybrid_run, trace},
};
use nearfield_trace_analysis::{
    Analysis, Trace,
    model::{Note, Record, Span},
    write_activities_csv, write_chrome, write_perfetto, write_steps_csv,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

fn run() -> Trace {
    let mut records = hybrid_run(4);
    records.push(Record::Note(Note {
        at: 5_000_000,
        level: "warn".into(),
        message: "a \"warning\"".into(),
        ..Note::default()
    }));
    trace(records)
}

fn written(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn events() -> Vec<Value> {
    events_of(&run())
}

fn events_of(trace: &Trace) -> Vec<Value> {
    let analysis = Analysis::of(trace).unwrap();
    let text = written(|to| write_chrome(&analysis, to));
    let whole: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(whole["displayTimeUnit"], "ms");
    assert_eq!(whole["otherData"]["program"]["name"], "made");
    whole["traceEvents"].as_array().unwrap().clone()
}

/// Fields that the format's description demands of each kind of event that is used.
fn check(event: &Value) {
    let text = |name: &str| assert!(event[name].is_string(), "{name}: {event}");
    let time = |name: &str| assert!(event[name].as_f64().is_some_and(|us| us >= 0.0), "{event}");
    text("name");
    assert!(event["pid"].is_u64(), "{event}");
    match event["ph"].as_str().unwrap() {
        "X" => {
            text("cat");
            time("ts");
            time("dur");
            assert!(
                event["tid"].is_u64() && event["args"].is_object(),
                "{event}"
            );
        }
        "M" => {
            assert!(["process_name", "thread_name"].contains(&event["name"].as_str().unwrap()));
            assert!(event["args"]["name"].is_string(), "{event}");
        }
        "C" => {
            time("ts");
            let values = event["args"].as_object().unwrap();
            assert!(
                !values.is_empty() && values.values().all(Value::is_number),
                "{event}"
            );
        }
        "i" => {
            time("ts");
            assert!(
                ["g", "p", "t"].contains(&event["s"].as_str().unwrap()),
                "{event}"
            );
        }
        other => panic!("{other} is not a kind of event that is written here"),
    }
}

#[test]
fn chrome_events_are_what_the_format_demands() {
    let events = events();
    events.iter().for_each(check);
    let kinds: BTreeSet<&str> = events
        .iter()
        .map(|event| event["ph"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, BTreeSet::from(["C", "M", "X", "i"]));
    // Tracks that are used have a name.
    let tracks = |kind: &str| -> BTreeSet<u64> {
        let of_kind = events.iter().filter(|event| event["ph"] == kind);
        of_kind
            .map(|event| event["tid"].as_u64().unwrap())
            .collect()
    };
    assert!(tracks("X").is_subset(&tracks("M")));
    let compute: Vec<f64> = events
        .iter()
        .filter(|event| event["name"] == "gpu compute" && event["args"]["step"] == 0)
        .map(|event| event["dur"].as_f64().unwrap())
        .collect();
    assert_eq!(compute, [30_000.0, 30_000.0]);
}

/// Two streams of a device, which run side by side.
fn streams() -> Vec<Record> {
    let mut records = device_run(2);
    let Record::Span(kernel) = records[1].clone() else {
        unreachable!()
    };
    records.push(Record::Span(Span {
        id: 99,
        time: at(20, 60),
        ..kernel
    }));
    records
}

#[test]
fn what_a_device_timed_is_on_tracks_of_its_own() {
    let events = events_of(&trace(streams()));
    events.iter().for_each(check);
    let of = |name: &str, key: &str| -> BTreeSet<u64> {
        let named = events
            .iter()
            .filter(|event| event["name"] == name && event["ph"] == "X");
        named.map(|event| event[key].as_u64().unwrap()).collect()
    };
    // The second stream has a track; the copy is told by what it copies.
    assert_eq!(of("forces", "tid").len(), 2);
    assert!(!of("particles", "tid").is_empty());
    assert!(of("forces", "tid").is_disjoint(&of("sph.step", "tid")));
    let names = events.iter().filter(|event| event["name"] == "thread_name");
    let names: BTreeSet<&str> = names
        .map(|event| event["args"]["name"].as_str().unwrap())
        .collect();
    assert!(names.contains("gpu kernels and copies 2"), "{names:?}");
    lie_apart(&events);
}

#[test]
fn chrome_events_of_a_track_lie_within_each_other_or_apart() {
    let tracks = lie_apart(&events());
    assert!(tracks >= 6);
}

fn lie_apart(events: &[Value]) -> usize {
    let mut tracks: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let begin = event["ts"].as_f64().unwrap();
        let end = begin + event["dur"].as_f64().unwrap();
        tracks
            .entry(event["tid"].as_u64().unwrap())
            .or_default()
            .push((begin, end));
    }
    for stretches in tracks.values() {
        for (begin, end) in stretches {
            let crosses =
                |other: &&(f64, f64)| other.0 < *begin && *begin < other.1 && other.1 < *end;
            assert_eq!(stretches.iter().find(crosses), None);
        }
    }
    tracks.len()
}

#[test]
fn tables_have_a_row_per_step_and_per_activity() {
    let trace = run();
    let analysis = Analysis::of(&trace).unwrap();
    let steps = written(|to| write_steps_csv(&analysis, to));
    let mut rows = csv::Reader::from_reader(steps.as_bytes());
    let heads = rows.headers().unwrap().clone();
    let column = |name: &str| heads.iter().position(|head| head == name).unwrap();
    let records: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
    assert_eq!(records.len(), 4);
    let last = &records[3];
    for (name, value) in [
        ("step", "3"),
        ("ms", "100"),
        ("pairs", "3000000"),
        ("theta", "15"),
        ("imbalance", "0.375"),
        ("critical_path_ms", "90"),
        ("gpu_busy_ms", "60"),
        ("gpu_waiting_ms", "20"),
        ("cpu_idle_ms", "40"),
    ] {
        assert_eq!(&last[column(name)], value, "{name}");
    }
    let activities = written(|to| write_activities_csv(&analysis, to));
    let mut rows = csv::Reader::from_reader(activities.as_bytes());
    let records: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
    assert_eq!(records.len(), 4 * 9);
    let upload = records.iter().find(|row| &row[2] == "upload").unwrap();
    let cells: Vec<&str> = upload.iter().collect();
    assert_eq!(
        cells,
        ["0", "gpu", "upload", "gpu upload", "0", "0", "10", "20"]
    );
}

/// Fields of a message of a protocol buffer: number and value.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Field::Uint(varint(&mut bytes)),
            1 => {
                let (value, rest) = bytes.split_at(8);
                bytes = rest;
                Field::Double(f64::from_le_bytes(value.try_into().unwrap()))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(value)
            }
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, value));
    }
    fields
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (first, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        shift += 7;
        if first & 0x80 == 0 {
            return value;
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Field<'a> {
    Uint(u64),
    Double(f64),
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    fn of(fields: &[(u64, Self)], number: u64) -> Option<Self> {
        let found = fields.iter().find(|(of, _)| *of == number);
        found.map(|(_, value)| *value)
    }

    fn uint(self) -> u64 {
        let Self::Uint(value) = self else {
            panic!("{self:?}")
        };
        value
    }

    fn bytes(self) -> &'a [u8] {
        let Self::Bytes(value) = self else {
            panic!("{self:?}")
        };
        value
    }
}

/// Ranks whose steps overlap, and a device with two streams.
fn overlapping_run() -> Vec<Record> {
    let mut records = streams();
    for (number, begin) in [(10, 500), (11, 560), (12, 700)] {
        records.push(crate::made::step(number, at(begin, begin + 100)));
    }
    records
}

#[test]
fn perfetto_packets_open_and_close_on_named_tracks() {
    let read = trace(overlapping_run());
    let mut bytes = Vec::new();
    write_perfetto(&Analysis::of(&read).unwrap(), &mut bytes).unwrap();
    let mut names: BTreeMap<u64, String> = BTreeMap::new();
    let mut open: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let (mut slices, mut last) = (BTreeSet::new(), BTreeMap::new());
    for (number, packet) in fields(&bytes) {
        assert_eq!(number, 1);
        let packet = fields(packet.bytes());
        assert_eq!(Field::of(&packet, 10).unwrap().uint(), 1);
        if let Some(descriptor) = Field::of(&packet, 60) {
            let descriptor = fields(descriptor.bytes());
            let name = Field::of(&descriptor, 2).map_or(&b"process"[..], Field::bytes);
            let name = String::from_utf8(name.to_vec()).unwrap();
            names.insert(Field::of(&descriptor, 1).unwrap().uint(), name);
            continue;
        }
        let at = Field::of(&packet, 8).unwrap().uint();
        let event = fields(Field::of(&packet, 11).unwrap().bytes());
        let track = Field::of(&event, 11).unwrap().uint();
        assert!(names.contains_key(&track));
        match Field::of(&event, 9).unwrap().uint() {
            1 => {
                let name = Field::of(&event, 23).unwrap().bytes();
                slices.insert(String::from_utf8(name.to_vec()).unwrap());
                open.entry(track).or_default().push(at);
            }
            2 => assert!(open.get_mut(&track).unwrap().pop().unwrap() <= at),
            _ => continue,
        }
        assert!(
            last.insert(track, at).unwrap_or(0) <= at,
            "{}",
            names[&track]
        );
    }
    assert!(open.values().all(Vec::is_empty));
    for name in ["step 0", "step 11", "forces", "particles", "gpu.evaluate"] {
        assert!(slices.contains(name), "{name}: {slices:?}");
    }
    let names: BTreeSet<&str> = names.values().map(|name| &**name).collect();
    for name in ["steps", "steps 2", "gpu kernels and copies 2"] {
        assert!(names.contains(name), "{name}: {names:?}");
    }
}

#[test]
fn counters_of_perfetto_have_their_values() {
    let read = run();
    let mut bytes = Vec::new();
    write_perfetto(&Analysis::of(&read).unwrap(), &mut bytes).unwrap();
    let packets = fields(&bytes)
        .into_iter()
        .map(|(_, packet)| fields(packet.bytes()));
    let events = packets.filter_map(|packet| Field::of(&packet, 11).map(Field::bytes));
    let values = events.filter_map(|event| match Field::of(&fields(event), 44) {
        Some(Field::Double(value)) => Some(value),
        _ => None,
    });
    // θ and the share of four steps, in turn.
    let values: Vec<f64> = values.collect();
    assert_eq!(values.len(), 8, "{values:?}");
    assert_eq!((values[0], values[6]), (4.0, 15.0));
}

#[test]
fn steps_that_overlap_are_on_tracks_of_their_own() {
    let events = events_of(&trace(overlapping_run()));
    events.iter().for_each(check);
    lie_apart(&events);
}
