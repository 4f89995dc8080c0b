//! Traces in which the device timed its kernels, and what the host did while it had none.

use crate::{
    made::{at, span, step, trace},
    recording::{TARGET, options, recorded},
};
use nearfield_trace_analysis::{
    Analysis, TimedBy, Trace,
    model::{Interval, Phase, Record, Span, Value},
};
use std::{
    thread::sleep,
    time::{Duration, Instant},
};

/// The kernels of a step, and the copy that comes after them.
const KERNELS: Duration = Duration::from_micros(2250);
const COPY: Duration = Duration::from_micros(12_250);
const BYTES: u64 = 41_000_000;

fn ago(moment: Instant) -> u64 {
    moment.elapsed().as_nanos() as u64
}

/// A dam break as it was: in each step the host waits for kernels and then copies all particles to
/// count some. The device tells of its kernels when the next step has begun.
fn dam_break(steps: u64) -> Trace {
    recorded(options(), || {
        let mut report: Option<Instant> = None;
        let tell = |report: &mut Option<Instant>| {
            let Some(done) = report.take() else { return };
            let (end, kernels) = (ago(done), KERNELS.as_nanos() as u64);
            tracing::debug!(
                name: "gpu.kernel", target: TARGET,
                kernel = "forces", begin_ago = end + kernels, end_ago = end, clock_error = 800u64,
            );
        };
        for number in 1..=steps {
            let _step =
                tracing::debug_span!(target: TARGET, "sph.device_step", step = number).entered();
            tell(&mut report);
            tracing::debug_span!(target: TARGET, "host.wait", what = "forces")
                .in_scope(|| sleep(KERNELS));
            report = Some(Instant::now());
            let _copy = tracing::debug_span!(
                target: TARGET, "host.copy",
                what = "particles", direction = "to_host", bytes = BYTES,
            )
            .entered();
            let begun = Instant::now();
            sleep(COPY);
            tracing::debug!(
                name: "gpu.copy", target: TARGET,
                what = "particles", direction = "to_host", bytes = BYTES,
                begin_ago = ago(begun), end_ago = 0u64, clock_error = 800u64,
            );
        }
        tell(&mut report);
    })
}

#[test]
fn kernels_and_copies_become_stages_of_the_device() {
    let trace = dam_break(2);
    assert!(
        trace.damage.is_none() && trace.notes.is_empty(),
        "{:?}",
        trace.notes
    );
    let of = |name: &str| trace.spans.iter().find(|span| span.name == *name).unwrap();
    let kernel = of("gpu.kernel");
    assert_eq!(
        (kernel.backend.as_deref(), kernel.phase),
        (Some("gpu"), Phase::Compute)
    );
    assert_eq!((&*kernel.thread, kernel.parent), ("gpu", 0));
    assert_eq!(kernel.time.length(), KERNELS.as_nanos() as u64);
    assert_eq!(kernel.fields["kernel"], Value::Text("forces".into()));
    assert_eq!(kernel.fields["clock_error"], Value::Count(800));
    assert!(!kernel.fields.contains_key("begin_ago"));
    let copy = of("gpu.copy");
    assert_eq!(
        (copy.backend.as_deref(), copy.phase),
        (Some("gpu"), Phase::Download)
    );
    assert_eq!(copy.fields["bytes"], Value::Count(BYTES));
    assert_eq!(
        (
            of("host.copy").backend.as_deref(),
            of("host.wait").backend.as_deref()
        ),
        (None, None)
    );
    let ids: std::collections::BTreeSet<u64> = trace.spans.iter().map(|span| span.id).collect();
    assert_eq!(ids.len(), trace.spans.len());
    // Told in the second step, the first kernel belongs to the first.
    assert!(kernel.time.end() <= trace.steps[0].time.end());
}

#[test]
fn a_copy_that_leaves_the_gpu_idle_is_named_in_the_first_line() {
    let trace = dam_break(12);
    let analysis = Analysis::of(&trace).unwrap();
    let summary = &analysis.summary;
    let text = summary.to_string();
    let first = text.lines().next().unwrap();
    // Sleeping takes at least as long as it was told to: kernels run for at most 2.25 of 14.5 ms.
    let gpu = &summary.backends["gpu"];
    assert!(
        gpu.utilisation <= 2.25 / 14.5 && gpu.utilisation > 0.0,
        "{text}"
    );
    assert!((gpu.idle_share + gpu.utilisation - 1.0).abs() < 1e-9);
    assert!(gpu.idle_share_of_run >= 1.0 - 2.25 / 14.5);
    assert_eq!(gpu.timed_by, TimedBy::Device);
    let idle = format!("{:.0} %", 100.0 * gpu.idle_share);
    let start = format!(
        "verdict     the GPU idles {idle} of the wall time because the host copies 41 MB to the \
         host in `particles` ("
    );
    assert!(first.starts_with(&start), "{first}");
    let end = " ms a step); try to reduce `particles` on the device and copy the result, or to copy it \
         less often";
    assert!(first.ends_with(end), "{first}");
    let reason = &gpu.reasons[0];
    assert_eq!(reason.stage.as_deref(), Some("host.copy"));
    assert_eq!(reason.what.as_deref(), Some("particles"));
    assert_eq!(reason.direction.as_deref(), Some("to_host"));
    assert_eq!((reason.bytes, reason.between_steps), (12 * BYTES, false));
    assert!(
        reason.ms_per_step >= 12.25 && reason.share > 0.5,
        "{reason:?}"
    );
    // Each kernel counts in its own step, though it is told of in the next.
    for row in &analysis.rows {
        assert!((row.backends[0][0] - 2.25).abs() < 1e-6, "{row:?}");
    }
    let json = serde_json::to_value(summary).unwrap();
    assert_eq!(json["verdict"], first["verdict     ".len()..]);
    assert_eq!(json["clock"], "host");
    assert_eq!(json["backends"]["gpu"]["timed_by"], "device");
    assert_eq!(json["backends"]["gpu"]["reasons"][0]["what"], "particles");
}

fn timed(name: &'static str, id: u64, time: Interval, fields: &[(&'static str, Value)]) -> Record {
    let phase = match fields.iter().find(|(name, _)| *name == "direction") {
        Some((_, Value::Text(text))) if text == "to_host" => Phase::Download,
        _ => Phase::Compute,
    };
    let backend = Some("gpu".into()).filter(|_| name.starts_with("gpu."));
    Record::Span(Span {
        backend,
        phase,
        fields: fields
            .iter()
            .map(|(name, value)| ((*name).into(), value.clone()))
            .collect(),
        ..span(name, (id, 0), time)
    })
}

/// Steps of 100 ms, each with a kernel of 30, a host stage that covers it, and a stage of the host
/// inside; 20 ms between them, in a stage of their own.
pub(crate) fn device_run(steps: u64) -> Vec<Record> {
    let mut records = Vec::new();
    for number in 0..steps {
        let (start, id) = (120 * number, 10 * number);
        let at = |begin, end| at(start + begin, start + end);
        let child =
            |name, of: (u64, u64), time| Record::Span(span(name, (id + of.0, id + of.1), time));
        let copy = [
            ("what", Value::Text("particles".into())),
            ("direction", Value::Text("to_host".into())),
            ("bytes", Value::Count(41_000_000)),
        ];
        records.push(child("gpu.evaluate", (2, 1), at(0, 40)));
        records.push(timed(
            "gpu.kernel",
            id + 3,
            at(5, 35),
            &[("kernel", Value::Text("forces".into()))],
        ));
        let Record::Span(mut host) = timed("host.copy", id + 4, at(40, 90), &copy) else {
            unreachable!()
        };
        host.parent = id + 1;
        records.push(Record::Span(host));
        records.push(timed("gpu.copy", id + 5, at(41, 90), &copy));
        let mut whole = span("sph.step", (id + 1, 0), at(0, 100));
        whole.fields.insert("step".into(), Value::Count(number));
        records.push(Record::Span(whole));
        records.push(step(number, at(0, 100)));
        records.push(Record::Span(span("frame.write", (id + 6, 0), at(101, 119))));
    }
    records
}

#[test]
fn gaps_of_the_gpu_go_to_the_innermost_stages_of_the_host() {
    let trace = trace(device_run(4));
    let analysis = Analysis::of(&trace).unwrap();
    let summary = &analysis.summary;
    let gpu = &summary.backends["gpu"];
    // The host's stage around the kernel is not a second record.
    assert_eq!((gpu.busy, gpu.utilisation), (120.0, 0.3));
    assert_eq!((gpu.transfers, gpu.overlap), (196.0, Some(0.0)));
    assert_eq!(gpu.idle_share, 0.7);
    assert!((gpu.idle_share_of_run - (460.0 - 120.0) / 460.0).abs() < 1e-12);
    assert_eq!(summary.run_ms, 460.0);
    let found: Vec<(Option<&str>, bool, f64)> = (gpu.reasons.iter())
        .map(|one| (one.stage.as_deref(), one.between_steps, one.ms))
        .collect();
    assert_eq!(
        found,
        [
            (Some("host.copy"), false, 200.0),
            (Some("frame.write"), true, 54.0),
            (Some("gpu.evaluate"), false, 40.0),
            (Some("sph.step"), false, 40.0),
            (None, true, 6.0),
        ]
    );
    assert_eq!(gpu.reasons[0].bytes, 4 * 41_000_000);
    assert_eq!(summary.no_compute_ms, 280.0);
    assert_eq!(
        summary.verdict,
        "the GPU idles 70 % of the wall time because the host copies 41 MB to the host in `particles` \
         (50 ms a step); try to reduce `particles` on the device and copy the result, or to copy it \
         less often"
    );
    assert_eq!(summary.stages["gpu.evaluate"].backend, None);
    // The kernel runs beside its host's stage, whose own time it is.
    assert_eq!(summary.stages["gpu.evaluate"].self_ms, 160.0);
    assert_eq!(summary.stages["gpu.kernel (forces)"].self_ms, 120.0);
    assert_eq!(summary.stages["host.copy (particles)"].total_ms, 200.0);
    // 5 ms of queueing, the kernel, the copy; nothing counts twice.
    assert!(summary.critical_path_ms <= 4.0 * 100.0);
}

#[test]
fn a_gpu_that_computes_nearly_always_is_said_to() {
    let records = (0..5).flat_map(|number| {
        let start = 100 * number;
        [
            timed(
                "gpu.kernel",
                number + 1,
                at(start, start + 96),
                &[("kernel", Value::Text("f".into()))],
            ),
            step(number, at(start, start + 100)),
        ]
    });
    let summary = Analysis::of(&trace(records.collect())).unwrap().summary;
    assert_eq!(
        summary.verdict,
        "the GPU computes 96 % of the wall time, 96 % of it in `gpu.kernel (f)`"
    );
}

#[test]
fn time_between_steps_is_named_where_it_costs() {
    let records = (0..5).flat_map(|number| {
        let start = 200 * number;
        let kernel = [("kernel", Value::Text("f".into()))];
        let write = span(
            "frame.write",
            (10 + number, 0),
            at(start + 100, start + 200),
        );
        [
            timed("gpu.kernel", number + 1, at(start, start + 96), &kernel),
            step(number, at(start, start + 100)),
            Record::Span(write),
        ]
    });
    let summary = Analysis::of(&trace(records.collect())).unwrap().summary;
    assert_eq!(
        summary.verdict,
        "the GPU idles 44 % of the run between steps because the host is in `frame.write` (80 ms a \
         step); try to do `frame.write` on another thread, or less often"
    );
}

/// A step of 100 ms with a kernel of 20 ms and a stage of 80 ms.
fn verdict_of(stage: Span) -> String {
    let mut whole = span("sph.step", (1, 0), at(0, 100));
    whole.fields.insert("step".into(), Value::Count(0));
    let records = vec![
        timed(
            "gpu.kernel",
            9,
            at(0, 20),
            &[("kernel", Value::Text("f".into()))],
        ),
        Record::Span(stage),
        Record::Span(whole),
        step(0, at(0, 100)),
    ];
    Analysis::of(&trace(records)).unwrap().summary.verdict
}

#[test]
fn every_cause_has_its_advice() {
    let stage = |name| span(name, (2, 1), at(20, 100));
    let says = |mut stage: Span, fields: &[(&'static str, &'static str)]| {
        let fields = fields
            .iter()
            .map(|(name, text)| ((*name).into(), Value::Text((*text).into())));
        stage.fields.extend(fields);
        verdict_of(stage)
    };
    let up = says(
        stage("host.copy"),
        &[("what", "walls"), ("direction", "to_device")],
    );
    assert!(up.contains("try to keep `walls` on the device"), "{up}");
    let wait = says(stage("host.wait"), &[("what", "pairs")]);
    assert!(
        wait.contains("the host waits for `pairs` (80 ms a step); try to queue the next kernels"),
        "{wait}"
    );
    let sort = says(stage("grid.sort"), &[]);
    assert!(
        sort.contains("the CPU computes in `grid.sort` (80 ms a step); try to do"),
        "{sort}"
    );
    let own = says(stage("sph.kick"), &[]);
    assert!(
        own.contains("the host is in `sph.kick` (80 ms a step); try to take"),
        "{own}"
    );
    let queue = says(stage("sph.device_step"), &[]);
    assert!(queue.contains("try fewer and larger kernels"), "{queue}");
    let step = says(span("sph.kick", (2, 1), at(20, 21)), &[]);
    assert!(
        step.contains("in `sph.step`, outside of its stages (79 ms a step)"),
        "{step}"
    );
}

#[test]
fn without_kernels_the_hosts_stages_are_all_there_is() {
    let mut stage = span("gpu.step", (2, 1), at(0, 96));
    stage.fields.insert("points".into(), Value::Count(5));
    let mut whole = span("sph.step", (1, 0), at(0, 100));
    whole.fields.insert("step".into(), Value::Count(0));
    let records = vec![
        Record::Span(stage),
        Record::Span(whole),
        step(0, at(0, 100)),
    ];
    let summary = Analysis::of(&trace(records)).unwrap().summary;
    assert_eq!(summary.backends["gpu"].timed_by, TimedBy::Host);
    assert!(
        summary
            .verdict
            .ends_with("the trace has no times of kernels)"),
        "{}",
        summary.verdict
    );
}

#[test]
fn work_that_goes_on_into_the_next_step_counts_where_it_was() {
    let records = vec![
        timed(
            "gpu.kernel",
            1,
            at(60, 130),
            &[("kernel", Value::Text("f".into()))],
        ),
        step(0, at(0, 100)),
        step(1, at(100, 200)),
    ];
    let trace = trace(records);
    let analysis = Analysis::of(&trace).unwrap();
    assert_eq!(analysis.rows[0].backends[0], [40.0, 0.0, 60.0]);
    assert_eq!(analysis.rows[1].backends[0], [30.0, 0.0, 70.0]);
    assert_eq!(analysis.rows[0].ms, 100.0);
}

#[test]
fn a_program_on_the_cpu_gets_a_verdict_too() {
    let run = |kick: u64| {
        let mut records = Vec::new();
        for number in 0..3u64 {
            let (start, id) = (100 * number, 10 * number);
            let mut whole = span("sph.step", (id + 1, 0), at(start, start + 100));
            whole.fields.insert("step".into(), Value::Count(number));
            records.push(Record::Span(span(
                "cpu.search",
                (id + 2, id + 1),
                at(start, start + 100 - kick),
            )));
            records.push(Record::Span(span(
                "sph.kick",
                (id + 3, id + 1),
                at(start + 100 - kick, start + 100),
            )));
            records.extend([Record::Span(whole), step(number, at(start, start + 100))]);
        }
        Analysis::of(&trace(records)).unwrap().summary.verdict
    };
    assert_eq!(
        run(3),
        "the CPU computes 97 % of the wall time, 97 % of it in `cpu.search`"
    );
    assert_eq!(
        run(40),
        "the CPU idles 40 % of the wall time because the host is in `sph.kick` (40 ms a step); try to \
         take `sph.kick` out of the step, or to do it in parallel"
    );
}

#[test]
fn backends_that_wait_in_turn_do_not_share_well() {
    use nearfield_trace_analysis::model::Subregion;
    let mut records = Vec::new();
    for number in 0..6 {
        let start = 100 * number;
        let of = |backend, even| {
            let end = if (number % 2 == 0) == even { 100 } else { 5 };
            Record::Subregion(Subregion {
                compute: Some(at(start, start + end)),
                ..crate::made::subregion(number, 0, backend, 100)
            })
        };
        let whole = step(number, at(start, start + 100));
        records.extend([of("cpu", true), of("gpu", false), whole]);
    }
    let verdict = Analysis::of(&trace(records)).unwrap().summary.verdict;
    assert!(
        verdict.starts_with("the backends wait for each other in turn (90 ms a step); try "),
        "{verdict}"
    );
}

#[test]
fn where_backends_share_the_work_the_bottleneck_is_named() {
    use nearfield_trace_analysis::model::Subregion;
    let run = |cpu: u64, gpu: u64, rest: u64| {
        let of = |backend, end| {
            Record::Subregion(Subregion {
                compute: Some(at(0, end)),
                ..crate::made::subregion(0, 0, backend, 100)
            })
        };
        let whole = cpu.max(gpu) + rest;
        let mut host = span("sph.step", (1, 0), at(0, whole));
        host.fields.insert("step".into(), Value::Count(0));
        let kick = span("sph.kick", (2, 1), at(whole - rest, whole));
        let records = vec![
            of("cpu", cpu),
            of("gpu", gpu),
            Record::Span(kick),
            Record::Span(host),
            step(0, at(0, whole)),
        ];
        Analysis::of(&trace(records)).unwrap().summary.verdict
    };
    assert_eq!(
        run(95, 50, 5),
        "the CPU is the bottleneck: it is ready after 95 ms, the GPU after 50 ms (29 ms a step); try \
         to give the GPU more work"
    );
    assert!(run(92, 95, 5).starts_with("the backends share the work well: the GPU computes 95 %"));
    assert!(run(60, 55, 40).starts_with(
        "no backend computes for 40 % of the wall time because the host is in `sph.kick` (40 ms a step)"
    ));
}

#[test]
fn what_other_threads_do_beside_the_steps_is_no_reason_for_a_gap() {
    let with = |name: &'static str| {
        let mut trace = dam_break(3);
        let (first, last) = (&trace.steps[0], &trace.steps[2]);
        let time = Interval::new(first.time.begin(), last.time.end());
        trace.spans.push(Span {
            name: name.into(),
            backend: None,
            id: 10_000,
            thread: "frames-0".into(),
            time,
            ..trace.spans[0].clone()
        });
        let whole = time.length() as f64 / 1e6;
        let summary = Analysis::of(&trace).unwrap().summary;
        (summary, whole)
    };
    let (summary, whole) = with("beside.draw");
    assert!(
        summary.verdict.contains("`particles`"),
        "{}",
        summary.verdict
    );
    assert_eq!(summary.beside["beside.draw"], whole);
    let text = summary.to_string();
    assert!(text.contains("beside      draw "), "{text}");
    assert!(!summary.stages.contains_key("beside.draw"));
    // A stage of another name would be taken for one of the steps.
    let (summary, _) = with("draw");
    assert!(summary.stages.contains_key("draw") && summary.beside.is_empty());
}
