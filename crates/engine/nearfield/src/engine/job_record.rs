//! The record of where the jobs of an engine were done last.
//!
//! It has one entry per kind of job and pair of sets, so it grows with the kinds of jobs that a
//! program does and not with its steps.

use crate::{
    Device,
    backend::Job,
    report::{JobReport, SplitReport},
};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// Where the jobs of an engine were done last.
#[derive(Debug, Default)]
pub(crate) struct JobRecord {
    /// By job, the last time each was done.
    ///
    /// Ordered, so reports list jobs in the same order every time.
    jobs: BTreeMap<Job, JobPlace>,
    /// Where the very last job was done.
    last: Option<Device>,
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
