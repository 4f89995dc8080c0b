//! Notes of a traversal of pairs evaluated once, for the next traversal of the same points.
//!
//! A step of a solver evaluates several kernels over the same pairs. Each would gather the same
//! candidates and look for the same vectors that hold a neighbour. So the first traversal notes
//! both, for every group the chunks that its candidates come from and for every target its vectors;
//! those that follow read the notes, and neither search cells nor compare distances for them.
//!
//! Which traversals take notes is decided in [`repeats`](super::repeats).
//!
//! # Layout
//!
//! The notes of a task are words of 32 bits, one group after the other: first target, number of
//! targets, of candidates and of chunks; two words a chunk, its first sorted point and its lanes;
//! then for each target two words for every [`VECTORS`] vectors of candidates from its own on, a
//! bit for each that holds a neighbour. They are read from front to back, so a processor fetches
//! them ahead of time.
//!
//! # Memory
//!
//! Notes take some 20 bytes a target with 40 neighbours after it. A task that would take more than
//! [`MAX_WORDS`] words a target, or is refused memory, gives up. Then there are no notes, and none
//! are taken for a while. The memory is kept from step to step.
//!
//! **Invariant:** notes are read for the build of the grid that they were taken of, with tasks of
//! the same size, in an open domain with one radius. Groups, candidates and vectors are those that
//! a search would find, so sums have the same bits.

use super::{
    repeats::{Notes, PairSource},
    single::VECTORS,
    window::WindowSums,
};
use crate::{
    candidates::{
        arrays::{ArrayLengths, Candidates},
        groups::{Batch, Group},
        scratch::Scratch,
        walk::Walk,
    },
    pool::CpuBackend,
    simd::vector::Compress,
};
use nearfield_grid::memory::{Shortage, with_room};
use std::{ptr, sync::PoisonError};

/// Maximum number of words that a task notes for each of its targets, on the average.
const MAX_WORDS: usize = 32;
/// Words that a task may note beyond that: groups of few targets have many candidates for each. A
/// task of 256 targets, the smallest of a large set, may so note 48 words for each.
const SLACK: usize = 1 << 12;
/// Maximum number of points whose pairs are noted: notes of more would take more memory than is
/// expected of a traversal.
const MAX_POINTS: usize = 1 << 22;
/// The purpose of the memory, in messages.
const WHAT: &str = "notes of pairs that are evaluated once";
/// Words before the chunks of a group: first target, targets, candidates, chunks.
const HEADER: usize = 4;

impl PairSource {
    /// The pairs of the task that begins with sorted target `first`.
    pub(super) fn of_task(&self, first: usize) -> TaskPairs<'_> {
        match self {
            Self::Search => TaskPairs::Search,
            Self::Note(spare) => {
                let mut spare = spare.lock().unwrap_or_else(PoisonError::into_inner);
                let mut words = spare.pop().unwrap_or_default();
                words.clear();
                TaskPairs::Note(Taking {
                    words,
                    targets: 0,
                    given_up: false,
                })
            }
            Self::Read(notes) => TaskPairs::Read(Reading {
                words: &notes.tasks[first / notes.task],
                at: 0,
            }),
        }
    }
}

impl CpuBackend {
    /// How a traversal of `walk`, in tasks of `task` targets, is to find its pairs.
    pub(super) fn pair_source(&self, walk: &Walk<'_>, task: usize) -> PairSource {
        let (points, build) = (walk.sources.points().len(), walk.sources.build_number());
        let uniform = walk.radii.sources.is_none() && walk.radii.targets.is_none();
        let open = !walk.sources.lattice().effective_domain().is_periodic();
        let whole = walk.share.is_none() && points <= MAX_POINTS;
        if build == 0 || walk.double().is_some() || !(uniform && open && whole) {
            return PairSource::Search;
        }
        self.repeats().next(build, task)
    }

    /// The sums of the tasks of a traversal of `walk`, which used the given `source` of pairs;
    /// keeps its notes.
    ///
    /// # Errors
    /// [`Shortage`] if memory for the sums is refused.
    pub(super) fn keep_notes(
        &self,
        walk: &Walk<'_>,
        task: usize,
        source: PairSource,
        done: Vec<Done>,
    ) -> Result<Vec<WindowSums>, Shortage> {
        let mut windows = with_room(done.len(), WHAT)?;
        let mut tasks = with_room(done.len(), WHAT)?;
        let mut whole = true;
        for done in done {
            windows.push(done.sums);
            tasks.push(done.words);
            whole &= done.whole;
        }
        let notes = whole.then_some(Notes { task, tasks });
        (self.repeats()).keep(walk.sources.build_number(), source, notes);
        Ok(windows)
    }
}

/// The results of a task: its sums, and its notes if it has taken any.
#[derive(Default)]
pub(super) struct Done {
    /// Its sums.
    pub(super) sums: WindowSums,
    /// The notes that it took.
    pub(super) words: Vec<u32>,
    /// These are of all of its pairs.
    pub(super) whole: bool,
}

/// How a task finds its pairs, as [`PairSource`] says for the traversal.
pub(super) enum TaskPairs<'a> {
    /// It searches.
    Search,
    /// It notes what it finds.
    Note(Taking),
    /// It reads notes.
    Read(Reading<'a>),
}

impl TaskPairs<'_> {
    /// The task is done, with these sums.
    pub(super) fn done(self, sums: WindowSums) -> Done {
        let (words, whole) = match self {
            Self::Note(taking) if !taking.given_up => (taking.words, true),
            _ => (Vec::new(), false),
        };
        Done { sums, words, whole }
    }
}

/// The vectors of a group's targets that hold neighbours: for each target a word with a bit for
/// each of [`VECTORS`] vectors, and further words where there are more.
pub(super) struct Vectors {
    /// The next word of the notes, if there are any.
    at: *mut Word,
    /// Words are read.
    read: bool,
    /// Words are written.
    write: bool,
}

/// A word of bits as it lies between other words: the lower half first. Not a `u64`, which would
/// have to be aligned.
type Word = [u32; 2];

impl Vectors {
    /// Without notes.
    pub(super) const SEARCHED: Self = Self {
        at: ptr::null_mut(),
        read: false,
        write: false,
    };

    /// The next word, from the notes or as it is found.
    ///
    /// # Safety
    /// There is another word, or room for it, if there are notes.
    #[inline(always)]
    pub(super) unsafe fn next(&mut self, find: impl FnOnce() -> u64) -> u64 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if self.read {
                let [low, high] = self.at.read();
                self.at = self.at.add(1);
                return u64::from(high) << 32 | u64::from(low);
            }
            let word = find();
            if self.write {
                self.at.write([word as u32, (word >> 32) as u32]);
                self.at = self.at.add(1);
            }
            word
        }
    }
}

/// The notes of a task while they are taken.
pub(super) struct Taking {
    /// The notes so far.
    words: Vec<u32>,
    /// Targets so far.
    targets: usize,
    /// They would be too many, or are not the whole.
    given_up: bool,
}

impl Taking {
    /// Notes a group, whose vectors of `width` candidates are to be noted next, unless it gives up.
    pub(super) fn begin(
        &mut self,
        group: &Group,
        candidates: &Candidates,
        width: usize,
    ) -> Vectors {
        let plain = group.mode == 0 && group.is_whole() && !group.kept && !group.keeps;
        let (targets, chunks) = (group.slots.len(), candidates.chunks().count());
        let words = candidates.len().div_ceil(VECTORS * width);
        let room = HEADER + 2 * chunks + 2 * targets * words;
        self.targets += targets;
        let max = MAX_WORDS * self.targets + SLACK;
        self.given_up |= !plain
            || group.itself != Some(0)
            || self.words.len() + HEADER + 2 * chunks > max
            || self.words.try_reserve(room).is_err();
        if self.given_up {
            return Vectors::SEARCHED;
        }
        let header = [group.slots.start, targets, candidates.len(), chunks];
        self.words.extend(header.map(|number| number as u32));
        let chunks = candidates.chunks();
        (self.words).extend(chunks.flat_map(|chunk| [chunk.slot as u32, chunk.lanes]));
        Vectors {
            at: self.words.spare_capacity_mut().as_mut_ptr().cast(),
            read: false,
            write: true,
        }
    }

    /// Ends the group that was begun last. Does nothing after it gave up.
    ///
    /// # Safety
    /// The vectors of all of its targets have been written, from where [`begin`](Self::begin) said.
    pub(super) unsafe fn end(&mut self, vectors: &Vectors) {
        if !vectors.write {
            return;
        }
        // SAFETY: guaranteed by the caller; there was room for them.
        unsafe {
            let len = vectors.at.cast::<u32>().offset_from(self.words.as_ptr()) as usize;
            debug_assert!(len <= self.words.capacity());
            self.words.set_len(len);
        }
    }
}

/// The notes of a task while they are read.
pub(super) struct Reading<'a> {
    /// All of them.
    words: &'a [u32],
    /// The next group, or the vectors of the present one's targets.
    at: usize,
}

impl Reading<'_> {
    /// The next group, with its candidates in `scratch`.
    ///
    /// # Errors
    /// [`Shortage`] if memory for them is refused.
    ///
    /// # Safety
    /// The processor has the vector's level, and the notes were taken of the points of `walk`.
    #[inline(always)]
    pub(super) unsafe fn next<V: Compress>(
        &mut self,
        walk: &Walk<'_>,
        scratch: &mut Scratch,
    ) -> Result<Option<Group>, Shortage> {
        let words = &self.words[self.at..];
        let Some((header, words)) = words.split_first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let [first, targets, len, chunks] = header.map(|word| word as usize);
        let noted = &words.as_chunks::<2>().0[..chunks];
        self.at += HEADER + 2 * chunks;
        let candidates = &mut scratch.candidates;
        candidates.clear(false, len)?;
        let (to, axes) = (candidates.arrays_mut(), walk.sources.points().axes());
        let mut filled = ArrayLengths::default();
        for &[slot, lanes] in noted {
            // SAFETY: the caller guarantees the level. Chunks begin at sorted points, whose arrays
            // are padded by a vector; there is room for all candidates and a vector more.
            unsafe {
                let order = V::order(lanes);
                for axis in 0..3 {
                    let position = V::load(axes[axis].as_ptr().add(slot as usize));
                    position.compress(order, to.position[axis].add(filled.candidates));
                }
                to.chunk_slot.add(filled.chunks).write(slot);
                to.chunk_lanes.add(filled.chunks).write(lanes);
            }
            filled.chunks += 1;
            filled.candidates += lanes.count_ones() as usize;
        }
        // SAFETY: they have been written just now.
        unsafe { candidates.set_filled(filled) };
        candidates.seal(0);
        let slots = first..first + targets;
        Ok(Some(Group {
            max_r2: walk.max_r2(&slots),
            slots,
            itself: Some(0),
            batch: Batch::Whole,
            mode: 0,
            kept: false,
            keeps: false,
        }))
    }

    /// Where the vectors of the present group's targets are.
    pub(super) fn vectors(&self) -> Vectors {
        Vectors {
            at: self.words[self.at..].as_ptr().cast_mut().cast(),
            read: true,
            write: false,
        }
    }

    /// Goes on behind the present group.
    ///
    /// # Safety
    /// All of its vectors have been read, from where [`vectors`](Self::vectors) said.
    pub(super) unsafe fn end(&mut self, vectors: &Vectors) {
        // SAFETY: guaranteed by the caller.
        self.at = unsafe { vectors.at.cast::<u32>().offset_from(self.words.as_ptr()) } as usize;
    }
}
