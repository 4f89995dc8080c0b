//! From a coordinate to a cell, one axis at a time.
//!
//! All operations are in `f64` and none is fused, so that other backends get the same cells by the
//! same operations in the same order ([`AxisScale`]). Cells are anchored near coordinate 0, not at
//! the smallest point, so an outlier or a moving bounding box never moves the cells of the other
//! points.
//!
//! **Invariant:** the cell of a coordinate never falls when the coordinate grows; the argument that
//! no pair is lost ([`super`]) rests on it. Every coordinate has a cell, also NaN and infinity, so
//! no input leads out of a table.
//!
//! # Many points at once
//!
//! [`Placing`] does for an axis of any kind what the branches of [`Axis::cell`] do for one
//! coordinate. The kinds differ in its numbers only, so a loop over points has no branch, and each
//! operation is one that [`Axis::cell`] does too or one that changes nothing: a product with 1, a
//! sum with 0. A test compares both for straight, tilted and slanted boxes.
//!
//! # Open and periodic axes
//!
//! On an open axis cells go on for ever in both directions, up to 2⁴⁰ evenly and then growing with
//! the distance. On a periodic axis a coordinate is first reduced to the box by a whole number of
//! lengths, its wrap, and the cell is counted from the face of the box, clamped to the cells there
//! are: rounding may put a point at the very end one cell too far.

pub(crate) use crate::constants::{EVEN_CELLS, FARTHEST_CELL};
use crate::{Domain, constants::FAR_SHIFT};

/// Coordinates of a cell; wrapped into `0..n` on periodic axes.
pub type Cell = [i64; 3];

/// Where cell 0 begins on open axes, in cells before coordinate 0. Particle codes start from points
/// at whole or half multiples of a spacing that goes into the radius a few times; were cells to
/// begin there too, noise would spread every such layer over two cells, and the boxes that
/// candidates are pruned by would be as large as the cells. A twelfth keeps the borders between
/// such layers for two to five layers per cell.
///
/// On a jittered lattice with r = 2 spacings a target has 81 candidates with the phase, and 127
/// without it.
pub(super) const PHASE: f64 = 1.0 / 12.0;

/// One axis of a lattice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Axis {
    /// Cells per unit length.
    pub(super) inverse_edge: f64,
    /// Box length and cells in it, on a periodic axis.
    pub(super) period: Option<Period>,
}

/// How a coordinate x becomes a cell along one axis; all operations in `f64`, none fused.
///
/// On an open axis the cell is floor(x · `inverse_edge` + `phase`), and beyond ±2⁴⁰ as `far_cell`
/// in `lattice.rs` and in `contract.cuh` has it. On a periodic axis of a straight box it is
/// floor((x − w · `length`) · `inverse_edge`) with w = floor(x / `length`), clamped to `0..cells`;
/// of a tilted one floor((f − floor(f)) · `cells`), with f the fraction that `row` gives; x is the
/// dot product with it too where an axis of a tilted box is open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AxisScale {
    /// Cells per unit length (in a tilted box, of its width).
    pub inverse_edge: f64,
    /// Box length; 0 where the axis is open.
    pub length: f64,
    /// Cells in the box; 0 where the axis is open.
    pub cells: i64,
    /// Where cell 0 begins, in cells before coordinate 0, on an open axis.
    pub phase: f64,
    /// In a tilted box the vector whose dot product with a position is its fraction along the axis;
    /// on an open axis where the position lies along it, which is a coordinate unless a box vector
    /// leans along an open axis. In a straight box the unit vector of the axis.
    pub row: [f64; 3],
}

/// The scale of open axes, which all have cells of the same edge.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenScale {
    /// Cells per unit length.
    pub(super) inverse_edge: f64,
}

impl OpenScale {
    /// The cell of a coordinate that is not so far out that it would be clamped: the same as
    /// [`Axis::cell`], but as a whole floating-point number and in few operations.
    #[inline(always)]
    pub(crate) fn cell(self, x: f64) -> f64 {
        Self::floor(x * self.inverse_edge + PHASE)
    }

    /// The whole number at or below one between −2³¹ and 2³¹.
    #[inline(always)]
    pub(crate) fn floor(x: f64) -> f64 {
        // Rounded by an addition, which vectorises everywhere; below 2³¹ it leaves whole numbers.
        const WHOLE: f64 = (1u64 << 52) as f64 * 1.5;
        let rounded = (x + WHOLE) - WHOLE;
        rounded - if rounded > x { 1.0 } else { 0.0 }
    }
}

/// From a position to the cell along one axis in floating point and without branches, for loops
/// that the compiler vectorises: the same cell as [`Axis::cell`] or, in a tilted box, as the module
/// `tilted` gives, by the same operations in the same order. Not for cells that would be clamped
/// as far ones.
///
/// A straight axis takes its coordinate as the dot product with a unit vector, which is exact; an
/// axis of a tilted box divides by a length of 1; an open axis subtracts no boxes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placing {
    /// The position's coordinate or fraction is the dot product with this.
    pub(super) row: [f64; 3],
    /// Length of the box in that unit.
    pub(super) length: f64,
    /// 1 on a periodic axis, 0 on an open one.
    pub(super) boxes: f64,
    /// Cells per unit.
    pub(super) scale: f64,
    /// Where cell 0 begins.
    pub(super) phase: f64,
    /// The first and the last cell, infinite on an open axis.
    pub(super) ends: [f64; 2],
}

impl Placing {
    /// Cell and whole boxes of a position, both whole numbers. A coordinate that is NaN gets some
    /// cell, and NaN as its boxes.
    #[inline(always)]
    pub(crate) fn place(&self, [x, y, z]: [f64; 3]) -> (f64, f64) {
        let at = (self.row[0] * x + self.row[1] * y) + self.row[2] * z;
        let wraps = OpenScale::floor(at / self.length) * self.boxes;
        let inside = at - wraps * self.length;
        let cell = OpenScale::floor(inside * self.scale + self.phase);
        let [low, high] = self.ends;
        let cell = if cell > low { cell } else { low };
        (if cell < high { cell } else { high }, wraps)
    }
}

/// A periodic axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Period {
    /// Length of the box.
    pub(super) length: f64,
    /// Cells in the box.
    pub(super) cells: i64,
}

/// The axes of a straight box with cells of these edges. A periodic axis is cut into whole cells,
/// which are larger, or smaller by up to a share `fit` where the box is so cut into one more.
pub(super) fn straight_axes(edges: [f64; 3], domain: &Domain, fit: f64) -> [Axis; 3] {
    std::array::from_fn(|axis| {
        let Some(length) = domain.lengths()[axis] else {
            return Axis {
                inverse_edge: 1.0 / edges[axis],
                period: None,
            };
        };
        let cells = length / edges[axis] * (1.0 + fit);
        let cells = cells.floor().clamp(1.0, FARTHEST_CELL);
        Axis {
            inverse_edge: cells / length,
            period: Some(Period {
                length,
                cells: cells as i64,
            }),
        }
    })
}

impl Axis {
    /// Cell and wrap count of one coordinate.
    #[inline(always)]
    pub(super) fn cell(&self, x: f64) -> (i64, i32) {
        match self.period {
            None => (open_cell(x * self.inverse_edge + PHASE), 0),
            Some(period) => {
                let wraps = floor(x / period.length);
                let inside = x - wraps as f64 * period.length;
                let cell = floor(inside * self.inverse_edge);
                // The bounds check allows 2³⁰ boxes, so the count fits.
                (cell.clamp(0, period.cells - 1), wraps as i32)
            }
        }
    }
}

/// Cell of an open axis, `u` cells from the beginning of cell 0.
#[inline(always)]
pub(super) fn open_cell(u: f64) -> i64 {
    // False for NaN.
    if u.abs() < EVEN_CELLS {
        floor(u)
    } else {
        far_cell(u)
    }
}

/// The same far out; some cell for NaN. The bits of a number grow with it, so doublings of the
/// distance are divided evenly.
#[cold]
fn far_cell(u: f64) -> i64 {
    let distance = u.abs().min(f64::MAX);
    let beyond = (distance.to_bits() - EVEN_CELLS.to_bits()) >> FAR_SHIFT;
    let cell = EVEN_CELLS as i64 + beyond as i64;
    if u < 0.0 { -cell - 1 } else { cell }
}

/// `x` rounded down, clamped to ±[`FARTHEST_CELL`]; NaN becomes the smallest. Not `f64::floor`,
/// which is a library call on the baseline x86-64 target.
#[inline(always)]
pub(super) fn floor(x: f64) -> i64 {
    // Written so that each comparison is one instruction, and false for NaN.
    let x = if x > -FARTHEST_CELL {
        x
    } else {
        -FARTHEST_CELL
    };
    let x = if x < FARTHEST_CELL { x } else { FARTHEST_CELL };
    // SAFETY: within ±2⁴¹, and no NaN: the first comparison is false for it.
    let truncated: i64 = unsafe { x.to_int_unchecked() };
    truncated - i64::from(truncated as f64 > x)
}
