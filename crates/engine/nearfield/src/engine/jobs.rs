//! Where an engine's jobs are done: asked of [`support`](crate::backend::support) before each, and
//! kept for the report after it.
//!
//! A job goes through three calls. [`Engine::assign`] says where it is to be done, or refuses it.
//! The job runs, on a device with the [input](Engine::input) that borrows the engine's parts. Then
//! [`Engine::ran`] or [`Engine::was_done`] notes where it was done in the end, because a fault may
//! have moved it to the CPU backend.
//!
//! **Invariant:** a job that a device may do is noted only after its results are complete.

use crate::{
    Device, Engine, Error, PointSetId, RadiusRule,
    backend::{
        AttachedDevice, InputSets, Job, JobKind, PairRules, SetInput, StepInput, StepOptions,
        support::{Choice, Feature, choose},
    },
    balance::{Policy, Strategy},
    engine::{
        job_record::JobRecord,
        sets::{Set, pair_filter, pair_of_sets},
    },
    report::JobReport,
};
use nearfield_balance::Controller;
use nearfield_cpu::PairOfSets;
use std::sync::{Arc, MutexGuard, PoisonError};

/// Where a job is to be done.
pub(crate) enum Assigned<'a> {
    /// On the CPU backend, and why.
    Cpu(Arc<str>),
    /// On the device of the engine, which may share it with the CPU backend.
    Device(AttachedDevice<'a>),
}

impl InputSets for Engine {
    fn len(&self) -> usize {
        self.sets.len()
    }

    fn set(&self, slot: usize) -> SetInput<'_> {
        let Set {
            id,
            grid,
            stamp,
            radii,
            ..
        } = &self.sets[slot];
        SetInput {
            id: *id,
            grid,
            stamp: *stamp,
            radii: radii.given(),
            radii_stamp: radii.stamp(),
        }
    }

    fn pair(&self, pair: [usize; 2]) -> Result<PairOfSets<'_>, Error> {
        let rule = self.settings.rule;
        pair_of_sets(&self.backend, &self.sets, rule, &self.filters, pair)
    }

    fn rules(&self, pair: [usize; 2]) -> Result<PairRules<'_>, Error> {
        let [targets, sources] = pair.map(|slot| &self.sets[slot]);
        let rule = self.settings.rule;
        Ok(PairRules {
            filter: pair_filter(&self.sets, &self.filters, pair)?,
            radii: rule.choose(
                || targets.given_radii(targets.id, rule),
                || sources.given_radii(sources.id, rule),
            )?,
            cutoffs: self.filters.stamp(),
            stamps: [targets, sources].map(Set::stamps),
        })
    }
}

impl Engine {
    /// The input of a backend: the parts of this engine that it needs.
    ///
    /// Made anew for every job: it is a few references, however many sets there are.
    pub(crate) fn input(&self) -> StepInput<'_> {
        let all = self.extents.all();
        StepInput {
            sets: self,
            bounds: all.bounds,
            points: all.points,
            delivered: !self.undelivered,
            lattice: &self.lattice,
            cpu: &self.backend,
            options: StepOptions {
                strategy: self.settings.strategy,
                subdivision: self.settings.subdivision,
                lists: self.settings.lists,
                memory_limit: self.settings.memory_limit,
            },
        }
    }

    /// Where something is to be done.
    ///
    /// An engine without a device does everything on the CPU backend, for the reason it was built
    /// or stayed so. One with a device does there what the device supports.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] where the device was named and cannot.
    pub(crate) fn assign(&self, feature: &Feature) -> Result<Assigned<'_>, Error> {
        let choice = choose(self.settings.device, feature)?;
        Ok(match (self.second_backend(), choice) {
            (None, _) => Assigned::Cpu(self.reason.clone()),
            (Some(_), Choice::Cpu(unsupported)) => Assigned::Cpu(unsupported.to_string().into()),
            (Some(device), Choice::AsAsked) => Assigned::Device(device),
        })
    }

    /// Where a job of a pair of sets, by slot, is to be done: on the device if it has the filters
    /// of the pair and the job's own feature.
    ///
    /// # Errors
    /// As [`assign`](Self::assign).
    pub(crate) fn assign_pair(
        &self,
        feature: &Feature,
        pair: [usize; 2],
    ) -> Result<Assigned<'_>, Error> {
        let filter = self.filter_feature(pair);
        let filtered = filter.is_some() || self.settings.rule != RadiusRule::Uniform;
        let by_cells = self.filtered_by_cells(filtered);
        for needed in filter.into_iter().chain(by_cells) {
            if let Assigned::Cpu(reason) = self.assign(&needed)? {
                return Ok(Assigned::Cpu(reason));
            }
        }
        self.assign(feature)
    }

    /// What a job that is `filtered` needs of a strategy that goes by cells.
    pub(crate) fn filtered_by_cells(&self, filtered: bool) -> Option<Feature> {
        let strategy = self.settings.strategy;
        let by_cells = matches!(strategy, Strategy::ChildPerCell | Strategy::ChildAggregated);
        (filtered && by_cells).then(|| Feature::FiltersByCells {
            strategy: strategy.name(),
        })
    }

    /// The device of the engine, if it has one, and how it shares jobs with the CPU backend.
    pub(crate) fn second_backend(&self) -> Option<AttachedDevice<'_>> {
        let accelerator = self.accelerator.as_deref()?;
        Some(AttachedDevice {
            accelerator,
            split: self.split.as_ref(),
        })
    }

    /// A job was done on a device, or by the CPU backend in its place for the reason `instead`: a
    /// fault, such as memory that the device lacked or another job that was using it.
    pub(crate) fn ran(&self, job: Job, instead: Option<String>) {
        match instead {
            Some(reason) => self.was_done(job, Device::Cpu, reason.into()),
            None => self.was_done(job, self.asked_device(), self.reason.clone()),
        }
    }

    /// A job was done here, for this reason.
    pub(crate) fn was_done(&self, job: Job, device: Device, reason: Arc<str>) {
        self.job_record().note(job, device, reason);
    }

    /// Where jobs are done that the device of the engine supports.
    ///
    /// A GPU that shares steps is a hybrid device, though its accelerator calls itself a GPU.
    fn asked_device(&self) -> Device {
        let device = self.accelerator.as_ref().map(|one| one.device());
        match (device, &self.split) {
            (Some(Device::Gpu(number)), Some(_)) => Device::Hybrid(number),
            (Some(device), _) => device,
            (None, _) => Device::Cpu,
        }
    }

    /// Where the last job was done; before the first, where jobs will be.
    ///
    /// A device that has failed and not been tried again since counts as the CPU backend.
    pub(crate) fn device(&self) -> Device {
        let failed = (self.accelerator.as_ref()).is_some_and(|device| device.failed());
        if failed {
            return Device::Cpu;
        }
        let last = self.job_record().last();
        last.unwrap_or_else(|| self.asked_device())
    }

    /// Reports of the last step of every job.
    ///
    /// How a job was divided is missing while another thread runs a job of this engine: the report
    /// does not wait for it.
    pub(crate) fn job_reports(&self) -> Vec<JobReport> {
        let divided = self
            .split
            .as_ref()
            .map_or_else(Vec::new, |split| split.reports());
        self.job_record().reports(divided)
    }

    pub(super) fn job_record(&self) -> MutexGuard<'_, JobRecord> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From the next step on another policy divides jobs between both backends; it has learnt
    /// nothing yet. Without effect on other devices than hybrid and emulated ones.
    ///
    /// ```
    /// use nearfield::{balance::Policy, prelude::*};
    /// let device = "emulated:speed=8".parse::<Device>()?;
    /// let mut engine = Engine::builder(0.5).device(device).build()?;
    /// let points = engine.add_point_set(&[[0.0f32; 3], [0.25, 0.0, 0.0]])?;
    /// engine.set_policy(Policy::Fixed { theta: 8.0 })?;
    /// engine.find_neighbors()?;
    /// let split = engine.report().jobs[0].split.clone().expect("both backends share the lists");
    /// assert_eq!(split.policy, Policy::Fixed { theta: 8.0 });
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// Plans are kept and cut anew by the first decision of the new policy, so changing it costs no
    /// pass over points, except to and from [`Policy::Band`], which orders bricks otherwise.
    ///
    /// # Errors
    /// [`ErrorKind::Schedule`](crate::ErrorKind::Schedule) when the policy's numbers contradict
    /// each other; the old one then stays.
    pub fn set_policy(&mut self, policy: Policy) -> Result<(), Error> {
        Controller::new(policy)?;
        self.settings.policy = policy;
        match &mut self.split {
            Some(split) => split.restart(self.settings.division()),
            None => Ok(()),
        }
    }
}

/// A job for a pair of sets.
pub(crate) fn job(kind: JobKind, targets: PointSetId, sources: PointSetId) -> Job {
    Job {
        kind,
        targets: targets.slot(),
        sources: sources.slot(),
    }
}
