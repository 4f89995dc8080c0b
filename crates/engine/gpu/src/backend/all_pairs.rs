//! Sums over all pairs, without a radius.
//!
//! [`PairSum`] states which operations are computed and in which order. In the exact form the bits
//! are those of the CPU backend.
//!
//! # Algorithm
//!
//! Every block goes through all sources in tiles of 128, which it stages in shared memory, and
//! every thread keeps its targets in registers. The sources of a tile are added one by one, and
//! their sum is added to the result with compensation, so the order of additions is that of the
//! caller's sources, whatever the number of threads. Each source that is read from shared memory
//! serves all targets of a thread; therefore a thread takes several targets as soon as there are
//! enough of them to keep the device busy ([`SEVERAL_FROM`]).
//!
//! The points of a row of a grid share the y and z parts of squared distances. For potentials tiles
//! then hold these parts in the place of the sources' y, which saves operations per pair;
//! [`PointsPerThread`] chooses how a row is dealt out.
//!
//! # Memory and errors
//!
//! All sources are on the device at once. Targets are worked on in parts of at most 2²⁶ numbers of
//! results. Every part is copied back before the next begins, so one buffer of results serves all.
//! A call leaves the scratch usable whether it succeeds or not.

use super::gpu::GpuBackend;
use crate::constants::ALL_PAIRS_THREADS;
use crate::{
    error::{Error, ErrorKind, fits},
    handles::Event,
    launch::{AllPairsKernels, RowsOfGrid, Summing},
    memory::Buffer,
    program::Program,
};
use bytemuck::cast_slice;
use nearfield_grid::memory::Shortage;
use nearfield_pairs::{Arithmetic, PairSum, PairSumSettings, Real, SampleGrid, Sources};
use std::ops::Range;

/// Most threads of a block.
const THREADS: usize = ALL_PAIRS_THREADS as usize;
/// Blocks from which a thread takes several targets: fewer would leave multiprocessors without
/// work. Large devices have up to about 150 of these.
const SEVERAL_FROM: usize = 180;
/// Numbers of results that are on the device at a time: 256 MiB in `f32`.
const MAX_RESULTS: usize = 1 << 26;
/// Number of the eight points of a thread whose reciprocal roots are computed by multiplications
/// and additions, without the instruction for roots.
const GUESSED: u32 = 2;

/// How a grid's points are dealt out to the threads of a block. Results agree as closely as the
/// fast arithmetic is exact; in the exact one they are the same bits.
///
/// More points per thread read each source fewer times. But a row is a whole number of blocks, and
/// a block a whole number of warps: on short rows threads with many points are left without work.
/// `Auto` takes the largest number for which at most a tenth more points are computed than with the
/// best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum PointsPerThread {
    /// As many as suit the length of the rows.
    #[default]
    Auto,
    /// A point a thread.
    One,
    /// Four points a thread, side by side with the other threads' points.
    Four,
    /// Eight.
    Eight,
    /// Eight; two of them take roots without the special-function unit if the arithmetic is fast
    /// and in `f32`.
    Mixed,
}

impl PointsPerThread {
    /// Index among the kernels, and points of a thread.
    fn shape(self) -> (usize, usize) {
        match self {
            Self::One => (0, 1),
            Self::Four => (1, 4),
            Self::Eight => (2, 8),
            Self::Auto | Self::Mixed => (3, 8),
        }
    }

    /// Threads of a block and blocks of a row of `points`.
    fn blocks(self, points: usize) -> (usize, usize) {
        let (_, per) = self.shape();
        let threads = points.div_ceil(per).next_multiple_of(32).min(THREADS);
        (threads, points.div_ceil(threads * per))
    }

    /// The way for rows of `points`, numbers being `f64` or not: as many points a thread as leave
    /// few without work.
    fn chosen(self, points: usize, double: bool) -> Self {
        let all: &[Self] = match (self, double) {
            (Self::Auto, false) => &[Self::Mixed, Self::Four, Self::One],
            (Self::Auto, true) => &[Self::Four, Self::One],
            _ => return self,
        };
        let idle = |one: &Self| {
            let (threads, blocks) = one.blocks(points);
            (threads * blocks * one.shape().1) as f64 / points as f64
        };
        let best = all.iter().map(idle).fold(f64::INFINITY, f64::min);
        let good = all.iter().find(|one| idle(one) <= 1.1 * best);
        good.copied().unwrap_or(Self::One)
    }
}

/// Buffers of sums over all pairs and their programs, kept between calls.
#[derive(Debug)]
pub struct AllPairsScratch {
    /// By precision and arithmetic.
    kernels: [Option<AllPairsKernels>; 4],
    /// Of the sources, as they were given. Buffers hold bytes, because one scratch serves sums in
    /// `f32` and in `f64`.
    positions: Buffer<u8>,
    /// Of the sources, as they were given.
    weights: Buffer<u8>,
    /// Position and weight of every source side by side.
    sources: Buffer<u8>,
    /// Positions of a part of the targets, or the three axes of a grid.
    targets: Buffer<u8>,
    /// Results of a part of the targets.
    results: Buffer<u8>,
    per_thread: PointsPerThread,
    /// Milliseconds that the kernels of the last call took.
    milliseconds: f32,
}

impl Default for AllPairsScratch {
    fn default() -> Self {
        Self {
            kernels: Default::default(),
            positions: Buffer::new("positions of sources"),
            weights: Buffer::new("weights of sources"),
            sources: Buffer::new("sources"),
            targets: Buffer::new("targets"),
            results: Buffer::new("sums"),
            per_thread: PointsPerThread::Auto,
            milliseconds: 0.0,
        }
    }
}

impl AllPairsScratch {
    /// How grids are dealt out from now on.
    pub fn set_points_per_thread(&mut self, per_thread: PointsPerThread) {
        self.per_thread = per_thread;
    }

    /// Milliseconds of the device that the kernels of the last call took, without transfers.
    pub fn kernel_milliseconds(&self) -> f32 {
        self.milliseconds
    }
}

/// Number of eight points of a row whose roots are computed that way ([`GUESSED`]).
fn guessed(double: bool, arithmetic: Arithmetic) -> u32 {
    match double || arithmetic == Arithmetic::Exact {
        true => 0,
        false => GUESSED,
    }
}

/// Targets of a thread, where there are many: as many as registers hold without spilling to memory.
/// Exact arithmetic and `f64` keep more numbers per target, so fewer targets fit.
fn several(double: bool, arithmetic: Arithmetic) -> usize {
    match double || arithmetic == Arithmetic::Exact {
        true => 2,
        false => 8,
    }
}

/// The program of a precision and an arithmetic.
fn program(double: bool, arithmetic: Arithmetic) -> Program {
    let exact = arithmetic == Arithmetic::Exact;
    Program::from(&crate::launch::sources::ALL_PAIRS)
        .define("NF_REAL", if double { "double" } else { "float" })
        .define("NF_EXACT", exact)
        .define("NF_GUESSED", guessed(double, arithmetic))
        .define("NF_SEVERAL", several(double, arithmetic))
}

/// Every program of sums over all pairs.
pub(crate) fn all_pairs_programs() -> Vec<Program> {
    let arithmetics = [Arithmetic::Fast, Arithmetic::Exact];
    let of = |double| arithmetics.map(|arithmetic| program(double, arithmetic));
    [false, true].into_iter().flat_map(of).collect()
}

/// The number in 32 bits, which kernels count in, with room for a block behind the last.
///
/// # Errors
/// [`ErrorKind::TooManyPoints`].
fn number(points: usize) -> Result<u32, Error> {
    match u32::try_from(points) {
        Ok(number) if number < u32::MAX - (1 << 20) => Ok(number),
        _ => Err(Error::from(ErrorKind::TooManyPoints(points))),
    }
}

/// There is no memory on the host for `len` values of a grid.
fn host_memory<T>(len: usize) -> Error {
    Error::from(ErrorKind::HostMemory(Shortage::of::<T>(
        len,
        "points of a grid",
    )))
}

impl GpuBackend {
    /// Sums over all `sources` for every target; [`PairSum::components`] numbers a target go to
    /// `results`.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] when arrays do not fit each other, [`ErrorKind::TooManyPoints`],
    /// and those of running a program.
    pub fn sum_pairs<T: Real>(
        &self,
        settings: PairSumSettings<T>,
        targets: &[[T; 3]],
        sources: Sources<'_, T>,
        results: &mut [T],
        scratch: &mut AllPairsScratch,
    ) -> Result<(), Error> {
        let components = settings.sum.components();
        fits("sums", results.len(), components * targets.len())?;
        let step = MAX_RESULTS / components;
        let Some(mut sums) =
            self.begin(settings, sources, results.len().min(MAX_RESULTS), scratch)?
        else {
            results.fill(T::default());
            return Ok(());
        };
        let parts = results.chunks_mut(step * components);
        for (targets, results) in targets.chunks(step).zip(parts) {
            sums.points(targets, results)?;
        }
        Ok(())
    }

    /// The same for the points of the rows `rows` of a grid, in order.
    ///
    /// # Errors
    /// As [`sum_pairs`](Self::sum_pairs); `results` is for the points of those rows.
    pub fn sum_pairs_on_grid<T: Real>(
        &self,
        settings: PairSumSettings<T>,
        grid: &SampleGrid,
        rows: Range<usize>,
        sources: Sources<'_, T>,
        results: &mut [T],
        scratch: &mut AllPairsScratch,
    ) -> Result<(), Error> {
        let row = settings.sum.components().saturating_mul(grid.dims[0]);
        fits("sums", results.len(), row.saturating_mul(rows.len()))?;
        // Kernels look up the axes by the number of the row.
        let all = grid.dims[1].saturating_mul(grid.dims[2]);
        if !rows.is_empty() && rows.end > all {
            fits("rows of a grid", rows.end, all)?;
        }
        let Some(mut sums) = self.begin(
            settings,
            sources,
            results.len().min(MAX_RESULTS.max(row)),
            scratch,
        )?
        else {
            results.fill(T::default());
            return Ok(());
        };
        if settings.sum == PairSum::Potential {
            sums.axes(grid)?;
        }
        let step = (MAX_RESULTS / row.max(1)).clamp(1, 1 << 24);
        let parts = results.chunks_mut((step * row).max(1));
        for (first, results) in rows.clone().step_by(step).zip(parts) {
            let part = first..(first + step).min(rows.end);
            match settings.sum {
                PairSum::Potential => sums.rows(grid, part, results)?,
                // Of a field there is nothing that a row shares.
                PairSum::Pull => {
                    let points = part.len().saturating_mul(grid.dims[0]);
                    let points = grid
                        .points(part)
                        .map_err(|_| host_memory::<[T; 3]>(points))?;
                    sums.points(&points, results)?;
                }
            }
        }
        Ok(())
    }

    /// Loads the program, brings the sources to the device and makes room for `results` numbers;
    /// None when nothing is to be summed.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] when there is no weight for every source,
    /// [`ErrorKind::TooManyPoints`], [`ErrorKind::OutOfMemory`] and those of compiling a program.
    fn begin<'a, T: Real>(
        &'a self,
        settings: PairSumSettings<T>,
        sources: Sources<'_, T>,
        results: usize,
        scratch: &'a mut AllPairsScratch,
    ) -> Result<Option<Sums<'a, T>>, Error> {
        scratch.milliseconds = 0.0;
        let count = number(sources.points.len())?;
        fits(
            "weights of sources",
            sources.weights.len(),
            sources.points.len(),
        )?;
        if results == 0 || count == 0 {
            return Ok(None);
        }
        let double = size_of::<T>() == size_of::<f64>();
        let exact = settings.arithmetic == Arithmetic::Exact;
        let place = 2 * usize::from(double) + usize::from(exact);
        if scratch.kernels[place].is_none() {
            let module = self.load(&program(double, settings.arithmetic))?;
            scratch.kernels[place] = Some(AllPairsKernels::load(
                &module,
                guessed(double, settings.arithmetic) > 0,
            )?);
        }
        let stream = &self.stream;
        scratch
            .positions
            .upload(stream, cast_slice(sources.points))?;
        scratch
            .weights
            .upload(stream, cast_slice(sources.weights))?;
        let bytes = 4 * size_of::<T>() * sources.points.len();
        scratch.sources.reserve(stream, bytes)?;
        scratch.results.reserve(stream, results * size_of::<T>())?;
        let summing = Summing {
            sources: scratch.sources.address(),
            count,
            softening2: squared(settings.softening),
            results: scratch.results.address(),
            double,
        };
        let (at, weights) = (scratch.positions.address(), scratch.weights.address());
        let sums = Sums {
            backend: self,
            sum: settings.sum,
            summing,
            kernels: place,
            several: several(double, settings.arithmetic),
            scratch,
            precision: std::marker::PhantomData,
        };
        let kernels = sums.kernels()?;
        kernels.sources(stream, at, weights, count, summing.sources)?;
        Ok(Some(sums))
    }
}

/// The square, rounded in the precision of the sum.
fn squared<T: Real>(softening: T) -> f64 {
    match size_of::<T>() == size_of::<f64>() {
        true => softening.double() * softening.double(),
        false => {
            let single = softening.double() as f32;
            f64::from(single * single)
        }
    }
}

/// Sums with the sources on the device.
struct Sums<'a, T> {
    backend: &'a GpuBackend,
    sum: PairSum,
    /// Arguments that all launches share.
    summing: Summing,
    /// Which of the scratch's kernels compute the sum.
    kernels: usize,
    /// Targets of a thread, where there are many.
    several: usize,
    scratch: &'a mut AllPairsScratch,
    precision: std::marker::PhantomData<T>,
}

impl<T: Real> Sums<'_, T> {
    /// The kernels of this precision and arithmetic, which [`GpuBackend::begin`] has loaded.
    fn kernels(&self) -> Result<&AllPairsKernels, Error> {
        let kernels = self.scratch.kernels[self.kernels].as_ref();
        kernels.ok_or_else(|| {
            Error::from(ErrorKind::NoKernel {
                program: crate::launch::sources::ALL_PAIRS.name.to_owned(),
                kernel: "all_pairs_sources".to_owned(),
            })
        })
    }

    /// Sums for points, one launch: targets and results fit the device.
    fn points(&mut self, targets: &[[T; 3]], results: &mut [T]) -> Result<(), Error> {
        let count = number(targets.len())?;
        let stream = &self.backend.stream;
        self.scratch.targets.upload(stream, cast_slice(targets))?;
        let many = targets.len() >= SEVERAL_FROM * THREADS * self.several;
        let per = if many { self.several } else { 1 };
        let begin = self.backend.mark()?;
        let (pull, at) = (self.sum == PairSum::Pull, self.scratch.targets.address());
        self.kernels()?
            .points(stream, pull, per, at, count, &self.summing)?;
        self.fetch(&begin, results)
    }

    /// Brings a grid's coordinates to the device.
    fn axes(&mut self, grid: &SampleGrid) -> Result<(), Error> {
        let mut axes = Vec::new();
        for axis in 0..3 {
            let short = |_| host_memory::<T>(grid.dims[axis]);
            let along = grid.axis::<T>(axis).map_err(short)?;
            axes.try_reserve(along.len()).map_err(short)?;
            axes.extend(along);
        }
        self.scratch
            .targets
            .upload(&self.backend.stream, cast_slice(&axes))
    }

    /// Potentials on rows of the grid whose axes are on the device, in as many launches as the
    /// limit of blocks asks for.
    fn rows(
        &mut self,
        grid: &SampleGrid,
        rows: Range<usize>,
        results: &mut [T],
    ) -> Result<(), Error> {
        let per_thread = (self.scratch.per_thread).chosen(grid.dims[0], self.summing.double);
        let (threads, segments) = per_thread.blocks(grid.dims[0]);
        let [x, y, z] = grid.dims;
        let dims = [number(x)?, number(y)?, number(z)?];
        let (first, segments) = (number(rows.start)?, number(segments)?);
        // A launch has fewer than 2^31 blocks.
        let step = ((1 << 30) / segments as usize).max(1);
        let begin = self.backend.mark()?;
        let all = number(rows.len())?;
        for part in (0..rows.len()).step_by(step) {
            let done = (part * x * size_of::<T>()) as u64;
            let summing = Summing {
                results: self.summing.results + done,
                ..self.summing
            };
            self.kernels()?.rows(
                &self.backend.stream,
                RowsOfGrid {
                    variant: per_thread.shape().0,
                    threads: threads as u32,
                    segments,
                    axes: self.scratch.targets.address(),
                    dims,
                    first_row: first + part as u32,
                    rows: (all - part as u32).min(step as u32),
                },
                &summing,
            )?;
        }
        self.fetch(&begin, results)
    }

    /// Waits for the kernels since `begin` and fetches what they have written.
    fn fetch(&mut self, begin: &Event, results: &mut [T]) -> Result<(), Error> {
        self.scratch.milliseconds += self.backend.since(begin)?;
        let bytes = bytemuck::cast_slice_mut(results);
        self.scratch
            .results
            .download(&self.backend.stream, 0, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At most a ninth more points than there are, beyond what whole warps cost, whatever the
    /// length of a row.
    #[test]
    fn rows_are_dealt_out_so_that_few_threads_idle() {
        for points in [
            1, 5, 31, 32, 100, 128, 129, 200, 500, 1024, 1025, 4096, 100_000,
        ] {
            for double in [false, true] {
                let per_thread = PointsPerThread::Auto.chosen(points, double);
                let (threads, blocks) = per_thread.blocks(points);
                let per = per_thread.shape().1;
                assert!(
                    threads % 32 == 0 && threads <= THREADS,
                    "{points}: {threads}"
                );
                let room = threads * blocks * per;
                assert!(room >= points, "{points} in {room}");
                assert!(
                    room < points + 32 * per.max(8) || room * 9 < 10 * points + 9 * 32,
                    "{points} in {room}"
                );
            }
        }
        assert_eq!(
            PointsPerThread::Auto.chosen(4096, false),
            PointsPerThread::Mixed
        );
        assert_eq!(
            PointsPerThread::Auto.chosen(20, false),
            PointsPerThread::One
        );
    }
}
