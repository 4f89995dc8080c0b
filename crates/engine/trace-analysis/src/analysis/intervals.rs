//! Sets of time intervals.

use nearfield_trace::model::Interval;

/// Intervals that do not touch, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DisjointIntervals(Vec<Interval>);

impl DisjointIntervals {
    /// The union of intervals in any order.
    pub(crate) fn of(intervals: impl IntoIterator<Item = Interval>) -> Self {
        let mut sorted: Vec<Interval> = intervals.into_iter().collect();
        sorted.sort_unstable();
        let mut merged: Vec<Interval> = Vec::with_capacity(sorted.len());
        for next in sorted {
            match merged.last_mut() {
                Some(last) if next.begin() <= last.end() => {
                    *last = Interval::new(last.begin(), last.end().max(next.end()));
                }
                _ => merged.push(next),
            }
        }
        Self(merged)
    }

    /// The time they cover.
    pub(crate) fn length(&self) -> u64 {
        total(self.0.iter().map(|interval| interval.length()))
    }

    /// How much of `other` they cover.
    pub(crate) fn covers(&self, other: Interval) -> u64 {
        total(self.within(other).map(|part| clip(part, other).length()))
    }

    /// Those that overlap another.
    pub(crate) fn within(&self, other: Interval) -> impl Iterator<Item = Interval> {
        let first = self
            .0
            .partition_point(|interval| interval.end() <= other.begin());
        let rest = self.0[first..].iter().copied();
        rest.take_while(move |interval| interval.begin() < other.end())
    }

    /// The intervals of another interval that they leave free.
    pub(crate) fn gaps(&self, within: Interval) -> Vec<Interval> {
        let mut begin = within.begin();
        let mut gaps = Vec::new();
        for interval in self.within(within) {
            gaps.push(Interval::new(begin, interval.begin()));
            begin = interval.end();
        }
        gaps.push(Interval::new(begin, within.end()));
        gaps.retain(|gap| gap.length() > 0);
        gaps
    }

    /// The intervals.
    pub(crate) fn intervals(&self) -> &[Interval] {
        &self.0
    }
}

/// Adds to a number from a file, where any number may stand.
pub(crate) fn increase(sum: &mut u64, by: u64) {
    *sum = sum.saturating_add(by);
}

/// The sum of numbers from a file.
pub(crate) fn total(values: impl Iterator<Item = u64>) -> u64 {
    values.fold(0, u64::saturating_add)
}

/// The part of an interval that lies within another, or an empty one.
pub(crate) fn clip(interval: Interval, within: Interval) -> Interval {
    let begin = interval.begin().clamp(within.begin(), within.end());
    Interval::new(begin, interval.end().clamp(begin, within.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(begin: u64, end: u64) -> Interval {
        Interval::new(begin, end)
    }

    #[test]
    fn intervals_that_overlap_or_touch_count_once() {
        let merged = DisjointIntervals::of([at(5, 9), at(0, 2), at(2, 3), at(6, 7), at(20, 21)]);
        assert_eq!(merged.intervals(), [at(0, 3), at(5, 9), at(20, 21)]);
        assert_eq!(merged.length(), 8);
    }

    #[test]
    fn what_is_covered_is_the_common_part() {
        let merged = DisjointIntervals::of([at(0, 3), at(5, 9)]);
        assert_eq!(merged.covers(at(2, 6)), 2);
        assert_eq!(merged.covers(at(3, 5)), 0);
        assert_eq!(merged.covers(at(0, 100)), 7);
        assert_eq!(merged.covers(at(6, 6)), 0);
        assert_eq!(clip(at(0, 3), at(5, 9)).length(), 0);
        assert_eq!(merged.gaps(at(2, 12)), [at(3, 5), at(9, 12)]);
        assert_eq!(merged.gaps(at(6, 8)), []);
    }
}
