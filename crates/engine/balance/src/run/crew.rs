//! The threads, and one step of theirs.

use super::{
    Progress, Stages,
    stations::{Faults, Step, line},
    sync::bounded,
};
use crate::{Error, GpuSpans, Span};
use nearfield_grid::PerProcess;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::{
    sync::{Mutex, PoisonError},
    time::Instant,
};

/// Buffers that let compute and download overlap.
const MIN_BUFFERS: usize = 2;

/// The threads of a backend with memory of its own, kept between steps. A forked child, which has none of
/// its parent's threads, starts its own at its first step.
#[derive(Debug)]
pub struct Crew {
    buffers: usize,
    threads: PerProcess<Result<Threads, Error>>,
}

/// The threads of one process.
#[derive(Debug)]
struct Threads {
    /// One thread each, so that every stage has one for certain.
    stages: [ThreadPool; 3],
    /// Held while the jobs of a step are queued.
    turn: Mutex<()>,
}

impl Threads {
    fn start() -> Result<Self, Error> {
        let thread = |stage: &str| {
            let name = format!("nearfield-{stage}");
            ThreadPoolBuilder::new()
                .num_threads(1)
                .thread_name(move |_| name.clone())
                .build()
                .map_err(|error| Error::Threads {
                    what: error.to_string(),
                })
        };
        Ok(Self {
            stages: [thread("upload")?, thread("compute")?, thread("download")?],
            turn: Mutex::new(()),
        })
    }
}

impl Crew {
    /// Starts the threads of a backend with as many `buffers` for results between compute and download.
    ///
    /// # Errors
    /// [`Error::Buffers`] for less than two, [`Error::Threads`] when the system refuses a thread.
    pub fn new(buffers: usize) -> Result<Self, Error> {
        if buffers < MIN_BUFFERS {
            return Err(Error::Buffers { buffers });
        }
        Ok(Self {
            buffers,
            threads: PerProcess::new(Ok(Threads::start()?)),
        })
    }

    /// Runs `cpu` on the calling thread while the crew takes `subregions` through their stages;
    /// returns when both have ended. Without subregions no thread is woken.
    ///
    /// `cpu` and other threads may begin further steps: the crew does one after the other. A stage
    /// may not, as the threads that would have to do it are waiting for the stage.
    ///
    /// # Errors
    /// [`Error::Threads`] in a forked child that cannot start threads of its own.
    ///
    /// # Panics
    /// When `cpu` or a stage does, after everything has stopped. The crew remains usable.
    pub fn run<S: Stages, R>(
        &self,
        subregions: &[usize],
        device: &S,
        cpu: impl FnOnce() -> R,
    ) -> Result<(R, Progress<S::Error>), Error> {
        let threads = self.threads.get_or_make(Threads::start);
        let threads = threads.as_ref().map_err(Clone::clone)?;
        let faults = Faults::default();
        let step = Step {
            device,
            subregions,
            faults: &faults,
            began: Instant::now(),
        };
        let mut done = Done::default();
        let (result, cpu) = match subregions.is_empty() {
            true => timed(&step, cpu),
            false => self.overlapped(threads, &step, &mut done, cpu),
        };
        let progress = Progress {
            spans: done.spans(),
            finished: done.finished,
            fault: faults.take_first(),
            cpu,
        };
        Ok((result, progress))
    }

    fn overlapped<S: Stages, R>(
        &self,
        threads: &Threads,
        step: &Step<'_, S>,
        done: &mut Done,
        cpu: impl FnOnce() -> R,
    ) -> (R, Span) {
        let (uploads, computes, downloads) = line(self.buffers, step.subregions.len());
        let (end, ended) = bounded::<()>(1);
        let Done {
            uploaded,
            computed,
            downloaded,
            finished,
        } = done;
        let [first, second, third] = &threads.stages;
        first.in_place_scope(|first| {
            second.in_place_scope(|second| {
                third.in_place_scope(|third| {
                    let turn = threads.turn.lock().unwrap_or_else(PoisonError::into_inner);
                    first.spawn(|_| *uploaded = uploads.run(step));
                    second.spawn(|_| *computed = computes.run(step).0);
                    third.spawn(|_| {
                        let _hangs_up_last = end;
                        (*downloaded, *finished) = downloads.run(step);
                    });
                    drop(turn);
                    let result = timed(step, cpu);
                    // The ends of the scopes sleep at once, except on a thread of another pool: there
                    // they help with its work, which a stage may depend on.
                    if rayon::current_thread_index().is_none() {
                        ended.recv();
                    }
                    result
                })
            })
        })
    }
}

/// When every place was in every stage.
#[derive(Debug, Default)]
struct Done {
    uploaded: Vec<Span>,
    computed: Vec<Span>,
    downloaded: Vec<Span>,
    finished: Vec<bool>,
}

impl Done {
    fn spans(&self) -> Vec<GpuSpans> {
        let stages = self.uploaded.iter().zip(&self.computed);
        stages
            .zip(&self.downloaded)
            .map(|((&upload, &compute), &download)| GpuSpans {
                upload,
                compute,
                download,
            })
            .collect()
    }
}

fn timed<S: Stages, R>(step: &Step<'_, S>, work: impl FnOnce() -> R) -> (R, Span) {
    let start_ms = step.now();
    let result = work();
    let end_ms = step.now();
    (result, Span { start_ms, end_ms })
}
