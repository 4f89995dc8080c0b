//! Numbers of the cells of many points at once, for dense tables.

use crate::{Lattice, positions::Source, table::CellBox, widest::Loops};
use std::ops::Range;

/// Fills `keys` with the cell numbers, in `cells`, of the points `range`.
pub(crate) struct FillKeys<'a, S> {
    pub(crate) source: S,
    pub(crate) range: Range<usize>,
    pub(crate) keys: &'a mut [u32],
    pub(crate) lattice: &'a Lattice,
    pub(crate) cells: CellBox,
}

impl<S: Source> Loops for FillKeys<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self {
            source,
            range,
            keys,
            lattice,
            cells,
        } = self;
        let Some(scale) = lattice.open_scale().filter(|_| cells.is_near()) else {
            for (index, key) in range.zip(keys) {
                *key = cells.index(lattice.cell(source.position(index))) as u32;
            }
            return;
        };
        // All in floating point, where it is exact: the numbers are whole and below 2³¹.
        let [origin_x, origin_y, origin_z] = cells.origin;
        let (origin_x, origin_y, origin_z) = (origin_x as f64, origin_y as f64, origin_z as f64);
        let (width, height) = (cells.dims[0] as f64, cells.dims[1] as f64);
        for (index, key) in range.zip(keys) {
            let [x, y, z] = source.position(index);
            let x = scale.cell(x) - origin_x;
            let y = scale.cell(y) - origin_y;
            let z = scale.cell(z) - origin_z;
            let number = (z * height + y) * width + x;
            // SAFETY: a dense table has at most 2³¹ cells, and the box holds all points.
            *key = unsafe { number.to_int_unchecked::<i32>() } as u32;
        }
    }
}
