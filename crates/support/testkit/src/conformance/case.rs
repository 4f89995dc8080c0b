//! A case: the input of one search, and its expected result.

use crate::oracle::{ListKind, Pairing, Problem, Radii, RadiusRule, Real, Vectors};

/// Per target, the indices of its neighbours, one entry per image.
pub type Lists = Vec<Vec<u32>>;

/// A published statement about the answer, independent of the oracle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// Each of these targets has this many neighbours.
    PerTarget {
        /// How many neighbours each has.
        count: u64,
        /// Which targets.
        targets: Vec<u32>,
    },
    /// All lists together hold this many entries.
    Total(u64),
}

/// A search over one or two of several point sets.
///
/// An engine is expected to hold all `sets` and to return the lists of the
/// points of set `target` with neighbours out of set `source`. Both must be
/// indices into `sets`; the methods panic where they are not.
#[derive(Debug, Clone, PartialEq)]
pub struct Case<T = f32> {
    /// Name of the search, unique among the cases of a runner.
    pub name: String,
    /// The search radius, the largest where points have radii of their own.
    pub radius: T,
    /// The box length of each periodic axis, `None` for open axes.
    pub periodic: [Option<f64>; 3],
    /// The vectors of a tilted box, which take the place of `periodic`: an
    /// engine that looks at `periodic` alone fails such a case.
    pub vectors: Option<Vectors>,
    /// All point sets.
    pub sets: Vec<Vec<[T; 3]>>,
    /// Whose radius decides.
    pub rule: RadiusRule,
    /// Radii of the points of all sets, each at most the search radius; empty
    /// under [`RadiusRule::Uniform`].
    pub radii: Vec<Vec<T>>,
    /// Which set searches.
    pub target: usize,
    /// Which set is found.
    pub source: usize,
    /// Full or half lists; half only where `target` and `source` are the
    /// same set.
    pub list: ListKind,
    /// A published count, if there is one.
    pub known: Option<Known>,
}

impl<T: Real> Case<T> {
    /// Full lists of one set in an open domain.
    pub fn new(name: impl Into<String>, radius: T, points: Vec<[T; 3]>) -> Self {
        Self {
            name: name.into(),
            radius,
            periodic: [None; 3],
            vectors: None,
            sets: vec![points],
            rule: RadiusRule::Uniform,
            radii: Vec::new(),
            target: 0,
            source: 0,
            list: ListKind::Full,
            known: None,
        }
    }

    /// The same case in this domain.
    pub fn periodic(self, periodic: [Option<f64>; 3]) -> Self {
        Self { periodic, ..self }
    }

    /// The same case in the box that these vectors span, one for each periodic
    /// axis.
    pub fn tilted(self, vectors: Vectors) -> Self {
        let vectors = Some(vectors);
        Self {
            periodic: [None; 3],
            vectors,
            ..self
        }
    }

    /// Whether a box vector leans along an open axis: boxes in which backends do
    /// not share work.
    pub fn is_slanted(&self) -> bool {
        self.vectors.is_some_and(|vectors| {
            let mut spanning = vectors.iter().flatten();
            spanning.any(|vector| (0..3).any(|k| vectors[k].is_none() && vector[k] != 0.0))
        })
    }

    /// The same case with a radius for every point of every set.
    pub fn with_radii(self, rule: RadiusRule, radii: Vec<Vec<T>>) -> Self {
        Self {
            rule,
            radii,
            ..self
        }
    }

    /// The same case with a published count.
    pub fn known(self, known: Known) -> Self {
        let known = Some(known);
        Self { known, ..self }
    }

    /// The same case with half lists, and " half" added to its name. A count
    /// per target no longer applies and is dropped.
    pub fn half(self) -> Self {
        let known = self.known.filter(|known| matches!(known, Known::Total(_)));
        Self {
            name: format!("{} half", self.name),
            list: ListKind::Half,
            known,
            ..self
        }
    }

    /// The points that search.
    pub fn targets(&self) -> &[[T; 3]] {
        &self.sets[self.target]
    }

    /// The points that are found.
    pub fn sources(&self) -> &[[T; 3]] {
        &self.sets[self.source]
    }

    /// The radii of the points of a set, none under [`RadiusRule::Uniform`].
    pub fn radii_of(&self, set: usize) -> &[T] {
        self.radii.get(set).map_or(&[], Vec::as_slice)
    }

    /// The same search for the oracle.
    pub fn problem(&self) -> Problem<'_, T> {
        let pairing = if self.target == self.source {
            Pairing::Within(self.list)
        } else {
            Pairing::With(self.sources())
        };
        Problem {
            radius: self.radius,
            periodic: self.periodic,
            vectors: self.vectors,
            targets: self.targets(),
            pairing,
            radii: Radii {
                rule: self.rule,
                targets: self.radii_of(self.target),
                sources: self.radii_of(self.source),
            },
        }
    }

    /// The oracle's answer: lists ascending.
    pub fn expected(&self) -> Lists {
        self.problem().index_lists()
    }
}

impl Case {
    /// The same case in double precision: the same numbers, but decided in f64.
    pub fn widened(self) -> Case<f64> {
        let widen = |set: Vec<[f32; 3]>| set.iter().map(|at| at.map(f64::from)).collect();
        let widen_radii = |set: &Vec<f32>| set.iter().copied().map(f64::from).collect();
        Case {
            name: format!("{} in f64", self.name),
            radius: f64::from(self.radius),
            periodic: self.periodic,
            vectors: self.vectors,
            sets: self.sets.into_iter().map(widen).collect(),
            rule: self.rule,
            radii: self.radii.iter().map(widen_radii).collect(),
            target: self.target,
            source: self.source,
            list: self.list,
            known: self.known,
        }
    }
}

/// Each of these sets searching each of them, otherwise as in `like`.
pub(super) fn every_pair<T: Real>(like: &Case<T>, sets: &[Vec<[T; 3]>]) -> Vec<Case<T>> {
    let numbers = 0..sets.len();
    let pairs = numbers
        .clone()
        .flat_map(|target| numbers.clone().map(move |source| [target, source]));
    let case = |[target, source]: [usize; 2]| Case {
        name: format!("{}: {target} finds {source}", like.name),
        sets: sets.to_vec(),
        target,
        source,
        ..like.clone()
    };
    pairs.map(case).collect()
}

/// The case with full and with half lists.
pub(super) fn full_and_half<T: Real>(case: Case<T>) -> [Case<T>; 2] {
    [case.clone(), case.half()]
}
