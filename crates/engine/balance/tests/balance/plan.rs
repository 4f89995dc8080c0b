//! Every point is worked on exactly once by exactly one backend, and the halo is complete.

use nearfield_balance::{
    Backend, Bricks, CellLoad, Cut, Equal, Error, ErrorKind, Layout, Neighbourhood, Plan,
    RowOffset, Stage, Subdivision, Subregion, Ties, Traffic,
};
use proptest::prelude::*;
use std::collections::HashSet;

const TRAFFIC: Traffic = Traffic {
    upload_per_source: 12.0,
    upload_per_target: 4.0,
    download_per_target: 16.0,
    download_per_pair: 0.5,
};

#[derive(Debug, Clone)]
struct Case {
    cells: Vec<CellLoad>,
    near: Neighbourhood,
    edge: u32,
    subregions: usize,
    ties: Ties,
    cuts: Vec<Cut>,
}

fn cut() -> impl Strategy<Value = Cut> {
    prop_oneof![
        Just(Cut::NONE),
        Just(Cut::ALL),
        (0u32..12, 0u32..6).prop_map(|(occupancy, ties)| Cut::Occupancy { occupancy, ties }),
        (0u32..20).prop_map(Cut::Leading),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let cell = ([0i64..9, 0i64..7, 0i64..8], 0u32..6, 0u32..6);
    let periods = prop::array::uniform3(any::<bool>());
    (
        prop::collection::vec(cell, 1..150),
        periods,
        1i64..4,
        1u32..5,
        1usize..40,
        prop::sample::select(vec![Ties::Even, Ties::Compact, Ties::Octaves]),
        prop::collection::vec(cut(), 40),
    )
        .prop_map(|(cells, periodic, reach, edge, subregions, ties, cuts)| {
            let sizes = [9, 7, 8];
            let near = Neighbourhood {
                periods: std::array::from_fn(|axis| periodic[axis].then_some(sizes[axis])),
                ..Neighbourhood::cube(reach)
            };
            let cells = cells
                .into_iter()
                .map(|(cell, targets, sources)| CellLoad {
                    cell,
                    targets,
                    sources,
                })
                .collect();
            Case {
                cells,
                near,
                edge,
                subregions,
                ties,
                cuts,
            }
        })
}

impl Case {
    fn layout(&self) -> Layout {
        let bricks = Bricks::new(self.cells.iter().copied(), &self.near, self.edge).unwrap();
        Layout::with_ties(bricks, self.subregions, TRAFFIC, self.ties).unwrap()
    }

    /// All pairs of bricks, one holding a neighbour cell of a cell of the other, by definition.
    fn near_bricks(&self, layout: &Layout) -> HashSet<(usize, usize)> {
        let all = layout.bricks().as_slice();
        let brick = |cell: [i64; 3]| {
            let at = cell.map(|axis| axis.div_euclid(i64::from(self.edge)));
            all.iter().position(|brick| brick.at == at)
        };
        let mut pairs = HashSet::new();
        for load in &self.cells {
            for &RowOffset { y, z, reach } in &self.near.rows {
                for x in -reach..=reach {
                    let offset = [x, y, z];
                    let cell = std::array::from_fn(|axis| {
                        let value = load.cell[axis] + offset[axis];
                        self.near.periods[axis].map_or(value, |n| value.rem_euclid(n))
                    });
                    if let (Some(a), Some(b)) = (brick(load.cell), brick(cell)) {
                        pairs.insert((a, b));
                    }
                }
            }
        }
        pairs
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_target_is_worked_on_once_by_one_backend(case in case()) {
        let layout = case.layout();
        let plan = Plan::new(&layout, &case.cuts[..layout.subregions().len()]).unwrap();
        let all = layout.bricks().as_slice();
        let mut seen = vec![0; all.len()];
        let (mut next, mut slot) = (0, 0);
        for (stage, subregion) in plan.stages().iter().zip(layout.subregions()) {
            for (part, backend) in [(&stage.cpu, Backend::Cpu), (&stage.gpu, Backend::Gpu)] {
                prop_assert_eq!(part.bricks.start, next);
                prop_assert_eq!(part.slots.start, slot);
                next = part.bricks.end;
                slot = part.slots.end;
                let mut work = 0;
                for place in part.bricks.clone() {
                    let brick = plan.order()[place] as usize;
                    seen[brick] += 1;
                    prop_assert!(subregion.bricks.contains(&brick));
                    prop_assert_eq!(plan.backend(brick), Some(backend));
                    let points = plan.slots()[place + 1] - plan.slots()[place];
                    prop_assert_eq!(points, u64::from(all[brick].targets));
                    work += all[brick].work;
                }
                prop_assert_eq!(part.load.work(), work);
                prop_assert_eq!(part.load.targets, part.slots.end - part.slots.start);
                prop_assert!(plan.order()[part.bricks.clone()].is_sorted());
            }
        }
        for (brick, points) in all.iter().enumerate() {
            prop_assert_eq!(seen[brick], u32::from(points.targets > 0), "brick {}", brick);
            prop_assert_eq!(plan.backend(brick).is_some(), points.targets > 0);
        }
        let targets: u64 = case.cells.iter().map(|load| u64::from(load.targets)).sum();
        prop_assert_eq!(slot, targets);
    }

    #[test]
    fn bricks_near_the_other_backend_are_in_the_halo(case in case()) {
        let layout = case.layout();
        let plan = Plan::new(&layout, &case.cuts[..layout.subregions().len()]).unwrap();
        for (a, b) in case.near_bricks(&layout) {
            prop_assert!(layout.bricks().near(a).contains(&(b as u32)));
            if let (Some(one), Some(other)) = (plan.backend(a), plan.backend(b))
                && one != other
            {
                prop_assert!(plan.halo(one).contains(&(a as u32)));
                prop_assert!(plan.halo(other).contains(&(b as u32)));
            }
        }
        for stage in plan.stages() {
            for (part, backend) in [(&stage.cpu, Backend::Cpu), (&stage.gpu, Backend::Gpu)] {
                for brick in &plan.halo(backend)[part.halo.clone()] {
                    prop_assert!(plan.order()[part.bricks.clone()].contains(brick));
                }
            }
        }
    }

    #[test]
    fn the_gpu_has_every_source_it_needs_when_it_needs_it_and_once(case in case()) {
        let layout = case.layout();
        let plan = Plan::new(&layout, &case.cuts[..layout.subregions().len()]).unwrap();
        let near = case.near_bricks(&layout);
        let mut sent = HashSet::new();
        for stage in plan.stages() {
            let mut bytes = 0.0;
            for &brick in &plan.uploads()[stage.uploads.clone()] {
                prop_assert!(sent.insert(brick as usize), "brick {} is sent twice", brick);
                let points = &layout.bricks().as_slice()[brick as usize];
                bytes += 12.0 * f64::from(points.sources) + 4.0 * f64::from(points.targets);
            }
            prop_assert!((bytes - stage.upload).abs() < 1e-6);
            for &brick in &plan.order()[stage.gpu.bricks.clone()] {
                for &(_, source) in near.iter().filter(|pair| pair.0 == brick as usize) {
                    prop_assert!(sent.contains(&source), "{} needs {}", brick, source);
                }
            }
        }
    }

    #[test]
    fn estimates_are_what_the_plan_says(case in case(), theta in 0.0f64..12.0) {
        let layout = case.layout();
        let plan = Plan::new(&layout, &layout.cuts(theta)).unwrap();
        for (subregion, stage) in plan.stages().iter().enumerate() {
            let estimate = layout.estimate(subregion, theta);
            prop_assert_eq!(estimate.cpu, stage.cpu.load);
            prop_assert_eq!(estimate.gpu, stage.gpu.load);
            prop_assert!((estimate.upload - stage.upload).abs() < 1e-6);
            prop_assert!((estimate.download - stage.download).abs() < 1e-6);
        }
    }

    #[test]
    fn a_threshold_splits_by_occupancy(case in case(), theta in 0.0f64..12.0) {
        let layout = case.layout();
        let plan = Plan::new(&layout, &layout.cuts(theta)).unwrap();
        // The largest of a tie to the occupancy below its least, but for rounding.
        let wide = match case.ties {
            Ties::Even => 1.0,
            Ties::Compact => 4.5,
            Ties::Octaves => 2.0,
        };
        for (number, subregion) in layout.subregions().iter().enumerate() {
            for brick in subregion.bricks.clone() {
                let targets = f64::from(layout.bricks().as_slice()[brick].targets);
                match plan.backend(brick) {
                    Some(Backend::Cpu) => prop_assert!(targets < wide * (theta + 1.0)),
                    Some(Backend::Gpu) if case.ties == Ties::Even => prop_assert!(targets > theta),
                    Some(Backend::Gpu) => prop_assert!(targets > theta / wide - 1.0),
                    None => prop_assert_eq!(targets, 0.0),
                }
            }
            let cut = plan.cuts()[number];
            let again = layout.theta_of(number, cut);
            prop_assert_eq!(layout.bricks_of(number, cut), plan.stages()[number].cpu.load.bricks as usize);
            prop_assert!(again <= layout.highest());
        }
    }
}

#[test]
fn the_extremes_leave_a_backend_idle() {
    for (name, layout) in crate::common::layouts() {
        let all = layout.bricks().work();
        for (theta, idle) in [
            (0.0, Backend::Cpu),
            (layout.highest(), Backend::Gpu),
            (f64::INFINITY, Backend::Gpu),
        ] {
            let plan = Plan::new(&layout, &layout.cuts(theta)).unwrap();
            assert!(plan.load(idle).is_empty(), "{name}, theta {theta}");
            let busy = match idle {
                Backend::Cpu => Backend::Gpu,
                Backend::Gpu => Backend::Cpu,
            };
            assert_eq!(plan.load(busy).work(), all);
            assert!(plan.halo(Backend::Cpu).is_empty() && plan.halo(Backend::Gpu).is_empty());
            let upload: f64 = plan.stages().iter().map(|stage| stage.upload).sum();
            assert_eq!(upload > 0.0, busy == Backend::Gpu);
        }
    }
}

#[test]
fn subregions_hold_about_the_same_work() {
    for (name, layout) in crate::common::layouts() {
        let count = layout.subregions().len();
        assert_eq!(count, 32, "{name}");
        let mean = layout.bricks().work() as f64 / count as f64;
        let largest = layout.bricks().as_slice().iter().map(|b| b.work).max();
        let mut next = 0;
        for (number, subregion) in layout.subregions().iter().enumerate() {
            assert_eq!(subregion.bricks.start, next);
            next = subregion.bricks.end;
            let off = (layout.work(number) as f64 - mean).abs();
            assert!(
                off <= largest.unwrap() as f64,
                "{name}: subregion {number} is {off} off"
            );
        }
        assert_eq!(next, layout.bricks().as_slice().len());
    }
}

#[test]
fn subregions_hold_about_the_same_number_of_points_where_that_is_asked_for() {
    let bricks = || {
        let cells = crate::common::clusters();
        Bricks::new(cells, &Neighbourhood::cube(1), 2).unwrap()
    };
    let points = |layout: &Layout| -> Vec<u64> {
        let bricks = layout.bricks().as_slice();
        let of = |s: &Subregion| {
            bricks[s.bricks.clone()]
                .iter()
                .map(|b| u64::from(b.targets))
                .sum()
        };
        layout.subregions().iter().map(of).collect()
    };
    let parts = Subdivision {
        count: 16,
        equal: Equal::Points,
    };
    let equal = points(&Layout::new(bricks(), parts, Traffic::SUMS).unwrap());
    let largest = bricks().as_slice().iter().map(|brick| brick.targets).max();
    let mean = equal.iter().sum::<u64>() / 16;
    assert!(equal.len() == 16);
    assert!(
        equal
            .iter()
            .all(|points| points.abs_diff(mean) <= u64::from(largest.unwrap()))
    );
    let by_work = points(&Layout::new(bricks(), 16, Traffic::SUMS).unwrap());
    let spread = |points: &[u64]| points.iter().max().unwrap() - points.iter().min().unwrap();
    assert!(
        spread(&equal) < spread(&by_work) / 2,
        "{equal:?} {by_work:?}"
    );
}

#[test]
fn a_threshold_of_a_cut_gives_the_cut_again_whatever_the_ties() {
    for ties in [Ties::Even, Ties::Compact, Ties::Octaves] {
        let bricks = Bricks::new(crate::common::uniform(), &Neighbourhood::cube(1), 3).unwrap();
        let layout = Layout::with_ties(bricks, 6, Traffic::SUMS, ties).unwrap();
        for subregion in 0..6 {
            for bricks in 0..=layout.ladder(subregion).len() {
                let cut = layout.cut_at(subregion, bricks);
                let theta = layout.theta_of(subregion, cut);
                assert_eq!(
                    layout.cuts(theta)[subregion],
                    cut,
                    "{ties:?}, {subregion}, {bricks}"
                );
            }
        }
    }
}

#[test]
fn a_uniform_cloud_is_split_as_finely_as_it_has_bricks() {
    let layout = crate::common::layout(crate::common::uniform(), 2, Traffic::SUMS);
    let share = |theta: f64| Plan::new(&layout, &layout.cuts(theta)).unwrap().share();
    let shares: Vec<f64> = (0..=200).map(|n| share(60.0 + n as f64 / 50.0)).collect();
    // All whole bricks hold 64 points, so everything happens between 63 and 64.
    assert_eq!((share(63.0), share(64.0)), (0.0, 1.0));
    let step = shares
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .fold(0.0, f64::max);
    assert!(
        step < 0.025,
        "one fiftieth of theta moved {step} of the work"
    );
    for (n, theta) in layout.thetas(100).unwrap().into_iter().enumerate() {
        let wanted = n as f64 / 100.0;
        assert!(
            (share(theta) - wanted).abs() < 0.001,
            "{n}: {}",
            share(theta)
        );
    }
}

#[test]
fn bricks_of_an_octave_go_over_in_brick_order() {
    // Cells of 60 to 70 points in no order, every tenth with 10, and a row of 300.
    let points = |n: i64| match (n, n % 10) {
        (700.., _) => 300,
        (_, 9) => 10,
        _ => 60 + (n * 7 % 11) as u32,
    };
    let cells = (0..720).map(|n| CellLoad {
        cell: [n, 0, 0],
        targets: points(n),
        sources: points(n),
    });
    let bricks = Bricks::new(cells, &Neighbourhood::cube(1), 1).unwrap();
    let layout = Layout::with_ties(bricks, 6, Traffic::NONE, Ties::Octaves).unwrap();
    let all = layout.bricks().as_slice();
    for theta in layout.thetas(40).unwrap() {
        let plan = Plan::new(&layout, &layout.cuts(theta)).unwrap();
        let of_backend = |backend: Backend, most: u32| {
            let bricks = 0..all.len();
            let usual =
                bricks.filter(move |&brick| (most / 2..=most).contains(&all[brick].targets));
            let plan = &plan;
            usual.filter(move |&brick| plan.backend(brick) == Some(backend))
        };
        // Sparse bricks go first and full ones last; the others go in brick order.
        let any = |backend: Backend, most: u32| of_backend(backend, most).next().is_some();
        assert!(
            !any(Backend::Cpu, 100) || !any(Backend::Gpu, 10),
            "theta {theta}"
        );
        assert!(
            !any(Backend::Cpu, 300) || !any(Backend::Gpu, 100),
            "theta {theta}"
        );
        for most in [10, 100, 300] {
            let last = of_backend(Backend::Cpu, most).next_back();
            let first = of_backend(Backend::Gpu, most).next();
            let apart = last.zip(first).is_none_or(|(last, first)| last < first);
            assert!(apart, "theta {theta}: brick {last:?}, {first:?}");
        }
    }
}

#[test]
fn the_halo_of_a_half_split_is_a_thin_layer() {
    let layout = crate::common::layout(crate::common::uniform(), 1, Traffic::SUMS);
    let half = layout.subregions().len() / 2;
    let cuts: Vec<Cut> = (0..layout.subregions().len())
        .map(|s| if s < half { Cut::ALL } else { Cut::NONE })
        .collect();
    let plan = Plan::new(&layout, &cuts).unwrap();
    // 28 by 28 cells face each other; the border may run through a layer.
    for backend in [Backend::Cpu, Backend::Gpu] {
        let halo = plan.halo(backend).len();
        assert!((784..=2 * 784).contains(&halo), "{halo} bricks");
    }
}

#[test]
fn device_bytes_count_all_sources_and_three_results() {
    let layout = crate::common::layout(crate::common::uniform(), 2, Traffic::LISTS);
    let plan = Plan::new(&layout, &layout.cuts(0.0)).unwrap();
    let upload: f64 = plan.stages().iter().map(|stage| stage.upload).sum();
    assert_eq!(upload, 12.0 * 8.0 * 28f64.powi(3));
    let download = |stage: &Stage| stage.download;
    let most = plan.stages().iter().map(download).fold(0.0, f64::max);
    let results = plan.device_bytes() - upload;
    assert!(results > 2.5 * most && results <= 3.0 * most);
}

#[test]
fn bad_input_is_named() {
    let layout = crate::common::layout(crate::common::uniform(), 4, Traffic::SUMS);
    let error = Plan::new(&layout, &[Cut::NONE; 3]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "3 cuts for 32 subregions: give one for each"
    );
    let none = Layout::new(layout.bricks().clone(), 0, Traffic::SUMS).unwrap_err();
    assert_eq!(none, Error::from(ErrorKind::NoSubregions));
}

#[test]
fn no_points_make_an_empty_plan() {
    let layout = crate::common::layout(Vec::new(), 4, Traffic::SUMS);
    let plan = Plan::new(&layout, &layout.cuts(3.0)).unwrap();
    assert!(plan.stages().is_empty() && plan.order().is_empty());
    assert_eq!(plan.share(), 0.0);
}
