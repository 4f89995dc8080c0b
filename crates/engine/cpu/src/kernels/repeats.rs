//! Decides whether a traversal of pairs evaluated once takes [notes](super::noted), and keeps them.
//!
//! A program does not say whether another traversal of the same points follows. A traversal takes
//! notes if the points sorted before were traversed more than once; so programs that evaluate one
//! kernel a step take none.
//!
//! # Several threads
//!
//! Calls of a backend from several threads share what it remembers. A traversal takes the notes out
//! while it reads them, and puts them back behind it; another one that begins meanwhile finds none
//! and searches. So no traversal waits for another, and the lock is held for a moment only.
//!
//! # Sets in turn
//!
//! One build is remembered. A program that traverses two sets in turn, each several times before
//! the other, has notes of both; one that changes sets with every traversal has none.
//!
//! **Invariant:** notes are handed out for the build of the grid that they were taken of, and for
//! tasks of the same size.

use std::{mem, sync::Mutex};

/// Builds without notes after notes that were given up. The points of the next steps are about the
/// same, and notes of them would be given up as well.
const RESTS: u32 = 100;

/// The notes of all tasks.
#[derive(Debug)]
pub(crate) struct Notes {
    /// Targets of a task.
    pub(super) task: usize,
    /// The notes of each task.
    pub(super) tasks: Vec<Vec<u32>>,
}

/// The last traversals of pairs that were evaluated once, as a backend remembers them.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    /// The build of the points that were traversed last.
    build: u64,
    /// They were traversed more than once.
    again: bool,
    /// Builds yet to come without notes.
    rests: u32,
    /// Their notes, unless a traversal reads them.
    notes: Option<Notes>,
    /// Memory for notes.
    spare: Vec<Vec<u32>>,
}

/// The source of a traversal's pairs.
#[derive(Debug)]
pub(crate) enum PairSource {
    /// It searches.
    Search,
    /// It searches and writes notes into this memory.
    Note(Mutex<Vec<Vec<u32>>>),
    /// It reads notes.
    Read(Notes),
}

impl Repeats {
    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        let notes = self.notes.iter().flat_map(|notes| &notes.tasks);
        let words: usize = notes.chain(&self.spare).map(Vec::capacity).sum();
        size_of::<u32>() * words
    }

    /// How the next traversal finds its pairs, of the points of a build, in tasks of `task`
    /// targets.
    pub(super) fn next(&mut self, build: u64, task: usize) -> PairSource {
        if self.build == build {
            self.again = true;
            return match self.notes.take() {
                Some(notes) if notes.task == task => PairSource::Read(notes),
                _ => PairSource::Search,
            };
        }
        self.build = build;
        if let Some(notes) = self.notes.take() {
            self.spare = notes.tasks;
        }
        let (spare, again) = (mem::take(&mut self.spare), mem::take(&mut self.again));
        let rests = self.rests > 0;
        self.rests = self.rests.saturating_sub(1);
        if again && !rests {
            PairSource::Note(Mutex::new(spare))
        } else {
            PairSource::Search
        }
    }

    /// Keeps the notes that a traversal has read, or `taken` if it took any; none where some task
    /// gave up. To be called at the end of a traversal that did not fail.
    pub(super) fn keep(&mut self, build: u64, source: PairSource, taken: Option<Notes>) {
        // Meanwhile other points may have been traversed.
        if self.build != build {
            return;
        }
        match source {
            PairSource::Search => {}
            PairSource::Read(notes) => self.notes = Some(notes),
            PairSource::Note(_) if taken.is_some() => self.notes = taken,
            PairSource::Note(_) => self.rests = RESTS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: usize = 256;

    /// Begins and ends a traversal whose tasks take notes unless they give up; returns the source
    /// of its pairs.
    fn traversed(repeats: &mut Repeats, build: u64, gives_up: bool) -> &'static str {
        let source = repeats.next(build, TASK);
        let name = match source {
            PairSource::Search => "search",
            PairSource::Note(_) => "note",
            PairSource::Read(_) => "read",
        };
        let notes = || Notes {
            task: TASK,
            tasks: vec![Vec::new()],
        };
        repeats.keep(build, source, (!gives_up).then(notes));
        name
    }

    #[test]
    fn notes_are_taken_of_points_whose_pairs_were_traversed_again_the_last_time() {
        let (mut repeats, mut build) = (Repeats::default(), 0);
        let mut step = |traversals: usize| {
            build += 1;
            let sources = (0..traversals).map(|_| traversed(&mut repeats, build, false));
            sources.collect::<Vec<_>>()
        };
        assert_eq!(step(1), ["search"]);
        assert_eq!(step(3), ["search"; 3]);
        assert_eq!(step(3), ["note", "read", "read"]);
        assert_eq!(step(1), ["note"]);
        assert_eq!(step(2), ["search"; 2]);
        assert_eq!(step(2), ["note", "read"]);
    }

    #[test]
    fn notes_of_one_build_or_size_of_tasks_are_not_those_of_another() {
        let mut repeats = Repeats::default();
        for _ in 0..2 {
            traversed(&mut repeats, 1, false);
        }
        assert_eq!(traversed(&mut repeats, 2, false), "note");
        assert!(matches!(repeats.next(2, 2 * TASK), PairSource::Search));
        assert_eq!(traversed(&mut repeats, 3, false), "note");
        assert_eq!(traversed(&mut repeats, 3, false), "read");
        assert_eq!(traversed(&mut repeats, 1, false), "note");
        assert_eq!(traversed(&mut repeats, 3, false), "search");
    }

    #[test]
    fn notes_that_were_given_up_are_not_tried_again_at_once() {
        let mut repeats = Repeats::default();
        let mut first = |build| {
            let sources = [true; 2].map(|gives_up| traversed(&mut repeats, build, gives_up));
            assert_eq!(sources[1], "search");
            sources[0]
        };
        assert_eq!(first(1), "search");
        assert_eq!(first(2), "note");
        for build in 0..u64::from(RESTS) {
            assert_eq!(first(3 + build), "search");
        }
        assert_eq!(first(1000), "note");
    }
}
