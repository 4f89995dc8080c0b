//! The time of a backend by its work: a fixed part and a rate.
//!
//! One step cannot tell them apart, two steps with different work can. The rate is never negative,
//! and never more than all of the time in proportion to the work, whatever noise says.
//!
//! The line is the policy's whole model of a backend. It has no classes of occupancy: the bricks
//! that move next may be denser than those before, and then the line is off. It is drawn anew after
//! every move, from the two latest shares, so its errors shrink with the moves.
//!
//! **Invariant:** a line passes through the latest point.

/// Two points tell the fixed part of a time if their work differs by this part.
const APART: f64 = 0.1;

/// A backend's work in a step, and its time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    /// Pairs tested.
    pub(super) work: f64,
    /// Milliseconds.
    pub(super) ms: f64,
}

/// What a backend takes: a fixed time, and a rate per pair.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    /// Milliseconds, whatever the work.
    pub(super) fixed: f64,
    /// Milliseconds per pair.
    pub(super) rate: f64,
}

impl Line {
    /// Through two points if their work differs enough, else through one and its setup.
    pub(super) fn of(now: Point, before: Option<Point>, setup: f64) -> Self {
        let work = now.work.max(1.0);
        let highest = now.ms / work;
        let before = before.filter(|before| (before.work - work).abs() > APART * work);
        let rate = match before {
            Some(before) => ((now.ms - before.ms) / (now.work - before.work)).clamp(0.0, highest),
            None => (now.ms - setup.min(now.ms)) / work,
        };
        let fixed = now.ms - rate * work;
        Self { fixed, rate }
    }

    /// Milliseconds for some work.
    pub(super) fn at(self, work: f64) -> f64 {
        self.fixed + self.rate * work
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_passes_through_the_latest_point_and_never_falls() {
        let point = |work, ms| Point { work, ms };
        let alone = Line::of(point(100.0, 3.0), None, 1.0);
        assert_eq!((alone.fixed, alone.rate), (1.0, 0.02));
        for (before, rate) in [
            (point(50.0, 2.0), 0.02),
            // Too near to each other.
            (point(95.0, 1.0), 0.03),
            // Less time for more work, and more than all of the time.
            (point(50.0, 5.0), 0.0),
            (point(50.0, 0.1), 0.03),
        ] {
            let line = Line::of(point(100.0, 3.0), Some(before), 0.0);
            assert!((line.rate - rate).abs() < 1e-12, "{before:?}: {line:?}");
            assert!((line.at(100.0) - 3.0).abs() < 1e-12);
        }
        assert_eq!(Line::of(point(0.0, 0.0), None, 0.0).at(1e9), 0.0);
    }
}
