//! Grids of sample points, and the settings of sums over all pairs.

use nearfield_pairs::*;

#[test]
fn points_of_a_grid_come_row_by_row() {
    let grid = SampleGrid {
        dims: [2, 3, 2],
        spacing: 0.5,
        origin: [1.0, 2.0, -1.0],
    };
    let points = grid.points::<f32>(0..grid.rows()).unwrap();
    assert_eq!((points.len(), grid.len(), grid.rows()), (12, 12, 6));
    assert_eq!(
        points[..3],
        [[1.0, 2.0, -1.0], [1.5, 2.0, -1.0], [1.0, 2.5, -1.0]]
    );
    assert_eq!(points[11], [1.5, 3.0, -0.5]);
    assert_eq!(grid.points::<f32>(4..5).unwrap(), points[8..10]);
}

#[test]
fn grids_that_are_none_are_refused_by_what_is_wrong() {
    let grid = SampleGrid {
        dims: [4, 4, 4],
        spacing: 1.0,
        origin: [0.0; 3],
    };
    assert_eq!(grid.check(), Ok(()));
    let refused = |grid: SampleGrid| grid.check().unwrap_err().to_string();
    assert!(
        refused(SampleGrid {
            spacing: -1.0,
            ..grid
        })
        .contains("spacing is -1")
    );
    assert!(
        refused(SampleGrid {
            spacing: f64::NAN,
            ..grid
        })
        .contains("NaN")
    );
    assert!(
        refused(SampleGrid {
            origin: [0.0, f64::INFINITY, 0.0],
            ..grid
        })
        .contains("inf")
    );
    assert!(
        refused(SampleGrid {
            dims: [4, 0, 4],
            ..grid
        })
        .contains("4 x 0 x 4")
    );
    assert!(
        refused(SampleGrid {
            dims: [1 << 40, 2, usize::MAX],
            ..grid
        })
        .contains("2^40")
    );
}
