//! Traces of many ranks become one, in which every rank is a backend.

use crate::made::{self, hybrid_run, span, step, trace};
use nearfield_trace_analysis::{
    Analysis, ErrorKind, TimedBy, Trace,
    model::{Interval, Phase, Record, Span, Step, Subregion},
    write_merged, write_report,
};
use std::{collections::BTreeSet, slice::from_ref};

fn ms(begin: u64, end: u64) -> Interval {
    Interval::new(begin * 1_000_000, end * 1_000_000)
}

/// Four steps of a rank that computes for `work` of 100 ms and waits for its halo for 10 of them.
fn run(work: u64, thread: &'static str) -> Vec<Record> {
    let steps = (0..4).flat_map(|number| {
        let (start, id) = (100 * number, 3 * number + 1);
        let compute = span("cpu.search", (id, 0), ms(start, start + work));
        let wait = span(
            "ranks.wait",
            (id + 1, 0),
            ms(start + work, start + work + 10),
        );
        let agree = span(
            "ranks.agree",
            (id + 2, 0),
            ms(start + work + 10, start + 100),
        );
        let spans = [compute, wait, agree].map(|mut span| {
            span.thread = thread.into();
            Record::Span(span)
        });
        spans
            .into_iter()
            .chain([step(number, ms(start, start + 100))])
    });
    steps.collect()
}

/// The trace of a rank whose clock began `later` milliseconds after that of the first.
fn of_rank(rank: u32, records: &[Record], later: u64) -> Trace {
    let mut trace = trace(records.to_vec());
    (trace.header.rank, trace.name) = (Some(rank), format!("rank{rank}.jsonl"));
    trace.header.start_unix_ms += later;
    trace
}

fn merged(traces: &[Trace]) -> Trace {
    let mut bytes = Vec::new();
    write_merged(traces, &mut bytes).unwrap();
    Trace::read(bytes.as_slice(), "merged").unwrap()
}

#[test]
fn every_rank_is_a_backend_with_its_work_its_halo_and_its_waiting() {
    // In any order of the files.
    let traces = [
        of_rank(1, &run(40, "main"), 3),
        of_rank(0, &run(80, "main"), 0),
    ];
    let whole = merged(&traces);
    assert!(whole.damage.is_none(), "{}", whole.damage);
    assert_eq!((whole.steps.len(), whole.spans.len()), (4, 24));
    assert_eq!(whole.steps[1].time, ms(100, 200), "until the next begins");
    let mut ids: Vec<u64> = whole.spans.iter().map(|span| span.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 24, "numbers of spans stay unique");

    let analysis = Analysis::of(&whole).unwrap();
    let backends = &analysis.summary.backends;
    assert_eq!(backends.keys().collect::<Vec<_>>(), ["rank 0", "rank 1"]);
    // Work of rank 1 in the 3 ms after a step of rank 0 counts in both.
    let near = |found: f64, expected: f64| (found - expected).abs() < 10.0;
    for (name, work) in [("rank 0", 320.0), ("rank 1", 160.0)] {
        let rank = &backends[name];
        assert!(
            near(rank.busy, work) && near(rank.transfers, 40.0),
            "{name}: {rank:?}"
        );
        assert!(
            rank.reasons.iter().any(|reason| {
                let stage = reason.stage.as_deref().unwrap_or_default();
                stage.contains("rank")
            }),
            "{rank:?}"
        );
    }
    let mut page = Vec::new();
    write_report(&analysis, &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(page.contains(r#""backend":"rank 1","phase":"exchange""#));
}

#[test]
fn the_hidden_share_of_a_halo_is_what_the_gpu_of_the_rank_computed_meanwhile() {
    // In each of four steps the GPU computes for 60 ms and 20 ms more. The halo is under way for
    // 40, and the GPU computes in 30 of these. The host's stage about the GPU lasts 95.
    let steps = |thread: &'static str| {
        (0..4u64).flat_map(move |number| {
            let (start, id) = (100 * number, 10 * number + 1);
            let timed = |name, id, phase, begin, end| {
                Record::Span(Span {
                    backend: Some("gpu".into()),
                    phase,
                    thread: thread.into(),
                    ..span(name, (id, 0), ms(start + begin, start + end))
                })
            };
            [
                timed("gpu.search", id, Phase::Compute, 0, 95),
                timed("gpu.kernel", id + 1, Phase::Compute, 0, 60),
                timed("gpu.exchange", id + 2, Phase::Exchange, 30, 70),
                timed("gpu.kernel", id + 3, Phase::Compute, 70, 90),
                step(number, ms(start, start + 100)),
            ]
        })
    };
    let whole = |threads: bool| {
        if threads {
            // Numbers of spans are those of one program.
            let others = steps("rank 1").filter_map(|record| match record {
                Record::Span(span) => Some(Record::Span(Span {
                    id: span.id + 100,
                    ..span
                })),
                _ => None,
            });
            return trace(steps("rank 0").chain(others).collect());
        }
        let of = |rank| of_rank(rank, &steps("gpu").collect::<Vec<_>>(), 0);
        merged(&[of(0), of(1)])
    };
    for threads in [false, true] {
        let whole = whole(threads);
        let summary = Analysis::of(&whole).unwrap().summary;
        for name in ["rank 0 gpu", "rank 1 gpu"] {
            let gpu = &summary.backends[name];
            assert_eq!(gpu.timed_by, TimedBy::Device, "{name}");
            assert_eq!((gpu.busy, gpu.transfers), (320.0, 160.0), "{name}");
            assert_eq!(gpu.overlap, Some(0.75), "{name}");
        }
    }
}

#[test]
fn ranks_as_threads_are_told_apart_in_one_trace() {
    // Rank 1 begins and ends every step a little later. Its work is done by another thread, which
    // has no rank in its name.
    let late = |time: Interval| Interval::new(time.begin() + 2_000_000, time.end() + 2_000_000);
    let mut records = run(80, "rank 0");
    for record in run(40, "rank 1") {
        match record {
            Record::Span(span) => {
                let mut outer = Span {
                    id: span.id + 100,
                    time: late(span.time),
                    ..span
                };
                if outer.name == "cpu.search" {
                    let inner = Span {
                        id: outer.id + 100,
                        parent: outer.id,
                        thread: "worker".into(),
                        ..outer.clone()
                    };
                    records.push(Record::Span(inner));
                    outer.name = "engine.find".into();
                    outer.backend = None;
                }
                records.push(Record::Span(outer));
            }
            Record::Step(step) => records.push(Record::Step(Step {
                time: late(step.time),
                ..step
            })),
            _ => {}
        }
    }
    let read = trace(records);
    let merged_again = merged(&[merged(from_ref(&read))]);
    for whole in [&read, &merged_again] {
        assert_eq!(whole.steps.len(), 4);
        let summary = Analysis::of(whole).unwrap().summary;
        let names: Vec<&String> = summary.backends.keys().collect();
        assert_eq!(names, ["rank 0", "rank 1"]);
        // A step ends with its last stage, 2 ms behind the beginning of the next one.
        assert_eq!((summary.total_ms, summary.run_ms), (408.0, 402.0));
        // One of both computes whenever rank 0 does, which is for 320 ms.
        assert_eq!(summary.no_compute_ms, 82.0);
        let said = "rank 0 computes 80 % of the wall time, the mean of 2 ranks is 60 %";
        let verdict = &summary.verdict;
        assert!(
            verdict.starts_with(said) && verdict.contains("uneven"),
            "{verdict}"
        );
        // Those 2 ms are in both steps.
        assert_eq!(summary.backends["rank 0"].busy, 326.0);
        assert_eq!(summary.backends["rank 1"].busy, 160.0);
    }
}

#[test]
fn subregions_of_ranks_as_threads_are_told_apart() {
    let of = |rank: u32| {
        let records = hybrid_run(2).into_iter();
        records.filter_map(move |record| match record {
            Record::Subregion(one) => Some(Record::Subregion(Subregion {
                rank: Some(rank),
                ..one
            })),
            Record::Span(span) => Some(Record::Span(Span {
                thread: format!("rank {rank}").into(),
                id: span.id + 1000 * u64::from(rank),
                parent: match span.parent {
                    0 => 0,
                    parent => parent + 1000 * u64::from(rank),
                },
                ..span
            })),
            Record::Step(_) => Some(record),
            _ => None,
        })
    };
    let whole = trace(of(0).chain(of(1)).collect());
    let names: BTreeSet<&str> = whole.subregions.iter().map(|one| &*one.backend).collect();
    let expected = ["rank 0", "rank 0 gpu", "rank 1", "rank 1 gpu"];
    assert!(names.iter().eq(&expected), "{names:?}");
}

#[test]
fn all_kinds_of_records_are_kept_and_a_rank_is_not_taken_twice() {
    let records = hybrid_run(3);
    let whole = merged(&[of_rank(0, &records, 0), of_rank(1, &records, 0)]);
    let one = made::trace(records.clone());
    assert_eq!(whole.subregions.len(), 2 * one.subregions.len());
    assert_eq!(whole.retunes.len(), 2 * one.retunes.len());
    assert_eq!(whole.occupancies.len(), 2 * one.occupancies.len());
    assert!(
        whole
            .retunes
            .iter()
            .any(|one| one.reason.starts_with("rank 1: "))
    );
    let names: Vec<String> = (Analysis::of(&whole).unwrap().backends())
        .map(str::to_owned)
        .collect();
    for name in ["rank 0", "rank 0 gpu", "rank 1", "rank 1 gpu"] {
        assert!(names.iter().any(|found| found == name), "{names:?}");
    }
    let twice = [of_rank(2, &records, 0), of_rank(2, &records, 0)];
    let error = write_merged(&twice, Vec::new()).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::SameRank { rank: 2, .. }),
        "{error}"
    );
    assert!(write_merged(&[], Vec::new()).is_err());
}
