//! Open domains: the special shapes, each at radii that matter to it.

use crate::conformance::case::{Case, full_and_half};
use crate::shapes;

/// Each shape with full and half lists.
pub(super) fn cases() -> Vec<Case> {
    let groups = [
        degenerate(),
        on_the_radius(),
        on_cell_faces(),
        far(),
        flat(),
        extreme(),
    ];
    groups
        .into_iter()
        .flatten()
        .flat_map(full_and_half)
        .collect()
}

fn cube(points: usize, side: f32) -> Vec<[f32; 3]> {
    shapes::uniform_box(points, [[0.0; 3], [side; 3]], 11)
}

fn degenerate() -> Vec<Case> {
    let mut pile = shapes::coincident(40, [1.5, -2.5, 0.1]);
    pile.extend(cube(40, 3.0));
    vec![
        Case::new("no point", 1.0, vec![]),
        Case::new("one point", 1.0, vec![[0.3, -7.0, 2.0]]),
        Case::new(
            "coincident points",
            0.5,
            shapes::coincident(60, [0.1, 0.2, 0.3]),
        ),
        Case::new("a pile among others", 1.0, pile),
        Case::new("all in one cell", 8.0, cube(200, 1.0)),
        Case::new("all within the radius", 100.0, cube(120, 50.0)),
        Case::new("none within the radius", 0.01, shapes::lattice([6, 6, 6])),
    ]
}

fn on_the_radius() -> Vec<Case> {
    let mut cases = Vec::new();
    for radius in [3, 5, 7, 9] {
        for scale in [1.0, 2.0_f32.powi(-10), 4096.0] {
            let name = format!("pairs at exactly the radius {radius} times {scale}");
            let points = shapes::exact_sphere(radius, scale, [40, -3, 17]);
            cases.push(Case::new(name, radius as f32 * scale, points));
        }
    }
    for radius in [0.1, 1.0 / 3.0, 1.0, 2.5, 1e-5, 12_345.678] {
        for center in [0.0, 1.0, -1000.0] {
            let name = format!("one step around the radius {radius} from {center}");
            let points = shapes::around_radius(radius, [center * radius; 3]);
            cases.push(Case::new(name, radius, points));
        }
    }
    for radius in [1.0, 0.1, 3.7] {
        let name = format!("at the radius {radius} but for rounding");
        let points = shapes::rounded_sphere(300, radius, [0.0; 3], 8);
        cases.push(Case::new(name, radius, points));
    }
    for radius in [1.0, 2.0_f32.sqrt(), 2.0, 3.0] {
        let name = format!("perfect lattice at the radius {radius}");
        cases.push(Case::new(name, radius, shapes::lattice([9, 8, 7])));
    }
    cases
}

fn on_cell_faces() -> Vec<Case> {
    let mut cases = Vec::new();
    for cells in 1..=3 {
        for radius in [1.0, 0.1, 0.3] {
            let name = format!("on the faces of cells of {radius} / {cells}");
            let points = shapes::cell_faces(radius, cells, 3);
            cases.push(Case::new(name, radius, points));
        }
    }
    cases
}

fn far() -> Vec<Case> {
    let with = |outliers: &[[f32; 3]]| [cube(200, 5.0), outliers.to_vec()].concat();
    let mut cases = vec![
        Case::new("one outlier at 1e7", 1.0, with(&[[1e7, -3.0, 2.0]])),
        Case::new("outliers on both sides", 1.0, with(&[[1e7; 3], [-1e7; 3]])),
        Case::new("one outlier at 1e30", 1.0, with(&[[0.0, 1e30, 0.0]])),
        Case::new(
            "opposite ends of f32",
            1.0,
            with(&[[f32::MAX; 3], [f32::MIN; 3]]),
        ),
    ];
    for offset in [-2.5, 1e4, -1e4, 1e6] {
        let points = shapes::translated(cube(400, 6.0), [offset, -offset, offset * 0.5]);
        cases.push(Case::new(format!("moved by {offset}"), 1.0, points));
    }
    let lattice = shapes::translated(shapes::lattice([7; 3]), [1e6, -1e6, 8e6]);
    cases.push(Case::new("perfect lattice far away", 2.0, lattice));
    cases
}

fn flat() -> Vec<Case> {
    let mut cases = Vec::new();
    for axis in 0..3 {
        for thickness in [0.0, 0.05] {
            let mut high = [12.0; 3];
            high[axis] = thickness;
            let name = format!("slab {thickness} thick across axis {axis}");
            cases.push(Case::new(
                name,
                1.0,
                shapes::uniform_box(500, [[0.0; 3], high], 5),
            ));
        }
        let mut end = [0.25; 3];
        end[axis] = 60.0;
        let line = shapes::collinear(300, [[0.25; 3], end], 6);
        cases.push(Case::new(format!("line along axis {axis}"), 1.0, line));
    }
    let diagonal = shapes::collinear(300, [[-20.0, 3.0, 9.0], [15.0, -30.0, 8.0]], 7);
    cases.push(Case::new("slanted line", 1.0, diagonal));
    cases
}

fn extreme() -> Vec<Case> {
    let scaled = |by: f32| cube(300, 6.0).iter().map(|at| at.map(|x| x * by)).collect();
    vec![
        Case::new("zeros and subnormals", 0.5, shapes::around_zero(0.5)),
        Case::new("tiny radius", 1e-7, scaled(1e-7)),
        Case::new("huge radius", 1e9, scaled(1e9)),
    ]
}
