//! Lattices that are fitted to a box: cells may be a little smaller than the enlarged radius.

use nearfield_grid::{Bounds, Domain, Lattice, Radius};

/// Divided and fitted cells for points within a box of this length, and a radius of 2.
fn both(length: f64, subdivision: [u32; 3]) -> [Lattice; 2] {
    let bounds = Bounds {
        min: [0.0; 3],
        max: [length; 3],
    };
    let domain = Domain::new([Some(length); 3]).unwrap();
    [Lattice::divided, Lattice::fitted]
        .map(|make| make(Radius::new(2.0).unwrap(), domain, subdivision, &bounds).unwrap())
}

#[test]
fn a_box_of_whole_radii_has_a_cell_more_if_it_is_fitted() {
    let [divided, fitted] = both(100.0, [4, 1, 1]);
    for (lattice, cells, farthest) in [(divided, 49, 1), (fitted, 50, 2)] {
        assert_eq!([1, 2].map(|axis| lattice.scale(axis).cells), [cells; 2]);
        assert_eq!(lattice.max_offsets()[1..], [farthest; 2]);
    }
    let [divided, fitted] = both(100.7, [4, 1, 1]);
    assert_eq!(divided, fitted, "no whole number of radii");
}

/// Pairs a radius apart, by a few units in the last place, about the borders of cells.
#[test]
fn rows_one_cell_farther_make_up_for_fitted_cells() {
    let [_, fitted] = both(100.0, [2, 2, 2]);
    let cell = |y: f32| {
        let boxes = i64::from(fitted.wraps([0.0, y, 0.0])[1]);
        fitted.cell([0.0, y, 0.0])[1] + 100 * boxes
    };
    let mut far = 0;
    for border in 1..=98 {
        for (below, around) in (0..8).flat_map(|a| (0..8).map(move |b| (a, b))) {
            let low = f32::from_bits((border as f32).to_bits() - below);
            let high = f32::from_bits((border as f32 + 2.0).to_bits() + around - 4);
            for (high, boxes) in [(high, 0), (high - 100.0, 1)] {
                // The contract's difference, in the image that brings both together.
                if (high - low) + boxes as f32 * 100.0 > 2.0 {
                    continue;
                }
                let apart = cell(high) + 100 * boxes - cell(low);
                let in_reach = |row: &&nearfield_grid::Row| row.y == apart && row.z == 0;
                assert!(
                    fitted.rows().iter().any(|row| in_reach(&row)),
                    "{low}, {high}"
                );
                far += u32::from(apart == 3);
            }
        }
    }
    assert!(far > 0, "some pair needs the rows one cell farther");
}
