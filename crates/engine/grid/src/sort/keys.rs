//! Numbers of the cells of many points at once, for dense tables.
//!
//! The sort needs the cell number of every point. Unless some cell is far out, the whole
//! computation is done in floating point without branches, which the compiler turns into vectors:
//! cells are whole numbers below 2⁴¹, so everything after the rounding to a cell is exact. Open
//! axes that are divided alike take few operations; all others, in periodic and tilted boxes too,
//! go by [`Lattice::placing`]. With a cell far out each point goes through [`Lattice::cell_at`].
//!
//! The same operations tell whether any point lies outside of a periodic box ([`AnyWrapped`]), so
//! that the boxes of points are kept only where they are needed.
//!
//! **Invariant:** a number is always below the number of cells of the table, also for NaN and for
//! points outside the bounds, because the sort indexes with it unchecked.

use crate::{
    Lattice,
    input::positions::Source,
    lattice::Frame,
    sort::{Coordinate, widest::Loops},
    table::cells::CellBox,
};
use std::ops::Range;

/// Points as they are sorted: the coordinates that cells are computed from, and those that are
/// stored.
///
/// A trait, so that the sort is compiled for each layout and precision without a branch per point.
pub(crate) trait Placed: Copy + Send + Sync {
    /// The precision that positions are stored in.
    type Stored: Coordinate;

    /// Coordinates for [`Lattice::cell_at`] of point `index`.
    fn place(&self, index: usize) -> [f64; 3];

    /// Position of point `index` as it was given.
    fn stored(&self, index: usize) -> [Self::Stored; 3];
}

/// Positions in single precision, which are stored as they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Single<S>(pub(crate) S);

impl<S: Source<f32>> Placed for Single<S> {
    type Stored = f32;

    #[inline(always)]
    fn place(&self, index: usize) -> [f64; 3] {
        // One by one: `map` is a call of its own in builds without optimisation across units.
        let [x, y, z] = self.0.position(index);
        [f64::from(x), f64::from(y), f64::from(z)]
    }

    #[inline(always)]
    fn stored(&self, index: usize) -> [f32; 3] {
        self.0.position(index)
    }
}

/// Positions in double precision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Double<'a, S> {
    /// The positions as given.
    pub(crate) source: S,
    /// From positions to proxies.
    pub(crate) frame: &'a Frame,
}

impl<S: Source<f64>> Placed for Double<'_, S> {
    type Stored = f64;

    #[inline(always)]
    fn place(&self, index: usize) -> [f64; 3] {
        self.frame.anchored(self.source.position(index))
    }

    #[inline(always)]
    fn stored(&self, index: usize) -> [f64; 3] {
        self.source.position(index)
    }
}

/// Fills `keys` with the cell numbers, in `cells`, of the points `range`.
///
/// Compiled for the widest vectors, see [`widest`](super::widest).
pub(crate) struct FillKeys<'a, P> {
    /// The points.
    pub(crate) source: P,
    /// Which of them.
    pub(crate) range: Range<usize>,
    /// Where their keys go.
    pub(crate) keys: &'a mut [u32],
    /// From coordinates to cells.
    pub(crate) lattice: &'a Lattice,
    /// The box that cells are numbered in.
    pub(crate) cells: CellBox,
}

impl<P: Placed> Loops for FillKeys<'_, P> {
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
        if !cells.is_near() {
            for (index, key) in range.zip(keys) {
                *key = cells.key(lattice.cell_at(source.place(index)));
            }
            return;
        }
        // All in floating point, where it is exact: the numbers are whole and below 2³¹.
        let [origin_x, origin_y, origin_z] = cells.origin;
        let (origin_x, origin_y, origin_z) = (origin_x as f64, origin_y as f64, origin_z as f64);
        let (width, height) = (cells.dims[0] as f64, cells.dims[1] as f64);
        let last = width * height * cells.dims[2] as f64 - 1.0;
        let number = |x: f64, y: f64, z: f64| {
            let number = ((z - origin_z) * height + (y - origin_y)) * width + (x - origin_x);
            // Bounds that do not hold a point, or NaN, must not lead out of the table.
            let number = if number > 0.0 { number } else { 0.0 };
            let number = if number < last { number } else { last };
            // SAFETY: a dense table has at most 2³¹ cells, and the number is between 0 and the last
            // of them.
            unsafe { number.to_int_unchecked::<i32>() as u32 }
        };
        if let Some(scale) = lattice.open_scale() {
            for (index, key) in range.zip(keys) {
                let [x, y, z] = source.place(index);
                *key = number(scale.cell(x), scale.cell(y), scale.cell(z));
            }
            return;
        }
        let (x, y, z) = (lattice.placing(0), lattice.placing(1), lattice.placing(2));
        for (index, key) in range.zip(keys) {
            let at = source.place(index);
            *key = number(x.place(at).0, y.place(at).0, z.place(at).0);
        }
    }
}

/// Returns true if any of the points `range` lies outside of the periodic box, or has a coordinate
/// that is NaN.
///
/// Points are taken in the caller's order, which is one stream through memory.
pub(crate) struct AnyWrapped<'a, P> {
    /// The points.
    pub(crate) source: P,
    /// Which of them.
    pub(crate) range: Range<usize>,
    /// The lattice of the box.
    pub(crate) lattice: &'a Lattice,
}

impl<P: Placed> Loops for AnyWrapped<'_, P> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let Self {
            source,
            range,
            lattice,
        } = self;
        let (x, y, z) = (lattice.placing(0), lattice.placing(1), lattice.placing(2));
        let mut any = 0u64;
        for index in range {
            let at = source.place(index);
            any |= u64::from(x.place(at).1 != 0.0)
                | u64::from(y.place(at).1 != 0.0)
                | u64::from(z.place(at).1 != 0.0);
        }
        any != 0
    }
}
