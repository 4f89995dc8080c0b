//! Neighbour lists and counts.

use crate::{
    CpuBackend, Error, NeighborLists, RadiusRule, SetRadii, Share, ShareOfLists, SimdLevel,
    SortedRadii,
    candidates::Candidates,
    group::{Group, Radii, Scratch, Walk},
    image::{Image, image_of},
    lists::{Chunk, ListWriter},
    long_list::long_list,
    simd::{
        self, HALF, LANES, Mode, RADII, STREAMS, Select, Simd, Tag, Task, has, with_level,
        with_mode,
    },
};
use nearfield_grid::{
    Grid, SharedMut,
    memory::{self, Shortage},
};
use nearfield_pairs::{ListKind, Pair};
use std::{ops::Range, sync::Mutex};
use tracing::field::Empty;

/// Who searches whom; both are sorted on the same lattice.
#[derive(Debug, Clone, Copy)]
pub struct PairOfSets<'a> {
    /// Points that search.
    pub targets: &'a Grid,
    /// Points that are found.
    pub sources: &'a Grid,
    /// Whether both are the same set, so that a point is not its own neighbour; both are the same grid
    /// then, and anything else is refused.
    pub same_set: bool,
    /// Radii of single points, none above the grids'; [`SetRadii::Uniform`] for the grids' radius.
    pub radii: SetRadii<&'a SortedRadii>,
    /// Which targets are searched for; None for all. Results of the others are left as they were.
    pub share: Option<Share<'a>>,
}

/// Targets whose neighbours are counted to size the storage of a first search.
const SAMPLE: usize = 512;

impl CpuBackend {
    /// Writes the neighbours of every target into `lists`, reusing its memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], after which the lists are empty, and what
    /// [`measure`](Self::measure) says of the radii.
    pub fn search(
        &self,
        sets: PairOfSets<'_>,
        kind: ListKind,
        lists: &mut NeighborLists,
    ) -> Result<(), Error> {
        let targets = sets.targets.points().len();
        let span = tracing::debug_span!("cpu.search", targets, work = Empty, pairs = Empty);
        let span = span.entered();
        sets.check_whole()?;
        let walk = self.walk(sets, Tag::Index, kind)?;
        walk.tell_work(&span);
        if targets == 0 || sets.sources.points().is_empty() {
            // Most pairs of many sets that hold nothing: waking workers would take all of the time.
            return lists.find_none(targets);
        }
        let expected = match lists.storage().is_empty() {
            true => self.expected_pairs(&walk, targets, kind)?,
            false => 0,
        };
        lists.work_on(self);
        lists.prepare(targets, expected)?;
        lists.fill(STREAMS * self.threads(), |writer| {
            self.write(&walk, kind, writer)
        })?;
        span.record("pairs", lists.pairs());
        Ok(())
    }

    /// Writes the lists of all targets of a walk.
    fn write(&self, walk: &Walk<'_>, kind: ListKind, writer: &ListWriter<'_>) -> Result<(), Error> {
        let chunks: Mutex<Vec<[Chunk; STREAMS]>> = Mutex::default();
        let stack = || chunks.lock().unwrap_or_else(|error| error.into_inner());
        let done = self.for_each_task(walk.targets.points().len(), &|slots, scratch| {
            let chunks = stack().pop().unwrap_or_default();
            let mut sink = Stored { writer, chunks };
            walk.lists(self.level(), slots, scratch, kind, &mut sink);
            stack().push(sink.chunks);
        });
        for chunk in stack().iter_mut().flatten() {
            writer.retire(chunk);
        }
        done
    }

    /// Writes the lists of a [share](PairOfSets::share) into `room`, while another backend writes those
    /// of the other targets; [`NeighborLists::join`] puts both together.
    ///
    /// # Errors
    /// As [`search`](Self::search).
    pub fn search_share(
        &self,
        sets: PairOfSets<'_>,
        kind: ListKind,
        room: &mut [u32],
        found: &mut ShareOfLists,
    ) -> Result<(), Error> {
        let targets = sets.targets.given();
        let span = tracing::debug_span!("cpu.search", targets, work = Empty).entered();
        let walk = self.walk(sets, Tag::Index, kind)?;
        walk.tell_work(&span);
        found.fill(targets, room, STREAMS * self.threads(), |writer| {
            self.write(&walk, kind, writer)
        })
    }

    /// Entries that a share of lists leaves empty at most in the storage it writes to, besides a
    /// sixteenth of it: every worker claims room for the longest list it may meet.
    pub fn slack(&self) -> usize {
        self.threads() * STREAMS * 4096
    }

    /// Number of neighbours of every target, in the caller's order, without storing lists.
    ///
    /// # Errors
    /// [`Error::OutputLength`] when `counts` does not have one value per target,
    /// [`Error::RadiiLength`] when radii are not those of the sets, and
    /// [`Error::RadiiInDouble`] for radii of points in double precision. [`Error::OutOfMemory`]; some
    /// counts are then those of before.
    pub fn count(&self, sets: PairOfSets<'_>, counts: &mut [u32]) -> Result<(), Error> {
        let (targets, sorted) = (sets.targets.given(), sets.targets.points().len());
        if counts.len() != targets {
            return Err(Error::OutputLength {
                found: counts.len(),
                expected: targets,
            });
        }
        let span = tracing::debug_span!("cpu.count", targets, work = Empty).entered();
        let walk = self.walk(sets, Tag::Index, ListKind::Full)?;
        walk.tell_work(&span);
        let counts = SharedMut::new(counts);
        self.for_each_task(sorted, &|slots, scratch| {
            let mut sink = Counted::new(|target, count: u32| {
                // SAFETY: every target lies in one task, and is visited once there.
                unsafe { counts.write(target, count) };
            });
            walk.lists(self.level(), slots, scratch, ListKind::Full, &mut sink);
        })
    }

    /// What a search of the sets starts from.
    ///
    /// The loops rely on what is checked here: a radius for every sorted point, and the padding.
    pub(crate) fn walk<'a>(
        &self,
        sets: PairOfSets<'a>,
        tag: Tag,
        kind: ListKind,
    ) -> Result<Walk<'a>, Error> {
        let points = (sets.targets.points().len(), sets.sources.points().len());
        sets.check()?;
        sets.radii.check(points, |radii| radii.len())?;
        let given = sets.targets.given();
        if let Some(share) = sets.share.filter(|share| share.taken.len() < given) {
            return Err(Error::OutputLength {
                found: share.taken.len(),
                expected: given,
            });
        }
        let rule = sets.radii.rule();
        if kind == ListKind::Half && sets.same_set && !rule.is_symmetric() {
            return Err(Error::HalfRule { rule });
        }
        let walk = Walk {
            targets: sets.targets,
            sources: sets.sources,
            same_set: sets.same_set,
            tag,
            ranked: kind == ListKind::Half && sets.same_set,
            radii: sets.radii.into(),
            ahead: false,
            share: sets.share,
        };
        match walk.double() {
            None => Ok(walk),
            Some(_) if rule != RadiusRule::Uniform => Err(Error::RadiiInDouble),
            Some(_) => Ok(walk.filtering()),
        }
    }

    /// About how many pairs there are, from a sample of the targets, with some room to spare.
    fn expected_pairs(
        &self,
        walk: &Walk<'_>,
        targets: usize,
        kind: ListKind,
    ) -> Result<u64, Error> {
        let mut scratch = Scratch::default();
        let (mut pairs, mut sampled) = (0u64, 0u64);
        let mut sink = Counted::new(|_, count: u32| {
            pairs += u64::from(count);
            sampled += 1;
        });
        for target in (0..targets).step_by((targets / SAMPLE).max(1)) {
            walk.lists(
                self.level(),
                target..target + 1,
                &mut scratch,
                kind,
                &mut sink,
            );
            if let Some(shortage) = scratch.failed {
                return Err(shortage.into());
            }
        }
        let max_candidates = sink.rooms.lists[0].len();
        let mean = pairs as f64 / sampled.max(1) as f64;
        let slack = (self.threads() * STREAMS * 24 * (max_candidates + LANES)) as u64;
        Ok((mean * targets as f64 * 1.1) as u64 + slack + (1 << 12))
    }
}

/// Where lists go as they are found, in [`STREAMS`] streams.
pub(crate) trait ListSink {
    /// Says that the list of `target` comes soon.
    #[inline(always)]
    fn expect(&self, _target: usize) {}

    /// Room in a stream for a list of at most `most` entries and [`LANES`] entries of scribble
    /// behind, or null when memory is short.
    fn room(&mut self, stream: usize, most: usize) -> *mut u32;

    /// Takes the list of `target`, `count` entries where [`room`](Self::room) of the stream was
    /// last.
    ///
    /// # Safety
    /// `count` is at most what was asked for, and every target is put once, by one worker.
    unsafe fn put(&mut self, stream: usize, target: usize, count: usize);

    /// Whether the lengths of lists are all that is wanted.
    fn counts_only(&self) -> bool {
        false
    }

    /// Takes the length of the list of `target` where that is all that is wanted.
    fn count(&mut self, _target: usize, _count: u32) {}

    /// The memory that was refused when a room was null, unless whoever made the sink knows.
    fn refused(&mut self) -> Option<Shortage> {
        None
    }
}

/// Lists written into shared storage.
struct Stored<'a> {
    writer: &'a ListWriter<'a>,
    chunks: [Chunk; STREAMS],
}

impl ListSink for Stored<'_> {
    #[inline(always)]
    fn expect(&self, target: usize) {
        self.writer.expect(target);
    }

    #[inline(always)]
    fn room(&mut self, stream: usize, most: usize) -> *mut u32 {
        self.writer.room(&mut self.chunks[stream], most + LANES)
    }

    #[inline(always)]
    unsafe fn put(&mut self, stream: usize, target: usize, count: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.writer.put(&mut self.chunks[stream], target, count) }
    }
}

/// Rooms for the lists of all streams, one list each.
#[derive(Default)]
struct Rooms {
    lists: [Vec<u32>; STREAMS],
    refused: Option<Shortage>,
}

impl Rooms {
    /// Room for a list of at most `most` entries and a vector, or null when memory is short.
    #[inline(always)]
    fn room(&mut self, stream: usize, most: usize) -> *mut u32 {
        if self.lists[stream].len() < most + LANES && !self.grow(stream, most + LANES) {
            return std::ptr::null_mut();
        }
        self.lists[stream].as_mut_ptr()
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, stream: usize, len: usize) -> bool {
        let room = &mut self.lists[stream];
        // Nothing is kept, so old and new need not be held at once.
        *room = Vec::new();
        match memory::zeroed(len.saturating_add(len / 8), "one neighbour list") {
            Ok(fresh) => *room = fresh,
            Err(shortage) => self.refused = Some(shortage),
        }
        room.len() >= len
    }
}

/// Lists whose lengths are shown to `put`.
pub(crate) struct Counted<F> {
    rooms: Rooms,
    put: F,
}

impl<F: FnMut(usize, u32)> Counted<F> {
    pub(crate) fn new(put: F) -> Self {
        Self {
            rooms: Rooms::default(),
            put,
        }
    }
}

impl<F: FnMut(usize, u32)> ListSink for Counted<F> {
    #[inline(always)]
    fn room(&mut self, stream: usize, most: usize) -> *mut u32 {
        self.rooms.room(stream, most)
    }

    #[inline(always)]
    unsafe fn put(&mut self, _: usize, target: usize, count: usize) {
        (self.put)(target, count as u32);
    }

    fn counts_only(&self) -> bool {
        true
    }

    fn count(&mut self, target: usize, count: u32) {
        (self.put)(target, count);
    }

    fn refused(&mut self) -> Option<Shortage> {
        self.rooms.refused.take()
    }
}

/// Lists that are shown to `put` and not kept.
pub(crate) struct Shown<F> {
    rooms: Rooms,
    put: F,
}

impl<F: FnMut(usize, &[u32])> Shown<F> {
    pub(crate) fn new(put: F) -> Self {
        Self {
            rooms: Rooms::default(),
            put,
        }
    }
}

impl<F: FnMut(usize, &[u32])> ListSink for Shown<F> {
    #[inline(always)]
    fn room(&mut self, stream: usize, most: usize) -> *mut u32 {
        self.rooms.room(stream, most)
    }

    #[inline(always)]
    unsafe fn put(&mut self, stream: usize, target: usize, count: usize) {
        (self.put)(target, &self.rooms.lists[stream][..count]);
    }

    fn refused(&mut self) -> Option<Shortage> {
        self.rooms.refused.take()
    }
}

impl Walk<'_> {
    /// Hands the list of every sorted target in `slots` to `sink`.
    pub(crate) fn lists(
        &self,
        level: SimdLevel,
        slots: Range<usize>,
        scratch: &mut Scratch,
        kind: ListKind,
        sink: &mut impl ListSink,
    ) {
        if self.double().is_some() {
            self.lists_in_double(level, slots, scratch, kind, sink);
        } else {
            let half = kind == ListKind::Half && self.same_set;
            let task = ListTask {
                walk: self,
                slots,
                scratch,
                half,
                sink,
            };
            with_level(level, task);
        }
        if let Some(shortage) = sink.refused() {
            scratch.failed = Some(shortage);
        }
    }
}

/// Lists of a range of targets.
struct ListTask<'a, L> {
    walk: &'a Walk<'a>,
    slots: Range<usize>,
    scratch: &'a mut Scratch,
    half: bool,
    sink: &'a mut L,
}

impl<L: ListSink> Task for ListTask<'_, L> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let (walk, sink, half) = (self.walk, self.sink, self.half);
        let mut groups = walk.groups(self.slots);
        // SAFETY: the caller's promise; the modes are what the candidates carry.
        unsafe {
            while let Some((group, mode)) = groups.next::<S>(self.scratch) {
                if !group.is_whole() {
                    long_list::<S>(&mut groups, (group, mode), half, self.scratch, sink);
                    continue;
                }
                let candidates = &self.scratch.candidates;
                with_mode!(mode, MODE => match half {
                    false => walk.put::<S, MODE>(&group, candidates, sink),
                    true => walk.put::<S, { MODE | HALF }>(&group, candidates, sink),
                });
            }
        }
    }
}

impl Walk<'_> {
    /// Selects the neighbours of every target of a group.
    ///
    /// # Safety
    /// The processor has the level `S`, and `MODE` says what candidates carry.
    #[inline(always)]
    unsafe fn put<S: Simd, const MODE: Mode>(
        &self,
        group: &Group,
        candidates: &Candidates,
        sink: &mut impl ListSink,
    ) {
        for &target in &self.targets.points().index()[group.slots.clone()] {
            sink.expect(target as usize);
        }
        let mut k = 0;
        // SAFETY: the caller's promise.
        unsafe {
            while k + STREAMS <= group.slots.len() {
                self.put_some::<S, MODE, STREAMS>(group, k, candidates, sink);
                k += STREAMS;
            }
            while k < group.slots.len() {
                self.put_some::<S, MODE, 1>(group, k, candidates, sink);
                k += 1;
            }
        }
    }

    /// Selects the neighbours of `TARGETS` targets of a group from number `first` on.
    ///
    /// # Safety
    /// As for [`put`](Self::put); the group has as many.
    #[inline(always)]
    unsafe fn put_some<S: Simd, const MODE: Mode, const TARGETS: usize>(
        &self,
        group: &Group,
        first: usize,
        candidates: &Candidates,
        sink: &mut impl ListSink,
    ) {
        let mut args = [self.select_args(group, first); TARGETS];
        let mut lists = [std::ptr::null_mut(); TARGETS];
        for t in 0..TARGETS {
            args[t] = self.select_args(group, first + t);
            lists[t] = sink.room(t, candidates.len());
            if lists[t].is_null() {
                return;
            }
        }
        // SAFETY: the caller's promise; sinks make room for the bound and a vector, and every
        // target lies in one task and is visited once there.
        unsafe {
            let counts = S::select::<MODE, TARGETS>(&args, candidates, lists);
            for t in 0..TARGETS {
                let slot = group.slots.start + first + t;
                sink.put(t, self.targets.points().index()[slot] as usize, counts[t]);
            }
        }
    }

    /// What selecting for target number `k` of a group starts from.
    #[inline(always)]
    pub(crate) fn select_args(&self, group: &Group, k: usize) -> Select {
        let points = self.targets.points();
        let slot = group.slots.start + k;
        Select {
            target: points.position(slot),
            r2: self.r2(slot),
            own_tag: if self.same_set {
                points.index()[slot]
            } else {
                u32::MAX
            },
            own_place: group.place_of(k),
        }
    }
}

impl PairOfSets<'_> {
    /// What the loops take for granted: `same_set` is said of one grid only, and both grids are in the
    /// same precision.
    fn check(&self) -> Result<(), Error> {
        let refuse = |reason| Err(Error::Sets { reason });
        if self.same_set && !std::ptr::eq(self.targets, self.sources) {
            return refuse("they are said to be the same, but two grids are given");
        }
        let double = |grid: &Grid| !grid.points().is_empty() && grid.points().double().is_some();
        let single = |grid: &Grid| !grid.points().is_empty() && grid.points().double().is_none();
        let mixed = double(self.targets) && single(self.sources)
            || single(self.targets) && double(self.sources);
        if mixed {
            return refuse("one of them was sorted in f64 and the other in f32");
        }
        Ok(())
    }

    /// Refuses targets of which only a part was sorted, where there is to be a list for each.
    pub(crate) fn check_whole(&self) -> Result<(), Error> {
        if self.targets.given() != self.targets.points().len() {
            return Err(Error::Sets {
                reason: "only a part of the targets was sorted, but lists are for all of them",
            });
        }
        Ok(())
    }

    /// Calls `visit` with the caller's index of every neighbour of a sorted target, its image and the
    /// geometry of the pair (in double precision, where radii of single points do not count, rounded
    /// to `f32` once it is decided); plain scalar code on the calling thread.
    ///
    /// # Panics
    /// When there is no such target, and when radii are not those of the sets, as indexing a slice
    /// does.
    #[inline(always)]
    pub fn for_each_neighbor(&self, slot: usize, visit: impl FnMut(u32, Image, Pair)) {
        match self.radii.rule().needs_sources() {
            false => self.visit::<0>(slot, visit),
            true => self.visit::<RADII>(slot, visit),
        }
    }

    /// [`for_each_neighbor`](Self::for_each_neighbor); `MODE` says whether sources have radii.
    #[inline(always)]
    fn visit<const MODE: Mode>(&self, slot: usize, mut visit: impl FnMut(u32, Image, Pair)) {
        let (targets, sources) = (self.targets.points(), self.sources.points());
        if let (Some(targets), Some(sources)) = (targets.double(), sources.double()) {
            return self.for_each_in_double(slot, [targets, sources], visit);
        }
        let lattice = self.sources.lattice();
        let radii = Radii::from(self.radii);
        let source_r2 = radii.sources.unwrap_or_default();
        let target_r2 = radii.of_target(slot, lattice.radius().squared());
        let position = targets.position(slot);
        let wraps = targets.wraps(slot);
        self.sources.for_each_run(lattice.cell(position), |run| {
            for source in run.slots.clone() {
                let other = sources.wraps(source);
                let image = image_of(run.image, wraps, other);
                let shift = lattice.domain().image_vector(image);
                let found = sources.position(source);
                let d = std::array::from_fn(|axis| (found[axis] - position[axis]) + shift[axis]);
                let d2 = simd::squared(d);
                let r2 = match has(MODE, RADII) {
                    true => target_r2.max(source_r2[source]),
                    false => target_r2,
                };
                let itself = self.same_set && source == slot && image == [0; 3];
                if d2 <= r2 && !itself {
                    visit(sources.index()[source], image, Pair { d, d2 });
                }
            }
        });
    }
}
