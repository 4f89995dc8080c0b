//! Linear and logarithmic axes as one type, so that all panels are drawn by the same code: which
//! values are marked, and their labels.

use crate::rounded;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use std::ops::Range;

/// Shortest logarithmic axis, in decades: long enough to hold a mark whatever it begins with.
const SHORTEST: f64 = 0.6;
/// Share of an axis that is left free beyond the values.
const MARGIN: f64 = 0.1;

/// One axis.
#[derive(Debug, Clone)]
pub struct Axis {
    kind: Kind,
    /// Values of both ends.
    range: Range<f64>,
    /// Marked values.
    marks: Vec<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Linear,
    Logarithmic,
}

impl Axis {
    /// A logarithmic axis that holds all `values`, which are positive. Decades are marked; where
    /// there are fewer than three, their doubles and quintuples too.
    pub fn logarithmic(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values
            .map(f64::log10)
            .fold((f64::MAX, f64::MIN), |ends, place| {
                (ends.0.min(place), ends.1.max(place))
            });
        let (middle, span) = (0.5 * (low + high), (high - low).max(SHORTEST));
        let half = (0.5 + MARGIN) * span;
        let (begin, end) = (middle - half, middle + half);
        let range = 10f64.powf(begin)..10f64.powf(end);
        let marks_at = |steps: &[f64]| -> Vec<f64> {
            (begin.floor() as i32..=end.floor() as i32)
                .flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)))
                .filter(|mark| range.contains(mark))
                .collect()
        };
        let mut marks = marks_at(&[1.0]);
        if marks.len() < 3 {
            marks = marks_at(&[1.0, 2.0, 5.0]);
        }
        Self {
            kind: Kind::Logarithmic,
            range,
            marks,
        }
    }

    /// A linear axis from zero to beyond all `values`, which are positive; about five round
    /// numbers are marked.
    pub fn from_zero(values: impl Iterator<Item = f64>) -> Self {
        let high = values.fold(f64::MIN_POSITIVE, f64::max) * (1.0 + MARGIN);
        Self::linear(0.0..high)
    }

    /// A linear axis of exactly this range, which is not empty; about five round numbers are
    /// marked.
    pub fn linear(range: Range<f64>) -> Self {
        let length = range.end - range.start;
        let decade = 10f64.powf(length.log10().floor());
        let steps = [0.1, 0.2, 0.5, 1.0, 2.0].map(|share| share * decade);
        let step = steps
            .into_iter()
            .find(|step| 6.0 * step > length)
            .unwrap_or(decade);
        // A mark at an end may miss it by a rounding.
        let slack = 1e-9 * length;
        let first = ((range.start - slack) / step).ceil();
        let last = ((range.end + slack) / step).floor();
        Self {
            kind: Kind::Linear,
            marks: (0..=(last - first) as usize)
                .map(|mark| (first + mark as f64) * step)
                .collect(),
            range,
        }
    }

    /// The position of a value on a linear scale.
    fn place(&self, value: f64) -> f64 {
        match self.kind {
            Kind::Linear => value,
            Kind::Logarithmic => value.log10(),
        }
    }
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let [low, high] = [self.range.start, self.range.end].map(|end| self.place(end));
        let share = (self.place(*value) - low) / (high - low);
        from + (share * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.marks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

/// A mark's digits, from a thousand on with k, M or G.
pub fn number(value: &f64) -> String {
    with_unit(*value, &[(1e9, " G"), (1e6, " M"), (1e3, " k"), (1.0, "")])
}

/// A mark in milliseconds, in the unit that suits it.
pub fn duration(milliseconds: &f64) -> String {
    if *milliseconds == 0.0 {
        return "0".into();
    }
    let units = [(1e3, " s"), (1.0, " ms"), (1e-3, " µs"), (1e-6, " ns")];
    with_unit(*milliseconds, &units)
}

/// The value in the largest of the units (which descend) that it reaches, or in the last one.
fn with_unit(value: f64, units: &[(f64, &str)]) -> String {
    // Marks come out of multiplications: a thousand may be slightly less.
    let suits = |unit: &&(f64, &str)| value > 0.999 * unit.0;
    let unit = units.iter().find(suits).or(units.last());
    let (size, name) = unit.copied().unwrap_or((1.0, ""));
    // Marks have at most two digits; the others are errors of rounding.
    format!("{}{name}", rounded(value / size, 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<String> {
        axis.marks.iter().map(number).collect()
    }

    #[test]
    fn decades_are_marked_and_finer_steps_where_they_are_few() {
        let axis = Axis::logarithmic([9_261.0, 1e6, 3e5].into_iter());
        assert_eq!(labels(&axis), ["10 k", "100 k", "1 M"]);
        assert!(axis.range.contains(&9_261.0) && axis.range.contains(&1e6));
        let axis = Axis::logarithmic([0.004, 0.03].into_iter());
        assert_eq!(labels(&axis), ["0.005", "0.01", "0.02"]);
        for value in [1.0, 1.9, 3.0, 4.4, 7.7] {
            let axis = Axis::logarithmic([value].into_iter());
            assert!(!axis.marks.is_empty(), "{value}");
        }
    }

    #[test]
    fn equal_factors_are_equally_far_apart_on_a_logarithmic_axis() {
        let axis = Axis::logarithmic([1.0, 1e4].into_iter());
        let at = |value: f64| axis.map(&value, (1000, 0));
        assert_eq!(at(1e2), 500);
        assert!((at(1.0) - at(10.0)).abs_diff(at(10.0) - at(100.0)) <= 1);
        let axis = Axis::from_zero([10.0].into_iter());
        assert_eq!(axis.map(&axis.range.end, (50, 90)), 90);
        assert_eq!(axis.map(&0.0, (50, 90)), 50);
    }

    #[test]
    fn a_linear_axis_begins_at_zero_and_ends_beyond_the_largest_value() {
        let axis = Axis::from_zero([48.0, 71.0, 12.0].into_iter());
        assert_eq!(labels(&axis), ["0", "20", "40", "60"]);
        assert!(axis.range.end > 71.0 && axis.range.end < 80.0);
        let axis = Axis::from_zero([1_400.0].into_iter());
        assert_eq!(labels(&axis), ["0", "500", "1 k", "1.5 k"]);
        let axis = Axis::from_zero([0.0].into_iter());
        assert!(axis.range.end > 0.0, "no empty axis");
    }

    #[test]
    fn a_linear_axis_may_begin_anywhere_and_marks_its_ends_when_they_are_round() {
        assert_eq!(
            labels(&Axis::linear(0.0..100.0)),
            ["0", "20", "40", "60", "80", "100"]
        );
        let axis = Axis::linear(61.7..64.2);
        assert_eq!(axis.marks, [62.0, 62.5, 63.0, 63.5, 64.0]);
        // Three tenths, as a product, lie beyond 0.3.
        assert_eq!(Axis::linear(0.3..0.8).marks.len(), 6);
    }

    #[test]
    fn durations_have_the_unit_that_suits_them() {
        let texts =
            [0.0, 1e-7, 5e-4, 0.02, 0.1 * 10.0, 200.0, 1_000.0, 3e5].map(|ms| duration(&ms));
        assert_eq!(
            texts,
            [
                "0", "0.1 ns", "500 ns", "20 µs", "1 ms", "200 ms", "1 s", "300 s"
            ]
        );
    }
}
