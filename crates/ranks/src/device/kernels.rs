//! The kernels of places.cu, one typed function each.
//!
//! **What the functions rely on:** arrays are as long as the counts passed with them say, which
//! [`fits`] checks where the counts are not the lengths of the arrays themselves; indices were
//! found by a survey of the same points; and all work is on the engine's stream.

use super::{
    classes::ClassTable,
    constants::{self, ADD, KEEP_LARGER, KEEP_SMALLER, SCAN_THREADS, THREADS, TILE},
    source::{Classes, Lists, PLACES},
    staging::zeros,
};
use crate::error::Refusal;
use nearfield::{
    Reduce,
    device::{
        DeviceBuffer, DeviceEngine, DeviceValue, DeviceView, DeviceViewMut,
        copies::Queue,
        interop::InUse,
        programs::{KernelLattice, LaunchShape, Program, UserKernel},
    },
};
use std::sync::Arc;

/// Numbers that a survey writes before the beginnings of lists.
pub(super) const FOUND: usize = SPECIAL + 1;
/// The one of these that is not 0 if a point is not finite.
pub(super) const NOT_FINITE: usize = constants::NOT_FINITE as usize;
/// The one of these that is not 0 if the class of a point is not known.
pub(super) const UNKNOWN: usize = constants::UNKNOWN as usize;
/// The one of these that counts points outside the interior.
pub(super) const SPECIAL: usize = constants::SPECIAL as usize;

/// A table of classes on the device.
pub(super) struct DeviceClasses {
    classes: Classes,
    table: DeviceBuffer<u32>,
    lattice: KernelLattice,
}

impl DeviceClasses {
    /// Brings a table to the device, for points in the cells of `lattice`.
    pub(super) fn new(
        engine: &DeviceEngine,
        table: &ClassTable,
        lattice: &nearfield_grid::Lattice,
    ) -> Result<Self, Refusal> {
        Ok(Self {
            classes: Classes {
                table: 0,
                low: table.low,
                dims: table.dims,
                shift: table.shift,
            },
            table: (engine.queue()).array("classes of cells", &table.classes)?,
            lattice: KernelLattice::new(lattice),
        })
    }

    /// The struct that kernels take, and a guard that keeps the table in use on a queue.
    fn on<'a>(&'a self, queue: &'a Queue) -> (Classes, InUse<'a>) {
        let (table, held) = self.table.device_ptr(queue);
        let classes = Classes {
            table,
            ..self.classes
        };
        (classes, held)
    }
}

/// The lists of every class, on the device: a bit per list, in `words` words per class.
pub(super) struct Masks {
    pub(super) masks: DeviceBuffer<u32>,
    pub(super) classes: usize,
    pub(super) words: usize,
    pub(super) lists: usize,
}

/// The arrays of surveys, kept from one to the next.
pub(super) struct Survey {
    /// The class of every point of the last survey.
    of_points: DeviceBuffer<u32>,
    /// The set that was surveyed last, and the number of its points.
    pub(super) of: Option<(usize, usize)>,
    tiles: DeviceBuffer<u32>,
    /// The [`FOUND`] numbers, the beginning of each list, and the end of the last.
    pub(super) found: DeviceBuffer<u32>,
    /// Index and class of special points: two numbers for each point that there is room for.
    pub(super) special: DeviceBuffer<u32>,
    /// Number of special points by list and tile.
    of_lists: DeviceBuffer<u32>,
    /// The places of all lists, with room for more. Every survey writes another array.
    pub(super) places: Arc<DeviceBuffer<u32>>,
    /// Arrays of earlier surveys, for the next ones: a set releases its array when it migrates.
    kept: Vec<Arc<DeviceBuffer<u32>>>,
    /// Consecutive surveys that needed less than a quarter of the room.
    spared: u32,
}

/// Maximum number of arrays of places that are kept: two for each of a few sets.
const KEPT_PLACES: usize = 8;
/// Number of consecutive surveys with too much room after which the room shrinks.
const SPARED: u32 = 8;

impl Survey {
    pub(super) fn new(engine: &DeviceEngine) -> Result<Self, Refusal> {
        Ok(Self {
            of_points: zeros(engine, 1)?,
            of: None,
            tiles: zeros(engine, 1)?,
            found: zeros(engine, FOUND + 1)?,
            special: zeros(engine, 2)?,
            of_lists: zeros(engine, 1)?,
            places: Arc::new(zeros(engine, 1)?),
            kept: Vec::new(),
            spared: 0,
        })
    }

    /// Maximum number of special points.
    pub(super) fn room(&self) -> usize {
        self.special.len() / 2
    }

    /// Makes room for `special` special points.
    pub(super) fn make_room(
        &mut self,
        engine: &DeviceEngine,
        special: usize,
    ) -> Result<(), Refusal> {
        if self.room() < special {
            self.special = zeros(engine, 2 * (special + special / 4))?;
        }
        Ok(())
    }

    /// Shrinks the room if much less was used for a while: kernels go through all of it, and nearly
    /// all points are special when ranks get their first ones. If memory is short for the smaller
    /// arrays, the larger ones stay.
    pub(super) fn suit(&mut self, engine: &DeviceEngine, special: usize, listed: usize) {
        let spare = |room: usize, used: usize| room > 4 * used + 4 * TILE as usize;
        let [points, places] = [
            spare(self.room(), special),
            spare(self.places.len(), listed),
        ];
        // Sets take turns, and may need very different room.
        self.spared = if points || places { self.spared + 1 } else { 0 };
        if self.spared < SPARED {
            return;
        }
        self.spared = 0;
        if points && let Ok(smaller) = zeros(engine, 2 * (2 * special).max(1)) {
            self.special = smaller;
        }
        if places && let Ok(smaller) = zeros(engine, (2 * listed).max(1)) {
            self.places = Arc::new(smaller);
        }
    }

    /// An array for the places of a survey, as long as the last one.
    fn take_places(&mut self, engine: &DeviceEngine) -> Result<DeviceBuffer<u32>, Refusal> {
        let len = self.places.len();
        self.kept.retain(|places| places.len() == len);
        let free = |places: &Arc<DeviceBuffer<u32>>| Arc::strong_count(places) == 1;
        let free = self.kept.iter().position(free);
        match free.map(|at| Arc::try_unwrap(self.kept.swap_remove(at))) {
            Some(Ok(places)) => Ok(places),
            _ => zeros(engine, len),
        }
    }

    /// Takes the places that a survey has written.
    fn put_places(&mut self, places: DeviceBuffer<u32>) {
        self.places = Arc::new(places);
        if self.kept.len() == KEPT_PLACES {
            self.kept.remove(0);
        }
        self.kept.push(self.places.clone());
    }

    /// Makes room for the beginnings of `lists` lists.
    pub(super) fn fit_lists(&mut self, engine: &DeviceEngine, lists: usize) -> Result<(), Refusal> {
        if self.found.len() != FOUND + lists + 1 {
            self.found = zeros(engine, FOUND + lists + 1)?;
        }
        Ok(())
    }

    /// Returns true if the last survey was of `before` points of this set and has room for `now`
    /// points.
    pub(super) fn knows(&self, set: usize, before: usize, now: usize) -> bool {
        self.of == Some((set, before)) && now <= self.of_points.len()
    }

    /// Makes room for `points` points.
    fn fit(&mut self, engine: &DeviceEngine, points: usize) -> Result<(), Refusal> {
        if self.of_points.len() < points {
            self.of_points = zeros(engine, points + points / 16)?;
        }
        let tiles = tiles(self.of_points.len());
        if self.tiles.len() < tiles {
            self.tiles = zeros(engine, tiles)?;
        }
        Ok(())
    }
}

fn tiles(points: usize) -> usize {
    points.div_ceil(TILE as usize).max(1)
}

/// Refuses an array that is too short for what a kernel reads or writes.
pub(super) fn fits(what: &str, found: usize, expected: usize) -> Result<(), Refusal> {
    if found >= expected {
        Ok(())
    } else {
        Err(Refusal::new(format!(
            "{what}: {found} numbers, and {expected} are needed"
        )))
    }
}

/// An array in which the words of each point have a row with a stride.
pub(super) struct Rows<'a> {
    pub(super) to: &'a mut DeviceBuffer<u32>,
    /// The first word that is written.
    pub(super) first: usize,
    pub(super) stride: usize,
}

/// The order of points after a migration: arriving points fill the places of those that left.
pub(super) struct Refill<'a> {
    /// Places of points that have left, ascending.
    pub(super) left: DeviceView<'a, u32>,
    /// Number of points before, and of those that arrived.
    pub(super) before: usize,
    pub(super) arrivals: usize,
}

/// The loaded kernels of places.cu, on the stream of one engine.
pub(super) struct Kernels {
    pub(super) queue: Queue,
    survey: UserKernel,
    survey_changed: UserKernel,
    survey_count: UserKernel,
    survey_scan: UserKernel,
    survey_write: UserKernel,
    split_count: UserKernel,
    split_write: UserKernel,
    gather: UserKernel,
    pub(super) gather_rows: UserKernel,
    pub(super) refill: UserKernel,
    combine: UserKernel,
    add_counts: UserKernel,
}

impl Kernels {
    pub(super) fn load(engine: &DeviceEngine) -> Result<Self, Refusal> {
        let module = engine.load(&Program::from(&PLACES))?;
        let kernel = |name| UserKernel::of(&module, name, engine.queue()).map_err(Refusal::from);
        Ok(Self {
            queue: engine.queue().clone(),
            survey: kernel("survey")?,
            survey_changed: kernel("survey_changed")?,
            survey_count: kernel("survey_count")?,
            survey_scan: kernel("survey_scan")?,
            survey_write: kernel("survey_write")?,
            split_count: kernel("split_count")?,
            split_write: kernel("split_write")?,
            gather: kernel("gather")?,
            gather_rows: kernel("gather_rows")?,
            refill: kernel("refill")?,
            combine: kernel("combine")?,
            add_counts: kernel("add_counts")?,
        })
    }

    /// The words of an array as `f32` numbers.
    pub(super) fn as_numbers<'a>(
        &self,
        words: &'a DeviceBuffer<u32>,
        numbers: usize,
    ) -> Result<DeviceView<'a, f32>, Refusal> {
        fits("numbers from other ranks", words.len(), numbers)?;
        // SAFETY: all bits of a word are those of a number, of the same size.
        let view = unsafe { words.transmute::<f32>(numbers) };
        view.ok_or_else(|| Refusal::new("numbers from other ranks: they are too few"))
    }

    /// Computes classes, extent and number of special points of positions, three numbers each.
    pub(super) fn survey(
        &self,
        engine: &DeviceEngine,
        positions: &DeviceView<'_, f32>,
        classes: &DeviceClasses,
        survey: &mut Survey,
    ) -> Result<(), Refusal> {
        let points = positions.len() / 3;
        survey.fit(engine, points)?;
        let zeroed = self.queue.memset_zeros(&mut survey.found);
        zeroed.map_err(|error| super::staging::driver("clearing a survey", error))?;
        let (count, tiles) = (points as u32, tiles(points) as u32);
        let (of, _held) = classes.on(&self.queue);
        let arguments = (
            positions,
            &count,
            &classes.lattice,
            &of,
            &mut survey.of_points,
            &mut survey.tiles,
            &mut survey.found,
        );
        // SAFETY: the arguments are those that places.cu declares; there are three positions a
        // point, and `fit` has made room for all points and tiles.
        unsafe {
            self.survey
                .start(LaunchShape::of(tiles, THREADS), arguments)
        }?;
        let mut special = survey.found.slice_mut(SPECIAL..);
        self.scan(&mut survey.tiles, tiles, &mut special)
    }

    /// The same after a migration, if the points before it were surveyed: only the points at
    /// changed places are classified, and the extent is not updated.
    pub(super) fn survey_again(
        &self,
        positions: &DeviceView<'_, f32>,
        order: &Refill<'_>,
        classes: &DeviceClasses,
        survey: &mut Survey,
    ) -> Result<(), Refusal> {
        let points = positions.len() / 3;
        fits("classes of points", survey.of_points.len(), points)?;
        fits("counts of tiles", survey.tiles.len(), tiles(points))?;
        let [count, gone, before] = [points, order.left.len(), order.before].map(|n| n as u32);
        let changed = gone.max(order.arrivals as u32);
        let (of, _held) = classes.on(&self.queue);
        let arguments = (
            positions,
            &count,
            &classes.lattice,
            &of,
            &order.left,
            &gone,
            &before,
            &changed,
            &mut survey.of_points,
            &mut survey.found,
        );
        // SAFETY: the arguments are those that places.cu declares; there are as many classes as
        // points, and nothing is written behind these.
        unsafe {
            self.survey_changed
                .start(LaunchShape::covering(changed as usize, THREADS), arguments)
        }?;
        let tiles = tiles(points) as u32;
        let arguments = (
            &survey.of_points,
            &count,
            &mut survey.tiles,
            &mut survey.found,
        );
        // SAFETY: as above, with a count for every tile.
        unsafe {
            self.survey_count
                .start(LaunchShape::of(tiles, THREADS), arguments)
        }?;
        let mut special = survey.found.slice_mut(SPECIAL..);
        self.scan(&mut survey.tiles, tiles, &mut special)
    }

    /// Replaces the counts of tiles by their exclusive prefix sums, and writes the total.
    fn scan(
        &self,
        tiles: &mut DeviceBuffer<u32>,
        count: u32,
        total: &mut DeviceViewMut<'_, u32>,
    ) -> Result<(), Refusal> {
        fits("counts of tiles", tiles.len(), count as usize)?;
        fits("the sum of tiles", total.len(), 1)?;
        let arguments = (tiles, &count, total);
        // SAFETY: the arguments are those that places.cu declares, and there are as many counts.
        Ok(unsafe {
            self.survey_scan
                .start(LaunchShape::of(1, SCAN_THREADS), arguments)
        }?)
    }

    /// Writes index and class of the special points of the last survey, of `points` points, up to
    /// the room for them.
    pub(super) fn write_special(&self, points: usize, survey: &mut Survey) -> Result<(), Refusal> {
        fits("classes of points", survey.of_points.len(), points)?;
        let (count, room) = (points as u32, survey.room() as u32);
        let tiles = tiles(points) as u32;
        let arguments = (
            &survey.of_points,
            &count,
            &survey.tiles,
            &room,
            &mut survey.special,
        );
        // SAFETY: the arguments are those that places.cu declares; nothing is written behind the
        // room, and classes and tiles are those of the survey before.
        Ok(unsafe {
            self.survey_write
                .start(LaunchShape::of(tiles, THREADS), arguments)
        }?)
    }

    /// Splits the special points into lists, up to the room for them, in a new array, and writes
    /// the beginnings of the lists after the numbers of the survey.
    pub(super) fn split(
        &self,
        engine: &DeviceEngine,
        of: &Masks,
        survey: &mut Survey,
    ) -> Result<(), Refusal> {
        let (room, lists) = (survey.room() as u32, of.lists as u32);
        survey.fit_lists(engine, of.lists)?;
        fits("lists of classes", of.masks.len(), of.classes * of.words)?;
        let tiles = tiles(survey.room()) as u32;
        if survey.of_lists.len() < tiles as usize * of.lists {
            survey.of_lists = zeros(engine, tiles as usize * of.lists)?;
        }
        let (masks, _held) = of.masks.device_ptr(&self.queue);
        let of = Lists {
            masks,
            classes: of.classes as u32,
            words: of.words as u32,
        };
        let mut places = survey.take_places(engine)?;
        let (mut found, mut begins) = survey.found.split_at_mut(FOUND);
        let mut number = found.slice_mut(SPECIAL..);
        let arguments = (
            &survey.special,
            &mut number,
            &room,
            &of,
            &tiles,
            &mut survey.of_lists,
        );
        // SAFETY: the arguments are those that places.cu declares; there is a bit for each list of
        // every class, and room for a count of every tile and list.
        unsafe {
            self.split_count
                .start(LaunchShape::of(tiles * lists, THREADS), arguments)
        }?;
        let mut end = begins.slice_mut(lists as usize..);
        self.scan(&mut survey.of_lists, tiles * lists, &mut end)?;
        let out_room = places.len() as u32;
        let arguments = (
            &survey.special,
            &mut number,
            &room,
            &of,
            &tiles,
            &survey.of_lists,
            &out_room,
            &mut places,
            &mut begins,
        );
        // SAFETY: as above; nothing is written behind the room, and a beginning is written for each
        // list.
        unsafe {
            self.split_write
                .start(LaunchShape::of(tiles * lists, THREADS), arguments)
        }?;
        survey.put_places(places);
        Ok(())
    }

    /// Gathers the first `words` of the `stride` words that `from` has of each point, for the
    /// points at `indices`.
    pub(super) fn gather<T: DeviceValue>(
        &self,
        from: &DeviceView<'_, T>,
        [stride, words]: [usize; 2],
        indices: &DeviceView<'_, u32>,
        rows: Rows<'_>,
    ) -> Result<(), Refusal> {
        let count = indices.len();
        if count == 0 || words == 0 {
            return Ok(());
        }
        let end = rows.first + (count - 1) * rows.stride + words;
        fits("values that leave a rank", rows.to.len(), end)?;
        let [stride, read, points] = [stride, words, count].map(|number| number as u32);
        let mut to = rows.to.slice_mut(rows.first..);
        let to_stride = rows.stride as u32;
        let arguments = (from, &stride, &read, indices, &points, &mut to, &to_stride);
        // SAFETY: the arguments are those that places.cu declares, and the ends were checked;
        // callers have seen that `from` has `words` of `stride` words of every point of the set,
        // whose survey found the indices, or which they have numbered themselves.
        Ok(unsafe {
            self.gather
                .start(LaunchShape::covering(count * words, THREADS), arguments)
        }?)
    }

    /// Gathers all `words` words that `from` has of each point, for the points at `indices`.
    pub(super) fn gather_whole<T: DeviceValue>(
        &self,
        from: &DeviceView<'_, T>,
        words: usize,
        indices: &DeviceView<'_, u32>,
        to: &mut DeviceBuffer<u32>,
    ) -> Result<(), Refusal> {
        let rows = Rows {
            to,
            first: 0,
            stride: words,
        };
        self.gather(from, [words; 2], indices, rows)
    }

    /// Combines results of points at the border with the results of all points.
    pub(super) fn combine(
        &self,
        border: &DeviceView<'_, u32>,
        found: &DeviceBuffer<f32>,
        (outputs, reduce): (usize, Reduce),
        results: &mut DeviceViewMut<'_, f32>,
    ) -> Result<(), Refusal> {
        let count = border.len();
        if count == 0 {
            return Ok(());
        }
        fits("results of the border", found.len(), count * outputs)?;
        let how = match reduce {
            Reduce::Sum => ADD,
            Reduce::Min => KEEP_SMALLER,
            Reduce::Max => KEEP_LARGER,
        };
        let (points, numbers) = (count as u32, outputs as u32);
        let arguments = (border, &points, found, &numbers, &how, results);
        // SAFETY: the arguments are those that places.cu declares; the engine has seen that there
        // are `outputs` results for every point of the set, whose survey found the border.
        Ok(unsafe {
            self.combine
                .start(LaunchShape::covering(count * outputs, THREADS), arguments)
        }?)
    }

    /// Adds counts of points at the border to the counts of all points.
    pub(super) fn add_counts(
        &self,
        border: &DeviceView<'_, u32>,
        found: &DeviceBuffer<u32>,
        counts: &mut DeviceViewMut<'_, u32>,
    ) -> Result<(), Refusal> {
        let count = border.len();
        if count == 0 {
            return Ok(());
        }
        fits("counts of the border", found.len(), count)?;
        let points = count as u32;
        let arguments = (border, &points, found, counts);
        // SAFETY: as above, with one count for every point.
        Ok(unsafe {
            self.add_counts
                .start(LaunchShape::covering(count, THREADS), arguments)
        }?)
    }
}
