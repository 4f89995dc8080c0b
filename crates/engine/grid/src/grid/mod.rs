//! A point set sorted by cell, and the candidates of every cell.
//!
//! [`Grid::build`] computes the cell of every point, chooses the table by memory, sorts, and keeps
//! the number of boxes that each point lies outside of a periodic box. [`points`] holds the sorted
//! coordinates, [`sweep`] walks the candidates, [`levels`] sorts points by their radii, [`kept`]
//! chooses the points of some bricks, and [`parts`] assigns bricks to backends.
//!
//! **Invariant:** a build either succeeds or leaves the grid as it was: memory is reserved first.
//! Buffers are kept between builds, so the steady state of a simulation allocates nothing.
//!
//! # A build
//!
//! 1. Reserve room for the sorted coordinates and indices.
//! 2. Compute the smallest and largest cell from the bounds; no point has to be looked at for
//!    that.
//! 3. Choose the table: dense while the box has at most eight cells per point (or 65,536 cells, so
//!    that small sets never hash), hashed otherwise.
//! 4. Sort, which fills the table as it goes.
//! 5. In double precision compute the proxies that vectors compare, from the sorted positions.
//! 6. Where some point lies outside a periodic box, keep the boxes between each point and its
//!    image inside. Most simulations wrap coordinates, and then nothing is kept.
//!
//! # Levels
//!
//! Points whose radii are very different are sorted by radius first ([`Grid::build_levels`]). Such
//! a grid has a table for every level and none of all points; slots run through the levels. Only
//! [`Grid::cells`], [`Grid::sweep_from`] and [`Grid::for_each_run_from`] know of them.
//!
//! # Slots
//!
//! A sorted point is called by its slot, its rank in the sorted order. Loops over candidates work
//! on slots, because consecutive slots are consecutive in memory; results go to the caller's index
//! of the slot.

pub(crate) mod kept;
pub(crate) mod levels;
mod occupancy;
pub(crate) mod parts;
pub(crate) mod points;
pub(crate) mod sweep;
pub(crate) mod sweep_levels;
pub(crate) mod wraps;

use crate::{
    Bounds, BrickParts, Cell, CellsWithin, Error, ErrorKind, Lattice, Permutation, Positions,
    Radius, TableKind,
    error::reserve,
    input::positions::{Source, Visitor},
    memory,
    parallel::PoolLoops,
    sort::{
        self, Order, SortScratch, WideScratch,
        keys::{AnyWrapped, Double, FillKeys, Placed, Single},
        widest::widest,
    },
    table::{
        CellTable, DenseTable,
        cells::{CellBox, RowOfCells},
        hashed::{HashedTable, Packing, WideKey},
    },
};
use kept::Kept;
use points::{Slots, SortedPoints};
use rayon::prelude::*;
use std::{
    ops::Range,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};
use tracing::field::Empty;

/// Maximum number of cells per point of a dense cell table. A start takes four bytes, so the table
/// takes at most 32 bytes per point, twice the 16 bytes of a sorted point.
const CELLS_PER_POINT: usize = 8;
/// A dense cell table may always hold this many cells, so that small sets never hash.
const SMALL_TABLE: usize = 1 << 16;

/// Sorted points of one set and the table of their cells.
///
/// Buffers are kept between builds: the steady state allocates nothing.
///
/// Several sets of an engine have a grid each, all on one lattice, so that a cell means the same
/// place in all of them.
#[derive(Debug, Clone)]
pub struct Grid {
    /// The lattice of the last build.
    lattice: Lattice,
    /// Bounds of the points of the last build.
    bounds: Bounds,
    /// The sorted points.
    points: SortedPoints,
    /// The table of their cells.
    table: CellTable,
    /// For the sort by counting.
    scratch: SortScratch,
    /// For cells far apart.
    wide: WideScratches,
    /// Points the caller gave; a build of a part leaves some of them out.
    given: usize,
    /// For builds of a part.
    kept: Kept,
    /// See [`Grid::build_number`].
    build_number: u64,
    /// The points [by their radii](Self::build_levels); empty unless they were sorted so, and then
    /// there is no table of all.
    levels: Vec<Level>,
}

/// Builds of all grids so far.
static BUILDS: AtomicU64 = AtomicU64::new(0);

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
            build_number: 0,
            levels: Vec::new(),
        }
    }

    /// Sorts `positions`, whose checked bounds are `bounds`, on `lattice`. Points beyond the
    /// bounds, or with a coordinate that is not finite, end in some cell, where pairs of theirs may
    /// not be found.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`], and [`ErrorKind::Precision`] for positions in `f64` on a lattice
    /// of single precision; the grid then holds what it held before.
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
        self.levels.clear();
        self.given = points;
        self.bounds = bounds;
        self.lattice.clone_from(lattice);
        self.build_number = 1 + BUILDS.fetch_add(1, Ordering::Relaxed);
        span.record("cells", self.table_len());
        occupancy::record(&self.table);
        Ok(())
    }

    /// Sorts only those points, of positions within `bounds`, that lie in bricks of one part; they
    /// keep the indices that they have among all. For domains without periodic axes, in single
    /// precision.
    ///
    /// # Errors
    /// As [`build`](Self::build), and those of [`Bounds::of`].
    ///
    /// The chosen points are copied, sorted as a set of their own, and then given back the
    /// caller's indices. A part of a tenth of the points costs about a tenth of a build, plus one
    /// pass over all points.
    pub fn build_part(
        &mut self,
        positions: &[[f32; 3]],
        bounds: &Bounds,
        lattice: &Lattice,
        bricks: &BrickParts,
        part: u8,
    ) -> Result<(), Error> {
        if positions.is_empty() {
            return self.build(positions.into(), Bounds::EMPTY, lattice);
        }
        let _span = tracing::debug_span!("grid.part", points = positions.len()).entered();
        let mut kept = std::mem::take(&mut self.kept);
        let chosen = kept.choose(positions, bounds, lattice, bricks, part);
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

    /// A number that no other build in the process has; 0 before the first one. The sorted points
    /// are the same for as long as the number is.
    pub fn build_number(&self) -> u64 {
        self.build_number
    }

    /// Number of points that the caller gave: the length of arrays that go with them. More than
    /// there are sorted ones where only [a part](Self::build_part) was sorted.
    pub fn given(&self) -> usize {
        self.given
    }

    /// The same points on another lattice.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`]; the grid then holds what it held before.
    ///
    /// Used when the radius or the box changes while points stay: the positions are taken from the
    /// sorted points, in the caller's order.
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
    /// [`ErrorKind::OutOfMemory`].
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
        self.points.bytes()
            + self.table.bytes()
            + self.scratch_bytes()
            + self.kept.bytes()
            + self.levels_bytes()
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
    /// [`ErrorKind::OutOfMemory`].
    ///
    /// Applying it to all arrays of the set makes the next sort stream through memory.
    pub fn permutation(&self) -> Result<Permutation, Error> {
        let order = &self.points.index[..self.points.len];
        Ok(Permutation::from_order(memory::copied(
            order,
            "a permutation",
        )?))
    }

    /// Occupied cells that hold the sorted points `slots`, each with its share of them.
    ///
    /// A task asks for the cells of its own slots; a cell that is cut by the end of the task is
    /// given with its share.
    pub fn cells(&self, slots: Range<usize>) -> Cells<'_> {
        let mut cells = Cells {
            table: &self.table,
            place: 0,
            row: RowOfCells::default(),
            slots: 0..0,
            start: 0,
            end: slots.end,
            later: &self.levels,
        };
        if self.has_levels() {
            cells.begin_level(slots.start);
        } else {
            cells.begin(slots);
        }
        cells
    }

    /// Sorts by counting, with a table over all cells of the box.
    fn build_dense<P: Placed>(
        &mut self,
        source: P,
        len: usize,
        cells: CellBox,
        lattice: &Lattice,
    ) -> Result<(), Error>
    where
        SortedPoints: Slots<P::Stored>,
    {
        let count = cells.cells().unwrap_or(usize::MAX);
        let key = |index| cells.key(lattice.cell_at(source.place(index)));
        let order = Order::of(len, count, key);
        self.scratch.reserve::<P::Stored>(len, order)?;
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
            self.points.slots(len),
        );
        self.table = CellTable::Dense(DenseTable { cells, starts });
        Ok(())
    }

    /// Sorts by keys of type `K`, with a table of the occupied cells.
    fn build_hashed<K: WideKey, P: Placed>(
        &mut self,
        source: P,
        len: usize,
        packing: Packing,
        scratch_of: fn(&mut WideScratches) -> &mut WideScratch<K>,
        lattice: &Lattice,
    ) -> Result<(), Error>
    where
        SortedPoints: Slots<P::Stored>,
    {
        let scratch = scratch_of(&mut self.wide);
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
        let slots: sort::Sorted<'_, P::Stored> = self.points.slots(len);
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
    /// For keys of 64 bits.
    narrow: WideScratch<u64>,
    /// For keys of 128 bits.
    wide: WideScratch<u128>,
}

impl WideScratches {
    /// Bytes held.
    fn bytes(&self) -> usize {
        self.narrow.bytes() + self.wide.bytes()
    }
}

/// A build in progress, passed to the positions so that its loops are compiled for their layout.
struct Build<'a> {
    /// The grid that is built.
    grid: &'a mut Grid,
    /// Number of points.
    len: usize,
    /// Their bounds.
    bounds: Bounds,
    /// The lattice to sort on.
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
            return Err(ErrorKind::Precision.into());
        };
        let was_double = self.grid.points.double.is_some();
        let double = self.grid.points.double.get_or_insert_default();
        let built = (double.reserve(self.len)).and_then(|()| self.sort(Double { source, frame }));
        // After a failure the points are still those from before, which may be single.
        if built.is_err() && !was_double {
            self.grid.points.double = None;
        }
        built
    }
}

impl Build<'_> {
    /// Chooses the table, sorts the points, and counts the boxes that points lie outside.
    ///
    /// A dense table is chosen where it has few cells per point, or is small in any case; else only
    /// occupied cells are kept, under keys of 64 bits where the box of all cells allows it. Points
    /// that are all inside the box, as the bounds say or a look at every one, have no counts.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    fn sort<P: Placed>(&mut self, points: P) -> Result<(), Error>
    where
        SortedPoints: Slots<P::Stored>,
    {
        let Self {
            grid,
            len,
            bounds,
            lattice,
        } = self;
        let len = *len;
        if len == 0 {
            Slots::<P::Stored>::slots(&mut grid.points, 0);
            grid.points.wraps.clear();
            grid.table = CellTable::Dense(DenseTable::default());
            return Ok(());
        }
        let CellsWithin { low, high, inside } = lattice.cells_within(bounds);
        let cells = CellBox::new(low, high);
        let max = (CELLS_PER_POINT.saturating_mul(len)).clamp(SMALL_TABLE, 1 << 31);
        if cells.cells().is_some_and(|count| count <= max) {
            grid.build_dense(points, len, cells, lattice)?;
        } else {
            let packing = Packing::new(cells);
            if packing.bits() <= 64 {
                grid.build_hashed::<u64, _>(points, len, packing, |of| &mut of.narrow, lattice)?;
            } else {
                grid.build_hashed::<u128, _>(points, len, packing, |of| &mut of.wide, lattice)?;
            }
        }
        if let Some(frame) = lattice.frame() {
            grid.points.compute_proxies(frame);
        }
        // The corners of the bounds may lie outside a tilted box that holds all points.
        if inside || !any_wrapped(points, len, lattice) {
            grid.points.wraps.clear();
            return Ok(());
        }
        let mut wraps = std::mem::take(&mut grid.points.wraps);
        let sorted = &grid.points;
        let place = |slot: usize| match lattice.frame() {
            None => sorted.position(slot).map(f64::from),
            Some(_) => points.place(sorted.index[slot] as usize),
        };
        wraps.count(len, lattice, sorted.axes(), place)?;
        grid.points.wraps = wraps;
        Ok(())
    }
}

/// Returns true if any of `len` points lies outside of the periodic box.
///
/// Positions are read once, by vectors. In most simulations that is all that is done about boxes,
/// because coordinates are wrapped by the caller.
fn any_wrapped<P: Placed>(source: P, len: usize, lattice: &Lattice) -> bool {
    const CHUNK: usize = 1 << 13;
    let chunks = (0..len.div_ceil(CHUNK)).into_par_iter();
    let any = chunks.map(|chunk| {
        let range = chunk * CHUNK..((chunk + 1) * CHUNK).min(len);
        widest(AnyWrapped {
            source,
            range,
            lattice,
        })
    });
    any.combined(|| false, |a, b| a | b)
}

/// Points of similar radius, in cells of their own.
#[derive(Debug, Clone)]
struct Level {
    /// The points; the caller's index of them is that among the points of the level.
    grid: Grid,
    /// Slot of the first of them among all points.
    start: usize,
    /// No point has a larger radius.
    radius: Radius,
    /// Edge of its cells.
    edge: Radius,
    /// Lattices of the level's cells with the rows of some reaches, which ascend.
    reaches: Vec<(Radius, OnceLock<Lattice>)>,
}

/// Iterator of [`Grid::cells`]: a cell and the sorted points in it. Cells of different levels may
/// have the same coordinates.
#[derive(Debug, Clone)]
pub struct Cells<'a> {
    /// The table that is walked.
    table: &'a CellTable,
    /// Number of the next cell of the table.
    place: usize,
    /// The row it lies in, looked up once for all cells of the row.
    row: RowOfCells,
    /// Slots whose cells are yet to come, in the table.
    slots: Range<usize>,
    /// The slot that the table calls 0.
    start: usize,
    /// End of the slots, in all tables.
    end: usize,
    /// Levels that are yet to come.
    later: &'a [Level],
}

impl Cells<'_> {
    /// Begins with these points of the table.
    #[inline]
    fn begin(&mut self, slots: Range<usize>) {
        if !slots.is_empty() {
            self.place = self.table.find(slots.start);
        }
        self.slots = slots;
    }

    /// Begins with the next level that has points from slot `first` on; false if there is none.
    #[cold]
    fn begin_level(&mut self, first: usize) -> bool {
        while let Some((level, later)) = self.later.split_first() {
            self.later = later;
            let slots = level.slots();
            let own = slots.start.max(first)..slots.end.min(self.end);
            if !own.is_empty() {
                (self.table, self.start) = (&level.grid.table, slots.start);
                self.row = RowOfCells::default();
                self.begin(own.start - slots.start..own.end - slots.start);
                return true;
            }
        }
        false
    }
}

impl Iterator for Cells<'_> {
    type Item = (Cell, Range<usize>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
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
                    let cell = self.table.cell(place, &mut self.row);
                    return Some((cell, begin + self.start..end + self.start));
                }
            }
            if self.later.is_empty() || !self.begin_level(0) {
                return None;
            }
        }
    }
}
