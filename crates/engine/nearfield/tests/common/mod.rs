//! What the tests that run the conformance cases share.
#![allow(dead_code, reason = "every test binary uses another part")]

pub(crate) mod drawn;
pub(crate) mod filters;
pub(crate) mod scattered;

use nearfield::{
    Builder, Engine, ListKind, NeighborLists, Pair, PairKernel, PointSetId, Positions, Precision,
    Radii, RadiusRule, report::SimdLevel,
};
use nearfield_testkit::{
    conformance::{Case, Level, Lists, Runner},
    oracle::{self, Real},
};

/// A precision that engines and cases exist in.
pub(crate) trait Precise: Real {
    fn builder(radius: Self) -> Builder;
    fn positions(points: &[[Self; 3]]) -> Positions<'_>;
    fn radii(radii: &[Self]) -> Radii<'_>;
    /// All conformance cases in this precision.
    fn runner(level: Level) -> Runner<Self>;
}

impl Precise for f32 {
    fn builder(radius: Self) -> Builder {
        Engine::builder(radius)
    }

    fn positions(points: &[[Self; 3]]) -> Positions<'_> {
        points.into()
    }

    fn radii(radii: &[Self]) -> Radii<'_> {
        radii.into()
    }

    fn runner(level: Level) -> Runner<Self> {
        Runner::new(level)
    }
}

impl Precise for f64 {
    fn builder(radius: Self) -> Builder {
        Engine::builder(radius).precision(Precision::Double)
    }

    fn positions(points: &[[Self; 3]]) -> Positions<'_> {
        points.into()
    }

    fn radii(radii: &[Self]) -> Radii<'_> {
        radii.into()
    }

    fn runner(level: Level) -> Runner<Self> {
        Runner::in_double(level)
    }
}

/// Settings of a run of a case.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) simd: SimdLevel,
    pub(crate) threads: usize,
    pub(crate) subdivision: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            simd: SimdLevel::detect(),
            threads: 2,
            subdivision: 1,
        }
    }
}

impl Settings {
    /// The default at another SIMD level.
    pub(crate) fn at(simd: SimdLevel) -> Self {
        Self {
            simd,
            ..Self::default()
        }
    }

    /// The default with finer cells.
    pub(crate) fn finer(subdivision: u32) -> Self {
        Self {
            subdivision,
            ..Self::default()
        }
    }
}

/// The SIMD levels of this machine over and over, for tests whose cases are many enough for one
/// level each.
pub(crate) fn levels_in_turn() -> impl Iterator<Item = SimdLevel> {
    SimdLevel::available().iter().copied().cycle()
}

/// An engine's settings for a case.
pub(crate) fn builder_for<T: Precise>(case: &Case<T>, settings: Settings) -> Builder {
    let kind = match case.list {
        oracle::ListKind::Full => ListKind::Full,
        oracle::ListKind::Half => ListKind::Half,
    };
    let builder = T::builder(case.radius);
    let builder = match case.vectors {
        Some(vectors) => builder.box_vectors(vectors),
        None => builder.periodic(case.periodic),
    };
    builder
        .threads(settings.threads)
        .simd(settings.simd)
        .subdivision(settings.subdivision)
        .lists(kind)
        .radii(rule_of(case))
}

/// Whose radius decides in a case.
pub(crate) fn rule_of<T>(case: &Case<T>) -> RadiusRule {
    match case.rule {
        oracle::RadiusRule::Uniform => RadiusRule::Uniform,
        oracle::RadiusRule::Gather => RadiusRule::Gather,
        oracle::RadiusRule::Scatter => RadiusRule::Scatter,
        oracle::RadiusRule::Symmetric => RadiusRule::Symmetric,
    }
}

/// An engine that holds the sets of a case.
pub(crate) fn engine_for<T: Precise>(
    case: &Case<T>,
    settings: Settings,
) -> Result<(Engine, Vec<PointSetId>), nearfield::Error> {
    fill(builder_for(case, settings).build()?, case)
}

/// `engine` with the sets of a case, and the radii of their points, added.
pub(crate) fn fill<T: Precise>(
    mut engine: Engine,
    case: &Case<T>,
) -> Result<(Engine, Vec<PointSetId>), nearfield::Error> {
    let sets = case
        .sets
        .iter()
        .map(|set| engine.add_point_set(T::positions(set)))
        .collect::<Result<Vec<_>, _>>()?;
    for (set, radii) in sets.iter().zip(&case.radii) {
        engine.set_radii(*set, T::radii(radii))?;
    }
    Ok((engine, sets))
}

/// Lists as the conformance runner compares them.
pub(crate) fn as_vectors(lists: &NeighborLists) -> Lists {
    lists.iter().map(<[u32]>::to_vec).collect()
}

/// The lists of a case by an engine that holds its sets.
pub(crate) fn lists_of<T: Real>(
    engine: &mut Engine,
    case: &Case<T>,
    sets: &[PointSetId],
) -> Result<Lists, nearfield::Error> {
    engine.find_neighbors()?;
    let lists = engine.neighbors(sets[case.target], sets[case.source])?;
    Ok(as_vectors(lists))
}

/// A traversal of a case with [`Fingerprint`] and a label for every point.
pub(crate) fn traverse<T: Real>(
    engine: &Engine,
    case: &Case<T>,
    sets: &[PointSetId],
) -> Vec<[f32; 3]> {
    let (targets, sources) = (labels(case.targets()), labels(case.sources()));
    let traversal = engine.traverse(&Fingerprint, sets[case.target], sets[case.source]);
    let traversal = traversal.targets(&targets).sources(&sources);
    traversal.run().unwrap()
}

/// Counts neighbours and sums the source's index and the displacement, so that a traversal that
/// visits a wrong pair, or the right pair with a wrong source or image, is found out.
pub(crate) struct Fingerprint;

#[nearfield::pair_kernel]
impl PairKernel for Fingerprint {
    type Target = f32;
    type Source = f32;
    type Output = [f32; 3];

    #[inline(always)]
    fn pair(&self, pair: Pair, target: f32, source: f32) -> [f32; 3] {
        let sign = if pair.d[0] + pair.d[1] > pair.d[2] {
            1.0
        } else {
            0.0
        };
        [1.0, source + 2.0 * target, sign]
    }
}

/// Small whole numbers, whose sums are exact in any order.
fn label(index: usize) -> f32 {
    (index % 61) as f32
}

/// A label for every point.
pub(crate) fn labels<T>(points: &[[T; 3]]) -> Vec<f32> {
    (0..points.len()).map(label).collect()
}

/// Expected results of a traversal of a case with [`Fingerprint`].
pub(crate) fn fingerprints<T: Precise>(case: &Case<T>) -> Vec<[f32; 3]> {
    fingerprints_of(case, &case.problem().neighbors())
}

/// The same where the oracle has been asked already.
pub(crate) fn fingerprints_of<T: Precise>(
    case: &Case<T>,
    neighbors: &[Vec<oracle::Neighbor>],
) -> Vec<[f32; 3]> {
    neighbors
        .iter()
        .enumerate()
        .map(|(i, list)| {
            let mut sum = [0.0; 3];
            for neighbor in list {
                let (target, source) = (case.targets()[i], case.sources()[neighbor.index as usize]);
                let d = case.problem().displacement(target, source, neighbor.image);
                let d = d.map(|d| d.to_f64() as f32);
                let pair = Pair { d, d2: 0.0 };
                let (i, j) = (label(i), label(neighbor.index as usize));
                for (sum, value) in sum.iter_mut().zip(Fingerprint.pair(pair, i, j)) {
                    *sum += value;
                }
            }
            sum
        })
        .collect()
}
