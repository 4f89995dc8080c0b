//! Traces of runs on an emulated device: real stages, and subregions on a virtual clock.

use crate::{
    made::{hybrid_run, span, step, subregion, trace},
    recording::{TARGET, options, recorded},
};
use nearfield_trace_analysis::{
    Analysis, Clock, Summary,
    model::{Interval, Record, Subregion, VIRTUAL, Value},
};

fn at(begin: u64, end: u64) -> Interval {
    crate::made::at(begin, end)
}

/// Steps of 300 ms on the host's clock, in which a thread stands in for the device while the CPU
/// searches too; on the virtual clock two jobs of 10 and 6 ms.
pub(crate) fn emulated_run(steps: u64) -> Vec<Record> {
    let mut records = Vec::new();
    for number in 0..steps {
        let (start, id) = (400 * number, 10 * number);
        let on = |begin, end| at(start + begin, start + end);
        let of_job = |job: u64, backend, compute: Interval, begun: u64| {
            Record::Subregion(Subregion {
                clock: Some(VIRTUAL.into()),
                job: 2 * number + job,
                origin: Some((start + begun) * 1_000_000),
                compute: Some(compute),
                ..subregion(number, 0, backend, 100)
            })
        };
        let mut stand_in = span("cpu.search", (id + 3, 0), on(20, 280));
        stand_in.thread = "nearfield-compute".into();
        let mut whole = span("bench.step", (id + 1, 0), on(0, 300));
        whole.fields.insert("step".into(), Value::Count(number));
        records.extend([
            of_job(0, "cpu", on(100, 109), 100),
            of_job(0, "gpu", on(102, 110), 100),
            of_job(1, "cpu", on(200, 206), 200),
            of_job(1, "gpu", on(200, 205), 200),
            Record::Span(span("cpu.search", (id + 4, id + 2), on(20, 150))),
            Record::Span(span("engine.find_neighbors", (id + 2, id + 1), on(10, 290))),
            Record::Span(stand_in),
            Record::Span(whole),
            step(number, on(0, 300)),
        ]);
    }
    records
}

/// Own times of the host and of every stream of a backend, each at most the total.
fn check_own_times(summary: &Summary) {
    let mut sums: std::collections::BTreeMap<(Option<String>, bool), f64> = Default::default();
    for (name, stage) in &summary.stages {
        assert!(stage.self_ms <= stage.total_ms + 1e-9, "{name}: {stage:?}");
        let moves = name.contains("load");
        *sums.entry((stage.backend.clone(), moves)).or_default() += stage.self_ms;
    }
    for (of, sum) in sums {
        assert!(
            sum <= summary.total_ms + 1e-9,
            "{of:?}: {sum} of {}",
            summary.total_ms
        );
    }
}

#[test]
fn only_virtual_times_count_and_the_summary_says_so() {
    let trace = trace(emulated_run(3));
    let analysis = Analysis::of(&trace).unwrap();
    let summary = &analysis.summary;
    assert_eq!(summary.clock, Clock::Virtual);
    assert_eq!((summary.total_ms, summary.run_ms), (48.0, 48.0));
    let begins: Vec<f64> = analysis.rows.iter().map(|row| row.begin_ms).collect();
    assert_eq!(begins, [0.0, 16.0, 32.0]);
    // The CPU waits between its jobs; the GPU begins late and ends early.
    assert_eq!(
        analysis.rows[1].backends,
        [[15.0, 1.0, 0.0], [13.0, 0.0, 3.0]]
    );
    let names: Vec<&str> = summary.stages.keys().map(|name| &**name).collect();
    assert_eq!(
        names,
        ["cpu.compute (subregions)", "gpu.compute (subregions)"]
    );
    check_own_times(summary);
    let text = summary.to_string();
    assert!(
        text.starts_with(
            "verdict     on the emulated device's virtual clock, the backends share the work well: the \
             CPU computes 94 % of the wall time, the GPU 81 %\n"
        ),
        "{text}"
    );
    assert!(
        text.contains("clock       virtual: all times are the emulated device's"),
        "{text}"
    );
    assert!(!text.contains("cpu alone would be about as fast"), "{text}");
}

#[test]
fn steps_without_virtual_times_are_left_out_and_counted() {
    let mut records = emulated_run(2);
    records.push(step(7, at(900, 950)));
    let summary = Analysis::of(&trace(records)).unwrap().summary;
    assert_eq!((summary.steps, summary.total_ms), (2, 32.0));
    assert!(
        summary.damage.contains("1 steps are left out"),
        "{}",
        summary.damage
    );
}

#[test]
fn events_on_a_virtual_clock_keep_their_job_and_origin() {
    let trace = recorded(options(), || {
        let _step = tracing::debug_span!(target: TARGET, "sph.step", step = 5).entered();
        tracing::debug!(
            name: "balance.subregion", target: TARGET,
            subregion = 0, backend = "gpu", points = 10, cells = 4, work = 400u64,
            compute_start = 1000, compute_end = 5000, origin_ago = 10u64,
            clock = Some("virtual"), job = 3u64,
        );
    });
    let one = &trace.subregions[0];
    assert!(one.is_virtual());
    assert_eq!(one.job, 3);
    let origin = one.origin.unwrap();
    assert_eq!(
        one.compute,
        Some(Interval::new(origin + 1000, origin + 5000))
    );
    let summary = Analysis::of(&trace).unwrap().summary;
    assert!(
        (summary.total_ms - 0.005).abs() < 1e-12,
        "{}",
        summary.total_ms
    );
}

#[test]
fn the_lines_of_a_job_have_one_origin() {
    let trace = recorded(options(), || {
        let _step = tracing::debug_span!(target: TARGET, "sph.step", step = 5).entered();
        for (backend, job) in [("cpu", 3u64), ("gpu", 3), ("cpu", 4)] {
            tracing::debug!(
                name: "balance.subregion", target: TARGET,
                subregion = 0, backend, points = 10, cells = 4, work = 400u64,
                compute_start = 1000, compute_end = 5000, origin_ago = 10u64, job,
            );
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    });
    let origins: Vec<u64> = trace
        .subregions
        .iter()
        .map(|one| one.origin.unwrap())
        .collect();
    assert_eq!(origins[0], origins[1]);
    assert!(origins[2] >= origins[0] + 1_000_000);
}

#[test]
fn own_times_add_up_to_at_most_the_total() {
    // The old record of an emulated run: the same stages without a mark of the virtual clock.
    let unmarked = emulated_run(3).into_iter().map(|mut record| {
        if let Record::Subregion(one) = &mut record {
            (one.clock, one.origin, one.job) = (None, None, 0);
        }
        record
    });
    let summary = Analysis::of(&trace(unmarked.collect())).unwrap().summary;
    check_own_times(&summary);
    let own = |name: &str| summary.stages[name].self_ms;
    assert!(own("engine.find_neighbors") + own("cpu.search") <= summary.total_ms);
    for records in [hybrid_run(4), crate::device::device_run(4)] {
        check_own_times(&Analysis::of(&trace(records)).unwrap().summary);
    }
}
