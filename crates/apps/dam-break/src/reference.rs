//! Published measurements, and the deviation of a simulated front from them.

/// Largest deviation from an experiment that passes, as a share of its Z at
/// equal T. Experiments deviate from each other by about as much.
pub const BAND: f64 = 0.15;

/// The comparison begins here: before, gates are still opening.
pub const FROM_T: f64 = 0.8;

/// The comparison ends here: beyond, the far wall is near.
pub const TO_Z: f64 = 3.6;

/// A measured front.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Its authors and year, for legends and the summary.
    pub name: &'static str,
    /// (T, Z) = (t·√(2g/a), z/a), by growing T.
    pub points: Vec<Point>,
}

/// A point of a simulated front: (T, Z).
pub type Point = (f64, f64);

/// How a simulated front compares with a measured one.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Comparison {
    /// Authors and year of the experiment.
    pub series: &'static str,
    /// The deviation of largest size, (ours − theirs)/theirs.
    pub max_deviation: f64,
    /// Where that is.
    #[serde(rename = "at_T")]
    pub at_t: f64,
    /// Measured points that were compared.
    pub points: usize,
    /// Whether every deviation is within ±[`BAND`].
    pub inside: bool,
}

/// The experiments the front is compared with.
#[must_use]
pub fn experiments() -> Vec<Experiment> {
    [
        (
            "Martin & Moyce 1952, a = 1.125 in",
            include_str!("../data/martin_moyce_1952_a1.125in.csv"),
        ),
        (
            "Martin & Moyce 1952, a = 2.25 in",
            include_str!("../data/martin_moyce_1952_a2.25in.csv"),
        ),
        (
            "Koshizuka & Oka 1996",
            include_str!("../data/koshizuka_oka_1996_experiment.csv"),
        ),
    ]
    .map(|(name, text)| Experiment {
        name,
        points: parse(text),
    })
    .into()
}

/// The rows of a table of T,Z; comments and the header do not parse and are left out.
fn parse(text: &str) -> Vec<Point> {
    let row = |line: &str| {
        let (t, z) = line.split_once(',')?;
        Some((t.trim().parse().ok()?, z.trim().parse().ok()?))
    };
    text.lines().filter_map(row).collect()
}

impl Experiment {
    /// Compares `front` (by growing T) with the measured points from
    /// [`FROM_T`] on and up to [`TO_Z`]; `None` when it reaches none of them.
    #[must_use]
    pub fn compare(&self, front: &[Point]) -> Option<Comparison> {
        let deviations: Vec<Point> = self
            .points
            .iter()
            .filter(|(t, z)| *t >= FROM_T && *z <= TO_Z)
            .filter_map(|&(t, z)| Some((t, value_at(front, t)? / z - 1.0)))
            .collect();
        let worst = deviations
            .iter()
            .max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
        Some(Comparison {
            series: self.name,
            max_deviation: worst.1,
            at_t: worst.0,
            points: deviations.len(),
            inside: worst.1.abs() <= BAND,
        })
    }
}

/// Z of a front (by growing T) at `t`, linear between its points; `None` outside.
pub(crate) fn value_at(front: &[Point], t: f64) -> Option<f64> {
    let next = front.partition_point(|point| point.0 < t);
    let (high, top) = *front.get(next)?;
    if high == t {
        return Some(top);
    }
    let (low, bottom) = *front.get(next.checked_sub(1)?)?;
    Some(bottom + (top - bottom) * (t - low) / (high - low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_experiments_are_read_whole() {
        let counts: Vec<usize> = experiments()
            .iter()
            .map(|experiment| experiment.points.len())
            .collect();
        assert_eq!(counts, [10, 15, 9]);
        for experiment in experiments() {
            let sorted = experiment
                .points
                .windows(2)
                .all(|w| w[0].0 < w[1].0 && w[0].1 < w[1].1);
            assert!(sorted, "{}", experiment.name);
        }
    }

    #[test]
    fn a_front_on_the_points_deviates_by_nothing() {
        let measured = &experiments()[2];
        let same = measured.compare(&measured.points).unwrap();
        assert_eq!((same.max_deviation, same.inside), (0.0, true));
        // T = 0.769 is too early and 3.624 too far.
        assert_eq!(same.points, 5);
    }

    #[test]
    fn a_front_that_runs_too_far_ahead_is_outside() {
        for experiment in experiments() {
            let ahead: Vec<Point> = experiment
                .points
                .iter()
                .map(|&(t, z)| (t, 1.2 * z))
                .collect();
            let compared = experiment.compare(&ahead).unwrap();
            assert!(!compared.inside);
            assert!((compared.max_deviation - 0.2).abs() < 1e-12);
        }
    }

    #[test]
    fn between_samples_the_front_is_linear_and_outside_unknown() {
        let front = [(1.0, 2.0), (2.0, 4.0)];
        assert_eq!(value_at(&front, 1.25), Some(2.5));
        assert_eq!(value_at(&front, 1.0), Some(2.0));
        assert_eq!(value_at(&front, 0.5), None);
        assert_eq!(value_at(&front, 2.5), None);
        assert_eq!(experiments()[0].compare(&front[..1]), None);
    }
}
