//! The record of where the jobs of an engine were done last.
//!
//! It has one entry per kind of job and pair of sets, so it grows with the kinds of jobs that a
//! program does and not with its steps.

use crate::{
    Device,
    backend::{Job, JobKind, gpu::Program},
    report::{JobReport, SplitReport},
};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// A kernel that an engine has run, without its type.
#[derive(Debug, Clone)]
pub(crate) struct KernelShape {
    /// Its text; kernels without one are not recorded.
    pub(crate) program: Result<Program, String>,
    /// Channels of every field of the targets, and of the sources.
    pub(crate) channels: [Vec<usize>; 2],
    /// Numbers of a result.
    pub(crate) width: usize,
}

/// A job to be rehearsed.
#[derive(Debug, Clone)]
pub(crate) struct RehearsedJob {
    pub(crate) job: Job,
    /// Of a job that runs a kernel.
    pub(crate) kernel: Option<KernelShape>,
}

/// Where the jobs of an engine were done last.
#[derive(Debug, Default)]
pub(crate) struct JobRecord {
    /// By job, the last time each was done.
    ///
    /// Ordered, so reports list jobs in the same order every time.
    jobs: BTreeMap<Job, JobPlace>,
    /// Where the very last job was done.
    last: Option<Device>,
    /// Kernels by their jobs, for a GPU that is there later.
    kernels: BTreeMap<Job, KernelShape>,
}

/// Where a job was done, and why there.
#[derive(Debug, Clone)]
struct JobPlace {
    device: Device,
    /// In the words of the report; most jobs of an engine share one text.
    reason: Arc<str>,
}

impl JobRecord {
    /// A job was done.
    pub(super) fn note(&mut self, job: Job, device: Device, reason: Arc<str>) {
        self.last = Some(device);
        self.jobs.insert(job, JobPlace { device, reason });
    }

    /// A job ran a kernel that a GPU can run too; `shape` is asked for once.
    pub(super) fn note_kernel(&mut self, job: Job, shape: impl FnOnce() -> Option<KernelShape>) {
        if let (false, Some(shape)) = (self.kernels.contains_key(&job), shape()) {
            self.kernels.insert(job, shape);
        }
    }

    /// The jobs so far that can be done again without their caller.
    pub(super) fn to_rehearse(&self) -> Vec<RehearsedJob> {
        let jobs = self.jobs.keys().map(|job| RehearsedJob {
            job: *job,
            kernel: self.kernels.get(job).cloned(),
        });
        let kept = jobs.filter(|RehearsedJob { job, kernel }| {
            kernel.is_some() || matches!(job.kind, JobKind::Lists | JobKind::Counts)
        });
        kept.collect()
    }

    /// Where the last job was done; `None` before the first.
    pub(super) fn last(&self) -> Option<Device> {
        self.last
    }

    /// Reports of the last step of every job; `divided` says how two backends shared it.
    pub(super) fn reports(&self, divided: Vec<(Job, SplitReport)>) -> Vec<JobReport> {
        let mut divided: HashMap<Job, _> = divided.into_iter().collect();
        let report = |(job, place): (&Job, &JobPlace)| JobReport {
            job: job.kind.to_string(),
            targets: job.targets,
            sources: job.sources,
            device: place.device,
            reason: place.reason.to_string(),
            split: divided.remove(job),
        };
        self.jobs.iter().map(report).collect()
    }
}
