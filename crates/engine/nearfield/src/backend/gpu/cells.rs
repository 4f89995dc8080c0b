//! How fine the cells of a GPU are, by how many points they hold.
//!
//! Finer cells fit the ball of the radius more closely, so fewer candidates are tested; their table
//! has more entries, which are filled at every sort. So cells become finer where they hold enough
//! points to pay for the table. Cells that are finer along x alone cut the ends of a row, which is
//! one run of memory whatever its cells are, so they cost table entries but no additional rows.

use crate::balance::Strategy;
use nearfield_grid::{Bounds, Domain, Lattice, Radius};

/// Mean points in a cell of the radius' edge from which finer cells are worth their table, for
/// strategies that go from cell to cell…
const FINER_FROM: f64 = 4.0;
/// …or cells per point that the finer table may have.
const FINER_CELLS: f64 = 12.0;
/// The same for `flat`, whose rows are cut at both ends by cells that are finer along x.
const FLAT_FINER_FROM: f64 = 10.0;
/// Cells per point up to which cells are divided along x, where it is not known how points lie…
const DIVIDED_CELLS: f64 = 10.0;
/// …and else how many cells may be added for a candidate that is spared.
const CELLS_PER_CANDIDATE: f64 = 0.25;
/// Most cells along x for one along y and z.
const MAX_ALONG_X: u32 = 4;
/// Cells per point that the table of finer cells may have.
pub(super) const MAX_CELLS: f64 = 20.0;

/// The cells of a lattice for the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GpuCells {
    /// Cells to a radius along y and z.
    pub(crate) per_radius: u32,
    /// Cells along x for each of these.
    pub(crate) along_x: u32,
}

impl GpuCells {
    /// The lattice of these cells. Those that are divided along x are for `flat`, which searches
    /// around single targets, so they are fitted to a box.
    ///
    /// # Errors
    /// As [`Lattice::new`].
    pub(crate) fn lattice(
        self,
        radius: Radius,
        domain: Domain,
        bounds: &Bounds,
    ) -> Result<Lattice, nearfield_grid::Error> {
        let Self {
            per_radius,
            along_x,
        } = self;
        let make = if along_x > 1 {
            Lattice::fitted
        } else {
            Lattice::divided
        };
        let to_a_radius = [per_radius * along_x, per_radius, per_radius];
        make(radius, domain, to_a_radius, bounds)
    }
}

/// Cells that a box has, about.
pub(super) fn cells_of(extent: [f64; 3], edges: [f64; 3]) -> f64 {
    (0..3)
        .map(|axis| extent[axis] / edges[axis] + 1.0)
        .product()
}

/// How points lie in cells whose edge is the radius.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Occupancy {
    points: f64,
    /// Cells of the box around all points, about.
    cells: f64,
    /// Mean occupancy of the cells of all points, where that was counted: more than the mean of all
    /// cells if many of these are empty.
    of_points: Option<f64>,
}

impl Occupancy {
    /// The occupancy of a number of points in a box; `edges` are those of a cell.
    pub(crate) fn new(points: usize, extent: [f64; 3], edges: [f64; 3]) -> Self {
        Self {
            points: points.max(1) as f64,
            cells: cells_of(extent, edges),
            of_points: None,
        }
    }

    /// Cells for a point.
    pub(super) fn cells_per_point(self) -> f64 {
        self.cells / self.points
    }

    /// The same, with the mean occupancy of the cells of all points.
    pub(crate) fn of_points(self, mean: f64) -> Self {
        Self {
            of_points: Some(mean),
            ..self
        }
    }

    /// Cells for a strategy: finer ones test fewer candidates, but their table has to be filled
    /// every step.
    ///
    /// The numbers are measurements (docs/measurements/gpu.md, walks), not times of this run:
    /// results depend on the order of candidates, so on the cells.
    pub(crate) fn cells(self, strategy: Strategy) -> GpuCells {
        let mean = self.points / self.cells;
        let finer = |cells: f64| 8.0 * self.cells <= cells * self.points;
        if strategy != Strategy::Flat {
            let finer = mean >= FINER_FROM || finer(FINER_CELLS);
            return GpuCells {
                per_radius: if finer { 2 } else { 1 },
                along_x: 1,
            };
        }
        let full = self.of_points.unwrap_or(mean) >= FLAT_FINER_FROM && finer(MAX_CELLS);
        let per_radius = if full { 2 } else { 1 };
        GpuCells {
            per_radius,
            along_x: self.along_x(per_radius),
        }
    }

    /// Cells along x for one along y and z.
    pub(super) fn along_x(self, per_radius: u32) -> u32 {
        let edge = f64::from(per_radius);
        let cubic = edge.powi(3) * self.cells / self.points;
        let pays = |along_x: u32| {
            let Some(occupancy) = self.of_points else {
                return cubic * f64::from(along_x) <= DIVIDED_CELLS;
            };
            // Twice as many as half of these: that adds cells to the table, and spares every target
            // a part of an edge at the end of each of its rows.
            let half = f64::from(along_x / 2);
            let rows = (2.0 * edge + 1.0).powi(2);
            let spared = occupancy * rows / (2.0 * edge.powi(3) * half);
            let added = cubic * half;
            added <= CELLS_PER_CANDIDATE * spared && 2.0 * added <= MAX_CELLS
        };
        let divisions = [MAX_ALONG_X, MAX_ALONG_X / 2];
        divisions
            .into_iter()
            .find(|&along_x| pays(along_x))
            .unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfield_testkit::cloud::Cloud;
    use std::collections::BTreeMap;

    /// Cells along a radius and along x, with what `grid_occupancy` finds, and without.
    fn chosen(points: &[[f32; 3]], radius: f32) -> [[u32; 2]; 2] {
        let mut cells: BTreeMap<[i64; 3], u64> = BTreeMap::new();
        for point in points {
            let cell = point.map(|x| (x / radius).floor() as i64);
            *cells.entry(cell).or_default() += 1;
        }
        let squares: u64 = cells.values().map(|count| count * count).sum();
        let bounds = Bounds::of(points.into(), &Domain::OPEN).unwrap();
        let unknown = Occupancy::new(points.len(), bounds.extent(), [f64::from(radius); 3]);
        let known = unknown.of_points(squares as f64 / points.len() as f64);
        [known, unknown].map(|occupancy| {
            let cells = occupancy.cells(Strategy::Flat);
            [cells.per_radius, cells.along_x]
        })
    }

    #[test]
    fn cells_suit_the_places_where_points_lie() {
        let lattice = Cloud::Lattice.points(125_000, 1);
        assert_eq!(chosen(&lattice, 2.0), [[1, 4]; 2]);
        assert_eq!(chosen(&lattice, 3.0), [[2, 4]; 2]);
        assert_eq!(chosen(&Cloud::Uniform.points(100_000, 2), 2.0), [[1, 4]; 2]);
        assert_eq!(chosen(&Cloud::Clusters.points(450_000, 3), 1.0)[0], [2, 1]);
        assert_eq!(chosen(&Cloud::PoolSpray.points(450_000, 4), 2.0)[0], [1, 2]);
        // A body with two arms, as a rank may have: most of the box is empty.
        let angle: Vec<[f32; 3]> = lattice
            .iter()
            .copied()
            .filter(|x| x[0].min(x[1]) < 8.0)
            .collect();
        assert_eq!(chosen(&angle, 3.0), [[2, 4], [1, 4]]);
        // The table would have too many cells.
        let far: Vec<[f32; 3]> = lattice
            .iter()
            .map(|x| [x[0] + 2e4 * (x[1] / 25.0).floor(), x[1], x[2]])
            .collect();
        assert_eq!(chosen(&far, 3.0)[0], [1, 1]);
    }
}
