//! A GPU that is started on a thread of its own while an engine works, and on which the jobs of the
//! engine are [rehearsed](super::rehearsal) there.
//!
//! The driver is searched for when the engine is built, which starts nothing; without one the
//! engine never looks again.
//!
//! **Invariant:** an engine that is dropped while a GPU is being started waits for the thread,
//! because a process must not end in the middle of it; a forked child, which has no such thread,
//! does not.

use super::search_pairs::SlotPair;
use crate::{
    backend::{HostMemory, Job, accelerator::Accelerator, gpu},
    balance::Strategy,
};
use nearfield_cpu::NeighborLists;
use nearfield_grid::Precision;
use std::{
    process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

/// A GPU that an engine may have later.
#[derive(Debug)]
pub(crate) enum LaterGpu {
    /// It was not started yet.
    Possible,
    /// A thread starts it.
    Starting(StartingGpu),
}

/// A GPU, or why it could not be started.
///
/// The text goes into the report as it is.
pub(super) type StartedGpu = Result<Rehearsed, String>;

/// A device after a rehearsal, and the memory that it used.
#[derive(Debug)]
pub(crate) struct Rehearsed {
    pub(crate) device: Box<dyn Accelerator>,
    /// By slot, memory for copies of positions.
    pub(crate) copies: Vec<Vec<HostMemory>>,
    pub(crate) lists: Vec<(SlotPair, NeighborLists)>,
    /// The jobs that were done.
    pub(crate) jobs: Vec<Job>,
}

impl Rehearsed {
    /// The device alone.
    pub(super) fn into_device(self) -> Box<dyn Accelerator> {
        self.device
    }
}

/// A flag by which an engine that is dropped ends a rehearsal early.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A GPU that is being started. Dropping it waits for the thread: a process must not end while the
/// driver starts.
#[derive(Debug)]
pub(crate) struct StartingGpu {
    /// None once it has been joined.
    thread: Option<JoinHandle<StartedGpu>>,
    /// The process that it belongs to: a forked child has no such thread, and would wait for ever.
    process: u32,
    stop: Stop,
}

/// Starts the GPU of a `turn`, counted around those that are there. Engines in `f64` are left to
/// the CPU backend, so it is for `f32`.
///
/// # Errors
/// Why it cannot be started.
pub(super) fn start_gpu(turn: u32, strategy: Strategy) -> Result<Box<dyn Accelerator>, String> {
    let gpus = match turn {
        0 => 1,
        _ => gpu::visible()?.len().max(1),
    };
    gpu::start((turn as usize % gpus) as u32, strategy, Precision::Single)
}

impl StartingGpu {
    /// Begins to `start` a GPU and to rehearse there, which ends early when it is told to stop.
    ///
    /// Returns the system's message if it gives no thread.
    pub(super) fn begin(
        start: impl FnOnce(&Stop) -> StartedGpu + Send + 'static,
    ) -> Result<Self, String> {
        let stop = Stop::default();
        let stopped = stop.clone();
        let thread = thread::Builder::new().name("nearfield-start-gpu".to_owned());
        let handle = thread
            .spawn(move || start(&stopped))
            .map_err(|error| error.to_string())?;
        Ok(Self {
            thread: Some(handle),
            process: process::id(),
            stop,
        })
    }

    /// Whether this process was forked from the one that has the thread.
    fn is_inherited(&self) -> bool {
        self.process != process::id()
    }

    /// Whether [`wait`](Self::wait) returns at once.
    pub(super) fn is_ready(&self) -> bool {
        let finished = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        finished || self.is_inherited()
    }

    /// The GPU, or why there is none.
    ///
    /// Blocks until the thread has ended. A panic of the driver's start is a reason like any other.
    pub(super) fn wait(mut self) -> StartedGpu {
        if self.is_inherited() {
            let why = "the process was forked while it was being started";
            return Err(why.to_owned());
        }
        let Some(handle) = self.thread.take() else {
            return Err("it was not started".to_owned());
        };
        let died = |_| Err("starting it panicked".to_owned());
        handle.join().unwrap_or_else(died)
    }
}

impl Drop for StartingGpu {
    fn drop(&mut self) {
        self.stop.0.store(true, Ordering::Relaxed);
        if let Some(handle) = self.thread.take() {
            if self.is_inherited() {
                // Neither joined nor detached: there is no such thread here.
                std::mem::forget(handle);
            } else {
                let _ = handle.join();
            }
        }
    }
}

impl LaterGpu {
    /// Whether a thread starts it.
    pub(super) fn is_starting(&mut self) -> bool {
        matches!(self, Self::Starting(_))
    }

    /// A GPU later, where there may be one; with the reason for what runs until then.
    ///
    /// Called once, when an engine is built.
    pub(crate) fn find() -> (Option<Self>, String) {
        match gpu::find_driver() {
            Err(missing) => (None, format!("the CPU backend: {missing}")),
            Ok(()) => {
                let reason =
                    "the CPU backend until a GPU is ready, which is started at the second step";
                (Some(Self::Possible), reason.to_owned())
            }
        }
    }
}
