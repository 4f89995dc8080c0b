//! Input and results of `nearfield tune`, in the form of tune.json.

use crate::{bench::Work, domain::Boundaries};
use nearfield::balance::{Policy, Strategy};
use nearfield_balance::{
    Subdivision,
    tune::{Row, Settled},
};
use serde::{Serialize, Serializer};

/// The points to be divided, and the settings to try.
pub(super) struct Task {
    pub(super) positions: Vec<[f32; 3]>,
    pub(super) radius: f32,
    pub(super) boundaries: Option<Boundaries>,
    pub(super) work: Work,
    pub(super) policies: Vec<Policy>,
    /// Cells along an edge of a brick.
    pub(super) edges: Vec<u32>,
    pub(super) subregions: Vec<Subdivision>,
    pub(super) rows: usize,
    pub(super) steps: usize,
    pub(super) strategy: Strategy,
    /// Worker threads of the CPU backend; 0 for one per core.
    pub(super) threads: usize,
}

impl Task {
    /// Every brick edge with every number of subregions.
    pub(super) fn combinations(&self) -> impl Iterator<Item = Division> {
        let with = |&edge| {
            let all = self.subregions.iter();
            all.map(move |&subregions| Division { edge, subregions })
        };
        self.edges.iter().flat_map(with)
    }
}

/// Settings of a layout.
#[derive(Debug, Clone, Copy)]
pub(super) struct Division {
    /// Cells along an edge of a brick.
    pub(super) edge: u32,
    pub(super) subregions: Subdivision,
}

/// A sweep and the results of the policies, for one size of bricks and number of subregions.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Combination {
    /// Cells along an edge of a brick.
    pub(super) bricks: u32,
    /// As asked for.
    pub(super) subregions: usize,
    /// Bricks that hold points.
    pub(super) occupied_bricks: usize,
    /// Points of the fullest brick.
    pub(super) highest: f64,
    /// Rows from GPU only to CPU only.
    pub(super) sweep: Vec<Row>,
    /// The fastest row.
    pub(super) best: Row,
    /// By name, in the order asked for.
    #[serde(serialize_with = "as_map")]
    pub(super) policies: Vec<(String, Outcome)>,
}

/// Where a policy settled.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Outcome {
    #[serde(flatten)]
    pub(super) settled: Settled,
    /// Its time divided by the best one of the sweep.
    pub(super) to_best: f64,
}

/// The result of a command, as tune.json has it.
#[derive(Debug, Serialize)]
pub(super) struct Summary<'a> {
    pub(super) cloud: &'a str,
    pub(super) points: usize,
    pub(super) radius: f32,
    pub(super) device: String,
    pub(super) work: Work,
    pub(super) steps: usize,
    #[serde(flatten)]
    pub(super) shown: &'a Combination,
    /// All combinations; the fastest is shown.
    pub(super) combinations: Vec<Brief<'a>>,
}

/// A combination without its sweep.
#[derive(Debug, Serialize)]
pub(super) struct Brief<'a> {
    pub(super) bricks: u32,
    pub(super) subregions: usize,
    pub(super) best: Row,
    #[serde(serialize_with = "as_map")]
    pub(super) policies: &'a [(String, Outcome)],
}

impl<'a> From<&'a Combination> for Brief<'a> {
    fn from(all: &'a Combination) -> Self {
        Self {
            bricks: all.bricks,
            subregions: all.subregions,
            best: all.best,
            policies: &all.policies,
        }
    }
}

pub(super) fn as_map<T: Serialize, S: Serializer>(
    pairs: impl AsRef<[(String, T)]>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let pairs = pairs.as_ref().iter();
    serializer.collect_map(pairs.map(|(name, value)| (name, value)))
}

/// A policy's key in results: its name, and with its numbers where another one has that name too or
/// where it is nothing without them.
pub(super) fn key(policy: Policy, all: &[Policy]) -> String {
    let alone = all.iter().filter(|p| p.name() == policy.name()).count() == 1;
    match policy {
        Policy::Fixed { .. } => policy.to_string(),
        _ if alone => policy.name().to_owned(),
        _ => policy.to_string(),
    }
}
