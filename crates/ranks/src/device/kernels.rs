//! The kernels of places.cu, one typed function each, and the only unsafe code of this module.
//!
//! **What the functions rely on:** arrays are as long as the counts handed over with them say,
//! which [`fits`] checks where the counts are not those of the arrays themselves; indices were
//! found by a survey of the same points; and all work is on the engine's stream.

use super::{classes::ClassTable, staging::zeros};
use crate::error::Refusal;
use nearfield::{
    Reduce,
    device::{
        DeviceEngine, KernelLattice, Program, Queue,
        cudarc::driver::{
            CudaFunction, CudaSlice, CudaView, CudaViewMut, DevicePtr, DeviceRepr, LaunchArgs,
            PushKernelArg, result,
            sys::{CUdevice_attribute, CUmemPool_attribute},
        },
    },
};
use nearfield_kernels::constants::{
    ADD, GRID_THREADS, KEEP_LARGER, KEEP_SMALLER, SETTLE_THREADS, SHARE_TILE,
};

/// Bytes of freed memory that a device keeps for the next arrays.
const KEPT_BYTES: u64 = 1 << 30;
/// The same as a share of its memory.
const KEPT_SHARE: u64 = 16;

/// Numbers that a survey finds.
pub(super) const FOUND: usize = 8;
/// Of these, whether a point is not finite.
pub(super) const NOT_FINITE: usize = 6;
/// Of these, the number of points that are not of the interior.
pub(super) const SPECIAL: usize = 7;

/// `Classes` of places.cu.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Classes {
    table: u64,
    low: [i64; 3],
    dims: [u32; 3],
    shift: u32,
}

// SAFETY: plain numbers in the order that places.cu declares.
unsafe impl DeviceRepr for Classes {}

/// A table of classes on the device.
pub(super) struct DeviceClasses {
    classes: Classes,
    table: CudaSlice<u32>,
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
}

/// A table of classes on both sides.
pub(super) struct Table {
    pub(super) host: ClassTable,
    pub(super) device: DeviceClasses,
}

/// Arrays of a survey, kept for the next one.
pub(super) struct Survey {
    of_points: CudaSlice<u32>,
    tiles: CudaSlice<u32>,
    pub(super) found: CudaSlice<u32>,
    /// Index and class of points, twice as many numbers as there is room for points.
    pub(super) special: CudaSlice<u32>,
}

impl Survey {
    pub(super) fn new(engine: &DeviceEngine) -> Result<Self, Refusal> {
        Ok(Self {
            of_points: zeros(engine, 1)?,
            tiles: zeros(engine, 1)?,
            found: zeros(engine, FOUND)?,
            special: zeros(engine, 1)?,
        })
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
    points.div_ceil(SHARE_TILE as usize).max(1)
}

/// Lets the pool of the device keep some of the memory that is freed. A step makes small arrays for
/// halos, and a pool that gives all back at every wait takes longer for these than for the rest of
/// an exchange.
pub(super) fn keep_freed_memory(engine: &DeviceEngine) -> Result<(), Refusal> {
    let context = engine.stream().context();
    let has_pools =
        context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
    if !has_pools.is_ok_and(|has| has != 0) {
        return Ok(());
    }
    let threshold = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    let mut kept = 0u64;
    let value = (&raw mut kept).cast();
    // SAFETY: the context has its device, and the attribute is a number of 64 bits.
    let set = unsafe {
        result::device::get_mem_pool(context.cu_device()).and_then(|pool| {
            result::mem_pool::get_attribute(pool, threshold, value)?;
            kept = kept.max(KEPT_BYTES.min(engine.device().memory as u64 / KEPT_SHARE));
            result::mem_pool::set_attribute(pool, threshold, value)
        })
    };
    set.map_err(|error| super::staging::driver("keeping freed memory", error))
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
    pub(super) to: &'a mut CudaSlice<u32>,
    /// The first word that is written.
    pub(super) first: usize,
    pub(super) stride: usize,
}

/// The points that a join brings together.
#[derive(Clone, Copy)]
pub(super) struct Joined<'a> {
    /// Places of points that have left, ascending, each less the number of those before it.
    pub(super) left: &'a CudaSlice<u32>,
    pub(super) gone: usize,
    /// Points that stay, and all of them.
    pub(super) stay: usize,
    pub(super) now: usize,
}

/// Words of the points that came, with a stride.
#[derive(Clone, Copy)]
pub(super) struct Came<'a> {
    pub(super) words: &'a CudaSlice<u32>,
    pub(super) first: usize,
    pub(super) stride: usize,
}

/// The kernels, loaded.
pub(super) struct Kernels {
    queue: Queue,
    survey: CudaFunction,
    survey_scan: CudaFunction,
    survey_write: CudaFunction,
    gather: CudaFunction,
    join: CudaFunction,
    combine: CudaFunction,
    add_counts: CudaFunction,
}

impl Kernels {
    pub(super) fn load(engine: &DeviceEngine) -> Result<Self, Refusal> {
        let module = engine.load(&Program::from(&nearfield_kernels::PLACES))?;
        let kernel = |name| module.function(name).map_err(Refusal::from);
        Ok(Self {
            queue: engine.queue().clone(),
            survey: kernel("survey")?,
            survey_scan: kernel("survey_scan")?,
            survey_write: kernel("survey_write")?,
            gather: kernel("gather")?,
            join: kernel("join")?,
            combine: kernel("combine")?,
            add_counts: kernel("add_counts")?,
        })
    }

    /// The words of an array as numbers.
    pub(super) fn as_numbers<'a>(
        &self,
        words: &'a CudaSlice<u32>,
        numbers: usize,
    ) -> Result<CudaView<'a, f32>, Refusal> {
        fits("numbers from other ranks", words.len(), numbers)?;
        // SAFETY: all bits of a word are those of a number, of the same size.
        let view = unsafe { words.transmute::<f32>(numbers) };
        view.ok_or_else(|| Refusal::new("numbers from other ranks: they are too few"))
    }

    /// Classes, extent and number of special points of positions, three numbers each.
    pub(super) fn survey(
        &self,
        engine: &DeviceEngine,
        positions: &CudaView<'_, f32>,
        classes: &DeviceClasses,
        survey: &mut Survey,
    ) -> Result<(), Refusal> {
        let points = positions.len() / 3;
        survey.fit(engine, points)?;
        let zeroed = self.queue.memset_zeros(&mut survey.found);
        zeroed.map_err(|error| super::staging::driver("clearing a survey", error))?;
        let (count, tiles) = (points as u32, tiles(points) as u32);
        let (table, _held) = classes.table.device_ptr(&self.queue);
        let of = Classes {
            table,
            ..classes.classes
        };
        let mut launch = self.queue.launch_builder(&self.survey);
        launch.arg(positions).arg(&count).arg(&classes.lattice);
        launch.arg(&of).arg(&mut survey.of_points);
        launch.arg(&mut survey.tiles).arg(&mut survey.found);
        // SAFETY: the arguments are those that places.cu declares; there are three positions a
        // point, and `fit` has made room for all points and tiles.
        unsafe { self.start("survey", &mut launch, tiles, GRID_THREADS) }?;
        let mut launch = self.queue.launch_builder(&self.survey_scan);
        launch.arg(&mut survey.tiles).arg(&tiles);
        launch.arg(&mut survey.found);
        // SAFETY: as above.
        unsafe { self.start("survey_scan", &mut launch, 1, SETTLE_THREADS) }
    }

    /// Writes index and class of the special points of the last survey, which are `special`, of
    /// `points` points.
    pub(super) fn write_special(
        &self,
        engine: &DeviceEngine,
        points: usize,
        special: usize,
        survey: &mut Survey,
    ) -> Result<(), Refusal> {
        if survey.special.len() < 2 * special {
            survey.special = zeros(engine, 2 * special + special / 2)?;
        }
        fits("classes of points", survey.of_points.len(), points)?;
        let (count, room) = (points as u32, (survey.special.len() / 2) as u32);
        let mut launch = self.queue.launch_builder(&self.survey_write);
        launch.arg(&survey.of_points).arg(&count);
        launch.arg(&survey.tiles).arg(&room);
        launch.arg(&mut survey.special);
        let tiles = tiles(points) as u32;
        // SAFETY: the arguments are those that places.cu declares; nothing is written behind the
        // room, and classes and tiles are those of the survey before.
        unsafe { self.start("survey_write", &mut launch, tiles, GRID_THREADS) }
    }

    /// Puts the first `words` of the `stride` words of each of the `count` points at `indices`,
    /// which `from` has, side by side.
    pub(super) fn gather<T: DeviceRepr>(
        &self,
        from: &CudaView<'_, T>,
        [stride, words]: [usize; 2],
        (indices, count): (&CudaView<'_, u32>, usize),
        rows: Rows<'_>,
    ) -> Result<(), Refusal> {
        if count == 0 || words == 0 {
            return Ok(());
        }
        let end = rows.first + (count - 1) * rows.stride + words;
        fits("values that leave a rank", rows.to.len(), end)?;
        fits("places of points", indices.len(), count)?;
        let [stride, read, points] = [stride, words, count].map(|number| number as u32);
        let mut to = rows.to.slice_mut(rows.first..);
        let to_stride = rows.stride as u32;
        let mut launch = self.queue.launch_builder(&self.gather);
        launch.arg(from).arg(&stride).arg(&read).arg(indices);
        launch.arg(&points).arg(&mut to).arg(&to_stride);
        // SAFETY: the arguments are those that places.cu declares, and the ends were checked;
        // callers have seen that `from` has `words` of `stride` words of every point of the set,
        // whose survey found the indices.
        unsafe { self.each("gather", &mut launch, count * words) }
    }

    /// An array in the order after a migration.
    pub(super) fn join<T: DeviceRepr>(
        &self,
        from: &CudaView<'_, T>,
        words: usize,
        joined: Joined<'_>,
        came: Came<'_>,
        to: &mut CudaSlice<T>,
    ) -> Result<(), Refusal> {
        let Joined {
            left,
            gone,
            stay,
            now,
        } = joined;
        if now == 0 || words == 0 {
            return Ok(());
        }
        let of_point = size_of::<T>() / 4;
        fits("values after a migration", to.len() * of_point, now * words)?;
        fits(
            "values before a migration",
            from.len() * of_point,
            (stay + gone) * words,
        )?;
        fits("places that were left", left.len(), gone)?;
        if now > stay {
            let end = came.first + (now - stay - 1) * came.stride + words;
            fits("values that came", came.words.len(), end)?;
        }
        let arrived = came.words.slice(came.first.min(came.words.len())..);
        let [words_each, gone, stay_count, stride, now_count] =
            [words, gone, stay, came.stride, now].map(|number| number as u32);
        let mut launch = self.queue.launch_builder(&self.join);
        launch.arg(from).arg(&words_each).arg(left).arg(&gone);
        launch.arg(&stay_count).arg(&arrived).arg(&stride);
        launch.arg(&now_count).arg(to);
        // SAFETY: the arguments are those that places.cu declares, and all lengths were checked: a
        // point that stays is one of the `stay + gone` points before.
        unsafe { self.each("join", &mut launch, now * words) }
    }

    /// Combines results of points at the border with those of all.
    pub(super) fn combine(
        &self,
        (border, count): (&CudaSlice<u32>, usize),
        found: &CudaSlice<f32>,
        (outputs, reduce): (usize, Reduce),
        results: &mut CudaViewMut<'_, f32>,
    ) -> Result<(), Refusal> {
        if count == 0 {
            return Ok(());
        }
        fits("places of the border", border.len(), count)?;
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
        (border, count): (&CudaSlice<u32>, usize),
        found: &CudaSlice<u32>,
        counts: &mut CudaViewMut<'_, u32>,
    ) -> Result<(), Refusal> {
        if count == 0 {
            return Ok(());
        }
        fits("places of the border", border.len(), count)?;
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
    unsafe fn each(
        &self,
        kernel: &str,
        launch: &mut LaunchArgs<'_>,
        items: usize,
    ) -> Result<(), Refusal> {
        let blocks = items.div_ceil(GRID_THREADS as usize) as u32;
        // SAFETY: the caller guarantees that the arguments fit the kernel.
        unsafe { self.start(kernel, launch, blocks, GRID_THREADS) }
    }

    /// # Safety
    /// As [`Queue::launch`].
    unsafe fn start(
        &self,
        kernel: &str,
        launch: &mut LaunchArgs<'_>,
        blocks: u32,
        threads: u32,
    ) -> Result<(), Refusal> {
        // SAFETY: the caller guarantees that the arguments fit the kernel.
        Ok(unsafe { self.queue.launch(kernel, launch, blocks, threads) }?)
    }
}
