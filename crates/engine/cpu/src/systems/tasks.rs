//! The first pass over all systems: tasks of consecutive systems, and what they find.
//!
//! A task holds about as many points as another, so thousands of small systems keep all workers
//! busy. It searches its systems one after the other on one worker, each [directly](super::direct)
//! or [by cells](super::cells). Systems of many points come first, one by one, each searched by all
//! workers together.
//!
//! # Why 1,024 points
//!
//! A task of small systems takes about a fifth of a millisecond, so that 4,096 systems of 55 points
//! make two hundred tasks, and a worker that begins late does not hold up the others. A task keeps
//! what it finds, some 100 KB, for the second pass.
//!
//! # Errors
//!
//! A task ends at its first error, and the others go on. The error of a search is that of the first
//! task that has one, so it is the same for any number of threads: the first system at fault.
//!
//! **Invariant:** tasks are cut by the numbers of points alone, and a task does not depend on
//! others, so pairs and their order depend on the input alone.

use super::{
    cells::{self, Pairs},
    direct::{Direct, Hits, NotDirect, Scratch, Tags},
    input::{SystemReal, Systems, WHAT},
    quantities::Quantities,
};
use crate::{
    error::{Error, ErrorKind},
    lists::neighbor_lists::ListOrder,
    pool::CpuBackend,
};
use nearfield_grid::{
    Stop,
    memory::{make_room, make_room_for_one},
    parallel,
};
use nearfield_pairs::ListKind;
use std::{
    ops::Range,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Points of a task, about.
const TASK_POINTS: usize = 1024;

/// Maximum number of points of a system that is searched by all pairs, near where searches by cells
/// are as fast (docs/measurements/cpu.md).
pub(super) const MAX_DIRECT: usize = 600;

/// Number of points from which one system of many is searched by all workers together.
const SHARED: usize = 1 << 15;

/// How the pairs of a system were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// Directly.
    Direct(Tags),
    /// By cells; the number among the pairs of the task.
    Cells(usize),
}

/// What a task found.
#[derive(Debug)]
pub(super) struct FoundTask<T> {
    /// Its systems.
    pub(super) systems: Range<usize>,
    /// Pairs of those that were searched directly. Points of others have empty lists.
    pub(super) hits: Hits<T>,
    /// How every system was searched.
    pub(super) by: Vec<By>,
    /// Pairs of those that were searched by cells.
    pub(super) cells: Vec<Pairs>,
    /// Why it ended early.
    error: Option<Error>,
}

/// The tasks of a search, whose memory the next one uses again.
#[derive(Debug)]
pub(super) struct Found<T> {
    tasks: Vec<Mutex<FoundTask<T>>>,
    /// Working memory of workers that are not at work.
    scratch: Mutex<Vec<Scratch<T>>>,
}

impl<T> Default for Found<T> {
    fn default() -> Self {
        Self {
            tasks: Vec::new(),
            scratch: Mutex::default(),
        }
    }
}

impl<T> Default for FoundTask<T> {
    fn default() -> Self {
        Self {
            systems: 0..0,
            hits: Hits::default(),
            by: Vec::new(),
            cells: Vec::new(),
            error: None,
        }
    }
}

/// What is asked of all systems.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) kind: ListKind,
    pub(super) order: ListOrder,
    pub(super) quantities: Quantities,
}

impl<T: SystemReal> Found<T> {
    /// Finds the pairs of all systems, whose shapes were checked.
    ///
    /// # Errors
    /// That of the first system that has one, and [`ErrorKind::Interrupted`].
    pub(super) fn search(
        &mut self,
        backend: &CpuBackend,
        systems: &Systems<'_, T>,
        wanted: Wanted,
    ) -> Result<(), Error> {
        let tasks = self.cut(systems)?;
        let stop = Stop::current();
        let (tasks, scratch) = (&self.tasks[..tasks], &self.scratch);
        // Before the others, which do not wait for all workers.
        for task in tasks {
            let mut task = lock(task);
            if is_shared(systems, task.systems.start) {
                let system = task.systems.start;
                let Wanted {
                    kind,
                    order,
                    quantities,
                } = wanted;
                match cells::search(backend, systems, system, kind, order, quantities) {
                    Ok(pairs) => {
                        task.cells.push(pairs);
                        task.by.push(By::Cells(0));
                    }
                    Err(error) => task.error = Some(error),
                }
            }
        }
        let points = systems.positions.len();
        backend.tasks(tasks.len(), points, &|number| {
            let mut task = lock(&tasks[number]);
            if task.error.is_some() || !task.by.is_empty() || stop.is_asked_now() {
                return;
            }
            let mut own = lock(scratch).pop().unwrap_or_default();
            let done = parallel::alone(|| task.search(backend, systems, wanted, &mut own));
            task.error = done.err();
            lock(scratch).push(own);
        })?;
        if stop.is_asked() {
            return Err(ErrorKind::Interrupted.into());
        }
        let errors = tasks.iter().find_map(|task| lock(task).error.take());
        errors.map_or(Ok(()), Err)
    }

    /// Cuts the systems into tasks; returns their number.
    fn cut(&mut self, systems: &Systems<'_, T>) -> Result<usize, Error> {
        let (mut begin, mut count) = (0, 0);
        while begin < systems.len() {
            let mut end = begin + 1;
            let is_large = |system| is_shared(systems, system);
            while end < systems.len()
                && !is_large(begin)
                && !is_large(end)
                && systems.points_of(&(begin..end + 1)) <= TASK_POINTS
            {
                end += 1;
            }
            if count == self.tasks.len() {
                make_room_for_one(&mut self.tasks, WHAT)?;
                self.tasks.push(Mutex::default());
            }
            let task = self.tasks[count]
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner);
            task.systems = begin..end;
            task.hits.clear();
            task.by.clear();
            task.cells.clear();
            task.error = None;
            make_room(&mut task.by, end - begin, WHAT)?;
            (begin, count) = (end, count + 1);
        }
        // Those behind belong to an earlier search; their memory is given back.
        self.tasks.truncate(count);
        Ok(count)
    }

    /// The tasks, which no worker uses any more.
    pub(super) fn tasks(&mut self) -> impl Iterator<Item = &mut FoundTask<T>> {
        let tasks = self.tasks.iter_mut();
        tasks.map(|task| task.get_mut().unwrap_or_else(PoisonError::into_inner))
    }

    /// Gives back pairs that were found by cells, which are as large as the results.
    pub(super) fn forget_cells(&mut self) {
        self.tasks().for_each(|task| task.cells = Vec::new());
    }
}

impl<T: SystemReal> FoundTask<T> {
    /// Searches all systems of the task on this thread.
    fn search(
        &mut self,
        backend: &CpuBackend,
        systems: &Systems<'_, T>,
        wanted: Wanted,
        scratch: &mut Scratch<T>,
    ) -> Result<(), Error> {
        for system in self.systems.clone() {
            let range = systems.range(system);
            let lists = self.hits.starts.len();
            if range.len() <= MAX_DIRECT {
                let of = systems.system(system)?;
                let direct = Direct {
                    systems,
                    points: range.clone(),
                    of: &of,
                    half: wanted.kind == ListKind::Half,
                    scratch,
                    hits: &mut self.hits,
                };
                match direct.search(backend.level()) {
                    Ok(tags) => {
                        self.by.push(By::Direct(tags));
                        continue;
                    }
                    Err(NotDirect::Cells) => {}
                    Err(NotDirect::Memory(shortage)) => return Err(shortage.into()),
                }
            }
            let Wanted {
                kind,
                order,
                quantities,
            } = wanted;
            let pairs = cells::search(backend, systems, system, kind, order, quantities)?;
            make_room_for_one(&mut self.cells, WHAT)?;
            self.by.push(By::Cells(self.cells.len()));
            self.cells.push(pairs);
            // Every point of the task has a list.
            make_room(&mut self.hits.starts, lists + range.len(), WHAT)?;
            make_room(&mut self.hits.counts, lists + range.len(), WHAT)?;
            self.hits.starts.truncate(lists);
            self.hits.counts.truncate(lists);
            self.hits.starts.resize(lists + range.len(), 0);
            self.hits.counts.resize(lists + range.len(), 0);
        }
        Ok(())
    }
}

/// Whether a system is searched by all workers together: no other system keeps them busy then.
fn is_shared<T>(systems: &Systems<'_, T>, system: usize) -> bool {
    let points = systems.range(system).len();
    points >= SHARED || (systems.len() == 1 && points > MAX_DIRECT)
}

/// A task that panicked left nothing that is read, so poison is ignored.
fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}
