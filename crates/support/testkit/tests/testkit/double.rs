//! The oracle in double precision, against cases worked out by hand, its sweep
//! against its brute force, and its arithmetic against f32.

use nearfield_testkit::conformance::{Level, Runner};
use nearfield_testkit::oracle::{ListKind, Pairing, Problem};
use nearfield_testkit::strategy;
use proptest::prelude::*;

const FULL: Pairing<'static, f64> = Pairing::Within(ListKind::Full);

#[test]
fn a_pair_at_exactly_the_radius_counts_and_one_step_of_f64_beyond_does_not() {
    let lists = |x: f64| Problem::open(5.0, &[[0.0; 3], [x, 4.0, 0.0]], FULL).index_lists();
    assert_eq!(lists(3.0), [[1], [0]]);
    assert_eq!(lists(3.0 + 1e-15), [[0_u32; 0]; 2]);
}

#[test]
fn f32_and_f64_decide_otherwise_where_they_must() {
    // 1 + 2^-25 is beyond 1, but not in f32; 0.1 as f32 is more than 0.1.
    let points = [[0.0; 3], [1.0, 2.0_f64.powf(-12.5), 0.0]];
    assert!(Problem::open(1.0, &points, FULL).index_lists()[0].is_empty());
    let single = points.map(|at| at.map(|x| x as f32));
    let problem = Problem::open(1.0, &single, Pairing::Within(ListKind::Full));
    assert_eq!(problem.index_lists()[0], [1]);
    let apart = [[0.0; 3], [f64::from(0.1_f32), 0.0, 0.0]];
    assert!(Problem::open(0.1, &apart, FULL).index_lists()[0].is_empty());
}

#[test]
fn image_vectors_are_not_rounded_to_f32() {
    let shift = -9.0 * 0.1;
    assert_ne!(shift, f64::from(shift as f32));
    // Exactly at the radius through that image, and beyond it by a step of f32.
    let points = [[0.0; 3], [0.5 - shift, 0.0, 0.0]];
    let problem = Problem {
        periodic: [Some(0.1), None, None],
        ..Problem::open(points[1][0] + shift, &points, FULL)
    };
    let d = problem.displacement(points[0], points[1], [-9, 0, 0]);
    assert_eq!(d, [problem.radius, 0.0, 0.0]);
    let neighbors = problem.neighbors();
    let images: Vec<_> = neighbors[0]
        .iter()
        .filter(|n| n.index == 1)
        .map(|n| n.image[0])
        .collect();
    assert_eq!(images.last(), Some(&-9));
}

#[test]
fn the_sweep_agrees_with_the_brute_force() {
    for case in Runner::in_double(Level::Quick).cases() {
        let problem = case.problem();
        if case.targets().len() * case.sources().len() < 200_000 {
            assert_eq!(problem.neighbors(), problem.brute_force(), "{}", case.name);
        }
    }
}

proptest! {
    #[test]
    fn the_sweep_agrees_with_the_brute_force_on_any_case(case in strategy::double_case(25)) {
        let problem = case.problem();
        prop_assert_eq!(problem.neighbors(), problem.brute_force());
    }
}
