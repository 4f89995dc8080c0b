//! The course of a number that the policy sets, from step to step.

use super::statistics::median;
use nearfield_trace::model::Value;
use serde::{Serialize, Serializer};

/// Course of the CPU backend's share of the work, or of the threshold, over the steps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Course {
    /// At the first step; infinity is `"inf"` in JSON, here and below.
    #[serde(serialize_with = "or_infinity")]
    pub first: f64,
    /// Median over the last quarter of the steps.
    #[serde(serialize_with = "or_infinity")]
    pub settled_at: f64,
    /// Least.
    #[serde(serialize_with = "or_infinity")]
    pub least: f64,
    /// Greatest.
    #[serde(serialize_with = "or_infinity")]
    pub greatest: f64,
    /// Steps before it stayed within the tolerance of where it settled; none when it never did for
    /// the last quarter of the steps, or if there are fewer than four steps.
    pub settle_steps: Option<usize>,
    /// How often it turned round after that (over all steps when it did not settle).
    pub reversals: usize,
    /// Greatest less least after that.
    pub amplitude: f64,
    /// Whether it goes to and fro by more than the tolerance, in at least a quarter of the steps.
    pub oscillates: bool,
}

/// JSON has no infinity, so it is written as text.
fn or_infinity<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    Value::from(*value).serialize(serializer)
}

/// Fewest values that a course is judged by.
const FEWEST: usize = 4;

/// The course of values that count as the same within a tolerance, which is given where they
/// settle.
pub(crate) fn course(values: &[f64], tolerance: impl Fn(f64) -> f64) -> Option<Course> {
    let first = *values.first()?;
    let settled_at = median(
        values[values.len() - values.len().div_ceil(4)..]
            .iter()
            .copied(),
    )?;
    let tolerance = tolerance(settled_at);
    // Nothing but infinity is near infinity.
    let near = |value: f64| {
        if settled_at.is_finite() {
            (value - settled_at).abs() <= tolerance
        } else {
            value == settled_at
        }
    };
    let stray = values.iter().rposition(|value| !near(*value));
    let steps = stray.map_or(0, |last| last + 1);
    let settled = values.len() >= FEWEST && 4 * steps <= 3 * values.len();
    let rest = &values[if settled { steps } else { 0 }..];
    let (least, greatest) = ends(rest);
    let reversals = reversals(rest, tolerance / 4.0);
    let amplitude = if least == greatest {
        0.0
    } else {
        greatest - least
    };
    let (all_least, all_greatest) = ends(values);
    Some(Course {
        first,
        settled_at,
        least: all_least,
        greatest: all_greatest,
        settle_steps: settled.then_some(steps),
        reversals,
        amplitude,
        oscillates: reversals >= 3 && 4 * reversals >= rest.len() && amplitude > tolerance,
    })
}

fn ends(values: &[f64]) -> (f64, f64) {
    values.iter().fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(least, greatest), value| (least.min(*value), greatest.max(*value)),
    )
}

/// How often moves by more than `least` change their direction.
fn reversals(values: &[f64], least: f64) -> usize {
    let moves = values.windows(2).map(|pair| pair[1] - pair[0]);
    let up: Vec<bool> = moves
        .filter(|by| by.abs() > least)
        .map(|by| by > 0.0)
        .collect();
    up.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(values: &[f64]) -> Course {
        course(values, |_| 0.02).unwrap()
    }

    #[test]
    fn the_steps_before_it_stays_near_its_end_are_counted() {
        let course = share(&[0.9, 0.6, 0.4, 0.31, 0.30, 0.29, 0.30, 0.30]);
        assert_eq!((course.settle_steps, course.settled_at), (Some(3), 0.30));
        assert_eq!(
            (course.first, course.least, course.greatest),
            (0.9, 0.29, 0.9)
        );
        assert!((course.amplitude - 0.02).abs() < 1e-12 && !course.oscillates);
    }

    #[test]
    fn a_constant_settles_at_once() {
        let course = share(&[0.5; 6]);
        assert_eq!(
            (course.settle_steps, course.reversals, course.amplitude),
            (Some(0), 0, 0.0)
        );
    }

    #[test]
    fn what_moves_until_the_end_does_not_settle() {
        assert_eq!(
            share(&[0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]).settle_steps,
            None
        );
        assert_eq!(share(&[0.5, 0.5, 0.5]).settle_steps, None);
        assert_eq!(course(&[], |_| 1.0), None);
    }

    #[test]
    fn to_and_fro_is_an_oscillation() {
        let course = share(&[0.2, 0.6, 0.2, 0.6, 0.2, 0.6, 0.2, 0.6]);
        assert_eq!((course.reversals, course.oscillates), (6, true));
        assert!((course.amplitude - 0.4).abs() < 1e-12);
    }

    #[test]
    fn an_infinite_threshold_is_settled() {
        let course = course(
            &[
                20.0,
                40.0,
                f64::INFINITY,
                f64::INFINITY,
                f64::INFINITY,
                f64::INFINITY,
                f64::INFINITY,
                f64::INFINITY,
            ],
            |at| 0.05 * at,
        )
        .unwrap();
        assert_eq!(course.settle_steps, Some(2));
        assert_eq!(course.amplitude, 0.0);
    }
}
