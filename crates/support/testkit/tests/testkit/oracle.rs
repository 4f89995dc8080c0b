//! The oracle against cases worked out by hand, against published counts, and
//! its sweep against its brute force.

use nearfield_testkit::conformance::{Case, Level, Runner};
use nearfield_testkit::oracle::{ListKind, Neighbor, Pairing, Problem, Radii, RadiusRule, Vectors};
use nearfield_testkit::published::{Ball, ball_counts, systems};
use nearfield_testkit::{Cloud, shapes, strategy};
use proptest::prelude::*;

const FULL: Pairing<'static> = Pairing::Within(ListKind::Full);
const HALF: Pairing<'static> = Pairing::Within(ListKind::Half);

fn neighbor(index: u32, image: [i64; 3]) -> Neighbor {
    Neighbor { index, image }
}

#[test]
fn a_pair_at_exactly_the_radius_counts_and_one_step_beyond_does_not() {
    let lists = |x: f32| Problem::open(5.0, &[[0.0; 3], [x, 4.0, 0.0]], FULL).index_lists();
    assert_eq!(lists(3.0), [[1], [0]]);
    assert_eq!(lists(3.000_001), [[0_u32; 0]; 2]);
}

// In exact arithmetic the squared distance 1 + 2^-25 is beyond 1; in f32 it
// rounds to 1.
#[test]
fn the_distance_is_the_one_f32_computes() {
    let points = [[0.0; 3], [1.0, 2.0_f32.powf(-12.5), 0.0]];
    assert_eq!(Problem::open(1.0, &points, FULL).index_lists(), [[1], [0]]);
}

#[test]
fn coincident_points_are_neighbors_and_a_point_is_not_its_own() {
    let points = shapes::coincident(3, [0.1, 0.2, 0.3]);
    let full = Problem::open(1.0, &points, FULL).index_lists();
    assert_eq!(full, [[1, 2], [0, 2], [0, 1]]);
    let half = Problem::open(1.0, &points, HALF).index_lists();
    assert_eq!(half, [vec![1, 2], vec![2], vec![]]);
}

#[test]
fn two_sets_leave_nothing_out() {
    let problem = Problem::open(1.0, &[[0.0; 3]], Pairing::With(&[[9.0; 3], [0.0; 3]]));
    assert_eq!(problem.index_lists(), [[1]]);
}

#[test]
fn every_image_within_the_radius_is_listed() {
    let problem = Problem {
        periodic: [Some(0.5), None, None],
        ..Problem::open(1.0, &[[0.25; 3]], FULL)
    };
    let images = [-2, -1, 1, 2].map(|x| neighbor(0, [x, 0, 0]));
    assert_eq!(problem.neighbors(), [images]);
    let half = Problem {
        pairing: HALF,
        ..problem
    };
    assert_eq!(half.neighbors(), [[1, 2].map(|x| neighbor(0, [x, 0, 0]))]);
}

#[test]
fn the_image_moves_the_source_towards_the_target() {
    let points = [[0.5, 0.0, 0.0], [3.75, 0.0, 8.0]];
    let problem = Problem {
        periodic: [Some(4.0), None, Some(4.0)],
        ..Problem::open(1.0, &points, FULL)
    };
    let expected = [[neighbor(1, [-1, 0, -2])], [neighbor(0, [1, 0, 2])]];
    assert_eq!(problem.neighbors(), expected);
    assert_eq!(problem.brute_force(), expected);
    let squared = problem.distance_squared(points[0], points[1], [-1, 0, -2]);
    assert_eq!(squared, 0.75 * 0.75);
    assert_eq!(problem.nearest_image(points[0], points[1]), [-1, 0, -2]);
}

fn in_box(radius: f32, points: &[[f32; 3]], vectors: Vectors) -> Problem<'_> {
    Problem {
        vectors: Some(vectors),
        ..Problem::open(radius, points, FULL)
    }
}

// The second vector leans by half a box, so images along it alternate.
#[test]
fn the_images_of_a_tilted_box_are_those_of_its_vectors() {
    let vectors = [Some([2.0, 0.0, 0.0]), Some([1.0, 0.75, 0.0]), None];
    let points = [[0.0; 3], [1.0, 1.0, 0.0]];
    let lists = in_box(1.25, &points, vectors).neighbors();
    // Its own images at (±1, ±0.75) lie at exactly 1.25.
    let own = [[-1, 1, 0], [0, -1, 0], [0, 1, 0], [1, -1, 0]].map(|image| neighbor(0, image));
    // The other point seen at (-1, -0.5), (0, 0.25), (0, -1.25) and (1, -0.5).
    let other = [[0, -2, 0], [0, -1, 0], [1, -3, 0], [1, -2, 0]].map(|image| neighbor(1, image));
    assert_eq!(lists[0], [own, other].concat());
    let problem = in_box(1.25, &points, vectors);
    assert_eq!(problem.nearest_image(points[0], points[1]), [0, -1, 0]);
    let squared = problem.distance_squared(points[0], points[1], [1, -2, 0]);
    assert_eq!(squared, 1.25);
}

#[test]
fn a_box_without_tilt_has_the_same_neighbors_given_by_lengths_or_by_vectors() {
    let points = shapes::uniform_box(80, [[-4.0; 3], [5.0; 3]], 7);
    let straight = Problem {
        periodic: [Some(1.3), None, Some(2.9)],
        ..Problem::open(1.1, &points, FULL)
    };
    let vectors = [Some([1.3, 0.0, 0.0]), None, Some([0.0, 0.0, 2.9])];
    let tilted = in_box(1.1, &points, vectors);
    assert_eq!(tilted.neighbors(), straight.brute_force());
    assert_eq!(tilted.counts(), straight.counts());
}

// Whole numbers, so every shift is exact and images correspond one to one.
#[test]
fn other_vectors_of_the_same_lattice_give_the_same_neighbors() {
    let points = shapes::uniform_box(60, [[-3.0; 3], [6.0; 3]], 8);
    let described = |vectors: [[f64; 3]; 3]| in_box(2.2, &points, vectors.map(Some)).index_lists();
    let straight = described([[3.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 2.0]]);
    for vectors in [
        [[3.0, 0.0, 0.0], [-3.0, 4.0, 0.0], [6.0, 4.0, 2.0]],
        [[3.0, 4.0, 0.0], [3.0, 0.0, 0.0], [3.0, -4.0, -2.0]],
        [[3.0, 0.0, 0.0], [12.0, 4.0, 0.0], [-9.0, 16.0, 2.0]],
    ] {
        assert_eq!(described(vectors), straight, "{vectors:?}");
    }
}

#[test]
fn half_lists_hold_each_pair_of_the_full_lists_once() {
    let points = shapes::uniform_box(60, [[0.0; 3], [2.0; 3]], 1);
    let full = Problem {
        periodic: [Some(1.9), None, Some(0.8)],
        ..Problem::open(1.0, &points, FULL)
    };
    let half = Problem {
        pairing: HALF,
        ..full
    };
    let mut both = half.neighbors();
    for (target, list) in (0..).zip(half.neighbors()) {
        for Neighbor { index, image } in list {
            both[index as usize].push(neighbor(target, image.map(|n| -n)));
        }
    }
    both.iter_mut().for_each(|list| list.sort_unstable());
    assert_eq!(both, full.neighbors());
}

// Three points in a row, the middle one with the smallest radius.
#[test]
fn a_rule_says_whose_radius_decides() {
    let points = [[0.0; 3], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]];
    let radii = [2.0, 0.5, 1.0];
    let lists = |rule| {
        let radii = Radii {
            rule,
            targets: &radii,
            sources: &radii,
        };
        let problem = Problem {
            radii,
            ..Problem::open(3.0, &points, FULL)
        };
        let lists = problem.index_lists();
        let counts: Vec<u64> = lists.iter().map(|list| list.len() as u64).collect();
        assert_eq!(problem.counts(), counts);
        lists
    };
    assert_eq!(lists(RadiusRule::Uniform), [[1, 2], [0, 2], [0, 1]]);
    assert_eq!(lists(RadiusRule::Gather), [vec![1, 2], vec![], vec![1]]);
    assert_eq!(lists(RadiusRule::Scatter), [vec![], vec![0, 2], vec![0]]);
    assert_eq!(lists(RadiusRule::Symmetric), [[1, 2], [0, 2], [0, 1]]);
    let other = [[0.0, 0.0, 1.0]];
    let of_sources = Problem {
        radii: Radii {
            rule: RadiusRule::Scatter,
            targets: &[],
            sources: &radii,
        },
        ..Problem::open(3.0, &other, Pairing::With(&points))
    };
    assert_eq!(of_sources.index_lists(), [[0]]);
}

#[test]
fn points_that_are_not_finite_have_no_neighbors() {
    let points = [[0.0; 3], [f32::NAN, 0.0, 0.0], [0.5; 3], [f32::INFINITY; 3]];
    let problem = Problem::open(1.0, &points, FULL);
    assert_eq!(problem.index_lists(), [vec![2], vec![], vec![0], vec![]]);
}

#[test]
fn lattices_have_the_published_numbers_of_neighbors() {
    for count in ball_counts(Ball::CubicByRadius).iter().take(7).skip(1) {
        let lattice = shapes::lattice([4; 3]);
        let problem = Problem {
            periodic: [Some(4.0); 3],
            ..Problem::open(count.index as f32, &lattice, FULL)
        };
        let neighbors = vec![count.points - 1; 64];
        assert_eq!(problem.counts(), neighbors, "radius {}", count.index);
    }
}

#[test]
fn vesins_five_points_have_exactly_the_published_pairs() {
    let vesin = systems()
        .into_iter()
        .find(|system| system.id == "vesin_5pt");
    let vesin = vesin.expect("the row vesin_5pt");
    let lists = Problem::open(vesin.radius, &vesin.points, HALF).index_lists();
    assert_eq!(
        lists,
        [vec![1, 2, 3, 4], vec![3, 4], vec![3, 4], vec![4], vec![]]
    );
}

fn assert_sweep_is_brute_force(problem: &Problem, name: &str) {
    let expected = problem.brute_force();
    assert_eq!(problem.neighbors(), expected, "{name}");
    let counts: Vec<u64> = expected.iter().map(|list| list.len() as u64).collect();
    assert_eq!(problem.counts(), counts, "{name}");
}

#[test]
fn the_sweep_finds_what_the_brute_force_finds_in_every_quick_case() {
    let few = |case: &Case| case.targets().len() <= 700;
    for case in Runner::new(Level::Quick).keep(few).cases() {
        assert_sweep_is_brute_force(&case.problem(), &case.name);
    }
}

#[test]
fn the_sweep_finds_what_the_brute_force_finds_in_every_cloud() {
    for cloud in Cloud::ALL {
        let points = cloud.points(1200, 5);
        let problem = Problem::open(cloud.default_radius(1200), &points, FULL);
        assert_sweep_is_brute_force(&problem, cloud.name());
        let periodic = [Some(7.3), None, Some(11.9)];
        assert_sweep_is_brute_force(
            &Problem {
                periodic,
                ..problem
            },
            cloud.name(),
        );
    }
}

#[test]
fn points_that_span_too_many_boxes_for_a_sweep_are_searched_all_the_same() {
    let mut points = shapes::uniform_box(30, [[0.0; 3], [2.0; 3]], 1);
    points[7][0] += 1e7;
    let problem = Problem {
        periodic: [Some(2.0), None, None],
        ..Problem::open(1.0, &points, FULL)
    };
    assert_sweep_is_brute_force(&problem, "far outlier");
    let lists = problem.neighbors();
    assert!(
        lists[7]
            .iter()
            .all(|neighbor| neighbor.image[0] > 4_999_000)
    );
    assert!(!lists[7].is_empty());
}

proptest! {
    #[test]
    fn the_sweep_finds_what_the_brute_force_finds(case in strategy::case(60)) {
        let problem = case.problem();
        prop_assert_eq!(problem.neighbors(), problem.brute_force());
    }

    #[test]
    fn scattering_is_gathering_seen_from_the_other_end(case in strategy::radii_case(40)) {
        let by = |rule| Case { rule, source: case.target, list: ListKind::Full, ..case.clone() };
        let [gathered, scattered, larger] = RadiusRule::OWN.map(|rule| by(rule).problem().neighbors());
        let mut turned = vec![Vec::new(); gathered.len()];
        for (target, list) in (0..).zip(&gathered) {
            for Neighbor { index, image } in list {
                turned[*index as usize].push(neighbor(target, image.map(|n| -n)));
            }
        }
        turned.iter_mut().for_each(|list| list.sort_unstable());
        prop_assert_eq!(&turned, &scattered);
        for ((either, gathered), scattered) in larger.iter().zip(&gathered).zip(&scattered) {
            let mut both = [gathered.as_slice(), scattered].concat();
            both.sort_unstable();
            both.dedup();
            prop_assert_eq!(either, &both);
        }
    }

    #[test]
    fn full_lists_are_symmetric(case in prop_oneof![strategy::case(40), strategy::tilted_case(25)]) {
        let case = Case { source: case.target, list: ListKind::Full, ..case };
        let lists = case.problem().neighbors();
        for (target, list) in (0..).zip(&lists) {
            for Neighbor { index, image } in list {
                let mirrored = neighbor(target, image.map(|n| -n));
                prop_assert!(lists[*index as usize].binary_search(&mirrored).is_ok());
            }
        }
    }
}
