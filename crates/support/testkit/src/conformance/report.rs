//! Differences between the lists of an engine and the oracle's.

use std::collections::BTreeMap;
use std::fmt;

use thiserror::Error;

use super::case::{Case, Known, Lists};
use crate::oracle::Real;

/// How many differing pairs a report shows at most.
pub(super) const SHOWN: usize = 20;

impl<T: Real> Case<T> {
    /// Compares lists in any order with the oracle.
    ///
    /// # Errors
    /// [`Mismatch`] when a list is missing, or a pair is missing, doubled or
    /// extra.
    pub fn check(&self, found: Lists) -> Result<(), Mismatch> {
        self.check_against(&self.expected(), found)
    }

    /// Compares lists in any order with the result of [`Case::expected`].
    ///
    /// # Errors
    /// As [`Case::check`].
    pub fn check_against(&self, expected: &Lists, found: Lists) -> Result<(), Mismatch> {
        compare(self, expected, found)
    }
}

/// The difference between an engine's lists and the expected ones.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Mismatch {
    /// The number of lists is not the number of targets.
    #[error("{found} lists were returned for {expected} targets")]
    Lengths {
        /// Number of targets.
        expected: usize,
        /// How many lists came.
        found: usize,
    },
    /// Pairs are missing, doubled, or extra.
    #[error("{missing} pairs missing, {extra} extra; {}{}", first_of(differences, *missing + *extra), lines(differences))]
    Pairs {
        /// How many pairs are missing.
        missing: usize,
        /// How many pairs are in a list that do not belong there, or too often.
        extra: usize,
        /// The first pairs that differ, by target and source.
        differences: Vec<PairDifference>,
    },
    /// Oracle and engine agree, but a published count says otherwise.
    #[error("{who} has {found} neighbors where {expected} are published")]
    Published {
        /// Whose count differs.
        who: String,
        /// The count published.
        expected: u64,
        /// The count found.
        found: u64,
    },
}

/// A pair that an engine has too often or not often enough.
#[derive(Debug, Clone, PartialEq)]
pub struct PairDifference {
    /// The target and its position, as printed.
    pub target: (u32, String),
    /// The source and its position, `None` if the point does not exist.
    pub source: (u32, Option<String>),
    /// How often it must be in the list: once per image.
    pub expected: usize,
    /// How often it is.
    pub found: usize,
    /// Its distance as a share of the radius that decides, through its
    /// nearest image.
    pub share: Option<f64>,
}

impl fmt::Display for PairDifference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.found < self.expected {
            "missing"
        } else {
            "extra"
        };
        let (target, at) = &self.target;
        write!(formatter, "{what} ({target}, {})", self.source.0)?;
        let (expected, found) = (self.expected, self.found);
        write!(formatter, ": {found} of {expected} images, {at} to ")?;
        match (&self.source.1, self.share) {
            (Some(source), Some(share)) => {
                write!(formatter, "{source}, nearest image at {share:.9} r")
            }
            _ => write!(formatter, "no such point"),
        }
    }
}

fn first_of(shown: &[PairDifference], all: usize) -> String {
    format!("the first {} of {all}:", shown.len().min(all))
}

fn lines(differences: &[PairDifference]) -> String {
    let line = |difference| format!("\n    {difference}");
    differences.iter().map(line).collect()
}

/// Compares `found`, in any order, with `expected`, ascending.
pub(super) fn compare<T: Real>(
    case: &Case<T>,
    expected: &Lists,
    mut found: Lists,
) -> Result<(), Mismatch> {
    if found.len() != expected.len() {
        let (expected, found) = (expected.len(), found.len());
        return Err(Mismatch::Lengths { expected, found });
    }
    found.iter_mut().for_each(|list| list.sort_unstable());
    if found == *expected {
        return check_known(case, &found);
    }
    let (mut missing, mut extra, mut differences) = (0, 0, Vec::new());
    for (target, (expected, found)) in (0..).zip(expected.iter().zip(&found)) {
        for (source, [expected, found]) in tally(expected, found) {
            missing += expected.saturating_sub(found);
            extra += found.saturating_sub(expected);
            if expected != found && differences.len() < SHOWN {
                differences.push(difference(case, [target, source], [expected, found]));
            }
        }
    }
    Err(Mismatch::Pairs {
        missing,
        extra,
        differences,
    })
}

/// How often each source is in either list.
fn tally(expected: &[u32], found: &[u32]) -> BTreeMap<u32, [usize; 2]> {
    let mut tally: BTreeMap<u32, [usize; 2]> = BTreeMap::new();
    for (side, list) in [expected, found].into_iter().enumerate() {
        for &source in list {
            tally.entry(source).or_default()[side] += 1;
        }
    }
    tally
}

fn difference<T: Real>(
    case: &Case<T>,
    [target, source]: [u32; 2],
    [expected, found]: [usize; 2],
) -> PairDifference {
    let from = case.targets()[target as usize];
    let to = case.sources().get(source as usize).copied();
    PairDifference {
        target: (target, format!("{from:?}")),
        source: (source, to.map(|to| format!("{to:?}"))),
        expected,
        found,
        share: to.map(|to| {
            let radius = case.problem().radius_of(target as usize, source as usize);
            nearest_distance(case, from, to) / radius.to_f64()
        }),
    }
}

fn nearest_distance<T: Real>(case: &Case<T>, from: [T; 3], to: [T; 3]) -> f64 {
    let problem = case.problem();
    let image = problem.nearest_image(from, to);
    problem.distance_squared(from, to, image).to_f64().sqrt()
}

fn check_known<T>(case: &Case<T>, lists: &Lists) -> Result<(), Mismatch> {
    let differing = |who: String, expected, found| {
        if expected == found {
            Ok(())
        } else {
            Err(Mismatch::Published {
                who,
                expected,
                found,
            })
        }
    };
    match &case.known {
        None => Ok(()),
        Some(Known::Total(count)) => {
            let found = lists.iter().map(|list| list.len() as u64).sum();
            differing("the whole set".to_owned(), *count, found)
        }
        Some(Known::PerTarget { count, targets }) => targets.iter().try_for_each(|&target| {
            let found = lists
                .get(target as usize)
                .map_or(0, |list| list.len() as u64);
            differing(format!("point {target}"), *count, found)
        }),
    }
}
