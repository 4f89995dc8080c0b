//! Medians and quartiles.

use serde::Serialize;

/// Spread of a number over steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Least.
    pub least: f64,
    /// A quarter is at most this.
    pub lower_quartile: f64,
    /// Half are at most this.
    pub median: f64,
    /// Three quarters are at most this.
    pub upper_quartile: f64,
    /// Greatest.
    pub greatest: f64,
}

impl Spread {
    /// Of some values; none of none.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            least: *sorted.first()?,
            lower_quartile: quantile(&sorted, 0.25),
            median: quantile(&sorted, 0.5),
            upper_quartile: quantile(&sorted, 0.75),
            greatest: *sorted.last()?,
        })
    }
}

/// The median of some values; none of none.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    Spread::of(values).map(|spread| spread.median)
}

/// The value with so large a part of the sorted values below it, between two of them by proportion.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = part * (sorted.len() - 1) as f64;
    let (below, above) = (
        sorted[place.floor() as usize],
        sorted[place.ceil() as usize],
    );
    if below == above {
        below
    } else {
        below + (above - below) * place.fract()
    }
}

/// Milliseconds of nanoseconds.
pub(crate) fn ms(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_values() {
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((spread.least, spread.greatest), (1.0, 4.0));
        assert_eq!(
            (spread.lower_quartile, spread.median, spread.upper_quartile),
            (1.75, 2.5, 3.25)
        );
        assert_eq!(median([7.0]), Some(7.0));
        assert_eq!(median([f64::INFINITY, f64::INFINITY]), Some(f64::INFINITY));
        assert_eq!(Spread::of([]), None);
    }
}
