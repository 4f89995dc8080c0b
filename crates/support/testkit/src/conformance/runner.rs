//! Runs an engine through all cases and collects the failures.

use std::fmt;
use std::sync::{Arc, OnceLock};

use thiserror::Error;

use super::case::{Case, Lists};
use super::cases;
use super::level::Level;
use super::report::{Mismatch, SHOWN, compare};
use crate::oracle::{Neighbor, Real};

/// The cases of one level with the oracle's answers, which are computed when
/// first needed and kept; those of [`Level::Quick`] for all runners of a
/// process, since one test after the other asks for them.
#[derive(Debug)]
pub struct Runner<T = f32> {
    cases: Vec<Arc<PreparedCase<T>>>,
}

#[derive(Debug)]
struct PreparedCase<T> {
    case: Case<T>,
    neighbors: OnceLock<Vec<Vec<Neighbor>>>,
    expected: OnceLock<Lists>,
}

/// Figures of a run without a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// How many cases were run.
    pub cases: usize,
    /// How many list entries were compared.
    pub pairs: u64,
}

/// Why a case failed.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum CaseFailure {
    /// The engine returned an error.
    #[error("the engine refused: {0}")]
    Engine(String),
    /// The engine's lists are wrong.
    #[error(transparent)]
    Lists(#[from] Mismatch),
}

/// Failures of an engine. Its `Debug` form is the readable one, so that
/// `unwrap` in a test prints every differing pair.
#[derive(Clone, PartialEq, Error)]
pub enum Failure {
    /// A filter left no case, so nothing was tested.
    #[error("no case was left to run: the filters keep none of them")]
    NoCase,
    /// Some cases failed.
    #[error("{} of {cases} cases failed{}", failed.len(), describe(failed))]
    Cases {
        /// How many cases were run.
        cases: usize,
        /// The names of those that failed, and why.
        failed: Vec<(String, CaseFailure)>,
    },
}

impl fmt::Debug for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// One line per failed case and the differing pairs of the first ones, 20
/// lines of each at most.
fn describe(failed: &[(String, CaseFailure)]) -> String {
    let mut shown = 0;
    let line = |(name, failure): &(String, CaseFailure)| {
        let text = failure.to_string();
        let lines: Vec<&str> = text.lines().take(1 + SHOWN - shown).collect();
        shown += lines.len() - 1;
        format!("\n  {name}: {}", lines.join("\n"))
    };
    let mut text: String = failed.iter().take(SHOWN).map(line).collect();
    if failed.len() > SHOWN {
        text += &format!("\n  and {} more", failed.len() - SHOWN);
    }
    text
}

impl Runner {
    /// All cases of a level.
    pub fn new(level: Level) -> Self {
        static QUICK: OnceLock<Vec<Arc<PreparedCase<f32>>>> = OnceLock::new();
        Self::at(level, &QUICK, cases::all)
    }
}

impl Runner<f64> {
    /// The cases of a level in double precision, and those that only double
    /// precision tells apart.
    pub fn in_double(level: Level) -> Self {
        static QUICK: OnceLock<Vec<Arc<PreparedCase<f64>>>> = OnceLock::new();
        Self::at(level, &QUICK, cases::all_in_double)
    }
}

impl<T: Real> Runner<T> {
    /// Cases of the caller's own.
    pub fn of(cases: Vec<Case<T>>) -> Self {
        let cases = prepare(cases);
        Self { cases }
    }

    fn at(
        level: Level,
        quick: &OnceLock<Vec<Arc<PreparedCase<T>>>>,
        all: impl Fn(Level) -> Vec<Case<T>>,
    ) -> Self {
        match level {
            Level::Quick => Self {
                cases: quick.get_or_init(|| prepare(all(level))).clone(),
            },
            Level::Full => Self::of(all(level)),
        }
    }

    /// Keeps the cases that an engine is meant to handle.
    pub fn keep(mut self, wanted: impl Fn(&Case<T>) -> bool) -> Self {
        self.cases.retain(|prepared| wanted(&prepared.case));
        self
    }

    /// The cases in the order they run.
    pub fn cases(&self) -> impl Iterator<Item = &Case<T>> {
        self.cases.iter().map(|prepared| &prepared.case)
    }

    /// The cases and the oracle's neighbours of each, images among them.
    pub fn with_neighbors(&self) -> impl Iterator<Item = (&Case<T>, &[Vec<Neighbor>])> {
        let cases = self.cases.iter();
        cases.map(|prepared| (&prepared.case, prepared.neighbors()))
    }

    /// The cases and the lists that are expected of each.
    pub fn with_lists(&self) -> impl Iterator<Item = (&Case<T>, &Lists)> {
        let cases = self.cases.iter();
        cases.map(|prepared| (&prepared.case, prepared.expected()))
    }

    /// Runs `engine` on every case. It returns one list per target, in any
    /// order inside the list, or says why it cannot.
    ///
    /// # Errors
    /// [`Failure::Cases`] when the engine fails or differs in some cases (all cases still run),
    /// [`Failure::NoCase`] if there are none.
    pub fn run<E: fmt::Display>(
        &self,
        mut engine: impl FnMut(&Case<T>) -> Result<Lists, E>,
    ) -> Result<Summary, Failure> {
        if self.cases.is_empty() {
            return Err(Failure::NoCase);
        }
        let (mut summary, mut failed) = (Summary::default(), Vec::new());
        for prepared in &self.cases {
            summary.cases += 1;
            match prepared.run(&mut engine) {
                Ok(pairs) => summary.pairs += pairs,
                Err(failure) => failed.push((prepared.case.name.clone(), failure)),
            }
        }
        if failed.is_empty() {
            Ok(summary)
        } else {
            Err(Failure::Cases {
                cases: summary.cases,
                failed,
            })
        }
    }
}

fn prepare<T>(cases: Vec<Case<T>>) -> Vec<Arc<PreparedCase<T>>> {
    let prepared = |case| PreparedCase {
        case,
        neighbors: OnceLock::new(),
        expected: OnceLock::new(),
    };
    cases.into_iter().map(prepared).map(Arc::new).collect()
}

impl<T: Real> PreparedCase<T> {
    fn neighbors(&self) -> &[Vec<Neighbor>] {
        self.neighbors
            .get_or_init(|| self.case.problem().neighbors())
    }

    fn expected(&self) -> &Lists {
        self.expected.get_or_init(|| {
            let indices = |list: &Vec<Neighbor>| list.iter().map(|found| found.index).collect();
            self.neighbors().iter().map(indices).collect()
        })
    }

    /// The number of list entries compared.
    fn run<E: fmt::Display>(
        &self,
        engine: &mut impl FnMut(&Case<T>) -> Result<Lists, E>,
    ) -> Result<u64, CaseFailure> {
        let found = engine(&self.case).map_err(|error| CaseFailure::Engine(error.to_string()))?;
        let expected = self.expected();
        compare(&self.case, expected, found)?;
        Ok(expected.iter().map(|list| list.len() as u64).sum())
    }
}
