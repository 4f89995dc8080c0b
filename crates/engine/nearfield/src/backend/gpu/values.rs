//! One value per target, computed on the GPU: counts of neighbours and sums of pair kernels.

use super::State;
use crate::backend::{
    Job, StepInput,
    accelerator::{KernelWork, Part, Receive, ValueWork},
    split::{GpuDone, Piece},
    transfer::{Arriving, Lost, StagedUpload, numbers_of_piece},
};
use bytemuck::NoUninit;
use nearfield_cpu::{CpuBackend, Fields};
use nearfield_gpu::{
    self as gpu, Arrivals, Destination, GpuBackend, HostBuffer, PairOfPoints, PairScratch,
    StagedField, StagedSides, Strategy,
};
use nearfield_pairs::{Field, ListKind};

impl State {
    /// Computes values of all targets and gives them to `receive` as they arrive.
    pub(super) fn values(
        &mut self,
        input: &StepInput<'_>,
        job: Job,
        work: &ValueWork<'_>,
        receive: &mut Receive<'_>,
    ) -> Result<(), gpu::Error> {
        let targets = input.points_of(job)[0];
        let (len, piece) = (targets * work.width, numbers_of_piece(targets, work.width));
        let mut results = self.backend.host_room(self.results.take(), len)?;
        let strategy = self.begin_sort(input)?;
        if let Some(kernel) = work.kernel {
            // Fields come while positions are sorted.
            self.staged.fill(&self.backend, input.cpu, kernel.fields)?;
        }
        self.finish_sort(input)?;
        let mut staged = std::mem::take(&mut self.staged);
        let mut scratch = std::mem::take(&mut self.scratch);
        let name = (job, program_of(work).map(|(program, _)| program));
        let span = match work.kernel {
            Some(KernelWork { name, .. }) => {
                tracing::debug_span!("gpu.evaluate", targets, kernel = name)
            }
            None => tracing::debug_span!("gpu.count"),
        };
        let span = span.entered();
        let computed = self.booked(name, |state, end| {
            let State { backend, .. } = &*state;
            let on = OnGpu {
                backend,
                of: state.pair(job)?,
                strategy,
                scratch: &mut scratch,
            };
            on.compute(work, &mut staged, &mut results[..len], piece, |arrivals| {
                *end = Some(backend.mark()?);
                // Workers that wait for the device would keep others from their cores.
                arrivals.computed()?;
                drop(span);
                arrivals.give_to(receive)
            })
        });
        (self.scratch, self.staged, self.results) = (scratch, staged, Some(results));
        computed
    }

    /// Computes the values of a part whose fields were [sent](StagedFields::fill) under the number
    /// `prepared`.
    pub(super) fn values_part(
        &mut self,
        input: &StepInput<'_>,
        part: Part<'_>,
        work: &ValueWork<'_>,
        prepared: u64,
    ) -> Result<(HostBuffer<f32>, GpuDone), gpu::Error> {
        let targets = input.points_of(part.job)[0];
        let kernel = work.kernel;
        let _span = match kernel {
            Some(KernelWork { name, .. }) => {
                tracing::debug_span!("gpu.evaluate", targets, kernel = name)
            }
            None => tracing::debug_span!("gpu.count"),
        };
        let _span = _span.entered();
        let asked = part.began.elapsed();
        let begin = self.backend.mark()?;
        let len = targets * work.width;
        let mut results = self.backend.host_room(self.results.take(), len)?;
        let (shares, strategy) = self.gather(input, part)?;
        if let Some(kernel) = kernel.filter(|_| self.staged.number() != prepared) {
            // Another job has used the GPU since they were sent.
            self.staged.fill(&self.backend, input.cpu, kernel.fields)?;
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut staged = std::mem::take(&mut self.staged);
        let computed = self.pair_of_share(part, &shares.share).and_then(|of| {
            let on = OnGpu {
                backend: &self.backend,
                of,
                strategy,
                scratch: &mut scratch,
            };
            let wait = |arrivals: &mut dyn Results<'_>| arrivals.wait();
            on.compute(work, &mut staged, &mut results[..len], len, wait)
        });
        let end_ms = f64::from(self.backend.since(&begin)?);
        let mut done = GpuDone::of(shares.share.bounds(), strategy);
        if kernel.is_some() {
            let traversed = scratch.traversed(&begin)?.map(|times| times.map(f64::from));
            let [begin_ms, computed_ms] = traversed.unwrap_or([0.0, end_ms]);
            done.pieces.push(Piece {
                behind: shares.share.len() as u64,
                begin_ms,
                computed_ms,
                end_ms: computed_ms,
            });
            done.place(part.began, asked);
        }
        (self.scratch, self.staged, self.shares) = (scratch, staged, shares);
        computed.map(|()| (results, done))
    }
}

/// The CUDA text of a kernel with its uniforms; none for counts.
fn program_of<'w>(work: &ValueWork<'w>) -> Option<&'w (gpu::PairProgram, Vec<f32>)> {
    work.kernel?.program.as_ref().ok()
}

/// Sorted sets and what it takes to walk them.
struct OnGpu<'a> {
    backend: &'a GpuBackend,
    of: PairOfPoints<'a>,
    strategy: Strategy,
    scratch: &'a mut PairScratch,
}

impl OnGpu<'_> {
    /// Computes values into `results`, which `receive` gets as they arrive.
    fn compute(
        self,
        work: &ValueWork<'_>,
        staged: &mut StagedFields,
        results: &mut [f32],
        piece: usize,
        receive: impl FnOnce(&mut dyn Results<'_>) -> Result<(), gpu::Error>,
    ) -> Result<(), gpu::Error> {
        let Self {
            backend,
            of,
            strategy,
            scratch,
        } = self;
        match program_of(work) {
            Some((program, uniforms)) => {
                let to = Destination::in_pieces(results, piece, |arrivals| receive(arrivals));
                let program = (program, &uniforms[..]);
                backend.evaluate_staged(of, program, staged.fields(), strategy, to, scratch)
            }
            None => {
                let counts = bytemuck::cast_slice_mut::<f32, u32>(results);
                let to = Destination::in_pieces(counts, piece, |arrivals| receive(arrivals));
                backend.count(of, ListKind::Full, strategy, to, scratch)
            }
        }
    }
}

/// Results on their way, of kernels or counts.
trait Results<'r> {
    fn computed(&self) -> Result<(), gpu::Error>;
    fn next(&mut self) -> Result<Option<(usize, &'r [f32])>, gpu::Error>;
    fn wait(&mut self) -> Result<(), gpu::Error>;
}

impl<'r, T: NoUninit> Results<'r> for Arrivals<'r, T> {
    fn computed(&self) -> Result<(), gpu::Error> {
        Arrivals::computed(self)
    }

    fn next(&mut self) -> Result<Option<(usize, &'r [f32])>, gpu::Error> {
        let arrived = self.arrived()?;
        Ok(arrived.map(|(first, piece)| (first, bytemuck::cast_slice(piece))))
    }

    fn wait(&mut self) -> Result<(), gpu::Error> {
        Arrivals::wait(self)
    }
}

impl<'r> dyn Results<'r> + '_ {
    /// Gives results to `receive`, which learns no more than that the GPU has failed.
    fn give_to(&mut self, receive: &mut Receive<'_>) -> Result<(), gpu::Error> {
        let mut coming = Coming {
            results: self,
            error: None,
        };
        let received = receive(&mut coming);
        match (received, coming.error) {
            (Ok(()), _) => Ok(()),
            (Err(Lost), Some(error)) => Err(error),
            // It never says so by itself.
            (Err(Lost), None) => Err(gpu::Error::Unsorted),
        }
    }
}

/// Results that keep the error of the GPU.
struct Coming<'c, 'r> {
    results: &'c mut (dyn Results<'r> + 'c),
    error: Option<gpu::Error>,
}

impl<'r> Arriving<'r> for Coming<'_, 'r> {
    fn arrived(&mut self) -> Result<Option<(usize, &'r [f32])>, Lost> {
        self.results.next().map_err(|error| {
            self.error = Some(error);
            Lost
        })
    }
}

/// Fields on their way to the device, through memory that the GPU reads directly.
#[derive(Debug, Default)]
pub(super) struct StagedFields {
    copy: Option<HostBuffer<f32>>,
    on_device: gpu::StagedFields,
    /// Tells what was sent last from what was before, from 1 on.
    number: u64,
    targets: Vec<StagedField>,
    sources: Vec<StagedField>,
}

impl StagedFields {
    /// Sends the fields of targets and sources to the device, each once.
    pub(super) fn fill(
        &mut self,
        backend: &GpuBackend,
        cpu: &CpuBackend,
        fields: Fields<'_>,
    ) -> Result<(), gpu::Error> {
        self.number += 1;
        let (mut all, mut len) = (Vec::new(), 0);
        self.targets.clear();
        self.sources.clear();
        for (fields, staged) in [
            (fields.targets, &mut self.targets),
            (fields.sources, &mut self.sources),
        ] {
            staged.extend(fields.iter().map(|field| place(field, &mut all, &mut len)));
        }
        let bytes = size_of::<f32>() * len;
        let _span = tracing::debug_span!("gpu.upload", bytes).entered();
        // The memory may be in use until the device says that it expects others.
        backend.expect_fields(&mut self.on_device, len)?;
        let mut copy = backend.host_room(self.copy.take(), len)?;
        let upload = StagedUpload::new(&all, &mut copy, |_| ());
        let sent = upload.send(cpu, |first, numbers| {
            backend.receive_fields(&mut self.on_device, first, numbers)
        });
        self.copy = Some(copy);
        sent
    }

    /// The number of what was sent last.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// What was sent last.
    pub(super) fn fields(&mut self) -> (&mut gpu::StagedFields, StagedSides<'_>) {
        let Self {
            on_device,
            targets,
            sources,
            ..
        } = self;
        (on_device, StagedSides { targets, sources })
    }

    /// Bytes held on the device.
    pub(super) fn bytes(&self) -> usize {
        self.on_device.bytes()
    }
}

/// Where a field comes to lie behind `all` the others, `len` numbers, unless it is one of them.
fn place<'a>(field: &Field<'a>, all: &mut Vec<&'a [f32]>, len: &mut usize) -> StagedField {
    let (values, channels) = (field.values(), field.channels());
    let mut first = 0;
    for known in all.iter() {
        if std::ptr::eq(*known, values) {
            return StagedField { first, channels };
        }
        first += known.len();
    }
    all.push(values);
    *len += values.len();
    StagedField { first, channels }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_sent_once() {
        let velocity = [[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let mass = [7.0f32, 8.0];
        let (mut all, mut len) = (Vec::new(), 0);
        let fields = [
            Field::from(&mass),
            Field::from(&velocity),
            Field::from(&mass),
        ];
        let placed = fields
            .each_ref()
            .map(|field| place(field, &mut all, &mut len));
        let of = |first, channels| StagedField { first, channels };
        assert_eq!(placed, [of(0, 1), of(2, 3), of(0, 1)]);
        assert_eq!(
            (all.concat(), len),
            (vec![7.0, 8.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 8)
        );
    }
}
