//! One value per target, computed on the GPU: counts of neighbours and sums of pair kernels.
//!
//! Fields are sent while positions are sorted. Results come back in pieces into page-locked memory,
//! and workers write one piece to the caller's array while the next is on its way. Counts are `u32`
//! and travel as the bits of `f32`, so that one code path serves both.
//!
//! A part of a job comes back as one piece, not in several: its numbers are merged with those of
//! the CPU backend only when both have ended, so there is nothing to overlap them with.
//!
//! An error of the driver inside `receive` cannot pass through the code that scatters results,
//! which knows no drivers. It is kept in [`GpuArrivals`] and taken out at the end; the scattering
//! code sees [`DeviceLost`].

use super::{
    fields::StagedFields,
    state::{GpuJobError, GpuState},
    types::Program,
};
use crate::backend::{
    Job, StepInput,
    accelerator::{DevicePart, KernelWork, OnResults, PairsFrom, ValueWork},
    split::{GpuDone, Piece},
    transfer::{DeviceLost, ResultStream, numbers_of_piece},
};
use bytemuck::NoUninit;
use nearfield_balance::Strategy;
use nearfield_gpu::{
    self as gpu, Arrivals, Destination, GpuBackend, HostBuffer, ListedPairs, PairCall,
    PairOfPoints, PairScratch,
};
use nearfield_pairs::ListKind;

impl GpuState {
    /// Computes values of all targets and gives them to `receive` as they arrive.
    pub(super) fn values(
        &mut self,
        input: &StepInput<'_>,
        job: Job,
        work: &ValueWork<'_>,
        receive: &mut OnResults<'_>,
    ) -> Result<(), GpuJobError> {
        let targets = input.points_of(job)[0];
        let (len, piece) = (targets * work.width, numbers_of_piece(targets, work.width));
        let mut results = self.backend.host_room(self.results.take(), len)?;
        let bulk = self.bulk_for(input, job)?;
        let strategy = self.begin_sort(input, &input.bounds, bulk)?;
        if let Some(kernel) = work.kernel {
            // Fields come while positions are sorted.
            self.staged.fill(&self.backend, input.cpu, kernel.fields)?;
        }
        self.finish_sort(input)?;
        self.take_filters(input, job)?;
        let pairs = work.kernel.map_or(PairsFrom::Search, |kernel| kernel.pairs);
        let mut kept = match pairs {
            PairsFrom::Search => None,
            _ => Some(self.keep_lists(input, job, strategy, pairs)?),
        };
        // Times of kernels over lists say nothing of a search.
        let begin = if kept.is_none() {
            self.mark_begin()?
        } else {
            None
        };
        let mut end = None;
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
        let backend = &self.backend;
        let computed = self.pair(job).and_then(|of| {
            let over = kept
                .as_mut()
                .map(|kept| kept.of(of, self.since(job, pairs)));
            let on = PairWalk {
                backend,
                of,
                over,
                strategy,
                scratch: &mut scratch,
            };
            on.compute(work, &mut staged, &mut results[..len], piece, |arrivals| {
                end = Some(backend.mark()?);
                // Workers that wait for the device would keep others from their cores.
                arrivals.computed()?;
                drop(span);
                arrivals.give_to(receive)
            })
        });
        (self.scratch, self.staged, self.results) = (scratch, staged, Some(results));
        if let Some(kept) = kept {
            self.kept.insert([job.targets, job.sources], kept);
        }
        computed?;
        Ok(self.book(name, begin, end)?)
    }

    /// Computes the values of a part whose fields were [sent](StagedFields::fill) under the number
    /// `prepared`.
    pub(super) fn values_part(
        &mut self,
        input: &StepInput<'_>,
        part: DevicePart<'_>,
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
            let on = PairWalk {
                backend: &self.backend,
                of,
                over: None,
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
fn program_of<'w>(work: &ValueWork<'w>) -> Option<&'w Program> {
    work.kernel?.program.as_ref().ok()
}

/// Sorted sets and what it takes to walk them.
struct PairWalk<'a> {
    backend: &'a GpuBackend,
    of: PairOfPoints<'a>,
    /// Lists to go over; None for a search.
    over: Option<ListedPairs<'a>>,
    strategy: Strategy,
    scratch: &'a mut PairScratch,
}

impl PairWalk<'_> {
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
            over,
            strategy,
            scratch,
        } = self;
        match program_of(work) {
            Some((program, uniforms)) => {
                let to = Destination::in_pieces(results, piece, |arrivals| receive(arrivals));
                let (call, fields) = (PairCall { program, uniforms }, staged.fields());
                match over {
                    Some(over) => {
                        backend.evaluate_staged_over_lists(over, call, fields, to, scratch)
                    }
                    None => backend.evaluate_staged(of, call, fields, strategy, to, scratch),
                }
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
    fn give_to(&mut self, receive: &mut OnResults<'_>) -> Result<(), gpu::Error> {
        let mut coming = GpuArrivals {
            results: self,
            error: None,
        };
        let received = receive(&mut coming);
        match (received, coming.error) {
            (Ok(()), _) => Ok(()),
            (Err(DeviceLost), Some(error)) => Err(error),
            // It never says so by itself.
            (Err(DeviceLost), None) => Err(gpu::ErrorKind::Unsorted.into()),
        }
    }
}

/// Results that keep the error of the GPU.
struct GpuArrivals<'c, 'r> {
    results: &'c mut (dyn Results<'r> + 'c),
    error: Option<gpu::Error>,
}

impl<'r> ResultStream<'r> for GpuArrivals<'_, 'r> {
    fn arrived(&mut self) -> Result<Option<(usize, &'r [f32])>, DeviceLost> {
        self.results.next().map_err(|error| {
            self.error = Some(error);
            DeviceLost
        })
    }
}
