//! The sorted order is the stable order by (cell, index), for every table and number of threads.

use nearfield_grid::{Bounds, Domain, Grid, Lattice, Positions, Radius, TableKind};
use proptest::prelude::*;

fn build(points: &[[f32; 3]], radius: f32, domain: Domain) -> Grid {
    let positions = Positions::from(points);
    let bounds = Bounds::of(positions, &domain).unwrap();
    let lattice = Lattice::new(Radius::new(radius).unwrap(), domain, 1, &bounds).unwrap();
    let mut grid = Grid::new(lattice.clone());
    grid.build(positions, bounds, &lattice).unwrap();
    grid
}

/// The expected order: by z, y, x of the cell, then by index.
fn expected_order(points: &[[f32; 3]], lattice: &Lattice) -> Vec<u32> {
    let mut order: Vec<u32> = (0..points.len() as u32).collect();
    order.sort_by_key(|&i| {
        let [x, y, z] = lattice.cell(points[i as usize]);
        [z, y, x]
    });
    order
}

fn check(points: &[[f32; 3]], radius: f32, domain: Domain) -> Grid {
    let grid = build(points, radius, domain);
    let expected = expected_order(points, grid.lattice());
    assert_eq!(grid.permutation().unwrap().order(), expected);
    for (slot, &i) in expected.iter().enumerate() {
        assert_eq!(grid.points().position(slot), points[i as usize]);
    }
    let mut seen = 0;
    for (cell, slots) in grid.cells(0..points.len()) {
        assert_eq!(slots.start, seen, "cells follow each other");
        seen = slots.end;
        for slot in slots {
            assert_eq!(grid.lattice().cell(grid.points().position(slot)), cell);
        }
    }
    assert_eq!(seen, points.len(), "every point lies in one cell");
    grid
}

/// Scattered points without a random generator: multiples of irrational numbers. Under Miri there
/// are a twentieth as many, but enough for several buckets of the sort.
fn scatter(count: usize, extent: f32) -> Vec<[f32; 3]> {
    let count = if cfg!(miri) { count / 20 } else { count };
    let fraction = |i: usize, step: f64| ((i as f64 * step).fract() as f32) * extent;
    (0..count)
        .map(|i| {
            [
                fraction(i, 0.618_034),
                fraction(i, 0.414_214),
                fraction(i, 0.732_051),
            ]
        })
        .collect()
}

#[test]
fn a_compact_cloud_is_sorted_with_a_dense_table() {
    let grid = check(&scatter(40_000, 17.0), 1.0, Domain::OPEN);
    assert_eq!(grid.table_kind(), TableKind::Dense);
}

#[test]
fn an_outlier_costs_memory_by_the_points_not_by_the_volume() {
    let mut points = scatter(40_000, 17.0);
    points.push([1e7, -1e7, 1e7]);
    let grid = check(&points, 1.0, Domain::OPEN);
    assert_eq!(grid.table_kind(), TableKind::Hashed);
    assert!(grid.bytes() < 200 * points.len(), "{} bytes", grid.bytes());
}

#[test]
fn cells_too_far_apart_for_64_bits_are_sorted_too() {
    let mut points = scatter(20_000, 17.0);
    points.extend([[1e30, 0.0, 0.0], [-1e30, 1e30, -1e30], [3e38; 3]]);
    check(&points, 1e-3, Domain::OPEN);
}

#[test]
fn a_periodic_box_wraps_points_into_its_cells() {
    let points: Vec<_> = scatter(10_000, 30.0)
        .into_iter()
        .map(|p| p.map(|x| x - 12.0))
        .collect();
    let domain = Domain::new([Some(7.5), None, Some(0.4)]).unwrap();
    let grid = check(&points, 0.6, domain);
    assert!(grid.points().any_wrapped());
}

#[test]
fn the_order_does_not_depend_on_the_number_of_threads() {
    for outlier in [0.5f32, 1e7] {
        let mut points = scatter(60_000, 20.0);
        points.push([outlier; 3]);
        let orders = [1, 2, 5].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| build(&points, 1.0, Domain::OPEN).permutation().unwrap())
        });
        assert!(orders.iter().all(|order| *order == orders[0]));
    }
}

#[test]
fn a_grid_is_rebuilt_on_another_lattice_without_the_callers_positions() {
    let points = scatter(5_000, 9.0);
    let mut grid = build(&points, 1.0, Domain::OPEN);
    let radius = Radius::new(2.5).unwrap();
    let lattice = Lattice::new(radius, Domain::OPEN, 1, grid.bounds()).unwrap();
    grid.rebuild(&lattice).unwrap();
    assert_eq!(
        grid.permutation().unwrap().order(),
        expected_order(&points, &lattice)
    );
    assert_eq!(grid.points().in_callers_order().unwrap(), points);
}

#[test]
fn no_points_make_an_empty_grid_and_points_can_come_later() {
    let mut grid = build(&[], 1.0, Domain::OPEN);
    assert!(grid.points().is_empty());
    assert_eq!(grid.cells(0..0).count(), 0);
    assert_eq!(
        grid.sweep().runs([0, 0, 0], 0).unwrap(),
        [],
        "an empty grid"
    );
    let points = scatter(100, 3.0);
    let bounds = Bounds::of((&points).into(), &Domain::OPEN).unwrap();
    let lattice = grid.lattice().clone();
    grid.build((&points).into(), bounds, &lattice).unwrap();
    assert_eq!(grid.points().len(), points.len());
}

#[test]
fn points_all_so_far_out_that_their_cells_are_clamped_are_sorted() {
    check(
        &[[1e30, -1e30, 0.0], [2e30, -2e30, 0.1], [1e30, -3e30, 0.0]],
        0.5,
        Domain::OPEN,
    );
    check(&[[1e30; 3], [1e30; 3]], 1e-3, Domain::OPEN);
}

proptest! {
    #[test]
    fn any_points_are_sorted_and_every_pair_within_the_radius_is_reachable(
        points in prop::collection::vec(prop::array::uniform3(-4.0f32..4.0), 1..80),
        radius in 0.05f32..2.0,
        box_length in prop::option::of(0.3f64..9.0),
    ) {
        let domain = Domain::new([box_length, None, None]).unwrap();
        let grid = check(&points, radius, domain);
        let sorted = grid.points();
        let mut sweep = grid.sweep();
        for target in 0..points.len() {
            let mut reached = vec![0; points.len()];
            let cell = grid.lattice().cell(sorted.position(target));
            let runs = sweep.runs(cell, 0).unwrap();
            for run in runs.iter().filter(|run| run.image == [0; 3]) {
                run.slots.clone().for_each(|slot| reached[slot] += 1);
            }
            for source in 0..points.len() {
                let (a, b) = (sorted.position(target), sorted.position(source));
                let d2: f32 = (0..3).map(|axis| (b[axis] - a[axis]).powi(2)).sum();
                let same_box = sorted.wraps(target) == sorted.wraps(source);
                prop_assert!(reached[source] <= 1, "visited twice");
                if same_box && d2 <= radius * radius {
                    prop_assert_eq!(reached[source], 1, "{:?} and {:?}", a, b);
                }
            }
        }
    }
}
