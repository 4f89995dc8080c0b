//! The runner passes a right engine and catches each way of being wrong.

use nearfield_testkit::conformance::{
    Case, CaseFailure, Failure, Known, Level, ListKind, Lists, Mismatch, RadiusRule, Runner,
};
use nearfield_testkit::oracle::{Neighbor, Problem};

/// A right engine that is not the sweep the runner compares with.
fn right(case: &Case) -> Result<Lists, String> {
    let index = |neighbor: &Neighbor| neighbor.index;
    let lists = case.problem().brute_force();
    Ok(lists
        .iter()
        .map(|list| list.iter().map(index).rev().collect())
        .collect())
}

fn three_points() -> Runner {
    let points = vec![[0.0; 3], [1.0, 0.0, 0.0], [5.0, 0.0, 0.0]];
    Runner::of(vec![Case::new("three points", 2.0, points)])
}

/// The only failure of an engine that returns `lists` for [`three_points`],
/// and the text of the report.
fn failure_of(lists: &[&[u32]]) -> (CaseFailure, String) {
    let lists: Lists = lists.iter().map(|list| list.to_vec()).collect();
    let failure = three_points()
        .run(|_| Ok::<_, String>(lists.clone()))
        .unwrap_err();
    let text = failure.to_string();
    let Failure::Cases { mut failed, .. } = failure else {
        panic!("{failure}");
    };
    (failed.remove(0).1, text)
}

fn missing_and_extra(failure: &CaseFailure) -> [usize; 2] {
    match failure {
        CaseFailure::Lists(Mismatch::Pairs { missing, extra, .. }) => [*missing, *extra],
        other => panic!("{other}"),
    }
}

#[test]
fn a_right_engine_passes_whatever_the_order_inside_its_lists() {
    let small = |case: &Case| case.targets().len() <= 700;
    let runner = Runner::new(Level::Quick).keep(small);
    let summary = runner.run(right).unwrap();
    assert_eq!(summary.cases, runner.cases().count());
    assert!(
        summary.cases > 250 && summary.pairs > 500_000,
        "{summary:?}"
    );
}

#[test]
fn every_full_case_agrees_with_the_published_counts() {
    let runner = Runner::new(Level::Full).keep(|case| case.known.is_some());
    let summary = runner.run(|case| Ok::<_, String>(case.expected())).unwrap();
    assert!(summary.cases > 150, "{summary:?}");
}

#[test]
fn a_right_answer_passes() {
    let summary = three_points().run(right).unwrap();
    assert_eq!((summary.cases, summary.pairs), (1, 2));
}

#[test]
fn a_dropped_pair_is_caught_and_shown_with_its_share_of_the_radius() {
    let (failure, text) = failure_of(&[&[1], &[], &[]]);
    assert_eq!(missing_and_extra(&failure), [1, 0]);
    let line = "missing (1, 0): 0 of 1 images, [1.0, 0.0, 0.0] to [0.0, 0.0, 0.0], \
                nearest image at 0.500000000 r";
    assert!(text.contains(line), "{text}");
}

#[test]
fn a_doubled_pair_is_caught() {
    let (failure, text) = failure_of(&[&[1], &[0, 0], &[]]);
    assert_eq!(missing_and_extra(&failure), [0, 1]);
    assert!(text.contains("extra (1, 0): 2 of 1 images"), "{text}");
}

#[test]
fn a_pair_beyond_the_radius_is_caught() {
    let (failure, text) = failure_of(&[&[1], &[0, 2], &[]]);
    assert_eq!(missing_and_extra(&failure), [0, 1]);
    assert!(text.contains("nearest image at 2.000000000 r"), "{text}");
}

#[test]
fn a_wrong_index_is_caught_as_one_missing_and_one_extra() {
    let (failure, _) = failure_of(&[&[2], &[0], &[]]);
    assert_eq!(missing_and_extra(&failure), [1, 1]);
}

#[test]
fn an_index_of_no_point_is_caught() {
    let (failure, text) = failure_of(&[&[1, 99], &[0], &[]]);
    assert_eq!(missing_and_extra(&failure), [0, 1]);
    assert!(text.contains("no such point"), "{text}");
}

#[test]
fn a_point_that_finds_itself_is_caught() {
    let (failure, _) = failure_of(&[&[1], &[0], &[2]]);
    assert_eq!(missing_and_extra(&failure), [0, 1]);
}

#[test]
fn lists_that_are_missing_altogether_are_caught() {
    let (failure, _) = failure_of(&[&[1], &[0]]);
    let lengths = Mismatch::Lengths {
        expected: 3,
        found: 2,
    };
    assert_eq!(failure, CaseFailure::Lists(lengths));
}

#[test]
fn an_engine_that_refuses_fails_with_its_own_words() {
    let failure = three_points()
        .run(|_| Err("no memory".to_owned()))
        .unwrap_err();
    assert!(
        failure
            .to_string()
            .contains("the engine refused: no memory"),
        "{failure}"
    );
}

#[test]
fn a_runner_without_cases_fails() {
    let none = three_points().keep(|_| false);
    assert_eq!(none.run(right), Err(Failure::NoCase));
}

#[test]
fn a_published_count_that_differs_is_caught_even_if_the_oracle_agrees() {
    let case = |known| Case::new("pair", 1.0, vec![[0.0; 3], [0.5; 3]]).known(known);
    let per_target = |count| Known::PerTarget {
        count,
        targets: vec![1],
    };
    assert!(
        Runner::of(vec![case(Known::Total(2)), case(per_target(1))])
            .run(right)
            .is_ok()
    );
    for wrong in [Known::Total(3), per_target(2)] {
        assert!(Runner::of(vec![case(wrong)]).run(right).is_err());
    }
}

#[test]
fn a_report_shows_twenty_pairs_and_counts_the_others() {
    let failure = Runner::new(Level::Quick)
        .keep(|case| case.name.starts_with("coincident points"))
        .run(|case| Ok::<_, String>(vec![vec![]; case.targets().len()]))
        .unwrap_err();
    let text = failure.to_string();
    assert_eq!(text.matches("missing (").count(), 20, "{text}");
    assert!(text.contains("3540 pairs missing"), "{text}");
}

/// Displacements that an engine may compute instead of the contract's d, then d² ≤ r².
struct Arithmetic {
    difference: fn(f32, f32, f32) -> f32,
    within: fn([f32; 3], f32) -> bool,
}

const CONTRACT: Arithmetic = Arithmetic {
    difference: |from, to, shift| (to - from) + shift,
    within: |[x, y, z], r| z.mul_add(z, y.mul_add(y, x * x)) <= r * r,
};

/// Every pair and 21 images along each periodic axis in this arithmetic; the
/// oracle's own answer for cases that are not made for it.
fn search(arithmetic: &Arithmetic, case: &Case) -> Result<Lists, String> {
    let made_for_it = case.name.contains("but for rounding") && case.list == ListKind::Full;
    if !made_for_it {
        return Ok(case.expected());
    }
    let shifts = case.periodic.map(|length| match length {
        Some(length) => (-10..=10).map(|n| (f64::from(n) * length) as f32).collect(),
        None => vec![0.0_f32],
    });
    let near = |i: usize, j: usize| {
        let [from, to] = [case.targets()[i], case.targets()[j]];
        let along = |axis: usize| {
            let moved = |&shift| (arithmetic.difference)(from[axis], to[axis], shift);
            let all = shifts[axis].iter().map(moved);
            all.filter(|d| d.abs() < 1.5 * case.radius)
                .collect::<Vec<f32>>()
        };
        let [x, y, z] = [0, 1, 2].map(along);
        let xy = x.iter().flat_map(|&x| y.iter().map(move |&y| [x, y]));
        let xyz = xy.flat_map(|[x, y]| z.iter().map(move |&z| [x, y, z]));
        xyz.filter(|&d| (arithmetic.within)(d, case.radius)).count() - usize::from(i == j)
    };
    let points = 0..case.targets().len();
    let list = |i| {
        points
            .clone()
            .flat_map(|j| vec![j as u32; near(i, j)])
            .collect()
    };
    Ok(points.clone().map(list).collect())
}

#[test]
fn the_quick_cases_tell_the_arithmetic_of_the_contract_from_any_other() {
    let runner = Runner::new(Level::Quick).keep(|case| case.name.contains("but for rounding"));
    runner.run(|case| search(&CONTRACT, case)).unwrap();
    let others = [
        (
            "no fused multiply-add",
            Arithmetic {
                within: |[x, y, z], r| x * x + y * y + z * z <= r * r,
                ..CONTRACT
            },
        ),
        (
            "the axes in another order",
            Arithmetic {
                within: |[x, y, z], r| x.mul_add(x, y.mul_add(y, z * z)) <= r * r,
                ..CONTRACT
            },
        ),
        (
            "squares in f64",
            Arithmetic {
                within: |d, r| {
                    d.iter().map(|&d| f64::from(d).powi(2)).sum::<f64>() <= f64::from(r).powi(2)
                },
                ..CONTRACT
            },
        ),
        (
            "the distance instead of its square",
            Arithmetic {
                within: |[x, y, z], r| z.mul_add(z, y.mul_add(y, x * x)).sqrt() <= r,
                ..CONTRACT
            },
        ),
        (
            "the source moved before the difference",
            Arithmetic {
                difference: |from, to, shift| (to + shift) - from,
                ..CONTRACT
            },
        ),
    ];
    for (mistake, arithmetic) in others {
        let outcome = runner.run(|case| search(&arithmetic, case));
        assert!(outcome.is_err(), "{mistake} gave {outcome:?}");
    }
}

#[test]
fn the_quick_cases_catch_the_usual_mistakes() {
    fn with(case: &Case, change: impl Fn(&mut Problem)) -> Result<Lists, String> {
        let mut problem = case.problem();
        change(&mut problem);
        Ok(problem.index_lists())
    }
    let strict = |case: &Case| with(case, |problem| problem.radius = case.radius.next_down());
    let open = |case: &Case| with(case, |problem| problem.periodic = [None; 3]);
    let nearest_image_only = |case: &Case| {
        let mut lists = case.expected();
        lists.iter_mut().for_each(Vec::dedup);
        Ok::<_, String>(lists)
    };
    let wrapped = |case: &Case| Ok::<_, String>(wrap(case).expected());
    let runner = Runner::new(Level::Quick).keep(|case| case.targets().len() <= 1000);
    for (mistake, outcome) in [
        ("an exclusive radius", runner.run(strict)),
        ("images forgotten", runner.run(open)),
        ("one image per source", runner.run(nearest_image_only)),
        ("wrapped coordinates", runner.run(wrapped)),
    ] {
        assert!(outcome.is_err(), "{mistake} gave {outcome:?}");
    }
}

#[test]
fn the_quick_cases_tell_the_rules_of_radii_from_each_other() {
    for right in RadiusRule::OWN {
        let runner = Runner::new(Level::Quick).keep(|case| case.rule == right);
        for wrong in [RadiusRule::Uniform].into_iter().chain(RadiusRule::OWN) {
            let outcome = runner.run(|case| {
                let mut case = case.clone();
                case.rule = wrong;
                Ok::<_, String>(case.expected())
            });
            assert_eq!(outcome.is_ok(), right == wrong, "{wrong:?} for {right:?}");
        }
    }
    let runner = Runner::new(Level::Quick).keep(|case| case.rule != RadiusRule::Uniform);
    let below = |case: &Case| {
        let mut case = case.clone();
        for radius in case.radii.iter_mut().flatten() {
            *radius = radius.next_down();
        }
        Ok::<_, String>(case.expected())
    };
    assert!(runner.run(below).is_err(), "exclusive radii");
    let squares_in_f64 = |case: &Case| {
        let problem = case.problem();
        let mut lists = Case {
            rule: RadiusRule::Uniform,
            ..case.clone()
        }
        .problem()
        .neighbors();
        for (target, list) in lists.iter_mut().enumerate() {
            list.retain(|source| {
                let at = (
                    case.targets()[target],
                    case.sources()[source.index as usize],
                );
                let d2 = problem.distance_squared(at.0, at.1, source.image);
                f64::from(d2) <= f64::from(problem.radius_of(target, source.index as usize)).powi(2)
            });
        }
        let index = |list: Vec<Neighbor>| list.iter().map(|source| source.index).collect();
        Ok::<_, String>(lists.into_iter().map(index).collect())
    };
    assert!(runner.run(squares_in_f64).is_err(), "squares in f64");
}

fn wrap(case: &Case) -> Case {
    let mut case = case.clone();
    for point in case.sets.iter_mut().flatten() {
        for (at, length) in point.iter_mut().zip(case.periodic) {
            *at = length.map_or(*at, |length| f64::from(*at).rem_euclid(length) as f32);
        }
    }
    case
}
