//! Neighbour lists found on the GPU, written into page-locked memory of the host.
//!
//! The device counts first, so storage of the right size is lent before entries are written. Starts
//! and lengths come first; the host checks that every list lies within the storage while entries
//! are still on their way. After that, lists of a GPU are read like any others.
//!
//! Nothing is truncated, because the device counts every list before any entry is written. That
//! costs a pass, and needs no guess of the number of neighbours. A part of a job is written into
//! room that was lent before it was counted; if that is too short the part is given up before its
//! first entry, and the caller is told how many there are.
//!
//! The device's storage goes back into the state however a job ends: it is taken out only because
//! both have to be borrowed at once.

use super::{
    host::Lender,
    state::{State, Trouble},
};
use crate::backend::{
    Job, StepInput,
    accelerator::{Part, Placed},
    split::{GpuDone, Piece},
};
use nearfield_cpu::{Inside, NeighborLists};
use nearfield_gpu as gpu;
use nearfield_grid::HostLists;
use tracing::field::Empty;

impl State {
    /// Writes the lists of a pair of sets.
    pub(super) fn find(
        &mut self,
        input: &StepInput<'_>,
        job: Job,
        lists: &mut NeighborLists,
    ) -> Result<(), Trouble> {
        let kind = input.options.lists;
        let strategy = self.sort(input)?;
        let mut storage = std::mem::take(&mut self.lists);
        let span = tracing::debug_span!("gpu.search", pairs = Empty).entered();
        // What goes wrong on the host says nothing of the device's time.
        let mut of_host = Ok(());
        let received = self.booked(job, |state, _| {
            let pair = state.pair(job)?;
            let backend = &state.backend;
            let pairs = backend.measure_lists(pair, kind, strategy, &mut storage)?;
            span.record("pairs", pairs);
            let (targets, lender) = (pair.targets.len(), Lender(backend));
            let fill =
                |start: &mut [u64], count: &mut [u32], entries: &mut [u32], inside: Inside| {
                    let to = HostLists {
                        start,
                        count,
                        entries,
                    };
                    let mut checked = None;
                    // While entries are still coming.
                    let placed = |start: &mut [u64], count: &mut [u32]| {
                        checked = Some(inside.check(start, count));
                    };
                    backend.deliver_lists(pair, &mut storage, to, None, placed)?;
                    Ok(checked)
                };
            lists.work_on(input.cpu);
            let receive = || lists.receive(targets, pairs, &lender, fill);
            match input.cpu.install(receive) {
                Err(Trouble::Gpu(error)) => Err(error),
                Err(trouble) => {
                    of_host = Err(trouble);
                    Ok(())
                }
                Ok(()) => Ok(()),
            }
        });
        self.lists = storage;
        received?;
        of_host
    }

    /// Writes the lists of a part; `placed` gets all starts and lengths as soon as they are there.
    pub(super) fn find_part<'a>(
        &mut self,
        input: &StepInput<'_>,
        part: Part<'_>,
        to: HostLists<'a>,
        placed: &mut Placed<'_, 'a>,
    ) -> Result<GpuDone, gpu::Error> {
        let _span = tracing::debug_span!("gpu.search").entered();
        let asked = part.began.elapsed();
        let begin = self.backend.mark()?;
        let (shares, strategy) = self.gather(input, part)?;
        let mut storage = std::mem::take(&mut self.lists);
        let kind = input.options.lists;
        let found = (|| {
            let mut done = GpuDone::of(shares.share.bounds(), strategy);
            let pair = self.pair_of_share(part, &shares.share)?;
            let backend = &self.backend;
            done.pairs = tracing::debug_span!("gpu.measure")
                .in_scope(|| backend.measure_lists(pair, kind, strategy, &mut storage))?;
            let HostLists {
                start,
                count,
                entries,
            } = to;
            let Some(entries) = entries.get_mut(..done.pairs as usize) else {
                done.fitted = false;
                return Ok(done);
            };
            let to = HostLists {
                start,
                count,
                entries,
            };
            let span = tracing::debug_span!("gpu.deliver").entered();
            let placed = |start, count| placed(start, count);
            let since = Some(&begin);
            let delivered = backend.deliver_lists(pair, &mut storage, to, since, placed)?;
            drop(span);
            done.pieces = delivered
                .iter()
                .map(|part| Piece {
                    behind: part.slots.end as u64,
                    begin_ms: f64::from(part.compute[0]),
                    computed_ms: f64::from(part.compute[1]),
                    end_ms: f64::from(part.download[1]),
                })
                .collect();
            done.place(part.began, asked);
            Ok(done)
        })();
        self.lists = storage;
        self.shares = shares;
        found
    }
}
