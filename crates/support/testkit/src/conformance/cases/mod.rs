//! The cases of the runner, grouped by their difficulty.

mod double;
mod periodic;
mod published;
mod radii;
mod random;
mod sets;
mod shapes;
mod tilted;

use super::case::Case;
use super::level::Level;

/// Every case of a level; names are unique.
pub(super) fn all(level: Level) -> Vec<Case> {
    let mut cases = shapes::cases();
    cases.extend(random::cases(level));
    cases.extend(periodic::cases(level));
    cases.extend(tilted::cases(level));
    cases.extend(sets::cases());
    cases.extend(radii::cases(level));
    cases.extend(published::cases(level));
    cases
}

/// Every case of a level in double precision; names are unique.
pub(super) fn all_in_double(level: Level) -> Vec<Case<f64>> {
    let mut cases: Vec<_> = all(level).into_iter().map(Case::widened).collect();
    cases.extend(double::cases(level));
    cases
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::oracle::{ListKind, RadiusRule};

    #[test]
    fn names_are_unique() {
        for level in [Level::Quick, Level::Full] {
            let cases = all(level);
            let names: HashSet<_> = cases.iter().map(|case| &case.name).collect();
            assert_eq!(names.len(), cases.len());
        }
    }

    #[test]
    fn the_quick_cases_are_among_the_full_ones() {
        let full = all(Level::Full);
        for case in all(Level::Quick) {
            assert!(full.contains(&case), "{} is not", case.name);
        }
    }

    #[test]
    fn names_in_double_are_unique_and_the_quick_cases_among_the_full_ones() {
        let full = all_in_double(Level::Full);
        let names: HashSet<_> = full.iter().map(|case| &case.name).collect();
        assert_eq!(names.len(), full.len());
        for case in all_in_double(Level::Quick) {
            assert!(full.contains(&case), "{} is not", case.name);
        }
    }

    #[test]
    fn every_case_is_within_the_contract() {
        for case in all(Level::Full) {
            let r2 = case.radius * case.radius;
            assert!(
                (2.0_f32.powi(-50)..=2.0_f32.powi(63)).contains(&r2),
                "{}",
                case.name
            );
            assert!(case.periodic.iter().flatten().all(|&length| length > 0.0));
            assert!(case.vectors.is_none() || case.periodic == [None; 3]);
            let mut coordinates = case.sets.iter().flat_map(|set| set.as_flattened());
            assert!(coordinates.all(|at| at.is_finite()), "{}", case.name);
            assert!(case.list == ListKind::Full || case.target == case.source);
            assert!(case.list == ListKind::Full || case.rule.is_symmetric());
            let sets = match case.rule {
                RadiusRule::Uniform => 0,
                _ => case.sets.len(),
            };
            assert_eq!(case.radii.len(), sets, "{}", case.name);
            for (set, radii) in case.sets.iter().zip(&case.radii) {
                assert_eq!(radii.len(), set.len(), "{}", case.name);
                let usable = 2.0_f32.powi(-50)..=case.radius;
                assert!(radii.iter().all(|radius| usable.contains(radius)));
            }
        }
    }
}
