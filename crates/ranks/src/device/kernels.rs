//! The kernels of places.cu, one typed function each, and the only unsafe code of this module.
//!
//! **What the functions rely on:** arrays are as long as the counts handed over with them say,
//! which [`fits`] checks where the counts are not those of the arrays themselves; indices were
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
        DeviceBuffer, DeviceEngine, DeviceValue, DeviceView, DeviceViewMut, Function, InUse,
        KernelLattice, Launch, Program, Queue,
    },
};
use std::sync::Arc;

/// Bytes of freed memory that a device keeps for the next arrays.
const KEPT_BYTES: u64 = 1 << 30;
/// The same as a share of its memory.
const KEPT_SHARE: u64 = 16;

/// Numbers that a survey finds, before those of lists.
pub(super) const FOUND: usize = SPECIAL + 1;
/// Of these, whether a point is not finite.
pub(super) const NOT_FINITE: usize = constants::NOT_FINITE as usize;
/// Of these, whether the class of a point is not known.
pub(super) const UNKNOWN: usize = constants::UNKNOWN as usize;
/// Of these, the number of points that are not of the interior.
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

    /// As the kernels take them; the table is held for a queue.
    fn on<'a>(&'a self, queue: &'a Queue) -> (Classes, InUse<'a>) {
        let (table, held) = self.table.device_ptr(queue);
        let classes = Classes {
            table,
            ..self.classes
        };
        (classes, held)
    }
}

/// The lists that classes are in, on the device: a bit for each, in `words` words a class.
pub(super) struct Masks {
    pub(super) masks: DeviceBuffer<u32>,
    pub(super) classes: usize,
    pub(super) words: usize,
    pub(super) lists: usize,
}

/// Arrays of a survey, kept for the next one.
pub(super) struct Survey {
    /// The class of every point of the last survey.
    of_points: DeviceBuffer<u32>,
    /// The set whose points these were, and their number.
    pub(super) of: Option<(usize, usize)>,
    tiles: DeviceBuffer<u32>,
    /// The [`FOUND`] numbers, where each list begins, and the end of the last.
    pub(super) found: DeviceBuffer<u32>,
    /// Index and class of points, twice as many numbers as there is room for points.
    pub(super) special: DeviceBuffer<u32>,
    /// Numbers of special points in tiles and lists.
    of_lists: DeviceBuffer<u32>,
    /// The places of all lists, and room for more; another array at every survey.
    pub(super) places: Arc<DeviceBuffer<u32>>,
    /// Those of some surveys, for the next ones: sets let go of theirs when they migrate.
    kept: Vec<Arc<DeviceBuffer<u32>>>,
    /// Surveys in a row that needed less than a quarter of the room.
    spared: u32,
}

/// Arrays of places that are kept: two of each of a few sets.
const KEPT_PLACES: usize = 8;
/// Number of surveys in a row with far too much room after which it becomes smaller.
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

    /// Number of special points that there is room for.
    pub(super) fn room(&self) -> usize {
        self.special.len() / 2
    }

    /// Makes room for that many special points.
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

    /// Gives up most of the room when much less has been used for a while: kernels go through all
    /// of it, and when ranks get their first points nearly all are special. Without memory for the
    /// smaller arrays the larger ones stay.
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

    /// An array for the places of a survey, as long as those of the last one.
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

    /// Takes the places that a survey has found.
    fn put_places(&mut self, places: DeviceBuffer<u32>) {
        self.places = Arc::new(places);
        if self.kept.len() == KEPT_PLACES {
            self.kept.remove(0);
        }
        self.kept.push(self.places.clone());
    }

    /// Makes room for what is found of that many lists.
    pub(super) fn fit_lists(&mut self, engine: &DeviceEngine, lists: usize) -> Result<(), Refusal> {
        if self.found.len() != FOUND + lists + 1 {
            self.found = zeros(engine, FOUND + lists + 1)?;
        }
        Ok(())
    }

    /// Whether the last survey was one of `before` points of a set, and has room for those that
    /// there are now.
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

/// Lets the pool of the device keep some of the memory that is freed, beside what is in use. A step
/// makes arrays for halos and for points that have moved, and a pool that gives all back at every
/// wait takes longer for these than for the rest of an exchange. To be called again when more is in
/// use: what a pool may hold counts that too.
pub(super) fn keep_freed_memory(engine: &DeviceEngine) -> Result<(), Refusal> {
    let kept = KEPT_BYTES.min(engine.device().memory as u64 / KEPT_SHARE);
    let set = engine.stream().context().keep_freed_memory(kept);
    set.map_err(|error| super::staging::driver("keeping freed memory", error))
}

/// Lets other GPUs read the memory of this one; returns false if one of them cannot.
pub(super) fn open_to_peers(engine: &DeviceEngine, gpus: &[u64]) -> Result<bool, Refusal> {
    let opened = engine.stream().context().open_memory_to(gpus);
    opened.map_err(|error| super::staging::driver("opening memory to other GPUs", error))
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

/// Words of points side by side, with a stride.
pub(super) struct Rows<'a> {
    pub(super) to: &'a mut DeviceBuffer<u32>,
    /// The first word that is written.
    pub(super) first: usize,
    pub(super) stride: usize,
}

/// The order of points after a migration.
pub(super) struct Refilled<'a> {
    /// Places of points that have left, ascending.
    pub(super) left: DeviceView<'a, u32>,
    /// Points before, and those that came.
    pub(super) before: usize,
    pub(super) arrivals: usize,
}

/// The kernels, loaded.
pub(super) struct Kernels {
    pub(super) queue: Queue,
    survey: Function,
    survey_changed: Function,
    survey_count: Function,
    survey_scan: Function,
    survey_write: Function,
    split_count: Function,
    split_write: Function,
    gather: Function,
    pub(super) gather_rows: Function,
    pub(super) refill: Function,
    combine: Function,
    add_counts: Function,
}

impl Kernels {
    pub(super) fn load(engine: &DeviceEngine) -> Result<Self, Refusal> {
        let module = engine.load(&Program::from(&PLACES))?;
        let kernel = |name| module.function(name).map_err(Refusal::from);
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

    /// The words of an array as numbers.
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

    /// Classes, extent and number of special points of positions, three numbers each.
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
        let mut launch = self.queue.launch_builder(&self.survey);
        launch.arg(positions).arg(&count).arg(&classes.lattice);
        launch.arg(&of).arg(&mut survey.of_points);
        launch.arg(&mut survey.tiles).arg(&mut survey.found);
        // SAFETY: the arguments are those that places.cu declares; there are three positions a
        // point, and `fit` has made room for all points and tiles.
        unsafe { self.start("survey", &mut launch, tiles, THREADS) }?;
        let mut special = survey.found.slice_mut(SPECIAL..);
        self.scan(&mut survey.tiles, tiles, &mut special)
    }

    /// The same of the points after a migration, when those before have been surveyed: only points
    /// at other places are looked at. The extent stays that of before.
    pub(super) fn survey_again(
        &self,
        positions: &DeviceView<'_, f32>,
        order: &Refilled<'_>,
        classes: &DeviceClasses,
        survey: &mut Survey,
    ) -> Result<(), Refusal> {
        let points = positions.len() / 3;
        fits("classes of points", survey.of_points.len(), points)?;
        fits("counts of tiles", survey.tiles.len(), tiles(points))?;
        let [count, gone, before] = [points, order.left.len(), order.before].map(|n| n as u32);
        let changed = gone.max(order.arrivals as u32);
        let (of, _held) = classes.on(&self.queue);
        let mut launch = self.queue.launch_builder(&self.survey_changed);
        launch.arg(positions).arg(&count).arg(&classes.lattice);
        launch.arg(&of).arg(&order.left).arg(&gone).arg(&before);
        launch.arg(&changed).arg(&mut survey.of_points);
        launch.arg(&mut survey.found);
        // SAFETY: the arguments are those that places.cu declares; there are as many classes as
        // points, and nothing is written behind these.
        unsafe { self.each("survey_changed", &mut launch, changed.max(1) as usize) }?;
        let tiles = tiles(points) as u32;
        let mut launch = self.queue.launch_builder(&self.survey_count);
        launch.arg(&survey.of_points).arg(&count);
        launch.arg(&mut survey.tiles).arg(&mut survey.found);
        // SAFETY: as above, with a count for every tile.
        unsafe { self.start("survey_count", &mut launch, tiles, THREADS) }?;
        let mut special = survey.found.slice_mut(SPECIAL..);
        self.scan(&mut survey.tiles, tiles, &mut special)
    }

    /// Turns the counts of tiles into those before them, and writes the sum of all.
    fn scan(
        &self,
        tiles: &mut DeviceBuffer<u32>,
        count: u32,
        total: &mut DeviceViewMut<'_, u32>,
    ) -> Result<(), Refusal> {
        fits("counts of tiles", tiles.len(), count as usize)?;
        fits("the sum of tiles", total.len(), 1)?;
        let mut launch = self.queue.launch_builder(&self.survey_scan);
        launch.arg(tiles).arg(&count).arg(total);
        // SAFETY: the arguments are those that places.cu declares, and there are as many counts.
        unsafe { self.start("survey_scan", &mut launch, 1, SCAN_THREADS) }
    }

    /// Writes index and class of the special points of the last survey, of `points` points, as far
    /// as there is room.
    pub(super) fn write_special(&self, points: usize, survey: &mut Survey) -> Result<(), Refusal> {
        fits("classes of points", survey.of_points.len(), points)?;
        let (count, room) = (points as u32, survey.room() as u32);
        let mut launch = self.queue.launch_builder(&self.survey_write);
        launch.arg(&survey.of_points).arg(&count);
        launch.arg(&survey.tiles).arg(&room);
        launch.arg(&mut survey.special);
        let tiles = tiles(points) as u32;
        // SAFETY: the arguments are those that places.cu declares; nothing is written behind the
        // room, and classes and tiles are those of the survey before.
        unsafe { self.start("survey_write", &mut launch, tiles, THREADS) }
    }

    /// Splits the special points, as far as there is room for their lists, into a new array, and
    /// writes where lists begin behind what the survey found.
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
        let mut launch = self.queue.launch_builder(&self.split_count);
        launch
            .arg(&survey.special)
            .arg(&mut number)
            .arg(&room)
            .arg(&of);
        launch.arg(&tiles).arg(&mut survey.of_lists);
        // SAFETY: the arguments are those that places.cu declares; there is a bit for each list of
        // every class, and room for a count of every tile and list.
        unsafe { self.start("split_count", &mut launch, tiles * lists, THREADS) }?;
        let mut end = begins.slice_mut(lists as usize..);
        self.scan(&mut survey.of_lists, tiles * lists, &mut end)?;
        let out_room = places.len() as u32;
        let mut launch = self.queue.launch_builder(&self.split_write);
        launch
            .arg(&survey.special)
            .arg(&mut number)
            .arg(&room)
            .arg(&of);
        launch.arg(&tiles).arg(&survey.of_lists).arg(&out_room);
        launch.arg(&mut places).arg(&mut begins);
        // SAFETY: as above; nothing is written behind the room, and a beginning is written for each
        // list.
        unsafe { self.start("split_write", &mut launch, tiles * lists, THREADS) }?;
        survey.put_places(places);
        Ok(())
    }

    /// Puts the first `words` of the `stride` words of each of the points at `indices`, which
    /// `from` has, side by side.
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
        let mut launch = self.queue.launch_builder(&self.gather);
        launch.arg(from).arg(&stride).arg(&read).arg(indices);
        launch.arg(&points).arg(&mut to).arg(&to_stride);
        // SAFETY: the arguments are those that places.cu declares, and the ends were checked;
        // callers have seen that `from` has `words` of `stride` words of every point of the set,
        // whose survey found the indices, or which they have numbered themselves.
        unsafe { self.each("gather", &mut launch, count * words) }
    }

    /// Combines results of points at the border with those of all.
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
        let mut launch = self.queue.launch_builder(&self.combine);
        launch.arg(border).arg(&points).arg(found);
        launch.arg(&numbers).arg(&how).arg(results);
        // SAFETY: the arguments are those that places.cu declares; the engine has seen that there
        // are `outputs` results for every point of the set, whose survey found the border.
        unsafe { self.each("combine", &mut launch, count * outputs) }
    }

    /// The same for counts.
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
        let mut launch = self.queue.launch_builder(&self.add_counts);
        launch.arg(border).arg(&points).arg(found).arg(counts);
        // SAFETY: as above, with one count for every point.
        unsafe { self.each("add_counts", &mut launch, count) }
    }

    /// Starts a kernel with a thread for each of `items`.
    ///
    /// # Safety
    /// As [`Queue::launch`].
    pub(super) unsafe fn each(
        &self,
        kernel: &str,
        launch: &mut Launch<'_>,
        items: usize,
    ) -> Result<(), Refusal> {
        let blocks = items.div_ceil(THREADS as usize) as u32;
        // SAFETY: the caller guarantees that the arguments fit the kernel.
        unsafe { self.start(kernel, launch, blocks, THREADS) }
    }

    /// # Safety
    /// As [`Queue::launch`].
    unsafe fn start(
        &self,
        kernel: &str,
        launch: &mut Launch<'_>,
        blocks: u32,
        threads: u32,
    ) -> Result<(), Refusal> {
        // SAFETY: the caller guarantees that the arguments fit the kernel.
        Ok(unsafe { self.queue.launch(kernel, launch, blocks, threads) }?)
    }
}
