//! A pair kernel evaluated over stored lists.
//!
//! The pairs within the radius are gathered [`LANES`] at a time and evaluated together. As in fused
//! traversals, contributions are kept in that many partial results and folded in a fixed order, so a
//! sum depends on the lists alone, not on threads or the SIMD level. Half lists of one set give every
//! pair to both of its points ([`crate::half_lists`]).

use crate::{
    Coordinate, CpuLane, Error, ListKind, StoredPairs,
    evaluate::{MOST_OUTPUTS, Results, fold_lanes},
    half_lists::HalfLists,
    simd::{LANES, Simd, Task, with_level},
    stored::ListWalk,
    traverse::{Fields, Output, check_fields, target_value},
};
use nearfield_grid::SharedMut;
use nearfield_pairs::{Channels, Pair, PairKernel};
use std::ops::Range;

impl CpuLane {
    /// Evaluates `kernel` for every target over the neighbours that its stored list names; over half
    /// lists of one set, for both points of every pair.
    ///
    /// # Errors
    /// [`Error::ListsLength`], [`Error::RadiiLength`], [`Error::FieldLength`],
    /// [`Error::FieldChannels`] or [`Error::OutputLength`] when the arrays do not fit the sets and
    /// the kernel.
    pub fn traverse_lists<K: PairKernel, T: Coordinate>(
        &self,
        kernel: &K,
        pairs: &StoredPairs<'_, T>,
        fields: Fields<'_>,
        output: Output<'_, K::Output>,
    ) -> Result<(), Error> {
        const {
            assert!(
                K::Output::COUNT <= MOST_OUTPUTS,
                "a kernel has at most 16 outputs"
            )
        };
        let (targets, sources) = (pairs.targets.len(), pairs.sources.len());
        pairs.radii.check((targets, sources), |radii| radii.len())?;
        check_fields("target", fields.targets, targets, K::Target::COUNT)?;
        check_fields("source", fields.sources, sources, K::Source::COUNT)?;
        let (values, combine) = match output {
            Output::Write(values) => (values, false),
            Output::Combine(values) => (values, true),
        };
        let (expected, found) = (targets, pairs.lists.len());
        if found != expected {
            return Err(Error::ListsLength { found, expected });
        }
        let found = values.len();
        if found != expected {
            return Err(Error::OutputLength { found, expected });
        }
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
                pairs,
                walk: pairs.walk(),
                fields,
                results,
            };
            half.run(self);
            return Ok(());
        }
        let shared = Shared {
            kernel,
            walk: pairs.walk(),
            fields,
            results,
        };
        self.for_each_task(targets, |targets, _| {
            let shared = &shared;
            with_level(self.level(), ListsTask { shared, targets });
        });
        Ok(())
    }
}

/// What all tasks share.
struct Shared<'a, K: PairKernel, T> {
    kernel: &'a K,
    walk: ListWalk<'a, T>,
    fields: Fields<'a>,
    results: Results<'a, K::Output>,
}

/// A range of targets.
struct ListsTask<'a, K: PairKernel, T> {
    shared: &'a Shared<'a, K, T>,
    targets: Range<usize>,
}

impl<K: PairKernel, T: Coordinate> Task for ListsTask<'_, K, T> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let shared = self.shared;
        let mut seen = Vec::new();
        for target in self.targets {
            let value = target_value::<K::Target>(shared.fields.targets, target);
            let mut sums = Sums::<K>::new(shared.kernel, value);
            shared.walk.visit(target, &mut seen, &mut |index, pair| {
                let source = target_value::<K::Source>(shared.fields.sources, index as usize);
                sums.push(pair, source);
            });
            shared.put(target, sums.finish());
        }
    }
}

impl<K: PairKernel, T> Shared<'_, K, T> {
    /// Stores the result of a target.
    #[inline(always)]
    fn put(&self, target: usize, mut sums: [f32; MOST_OUTPUTS]) {
        if self.results.combine {
            // SAFETY: every target lies in one task, and is visited once there.
            let old = unsafe { self.results.values.slice_mut(target, target + 1) }[0];
            old.write(|channel, value| {
                sums[channel] = K::REDUCE.combine(value, sums[channel]);
            });
        }
        let value = K::Output::read(|channel| sums[channel]);
        // SAFETY: as above.
        unsafe { self.results.values.write(target, value) };
    }
}

/// Neighbours of one target that wait to be evaluated, and what those before added up to.
struct Sums<'a, K: PairKernel> {
    kernel: &'a K,
    target: K::Target,
    waiting: usize,
    d: [[f32; LANES]; 3],
    d2: [f32; LANES],
    sources: [K::Source; LANES],
    partial: [[f32; LANES]; MOST_OUTPUTS],
}

impl<'a, K: PairKernel> Sums<'a, K> {
    #[inline(always)]
    fn new(kernel: &'a K, target: K::Target) -> Self {
        Self {
            kernel,
            target,
            waiting: 0,
            d: [[0.0; LANES]; 3],
            d2: [0.0; LANES],
            sources: [K::Source::read(|_| 0.0); LANES],
            partial: [[K::REDUCE.identity(); LANES]; MOST_OUTPUTS],
        }
    }

    /// Adds a neighbour.
    #[inline(always)]
    fn push(&mut self, pair: Pair, source: K::Source) {
        let lane = self.waiting;
        for axis in 0..3 {
            self.d[axis][lane] = pair.d[axis];
        }
        self.d2[lane] = pair.d2;
        self.sources[lane] = source;
        self.waiting += 1;
        if self.waiting == LANES {
            for lane in 0..LANES {
                self.evaluate(lane);
            }
            self.waiting = 0;
        }
    }

    /// Adds the contribution of a lane to the partial results.
    #[inline(always)]
    fn evaluate(&mut self, lane: usize) {
        let pair = Pair {
            d: [self.d[0][lane], self.d[1][lane], self.d[2][lane]],
            d2: self.d2[lane],
        };
        let value = self.kernel.pair(pair, self.target, self.sources[lane]);
        value.write(|channel, value| {
            let partial = &mut self.partial[channel][lane];
            *partial = K::REDUCE.combine(*partial, value);
        });
    }

    /// Evaluates what still waits and folds the partial results.
    #[inline(always)]
    fn finish(mut self) -> [f32; MOST_OUTPUTS] {
        for lane in 0..self.waiting {
            self.evaluate(lane);
        }
        let mut sums = [0.0; MOST_OUTPUTS];
        for channel in 0..K::Output::COUNT {
            sums[channel] = fold_lanes::<K>(self.partial[channel]);
        }
        sums
    }
}
