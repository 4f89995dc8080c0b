//! What the tests that run the conformance cases share.
#![allow(dead_code, reason = "every test binary uses another part")]

use nearfield::{Builder, Engine, ListKind, NeighborLists, PointSetId, SimdLevel};
use nearfield_testkit::{
    conformance::{Case, Lists},
    oracle,
};

/// What a run of a case is tried with.
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

/// An engine's settings for a case.
pub(crate) fn builder_for(case: &Case, settings: Settings) -> Builder {
    let kind = match case.list {
        oracle::ListKind::Full => ListKind::Full,
        oracle::ListKind::Half => ListKind::Half,
    };
    Engine::builder(case.radius)
        .periodic(case.periodic)
        .threads(settings.threads)
        .simd(settings.simd)
        .subdivision(settings.subdivision)
        .lists(kind)
}

/// An engine that holds the sets of a case.
pub(crate) fn engine_for(
    case: &Case,
    settings: Settings,
) -> Result<(Engine, Vec<PointSetId>), nearfield::Error> {
    fill(builder_for(case, settings).build()?, case)
}

/// `engine` with the sets of a case added.
pub(crate) fn fill(
    mut engine: Engine,
    case: &Case,
) -> Result<(Engine, Vec<PointSetId>), nearfield::Error> {
    let sets = case
        .sets
        .iter()
        .map(|set| engine.add_point_set(set))
        .collect::<Result<_, _>>()?;
    Ok((engine, sets))
}

/// Lists as the conformance runner compares them.
pub(crate) fn as_vectors(lists: &NeighborLists) -> Lists {
    lists.iter().map(<[u32]>::to_vec).collect()
}
