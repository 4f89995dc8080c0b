//! Periodic domains: every combination of axes, boxes smaller and larger than
//! the radius, unwrapped coordinates.

use crate::conformance::case::{Case, full_and_half};
use crate::conformance::level::Level;
use crate::shapes;

/// Each domain with full and half lists.
pub(super) fn cases(level: Level) -> Vec<Case> {
    let mut cases = on_faces();
    cases.extend(at_the_limit());
    for seed in 0..level.seeds() {
        cases.extend(axes(seed));
        cases.extend(lengths(seed));
        cases.extend(unwrapped(seed));
        cases.push(on_the_radius(seed));
    }
    cases.into_iter().flat_map(full_and_half).collect()
}

/// Points in a box of these lengths, about a tenth of them just outside it.
fn filled(points: usize, lengths: [f64; 3], seed: u64) -> Vec<[f32; 3]> {
    let low = lengths.map(|length| (-0.05 * length) as f32);
    let high = lengths.map(|length| (1.05 * length) as f32);
    shapes::uniform_box(points, [low, high], seed)
}

/// Every choice of periodic axes, in a box of moderate size.
fn axes(seed: u64) -> Vec<Case> {
    let lengths = [4.1, 3.3, 5.7];
    let case = |mask: usize| {
        let periodic = [0, 1, 2].map(|axis| (mask >> axis & 1 == 1).then_some(lengths[axis]));
        let name = format!("periodic in {periodic:?}, seed {seed}");
        Case::new(name, 1.0, filled(300, lengths, seed)).periodic(periodic)
    };
    (1..8).map(case).collect()
}

/// Boxes smaller than the radius, than twice the radius, and larger, also
/// exactly as large, and mixed over the axes.
fn lengths(seed: u64) -> Vec<Case> {
    let boxes = [
        ([0.4; 3], 12),
        ([0.7, 0.9, 0.8], 20),
        ([1.0; 3], 20),
        ([1.3, 1.7, 1.99], 40),
        ([2.0; 3], 60),
        ([2.3, 2.001, 3.7], 120),
        ([std::f64::consts::PI, 10.0 / 3.0, 3.0], 150),
        ([0.6, 1.9, 5.0], 60),
        ([5.0, 0.6, 1.9], 60),
        ([1.9, 5.0, 0.6], 60),
        ([10.0, 10.0, 9.9], 1000),
    ];
    let case = |(lengths, points): ([f64; 3], usize)| {
        let name = format!("{points} points in a box of {lengths:?}, seed {seed}");
        let points = filled(points, lengths, seed);
        Case::new(name, 1.0, points).periodic(lengths.map(Some))
    };
    boxes.into_iter().map(case).collect()
}

/// Coordinates several boxes away from each other.
fn unwrapped(seed: u64) -> Vec<Case> {
    let case = |(boxes, periodic, points): (u8, [Option<f64>; 3], usize)| {
        let lengths = periodic.map(|length| length.unwrap_or(4.0));
        let name = format!("unwrapped by up to {boxes} boxes of {periodic:?}, seed {seed}");
        let points = shapes::unwrapped(filled(points, lengths, seed), periodic, boxes, seed);
        Case::new(name, 1.0, points).periodic(periodic)
    };
    let cases = [
        (1, [Some(3.0); 3], 150),
        (5, [Some(3.3), Some(2.1), Some(5.7)], 200),
        (5, [Some(0.8), Some(0.6), Some(0.9)], 15),
        (100, [Some(4.4), None, Some(3.1)], 900),
        (100, [None, Some(0.7), None], 60),
    ];
    cases.into_iter().map(case).collect()
}

/// Pairs at the radius but for rounding, some of them several boxes apart.
fn on_the_radius(seed: u64) -> Case {
    let periodic = [Some(2.7), Some(3.3), None];
    let sphere = shapes::rounded_sphere(300, 1.0, [0.1, 0.2, 0.3], seed);
    let points = shapes::unwrapped(sphere, periodic, 3, seed);
    let name = format!("at the radius across box faces but for rounding, seed {seed}");
    Case::new(name, 1.0, points).periodic(periodic)
}

/// Points as far from the box as the engine takes them, 2³⁰ boxes on either side: images of their
/// pairs have counts beyond the range of `i32`.
fn at_the_limit() -> [Case; 2] {
    let far = (1_u32 << 30) as f32;
    [0, 2].map(|axis| {
        let along = [far, -far, far - 64.0, 0.0, 0.25, -far];
        let points = (0..12).map(|k| {
            let mut at = [0.0, if k < 6 { 0.0 } else { 0.25 }, 0.0];
            at[axis] = along[k % 6];
            at
        });
        let mut periodic = [None; 3];
        periodic[axis] = Some(1.0);
        let name = format!("2^30 boxes away on both sides along axis {axis}");
        Case::new(name, 0.5, points.collect()).periodic(periodic)
    })
}

/// Points on the faces of the box, at both ends, and pairs at exactly the
/// radius across them.
fn on_faces() -> Vec<Case> {
    let lattice = |side: usize| shapes::lattice([side; 3]);
    let both_ends = shapes::lattice([5; 3]);
    let one = vec![[0.25, 0.5, 0.75]];
    let far = shapes::translated(lattice(4), [1e4, -1e4, 400.0]);
    vec![
        Case::new("box faces at both ends", 1.0, both_ends).periodic([Some(4.0); 3]),
        Case::new("lattice in a shifted box", 2.0, far).periodic([Some(4.0); 3]),
        Case::new("one point and its images", 1.0, one.clone()).periodic([Some(1.0); 3]),
        Case::new("one point, a box of a third", 1.0, one).periodic([Some(1.0 / 3.0); 3]),
        Case::new("no point in a box", 1.0, vec![]).periodic([Some(3.0); 3]),
        Case::new(
            "coincident points in a small box",
            1.0,
            shapes::coincident(7, [0.1; 3]),
        )
        .periodic([Some(0.9), Some(1.0), Some(1.1)]),
        Case::new(
            "large box",
            1.0,
            shapes::uniform_box(500, [[0.0; 3], [7.0; 3]], 3),
        )
        .periodic([Some(1e6); 3]),
    ]
}
