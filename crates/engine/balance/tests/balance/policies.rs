//! What policies other than `model` do, and what all of them have in common.

use crate::common::{Run, best, layouts, random_spec};
use nearfield_balance::{
    Action, Backend, Controller, Cut, Decision, EmulatedSpec, ErrorKind, GpuSpans, Layout, Plan,
    Policy, Span, StepTimes, Traffic,
};
use nearfield_testkit::random::Random;
use std::collections::BTreeMap;

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

/// A band past its first step, whose CPU backend has half of the work; its controller, its cuts,
/// and its decision after a step that took so long.
fn band(layout: &Layout, cpu_ms: f64, gpu_ms: f64) -> (Controller, Vec<Cut>, Decision) {
    let mut band = Controller::with_share(Policy::BAND, 0.5).unwrap();
    let cuts = band.start(layout).cuts;
    let plan = Plan::new(layout, &cuts).unwrap();
    let dropped = band.next(layout, &plan, &times(&plan, 5.0, 1.0)).unwrap();
    assert_eq!(dropped.action, Action::Keep, "{}", dropped.reason);
    assert_eq!(dropped.cuts, cuts);
    let decision = band
        .next(layout, &plan, &times(&plan, cpu_ms, gpu_ms))
        .unwrap();
    (band, cuts, decision)
}

fn share(layout: &Layout, cuts: &[Cut]) -> f64 {
    Plan::new(layout, cuts).unwrap().share()
}

/// Work of the CPU backend by the logarithm of occupancy, and of both.
fn by_octave(layout: &Layout, cuts: &[Cut]) -> BTreeMap<i32, [f64; 2]> {
    let mut octaves = BTreeMap::<i32, [f64; 2]>::new();
    for (subregion, &cut) in cuts.iter().enumerate() {
        let given = layout.bricks_of(subregion, cut);
        for (place, &brick) in layout.ladder(subregion).iter().enumerate() {
            let brick = &layout.bricks().as_slice()[brick as usize];
            let sums = octaves.entry(brick.targets.ilog2() as i32).or_default();
            sums[0] += if place < given {
                brick.work as f64
            } else {
                0.0
            };
            sums[1] += brick.work as f64;
        }
    }
    octaves
}

#[test]
fn inside_the_band_nothing_changes_after_both_backends_were_tried_alone() {
    let layout = layout();
    let (mut controller, cuts, decision) = band(&layout, 0.9, 1.0);
    assert!(
        decision.reason.contains("0.900 is within 0.8 to 0.95"),
        "{}",
        decision.reason
    );
    let mut next = decision.cuts;
    let mut explored = 0;
    for _ in 0..200 {
        let plan = Plan::new(&layout, &next).unwrap();
        // Alone, either takes half as long again as both together.
        let both = plan.share() > 0.0 && plan.share() < 1.0;
        let (cpu, gpu) = match both {
            true => (0.9, 1.0),
            false => (1.5 * plan.share(), 1.5 * (1.0 - plan.share())),
        };
        explored += usize::from(!both);
        let decision = controller
            .next(&layout, &plan, &times(&plan, cpu, gpu))
            .unwrap();
        assert_ne!(decision.action, Action::Move, "{}", decision.reason);
        next = decision.cuts;
    }
    assert_eq!(next, cuts);
    // The first step of each alone is dropped.
    assert!(
        (2..=6).contains(&explored),
        "{explored} steps of a backend alone"
    );
}

#[test]
fn outside_of_the_band_subregions_move_by_a_notch_to_its_middle() {
    for (name, layout) in layouts() {
        for (cpu, more) in [(0.5, true), (1.9, false)] {
            let (_, cuts, decision) = band(&layout, cpu, 1.0);
            assert_eq!(decision.action, Action::Move, "{name}: {}", decision.reason);
            let expected = if more {
                "is below 0.8"
            } else {
                "is above 0.95"
            };
            assert!(
                decision.reason.contains(expected),
                "{name}: {}",
                decision.reason
            );
            let [before, after] = [&cuts, &decision.cuts].map(|cuts| share(&layout, cuts));
            assert_eq!(after > before, more, "{name}: {before} to {after}");
            let ratio = cpu * after / before * (1.0 - before) / (1.0 - after);
            assert!((0.8..0.95).contains(&ratio), "{name}: {ratio} is predicted");
        }
    }
}

#[test]
fn settled_dense_bricks_are_the_gpu_s_in_every_subregion_and_sparse_ones_the_cpu_s() {
    let mut both = 0;
    for (name, layout) in layouts() {
        for speed in [
            "speed=2,bandwidth=60",
            "speed=1,bandwidth=60",
            "speed=4,bandwidth=60",
        ] {
            let mut run = Run::new(Policy::BAND, speed.parse().unwrap(), &layout);
            let last = run.steps(60).pop().unwrap();
            if last.share == 0.0 || last.share == 1.0 {
                continue;
            }
            both += 1;
            let cuts = run.cuts();
            // One boundary for all subregions: below it all is the CPU's, above it nothing.
            let part = |[cpu, all]: [f64; 2]| cpu / all;
            let octaves: Vec<_> = by_octave(&layout, cuts).into_values().map(part).collect();
            let mixed = octaves
                .iter()
                .filter(|part| **part > 0.0 && **part < 1.0)
                .count();
            assert!(mixed <= 3, "{name}, {speed}: {octaves:?}");
            assert!(
                octaves.windows(2).all(|pair| pair[0] >= pair[1] - 0.05),
                "{name}, {speed}: {octaves:?}"
            );
            // Where bricks of every subregion are alike, every subregion is shared.
            if name.starts_with("uniform") {
                for (subregion, &cut) in cuts.iter().enumerate() {
                    let (bricks, all) = (
                        layout.bricks_of(subregion, cut),
                        layout.ladder(subregion).len(),
                    );
                    assert!(
                        0 < bricks && bricks < all,
                        "{name}, {speed}: {bricks} of {all} in subregion {subregion}"
                    );
                }
            }
        }
    }
    assert!(both >= 10, "{both} runs share their steps");
}

#[test]
fn with_two_bricks_no_place_is_left_and_either_backend_is_tried() {
    let cells: Vec<_> = crate::common::uniform().into_iter().take(28).collect();
    let layout = crate::common::layout(cells, 14, Traffic::LISTS);
    assert_eq!(layout.bricks().as_slice().len(), 2);
    let (_, cuts, decision) = band(&layout, 0.79, 1.0);
    assert_eq!(share(&layout, &cuts), 0.5);
    assert!(
        decision.reason.contains("no brick fits"),
        "{}",
        decision.reason
    );
    assert_ne!(decision.action, Action::Move, "{}", decision.reason);
}

#[test]
fn a_single_brick_goes_to_the_better_backend() {
    let cells: Vec<_> = crate::common::uniform().into_iter().take(1).collect();
    let layout = crate::common::layout(cells, 2, Traffic::LISTS);
    for (speed, better) in [("speed=50,launch_us=0", 0.0), ("speed=0.1", 1.0)] {
        let mut run = Run::new(Policy::BAND, speed.parse().unwrap(), &layout);
        assert_eq!(run.steps(20)[19].share, better, "{speed}");
    }
}

#[test]
fn the_band_settles_and_is_never_slower_than_the_better_backend() {
    let mut inside = 0;
    for (name, layout) in layouts() {
        for seed in 0..20 {
            let mut run = Run::new(Policy::BAND, random_spec(seed), &layout);
            let (_, single) = best(&run.machine, &layout);
            let steps = run.steps(150);
            let last = &steps[149];
            let moved = steps[120..]
                .iter()
                .filter(|step| step.action == Action::Move);
            assert!(
                moved.count() == 0,
                "{name}, machine {seed}: still moving, {}",
                last.reason
            );
            assert!(
                last.quiet <= 1.02 * single,
                "{name}, machine {seed}: {} ms, one backend {single}; {}",
                last.quiet,
                last.reason
            );
            inside += usize::from(last.reason.contains("is within"));
        }
    }
    assert!(inside >= 40, "{inside} of 120 ended inside the band");
}

#[test]
fn exploration_stays_within_its_budget_and_sharing_that_does_not_pay_becomes_rare() {
    let layout = layout();
    for policy in [Policy::Model, Policy::BAND] {
        // Sharing pays, and does not.
        for speed in ["speed=2", "speed=300,bandwidth=60", "speed=0.02"] {
            let mut run = Run::new(policy, speed.parse().unwrap(), &layout);
            let steps = run.steps(3_000);
            // What was settled is at the end of the run.
            let usual = steps[2_999].quiet;
            let late = &steps[24..];
            let explored = late.iter().filter(|step| step.action == Action::Explore);
            let (mut extra, mut count) = (0.0, 0);
            for step in explored {
                extra += (step.quiet - usual).max(0.0);
                count += 1;
            }
            let time: f64 = steps.iter().map(|step| step.quiet).sum();
            assert!(
                extra <= 0.005 * time + usual,
                "{policy}, {speed}: {extra} of {time} ms for {count} steps"
            );
            assert!(count <= 60, "{policy}, {speed}: {count} exploration steps");
        }
    }
}

#[test]
fn a_share_of_earlier_runs_is_begun_with_inside_bounds() {
    let layout = layout();
    for policy in [Policy::Model, Policy::BAND, Policy::Fraction] {
        for (given, expected) in [
            (0.4, 0.4),
            (0.0, 1.0 / 16.0),
            (1.0, 15.0 / 16.0),
            (-3.0, 1.0 / 16.0),
            (1e300, 15.0 / 16.0),
        ] {
            let mut controller = Controller::with_share(policy, given).unwrap();
            let first = share(&layout, &controller.start(&layout).cuts);
            assert!(
                (first - expected).abs() < 0.035,
                "{policy}, {given}: {first}"
            );
        }
        for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut controller = Controller::with_share(policy, wrong).unwrap();
            let mut plain = Controller::new(policy).unwrap();
            assert_eq!(controller.start(&layout), plain.start(&layout), "{policy}");
        }
    }
    let mut fixed = Controller::with_share(Policy::Fixed { theta: 0.0 }, 0.5).unwrap();
    assert_eq!(share(&layout, &fixed.start(&layout).cuts), 0.0);
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
                let cuts = run.controller.on_layout(new);
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
