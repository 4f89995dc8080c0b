//! What readers refuse, and what they keep of damaged files.

use nearfield_trace_analysis::{
    Error, ErrorKind, Trace, Writer,
    model::{FORMAT, Header, Interval, Machine, Program, Record, Span, Step, VERSION},
};
use std::io::Cursor;

fn header() -> Header {
    Header {
        format: FORMAT.into(),
        version: VERSION,
        program: Program::default(),
        machine: Machine::default(),
        start_unix_ms: 1_795_300_000_000,
        rank: None,
    }
}

/// A trace of `steps` steps, a stage in each.
fn bytes(steps: u64) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &header()).unwrap();
    for step in 0..steps {
        let time = Interval::new(1000 * step, 1000 * step + 600);
        let span = Span {
            name: "grid.sort".into(),
            backend: Some("cpu".into()),
            phase: Default::default(),
            id: step + 1,
            parent: 0,
            thread: "main".into(),
            time,
            fields: Default::default(),
        };
        let step = Step {
            step,
            time,
            ..Step::default()
        };
        writer.write(&Record::Span(span)).unwrap();
        writer.write(&Record::Step(step)).unwrap();
    }
    writer.finish(1_000_000).unwrap()
}

fn read(bytes: &[u8]) -> Result<Trace, Error> {
    Trace::read(Cursor::new(bytes), "run.jsonl")
}

fn refusal(bytes: &[u8]) -> String {
    let error = read(bytes).unwrap_err().to_string();
    assert!(
        error.starts_with("run.jsonl ") && !error.contains('\n'),
        "{error}"
    );
    error
}

#[test]
fn a_whole_trace_is_read_without_complaint() {
    let trace = read(&bytes(4)).unwrap();
    assert_eq!((trace.spans.len(), trace.steps.len()), (4, 4));
    assert_eq!(trace.header, header());
    assert!(trace.damage.is_none());
    assert_eq!(trace.damage.to_string(), "");
}

#[test]
fn every_cut_is_refused_or_keeps_every_whole_line() {
    let whole = bytes(3);
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for cut in 0..whole.len() {
        let part = &whole[..cut];
        if cut + 1 < first {
            let refused = read(part).unwrap_err();
            assert!(matches!(refused.kind(), ErrorKind::Truncated { bytes, .. } if *bytes == cut));
            continue;
        }
        let trace = read(part).unwrap();
        let lines = part.iter().filter(|byte| **byte == b'\n').count();
        let torn = !part.ends_with(b"\n");
        // A last line that lacks nothing but its end counts.
        let complete = torn
            && serde_json::from_slice::<Record>(part.rsplit(|byte| *byte == b'\n').next().unwrap())
                .is_ok();
        let kept = trace.spans.len() + trace.steps.len();
        let end = cut + 1 >= whole.len();
        assert_eq!(trace.damage.cut, !end, "{cut}");
        assert_eq!(
            kept,
            (lines + usize::from(complete)).saturating_sub(1 + usize::from(end)),
            "{cut}"
        );
        assert_eq!(trace.damage.lines, u64::from(torn && !complete), "{cut}");
        if torn && !complete {
            let said = trace.damage.to_string();
            let place = format!("the first is {}: it ends in the middle", lines + 1);
            assert!(
                said.contains("was not closed") && said.contains(&place),
                "{said}"
            );
        }
    }
}

#[test]
fn an_empty_file_is_refused() {
    assert_eq!(
        refusal(b""),
        "run.jsonl ends after 0 bytes, before its first line is complete: nothing was recorded"
    );
}

#[test]
fn foreign_files_are_refused() {
    for foreign in [
        &b"x,y,z\n1,2,3\n"[..],
        b"{\"traceEvents\":[]}\n",
        b"[]\n",
        b"\n\n",
        b"\x93NUMPY\x01\x00",
        b"{\"record\":\"header\",\"format\":\"other\",\"version\":1}\n",
    ] {
        let said = refusal(foreign);
        assert!(
            said.contains("is not a trace: its first line is not "),
            "{said}"
        );
    }
    let incomplete = b"{\"record\":\"header\",\"format\":\"nearfield-trace\",\"version\":1}\n";
    assert!(refusal(incomplete).contains("its header is incomplete: missing field"));
    let zero = b"{\"record\":\"header\",\"format\":\"nearfield-trace\",\"version\":0}\n";
    assert!(refusal(zero).contains("its header has no version from 1"));
}

#[test]
fn newer_files_are_refused_with_both_versions() {
    let newer =
        b"{\"record\":\"header\",\"format\":\"nearfield-trace\",\"version\":7,\"moon\":true}\n";
    assert_eq!(
        refusal(newer),
        "run.jsonl is a trace of version 7, and this program reads up to 1: update it"
    );
}

#[test]
fn bad_lines_in_the_middle_are_left_out_and_counted() {
    let whole = String::from_utf8(bytes(3)).unwrap();
    let mut lines: Vec<String> = whole.lines().map(str::to_owned).collect();
    lines[1] = "{\"record\":\"span\",\"name\":5}".into();
    lines[3] = "\u{1F41F} not JSON".into();
    lines.insert(5, "{\"record\":\"weather\",\"rain\":1}".into());
    lines.insert(6, String::new());
    let trace = read((lines.join("\n") + "\n").as_bytes()).unwrap();
    assert_eq!((trace.spans.len(), trace.steps.len()), (1, 3));
    assert_eq!(
        (trace.damage.lines, trace.damage.unknown, trace.damage.cut),
        (2, 1, false)
    );
    let said = trace.damage.to_string();
    assert!(
        said.starts_with("2 lines cannot be read, the first is 2: "),
        "{said}"
    );
    assert!(said.ends_with("lines of kinds not known here: 1"), "{said}");
}

#[test]
fn an_endless_line_is_passed_over_in_bounded_memory() {
    let mut file = bytes(1);
    let end = file.len();
    file.truncate(
        file[..end - 1]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .unwrap()
            + 1,
    );
    file.extend(std::iter::repeat_n(b'x', 10 << 20));
    file.extend(b"\n{\"record\":\"lost\",\"records\":5}\n");
    let trace = read(&file).unwrap();
    assert_eq!((trace.damage.lines, trace.damage.dropped), (1, 5));
}

#[test]
fn a_missing_file_is_named() {
    let error = Trace::open("no/such/trace.jsonl".as_ref())
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("cannot read no/such/trace.jsonl: "),
        "{error}"
    );
}
