//! Estimates the cost of a search or a traversal, for spans.
//!
//! Work is counted in pairs to test: occupancy × candidates, summed over the cells. Counting all of
//! them would cost as much as a small search, so a sample of 64 targets represents all, and nothing
//! is counted without a subscriber.
//!
//! Traces show the expected next to the measured work, which helps to judge the balance between
//! backends.
//!
//! **Invariant:** counting changes nothing and costs at most 64 walks of a cell's runs.

use super::walk::Walk;
use nearfield_grid::Run;
use tracing::Span;

/// Targets whose candidates are counted.
const SAMPLE: usize = 64;

impl Walk<'_> {
    /// Records the expected number of pairs to test as `work`, if the span is enabled.
    pub(crate) fn record_work(&self, span: &Span) {
        if !span.is_disabled() {
            span.record("work", self.expected_work());
        }
    }

    /// The mean number of candidates of the sample times the number of targets.
    fn expected_work(&self) -> u64 {
        let targets = self.targets.points().len();
        let (mut candidates, mut sampled) = (0u64, 0u64);
        let by_radii = self.targets.has_levels() || self.sources.has_levels();
        for slot in (0..targets).step_by((targets / SAMPLE).max(1)) {
            if by_radii {
                let count = |run: Run| candidates += run.slots.len() as u64;
                let (targets, counts) = (self.targets, self.counts);
                let counted = self.sources.for_each_run_from(targets, slot, counts, count);
                sampled += u64::from(counted.is_ok());
                continue;
            }
            for (cell, _) in self.targets.cells(slot..slot + 1) {
                let count = |run: Run| candidates += run.slots.len() as u64;
                self.sources.for_each_run(cell, count);
                sampled += 1;
            }
        }
        (candidates as f64 / sampled.max(1) as f64 * targets as f64) as u64
    }
}
