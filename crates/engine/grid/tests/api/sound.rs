//! What safe callers may hand in that makes no sense: nothing may be read or written out of place.

use nearfield_grid::{Bounds, Domain, Grid, Lattice, Radius, TableKind};

fn lattice(domain: Domain, double: bool) -> Lattice {
    let radius = if double {
        Radius::new_f64(1.0)
    } else {
        Radius::new(1.0)
    };
    Lattice::new(radius.unwrap(), domain, 1, &Bounds::EMPTY).unwrap()
}

fn domains() -> [Domain; 3] {
    [
        Domain::OPEN,
        Domain::new([Some(5.0), None, Some(7.0)]).unwrap(),
        Domain::triclinic([Some(5.0), Some(6.0), None], [2.0, 0.0, 0.0]).unwrap(),
    ]
}

#[test]
fn a_coordinate_that_is_no_number_has_some_cell() {
    for domain in domains() {
        for at in [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let single = lattice(domain, false).cell([at as f32; 3]);
            let double = lattice(domain, true).cell_f64([at; 3]);
            for cell in single.into_iter().chain(double) {
                assert!(cell.abs() <= 1 << 41, "{at} lies in {cell} of {domain:?}");
            }
        }
    }
}

/// Sorted once each, whatever the bounds said.
fn check_order(grid: &Grid, points: usize) {
    let mut order = grid.permutation().unwrap().order().to_vec();
    order.sort_unstable();
    assert!(order.into_iter().eq(0..points as u32));
    let counted: usize = grid.cells(0..points).map(|(_, slots)| slots.len()).sum();
    assert_eq!(counted, points);
}

#[test]
fn bounds_that_do_not_hold_the_points_lose_none_of_them() {
    let points = 3000;
    let coordinate = |k: usize| (k as u32).wrapping_mul(2_654_435_761) as f32 / 1e8 - 20.0;
    let mut positions: Vec<[f32; 3]> = (0..points)
        .map(|k| {
            [
                coordinate(3 * k),
                coordinate(3 * k + 1),
                coordinate(3 * k + 2),
            ]
        })
        .collect();
    positions[17] = [f32::NAN, 1.0, 2.0];
    positions[18] = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    positions[19] = [1e30, -1e30, 3e38];
    let wide: Vec<[f64; 3]> = positions.iter().map(|at| at.map(f64::from)).collect();
    let bounds = [
        Bounds {
            min: [0.0; 3],
            max: [1.0; 3],
        },
        Bounds {
            min: [5.0; 3],
            max: [-5.0; 3],
        },
        Bounds {
            min: [f64::NAN; 3],
            max: [0.0, f64::NAN, 1.0],
        },
        Bounds {
            min: [-1e30; 3],
            max: [1e30; 3],
        },
        Bounds {
            min: [1e300; 3],
            max: [1e300; 3],
        },
        Bounds::EMPTY,
    ];
    let mut hashed = 0;
    for domain in domains() {
        for bounds in bounds {
            let (single, double) = (lattice(domain, false), lattice(domain, true));
            let mut grid = Grid::new(single.clone());
            grid.build((&positions).into(), bounds, &single).unwrap();
            check_order(&grid, points);
            hashed += usize::from(grid.table_kind() == TableKind::Hashed);
            let mut grid = Grid::new(double.clone());
            grid.build((&wide).into(), bounds, &double).unwrap();
            check_order(&grid, points);
        }
    }
    assert!(hashed > 0, "tables of either kind are built");
}
