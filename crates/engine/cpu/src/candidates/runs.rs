//! Copies the candidates of a group from runs of sorted points.
//!
//! Where all are of the central image, runs are copied one after the other. Around a periodic box
//! they were cut into pieces first ([`super::pieces`]), and candidates carry image vectors. Each
//! copy is one loop per level and mode, compiled as a function of its own ([`GatherRuns`],
//! [`GatherPieces`]), or taken in by [the search for groups](super::groups).
//!
//! **Invariant:** of one set, the targets stay next to each other among the candidates, because all
//! of them survive the box test.

use super::{
    arrays::{ArrayLengths, Candidates},
    gather::{Gather, SeenThrough, gather, put_shifts},
    mode::{EXACT, Mode, PROXIES, SHIFTED, Tag, has},
    piece::{Pieces, SeenImage},
    scratch::Scratch,
    walk::Walk,
};
use crate::simd::{Simd, Task, vector::Compress};
use nearfield_grid::{Run, memory::Shortage};
use std::ops::Range;

/// Targets for which candidates are gathered.
#[derive(Clone, Copy)]
pub(super) struct GatherTargets<'a> {
    /// The targets.
    pub(super) slots: &'a Range<usize>,
    /// Their largest squared radius, or bound of the filter.
    pub(super) max_r2: f32,
    /// The mode that candidates get.
    pub(super) mode: Mode,
}

/// Candidates of runs, all of the central image.
pub(super) struct GatherRuns<'a, const MODE: Mode> {
    /// The search.
    pub(super) walk: &'a Walk<'a>,
    /// The runs.
    pub(super) runs: &'a [Run],
    /// Whose candidates they are.
    pub(super) of: GatherTargets<'a>,
    /// Where candidates go.
    pub(super) scratch: &'a mut Scratch,
    /// Whether there was memory.
    pub(super) gathered: &'a mut Result<(), Shortage>,
}

impl<const MODE: Mode> Task for GatherRuns<'_, MODE> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: guaranteed by the caller, and the mode by the maker of the task.
        let gathered = unsafe {
            self.walk
                .gather_open::<S, MODE>(self.runs, self.of, self.scratch)
        };
        *self.gathered = gathered;
    }
}

/// Candidates of the pieces that were collected.
pub(super) struct GatherPieces<'a, const MODE: Mode> {
    /// The search.
    pub(super) walk: &'a Walk<'a>,
    /// Whose candidates they are.
    pub(super) of: GatherTargets<'a>,
    /// The pieces, and where candidates go.
    pub(super) scratch: &'a mut Scratch,
    /// The number of the first target among the candidates.
    pub(super) itself: &'a mut Result<Option<usize>, Shortage>,
}

impl<const MODE: Mode> Task for GatherPieces<'_, MODE> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: guaranteed by the caller, and the mode by the maker of the task.
        *self.itself = unsafe { self.walk.gather_pieces::<S, MODE>(self.of, self.scratch) };
    }
}

impl Walk<'_> {
    /// The arguments for gathering the candidates of the targets `slots`.
    ///
    /// # Safety
    /// The processor has the vector's level.
    #[inline(always)]
    unsafe fn gather_args<V: Compress>(&self, of: GatherTargets<'_>) -> Gather<'_> {
        // SAFETY: guaranteed by the caller; a group has targets.
        let (low, high) = unsafe { self.bounds::<V>(of.slots) };
        Gather {
            points: self.sources.points(),
            source_r2: self.radii.sources.unwrap_or_default(),
            tag: self.gathered_tag(of.mode),
            low,
            high,
            r2: of.max_r2,
        }
    }

    /// In double precision, looks up the positions of the candidates that were gathered, and names
    /// them.
    #[inline(always)]
    pub(super) fn look_up(&self, candidates: &mut Candidates) -> Result<(), Shortage> {
        if let Some([_, sources]) = self.double() {
            candidates.look_up(sources, self.radii.exact.sources)?;
            if self.tag == Tag::Index {
                candidates.name(self.sources.points().index());
            }
        }
        Ok(())
    }

    /// Gathers the candidates of the targets `slots` from `runs`, all of the central image.
    ///
    /// # Safety
    /// The processor has the level `S`, and `MODE` says what of the mode gathering knows.
    #[inline(always)]
    pub(super) unsafe fn gather_open<S: Simd, const MODE: Mode>(
        &self,
        runs: &[Run],
        of: GatherTargets<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), Shortage> {
        let candidates = &mut scratch.candidates;
        candidates.clear(false, runs.iter().map(|run| run.slots.len()).sum())?;
        let (to, mut filled) = (candidates.arrays_mut(), ArrayLengths::default());
        // Most walls are far from any water: no box is made for them.
        if !runs.is_empty() {
            // SAFETY: the caller guarantees the level.
            let args = unsafe { self.gather_args::<S::Single>(of) };
            for run in runs {
                let slots = run.slots.clone();
                // SAFETY: the caller guarantees the level; `clear` made room for all runs.
                filled = unsafe { gather::<S::Single, MODE>(&args, slots, &to, filled) };
            }
        }
        // SAFETY: `gather` has written them.
        unsafe { candidates.set_filled(filled) };
        candidates.seal(MODE);
        if has(of.mode, EXACT) {
            self.look_up(candidates)?;
        }
        Ok(())
    }

    /// Gathers the candidates of targets that are all of the same wrap, from the pieces collected
    /// for them; returns the number of the first target among them, where the targets are
    /// candidates.
    ///
    /// # Safety
    /// The processor has the level `S`, and `MODE` says what of the mode gathering knows.
    #[inline(always)]
    unsafe fn gather_pieces<S: Simd, const MODE: Mode>(
        &self,
        of: GatherTargets<'_>,
        scratch: &mut Scratch,
    ) -> Result<Option<usize>, Shortage> {
        let slots = of.slots;
        // SAFETY: the caller guarantees the level.
        let args = unsafe { self.gather_args::<S::Single>(of) };
        let mut seen = SeenThrough::new(args, self.max_radius(of.max_r2));
        let Scratch {
            candidates, pieces, ..
        } = scratch;
        candidates.clear(has(of.mode, SHIFTED), pieces.points())?;
        let to = candidates.arrays_mut();
        let Pieces { pieces, images, .. } = pieces;
        let (mut filled, mut itself) = (ArrayLengths::default(), None);
        // Candidates from here on are seen through the same image.
        let (mut begin, mut image) = (0, 0);
        for piece in &mut *pieces {
            let mut rest = piece.slots.clone();
            // SAFETY: the caller guarantees the level; `clear` made room for all pieces.
            unsafe {
                if has(of.mode, SHIFTED) && piece.image != image {
                    let seen = begin..filled.candidates;
                    put_shifts::<S::Single>(images[image].shift, seen, &to);
                    (begin, image) = (filled.candidates, piece.image);
                }
                let args = seen.of(piece.image, images[piece.image].shift);
                if rest.contains(&slots.start)
                    && self.same_set
                    && images[piece.image].image == [0; 3]
                {
                    // All targets survive the box test, so they stay next to each other.
                    let before = rest.start..slots.start;
                    filled = gather::<S::Single, MODE>(args, before, &to, filled);
                    itself = Some(filled.candidates);
                    rest.start = slots.start;
                }
                filled = gather::<S::Single, MODE>(args, rest, &to, filled);
            }
            piece.end = filled.candidates;
        }
        if has(of.mode, SHIFTED) {
            // SAFETY: as above.
            unsafe { put_shifts::<S::Single>(images[image].shift, begin..filled.candidates, &to) };
        }
        // SAFETY: `gather` has written them.
        unsafe { candidates.set_filled(filled) };
        candidates.seal(MODE);
        if has(of.mode, EXACT) {
            self.look_up(candidates)?;
        }
        if has(of.mode, SHIFTED) && (self.ranked || self.double().is_some()) {
            if has(MODE, PROXIES) {
                candidates.make_exact_room()?;
            }
            let mut begin = 0;
            for piece in pieces {
                let SeenImage { given, vector, .. } = images[piece.image];
                if self.ranked {
                    candidates.rank(begin..piece.end, given > [0; 3]);
                }
                if self.double().is_some() {
                    candidates.set_exact_shift(begin..piece.end, vector);
                }
                begin = piece.end;
            }
        }
        Ok(itself)
    }
}
