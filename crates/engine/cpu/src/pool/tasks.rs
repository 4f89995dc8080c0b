//! Deals a job out to the workers as tasks: consecutive ranges of targets.
//!
//! Tasks are taken one by one, because some hold much more work than others, and of a share most
//! hold none. Their bounds depend on the number of targets alone, so sums do not depend on the
//! number of threads. A task that is refused memory notes it in its scratch; the tasks that follow
//! are then skipped, and the call fails with the bytes. So does a call that its caller
//! [ends early](nearfield_grid::interruptible), which tasks notice between groups of targets.
//!
//! # Why 1,024 targets
//!
//! A task of 1,024 targets takes about a tenth of a millisecond, so a million points make a
//! thousand tasks: enough that the last ones do not leave workers idle, and each long enough that
//! taking it costs nothing. Cells that are cut by the end of a task are gathered twice.

use super::{CpuBackend, workers::Crew};
use crate::{
    candidates::scratch::Scratch,
    error::{Error, ErrorKind},
};
use nearfield_grid::{
    Stop,
    memory::{Shortage, with_room},
    parallel::{self, PoolLoops},
};
use rayon::prelude::*;
use std::{ops::Range, sync::OnceLock};

/// Sorted targets of a task: few enough to balance, and so many that the cells cut at the ends of a
/// task do not matter.
pub(crate) const TASK: usize = 1024;

impl CpuBackend {
    /// Calls `task` for consecutive ranges of `0..len` on all workers. A trait object, so that this
    /// function is not compiled again for every kernel.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`] where a task [says so](Scratch::failed), and
    /// [`ErrorKind::Interrupted`]; some tasks are then not done.
    /// [`ErrorKind::Threads`] if the system does not start the threads
    /// that were asked for; no task is done then.
    pub(crate) fn for_each_task(
        &self,
        len: usize,
        task: &(dyn Fn(Range<usize>, &mut Scratch) + Sync),
    ) -> Result<(), Error> {
        let (refused, tasks) = (EarlyEnd::new(), len.div_ceil(TASK));
        self.workers.install_tasks(tasks, len, |crew| {
            parallel::tasks(tasks, &|number| {
                let begin = number * TASK;
                let slots = begin..(begin + TASK).min(len);
                refused.with_scratch(crew, |scratch| task(slots, scratch));
            });
        })?;
        refused.into_result()
    }

    /// Calls `task` with every number below `tasks`, for `points` points in all, on all workers if
    /// that is worth it.
    ///
    /// # Errors
    /// [`ErrorKind::Threads`] if the system does not start the threads that were asked for; no task
    /// is done then.
    pub(crate) fn tasks(
        &self,
        tasks: usize,
        points: usize,
        task: &(dyn Fn(usize) + Sync),
    ) -> Result<(), Error> {
        self.workers
            .install_tasks(tasks, points, |_| parallel::tasks(tasks, task))
    }

    /// Returns the results of `task` for consecutive ranges of `size` of `len` targets, in order.
    ///
    /// # Errors
    /// As [`for_each_task`](Self::for_each_task).
    pub(crate) fn map_tasks<R: Send + Default>(
        &self,
        len: usize,
        size: usize,
        task: &(dyn Fn(Range<usize>, &mut Scratch) -> R + Sync),
    ) -> Result<Vec<R>, Error> {
        let (refused, tasks) = (EarlyEnd::new(), len.div_ceil(size));
        let mut results = with_room(tasks, "the results of tasks")?;
        self.workers.install_tasks(tasks, len, |crew| {
            (0..tasks)
                .into_par_iter()
                .with_max_len(1)
                .map(|number| {
                    let begin = number * size;
                    let slots = begin..(begin + size).min(len);
                    (refused.with_scratch(crew, |scratch| task(slots, scratch))).unwrap_or_default()
                })
                .put_into(&mut results);
        })?;
        refused.into_result().map(|()| results)
    }
}

/// Why a job ends early: memory was refused to a task, or the caller stopped it.
///
/// One per job, on the stack of the call; tasks share it.
struct EarlyEnd {
    /// The first memory that was refused.
    memory: OnceLock<Shortage>,
    /// The flag of the call that began the job, which may be another than that of the worker.
    stop: Stop,
}

impl EarlyEnd {
    /// For a job of the call that this thread works for.
    fn new() -> Self {
        Self {
            memory: OnceLock::new(),
            stop: Stop::current(),
        }
    }

    /// Does a task, unless the job ends early. None where it does.
    fn with_scratch<R>(&self, crew: &Crew, task: impl FnOnce(&mut Scratch) -> R) -> Option<R> {
        if self.memory.get().is_some() || self.stop.is_asked_now() {
            return None;
        }
        let mut scratch = crew.scratch().pop().unwrap_or_default();
        scratch.stop = self.stop.clone();
        let result = task(&mut scratch);
        if let Some(shortage) = scratch.failed.take() {
            // The memory of this scratch is given back rather than kept: others may need it. Later
            // shortages are dropped.
            let _ = self.memory.set(shortage);
            return None;
        }
        scratch.stop = Stop::default();
        crew.scratch().push(scratch);
        Some(result)
    }

    /// The reason as an error.
    fn into_result(self) -> Result<(), Error> {
        if self.stop.is_asked() {
            return Err(ErrorKind::Interrupted.into());
        }
        (self.memory.into_inner()).map_or(Ok(()), |short| Err(short.into()))
    }
}
