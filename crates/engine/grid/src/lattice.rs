//! From coordinates to cells so that no pair within the radius is lost.
//!
//! **Invariant others rely on:** if the contract's `f32` arithmetic finds two points within the
//! radius, the offset between their cells (images included) is among [`Lattice::rows`].
//!
//! Why it holds. Cells are `floor(x · inverse_edge + phase)` in `f64`, anchored near coordinate 0,
//! not at the smallest point: an `f32` that is many cells from 0 is itself coarse (beyond 2²⁵ cells
//! two different coordinates differ by more than a cell), so the relative error of the two `f64`
//! operations never amounts to more than 2⁻²⁵ cells where it could matter. The edge is the radius enlarged by
//! 1 + 2⁻²⁰, and on periodic axes by 2⁻²² of the box length plus coordinate range, which covers the
//! rounding of `fl(fl(xj − xi) + S)`; an axis that is so long that no image can be near is [taken as
//! open](Domain::as_seen). Anchoring at 0 also means that an outlier or a moving
//! bounding box never moves the cells of the other points.
//!
//! In a tilted box cells are shares of the box vectors; the submodule `tilted` has the same
//! argument for them. "x", "y" and "z" of a cell or a row then stand for the vectors a, b and c.
//! The submodule `double` has it for points in double precision.

mod double;
mod tilted;

use crate::{
    Bounds, Domain, Error, Precision, Radius, error::axis_name, memory::make_room_for_one,
};
pub(crate) use double::Frame;
use std::sync::Arc;

/// Coordinates of a cell; wrapped into `0..n` on periodic axes.
pub type Cell = [i64; 3];

/// One neighbour row of a cell, as offsets: cells `x − reach ..= x + reach` at `(y, z)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Offset along y in cells.
    pub y: i64,
    /// Offset along z in cells.
    pub z: i64,
    /// Largest offset along x in cells.
    pub reach: i64,
}

/// Cells in the box of a periodic axis at most, and what counts of boxes are clamped to.
const FARTHEST_CELL: f64 = (1u64 << 41) as f64;

/// Beyond this many cells from 0, cells of an open axis grow with the distance: every doubling of it
/// holds 2²⁹ of them. So three coordinates fit a 128-bit key however far out points are, and points in
/// a cube that is vast beside the radius do not meet in one cell; every `f32` has a cell of its own
/// there. Cells that are larger bring no pair farther apart, so none is lost.
pub(crate) const EVEN_CELLS: f64 = (1u64 << 40) as f64;

/// Bits of the mantissa that do not tell cells beyond [`EVEN_CELLS`] apart.
const FAR_SHIFT: u32 = 52 - 29;

/// Where cell 0 begins on open axes, in cells before coordinate 0. Particle codes start from points
/// at whole or half multiples of a spacing that goes into the radius a few times; were cells to
/// begin there too, noise would spread every such layer over two cells, and the boxes that
/// candidates are pruned by would be as large as the cells. A twelfth keeps the borders between
/// such layers for two to five layers per cell.
const PHASE: f64 = 1.0 / 12.0;

/// Images searched on each side of a periodic axis before the box is refused as absurdly small.
const MAX_IMAGES: f64 = 1000.0;

/// Cells of edge r/K for one radius and domain, shared by all point sets of an engine.
#[derive(Debug, Clone, PartialEq)]
pub struct Lattice {
    radius: Radius,
    domain: Domain,
    /// With axes open along which no image can be near.
    seen: Domain,
    axes: [Axis; 3],
    /// Shared by all copies: around a box much smaller than the radius there are millions.
    rows: Arc<Vec<Row>>,
    /// Present in double precision.
    frame: Option<Frame>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Axis {
    /// Cells per unit length.
    inverse_edge: f64,
    /// Box length and cells in it, on a periodic axis.
    period: Option<Period>,
}

/// How a coordinate x becomes a cell along one axis; all operations in `f64`, none fused.
///
/// On an open axis the cell is floor(x · `inverse_edge` + `phase`), and beyond ±2⁴⁰ as `far_cell` in
/// `lattice.rs` and in `contract.cuh` has it. On a periodic
/// axis of a straight box it is floor((x − w · `length`) · `inverse_edge`) with w = floor(x /
/// `length`), clamped to `0..cells`; of a tilted one floor((f − floor(f)) · `cells`), with f the
/// fraction that the row of [`Domain::inverse`] gives.
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
}

/// Cells of an open axis, all of which have the same edge.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenScale {
    inverse_edge: f64,
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

#[derive(Debug, Clone, Copy, PartialEq)]
struct Period {
    length: f64,
    cells: i64,
}

impl Lattice {
    /// The lattice of edge r/`subdivision` for points within `bounds`.
    ///
    /// In single precision only the extent of `bounds` along periodic axes matters, and it is
    /// rounded up to a power of two times the box, so a moving cloud keeps its lattice. In double
    /// precision it also matters where the points are, roughly.
    ///
    /// # Errors
    /// [`Error::TooManyImages`] when a box is over a thousand times smaller than the radius, and
    /// [`Error::OutOfMemory`].
    pub fn new(
        radius: Radius,
        domain: Domain,
        subdivision: u32,
        bounds: &Bounds,
    ) -> Result<Self, Error> {
        let seen = domain.as_seen(bounds, radius.value_f64());
        let frame = match radius.precision() {
            Precision::Single => None,
            Precision::Double => Some(Frame::new(radius, &seen, bounds)),
        };
        if let Some(tilt) = seen.tilt() {
            let (axes, rows) = tilted::axes_and_rows(radius, &seen, tilt, subdivision, bounds)?;
            return Ok(Self {
                radius,
                domain,
                seen,
                axes,
                rows: Arc::new(rows),
                frame,
            });
        }
        let reach = Reach::new(radius, &seen, bounds);
        let subdivision = f64::from(subdivision.max(1));
        let mut axes = [0, 1, 2].map(|axis| Axis {
            inverse_edge: 1.0 / (reach.along(axis) / subdivision),
            period: None,
        });
        for (axis, length) in seen.lengths().into_iter().enumerate() {
            let Some(length) = length else { continue };
            let (reach, edge) = (reach.along(axis), reach.along(axis) / subdivision);
            if reach / length > MAX_IMAGES {
                return Err(Error::TooManyImages {
                    axis: axis_name(axis),
                    length,
                    radius: radius.as_given(),
                    images: images_within(radius, reach, length),
                });
            }
            let cells = (length / edge).floor().clamp(1.0, FARTHEST_CELL);
            axes[axis] = Axis {
                inverse_edge: cells / length,
                period: Some(Period {
                    length,
                    cells: cells as i64,
                }),
            };
        }
        let rows = stencil(&reach, axes.map(|axis| 1.0 / axis.inverse_edge))?;
        Ok(Self {
            radius,
            domain,
            seen,
            axes,
            rows: Arc::new(rows),
            frame,
        })
    }

    /// The search radius.
    pub fn radius(&self) -> Radius {
        self.radius
    }

    /// The domain.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The domain as the points see it that the lattice is for: an axis is open where the box is so long
    /// that none of them can be near an image of another. Cells and image counts are those of this
    /// domain.
    pub fn effective_domain(&self) -> &Domain {
        &self.seen
    }

    /// Edge of the cells per axis, in units of the coordinates; in a tilted box the distance
    /// between the faces of a cell.
    pub fn edges(&self) -> [f64; 3] {
        self.axes.map(|axis| 1.0 / axis.inverse_edge)
    }

    /// The neighbour rows of a cell, by ascending (z, y), the cell's own among them.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Maximum number of images of a point among the candidates of a cell; 1 in an open domain.
    pub fn max_images(&self) -> usize {
        let most = |offset: fn(&Row) -> i64| self.rows.iter().map(offset).max().unwrap_or(0);
        let reach = [most(|row| row.reach), most(|row| row.y), most(|row| row.z)];
        let images = |axis: usize| {
            self.period(axis)
                .map_or(1, |cells| (2 * reach[axis] + cells) / cells)
        };
        let images = [images(0), images(1), images(2)];
        images
            .into_iter()
            .fold(1, |all, one| all.saturating_mul(one as usize))
    }

    /// Whether a point may lie within the radius through several images of a periodic axis, so that
    /// it may stand in a list several times.
    pub fn repeats(&self) -> bool {
        let most = |offset: fn(&Row) -> i64| self.rows.iter().map(offset).max().unwrap_or(0);
        let reach = [most(|row| row.reach), most(|row| row.y), most(|row| row.z)];
        // Neighbour cells of which none is visited twice show every point once.
        let twice = |(cells, reach): (Option<i64>, i64)| cells.is_some_and(|n| n < 2 * reach + 1);
        [0, 1, 2]
            .map(|axis| self.period(axis))
            .into_iter()
            .zip(reach)
            .any(twice)
    }

    /// Cell of a position, wrapped into the box on periodic axes. A coordinate that is NaN gets some
    /// cell.
    #[inline(always)]
    pub fn cell(&self, position: [f32; 3]) -> Cell {
        self.cell_f64(position.map(f64::from))
    }

    /// The same of a position in double precision.
    #[inline(always)]
    pub fn cell_f64(&self, position: [f64; 3]) -> Cell {
        match &self.frame {
            None => self.cell_at(position),
            Some(frame) => self.cell_at(frame.anchored(position)),
        }
    }

    /// Cell of coordinates that are already [anchored](Frame::anchored) in double precision, and in
    /// single precision those of the position itself.
    #[inline(always)]
    pub(crate) fn cell_at(&self, position: [f64; 3]) -> Cell {
        if self.seen.is_tilted() {
            return self.tilted_places(position).map(|(cell, _)| cell);
        }
        let [x, y, z] = position;
        [
            self.axes[0].cell(x).0,
            self.axes[1].cell(y).0,
            self.axes[2].cell(z).0,
        ]
    }

    /// What differences of sorted coordinates are moved by in the image with this vector: the
    /// vector rounded to `f32`, unless coordinates are proxies of an axis that has none (see
    /// [`DoublePoints`](crate::DoublePoints)).
    #[inline]
    pub fn image_shift(&self, image_vector: [f64; 3]) -> [f32; 3] {
        // Spelt out: `map` is not always inlined, and this is asked for every run of candidates.
        let [x, y, z] = image_vector;
        let shift = [x as f32, y as f32, z as f32];
        match &self.frame {
            None => shift,
            Some(frame) => frame.proxy_shift(shift),
        }
    }

    /// What turns positions into proxies, in double precision.
    #[inline(always)]
    pub(crate) fn frame(&self) -> Option<&Frame> {
        self.frame.as_ref()
    }

    /// What [`cell`](Self::cell) does with each coordinate where all axes are open.
    pub(crate) fn open_scale(&self) -> Option<OpenScale> {
        (!self.seen.is_periodic()).then_some(OpenScale {
            inverse_edge: self.axes[0].inverse_edge,
        })
    }

    /// Whole boxes between a position and its image in the box `[0, length)`, per axis; in a tilted
    /// box, whole box vectors between it and its image in the box that the vectors span.
    #[inline]
    pub fn wraps(&self, position: [f32; 3]) -> [i32; 3] {
        self.wraps_at(position.map(f64::from))
    }

    /// The same of a position in double precision; only coordinates along periodic axes matter.
    #[inline]
    pub(crate) fn wraps_at(&self, position: [f64; 3]) -> [i32; 3] {
        if self.seen.is_tilted() {
            // The bounds check allows 2³⁰ boxes, so the counts fit.
            return self.tilted_places(position).map(|(_, wraps)| wraps as i32);
        }
        std::array::from_fn(|axis| self.axes[axis].cell(position[axis]).1)
    }

    /// Cells along `axis`, `None` where it is open.
    #[inline(always)]
    pub(crate) fn period(&self, axis: usize) -> Option<i64> {
        self.axes[axis].period.as_ref().map(|period| period.cells)
    }

    /// Cell and wrap count per axis in a tilted box. Not inlined, so that it costs the straight
    /// path no more than a branch.
    #[inline(never)]
    fn tilted_places(&self, position: [f64; 3]) -> [(i64, i64); 3] {
        std::array::from_fn(|k| match self.seen.tilt() {
            Some(tilt) => tilted::place(&self.axes[k], tilt, k, position),
            None => (0, 0),
        })
    }

    /// How coordinates become cells along an axis, for backends that do it themselves: the same
    /// operations in the same order give the same cells as [`cell`](Self::cell), in single
    /// precision.
    pub fn scale(&self, axis: usize) -> AxisScale {
        let Axis {
            inverse_edge,
            period,
        } = self.axes[axis];
        AxisScale {
            inverse_edge,
            length: period.map_or(0.0, |period| period.length),
            cells: period.map_or(0, |period| period.cells),
            phase: if self.seen.is_tilted() { 0.0 } else { PHASE },
        }
    }

    /// Smallest and largest cell that points within `bounds` can lie in, and whether every such
    /// point is already inside the box. `bounds` must not be empty.
    pub fn cells_within(&self, bounds: &Bounds) -> (Cell, Cell, bool) {
        let bounds = &match &self.frame {
            None => *bounds,
            Some(frame) => frame.anchored_bounds(bounds),
        };
        let (mut low, mut high, mut inside) = ([0; 3], [0; 3], true);
        for axis in 0..3 {
            let [(min, min_wrap), (max, max_wrap)] = match self.seen.tilt() {
                Some(tilt) => tilted::places_within(&self.axes[axis], tilt, axis, bounds),
                None => [bounds.min, bounds.max].map(|corner| {
                    let (cell, wraps) = self.axes[axis].cell(corner[axis]);
                    (cell, i64::from(wraps))
                }),
            };
            (low[axis], high[axis]) = match self.axes[axis].period {
                Some(period) if min_wrap != max_wrap => (0, period.cells - 1),
                _ => (min, max),
            };
            inside &= min_wrap == 0 && max_wrap == 0;
        }
        (low, high, inside)
    }
}

impl Axis {
    /// Cell and wrap count of one coordinate.
    #[inline(always)]
    fn cell(&self, x: f64) -> (i64, i32) {
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
fn open_cell(u: f64) -> i64 {
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

/// `x` rounded down, clamped to ±[`FARTHEST_CELL`]; NaN becomes the smallest. Not `f64::floor`, which
/// is a library call on the baseline x86-64 target.
#[inline(always)]
fn floor(x: f64) -> i64 {
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

/// How far a search reaches, with everything that rounding could add to a distance (see the module's
/// comment).
#[derive(Debug, Clone, Copy)]
struct Reach {
    /// In any direction.
    radius: f64,
    /// What is added along single axes.
    extra: [f64; 3],
}

impl Reach {
    /// Where rounding adds less than a 64th of the radius, it is taken to add the same along all axes,
    /// which keeps cells cubes. Beyond that every axis gets its own: one long box must not enlarge the
    /// cells along the others.
    fn new(radius: Radius, domain: &Domain, bounds: &Bounds) -> Self {
        let (value, enlargement, slack) = match radius.precision() {
            Precision::Single => {
                let slack = single_slack(domain, bounds);
                (
                    f64::from(radius.value()),
                    1.0 + 2f64.powi(-20),
                    slack.map(|slack| slack * 2f64.powi(-22)),
                )
            }
            Precision::Double => (
                radius.value_f64(),
                double::ENLARGEMENT,
                double::slack(domain, bounds),
            ),
        };
        let largest = slack.into_iter().fold(0.0, f64::max);
        if largest <= value / 64.0 {
            return Self {
                radius: (value + largest) * enlargement,
                extra: [0.0; 3],
            };
        }
        Self {
            radius: value * enlargement,
            extra: slack.map(|slack| slack * enlargement),
        }
    }

    /// Along an axis.
    fn along(&self, axis: usize) -> f64 {
        self.radius + self.extra[axis]
    }
}

/// Per axis, the length of the box and the extent of the points in whole boxes, a power of two of them;
/// 0 where it is open.
fn single_slack(domain: &Domain, bounds: &Bounds) -> [f64; 3] {
    let (lengths, extent) = (domain.lengths(), bounds.extent());
    std::array::from_fn(|axis| {
        lengths[axis].map_or(0.0, |length| {
            let boxes = (extent[axis] / length).max(1.0).log2().ceil().exp2();
            length + boxes * length
        })
    })
}

/// How many images, a box `length` apart, an enlarged radius reaches: too many already without the
/// enlargement, unless it is what far coordinates add that makes them too many.
fn images_within(radius: Radius, reach: f64, length: f64) -> u64 {
    let given = (radius.value_f64() / length).ceil();
    let images = match given > MAX_IMAGES {
        true => given,
        false => (reach / length).ceil(),
    };
    images as u64
}

/// Largest offset between the cells of points whose cell coordinates differ by up to `difference`,
/// from which a tiny `nudge` may be taken off.
fn cells_reached(difference: f64, nudge: f64) -> i64 {
    (difference - nudge).ceil().max(0.0) as i64
}

/// What the rows of a lattice are called where there is no memory for them.
const ROWS: &str = "the neighbour rows of a cell";

/// Rows within `reach` of a cell, each cut to the chord it leaves along x.
///
/// Where rounding has a share of its own along each axis, a pair that is found differs from one within
/// the enlarged radius by at most that much along each axis; gaps are therefore less by it, and rows
/// reach farther by it.
fn stencil(reach: &Reach, edges: [f64; 3]) -> Result<Vec<Row>, Error> {
    let Reach { radius, extra } = *reach;
    // Cells at offset o are at least (|o| − 1)·edge apart. The tiny share taken off keeps
    // reach/edge = K from rounding up to K + 1; it is far inside the enlargement of the radius.
    let cells = |distance: f64, axis: usize| cells_reached(distance / edges[axis], 1e-9);
    // As shares of the radius, whose square may be no number that `f64` has in a vast box.
    let gap = |offset: i64, axis: usize| {
        let apart = (offset.abs() - 1).max(0) as f64 * (edges[axis] / radius);
        (apart - extra[axis] / radius).max(0.0)
    };
    let (ry, rz) = (cells(reach.along(1), 1), cells(reach.along(2), 2));
    let mut rows = Vec::new();
    for z in -rz..=rz {
        for y in -ry..=ry {
            let chord = 1.0 - gap(y, 1).powi(2) - gap(z, 2).powi(2);
            if chord >= 0.0 {
                let reach = cells(radius * chord.sqrt() + extra[0], 0);
                make_room_for_one(&mut rows, ROWS)?;
                rows.push(Row { y, z, reach });
            }
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lattice(radius: f32, lengths: [Option<f64>; 3], k: u32) -> Lattice {
        let bounds = Bounds {
            min: [0.0; 3],
            max: [1.0; 3],
        };
        Lattice::new(
            Radius::new(radius).unwrap(),
            Domain::new(lengths).unwrap(),
            k,
            &bounds,
        )
        .unwrap()
    }

    #[test]
    fn an_open_lattice_has_the_rows_of_its_subdivision() {
        assert_eq!(lattice(0.1, [None; 3], 1).rows().len(), 9);
        let rows = lattice(0.1, [None; 3], 3).rows().to_vec();
        // 7 × 7 rows less the four corners at distance 2·√2 edges > … < 3 edges: none is cut.
        assert_eq!(rows.len(), 49);
        let corner = rows.iter().find(|row| row.y == 3 && row.z == 3).unwrap();
        assert_eq!(corner.reach, 1, "the corner row is cut to its chord");
    }

    #[test]
    fn cells_round_down_on_both_sides_of_zero() {
        let lattice = lattice(1.0, [None; 3], 1);
        assert_eq!(lattice.cell([0.5, -0.5, -1.5]), [0, -1, -2]);
        let [near, far, opposite] = lattice.cell([-0.0, 1e30, -1e30]);
        assert!((near, far) == (0, -opposite - 1) && (1 << 40..1 << 42).contains(&far));
    }

    #[test]
    fn far_cells_follow_each_other_and_fit_a_key() {
        let even = EVEN_CELLS;
        let mut before = open_cell(even.next_down());
        assert_eq!(before, (1 << 40) - 1);
        for u in [
            even,
            even.next_up(),
            1.5 * even,
            2.0 * even,
            1e20,
            1e30,
            1e300,
            f64::MAX,
        ] {
            let cell = open_cell(u);
            assert!(
                cell >= before && cell >= 1 << 40,
                "{u}: {cell} after {before}"
            );
            // Never farther apart than the points are.
            assert!((cell - before) as f64 <= u - even + 2.0, "{u}");
            assert_eq!(open_cell(-u), -cell - 1);
            before = cell;
        }
        assert!(3 * (64 - (2 * before + 2).leading_zeros()) <= 128);
        assert_eq!(open_cell(f64::INFINITY), before);
        // Every number of f32 is told from the next.
        for x in [2f32.powi(41), 1e20, 1e38] {
            let cells = [x, x.next_up()].map(|x| open_cell(f64::from(x)));
            assert!(cells[0] < cells[1]);
        }
    }

    #[test]
    fn neighbours_at_exactly_the_radius_are_at_most_one_cell_apart() {
        for scale in [1e-12f32, 1e-3, 0.1, 1.0, 3.7, 1e9] {
            let lattice = lattice(scale, [None; 3], 1);
            let mut x = -1000.0 * scale;
            for _ in 0..2000 {
                let apart = lattice.cell([x + scale, 0.0, 0.0])[0] - lattice.cell([x, 0.0, 0.0])[0];
                if (x + scale) - x <= scale {
                    assert!(apart.abs() <= 1, "{x} and {} in units {scale}", x + scale);
                }
                x += scale;
            }
        }
    }

    #[test]
    fn a_box_smaller_than_the_radius_reaches_several_images() {
        let lattice = lattice(0.6, [Some(0.5), None, None], 1);
        assert_eq!(lattice.period(0), Some(1));
        assert!(lattice.rows().iter().all(|row| row.reach == 2));
        assert_eq!(lattice.cell([-0.1, 0.0, 0.0])[0], 0);
        assert_eq!(lattice.wraps([-0.1, 0.0, 0.0])[0], -1);
        assert_eq!(lattice.wraps([1.0, 0.0, 0.0])[0], 2);
    }

    #[test]
    fn points_repeat_only_where_the_box_is_small() {
        assert!(!lattice(1.0, [None; 3], 1).repeats());
        for axis in 0..3 {
            for (length, repeats) in [(0.5, true), (1.9, true), (2.0, true), (3.1, false)] {
                let mut lengths = [None; 3];
                lengths[axis] = Some(length);
                for k in 1..4 {
                    assert_eq!(
                        lattice(1.0, lengths, k).repeats(),
                        repeats,
                        "{length} by {k}"
                    );
                }
            }
        }
    }

    #[test]
    fn an_absurdly_small_box_is_refused() {
        let error = Lattice::new(
            Radius::new(10.0).unwrap(),
            Domain::new([None, None, Some(1e-3)]).unwrap(),
            1,
            &Bounds::EMPTY,
        )
        .unwrap_err();
        let images = 10_000;
        assert!(
            matches!(error, Error::TooManyImages { axis: 'z', images: found, .. } if found == images),
            "{error}"
        );
    }

    #[test]
    fn in_a_vast_box_a_cell_reaches_its_neighbours_only() {
        for radius in [Radius::new(1.0), Radius::new_f64(1.0)] {
            for lengths in [[Some(1e300); 3], [Some(1e300), None, None]] {
                let (domain, bounds) = (Domain::new(lengths).unwrap(), Bounds::EMPTY);
                let lattice = Lattice::new(radius.clone().unwrap(), domain, 1, &bounds).unwrap();
                assert_eq!(lattice.rows().len(), 9);
                assert!(lattice.rows().iter().all(|row| row.reach == 1));
            }
        }
    }
}
