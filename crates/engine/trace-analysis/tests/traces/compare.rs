//! Two traces side by side.

use crate::{
    made::{at, span, step, trace},
    virtual_clock::emulated_run,
};
use nearfield_trace_analysis::{Analysis, Comparison, ErrorKind, Trace, Verdict, model::Record};

/// Steps of a sort and a search; both functions give milliseconds by the step's number.
fn run(sort: impl Fn(u64) -> u64, search: impl Fn(u64) -> u64, extra: &'static str) -> Trace {
    let mut records = Vec::new();
    for number in 0..8 {
        let (start, middle) = (1000 * number, 1000 * number + sort(number));
        let end = middle + search(number);
        records.push(Record::Span(span(
            "grid.sort",
            (3 * number + 1, 0),
            at(start, middle),
        )));
        records.push(Record::Span(span(
            "cpu.search",
            (3 * number + 2, 0),
            at(middle, end),
        )));
        records.push(Record::Span(span(
            extra,
            (3 * number + 3, 0),
            at(end, end + 1),
        )));
        records.push(step(number, at(start, end + 1)));
    }
    trace(records)
}

#[test]
fn what_changed_by_more_than_the_spread_is_told_from_what_did_not() {
    let before = run(|_| 10, |number| 40 + number, "sph.kick");
    let after = run(|_| 5, |number| 41 + number, "sph.push");
    let comparison = Comparison::of(
        &Analysis::of(&before).unwrap(),
        &Analysis::of(&after).unwrap(),
    )
    .unwrap();
    let (sort, search) = (
        comparison.stages["grid.sort"],
        comparison.stages["cpu.search"],
    );
    assert_eq!((sort.verdict, sort.ratio), (Verdict::Faster, Some(0.5)));
    assert_eq!(search.verdict, Verdict::Same);
    assert_eq!(
        (search.before.lower_quartile, search.before.upper_quartile),
        (41.75, 45.25)
    );
    let cpu = &comparison.backends["cpu"];
    assert_eq!(
        (cpu.busy.before.median, cpu.busy.after.median),
        (53.5, 49.5)
    );
    assert_eq!(cpu.busy.verdict, Verdict::Faster);
    assert_eq!(
        (comparison.only_before, comparison.only_after),
        (vec!["sph.kick".to_owned()], vec!["sph.push".to_owned()])
    );
}

#[test]
fn the_other_way_round_it_is_slower() {
    let (fast, slow) = (
        run(|_| 5, |_| 40, "sph.kick"),
        run(|_| 10, |_| 40, "sph.kick"),
    );
    let comparison =
        Comparison::of(&Analysis::of(&fast).unwrap(), &Analysis::of(&slow).unwrap()).unwrap();
    assert_eq!(comparison.step.verdict, Verdict::Slower);
    let text = comparison.to_string();
    let line = text
        .lines()
        .find(|line| line.starts_with("grid.sort"))
        .unwrap();
    let cells: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(
        cells,
        [
            "grid.sort",
            "5.000",
            "5.000",
            "…",
            "5.000",
            "10.000",
            "10.000",
            "…",
            "10.000",
            "2.000",
            "slower"
        ]
    );
    assert!(
        text.starts_with("before    made.jsonl: 8 steps on a processor\n"),
        "{text}"
    );
}

#[test]
fn times_of_a_virtual_clock_are_not_compared_with_real_ones() {
    let (real, emulated) = (run(|_| 1, |_| 2, "sph.kick"), trace(emulated_run(2)));
    let (real, emulated) = (
        Analysis::of(&real).unwrap(),
        Analysis::of(&emulated).unwrap(),
    );
    for (one, other) in [(&real, &emulated), (&emulated, &real)] {
        let refused = Comparison::of(one, other).unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::Clocks { .. }));
        assert!(refused.to_string().contains("virtual clock"), "{refused}");
    }
    assert!(Comparison::of(&emulated, &emulated).is_ok());
}
