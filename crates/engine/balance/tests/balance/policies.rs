//! What policies other than `model` do, and what all of them have in common.

use crate::common::{Run, best, layouts, random_spec};
use nearfield_balance::{
    Action, Backend, Controller, Cut, EmulatedSpec, ErrorKind, GpuSpans, Layout, Plan, Policy,
    Span, StepTimes, Traffic,
};
use nearfield_testkit::random::Random;

const POLICIES: [Policy; 4] = [
    Policy::Model,
    Policy::BAND,
    Policy::Fraction,
    Policy::Fixed { theta: 10.0 },
];

fn layout() -> Layout {
    crate::common::layout(crate::common::uniform(), 2, Traffic::LISTS)
}

/// Times of a plan in which both backends take as long as told, evenly over their subregions.
fn times(plan: &Plan, cpu_ms: f64, gpu_ms: f64) -> StepTimes {
    let count = plan.stages().len() as f64;
    let span = |number: usize, ms: f64| Span {
        start_ms: ms / count * number as f64,
        end_ms: ms / count * (number + 1) as f64,
    };
    StepTimes {
        cpu: (0..plan.stages().len()).map(|n| span(n, cpu_ms)).collect(),
        gpu: (0..plan.stages().len())
            .map(|n| GpuSpans {
                compute: span(n, gpu_ms),
                ..GpuSpans::default()
            })
            .collect(),
        ..StepTimes::default()
    }
}

/// A band past its first step, at the cuts given, told those times.
fn band(layout: &Layout, cuts: &[Cut], cpu_ms: f64, gpu_ms: f64) -> nearfield_balance::Decision {
    let mut band = Controller::new(Policy::BAND).unwrap();
    let plan = Plan::new(layout, cuts).unwrap();
    let dropped = band
        .next(layout, &plan, &times(&plan, cpu_ms, gpu_ms))
        .unwrap();
    assert_eq!(dropped.action, Action::Keep, "{}", dropped.reason);
    assert_eq!(dropped.cuts, cuts);
    band.next(layout, &plan, &times(&plan, cpu_ms, gpu_ms))
        .unwrap()
}

fn changed(before: &[Cut], after: &[Cut]) -> Vec<usize> {
    (0..before.len())
        .filter(|&s| before[s] != after[s])
        .collect()
}

#[test]
fn names_are_read_and_printed() {
    for (text, policy) in [
        ("model", Policy::Model),
        ("band:0.8:0.95", Policy::BAND),
        ("fraction", Policy::Fraction),
        ("fixed:12.5", Policy::Fixed { theta: 12.5 }),
        (
            "fixed:inf",
            Policy::Fixed {
                theta: f64::INFINITY,
            },
        ),
    ] {
        assert_eq!(text.parse(), Ok(policy));
        assert_eq!(policy.to_string(), text);
    }
    assert_eq!("band".parse(), Ok(Policy::BAND));
    for (text, expected) in [
        ("", "use model"),
        ("banded", "\"banded\""),
        ("fixed", "fixed:THETA"),
        ("model:1", "\"model:1\""),
        ("band:0.9:0.8", "0 < alpha < beta < 1"),
        ("band:0.5:1", "0.5 to 1,"),
        ("fixed:-1", "theta is -1"),
        ("fixed:NaN", "theta is NaN"),
    ] {
        let error = text.parse::<Policy>().unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn inside_the_band_nothing_changes() {
    let layout = layout();
    let cuts = layout.cuts(63.5);
    let decision = band(&layout, &cuts, 0.9, 1.0);
    assert_eq!((decision.action, &decision.cuts), (Action::Keep, &cuts));
    assert!(
        decision.reason.contains("0.900 is within 0.8 to 0.95"),
        "{}",
        decision.reason
    );
}

#[test]
fn above_the_band_one_subregion_gives_work_back() {
    let layout = layout();
    let cuts = layout.cuts(63.5);
    let decision = band(&layout, &cuts, 1.2, 1.0);
    assert_eq!(decision.action, Action::Move);
    let [subregion] = changed(&cuts, &decision.cuts)[..] else {
        panic!("{}", decision.reason)
    };
    let (before, after) = (cuts[subregion], decision.cuts[subregion]);
    assert!(layout.bricks_of(subregion, after) < layout.bricks_of(subregion, before));
    assert!(
        decision.reason.contains("1.200 is above 0.95"),
        "{}",
        decision.reason
    );
}

#[test]
fn below_the_band_the_cpu_is_given_what_is_predicted_to_fit_and_no_more() {
    let layout = layout();
    let cuts = layout.cuts(63.5);
    let now = Plan::new(&layout, &cuts).unwrap().load(Backend::Cpu).work() as f64;
    let decision = band(&layout, &cuts, 0.79, 1.0);
    let [subregion] = changed(&cuts, &decision.cuts)[..] else {
        panic!("{}", decision.reason)
    };
    let then = Plan::new(&layout, &decision.cuts)
        .unwrap()
        .load(Backend::Cpu)
        .work() as f64;
    assert!(then > now, "{}", decision.reason);
    assert!(0.79 * then / now < 0.95, "{}", decision.reason);
    // One brick more would not have fitted, or there is none.
    let bricks = layout.bricks_of(subregion, decision.cuts[subregion]);
    let ladder = layout.ladder(subregion).len();
    let next = layout.work_below(subregion, bricks + 1) - layout.work_below(subregion, bricks);
    assert!(bricks == ladder || 0.79 * (then + next as f64) / now >= 0.95);
}

#[test]
fn the_band_loses_no_step_to_its_probe() {
    for (name, layout) in layouts() {
        let mut run = Run::new(Policy::BAND, "speed=4".parse().unwrap(), &layout);
        let steps = run.steps(12);
        // The first step's times are dropped; after the second the probe is decided on.
        assert!(
            steps[2].reason.contains("probe"),
            "{name}: {}",
            steps[2].reason
        );
        for step in &steps[3..] {
            assert!(!step.reason.contains("ignored"), "{name}: {}", step.reason);
        }
        assert!(
            steps[6].share > 0.02,
            "{name}: {} after 6 steps",
            steps[6].share
        );
    }
}

#[test]
fn a_step_that_would_leave_the_band_is_not_made() {
    // So few bricks that the smallest step is too large.
    let cells: Vec<_> = crate::common::uniform().into_iter().take(28).collect();
    let layout = crate::common::layout(cells, 14, Traffic::LISTS);
    assert_eq!(layout.bricks().as_slice().len(), 2);
    let cuts = [Cut::ALL, Cut::NONE];
    let decision = band(&layout, &cuts, 0.79, 1.0);
    assert_eq!(
        (decision.action, &decision.cuts[..]),
        (Action::Keep, &cuts[..])
    );
    assert!(
        decision.reason.contains("no brick fits"),
        "{}",
        decision.reason
    );
}

#[test]
fn with_no_work_on_the_cpu_a_single_brick_is_the_probe() {
    let layout = layout();
    let cuts = vec![Cut::NONE; 32];
    let decision = band(&layout, &cuts, 0.0, 1.0);
    assert_eq!(decision.action, Action::Move);
    let plan = Plan::new(&layout, &decision.cuts).unwrap();
    assert_eq!(plan.load(Backend::Cpu).bricks, 1);
    assert!(decision.reason.contains("probe"), "{}", decision.reason);
}

#[test]
fn the_band_ends_inside_the_band_and_stays() {
    let mut inside = 0;
    for (name, layout) in layouts() {
        for seed in 0..6 {
            let mut run = Run::new(Policy::BAND, random_spec(seed), &layout);
            let (best, single) = best(&run.machine, &layout);
            let steps = run.steps(150);
            let moved = |steps: &[crate::common::Step]| {
                steps
                    .iter()
                    .filter(|step| step.action == Action::Move)
                    .count()
            };
            let last = &steps[149];
            assert!(
                moved(&steps[120..]) == 0,
                "{name}, machine {seed}: still moving, {}",
                last.reason
            );
            // At the band's lower end the GPU backend takes 1 / 0.8 times as long as the CPU
            // backend.
            assert!(
                last.quiet * 0.8 <= single,
                "{name}, machine {seed}: {} ms, one backend {single}, best {best}; {}",
                last.quiet,
                last.reason
            );
            inside += usize::from(last.reason.contains("is within"));
        }
    }
    assert!(inside >= 15, "{inside} of 30 ended inside the band");
}

#[test]
fn fraction_splits_by_speed_and_ignores_occupancy() {
    for (name, layout) in layouts() {
        let mut run = Run::new(
            Policy::Fraction,
            "speed=1,bandwidth=60".parse().unwrap(),
            &layout,
        );
        let (best, _) = best(&run.machine, &layout);
        let steps = run.steps(20);
        assert!(
            steps[19].quiet < 1.25 * best,
            "{name}: {} of {best}",
            steps[19].quiet
        );
        assert!(
            steps[12..].iter().all(|step| step.action == Action::Keep),
            "{name}"
        );
        let share = steps[19].share;
        assert!(share > 0.3 && share < 0.9, "{name}: {share}");
    }
    let layout = layout();
    let first = Controller::new(Policy::Fraction).unwrap().start(&layout);
    assert!(first.cuts.iter().all(|cut| matches!(cut, Cut::Leading(_))));
    let share = Plan::new(&layout, &first.cuts).unwrap().share();
    assert!((share - 0.5).abs() < 0.001, "{share}");
}

#[test]
fn fixed_stays_where_it_was_put() {
    let layout = layout();
    for (theta, share) in [(0.0, 0.0), (63.5, 0.5), (f64::INFINITY, 1.0)] {
        let mut run = Run::new(Policy::Fixed { theta }, EmulatedSpec::default(), &layout);
        for step in run.steps(10) {
            assert!(
                (step.share - share).abs() < 0.02,
                "theta {theta}: {}",
                step.share
            );
            assert_ne!(step.action, Action::Move);
        }
    }
}

#[test]
fn one_stall_moves_no_policy() {
    let layout = layout();
    for policy in POLICIES {
        for backend in [Backend::Cpu, Backend::Gpu] {
            let mut run = Run::new(policy, "speed=2".parse().unwrap(), &layout);
            let before = run.steps(100);
            run.machine.stall_once(backend, 6.0);
            let after = run.steps(3);
            let (before, after) = (before[99].share, after[2].share);
            assert!(
                (before - after).abs() < 0.01,
                "{policy}, {backend:?}: {before} to {after}"
            );
        }
    }
}

#[test]
fn every_policy_but_fixed_follows_a_lasting_change() {
    let layout = layout();
    for policy in [Policy::Model, Policy::BAND, Policy::Fraction] {
        let mut run = Run::new(policy, "speed=2".parse().unwrap(), &layout);
        let before = run.steps(100)[99].share;
        run.machine.change_speed(Backend::Cpu, 0.25);
        let after = run.steps(100)[99].share;
        assert!(after < before * 0.6, "{policy}: {before} to {after}");
    }
}

#[test]
fn a_lost_gpu_gets_nothing_any_more_whatever_the_policy() {
    let layout = layout();
    for policy in POLICIES {
        let mut run = Run::new(policy, "fail=lost@5".parse().unwrap(), &layout);
        let steps = run.steps(20);
        assert!(steps[5].share < 1.0, "{policy}");
        assert_eq!(steps[6].action, Action::Fault);
        assert!(steps[6].reason.contains("lost"), "{}", steps[6].reason);
        assert!(steps[6..].iter().all(|step| step.share == 1.0), "{policy}");
    }
}

#[test]
fn after_running_out_of_memory_the_gpu_gets_less() {
    let layout = layout();
    for policy in POLICIES {
        let mut run = Run::new(policy, "fail=oom@5,speed=20".parse().unwrap(), &layout);
        let steps = run.steps(12);
        assert_eq!(steps[6].action, Action::Fault, "{policy}");
        assert!(steps[6].reason.contains("MiB"), "{}", steps[6].reason);
        assert!(
            steps[6].share > steps[5].share && steps[6].share < 1.0,
            "{policy}"
        );
    }
}

#[test]
fn every_decision_gives_a_reason_with_numbers() {
    let layout = layout();
    for policy in POLICIES {
        let mut run = Run::new(policy, EmulatedSpec::default(), &layout);
        for step in &run.steps(30)[2..] {
            assert!(
                step.reason.contains(|c: char| c.is_ascii_digit()),
                "{policy}: {}",
                step.reason
            );
        }
    }
}

#[test]
fn layouts_may_change_between_steps() {
    let (coarse, fine) = (
        crate::common::layout(crate::common::uniform(), 14, Traffic::LISTS),
        layout(),
    );
    for policy in POLICIES {
        let mut controller = Controller::new(policy).unwrap();
        let mut decision = controller.start(&coarse);
        let mut now = &coarse;
        for next in [&coarse, &fine, &coarse, &fine, &fine] {
            let plan = Plan::new(now, &decision.cuts).unwrap();
            decision = controller
                .next(next, &plan, &times(&plan, 1.0, 2.0))
                .unwrap();
            assert_eq!(decision.cuts.len(), next.subregions().len());
            now = next;
        }
    }
}

#[test]
fn a_new_layout_of_points_that_moved_a_little_is_divided_as_before() {
    let [even, one, two] = [1, 3, 4].map(|seed| {
        let mut random = Random::new(seed);
        let mut cells = crate::common::uniform();
        for cell in &mut cells {
            // A lattice has the same number everywhere until it melts.
            let points = match seed {
                1 => 8,
                _ => random.between(5.0, 12.0) as u32,
            };
            (cell.targets, cell.sources) = (points, points);
        }
        crate::common::layout(cells, 2, Traffic::LISTS)
    });
    for policy in POLICIES {
        let melting = !matches!(policy, Policy::Fixed { .. });
        let pairs = [(&one, &two), (&even, &one)];
        for (old, new) in &pairs[..1 + usize::from(melting)] {
            // With much faster backends everything is one backend's, and stays so.
            for machine in ["speed=2", "speed=0.02", "speed=200"] {
                let mut run = Run::new(policy, machine.parse().unwrap(), old);
                run.steps(16);
                let before = Plan::new(old, run.cuts()).unwrap().share();
                let cuts = run.cuts().to_vec();
                let cuts = run.controller.on_layout(new, Some(old), &cuts);
                let after = Plan::new(new, &cuts).unwrap().share();
                assert!(
                    (before - after).abs() < 0.03,
                    "{policy}, {machine}: {before} and {after}"
                );
                let alone = [0.0, 1.0].contains(&before);
                assert!(!alone || before == after, "{policy}, {machine}: {after}");
            }
        }
    }
}

#[test]
fn times_that_are_none_are_refused_and_teach_nothing() {
    let layout = layout();
    let mut controller = Controller::new(Policy::Model).unwrap();
    let plan = Plan::new(&layout, &controller.start(&layout).cuts).unwrap();
    let good = times(&plan, 1.0, 1.0);
    let mut short = good.clone();
    short.cpu.pop();
    let error = controller.next(&layout, &plan, &short).unwrap_err();
    assert!(
        matches!(
            error.kind(),
            ErrorKind::Times {
                cpu: 31,
                gpu: 32,
                subregions: 32
            }
        ),
        "{error}"
    );
    for bad in [f64::NAN, f64::INFINITY, -1.0] {
        let mut times = good.clone();
        times.gpu[3].compute.end_ms = bad;
        let error = controller
            .next(&layout, &plan, &times)
            .unwrap_err()
            .to_string();
        assert!(error.contains("GPU compute of subregion 3"), "{error}");
        times = good.clone();
        times.recovery = Span {
            start_ms: 0.0,
            end_ms: bad,
        };
        assert!(
            controller.next(&layout, &plan, &times).is_err(),
            "recovery until {bad}"
        );
    }
    assert_eq!(
        controller.next(&layout, &plan, &good).unwrap().action,
        Action::Keep
    );
}
