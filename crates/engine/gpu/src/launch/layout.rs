//! The structs that kernels take, laid out as CUDA sources declare them.
//!
//! Each names the source that declares it: the same fields in the same order, `#[repr(C)]`.
//! Addresses are 64-bit numbers of the device; 0 stands for an array that the kernel does not read.

use cudarc::driver::{DeviceRepr, ValidAsZeroBits, sys::CUdeviceptr};
use nearfield_grid as grid;
use nearfield_kernels::constants;
use std::cmp::Ordering;

/// `Lattice` of contract.cuh.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub(crate) struct Lattice {
    inverse_edge: [f64; 3],
    length: [f64; 3],
    vectors: [[f64; 3]; 3],
    inverse: [[f64; 3]; 3],
    period: [i64; 3],
    phase: [f64; 3],
    r2: f32,
    tilted: u32,
    periodic: u32,
    shifts: [[f32; 3]; 27],
}

/// `Points` of contract.cuh.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Points {
    pub(crate) at: CUdeviceptr,
    pub(crate) wraps: CUdeviceptr,
    pub(crate) starts: CUdeviceptr,
    pub(crate) flags: CUdeviceptr,
    pub(crate) ids: CUdeviceptr,
    pub(crate) bricks: CUdeviceptr,
    pub(crate) origin: [i64; 3],
    pub(crate) dims: [u32; 3],
    pub(crate) mask: u32,
    pub(crate) sparse: u32,
    pub(crate) cells: u32,
    pub(crate) count: u32,
    pub(crate) pad: [u32; 3],
    pub(crate) slots: CUdeviceptr,
}

/// `Parts` of share.cu.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Parts {
    pub(crate) parts: CUdeviceptr,
    pub(crate) first: [i64; 3],
    pub(crate) dims: [u32; 3],
    pub(crate) edge: u32,
    pub(crate) elsewhere: u32,
    pub(crate) count: u32,
}

/// `Row` of contract.cuh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Row {
    y: i32,
    z: i32,
    reach: i32,
}

/// `Geometry` of walk.cuh; all zero where tables are not walked by it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[repr(C)]
pub(crate) struct Geometry {
    corner: [f32; 3],
    scale: [f32; 3],
    offset: [f32; 3],
    reach: [f32; 3],
    squared_reach: f32,
    per_reach: f32,
    edge: [f32; 3],
    lean: [f32; 3],
    low: [i32; 3],
    high: [i32; 3],
}

/// `Walk` of walk.cuh.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Walk {
    pub(crate) lattice: Lattice,
    pub(crate) geometry: Geometry,
    pub(crate) targets: Points,
    pub(crate) sources: Points,
    pub(crate) rows: CUdeviceptr,
    pub(crate) row_count: u32,
    pub(crate) same_set: u32,
}

/// Parameters of a pair kernel that a launch can carry.
pub(crate) const MAX_UNIFORMS: usize = constants::MAX_UNIFORMS as usize;

/// `Outlet` of work.cuh.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Outlet {
    pub(crate) counts: CUdeviceptr,
    pub(crate) masks: CUdeviceptr,
    pub(crate) indices: CUdeviceptr,
    pub(crate) starts: CUdeviceptr,
    pub(crate) entries: CUdeviceptr,
    pub(crate) list_starts: CUdeviceptr,
    pub(crate) list_counts: CUdeviceptr,
    pub(crate) capacity: u64,
    pub(crate) base: u64,
    pub(crate) first: u32,
    pub(crate) behind: u32,
    pub(crate) sources: CUdeviceptr,
    pub(crate) more: CUdeviceptr,
    pub(crate) target_fields: CUdeviceptr,
    pub(crate) results: CUdeviceptr,
    pub(crate) combine: u32,
    pub(crate) target_stride: u32,
    pub(crate) uniforms: [f32; MAX_UNIFORMS],
}

/// `Arguments` of children.cu.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Arguments {
    pub(crate) walk: Walk,
    pub(crate) outlet: Outlet,
}

/// `Launches` of children.cu.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Launches {
    pub(crate) failed: u32,
    pub(crate) error: u32,
}

/// `Status` of grid.cu.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub(crate) struct Status {
    pub(crate) bad: u32,
    pub(crate) first_bad: u32,
    pub(crate) outside: u32,
    pub(crate) wrapped: u32,
    pub(crate) large_cells: u32,
    pub(crate) ticket: u32,
    pub(crate) bricks: u32,
    /// Whether an earlier sort since the host looked had points that could not be placed.
    pub(crate) failed: u32,
    /// Smallest and largest coordinates per axis, as integers that sort like floats.
    pub(crate) bounds: [u32; 6],
    /// Most neighbours of all targets together since the host looked.
    pub(crate) pairs: u64,
}

// SAFETY: numbers, for which all zero is a value.
unsafe impl ValidAsZeroBits for Status {}
// SAFETY: plain numbers and device addresses, laid out as the kernels declare them.
unsafe impl DeviceRepr for Lattice {}
// SAFETY: as above.
unsafe impl DeviceRepr for Points {}
// SAFETY: as above.
unsafe impl DeviceRepr for Parts {}
// SAFETY: as above.
unsafe impl DeviceRepr for Row {}
// SAFETY: as above.
unsafe impl DeviceRepr for Geometry {}
// SAFETY: as above.
unsafe impl DeviceRepr for Walk {}
// SAFETY: as above.
unsafe impl DeviceRepr for Outlet {}
// SAFETY: as above.
unsafe impl DeviceRepr for Arguments {}
// SAFETY: as above.
unsafe impl DeviceRepr for Launches {}
// SAFETY: all zero is a value of it.
unsafe impl ValidAsZeroBits for Launches {}
// SAFETY: as for the others.
unsafe impl DeviceRepr for Status {}

impl Default for Outlet {
    /// Nothing anywhere.
    fn default() -> Self {
        Self {
            counts: 0,
            masks: 0,
            indices: 0,
            starts: 0,
            entries: 0,
            list_starts: 0,
            list_counts: 0,
            capacity: 0,
            base: 0,
            first: 0,
            behind: 0,
            sources: 0,
            more: 0,
            target_fields: 0,
            results: 0,
            combine: 0,
            target_stride: 0,
            uniforms: [0.0; MAX_UNIFORMS],
        }
    }
}

impl Lattice {
    pub(crate) fn new(lattice: &grid::Lattice) -> Self {
        let scales = [0, 1, 2].map(|axis| lattice.scale(axis));
        let domain = lattice.effective_domain();
        let rows = |vectors: [Option<[f64; 3]>; 3]| vectors.map(Option::unwrap_or_default);
        Self {
            inverse_edge: scales.map(|scale| scale.inverse_edge),
            length: scales.map(|scale| scale.length),
            vectors: rows(domain.vectors()),
            inverse: rows(domain.inverse()),
            period: scales.map(|scale| scale.cells),
            phase: scales.map(|scale| scale.phase),
            r2: lattice.radius().squared(),
            tilted: u32::from(domain.is_tilted()),
            periodic: u32::from(lattice.domain().is_periodic()),
            shifts: std::array::from_fn(|number| {
                let image = [number % 3, number / 3 % 3, number / 9];
                domain.image_vector(image.map(|n| n as i64 - 1))
            }),
        }
    }
}

/// A table that holds every cell of a box of cells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table {
    /// First cell.
    pub(crate) origin: [i64; 3],
    /// Cells along each axis.
    pub(crate) dims: [u32; 3],
    /// Of these, empty cells on either side.
    pub(crate) pad: [u32; 3],
}

impl Table {
    /// Around points within `bounds`. Open axes are padded, so that the rows around a point need no
    /// bounds check: by one cell more than the radius reaches along x, whose ends are rounded.
    pub(crate) fn around(lattice: &grid::Lattice, bounds: &grid::Bounds) -> Self {
        let (low, high, _) = lattice.cells_within(bounds);
        let lengths = lattice.effective_domain().lengths();
        let farthest = lattice.max_offsets();
        let pad = [0, 1, 2].map(|axis| match lengths[axis] {
            None => u32::try_from(farthest[axis])
                .unwrap_or(u32::MAX)
                .saturating_add(u32::from(axis == 0)),
            Some(_) => 0,
        });
        Self {
            origin: [0, 1, 2].map(|axis| low[axis] - i64::from(pad[axis])),
            dims: [0, 1, 2].map(|axis| {
                let dim = (high[axis] - low[axis]) as u64 + 1 + 2 * u64::from(pad[axis]);
                u32::try_from(dim).unwrap_or(u32::MAX)
            }),
            pad,
        }
    }

    /// Number of cells.
    pub(crate) fn cells(&self) -> u64 {
        let dims = self.dims.into_iter().map(u64::from);
        dims.fold(1, u64::saturating_mul)
    }
}

/// Error of a place in cells that is no trouble.
const SMALL_ERROR: f64 = 1.0 / (1u64 << 12) as f64;
/// Error from which on the walk by `Geometry` would look at many cells in vain.
const LARGE_ERROR: f64 = 0.25;

impl Geometry {
    /// Of a dense table on a lattice with so many cells to a radius along y and z. None where its
    /// places in `f32` would be off by too much, or where an axis of the box is so short that the
    /// radius reaches across it.
    ///
    /// A place is fma(fl(x - corner), scale, offset) with a factor and an offset that are rounded,
    /// at most 3·2⁻²⁴ of the cells of the table and those of the offset away from the exact one;
    /// adding what the radius reaches rounds once more. In kernels that compute it in `f64` and
    /// round it, it is off by less. Twice this is allowed for, and [`SMALL_ERROR`] for everything
    /// else: places of far coordinates in `f64`, squares and roots.
    pub(crate) fn of(lattice: &grid::Lattice, table: Table, subdivision: u32) -> Option<Self> {
        let scales = [0, 1, 2].map(|axis| lattice.scale(axis));
        let vectors = lattice.cell_vectors();
        let radius = lattice.reach();
        let mut geometry = Self::default();
        let mut margin = 0f64;
        for axis in 0..3 {
            let grid::AxisScale {
                inverse_edge,
                phase,
                ..
            } = scales[axis];
            let phase = if scales[axis].length == 0.0 {
                phase
            } else {
                0.0
            };
            let first = table.origin[axis] as f64;
            let corner = ((first - phase) / inverse_edge) as f32;
            let offset = f64::from(corner) * inverse_edge + phase - first;
            let error = SMALL_ERROR + (f64::from(table.dims[axis]) + offset.abs()) * 2f64.powi(-21);
            // False for what is not a number.
            let usable = error <= LARGE_ERROR && first.abs() < 2f64.powi(32);
            if !usable || inverse_edge as f32 == 0.0 {
                return None;
            }
            geometry.corner[axis] = corner;
            geometry.scale[axis] = inverse_edge as f32;
            geometry.offset[axis] = offset as f32;
            let longest = vectors.iter().map(|vector| vector[axis].abs()).sum::<f64>() / radius;
            margin = margin.max(2.0 * error * longest);
        }
        let (reach, farthest) = (1.0 + margin, lattice.max_offsets());
        // Kernels go through 2K + 2 rows along y and z.
        if farthest[1].max(farthest[2]) > i64::from(subdivision) {
            return None;
        }
        for axis in 0..3 {
            let grid::AxisScale {
                inverse_edge,
                cells,
                ..
            } = scales[axis];
            let reached = reach * radius * inverse_edge + SMALL_ERROR;
            geometry.reach[axis] = reached as f32;
            if reached > farthest[axis] as f64 + 0.5 {
                return None;
            }
            geometry.edge[axis] = (vectors[axis][axis] / radius) as f32;
            (geometry.low[axis], geometry.high[axis]) = (i32::MIN / 2, i32::MAX / 2);
            if cells == 0 {
                continue;
            }
            let low = -table.origin[axis];
            let bounds = (i32::try_from(low), i32::try_from(low + cells));
            let (Ok(low), Ok(high)) = bounds else {
                return None;
            };
            if (cells as f64) < (reached + 2.0 * SMALL_ERROR).ceil() {
                return None;
            }
            (geometry.low[axis], geometry.high[axis]) = (low, high);
        }
        geometry.lean = [vectors[1][0], vectors[2][0], vectors[2][1]].map(|x| (x / radius) as f32);
        geometry.squared_reach = (reach * reach) as f32;
        geometry.per_reach = (radius / vectors[0][0]) as f32;
        Some(geometry)
    }
}

impl Row {
    /// Reaches are a few cells, or a few thousand in absurdly small boxes.
    pub(crate) fn new(row: &grid::Row) -> Self {
        let narrow = |value: i64| i32::try_from(value).unwrap_or(i32::MAX);
        Self {
            y: narrow(row.y),
            z: narrow(row.z),
            reach: narrow(row.reach),
        }
    }

    /// Cells of the row whose offset (z, y, x) is lexicographically positive: `first_ahead` and
    /// `behind` of half.cu.
    pub(crate) fn cells_ahead(&self) -> usize {
        let reach = usize::try_from(self.reach).unwrap_or(0);
        match (self.z, self.y).cmp(&(0, 0)) {
            Ordering::Less => 0,
            Ordering::Equal => reach,
            Ordering::Greater => 2 * reach + 1,
        }
    }
}

impl Status {
    /// The status at the beginning of a step.
    pub(crate) const BEFORE: Self = Self {
        bad: 0,
        first_bad: u32::MAX,
        outside: 0,
        wrapped: 0,
        large_cells: 0,
        ticket: 0,
        bricks: 0,
        failed: 0,
        bounds: [u32::MAX, u32::MAX, u32::MAX, 0, 0, 0],
        pairs: 0,
    };

    /// Smallest and largest coordinates.
    pub(crate) fn bounds(&self) -> grid::Bounds {
        let value = |at: usize| {
            let bits = self.bounds[at];
            f32::from_bits(match bits & 0x8000_0000 {
                0 => !bits,
                _ => bits & 0x7fff_ffff,
            })
        };
        grid::Bounds {
            min: [value(0), value(1), value(2)].map(f64::from),
            max: [value(3), value(4), value(5)].map(f64::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sortable_bounds_become_the_coordinates_they_were() {
        let sortable = |value: f32| match value.to_bits() {
            bits if bits & 0x8000_0000 != 0 => !bits,
            bits => bits | 0x8000_0000,
        };
        let values = [-1.5f32, -0.0, 3e-40, 2.0, 5e30, f32::MAX];
        let status = Status {
            bounds: values.map(sortable),
            ..Status::BEFORE
        };
        let bounds = status.bounds();
        let found = [bounds.min, bounds.max].concat();
        let given = values.map(f64::from);
        assert_eq!(bits(&found), bits(&given));
        assert!(sortable(-2.0) < sortable(-1.0) && sortable(-0.0) < sortable(0.0));
    }

    #[test]
    fn of_all_cells_around_a_cell_one_half_is_ahead() {
        let radius = grid::Radius::new(1.0).unwrap();
        for length in [None, Some(0.4), Some(1.05), Some(2.1), Some(7.0)] {
            let domain = grid::Domain::new([length; 3]).unwrap();
            for subdivision in 1..=3 {
                let bounds = grid::Bounds::EMPTY;
                let lattice = grid::Lattice::new(radius, domain, subdivision, &bounds).unwrap();
                let rows: Vec<Row> = lattice.rows().iter().map(Row::new).collect();
                let ahead: usize = rows.iter().map(Row::cells_ahead).sum();
                let around: i32 = rows.iter().map(|row| 2 * row.reach + 1).sum();
                assert_eq!(
                    2 * ahead + 1,
                    around as usize,
                    "{length:?}, K = {subdivision}"
                );
                // The other half is opposite.
                let opposite = |row: &Row| Row {
                    y: -row.y,
                    z: -row.z,
                    ..*row
                };
                assert!(rows.iter().all(|row| rows.contains(&opposite(row))));
            }
        }
    }

    fn bits(values: &[f64]) -> Vec<u64> {
        values.iter().map(|value| value.to_bits()).collect()
    }
}
