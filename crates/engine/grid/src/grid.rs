//! A point set sorted by cell, and the candidates of every cell.

use crate::{
    Bounds, BrickParts, Cell, Error, Lattice, PADDING, Permutation, Positions, TableKind,
    error::reserve,
    hashed::{HashedTable, Packing, WideKey},
    kept::Kept,
    keys::{Double, FillKeys, Placed, Single},
    memory, occupancy,
    parallel::PoolLoops,
    positions::{Source, Visitor},
    sort::{self, Order, SortScratch, Sorted, WideScratch},
    table::{CellBox, CellTable, DenseTable, RowOfCells},
    widest::widest,
};
use rayon::prelude::*;
use std::ops::Range;
use tracing::field::Empty;

/// A dense cell table may hold this many cells per point…
const CELLS_PER_POINT: usize = 8;
/// …and always this many, so that small sets never hash.
const SMALL_TABLE: usize = 1 << 16;

/// Sorted points of one set and the table of their cells.
///
/// Buffers are kept between builds: the steady state allocates nothing.
#[derive(Debug, Clone)]
pub struct Grid {
    lattice: Lattice,
    bounds: Bounds,
    points: SortedPoints,
    table: CellTable,
    scratch: SortScratch,
    /// For cells far apart.
    wide: WideScratches,
    /// Points the caller gave, of which a part may have been left out.
    given: usize,
    kept: Kept,
}

/// Points in the order of their cells, as structure of arrays.
///
/// The coordinate arrays are [`PADDING`] longer than [`len`](Self::len), filled with infinity. In
/// double precision they hold *proxies*, see [`DoublePoints`].
#[derive(Debug, Clone, Default)]
pub struct SortedPoints {
    len: usize,
    x: Vec<f32>,
    y: Vec<f32>,
    z: Vec<f32>,
    index: Vec<u32>,
    wraps: Vec<[i32; 3]>,
    double: Option<DoublePoints>,
}

/// What sorted points have beside their coordinates in `f32` when they were given for a search in
/// double precision.
///
/// The coordinates in `f32` are proxies then: positions relative to a centre that all sets on a
/// lattice share. Whenever the contract finds a pair within the radius through some image, the
/// squared distance of the proxies (moved by [`Lattice::image_shift`]) as computed in `f32` is at
/// most the target's [`filter_r2`](Self::filter_r2). The converse does not hold: what passes is to
/// be decided by [`position`](Self::position).
#[derive(Debug, Clone, Default)]
pub struct DoublePoints {
    axes: [Vec<f64>; 3],
    filter_r2: Vec<f32>,
}

impl DoublePoints {
    /// Coordinates along each axis as they were given, one value per sorted point.
    pub fn axes(&self) -> [&[f64]; 3] {
        [&self.axes[0], &self.axes[1], &self.axes[2]]
    }

    /// Position of a sorted point as it was given.
    #[inline(always)]
    pub fn position(&self, slot: usize) -> [f64; 3] {
        [self.axes[0][slot], self.axes[1][slot], self.axes[2][slot]]
    }

    /// What squared distances of proxies are compared with when a sorted point searches, one value
    /// per point.
    pub fn filter_r2(&self) -> &[f32] {
        &self.filter_r2
    }

    fn bytes(&self) -> usize {
        let axes: usize = self.axes.iter().map(Vec::capacity).sum();
        size_of::<f64>() * axes + size_of::<f32>() * self.filter_r2.capacity()
    }

    fn reserve(&mut self, len: usize) -> Result<(), Error> {
        for axis in &mut self.axes {
            reserve(axis, len, "sorted coordinates")?;
        }
        reserve(&mut self.filter_r2, len, "filter radii")
    }

    /// Takes the positions of the points whose indices are given in sorted order; room has been
    /// reserved. In one pass: points in random order are far apart in memory.
    fn fill<S: Source<f64>>(&mut self, points: Double<'_, S>, index: &[u32]) {
        let [x, y, z] = &mut self.axes;
        for axis in [&mut *x, &mut *y, &mut *z] {
            axis.resize(index.len(), 0.0);
        }
        self.filter_r2.resize(index.len(), 0.0);
        (index, x, y, z, &mut self.filter_r2)
            .into_par_iter()
            .with_min_len(1 << 12)
            .run(|(&index, x, y, z, r2)| {
                let position = points.source.position(index as usize);
                [*x, *y, *z] = position;
                *r2 = points.frame.filter_r2(position);
            });
    }
}

/// A contiguous range of sorted points that are candidates of a cell, all in one periodic image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Sorted points.
    pub slots: Range<usize>,
    /// Image of the box their cell was found in; zero where the axis is open.
    pub image: [i32; 3],
}

impl SortedPoints {
    /// Number of points.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Coordinates along each axis, `len() + PADDING` values each.
    pub fn axes(&self) -> [&[f32]; 3] {
        [&self.x, &self.y, &self.z]
    }

    /// The caller's index of each sorted point, `len() + PADDING` values.
    pub fn index(&self) -> &[u32] {
        &self.index
    }

    /// What there is beside these coordinates in double precision.
    #[inline(always)]
    pub fn double(&self) -> Option<&DoublePoints> {
        self.double.as_ref()
    }

    /// Position of a sorted point.
    #[inline(always)]
    pub fn position(&self, slot: usize) -> [f32; 3] {
        [self.x[slot], self.y[slot], self.z[slot]]
    }

    /// Whole boxes between a sorted point and its image inside the box.
    #[inline(always)]
    pub fn wraps(&self, slot: usize) -> [i32; 3] {
        self.wraps.get(slot).copied().unwrap_or_default()
    }

    /// Whether any point lies outside the periodic box.
    pub fn any_wrapped(&self) -> bool {
        !self.wraps.is_empty()
    }

    /// Position of a sorted point as it was given, converted where it was given in `f32`.
    #[inline(always)]
    pub fn position_f64(&self, slot: usize) -> [f64; 3] {
        match &self.double {
            None => self.position(slot).map(f64::from),
            Some(double) => double.position(slot),
        }
    }

    /// Positions in the caller's order; in double precision those of the proxies.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn in_callers_order(&self) -> Result<Vec<[f32; 3]>, Error> {
        self.scatter(|slot| self.position(slot))
    }

    /// `value` of every sorted point, in the caller's order.
    fn scatter<T: Copy + Default>(
        &self,
        value: impl Fn(usize) -> [T; 3],
    ) -> Result<Vec<[T; 3]>, Error> {
        const WHAT: &str = "positions in the caller's order";
        let mut values = memory::filled(self.len, [T::default(); 3], WHAT)?;
        for slot in 0..self.len {
            values[self.index[slot] as usize] = value(slot);
        }
        Ok(values)
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        4 * (self.x.capacity() + self.y.capacity() + self.z.capacity() + self.index.capacity())
            + size_of::<[i32; 3]>() * self.wraps.capacity()
            + self.double.as_ref().map_or(0, DoublePoints::bytes)
    }

    fn reserve(&mut self, len: usize) -> Result<(), Error> {
        for axis in [&mut self.x, &mut self.y, &mut self.z] {
            reserve(axis, len + PADDING, "sorted coordinates")?;
        }
        reserve(&mut self.index, len + PADDING, "sorted indices")
    }

    fn resize(&mut self, len: usize) {
        self.len = len;
        for axis in [&mut self.x, &mut self.y, &mut self.z] {
            axis.resize(len + PADDING, f32::INFINITY);
            axis[len..].fill(f32::INFINITY);
        }
        self.index.resize(len + PADDING, u32::MAX);
        self.index[len..].fill(u32::MAX);
    }

    fn slots(&mut self) -> Sorted<'_> {
        Sorted {
            x: &mut self.x[..self.len],
            y: &mut self.y[..self.len],
            z: &mut self.z[..self.len],
            index: &mut self.index[..self.len],
        }
    }
}

impl Grid {
    /// A grid of no points.
    pub fn new(lattice: Lattice) -> Self {
        let mut points = SortedPoints::default();
        points.resize(0);
        Self {
            lattice,
            bounds: Bounds::EMPTY,
            points,
            table: CellTable::Dense(DenseTable::default()),
            scratch: SortScratch::default(),
            wide: WideScratches::default(),
            given: 0,
            kept: Kept::default(),
        }
    }

    /// Sorts `positions`, whose checked bounds are `bounds`, on `lattice`. Points beyond the bounds, or
    /// with a coordinate that is not finite, end in some cell, where pairs of theirs may not be found.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and [`Error::Precision`] for positions in `f64` on a lattice of
    /// single precision; the grid then holds what it held before.
    pub fn build(
        &mut self,
        positions: Positions<'_>,
        bounds: Bounds,
        lattice: &Lattice,
    ) -> Result<(), Error> {
        let points = positions.len();
        let span = tracing::debug_span!("grid.sort", points, cells = Empty).entered();
        positions.check_precision(lattice.radius().precision())?;
        self.points.reserve(positions.len())?;
        let build = Build {
            grid: self,
            len: positions.len(),
            bounds,
            lattice,
        };
        match lattice.frame() {
            None => positions.with(build)??,
            Some(_) => positions.with_f64(build)?,
        }
        self.given = points;
        self.bounds = bounds;
        self.lattice.clone_from(lattice);
        span.record("cells", self.table_len());
        occupancy::tell(self);
        Ok(())
    }

    /// Sorts only those points, of positions within `bounds`, that lie in bricks of one part; they keep
    /// the indices that they have among all. For domains without periodic axes, in single precision.
    ///
    /// # Errors
    /// As [`build`](Self::build), and those of [`Bounds::of`].
    pub fn build_part(
        &mut self,
        positions: &[[f32; 3]],
        bounds: &Bounds,
        lattice: &Lattice,
        of: (&BrickParts, u8),
    ) -> Result<(), Error> {
        if positions.is_empty() {
            return self.build(positions.into(), Bounds::EMPTY, lattice);
        }
        let _span = tracing::debug_span!("grid.part", points = positions.len()).entered();
        let mut kept = std::mem::take(&mut self.kept);
        let chosen = kept.choose(positions, bounds, lattice, of);
        let built = chosen.and_then(|bounds| self.build(kept.positions().into(), bounds, lattice));
        if built.is_ok() {
            let index = kept.index();
            let slots = &mut self.points.index[..index.len()];
            let own = slots.par_iter_mut().with_min_len(1 << 12);
            own.run(|slot| *slot = index[*slot as usize]);
            self.given = positions.len();
        }
        self.kept = kept;
        built
    }

    /// Number of points that the caller gave: the length of arrays that go with them. More than there
    /// are sorted ones where only [a part](Self::build_part) was sorted.
    pub fn given(&self) -> usize {
        self.given
    }

    /// The same points on another lattice.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; the grid then holds what it held before.
    pub fn rebuild(&mut self, lattice: &Lattice) -> Result<(), Error> {
        debug_assert_eq!(
            self.given,
            self.points.len(),
            "of a part nothing is known of the rest"
        );
        let points = &self.points;
        match points.double() {
            None => self.build((&points.in_callers_order()?).into(), self.bounds, lattice),
            Some(double) => {
                let positions = points.scatter(|slot| double.position(slot))?;
                self.build((&positions).into(), self.bounds, lattice)
            }
        }
    }

    /// A second grid of the same points on another lattice; this one stays as it is.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn copied_to(&self, lattice: &Lattice) -> Result<Self, Error> {
        let mut copy = Self::new(lattice.clone());
        let points = &self.points;
        match points.double() {
            None => {
                let positions = points.in_callers_order()?;
                copy.build((&positions).into(), self.bounds, lattice)?;
            }
            Some(double) => {
                let positions = points.scatter(|slot| double.position(slot))?;
                copy.build((&positions).into(), self.bounds, lattice)?;
            }
        }
        Ok(copy)
    }

    /// The lattice the points were sorted on.
    pub fn lattice(&self) -> &Lattice {
        &self.lattice
    }

    /// Bounds of the points.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// The sorted points.
    pub fn points(&self) -> &SortedPoints {
        &self.points
    }

    /// Which table finds the cells.
    pub fn table_kind(&self) -> TableKind {
        self.table.kind()
    }

    /// The table itself.
    #[inline(always)]
    pub(crate) fn table(&self) -> &CellTable {
        &self.table
    }

    /// Cells the table covers.
    pub fn table_len(&self) -> usize {
        self.table.len()
    }

    /// Bytes held, scratch for the next build included.
    pub fn bytes(&self) -> usize {
        self.points.bytes() + self.table.bytes() + self.scratch_bytes() + self.kept.bytes()
    }

    /// Bytes of the cell table.
    pub fn table_bytes(&self) -> usize {
        self.table.bytes()
    }

    /// Bytes of scratch for the next build.
    pub fn scratch_bytes(&self) -> usize {
        self.scratch.bytes() + self.wide.bytes()
    }

    /// The order of the sorted points, as a permutation of the caller's arrays.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn permutation(&self) -> Result<Permutation, Error> {
        let order = &self.points.index[..self.points.len];
        Ok(Permutation::from_order(memory::copied(
            order,
            "a permutation",
        )?))
    }

    /// Occupied cells that hold the sorted points `slots`, each with its share of them.
    pub fn cells(&self, slots: Range<usize>) -> Cells<'_> {
        Cells {
            table: &self.table,
            row: RowOfCells::default(),
            place: if slots.is_empty() {
                0
            } else {
                self.table.find(slots.start)
            },
            slots,
        }
    }

    fn build_dense<P: Placed>(
        &mut self,
        source: P,
        len: usize,
        cells: CellBox,
        lattice: &Lattice,
    ) -> Result<(), Error> {
        let count = cells.cells().unwrap_or(usize::MAX);
        let key = |index| cells.key(lattice.cell_at(source.place(index)));
        self.scratch.reserve(len, Order::of(len, count, key))?;
        let mut starts = match &mut self.table {
            CellTable::Dense(table) => std::mem::take(&mut table.starts),
            CellTable::Hashed(_) => Vec::new(),
        };
        if let Err(error) = reserve(&mut starts, count.saturating_add(1), "the cell table") {
            if let CellTable::Dense(table) = &mut self.table {
                table.starts = starts;
            }
            return Err(error);
        }
        starts.resize(count + 1, 0);
        self.points.resize(len);
        sort::by_counting(
            len,
            |index| source.stored(index),
            |range, keys| {
                widest(FillKeys {
                    source,
                    range,
                    keys,
                    lattice,
                    cells,
                });
            },
            &mut self.scratch,
            &mut starts,
            self.points.slots(),
        );
        self.table = CellTable::Dense(DenseTable { cells, starts });
        Ok(())
    }

    fn build_hashed<K: WideKey, P: Placed>(
        &mut self,
        source: P,
        len: usize,
        (packing, scratch): (Packing, fn(&mut WideScratches) -> &mut WideScratch<K>),
        lattice: &Lattice,
    ) -> Result<(), Error> {
        let scratch = scratch(&mut self.wide);
        scratch.reserve(len)?;
        (0..len)
            .into_par_iter()
            .with_min_len(1 << 12)
            .map(|index| K::of(packing.key(lattice.cell_at(source.place(index)))))
            .put_into(&mut scratch.keys);
        let sorted = sort::by_radix(scratch);
        match &mut self.table {
            CellTable::Hashed(table) => table.fill(sorted, &packing)?,
            CellTable::Dense(_) => {
                let mut table = HashedTable::default();
                table.fill(sorted, &packing)?;
                self.table = CellTable::Hashed(table);
            }
        }
        self.points.resize(len);
        let slots = self.points.slots();
        (slots.x, slots.y, slots.z, slots.index, sorted)
            .into_par_iter()
            .with_min_len(1 << 12)
            .run(|(x, y, z, index, item)| {
                [*x, *y, *z] = source.stored(item.1 as usize);
                *index = item.1;
            });
        Ok(())
    }
}

/// Scratch for keys of either width.
#[derive(Debug, Clone, Default)]
struct WideScratches {
    narrow: WideScratch<u64>,
    wide: WideScratch<u128>,
}

impl WideScratches {
    fn bytes(&self) -> usize {
        self.narrow.bytes() + self.wide.bytes()
    }
}

struct Build<'a> {
    grid: &'a mut Grid,
    len: usize,
    bounds: Bounds,
    lattice: &'a Lattice,
}

impl Visitor<f32> for Build<'_> {
    type Output = Result<(), Error>;

    fn visit<S: Source<f32>>(mut self, source: S) -> Self::Output {
        self.sort(Single(source))?;
        self.grid.points.double = None;
        Ok(())
    }
}

impl Visitor<f64> for Build<'_> {
    type Output = Result<(), Error>;

    fn visit<S: Source<f64>>(mut self, source: S) -> Self::Output {
        let Some(frame) = self.lattice.frame() else {
            return Err(Error::Precision);
        };
        let held = self.grid.points.double.take();
        let was_double = held.is_some();
        let mut double = held.unwrap_or_default();
        let placed = Double { source, frame };
        let built = double.reserve(self.len).and_then(|()| self.sort(placed));
        let points = &mut self.grid.points;
        if built.is_ok() {
            double.fill(placed, &points.index[..points.len]);
        }
        // After a failure the points are still those from before, which may be single.
        points.double = (built.is_ok() || was_double).then_some(double);
        built
    }
}

impl Build<'_> {
    fn sort<P: Placed>(&mut self, points: P) -> Result<(), Error> {
        let Self {
            grid,
            len,
            bounds,
            lattice,
        } = self;
        let len = *len;
        if len == 0 {
            grid.points.resize(0);
            grid.points.wraps.clear();
            grid.table = CellTable::Dense(DenseTable::default());
            return Ok(());
        }
        let (low, high, inside) = lattice.cells_within(bounds);
        let cells = CellBox::new(low, high);
        let most = (CELLS_PER_POINT.saturating_mul(len)).clamp(SMALL_TABLE, 1 << 31);
        if cells.cells().is_some_and(|count| count <= most) {
            grid.build_dense(points, len, cells, lattice)?;
        } else {
            let packing = Packing::new(cells);
            if packing.bits() <= 64 {
                grid.build_hashed::<u64, _>(points, len, (packing, |of| &mut of.narrow), lattice)?;
            } else {
                grid.build_hashed::<u128, _>(points, len, (packing, |of| &mut of.wide), lattice)?;
            }
        }
        grid.points.wraps.clear();
        if !inside {
            let sorted = &grid.points;
            let place = |slot: usize| match lattice.frame() {
                None => sorted.position(slot).map(f64::from),
                Some(_) => points.place(sorted.index[slot] as usize),
            };
            let mut wraps = Vec::new();
            memory::make_room(&mut wraps, len, "the boxes that points lie in")?;
            (0..len)
                .into_par_iter()
                .with_min_len(1 << 12)
                .map(|slot| lattice.wraps_at(place(slot)))
                .put_into(&mut wraps);
            // The corners of the bounds may lie outside a tilted box that holds all points.
            if wraps.iter().any(|wraps| *wraps != [0; 3]) {
                grid.points.wraps = wraps;
            }
        }
        Ok(())
    }
}

/// Iterator of [`Grid::cells`]: a cell and the sorted points in it.
#[derive(Debug, Clone)]
pub struct Cells<'a> {
    table: &'a CellTable,
    /// Number of the next cell of the table.
    place: usize,
    /// The row it lies in, looked up once for all cells of the row.
    row: RowOfCells,
    slots: Range<usize>,
}

impl Iterator for Cells<'_> {
    type Item = (Cell, Range<usize>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        while !self.slots.is_empty() {
            let place = self.place;
            let points = self.table.points(place)?;
            self.place += 1;
            if points.is_empty() {
                continue;
            }
            let begin = points.start.max(self.slots.start);
            let end = points.end.min(self.slots.end);
            if begin < end {
                self.slots.start = end;
                return Some((self.table.cell(place, &mut self.row), begin..end));
            }
        }
        None
    }
}
