//! The numbers of points of a series.

use nearfield_testkit::cloud::Cloud;

/// Sizes from `from` to `to`, both included, about a factor of √10 apart and equally far from each
/// other, those between rounded to two digits.
///
/// # Errors
/// When the first is larger than the last; the text names both.
pub(super) fn between(from: usize, to: usize) -> Result<Vec<usize>, String> {
    if from > to {
        return Err(format!("--from {from} is more than --to {to}"));
    }
    let growth = (to as f64 / from as f64).log10();
    let steps = (2.0 * growth).round().max(1.0);
    let size = |step: usize| match step as f64 / steps {
        1.0.. => to,
        share => two_digits(from as f64 * 10f64.powf(growth * share)).clamp(from, to),
    };
    let mut sizes: Vec<usize> = (0..=steps as usize).map(size).collect();
    sizes[0] = from;
    sizes.dedup();
    Ok(sizes)
}

fn two_digits(value: f64) -> usize {
    let unit = 10f64.powf(value.log10().floor() - 1.0).max(1.0);
    ((value / unit).round() * unit) as usize
}

/// The cloud's usual radius where it is the same at all sizes.
pub(super) fn common_radius(cloud: Cloud, sizes: &[usize]) -> Option<f32> {
    let mut radii = sizes.iter().map(|&size| cloud.default_radius(size));
    let first = radii.next()?;
    radii.all(|radius| radius == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_round_and_about_half_a_decade_apart() {
        assert_eq!(
            between(10_000, 1_000_000),
            Ok(vec![10_000, 32_000, 100_000, 320_000, 1_000_000])
        );
        assert_eq!(between(500, 2_345), Ok(vec![500, 2_345]));
        assert_eq!(between(1, 9), Ok(vec![1, 3, 9]));
        assert_eq!(between(1, 2), Ok(vec![1, 2]));
        assert_eq!(between(777, 777), Ok(vec![777]));
        let long = between(3, 1 << 53).expect("they ascend");
        assert_eq!((long[0], long[long.len() - 1]), (3, 1 << 53));
        assert!(long.windows(2).all(|pair| {
            let factor = pair[1] as f64 / pair[0] as f64;
            (2.5..4.0).contains(&factor)
        }));
    }

    #[test]
    fn sizes_that_descend_are_refused_by_name() {
        assert_eq!(
            between(20, 10),
            Err("--from 20 is more than --to 10".into())
        );
    }

    #[test]
    fn only_a_cloud_of_fixed_size_has_no_common_radius() {
        assert_eq!(common_radius(Cloud::Lattice, &[10, 1000]), Some(2.0));
        assert_eq!(common_radius(Cloud::Plummer, &[10, 1000]), None);
        assert!(common_radius(Cloud::Plummer, &[1000]).is_some());
    }
}
