//! Several point sets: every set searching every other.

use crate::conformance::case::{Case, every_pair};
use crate::shapes::{coincident, lattice, translated, uniform_box};

/// Each group of sets in an open and in a periodic domain, with every choice
/// of who searches whom.
pub(super) fn cases() -> Vec<Case> {
    let domains = [[None; 3], [Some(5.5), None, Some(1.7)]];
    let groups = groups();
    let both = groups
        .iter()
        .flat_map(|group| domains.map(|domain| (group, domain)));
    both.flat_map(|((name, sets), periodic)| activations(name, sets, periodic))
        .collect()
}

type Group = (&'static str, Vec<Vec<[f32; 3]>>);

fn groups() -> Vec<Group> {
    let ball = |points, low: f32, high: f32, seed| uniform_box(points, [[low; 3], [high; 3]], seed);
    vec![
        (
            "two overlapping sets",
            vec![ball(300, 0.0, 5.0, 1), ball(170, 2.0, 6.0, 2)],
        ),
        (
            "a set beside another",
            vec![ball(100, 0.0, 2.0, 3), ball(90, 2.0, 4.0, 4)],
        ),
        (
            "sets out of reach",
            vec![ball(50, 0.0, 2.0, 5), ball(40, 90.0, 92.0, 6)],
        ),
        (
            "a set twice",
            vec![ball(80, 0.0, 3.0, 7), ball(80, 0.0, 3.0, 7)],
        ),
        (
            "a set and an empty one",
            vec![ball(60, 0.0, 3.0, 8), vec![]],
        ),
        (
            "many points and one",
            vec![ball(200, 0.0, 4.0, 9), vec![[2.0; 3]]],
        ),
        (
            "piles on a lattice",
            vec![coincident(9, [1.0; 3]), lattice([4, 4, 4])],
        ),
        (
            "three sets",
            vec![
                ball(90, 0.0, 3.0, 10),
                translated(lattice([5, 5, 1]), [-1.0, -1.0, 0.0]),
                ball(30, 1.0, 2.0, 11),
            ],
        ),
    ]
}

fn activations(name: &str, sets: &[Vec<[f32; 3]>], periodic: [Option<f64>; 3]) -> Vec<Case> {
    let like = Case::new(format!("{name} in {periodic:?}"), 1.0, vec![]);
    every_pair(&like.periodic(periodic), sets)
}
