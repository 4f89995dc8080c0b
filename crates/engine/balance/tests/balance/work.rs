//! The work of bricks is the pairs that the grid's own candidates amount to.

use nearfield_balance::{Bricks, CellLoad, Error, ErrorKind, Neighbourhood, RowOffset};
use nearfield_grid::{Bounds, Domain, Grid, Lattice, Radius};
use nearfield_testkit::random::Random;
use proptest::prelude::*;

fn points(count: usize, size: f64, seed: u64) -> Vec<[f32; 3]> {
    let mut random = Random::new(seed);
    (0..count)
        .map(|_| std::array::from_fn(|_| random.between(0.0, size) as f32))
        .collect()
}

/// A grid and what the scheduler is told of it.
fn grid(points: &Vec<[f32; 3]>, domain: Domain, subdivision: u32) -> (Grid, Neighbourhood) {
    let radius = Radius::new(1.0).unwrap();
    let bounds = Bounds::of(points.into(), &domain).unwrap();
    let lattice = Lattice::new(radius, domain, subdivision, &bounds).unwrap();
    let near = Neighbourhood {
        rows: lattice
            .rows()
            .iter()
            .map(|row| RowOffset {
                y: row.y,
                z: row.z,
                reach: row.reach,
            })
            .collect(),
        periods: std::array::from_fn(|axis| match lattice.scale(axis).cells {
            0 => None,
            cells => Some(cells),
        }),
    };
    let mut grid = Grid::new(lattice.clone());
    grid.build(points.into(), bounds, &lattice).unwrap();
    (grid, near)
}

fn loads(grid: &Grid) -> Vec<CellLoad> {
    grid.cells(0..grid.points().len())
        .map(|(cell, slots)| CellLoad {
            cell,
            targets: slots.len() as u32,
            sources: slots.len() as u32,
        })
        .collect()
}

/// Pairs tested, and the cells with candidates of each cell, by the grid's own sweep.
fn check_against_the_grid(points: &Vec<[f32; 3]>, domain: Domain, subdivision: u32, edge: u32) {
    let (grid, near) = grid(points, domain, subdivision);
    let loads = loads(&grid);
    let bricks = Bricks::new(loads.iter().copied(), &near, edge).unwrap();
    let brick_of = |cell: [i64; 3]| {
        let at = cell.map(|axis| axis.div_euclid(i64::from(edge)));
        let found = bricks.as_slice().iter().position(|brick| brick.at == at);
        found.unwrap()
    };
    let cell_of_slot: Vec<[i64; 3]> = grid
        .cells(0..points.len())
        .flat_map(|(cell, slots)| slots.map(move |_| cell))
        .collect();
    let mut work = vec![0; bricks.as_slice().len()];
    let mut occupancy = vec![0; bricks.as_slice().len()];
    let mut sweep = grid.sweep();
    for (cell, slots) in grid.cells(0..points.len()) {
        let brick = brick_of(cell);
        occupancy[brick] += slots.len() as u32;
        for run in sweep.runs(cell, 0).unwrap() {
            work[brick] += (slots.len() * run.slots.len()) as u64;
            for slot in run.slots.clone() {
                let other = brick_of(cell_of_slot[slot]) as u32;
                assert!(
                    bricks.near(brick).contains(&other),
                    "brick {brick} has candidates in brick {other}, which is not near it"
                );
            }
        }
    }
    for (brick, found) in bricks.as_slice().iter().enumerate() {
        assert_eq!(
            found.work, work[brick],
            "work of brick {brick} at {:?}",
            found.at
        );
        assert_eq!(found.targets, occupancy[brick]);
        assert!(bricks.near(brick).contains(&(brick as u32)));
        assert!(bricks.near(brick).is_sorted_by(|a, b| a < b));
    }
    assert_eq!(bricks.work(), work.iter().sum::<u64>());
}

#[test]
fn the_work_of_bricks_is_the_grids_number_of_candidates() {
    for (subdivision, edge) in [(1, 1), (1, 4), (2, 3), (3, 2)] {
        check_against_the_grid(&points(800, 6.0, 5), Domain::OPEN, subdivision, edge);
    }
}

#[test]
fn images_count_in_periodic_boxes_whatever_their_size() {
    for lengths in [
        [Some(6.0), Some(5.3), None],
        [Some(2.5), None, Some(7.0)],
        [Some(0.7), Some(3.1), Some(1.9)],
    ] {
        let domain = Domain::new(lengths).unwrap();
        for (subdivision, edge) in [(1, 1), (1, 2), (2, 4), (3, 3)] {
            check_against_the_grid(&points(120, 6.0, 6), domain, subdivision, edge);
        }
    }
}

#[test]
fn tilted_boxes_count_as_the_grid_does() {
    let lengths = [Some(5.0), Some(4.0), Some(6.0)];
    let domain = Domain::triclinic(lengths, [1.5, -0.5, 1.0]).unwrap();
    check_against_the_grid(&points(300, 5.0, 7), domain, 1, 2);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// An empty cell far away makes the box too sparse for dense tables: the same bricks must come
    /// out by way of sorted rows.
    #[test]
    fn an_outlier_changes_no_other_brick(
        found in prop::collection::vec(
            ([-5i64..5, -4i64..4, -6i64..6], 0u32..5, 0u32..5), 1..300),
        periodic in [any::<bool>(), any::<bool>(), any::<bool>()],
        open in 0usize..3,
        pruned in any::<bool>(),
        reach in 0i64..4,
        edge in 1u32..5,
    ) {
        let sizes = [10, 8, 12];
        let mut near = Neighbourhood::cube(reach);
        if pruned {
            near.rows.retain(|row| row.y * row.y + row.z * row.z <= reach * reach);
            near.rows.iter_mut().for_each(|row| row.reach -= row.y.abs().min(row.reach));
        }
        for axis in 0..3 {
            near.periods[axis] = (periodic[axis] && axis != open).then_some(sizes[axis]);
        }
        let mut cells: Vec<CellLoad> = found
            .into_iter()
            .map(|(cell, targets, sources)| CellLoad {
                cell: std::array::from_fn(|axis| match near.periods[axis] {
                    Some(period) => cell[axis].rem_euclid(period),
                    None => cell[axis],
                }),
                targets,
                sources,
            })
            .collect();
        let bricks = Bricks::new(cells.iter().copied(), &near, edge).unwrap();
        let mut far = [0; 3];
        far[open] = 1 << 30;
        cells.push(CellLoad { cell: far, targets: 0, sources: 0 });
        let sparse = Bricks::new(cells, &near, edge).unwrap();
        let find = |at| sparse.as_slice().iter().position(|brick| brick.at == at).unwrap();
        let outlier = find(far.map(|axis| axis.div_euclid(i64::from(edge))));
        prop_assert_eq!(sparse.near(outlier), [outlier as u32]);
        prop_assert_eq!(bricks.as_slice().len() + 1, sparse.as_slice().len());
        for (number, brick) in bricks.as_slice().iter().enumerate() {
            let other = find(brick.at);
            prop_assert_eq!(brick, &sparse.as_slice()[other]);
            let at = |bricks: &Bricks, near: &[u32]| -> Vec<[i64; 3]> {
                near.iter().map(|&near| bricks.as_slice()[near as usize].at).collect()
            };
            prop_assert_eq!(at(&bricks, bricks.near(number)), at(&sparse, sparse.near(other)));
        }
    }
}

#[test]
fn sets_are_merged_and_only_sources_cost_candidates() {
    let load = |x: i64, targets: u32, sources: u32| CellLoad {
        cell: [x, 0, 0],
        targets,
        sources,
    };
    // Fluid that searches, walls that are only found, in any order.
    let cells = [load(1, 0, 5), load(0, 2, 2), load(1, 3, 3), load(9, 0, 7)];
    let bricks = Bricks::new(cells, &Neighbourhood::cube(1), 1).unwrap();
    let found: Vec<_> = bricks
        .as_slice()
        .iter()
        .map(|brick| (brick.at[0], brick.targets, brick.sources, brick.work))
        .collect();
    assert_eq!(found, [(0, 2, 2, 20), (1, 3, 8, 30), (9, 0, 7, 0)]);
}

#[test]
fn bad_input_is_named() {
    let cell = CellLoad {
        cell: [0, 4, 0],
        targets: u32::MAX,
        sources: 1,
    };
    let open = Neighbourhood::cube(1);
    assert_eq!(
        Bricks::new([cell], &open, 0).unwrap_err(),
        Error::from(ErrorKind::BrickEdge)
    );
    let error = Bricks::new([cell, cell], &open, 1).unwrap_err();
    assert_eq!(
        error,
        Error::from(ErrorKind::TooManyPoints { at: [0, 4, 0] })
    );
    let near = Neighbourhood {
        periods: [None, Some(4), None],
        ..open
    };
    let error = Bricks::new([cell], &near, 1).unwrap_err().to_string();
    assert!(
        error.contains("[0, 4, 0]") && error.contains("0..4"),
        "{error}"
    );
    let far = CellLoad {
        cell: [0, 0, i64::MAX],
        ..cell
    };
    let error = Bricks::new([far], &Neighbourhood::cube(1), 1).unwrap_err();
    assert_eq!(error, Error::from(ErrorKind::FarCell { cell: far.cell }));
    for (near, expected) in [
        (
            Neighbourhood {
                periods: [Some(0), None, None],
                ..Neighbourhood::cube(1)
            },
            "Some(0) cells along periodic axis 0",
        ),
        (
            Neighbourhood {
                rows: vec![RowOffset {
                    y: 0,
                    z: i64::MIN,
                    reach: 1,
                }],
                periods: [None; 3],
            },
            "z: -9223372036854775808",
        ),
    ] {
        let error = Bricks::new([cell], &near, 1).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
