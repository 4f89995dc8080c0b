//! Traces whose every number is known.

use crate::made::{at, bytes, hybrid_run, hybrid_step, span, step, subregion, trace};
use nearfield_trace_analysis::{
    Analysis, ErrorKind, Trace,
    model::{Note, Record, Retune, Span, Step, Subregion, Theta, Value},
};

fn close(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() < 1e-9,
        "{found} instead of {expected}"
    );
}

#[test]
fn a_shared_step_gives_its_known_numbers() {
    let trace = trace(hybrid_step(0, 7));
    let analysis = Analysis::of(&trace).unwrap();
    let summary = &analysis.summary;
    assert_eq!(summary.steps, 1);
    close(summary.total_ms, 100.0);
    let cpu = &summary.backends["cpu"];
    assert_eq!((cpu.busy, cpu.waiting, cpu.idle), (60.0, 0.0, 40.0));
    assert_eq!((cpu.transfers, cpu.overlap), (0.0, None));
    close(summary.no_backend_ms, 10.0);
    let gpu = &summary.backends["gpu"];
    assert_eq!((gpu.busy, gpu.waiting, gpu.idle), (60.0, 20.0, 20.0));
    close(gpu.utilisation, 0.6);
    assert_eq!((gpu.transfers, gpu.overlap), (40.0, Some(0.5)));
    assert_eq!(summary.overlap, Some(0.5));
    assert_eq!(summary.shared_steps, 1);
    close(summary.imbalance.unwrap(), 30.0 / 80.0);
    close(
        summary.subregion_imbalance.unwrap(),
        (20.0 / 50.0 + 50.0 / 70.0) / 2.0,
    );
    close(summary.critical_path_ms, 90.0);
    let path: Vec<(&str, f64)> = summary
        .critical_path
        .iter()
        .map(|part| (&*part.what, part.ms))
        .collect();
    assert_eq!(path[0], ("gpu compute", 60.0));
    for part in [
        ("grid.sort", 10.0),
        ("gpu upload", 10.0),
        ("gpu download", 10.0),
    ] {
        assert!(path.contains(&part), "{path:?}");
    }
    let row = &analysis.rows[0];
    assert_eq!(
        (row.pairs, row.theta, row.share),
        (Some(3_000_000), Some(Theta(12.0)), Some(0.25))
    );
    close(row.begin_ms, 7.0);
    let stage = &summary.stages["gpu.compute (subregions)"];
    assert_eq!(
        (stage.count, stage.total_ms, stage.pairs),
        (2, 60.0, Some(3_000_000))
    );
    close(stage.ms_per_million_pairs.unwrap(), 20.0);
    let run = &summary.stages["balance.run"];
    assert_eq!((run.count, run.total_ms, &run.backend), (1, 80.0, &None));
    assert_eq!(run.self_ms, 0.0);
    close(summary.stages["sph.step"].self_ms, 10.0);
}

#[test]
fn a_pass_waits_for_what_the_other_backend_exchanged() {
    let one = |backend, pass, compute, exchange| {
        Record::Subregion(Subregion {
            pass,
            compute: Some(compute),
            exchange,
            ..subregion(0, 0, backend, 100)
        })
    };
    let trace = trace(vec![
        one("cpu", 0, at(0, 30), Some(at(30, 40))),
        one("gpu", 0, at(0, 20), Some(at(20, 25))),
        one("gpu", 1, at(40, 70), None),
        one("cpu", 1, at(30, 45), None),
        step(0, at(0, 80)),
    ]);
    let analysis = Analysis::of(&trace).unwrap();
    let summary = &analysis.summary;
    close(summary.critical_path_ms, 70.0);
    let parts: Vec<(&str, f64)> = summary
        .critical_path
        .iter()
        .map(|part| (&*part.what, part.ms))
        .collect();
    assert!(parts.contains(&("cpu exchange", 10.0)) && parts.contains(&("gpu compute", 30.0)));
    // The slow backend took 30 and 30 ms, the fast one 20 and 15.
    close(summary.imbalance.unwrap(), 25.0 / 60.0);
    let gpu = &summary.backends["gpu"];
    assert_eq!((gpu.busy, gpu.waiting, gpu.idle), (50.0, 20.0, 10.0));
}

#[test]
fn without_the_exchange_nobody_waits_for_the_other_backend() {
    let one = |backend, pass, compute| {
        Record::Subregion(Subregion {
            pass,
            compute: Some(compute),
            ..subregion(0, 0, backend, 100)
        })
    };
    let trace = trace(vec![
        one("cpu", 0, at(0, 35)),
        one("gpu", 0, at(0, 20)),
        one("gpu", 1, at(40, 70)),
        step(0, at(0, 80)),
    ]);
    close(Analysis::of(&trace).unwrap().summary.critical_path_ms, 50.0);
}

#[test]
fn a_backend_without_a_share_is_ready_at_once() {
    let mut records = hybrid_step(0, 0);
    records.push(Record::Subregion(Subregion {
        compute: Some(at(200, 240)),
        ..subregion(1, 0, "gpu", 100)
    }));
    records.push(step(1, at(200, 250)));
    let trace = trace(records);
    let analysis = Analysis::of(&trace).unwrap();
    assert_eq!(analysis.rows[1].imbalance, Some(1.0));
    assert_eq!(analysis.rows[1].share, Some(0.0));
    assert_eq!(
        analysis.rows[1].backends,
        [[0.0, 0.0, 50.0], [40.0, 0.0, 10.0]]
    );
}

/// A run of one backend alone, without marked steps.
fn cpu_run() -> Vec<Record> {
    let update = |id, name: &'static str, begin, end| {
        let sort = Record::Span(span("grid.sort", (id, id + 1), at(begin + 1, end - 1)));
        [sort, Record::Span(span(name, (id + 1, 0), at(begin, end)))]
    };
    let find = |id, begin, end| {
        let mut search = span("cpu.search", (id, id + 1), at(begin, end));
        search.fields.insert("pairs".into(), Value::Count(500_000));
        let find = span("engine.find_neighbors", (id + 1, 0), at(begin, end));
        [Record::Span(search), Record::Span(find)]
    };
    [
        update(1, "engine.add_point_set", 0, 6),
        update(3, "engine.add_point_set", 6, 10),
        find(5, 10, 20),
        update(7, "engine.update", 30, 36),
        update(9, "engine.update", 36, 40),
        find(11, 40, 50),
        find(13, 52, 60),
        update(15, "engine.update", 70, 76),
    ]
    .concat()
}

#[test]
fn steps_that_are_not_marked_begin_at_updates_after_searches() {
    let trace = trace(cpu_run());
    let analysis = Analysis::of(&trace).unwrap();
    let times: Vec<(f64, f64)> = analysis
        .rows
        .iter()
        .map(|row| (row.begin_ms, row.ms))
        .collect();
    assert_eq!(times, [(0.0, 20.0), (30.0, 30.0), (70.0, 6.0)]);
    let cpu = &analysis.summary.backends["cpu"];
    // Sorting 4 + 2 + 4 + 2 + 4, searching 10 + 10 + 8.
    assert_eq!((cpu.busy, cpu.waiting, cpu.idle), (44.0, 8.0, 4.0));
    close(analysis.summary.critical_path_ms, 44.0);
    assert_eq!(analysis.rows[1].pairs, Some(1_000_000));
    assert_eq!(
        (analysis.summary.imbalance, analysis.summary.overlap),
        (None, None)
    );
    assert_eq!(analysis.summary.settle_steps, None);
    let search = &analysis.summary.stages["cpu.search"];
    close(search.ms_per_million_pairs.unwrap(), 28.0 / 1.5);
    let update = &analysis.summary.stages["engine.update"];
    assert_eq!(
        (update.count, update.total_ms, update.self_ms),
        (3, 16.0, 6.0)
    );
    close(update.per_step_ms.median, 8.0);
}

#[test]
fn the_share_settles_after_its_steps() {
    let trace = trace(hybrid_run(12));
    let summary = Analysis::of(&trace).unwrap().summary;
    assert_eq!(summary.settle_steps, Some(2));
    let theta = summary.theta.unwrap();
    assert_eq!(
        (theta.first, theta.settled_at, theta.settle_steps),
        (4.0, 15.0, Some(2))
    );
    let share = summary.share.unwrap();
    close(share.first, 2.0 / 17.0);
    close(share.settled_at, 10.0 / 25.0);
    assert!(!share.oscillates);
    assert_eq!(summary.retunes, 12);
}

#[test]
fn a_split_that_goes_to_and_fro_is_called_so() {
    let marked = |number: u64| {
        Record::Step(Step {
            step: number,
            time: at(10 * number, 10 * number + [5, 9][(number % 2) as usize]),
            share: Some([0.3, 0.7][(number % 2) as usize]),
            ..Step::default()
        })
    };
    let trace = trace((0..20).map(marked).collect());
    let summary = Analysis::of(&trace).unwrap().summary;
    let share = summary.share.unwrap();
    assert!(share.oscillates && summary.settle_steps.is_none());
    close(share.amplitude, 0.4);
    assert_eq!(
        summary.verdict,
        "the split between the backends goes to and fro (2.0 ms a step); try the policy model, or a \
         wider band"
    );
}

/// Ten steps of a sort and a search; one step takes long to sort.
fn with_a_slow_step() -> Vec<Record> {
    let mut records = Vec::new();
    for number in 0..10 {
        let start = 100 * number;
        let slow = if number == 6 { 12 } else { 3 };
        let id = 3 * number + 1;
        let mut whole = span("sph.step", (id, 0), at(start, start + 20 + slow));
        whole.fields.insert("step".into(), Value::Count(number));
        records.push(Record::Span(span(
            "grid.sort",
            (id + 1, id),
            at(start, start + slow),
        )));
        records.push(Record::Span(span(
            "cpu.search",
            (id + 2, id),
            at(start + slow, start + slow + 19),
        )));
        records.push(Record::Span(whole));
        records.push(step(number, at(start, start + 20 + slow)));
    }
    records.push(Record::Note(Note {
        at: 605_000_000,
        level: "warn".into(),
        message: "the disk is slow".into(),
        ..Note::default()
    }));
    records.push(Record::Retune(Retune {
        step: Some(5),
        reason: "the GPU backend was late".into(),
        ..Retune::default()
    }));
    records
}

#[test]
fn slow_steps_are_named_with_their_cause() {
    let trace = trace(with_a_slow_step());
    let summary = Analysis::of(&trace).unwrap().summary;
    let [slow] = &summary.slowest[..] else {
        panic!("{:?}", summary.slowest)
    };
    assert_eq!((slow.step, slow.ms), (6, 32.0));
    assert_eq!(
        slow.cause,
        "grid.sort took 12.00 ms, usually 3.00 ms; warn: the disk is slow; it follows a decision \
         of the policy: the GPU backend was late"
    );
}

#[test]
fn advice_is_given_where_the_numbers_support_it_only() {
    let well = trace(with_a_slow_step());
    assert_eq!(Analysis::of(&well).unwrap().summary.advice, [] as [&str; 0]);
    let bare = trace(vec![
        Record::Subregion(Subregion {
            upload: Some(at(0, 40)),
            compute: Some(at(40, 90)),
            ..subregion(0, 0, "gpu", 100)
        }),
        Record::Subregion(Subregion {
            compute: Some(at(0, 20)),
            ..subregion(0, 0, "cpu", 100)
        }),
        step(0, at(0, 100)),
    ]);
    let advice = Analysis::of(&bare).unwrap().summary.advice;
    assert_eq!(
        advice,
        [
            "data are moved in `gpu upload` (20 ms a step); try more subregions, which hide more of it \
             behind computing",
            "the program is outside of all stages (10 ms a step); try to mark what the program does \
             there by spans",
        ]
    );
}

#[test]
fn a_virtual_clock_may_run_ahead_of_the_steps() {
    let one = |number, begin, end| {
        Record::Subregion(Subregion {
            compute: Some(at(begin, end)),
            ..subregion(number, 0, "gpu", 10)
        })
    };
    let trace = trace(vec![
        one(0, 0, 50),
        step(0, at(0, 1)),
        one(1, 2, 40),
        step(1, at(2, 3)),
    ]);
    let analysis = Analysis::of(&trace).unwrap();
    let times: Vec<f64> = analysis.rows.iter().map(|row| row.ms).collect();
    assert_eq!(times, [50.0, 38.0]);
}

#[test]
fn a_trace_of_nothing_is_refused() {
    let error = Analysis::of(&trace(Vec::new())).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Empty { .. }));
    assert!(
        error
            .to_string()
            .starts_with("made.jsonl holds no stages and no steps")
    );
}

#[test]
fn a_cut_trace_is_analysed_up_to_the_cut() {
    let whole = bytes(&hybrid_run(5));
    let trace = Trace::read(&whole[..whole.len() / 2], "cut.jsonl").unwrap();
    let summary = Analysis::of(&trace).unwrap().summary;
    assert_eq!(summary.steps, 2);
    assert!(
        summary.damage.contains("was not closed"),
        "{}",
        summary.damage
    );
    assert!(
        summary
            .to_string()
            .contains("incomplete  the trace was not closed")
    );
}

#[test]
fn the_threshold_of_a_step_is_the_mean_over_the_work_of_its_subregions() {
    let theta_of = |subregions: &[(f64, u64)]| {
        let lines = subregions.iter().zip(0..).map(|(&(theta, work), number)| {
            Record::Subregion(Subregion {
                theta: Some(Theta(theta)),
                ..subregion(0, number, "gpu", work)
            })
        });
        let step = Record::Step(Step {
            time: at(0, 9),
            ..Step::default()
        });
        let trace = trace(lines.chain([step]).collect());
        Analysis::of(&trace).unwrap().rows[0].theta
    };
    // One brick order through all subregions: a quarter of the work has gone over.
    let gone = [(80.0, 5), (80.0, 20), (0.0, 40), (0.0, 35)];
    assert_eq!(theta_of(&gone), Some(Theta(20.0)));
    assert_eq!(theta_of(&[(8.0, 0), (10.0, 0)]), Some(Theta(9.0)));
    assert_eq!(
        theta_of(&[(8.0, 30), (f64::INFINITY, 10)]),
        Some(Theta(8.0))
    );
    assert_eq!(
        theta_of(&[(8.0, 10), (f64::INFINITY, 30)]),
        Some(Theta(f64::INFINITY))
    );
}

#[test]
fn an_infinite_threshold_is_written_as_such() {
    let marked = |number| {
        Record::Step(Step {
            step: number,
            time: at(number, number + 1),
            theta: Some(Theta(f64::INFINITY)),
            ..Step::default()
        })
    };
    let trace = trace((0..5).map(marked).collect());
    let summary = Analysis::of(&trace).unwrap().summary;
    assert_eq!(summary.settle_steps, Some(0));
    assert!(
        summary
            .to_string()
            .contains("theta       ∞ at first, ∞ at last, settled after 0 steps")
    );
}

#[test]
fn kernels_tell_traversals_apart() {
    let traverse = |id, kernel: &'static str| {
        let mut one: Span = span("engine.traverse", (id, 0), at(10 * id, 10 * id + 5));
        one.fields
            .insert("kernel".into(), Value::Text(kernel.into()));
        Record::Span(one)
    };
    let trace = trace(vec![
        traverse(1, "solver::passes::Forces"),
        traverse(2, "SphDensity<solver::W>"),
    ]);
    let summary = Analysis::of(&trace).unwrap().summary;
    let names: Vec<&str> = summary.stages.keys().map(|name| &**name).collect();
    assert_eq!(
        names,
        ["engine.traverse (Forces)", "engine.traverse (SphDensity)"]
    );
}

#[test]
fn the_summary_reads_as_lines_and_as_json() {
    let trace = trace(hybrid_run(8));
    let summary = Analysis::of(&trace).unwrap().summary;
    let text = summary.to_string();
    for line in [
        "program     made 1.0, on a processor (4 threads)",
        "steps       8 in 800.0 ms; median 100.00 ms",
        "gpu         busy 480.0 ms (60.0 %), waiting 160.0 ms, idle 160.0 ms; transfers 320.0 ms, 50.0 % hidden",
        "imbalance   37.5 % per step",
        "critical    path of 720.0 ms: gpu compute 67 %",
        "theta       4.0 at first, 15.0 at last, settled after 2 steps",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["backends"]["gpu"]["waiting"], 160.0);
    assert_eq!(json["steps"], 8);
    assert_eq!(json["critical_path_ms"], 720.0);
    assert_eq!(json["settle_steps"], 2);
}

#[test]
fn numbers_at_the_ends_of_their_range_do_no_harm() {
    use nearfield_trace_analysis::model::Interval;
    let huge = Interval::new(0, u64::MAX);
    let mut records = Vec::new();
    for number in [0, u64::MAX] {
        records.push(Record::Subregion(Subregion {
            upload: Some(huge),
            compute: Some(huge),
            download: Some(Interval::new(u64::MAX, u64::MAX)),
            pairs: Some(u64::MAX),
            ..subregion(number, number, "gpu", u64::MAX)
        }));
        records.push(Record::Subregion(Subregion {
            compute: Some(Interval::new(5, 5)),
            ..subregion(number, number, "cpu", u64::MAX)
        }));
        records.push(Record::Span(Span {
            time: huge,
            ..span("cpu.search", (number, number), huge)
        }));
        records.push(step(number, huge));
    }
    let trace = trace(records);
    let analysis = Analysis::of(&trace).unwrap();
    assert_eq!(analysis.rows.len(), 2);
    let mut page = Vec::new();
    nearfield_trace_analysis::write_report(&analysis, &mut page).unwrap();
    nearfield_trace_analysis::write_chrome(&analysis, &mut page).unwrap();
    nearfield_trace_analysis::write_steps_csv(&analysis, &mut page).unwrap();
}

#[test]
fn the_machine_has_the_gpus_that_were_started_and_the_device_is_the_last_one() {
    let note = |message: &str, fields: &[(&str, &str)]| {
        let fields = fields
            .iter()
            .map(|&(name, value)| (name.to_owned().into(), Value::Text(value.to_owned().into())));
        Record::Note(Note {
            message: message.to_owned().into(),
            fields: fields.collect(),
            ..Note::default()
        })
    };
    let device = |reason| {
        let fields = [
            ("device", "auto"),
            ("reason", reason),
            ("threads", "4"),
            ("simd", "avx2"),
        ];
        note("engine.device", &fields)
    };
    let records = vec![
        device("the CPU backend"),
        note("gpu.device", &[("gpu", "NVIDIA H200"), ("arch", "90")]),
        note("gpu.device", &[("gpu", "NVIDIA H200"), ("arch", "90")]),
        device("a GPU is there"),
        step(0, at(0, 10)),
    ];
    let summary = Analysis::of(&trace(records)).unwrap().summary;
    assert_eq!(summary.machine.gpus, ["NVIDIA H200", "a GPU"]);
    let device = summary.device.unwrap();
    assert_eq!(device, "auto (a GPU is there), 4 threads, avx2");
}

#[test]
fn an_exploration_step_is_no_part_of_the_course() {
    let shares = [0.9, 0.4, 0.3, 1.0, 0.3, 0.3, 0.3, 0.3];
    let records = (0..).zip(shares).flat_map(|(number, share)| {
        let of_step = Record::Step(Step {
            step: number,
            time: at(10 * number, 10 * number + 9),
            share: Some(share),
            ..Step::default()
        });
        let decision = Record::Retune(Retune {
            step: Some(number),
            exploration: number == 2,
            reason: "made".into(),
            ..Retune::default()
        });
        [of_step, decision]
    });
    let trace = trace(records.collect());
    let analysis = Analysis::of(&trace).unwrap();
    let course = analysis.summary.share.as_ref().unwrap();
    assert_eq!((course.settle_steps, course.greatest), (Some(2), 0.9));
    let explorations: Vec<bool> = analysis.rows.iter().map(|row| row.exploration).collect();
    assert_eq!(
        explorations,
        [false, false, false, true, false, false, false, false]
    );
}
