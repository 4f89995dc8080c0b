//! From coordinates to cells so that no pair within the radius is lost.
//!
//! **Invariant others rely on:** if the contract's `f32` arithmetic finds two points within the
//! radius, the offset between their cells (images included) is among [`Lattice::rows`].
//!
//! # Why it holds
//!
//! Cells are `floor(x · inverse_edge + phase)` in `f64` ([`axis`]), anchored near coordinate 0,
//! not at the smallest point. Three things could separate two points within the radius by more
//! cells than the stencil has, and each is covered.
//!
//! * **Rounding of the cell coordinate.** An `f32` that is many cells from 0 is itself coarse:
//!   beyond 2²⁵ cells two different coordinates differ by more than a cell. So the relative error
//!   of the two `f64` operations never amounts to more than 2⁻²⁵ cells where it could matter. The
//!   edge is the radius enlarged by 1 + 2⁻²⁰.
//! * **Rounding of the pair test.** The contract finds a pair by `fl(fl(xj − xi) + S)`, which may
//!   be shorter than the true displacement. On periodic axes the edge is enlarged by 2⁻²² of the
//!   box length plus the coordinate range, which covers all three roundings ([`rows`]).
//! * **Far coordinates.** Beyond 2⁴⁰ cells from 0 cells grow with the distance. Larger cells bring
//!   no pair farther apart.
//!
//! An axis that is so long that no image can be near is [taken as open](Domain::effective), so a
//! vast box enlarges no cell. Anchoring at 0 also means that an outlier or a moving bounding box
//! never moves the cells of the other points.
//!
//! # Tilted boxes and double precision
//!
//! In a tilted box cells are shares of the box vectors; the submodule `tilted` has the same
//! argument for them. "x", "y" and "z" of a cell or a row then stand for the vectors a, b and c.
//! The submodule `double` has it for points in double precision.
//!
//! # Stability
//!
//! A lattice depends on the extent of the points only where that is unavoidable, and then through
//! powers of two. A cloud that moves keeps its lattice, and so the order of its lists, for many
//! steps.
//!
//! # Cells per axis
//!
//! On periodic axes the box is cut into whole cells, so a cell on one side of a face continues on
//! the other side, and images are whole numbers of cells apart. A box smaller than the radius is
//! one cell whose neighbours are its own images. Points are wrapped for binning only; their
//! coordinates stay as given.
//!
//! # Sharing
//!
//! All sets of an engine use one lattice. Its rows are shared by reference count, because around a
//! box much smaller than the radius there are millions.

pub(crate) mod axis;
mod double;
mod effective;
mod nested;
mod proxies;
pub(crate) mod rows;
mod tilted;

use crate::{
    Bounds, Domain, Error, ErrorKind, Precision, Radius, domain::tilt::along, error::axis_name,
};
use axis::{Axis, AxisScale, Cell, OpenScale, PHASE, Placing, straight_axes};
pub(crate) use double::Frame;
pub use proxies::WrappedProxies;
use rows::{MAX_IMAGES, Reach, Row, images_within, stencil};
use std::sync::Arc;

/// Cells of edge r/K for one radius and domain, shared by all point sets of an engine.
///
/// Two lattices that are equal give every point the same cell, so lists and orders agree.
#[derive(Debug, Clone, PartialEq)]
pub struct Lattice {
    /// The search radius.
    radius: Radius,
    /// The domain as given.
    domain: Domain,
    /// With axes open along which no image can be near.
    seen: Domain,
    /// From coordinates to cells, axis by axis.
    axes: [Axis; 3],
    /// Farther apart than this, in real numbers, no pair is that the contract finds.
    reach: f64,
    /// Shared by all copies: around a box much smaller than the radius there are millions.
    rows: Arc<Vec<Row>>,
    /// Present in double precision.
    frame: Option<Frame>,
    /// For backends that wrap points into the box.
    proxies: WrappedProxies,
    /// What rounding adds to distances along each axis, for [`nested`](Self::nested).
    slack: [f64; 3],
}

/// Cells that points within some bounds can lie in, as [`Lattice::cells_within`] finds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellsWithin {
    /// The smallest cell along every axis.
    pub low: Cell,
    /// The largest cell along every axis.
    pub high: Cell,
    /// True if every such point is already inside the box.
    pub inside: bool,
}

impl Lattice {
    /// The lattice of edge r/`subdivision` for points within `bounds`.
    ///
    /// In single precision only the extent of `bounds` along periodic axes matters, and it is
    /// rounded up to a power of two times the box, so a moving cloud keeps its lattice. In double
    /// precision it also matters where the points are, roughly.
    ///
    /// # Errors
    /// [`ErrorKind::TooManyImages`] when a box is over a thousand times smaller than the radius,
    /// and [`ErrorKind::OutOfMemory`].
    pub fn new(
        radius: Radius,
        domain: Domain,
        subdivision: u32,
        bounds: &Bounds,
    ) -> Result<Self, Error> {
        Self::divided(radius, domain, [subdivision; 3], bounds)
    }

    /// As [`new`](Self::new), with a number of cells to the radius for each axis. Cells that are
    /// finer along x cost only table: the cells of a row lie side by side.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn divided(
        radius: Radius,
        domain: Domain,
        subdivision: [u32; 3],
        bounds: &Bounds,
    ) -> Result<Self, Error> {
        Self::rounded(radius, domain, subdivision, bounds, 0.0)
    }

    /// As [`divided`](Self::divided), with one cell more along those axes of a straight box that
    /// are a whole number of cells long but for a 1,024th, which the enlargement of the radius may
    /// take: 50 cells, not 49, where a box is 50 radii long. The radius then reaches a little
    /// beyond as many cells as it is divided into, so there are rows one cell farther.
    ///
    /// For searches around single targets, which leave out such rows unless they are in reach.
    /// Searches from cell to cell would visit all of them.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn fitted(
        radius: Radius,
        domain: Domain,
        subdivision: [u32; 3],
        bounds: &Bounds,
    ) -> Result<Self, Error> {
        Self::rounded(radius, domain, subdivision, bounds, 1.0 / 1024.0)
    }

    /// A lattice whose cells in a straight box may be smaller than divided ones by a share `fit`.
    fn rounded(
        radius: Radius,
        domain: Domain,
        subdivision: [u32; 3],
        bounds: &Bounds,
        fit: f64,
    ) -> Result<Self, Error> {
        let subdivision = subdivision.map(|cells| f64::from(cells.max(1)));
        let seen = domain.effective(bounds, radius.value_f64());
        let frame = match radius.precision() {
            Precision::Single => None,
            Precision::Double => Some(Frame::new(radius, &seen, bounds)),
        };
        let proxies = WrappedProxies::new(radius, &seen, bounds, frame.as_ref());
        if let Some(tilt) = seen.tilt() {
            let cells = tilted::cells(radius, &seen, tilt, subdivision, bounds)?;
            return Ok(Self {
                radius,
                domain,
                seen,
                axes: cells.axes,
                reach: cells.reach,
                rows: Arc::new(cells.rows),
                frame,
                proxies,
                slack: [cells.rounding; 3],
            });
        }
        let reach = Reach::new(radius, &seen, bounds);
        for (axis, length) in seen.lengths().into_iter().enumerate() {
            let Some(length) = length else { continue };
            let reach = reach.along(axis);
            if reach / length > MAX_IMAGES {
                return Err(ErrorKind::TooManyImages {
                    axis: axis_name(axis),
                    length,
                    radius: radius.as_given(),
                    images: images_within(radius, reach, length),
                }
                .into());
            }
        }
        let edges = [0, 1, 2].map(|axis| reach.along(axis) / subdivision[axis]);
        let axes = straight_axes(edges, &seen, fit);
        let rows = stencil(&reach, axes.map(|axis| 1.0 / axis.inverse_edge))?;
        Ok(Self {
            radius,
            domain,
            seen,
            axes,
            reach: reach.largest(),
            rows: Arc::new(rows),
            frame,
            proxies,
            slack: rows::slack(radius.precision(), &seen, bounds),
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

    /// The domain as the points see it that the lattice is for: an axis is open where the box is so
    /// long that none of them can be near an image of another. Cells and image counts are those of
    /// this domain.
    pub fn effective_domain(&self) -> &Domain {
        &self.seen
    }

    /// Edge of the cells per axis, in units of the coordinates; in a tilted box the distance
    /// between the faces of a cell.
    pub fn edges(&self) -> [f64; 3] {
        self.axes.map(|axis| 1.0 / axis.inverse_edge)
    }

    /// The distance beyond which no pair lies that the contract finds: the radius and all that
    /// rounding can add to it.
    pub fn reach(&self) -> f64 {
        self.reach
    }

    /// The vectors from a cell to the next along each axis, turned so that the first lies along x
    /// and the second in the plane of x and y. In a straight box they are the edges.
    pub fn cell_vectors(&self) -> [[f64; 3]; 3] {
        match self.seen.tilt() {
            Some(tilt) => tilted::cell_vectors(&self.axes, tilt),
            None => std::array::from_fn(|axis| along(axis, 1.0 / self.axes[axis].inverse_edge)),
        }
    }

    /// The neighbour rows of a cell, by ascending (z, y), the cell's own among them.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Maximum number of images of a point among the candidates of a cell; 1 in an open domain.
    ///
    /// An upper bound: the widest row along x and the farthest rows along y and z.
    pub fn max_images(&self) -> usize {
        let images = self.max_images_along();
        images.into_iter().fold(1, usize::saturating_mul)
    }

    /// The same along each axis. No candidate is seen through an image of its cell of a higher
    /// number.
    ///
    /// A search bounds with it how far image vectors can move a point.
    pub fn max_images_along(&self) -> [usize; 3] {
        let reach = self.max_offsets();
        std::array::from_fn(|axis| {
            let images = |cells| (2 * reach[axis] + cells) / cells;
            self.period(axis).map_or(1, images) as usize
        })
    }

    /// Largest offset of a neighbour cell along each axis.
    pub fn max_offsets(&self) -> [i64; 3] {
        let max = |offset: fn(&Row) -> i64| self.rows.iter().map(offset).max().unwrap_or(0);
        [max(|row| row.reach), max(|row| row.y), max(|row| row.z)]
    }

    /// Returns true if a point may lie within the radius through several images of a periodic axis,
    /// so that it may stand in a list several times.
    pub fn repeats(&self) -> bool {
        let reach = self.max_offsets();
        // Neighbour cells that are visited once each show every point once.
        let twice = |(cells, reach): (Option<i64>, i64)| cells.is_some_and(|n| n < 2 * reach + 1);
        [0, 1, 2]
            .map(|axis| self.period(axis))
            .into_iter()
            .zip(reach)
            .any(twice)
    }

    /// Cell of a position, wrapped into the box on periodic axes. A coordinate that is NaN gets
    /// some cell.
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

    /// The vector added to differences of sorted coordinates in the image with this vector: the
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

    /// The bound on squared distances of proxies up to which the contract finds a pair whose target
    /// has this [`filter_r2`](crate::DoublePoints::filter_r2); below every square where proxies
    /// cannot tell, and in single precision.
    #[inline(always)]
    pub fn inner_r2(&self, filter_r2: f32) -> f32 {
        (self.frame.as_ref()).map_or(-1.0, |frame| frame.inner_r2(filter_r2))
    }

    /// [`image_shift`](Self::image_shift) of many images, as
    /// [`Domain::image_vectors`] takes and gives them.
    ///
    /// Along axes whose proxies are all zero, because the box is too long for them, there is
    /// nothing to shift, so zeros are written.
    #[inline(always)]
    pub fn image_shifts(&self, counts: [&[f32]; 3], more: [f32; 3], to: [&mut [f32]; 3]) {
        let [x, y, z] = to;
        self.domain
            .image_vectors(counts, more, [&mut *x, &mut *y, &mut *z]);
        if let Some(frame) = &self.frame {
            for (to, shifts) in [x, y, z].into_iter().zip(frame.proxy_shift([1.0; 3])) {
                if shifts == 0.0 {
                    to.fill(0.0);
                }
            }
        }
    }

    /// How a backend that wraps points into the box makes proxies of them, which it compares in
    /// place of positions far outside the box and of those in double precision.
    pub fn wrapped_proxies(&self) -> &WrappedProxies {
        &self.proxies
    }

    /// The frame that turns positions into proxies, in double precision; None in single precision,
    /// where positions are searched as they are.
    #[inline(always)]
    pub(crate) fn frame(&self) -> Option<&Frame> {
        self.frame.as_ref()
    }

    /// The scale of all axes where all of them are open and divided alike; backends and sorts use
    /// it for whole vectors of points.
    pub(crate) fn open_scale(&self) -> Option<OpenScale> {
        let alike = self.axes.iter().all(|axis| *axis == self.axes[0]);
        (!self.seen.is_periodic() && alike).then_some(OpenScale {
            inverse_edge: self.axes[0].inverse_edge,
        })
    }

    /// How positions become cells along an axis, for loops that the compiler vectorises. The cells
    /// are those of [`cell_at`](Self::cell_at) and the boxes those of [`wraps_at`](Self::wraps_at),
    /// as long as no cell is far out.
    pub(crate) fn placing(&self, axis: usize) -> Placing {
        let Axis {
            inverse_edge,
            period,
        } = self.axes[axis];
        let (tilt, row) = (self.seen.tilt(), self.row(axis));
        let ends = match period {
            Some(period) => [0.0, (period.cells - 1) as f64],
            None => [f64::NEG_INFINITY, f64::INFINITY],
        };
        let (length, scale) = match (period, tilt) {
            (Some(period), Some(_)) => (1.0, period.cells as f64),
            (Some(period), None) => (period.length, inverse_edge),
            (None, _) => (1.0, inverse_edge),
        };
        Placing {
            row,
            length,
            boxes: f64::from(u8::from(period.is_some())),
            scale,
            phase: if tilt.is_none() && period.is_none() {
                PHASE
            } else {
                0.0
            },
            ends,
        }
    }

    /// The vector whose dot product with a position says where it lies along an axis: in a tilted
    /// box as a fraction, else as a coordinate.
    fn row(&self, axis: usize) -> [f64; 3] {
        match self.seen.tilt() {
            Some(tilt) if self.axes[axis].period.is_some() || tilt.slanted => tilt.inverse[axis],
            _ => along(axis, 1.0),
        }
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
    /// operations in the same order give the same cells as [`cell`](Self::cell), in double
    /// precision from coordinates less the centre of [`wrapped_proxies`](Self::wrapped_proxies).
    ///
    /// The GPU backend computes cells with these numbers.
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
            row: self.row(axis),
        }
    }

    /// The cells that points within `bounds`, which must not be empty, can lie in.
    ///
    /// The cells of the two corners bound those of all points, because cells rise with the
    /// coordinates.
    pub fn cells_within(&self, bounds: &Bounds) -> CellsWithin {
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
        CellsWithin { low, high, inside }
    }
}

#[cfg(test)]
mod tests {
    use super::axis::{EVEN_CELLS, open_cell};
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
    fn cells_without_branches_are_those_of_single_points() {
        let bounds = Bounds {
            min: [-40.0; 3],
            max: [40.0; 3],
        };
        let vectors = [[7.0, 0.0, 0.0], [2.5, 6.1, 0.0], [-1.5, 2.0, 5.3]].map(Some);
        let open_along_y = [vectors[0], None, Some([0.0, 0.0, 5.3])];
        let slanted = [vectors[0], None, vectors[2]];
        let tilted = [
            vectors,
            [vectors[0], vectors[1], None],
            open_along_y,
            slanted,
        ];
        let domains = tilted.map(|vectors| Domain::from_vectors(vectors).unwrap());
        let straight = [[Some(7.3), None, Some(5.1)], [Some(6.9); 3], [None; 3]];
        let straight = straight.map(|lengths| Domain::new(lengths).unwrap());
        for domain in domains.into_iter().chain(straight) {
            let lattice = Lattice::new(Radius::new(0.7).unwrap(), domain, 1, &bounds).unwrap();
            let axes = [0, 1, 2].map(|axis| lattice.placing(axis));
            for k in 0..4000 {
                let turn = |step: f64| 80.0 * ((f64::from(k) * step).fract() - 0.5);
                let mut at = [0.618_034, 0.414_214, 0.732_051].map(turn);
                if k % 3 == 0 {
                    // Faces of boxes among them.
                    at = at.map(|x| (x * 0.5).round() * 7.3 * 0.5);
                }
                let found = axes.map(|axis| axis.place(at));
                assert_eq!(found.map(|(cell, _)| cell as i64), lattice.cell_at(at));
                assert_eq!(found.map(|(_, wraps)| wraps as i32), lattice.wraps_at(at));
            }
        }
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
            matches!(error.kind(), ErrorKind::TooManyImages { axis: 'z', images: found, .. } if *found == images),
            "{error}"
        );
        let domain = Domain::new([Some(1e-30), None, None]).unwrap();
        let radius = Radius::new(1.0).unwrap();
        let error = Lattice::new(radius, domain, 1, &Bounds::EMPTY).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("reaches more than 10^19 images"), "{text}");
        assert!(text.contains("enlarge the box"), "{text}");
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
