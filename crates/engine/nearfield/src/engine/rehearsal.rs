//! Jobs of an engine, done once ahead for a device that is new to it.
//!
//! The first job of a kind on a GPU compiles or loads programs and page-locks memory, which takes
//! up to a thousand times as long as the job. So the thread that starts a GPU for
//! [`Device::Auto`](crate::Device::Auto) also does what the engine has done so far: it has a copy
//! of the positions in an engine of its own with one worker, and runs every job first on the GPU
//! alone and then on both backends. Results are dropped, and the memory that they came through goes
//! to the engine together with the GPU. Sets of other sizes later need other memory, and filters
//! and radii of single points are left out, as are lists within a memory limit.
//!
//! **Invariant:** a rehearsal changes nothing but what is kept for speed. A job of it that fails
//! leaves the others, and the device decides by its own rules whether it can go on.

use super::{
    EngineParts,
    job_record::{KernelShape, RehearsedJob},
    later::{Rehearsed, Stop},
    point_data::EngineFilters,
    search_pairs::SlotPair,
};
use crate::{
    Builder, Engine, Error, RadiusRule,
    backend::{
        Job, JobKind,
        accelerator::{Accelerator, KernelWork, Numbers, PairsFrom},
        split::Split,
        values::Values,
    },
};
use nearfield_cpu::{CpuBackend, Fields, PairOfSets};
use nearfield_grid::{
    Lattice,
    memory::{collected, filled, zeroed},
};
use nearfield_pairs::Field;
use tracing::subscriber::{NoSubscriber, with_default};

/// Steps of both backends in a rehearsal: the first one makes plans.
const SHARED_STEPS: usize = 2;

/// What a rehearsal needs of an engine.
#[derive(Debug)]
pub(crate) struct Rehearsal {
    settings: Builder,
    lattice: Lattice,
    /// By slot, as they are sorted: the copy is made within a step, and in this order it reads and
    /// writes from front to back. Results are dropped, so theirs does not matter.
    sets: Vec<Vec<[f32; 3]>>,
    jobs: Vec<RehearsedJob>,
}

impl Rehearsal {
    /// What the engine has done so far, with its positions of now.
    ///
    /// # Errors
    /// When there is no memory for the positions.
    pub(super) fn of(engine: &Engine) -> Result<Self, Error> {
        let mut sets = Vec::new();
        for slot in 0..engine.sets.len() {
            let points = engine.sets[slot].grid.get(&engine.backend)?.points();
            let sorted = (0..points.len()).map(|slot| points.position(slot));
            sets.push(collected(sorted, "positions for a rehearsal")?);
        }
        Ok(Self {
            settings: Builder {
                threads: 1,
                rule: RadiusRule::Uniform,
                cutoffs: None,
                nearest: None,
                memory_limit: None,
                ..engine.settings.clone()
            },
            lattice: engine.lattice.clone(),
            sets,
            jobs: engine.jobs_to_rehearse(),
        })
    }

    /// Does the jobs on a device, until `stop` says so. They are not the program's, and belong in
    /// no trace.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(super) fn run(
        self,
        device: Box<dyn Accelerator>,
        stop: &Stop,
    ) -> Result<Rehearsed, String> {
        with_default(NoSubscriber::default(), || self.run_untraced(device, stop))
    }

    fn run_untraced(self, device: Box<dyn Accelerator>, stop: &Stop) -> Result<Rehearsed, String> {
        let backend = CpuBackend::new(1).map_err(|error| error.to_string())?;
        let parts = EngineParts {
            filters: EngineFilters::default(),
            backend,
            accelerator: Some(device),
            split: None,
            later: None,
            reason: "a rehearsal".into(),
        };
        let mut engine = Engine::new(self.settings, self.lattice, parts);
        let mut done = self.sets.iter().try_for_each(|positions| {
            let added = engine.add_point_set(positions);
            added.map(drop)
        });
        for step in 0..=SHARED_STEPS {
            if step == 1 {
                engine.split = Some(Split::new(engine.settings.division(), None));
            }
            if done.is_ok() {
                done = engine.rehearsed_step(&self.jobs, &self.sets, stop);
            }
        }
        // The device can go on all the same; if not, it says so itself.
        if let Err(error) = done {
            tracing::info!(%error, "not all jobs were rehearsed on the new GPU");
        }
        engine.into_rehearsed(self.jobs)
    }
}

impl Engine {
    /// Does the jobs, and places positions again: they come through two copies in turn.
    fn rehearsed_step(
        &mut self,
        jobs: &[RehearsedJob],
        sets: &[Vec<[f32; 3]>],
        stop: &Stop,
    ) -> Result<(), Error> {
        for job in jobs.iter().take_while(|_| !stop.is_set()) {
            self.rehearse(job)?;
        }
        for (slot, positions) in sets.iter().enumerate().take_while(|_| !stop.is_set()) {
            self.update(self.slots.id(slot), positions)?;
        }
        Ok(())
    }

    /// Does a job and drops its results. Lists that are current stay, and are not found again.
    ///
    /// # Errors
    /// Those of the job.
    pub(super) fn rehearse(&mut self, rehearsed: &RehearsedJob) -> Result<(), Error> {
        let RehearsedJob { job, kernel } = rehearsed;
        let id = |slot: usize| self.slots.id(slot);
        match job.kind {
            JobKind::Lists => {
                let pair = [job.targets as u32, job.sources as u32];
                let record = self.pairs.record(pair)?;
                if record.current {
                    return Ok(());
                }
                let mut lists = record.take_lists();
                let found = self.find_pair(*job, &mut lists);
                self.pairs.record(pair)?.lists = lists;
                found
            }
            JobKind::Counts => {
                let counts = self.count_neighbors(id(job.targets), id(job.sources));
                counts.map(drop)
            }
            _ => match kernel {
                Some(kernel) => self.rehearse_kernel(*job, kernel),
                None => Ok(()),
            },
        }
    }

    /// Runs a kernel over fields of zeros.
    fn rehearse_kernel(&self, job: Job, kernel: &KernelShape) -> Result<(), Error> {
        let (Some(device), JobKind::Kernel(name)) = (self.second_backend(), job.kind) else {
            return Ok(());
        };
        let points = [job.targets, job.sources].map(|slot| self.sets[slot].grid.len());
        let mut zeros = [Vec::new(), Vec::new()];
        for side in 0..2 {
            for channels in &kernel.channels[side] {
                zeros[side].push(zeroed::<f32>(points[side] * channels, "fields of zeros")?);
            }
        }
        let mut fields = [Vec::new(), Vec::new()];
        for side in 0..2 {
            for (zeros, &channels) in zeros[side].iter().zip(&kernel.channels[side]) {
                let (bytes, stride) = (bytemuck::cast_slice(zeros), size_of::<f32>() * channels);
                let field = Field::strided(bytes, 0, stride, points[side], channels);
                fields[side].extend(field.ok());
            }
        }
        let rehearsed = RehearsedKernel {
            work: KernelWork {
                name,
                program: kernel.program.clone(),
                fields: Fields {
                    targets: &fields[0],
                    sources: &fields[1],
                },
                pairs: PairsFrom::Search,
            },
            width: kernel.width,
        };
        if device.accelerator.check_kernel(&rehearsed.work).is_err() {
            // The first step of the engine says why.
            return Ok(());
        }
        let mut values = filled(points[0], 0.0, "values that are dropped")?;
        device.evaluate(&self.input(), job, &rehearsed, &mut values)?;
        Ok(())
    }

    /// The jobs that were done so far and can be rehearsed.
    pub(super) fn jobs_to_rehearse(&self) -> Vec<RehearsedJob> {
        let jobs = self.job_record().to_rehearse();
        // Lists of the nearest, or within a limit, are other lists.
        let lists = !self.filters.has_nearest() && self.settings.memory_limit.is_none();
        let here = |slot: usize| slot < self.sets.len();
        let kept = jobs.into_iter().filter(|RehearsedJob { job, .. }| {
            here(job.targets) && here(job.sources) && (lists || job.kind != JobKind::Lists)
        });
        kept.collect()
    }

    /// The lists of all active pairs of sets, as jobs.
    pub(super) fn active_lists(&self) -> Vec<RehearsedJob> {
        let lists_of = |(pair, _): (SlotPair, _)| RehearsedJob {
            job: Job {
                kind: JobKind::Lists,
                targets: pair[0] as usize,
                sources: pair[1] as usize,
            },
            kernel: None,
        };
        self.pairs.active(&self.slots).map(lists_of).collect()
    }

    /// The device and the memory of a rehearsal that has ended.
    fn into_rehearsed(mut self, jobs: Vec<RehearsedJob>) -> Result<Rehearsed, String> {
        let lattice = self.lattice.clone();
        let copies = self.sets.iter_mut().map(|set| {
            let last = set.grid.take_copy(&lattice);
            last.into_iter().chain(set.spare_copies.drain(..)).collect()
        });
        Ok(Rehearsed {
            copies: copies.collect(),
            lists: self.pairs.take_lists(),
            jobs: jobs.into_iter().map(|rehearsed| rehearsed.job).collect(),
            device: (self.accelerator.take()).ok_or("the rehearsal has no device")?,
        })
    }
}

/// A kernel whose results are dropped.
struct RehearsedKernel<'a> {
    work: KernelWork<'a>,
    width: usize,
}

impl Numbers for RehearsedKernel<'_> {
    /// A device that computes by the CPU backend's code has nothing to compile.
    fn compute(&self, _: &CpuBackend, _: PairOfSets<'_>, numbers: &mut [f32]) -> Result<(), Error> {
        numbers.fill(0.0);
        Ok(())
    }
}

impl Values for RehearsedKernel<'_> {
    type Value = f32;

    fn width(&self) -> usize {
        self.width
    }

    fn kernel(&self) -> Option<&KernelWork<'_>> {
        Some(&self.work)
    }

    fn combines(&self) -> bool {
        false
    }

    fn evaluate(&self, _: &CpuBackend, _: PairOfSets<'_>, values: &mut [f32]) -> Result<(), Error> {
        values.fill(0.0);
        Ok(())
    }

    fn put(&self, place: &mut f32, numbers: &[f32]) {
        *place = numbers[0];
    }
}
