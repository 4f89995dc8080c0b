//! A pair kernel evaluated over stored lists.
//!
//! The pairs of a list are laid out and evaluated [`LANES`] at a time. As in fused traversals,
//! contributions are kept in that many partial results and folded in a fixed order, so a sum
//! depends on the lists alone, not on threads or the SIMD level. Half lists of one set give every
//! pair to both of its points ([`half`](super::half)).
//!
//! # Steps per target
//!
//! 1. Lay out the pairs of its list: displacement and squared distance per source.
//! 2. Read the source channels of these pairs from the caller's arrays.
//! 3. Evaluate the kernel for sixteen pairs at a time, and fold the partial results.
//!
//! Nothing is sorted and no grid is built, so a traversal over lists can run at any time after the
//! search, as long as the lists hold every pair within the radius.
//!
//! # Compared with a fused traversal
//!
//! Reading positions and channels through a list is a gather from memory for every pair; a fused
//! traversal reads them once per group of targets. So lists pay only where they are needed for
//! something else, or where the skin of Verlet lists saves most of the searches.

use super::{
    half::HalfLists,
    layout::{Coordinate, Lists},
    pairs::StoredPairs,
};
use crate::{
    candidates::scratch::Scratch,
    error::{Error, ErrorKind},
    filter::{PairFilter, chosen::ChosenPoints},
    kernels::{
        fields::{Fields, Output, gather_fields, room, target_value},
        reduce::{MAX_OUTPUTS, Neighbors, ReducePacked, Results},
    },
    pool::CpuBackend,
    simd::{LANES, Simd, Task, level::SimdLevel, with_level},
};
use nearfield_grid::SharedMut;
use nearfield_pairs::{Channels, ListKind, PairKernel};
use std::ops::Range;

impl CpuBackend {
    /// Evaluates `kernel` for every target over the neighbours that its stored list names; over
    /// half lists of one set, for both points of every pair.
    ///
    /// # Errors
    /// [`ErrorKind::ListsLength`], [`ErrorKind::RadiiLength`], [`ErrorKind::FieldLength`],
    /// [`ErrorKind::FieldChannels`] or [`ErrorKind::OutputLength`] when the arrays do not fit the
    /// sets and the kernel.
    pub fn traverse_lists<K: PairKernel, T: Coordinate>(
        &self,
        kernel: &K,
        pairs: &StoredPairs<'_, T>,
        fields: Fields<'_>,
        output: Output<'_, K::Output>,
    ) -> Result<(), Error> {
        let (targets, sources) = (pairs.targets.len(), pairs.sources.len());
        pairs.radii.check(targets, sources, |radii| radii.len())?;
        let filter = PairFilter {
            cutoffs: pairs.cutoffs,
            chosen: pairs.chosen,
            ..PairFilter::default()
        };
        filter.check([targets, sources], pairs.radius, pairs.kind, pairs.same_set)?;
        fields.check::<K>(targets, sources)?;
        if pairs.same_set && targets != sources {
            return Err(ErrorKind::Sets {
                reason: "they are said to be the same, but differ in their number of points",
            }
            .into());
        }
        let (expected, found) = (targets, pairs.lists.len());
        if found != expected {
            return Err(ErrorKind::ListsLength { found, expected }.into());
        }
        let (values, combine) = output.of_length(expected)?;
        let name = std::any::type_name::<K>();
        let _span = tracing::debug_span!("cpu.traverse_lists", targets, kernel = name).entered();
        let values = SharedMut::new(values);
        let results = Results {
            values: &values,
            combine,
        };
        if pairs.kind == ListKind::Half && pairs.same_set {
            let half = HalfLists {
                kernel,
                lists: pairs.lists,
                pairs: &pairs.walk(),
                fields,
                results,
            };
            return half.run(self);
        }
        let shared = TaskContext {
            kernel,
            lists: &pairs.walk(),
            chosen: pairs.chosen,
            level: self.level(),
            fields,
            results,
        };
        self.for_each_task(targets, &|targets, scratch| {
            let task = ListsTask {
                shared: &shared,
                targets,
                scratch,
            };
            with_level(shared.level, task);
        })
    }
}

/// The state that all tasks share.
struct TaskContext<'a, K: PairKernel> {
    /// The kernel.
    kernel: &'a K,
    /// Lays out the pairs of a target.
    lists: &'a dyn Lists,
    /// The targets that get results, if not all.
    chosen: Option<&'a ChosenPoints>,
    /// The SIMD level.
    level: SimdLevel,
    /// Values of the points.
    fields: Fields<'a>,
    /// Where results go.
    results: Results<'a, K::Output>,
}

/// A range of targets.
struct ListsTask<'a, K: PairKernel> {
    /// The traversal.
    shared: &'a TaskContext<'a, K>,
    /// The targets.
    targets: Range<usize>,
    /// The worker's buffers.
    scratch: &'a mut Scratch,
}

impl<K: PairKernel> Task for ListsTask<'_, K> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let (shared, scratch) = (self.shared, self.scratch);
        let (listed, gathered) = (&mut scratch.listed, &mut scratch.gathered);
        for target in self.targets {
            if shared.chosen.is_some_and(|chosen| !chosen.has(target)) {
                continue;
            }
            shared.lists.lay_out(shared.level, target, listed);
            scratch.failed = listed.take_failed();
            let count = listed.sources().len();
            let stride = (count + LANES).next_multiple_of(LANES);
            let channels = match room(gathered, K::Source::COUNT, stride) {
                Ok(channels) => channels,
                Err(shortage) => {
                    scratch.failed = Some(shortage);
                    break;
                }
            };
            if scratch.failed.is_some() {
                break;
            }
            let mut sums = [0.0; MAX_OUTPUTS];
            // SAFETY: there is room for all of the list and LANES more; the caller guarantees the
            // level.
            unsafe {
                gather_fields(shared.fields.sources, listed.sources(), channels);
                let (d, d2) = listed.pointers();
                let reduce = ReducePacked {
                    count,
                    neighbors: &Neighbors { d, d2, channels },
                    value: target_value::<K::Target>(shared.fields.targets, target),
                    sums: &mut sums,
                };
                S::call_on(reduce, shared.kernel);
            }
            let value = K::Output::read(|channel| sums[channel]);
            // SAFETY: every target lies in one task, and is visited once there.
            unsafe { shared.results.put::<K>(target, value) };
        }
    }
}
