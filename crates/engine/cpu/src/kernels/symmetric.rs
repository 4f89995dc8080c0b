//! Pairs of one set evaluated once for both points (Newton's third law).
//!
//! Every group meets only its own targets and the points after them (around the box where the
//! domain is periodic: [`Sweep::runs_ahead`](nearfield_grid::Sweep::runs_ahead)), so half the
//! candidates are tested and half the contributions computed. The contribution of a pair to its
//! target is summed in registers, the one to its source in an array parallel to the candidates,
//! which is added to the task's [`Window`] when the group is done, vector by vector, by the chunks
//! that the candidates come from. Storing all sums of a group at once costs less than storing each
//! contribution to its point, and needs neither atomics nor a colouring of the cells.
//!
//! Of a share of the targets, pairs of two of them are evaluated once, and pairs with others for
//! the target alone. The contributions to others are summed too, and dropped at the end; so a share
//! is done this way only where most neighbours of its targets are its own ([`MIN_OWN`]).
//!
//! Tasks are cut by the points alone, and windows are added up in the order of the tasks, so sums
//! do not depend on the number of threads.
//!
//! A traversal may take [notes](super::noted) of its pairs for the next one of the same points.
//!
//! A target that is done is moved infinitely far away among the candidates, so the targets after it
//! do not meet it again and no candidate is asked for its place in the order.
//!
//! # When it pays
//!
//! Half of the tests and contributions are saved; the sums of candidates and the window are added
//! costs. Kernels that compute much per pair gain most. It is not done
//!
//! * for kernels that do not say they are symmetric, or between two sets;
//! * under rules that are not symmetric, and for shares around periodic boxes;
//! * where a target's candidates come in batches, because all sums of a group are parallel to its
//!   candidates;
//! * for large sets whose windows would be so large that only few tasks are left.
//!
//! # Double precision
//!
//! The differences of two positions, and with them the distance, are the same from either side but
//! for their sign, so one side decides for both. They are computed and compared in `f64` and
//! rounded to `f32` for the kernel, as where pairs are evaluated per target.
//!
//! # Around periodic boxes
//!
//! A pair (i, j, image) and its mirror (j, i, −image) are the same pair. A cell meets the half of
//! its neighbour cells and images that come after its own in lexicographic order, so each pair is
//! met from one side. A point that meets its own image is a pair of it with itself, and gets both
//! contributions.

use super::{
    fields::{Fields, first_channel_of, gather_channels, room, sorted_channels},
    noted::{Done, TaskPairs, Vectors},
    reduce::{MAX_OUTPUTS, Partial, Results, combine_lanes},
    single::{Single, VECTORS},
    together::{self, SAMPLED, in_pages, put_together},
    window::{PAGE, Window, WindowSums, by_page},
};
use crate::{
    candidates::{
        arrays::Candidates,
        groups::Group,
        mode::{ANY, EXACT, Mode, RADII, SHIFTED, carries, has},
        scan::{Channels as Arrays, ExactBlock, ExactSelect},
        scratch::Scratch,
        walk::Walk,
    },
    error::Error,
    pool::CpuBackend,
    sets::share::Share,
    simd::{
        LANES, Simd, Task, TaskOn,
        vector::{Compress, Vector},
        with_level,
    },
};
use nearfield_grid::{Grid, memory::with_room};
use nearfield_pairs::{Channels, PairKernel};
use std::{mem::MaybeUninit, ops::Range};

/// Targets whose candidates are looked at before tasks are made.
const SAMPLE: usize = 64;
/// Minimum number of tasks for more than [`MANY`] points. Fewer do not keep all workers busy, while
/// pairs evaluated from either side, in many tasks, might.
const MIN_TASKS: usize = 64;
/// See [`MIN_TASKS`].
const MANY: usize = 1 << 18;

/// The channels of points that are both targets and sources.
pub(crate) struct OfBoth {
    /// In the order of the sorted points: those of the sources first.
    pub(crate) sorted: Vec<Vec<f32>>,
    /// The first that a target reads.
    targets_at: usize,
}

impl OfBoth {
    /// Sorts the channels of both. Fields that are the same for both are sorted and gathered once.
    pub(crate) fn new(backend: &CpuBackend, of: &Grid, fields: Fields<'_>) -> Result<Self, Error> {
        let mut sorted = Vec::new();
        sorted_channels(backend, of, fields.sources, &mut sorted)?;
        let targets_at = match first_channel_of(fields.targets, fields.sources) {
            Some(first) => first,
            None => {
                let first = sorted.len();
                sorted_channels(backend, of, fields.targets, &mut sorted)?;
                first
            }
        };
        Ok(Self { sorted, targets_at })
    }
}

/// A traversal of one set that evaluates every pair once. Channels of targets and sources are both
/// sorted, because every candidate is both.
pub(crate) struct Symmetric<'a, K: PairKernel> {
    /// The kernel.
    pub(crate) kernel: &'a K,
    /// With [`ahead`](Walk::ahead) set and candidates tagged by slot.
    pub(crate) walk: Walk<'a>,
    /// The channels.
    pub(crate) channels: &'a OfBoth,
    /// Where results go.
    pub(crate) results: Results<'a, K::Output>,
}

/// Returns the targets of a task, or `None` when pairs are better evaluated from either side: for
/// a share that has too many foreign neighbours, and for large sets that would make too few tasks.
pub(crate) fn task_size(walk: &Walk<'_>) -> Result<Option<usize>, Error> {
    if (walk.share.as_ref()).is_some_and(|share| !is_worth_it(walk, share)) {
        return Ok(None);
    }
    let points = walk.sources.points();
    let (lattice, mut sweep) = (walk.sources.lattice(), walk.sources.sweep());
    let mut sample: Vec<Vec<Range<usize>>> = Vec::new();
    for slot in (0..points.len()).step_by(points.len().div_ceil(SAMPLE).max(1)) {
        let cell = lattice.cell_f64(points.position_f64(slot));
        let runs = sweep.runs_ahead(cell, 0, slot)?;
        let mut reached = with_room(runs.len(), SAMPLED)?;
        reached.extend(runs.iter().map(|run| run.slots.clone()));
        sample.push(reached);
    }
    // A task of `size` targets reaches `size` points further than its first target.
    let held = |size: usize| {
        let mut all = 0;
        for runs in &sample {
            let runs = runs.iter();
            all += in_pages(runs.map(|run| run.start..(run.end + size).min(points.len())))?;
        }
        Ok(all / sample.len().max(1))
    };
    let size = together::task_size(points.len(), held)?;
    Ok((points.len() <= MANY || points.len().div_ceil(size) >= MIN_TASKS).then_some(size))
}

/// Minimum share of the candidates of a share's targets that are its own, for pairs to be evaluated
/// once. A contribution to a point outside of the share is lost, and evaluating for both points
/// costs more than for one.
const MIN_OWN: f64 = 0.6;
/// Distance between the points that are sampled for that.
const STEP: usize = 1 << 11;

/// Returns true if enough neighbours of a share's targets are targets too. Every 2,048th point is
/// sampled, and cells stand for their points.
fn is_worth_it(walk: &Walk<'_>, share: &Share<'_>) -> bool {
    let points = walk.sources.points();
    let lattice = walk.sources.lattice();
    let (mut cells, mut own) = (0u64, 0u64);
    for slot in (0..points.len()).step_by(STEP) {
        let cell = lattice.cell_f64(points.position_f64(slot));
        if !share.has(cell) {
            continue;
        }
        for row in lattice.rows() {
            for x in -row.reach..=row.reach {
                cells += 1;
                own += u64::from(share.has([cell[0] + x, cell[1] + row.y, cell[2] + row.z]));
            }
        }
    }
    own as f64 >= MIN_OWN * cells as f64
}

impl<K: PairKernel> Symmetric<'_, K> {
    /// Runs the traversal; `task` comes from [`task_size`].
    pub(crate) fn run(&self, backend: &CpuBackend, task: usize) -> Result<(), Error> {
        let len = self.walk.targets.points().len();
        let source = backend.pair_source(&self.walk, task);
        let done = backend.map_tasks(len, task, &|slots, scratch| {
            self.window(backend, source.of_task(slots.start), slots, scratch)
        })?;
        let windows = backend.keep_notes(&self.walk, task, source, done)?;
        put_together::<K>(backend, len, windows, &|slots, sums| {
            self.put(slots, sums);
        })
    }

    /// Contributions of the targets `slots` to themselves and to the points around them.
    fn window(
        &self,
        backend: &CpuBackend,
        mut pairs: TaskPairs<'_>,
        slots: Range<usize>,
        scratch: &mut Scratch,
    ) -> Done {
        let mut pages = std::mem::take(&mut scratch.pages);
        let points = self.walk.sources.points().len();
        let mut window = match Window::new::<K>(points, &mut pages, backend.take_window()) {
            Ok(window) => window,
            Err(shortage) => {
                scratch.failed = Some(shortage);
                return Done::default();
            }
        };
        let task = SymmetricTask {
            symmetric: self,
            pairs: &mut pairs,
            slots,
            scratch: &mut *scratch,
            window: &mut window,
        };
        with_level(backend.level(), task);
        let closed = window.close();
        scratch.pages = pages;
        let sums = closed.unwrap_or_else(|shortage| {
            scratch.failed = Some(shortage);
            WindowSums::default()
        });
        pairs.done(sums)
    }

    /// Hands the sums of those of the points `slots` that were searched for to the caller's array.
    fn put(&self, slots: Range<usize>, sums: &[f32]) {
        let (grid, first) = (self.walk.targets, slots.start);
        let Some(share) = self.walk.share else {
            return self.put_all(slots, first, sums);
        };
        for (cell, slots) in grid.cells(slots) {
            if share.has(cell) {
                self.put_all(slots, first, sums);
            }
        }
    }

    /// Hands the sums of the targets `slots` on; `sums` begins with the page of `first`.
    fn put_all(&self, slots: Range<usize>, first: usize, sums: &[f32]) {
        let index = self.walk.targets.points().index();
        for slot in slots {
            let (page, at) = ((slot - first) / PAGE, (slot - first) % PAGE);
            let sums = &sums[page * PAGE * K::Output::COUNT..];
            let value = K::Output::read(|channel| sums[channel * PAGE + at]);
            // SAFETY: every target lies in one task.
            unsafe { self.results.put::<K>(index[slot] as usize, value) };
        }
    }
}

/// A range of targets with the window of its task.
struct SymmetricTask<'a, 'b, 'c, K: PairKernel> {
    /// The traversal.
    symmetric: &'a Symmetric<'a, K>,
    /// How it finds its pairs.
    pairs: &'a mut TaskPairs<'c>,
    /// The targets.
    slots: Range<usize>,
    /// The worker's buffers.
    scratch: &'a mut Scratch,
    /// The sums of the task.
    window: &'a mut Window<'b>,
}

impl<K: PairKernel> Task for SymmetricTask<'_, '_, '_, K> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let mut gathered = std::mem::take(&mut self.scratch.gathered);
        let mut sums = std::mem::take(&mut self.scratch.packed);
        let walk = &self.symmetric.walk;
        let mut groups = walk.groups(self.slots);
        loop {
            let found = match self.pairs {
                TaskPairs::Read(notes) => {
                    // SAFETY: the caller guarantees the level; the notes are those of the walk.
                    match unsafe { notes.next::<S::Single>(walk, self.scratch) } {
                        Ok(found) => found,
                        Err(shortage) => {
                            self.scratch.failed = Some(shortage);
                            None
                        }
                    }
                }
                _ => groups.next(S::LEVEL, self.scratch),
            };
            let Some(group) = found else {
                break;
            };
            let candidates = &self.scratch.candidates;
            let stride = (candidates.len() + LANES).next_multiple_of(LANES);
            let channels = self.symmetric.channels.sorted.len();
            let made = room(&mut gathered, channels, stride)
                .and_then(|gathered| Ok((gathered, room(&mut sums, K::Output::COUNT, stride)?)));
            let (gathered, sums) = match made {
                Ok(made) => made,
                Err(shortage) => {
                    self.scratch.failed = Some(shortage);
                    break;
                }
            };
            let mut vectors = match self.pairs {
                TaskPairs::Search => Vectors::SEARCHED,
                TaskPairs::Note(notes) => notes.begin(&group, candidates, S::Single::LANES),
                TaskPairs::Read(notes) => notes.vectors(),
            };
            let evaluate = EvaluateSymmetric {
                symmetric: self.symmetric,
                group: &group,
                candidates: &mut self.scratch.candidates,
                gathered,
                sums,
                vectors: &mut vectors,
                window: self.window,
            };
            // SAFETY: the caller guarantees the level, and the vectors of all targets have been
            // written or read.
            unsafe {
                S::call_on(evaluate, self.symmetric.kernel);
                match self.pairs {
                    TaskPairs::Search => {}
                    TaskPairs::Note(notes) => notes.end(&vectors),
                    TaskPairs::Read(notes) => notes.end(&vectors),
                }
            }
        }
        self.scratch.gathered = gathered;
        self.scratch.packed = sums;
    }
}

/// A group to be evaluated. It is a task of its own, so that the compiler vectorises the loop over
/// candidates by itself, apart from gathering.
struct EvaluateSymmetric<'a, 'b, K: PairKernel> {
    /// The traversal.
    symmetric: &'a Symmetric<'a, K>,
    /// The group.
    group: &'a Group,
    /// Its candidates.
    candidates: &'a mut Candidates,
    /// Channels of the candidates.
    gathered: Arrays,
    /// Sums of the candidates.
    sums: Arrays,
    /// The vectors that hold neighbours.
    vectors: &'a mut Vectors,
    /// The sums of the task.
    window: &'a mut Window<'b>,
}

impl<K: PairKernel> TaskOn<K> for EvaluateSymmetric<'_, '_, K> {
    #[inline(always)]
    unsafe fn run_on<S: Simd>(mut self, kernel: &K) {
        // SAFETY: the caller guarantees the level; the mode is what the candidates carry; there is
        // room for the channels of all candidates, the targets first among them, and LANES more.
        unsafe {
            if !self.group.kept {
                let channels = &self.symmetric.channels.sorted;
                gather_channels::<S::Single>(channels, self.candidates, self.gathered);
                self.clear_sums::<S>();
            }
            for k in 0..self.group.slots.len() {
                // Points have radii of their own in open domains and single precision only.
                let mode = self.group.mode;
                if S::IS_SCALAR {
                    self.target::<S, ANY>(kernel, k);
                    continue;
                }
                match (has(mode, EXACT), has(mode, RADII), has(mode, SHIFTED)) {
                    (false, false, false) => self.target::<S, 0>(kernel, k),
                    (false, false, true) => self.target::<S, SHIFTED>(kernel, k),
                    (false, true, _) => self.target::<S, RADII>(kernel, k),
                    (true, _, false) => self.target::<S, EXACT>(kernel, k),
                    (true, _, true) => self.target::<S, { EXACT | SHIFTED }>(kernel, k),
                }
            }
            if !self.group.keeps {
                self.add_sums::<S::Single>();
            }
        }
    }
}

impl<K: PairKernel> EvaluateSymmetric<'_, '_, K> {
    /// # Safety
    /// The processor has the level `S`.
    #[inline(always)]
    unsafe fn clear_sums<S: Simd>(&self) {
        // Vectors of contributions: to the target's sums in registers, and to the sources' sums in
        // memory.
        for channel in 0..K::Output::COUNT {
            let mut k = 0;
            while k < self.candidates.len() {
                // SAFETY: there is room for all candidates and LANES more.
                unsafe {
                    S::Single::splat(K::REDUCE.identity()).store(self.sums.at(channel, k));
                }
                k += S::Single::LANES;
            }
        }
    }

    /// Evaluates the pairs of target `number` of the group with the candidates after it.
    ///
    /// # Safety
    /// The processor has the level `S`, and `MODE` is the candidates' mode, or [`ANY`].
    #[inline(always)]
    unsafe fn target<S: Simd, const MODE: Mode>(&mut self, kernel: &K, number: usize) {
        let (mode, width) = (self.group.mode, S::Single::LANES);
        let slot = self.group.slots.start + number;
        // Targets are the first candidates, but for those whose candidates were kept.
        let own = number + self.group.itself.unwrap_or_default();
        let walk = &self.symmetric.walk;
        let exact = if carries::<MODE>(mode, EXACT) {
            walk.exact_select(slot)
        } else {
            // Neither the target itself nor the targets after it meet it from here on.
            self.candidates.put_away(own);
            ExactSelect::NONE
        };
        let position = walk.targets.points().position(slot);
        let single = Single::new(position, walk.r2(slot), self.candidates);
        // By value: the compiler would read them again for every vector, because it cannot know
        // that the sums do not overlap with them.
        let (gathered, sums) = (self.gathered, self.sums);
        let targets_at = self.symmetric.channels.targets_at;
        // SAFETY: targets are candidates.
        let own_values = unsafe { Self::values(gathered, targets_at, own) };
        // Lanes that are evaluated at a time: a vector, in double precision a whole block.
        let step = if carries::<MODE>(mode, EXACT) {
            LANES
        } else {
            width
        };
        // Candidates before the vector of the target are targets before it, which have met it
        // already; those in its vector before it are far away, in double precision masked.
        let (mut begin, len) = (own / step * step, self.candidates.len());
        // SAFETY: candidates are below their number rounded up to whole blocks, and all arrays of
        // the candidates are padded by LANES. A kernel has at most MAX_OUTPUTS channels, all lanes
        // of its channels are written before they are read, and a block holds a whole number of
        // vectors. Notes have a word for each VECTORS vectors of every target.
        unsafe {
            let mut partial = Partial::NONE;
            partial.clear::<K>();
            while begin < len {
                let end = (begin + VECTORS * step).min(len);
                let find = || single.near_vectors::<S::Single, MODE>(mode, begin, end);
                let mut near = self.vectors.next(find);
                while near != 0 {
                    let first = begin + near.trailing_zeros() as usize * step;
                    near &= near - 1;
                    let mut to_target = [[MaybeUninit::<f32>::uninit(); LANES]; MAX_OUTPUTS];
                    let mut to_source = [[MaybeUninit::<f32>::uninit(); LANES]; MAX_OUTPUTS];
                    let candidates = &*self.candidates;
                    let found = ExactBlock::of::<S::Single, MODE>(mode, &exact, candidates, first);
                    // The kernel for some pairs: both contributions go to local blocks.
                    for lane in 0..step {
                        let k = first + lane;
                        let (pair, within) = if let Some(found) = &found {
                            found.pair(lane)
                        } else {
                            single.pair::<MODE>(mode, k)
                        };
                        let near =
                            within & (!carries::<MODE>(mode, EXACT) | (k as u32 > own as u32));
                        let values = Self::values(gathered, targets_at, k);
                        let (on_target, on_source) = kernel.symmetric(pair, own_values, values);
                        let kept = |value| if near { value } else { K::REDUCE.identity() };
                        on_target.write(|channel, value| {
                            let value = kept(value);
                            to_target
                                .get_unchecked_mut(channel)
                                .get_unchecked_mut(lane)
                                .write(value);
                        });
                        on_source.write(|channel, value| {
                            let value = kept(value);
                            to_source
                                .get_unchecked_mut(channel)
                                .get_unchecked_mut(lane)
                                .write(value);
                        });
                    }
                    let blocks = (&to_target, &to_source);
                    add_block::<K, S>(&mut partial, sums, first, step, blocks);
                }
                begin = end;
            }
            for channel in 0..K::Output::COUNT {
                let sum = sums.at(channel, own);
                *sum = K::REDUCE.combine(*sum, partial.fold::<K, S::Single>(channel));
            }
        }
    }

    /// Target and source values of candidate `k`; the channels of targets begin with number
    /// `targets_at`.
    ///
    /// # Safety
    /// `k` is below the number of candidates rounded up to whole blocks.
    #[inline(always)]
    unsafe fn values(gathered: Arrays, targets_at: usize, k: usize) -> (K::Target, K::Source) {
        // SAFETY: the channels are padded by LANES.
        unsafe {
            let target = K::Target::read(|channel| *gathered.at(targets_at + channel, k));
            let source = K::Source::read(|channel| *gathered.at(channel, k));
            (target, source)
        }
    }

    /// Adds the sums of the candidates to the window, whose pages hold channel by channel. Points
    /// of a chunk that are not candidates are combined with the identity.
    ///
    /// # Safety
    /// The processor has the vector's level.
    #[inline(always)]
    unsafe fn add_sums<V: Compress>(self) {
        let mut k = 0;
        for chunk in self.candidates.chunks() {
            for part in by_page(chunk, V::LANES) {
                if part.lanes == 0 {
                    continue;
                }
                let page = self.window.page_of::<K>(part.point).as_mut_ptr();
                // SAFETY: the caller guarantees the level. A vector from the first lane lies within
                // the page's array of a channel, and there are sums of all candidates and LANES
                // more.
                unsafe {
                    let identity = V::splat(K::REDUCE.identity());
                    for channel in 0..K::Output::COUNT {
                        let to = page.add(channel * PAGE + part.first);
                        let values = V::expand(self.sums.at(channel, k), part.lanes, identity);
                        combine_lanes::<K, _>(V::load(to), values).store(to);
                    }
                }
                k += part.lanes.count_ones() as usize;
            }
        }
    }
}

/// Lanes of some pairs, by channel.
type Block = [[MaybeUninit<f32>; LANES]; MAX_OUTPUTS];

/// Adds the contributions of `step` pairs from candidate `first` on: those to the target to its
/// partial sums, and those to the sources to the sums of the candidates.
///
/// # Safety
/// The processor has the level `S`; the first `step` lanes of the kernel's channels were written;
/// there are sums for as many candidates.
#[inline(always)]
unsafe fn add_block<K: PairKernel, S: Simd>(
    partial: &mut Partial,
    sums: Arrays,
    first: usize,
    step: usize,
    (to_target, to_source): (&Block, &Block),
) {
    let width = S::Single::LANES;
    for channel in 0..K::Output::COUNT {
        for part in 0..step / width {
            let at = part * width;
            // SAFETY: guaranteed by the caller; a kernel has at most MAX_OUTPUTS channels.
            unsafe {
                let values = S::Single::load(to_target[channel].as_ptr().add(at).cast());
                partial.add::<K, _>(channel, first % LANES + at, values);
                let values = S::Single::load(to_source[channel].as_ptr().add(at).cast());
                let sum = sums.at(channel, first + at);
                combine_lanes::<K, _>(S::Single::load(sum), values).store(sum);
            }
        }
    }
}
