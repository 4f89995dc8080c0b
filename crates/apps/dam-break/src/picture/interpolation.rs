//! Curves through measured points: straight lines between neighbours.

/// The curve's value at `place`, or none outside the range of its points,
/// which are (place, value) in ascending order of place.
fn value_at(points: &[(f64, f64)], place: f64) -> Option<f64> {
    let next = points.partition_point(|point| point.0 < place);
    let (high, top) = *points.get(next)?;
    if high == place {
        return Some(top);
    }
    let (low, bottom) = *points.get(next.checked_sub(1)?)?;
    Some(bottom + (top - bottom) * (place - low) / (high - low))
}

/// The mean of several curves at every place where one of them has a point,
/// in ascending order. A place counts each curve that reaches over it; points
/// with a coordinate that is not finite are left out.
pub(super) fn mean_curve(curves: &[&[(f64, f64)]]) -> Vec<(f64, f64)> {
    let curves: Vec<Vec<(f64, f64)>> = curves.iter().map(|points| ascending(points)).collect();
    let mut places: Vec<f64> = curves.iter().flatten().map(|point| point.0).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let mean = |place: f64| {
        let values: Vec<f64> = curves
            .iter()
            .filter_map(|points| value_at(points, place))
            .collect();
        (place, values.iter().sum::<f64>() / values.len() as f64)
    };
    places.into_iter().map(mean).collect()
}

/// The part of an ascending curve up to `end`, with a point there if the curve
/// goes on.
pub(super) fn up_to(curve: &[(f64, f64)], end: f64) -> Vec<(f64, f64)> {
    let inside = curve.iter().copied().filter(|point| point.0 < end);
    inside
        .chain(value_at(curve, end).map(|value| (end, value)))
        .collect()
}

/// The finite points in ascending order of place.
pub(super) fn ascending(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = points
        .iter()
        .copied()
        .filter(|point| point.0.is_finite() && point.1.is_finite())
        .collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_has_values_between_its_ends_only() {
        let points = [(0.0, 1.0), (2.0, 5.0)];
        assert_eq!(value_at(&points, 0.0), Some(1.0));
        assert_eq!(value_at(&points, 0.5), Some(2.0));
        assert_eq!(value_at(&points, 2.0), Some(5.0));
        assert_eq!(value_at(&points, 2.1), None);
        assert_eq!(value_at(&points, -0.1), None);
        assert_eq!(value_at(&[], 0.0), None);
    }

    #[test]
    fn a_curve_is_cut_where_it_crosses_the_end() {
        let curve = [(0.0, 1.0), (2.0, 5.0)];
        assert_eq!(up_to(&curve, 1.0), [(0.0, 1.0), (1.0, 3.0)]);
        assert_eq!(up_to(&curve, 2.0), curve);
        assert_eq!(up_to(&curve, 9.0), curve);
    }

    #[test]
    fn the_mean_counts_the_curves_that_reach_a_place() {
        let long = [(2.0, 4.0), (0.0, 0.0), (4.0, 8.0), (f64::NAN, 1.0)];
        let short = [(1.0, 4.0), (3.0, 8.0)];
        let mean = mean_curve(&[&long, &short]);
        assert_eq!(
            mean,
            [(0.0, 0.0), (1.0, 3.0), (2.0, 5.0), (3.0, 7.0), (4.0, 8.0)]
        );
        assert!(mean_curve(&[]).is_empty());
    }
}
