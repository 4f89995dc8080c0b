//! Pair kernels over the neighbours that filters keep.
//!
//! The pairs of a target are laid out as those of a stored list are ([`ListedPairs`]), and the
//! kernel runs over them by the loop that packed neighbours have anyway ([`ReducePacked`]). So a
//! kernel adds little code for filters, and what finds and filters pairs is compiled once for all
//! kernels ([`lay_out`]). Values of sources are read from the caller's arrays, for neighbours only:
//! sorting them first would pay where a source is a neighbour of many targets, which filters make
//! fewer.
//!
//! # Targets that are not chosen
//!
//! Their results are not touched, neither overwritten nor combined. A caller that wants zeros there
//! writes them before. A chosen target without neighbours gets the identity of the reduction, as in
//! any traversal.
//!
//! # Order of the sums
//!
//! Contributions are added in the order of the target's list, to sixteen partial sums. So a sum
//! depends on the points and the filters alone. Pairs of a symmetric kernel are evaluated from
//! either side.

use super::{
    fields::{Fields, gather_fields, room, target_value},
    reduce::{MAX_OUTPUTS, Neighbors, ReducePacked, Results},
};
use crate::{
    candidates::{aligned::Aligned, scratch::Scratch, walk::Walk},
    error::Error,
    filter::visit::TakePairs,
    pool::CpuBackend,
    sets::pairs::PairsOfImage,
    simd::{LANES, level::SimdLevel, with_level_on},
    stored::listed::ListedPairs,
};
use nearfield_grid::memory::Shortage;
use nearfield_pairs::{Channels, PairKernel};
use std::ops::{ControlFlow, Range};

/// A traversal of the pairs that filters keep.
pub(super) struct FilteredTraversal<'a, K: PairKernel> {
    /// The kernel.
    kernel: &'a K,
    /// The search.
    walk: Walk<'a>,
    /// Values of the points.
    fields: Fields<'a>,
    /// Where results go.
    results: Results<'a, K::Output>,
}

impl<'a, K: PairKernel> FilteredTraversal<'a, K> {
    /// A traversal of a search with filters. Fields and results have been checked.
    pub(super) fn new(
        kernel: &'a K,
        walk: Walk<'a>,
        fields: Fields<'a>,
        results: Results<'a, K::Output>,
    ) -> Self {
        Self {
            kernel,
            walk,
            fields,
            results,
        }
    }

    /// Evaluates the kernel for every chosen target.
    pub(super) fn run(&self, backend: &CpuBackend) -> Result<(), Error> {
        let level = backend.level();
        backend.for_each_task(self.walk.targets.points().len(), &|slots, scratch| {
            let mut gathered = std::mem::take(&mut scratch.gathered);
            let mut evaluate = |target, listed: &mut ListedPairs| {
                self.evaluate(level, target, listed, &mut gathered)
            };
            lay_out(&self.walk, level, slots, scratch, &mut evaluate);
            scratch.gathered = gathered;
        })
    }

    /// Evaluates the kernel for the pairs of one target.
    fn evaluate(
        &self,
        level: SimdLevel,
        target: usize,
        listed: &mut ListedPairs,
        gathered: &mut Aligned<f32>,
    ) -> Result<(), Shortage> {
        let count = listed.sources().len();
        let stride = (count + LANES).next_multiple_of(LANES);
        let channels = room(gathered, K::Source::COUNT, stride)?;
        let mut sums = [0.0; MAX_OUTPUTS];
        // SAFETY: there is room for all pairs.
        unsafe { gather_fields(self.fields.sources, listed.sources(), channels) };
        let (d, d2) = listed.pointers();
        // There is room for the pairs and LANES more, in `listed` as in the channels.
        let reduce = ReducePacked {
            count,
            neighbors: &Neighbors { d, d2, channels },
            value: target_value::<K::Target>(self.fields.targets, target),
            sums: &mut sums,
        };
        with_level_on(level, reduce, self.kernel);
        let value = K::Output::read(|channel| sums[channel]);
        // SAFETY: every target lies in one task, and is visited once there.
        unsafe { self.results.put::<K>(target, value) };
        Ok(())
    }
}

/// Evaluates a kernel for the pairs of a target, by its index.
type Evaluate<'a> = dyn FnMut(usize, &mut ListedPairs) -> Result<(), Shortage> + 'a;

/// Lays out the pairs of every chosen target in `slots`, and evaluates them. Memory that was
/// refused is noted in `scratch`.
fn lay_out(
    walk: &Walk<'_>,
    level: SimdLevel,
    slots: Range<usize>,
    scratch: &mut Scratch,
    evaluate: &mut Evaluate<'_>,
) {
    let mut listed = std::mem::take(&mut scratch.listed);
    listed.clear();
    let mut laying = LayingOut {
        index: walk.targets.points().index(),
        listed: &mut listed,
        target: None,
        evaluate,
        failed: None,
    };
    walk.visit_kept(level, slots, scratch, &mut laying);
    if scratch.failed.is_none() && laying.finish().is_break() {
        scratch.failed = laying.failed;
    }
    scratch.failed = scratch.failed.or(laying.failed);
    scratch.listed = listed;
}

/// The pairs of one target after the other.
struct LayingOut<'a, 'b> {
    /// The caller's index of every sorted target.
    index: &'a [u32],
    /// The pairs so far.
    listed: &'a mut ListedPairs,
    /// The target, if it is chosen.
    target: Option<usize>,
    /// Takes them.
    evaluate: &'a mut Evaluate<'b>,
    /// Memory that was refused.
    failed: Option<Shortage>,
}

impl TakePairs for LayingOut<'_, '_> {
    fn reads_geometry(&self) -> bool {
        true
    }

    fn target(&mut self, slot: usize, chosen: bool) -> ControlFlow<()> {
        self.finish()?;
        self.target = chosen.then_some(self.index[slot] as usize);
        ControlFlow::Continue(())
    }

    fn pairs(&mut self, all: PairsOfImage<'_>, kept: &[u32]) -> Result<(), Shortage> {
        for &at in kept {
            let (source, pair) = all.at(at as usize);
            self.listed.push(source, pair);
        }
        self.listed.take_failed().map_or(Ok(()), Err)
    }
}

impl LayingOut<'_, '_> {
    /// Evaluates the pairs of the target. Breaks if memory was refused.
    fn finish(&mut self) -> ControlFlow<()> {
        let Some(target) = self.target.take() else {
            return ControlFlow::Continue(());
        };
        let done = match self.listed.make_room_behind() {
            Ok(()) => (self.evaluate)(target, self.listed),
            Err(shortage) => Err(shortage),
        };
        self.listed.clear();
        self.failed = done.err();
        match self.failed {
            None => ControlFlow::Continue(()),
            Some(_) => ControlFlow::Break(()),
        }
    }
}
