//! Grids in tilted boxes: their order, their cells, and what their runs visit.

use nearfield_grid::{Bounds, Domain, Grid, Lattice, Radius};
use proptest::prelude::*;
use std::collections::HashSet;

fn build(points: &[[f32; 3]], radius: f32, subdivision: u32, domain: Domain) -> Grid {
    let bounds = Bounds::of(points.into(), &domain).unwrap();
    let radius = Radius::new(radius).unwrap();
    let lattice = Lattice::new(radius, domain, subdivision, &bounds).unwrap();
    let mut grid = Grid::new(lattice.clone());
    grid.build(points.into(), bounds, &lattice).unwrap();
    grid
}

/// Lengths, tilts and an axis that may be open.
fn domain() -> impl Strategy<Value = Domain> {
    let lengths = prop::array::uniform3(0.4f64..6.0);
    let tilts = prop::array::uniform3(-1.5f64..1.5);
    (lengths, tilts, prop::option::of(0..3usize)).prop_map(|(lengths, [xy, xz, yz], open)| {
        let is_open = |axis: usize| open == Some(axis);
        let tilt = |tilted, along: usize, share: f64| {
            if is_open(tilted) || is_open(along) {
                0.0
            } else {
                share * lengths[along]
            }
        };
        let periodic = std::array::from_fn(|axis| (!is_open(axis)).then_some(lengths[axis]));
        let tilts = [tilt(1, 0, xy), tilt(2, 0, xz), tilt(2, 1, yz)];
        Domain::triclinic(periodic, tilts).unwrap()
    })
}

proptest! {
    #[test]
    fn any_points_are_sorted_by_cell_and_index(
        mut points in prop::collection::vec(prop::array::uniform3(-9.0f32..9.0), 1..120),
        radius in 0.05f32..3.0,
        subdivision in 1u32..4,
        domain in domain(),
        outlier in prop::option::of(prop::array::uniform3(-1e6f32..1e6)),
    ) {
        points.extend(outlier);
        let grid = build(&points, radius, subdivision, domain);
        let lattice = grid.lattice();
        let mut expected: Vec<u32> = (0..points.len() as u32).collect();
        expected.sort_by_key(|&i| {
            let [x, y, z] = lattice.cell(points[i as usize]);
            [z, y, x]
        });
        let permutation = grid.permutation().unwrap();
        prop_assert_eq!(permutation.order(), expected);
        let mut seen = 0;
        for (cell, slots) in grid.cells(0..points.len()) {
            prop_assert_eq!(slots.start, seen);
            seen = slots.end;
            for slot in slots {
                let position = grid.points().position(slot);
                prop_assert_eq!(lattice.cell(position), cell);
                prop_assert_eq!(grid.points().wraps(slot), lattice.wraps(position));
            }
        }
        prop_assert_eq!(seen, points.len());
    }

    #[test]
    fn runs_visit_every_point_once_per_image_and_come_in_opposite_pairs(
        points in prop::collection::vec(prop::array::uniform3(-4.0f32..4.0), 1..25),
        radius in 0.2f32..2.0,
        subdivision in 1u32..4,
        domain in domain(),
    ) {
        let grid = build(&points, radius, subdivision, domain);
        let mut visited = HashSet::new();
        for target in 0..points.len() {
            let cell = grid.lattice().cell(grid.points().position(target));
            for run in grid.sweep().runs(cell, 0).unwrap() {
                for slot in run.slots.clone() {
                    assert!(visited.insert((target, slot, run.image)), "visited twice");
                }
            }
            prop_assert!(visited.contains(&(target, target, [0; 3])), "its own cell");
        }
        for &(target, source, image) in &visited {
            prop_assert!(visited.contains(&(source, target, image.map(|n| -n))));
        }
    }
}

#[test]
fn points_inside_a_tilted_box_need_no_wraps() {
    let domain = Domain::triclinic([Some(4.0); 3], [2.0, 2.0, -2.0]).unwrap();
    // The last corner of the box lies far outside the box of its lengths.
    let inside = vec![[1.0, 0.2, 0.3], [7.0, 1.5, 3.5f32]];
    assert!(!build(&inside, 0.5, 1, domain).points().any_wrapped());
    let outside = vec![[0.1, 0.2, 0.3], [3.9, 3.9, 0.1f32]];
    assert!(build(&outside, 0.5, 1, domain).points().any_wrapped());
}
