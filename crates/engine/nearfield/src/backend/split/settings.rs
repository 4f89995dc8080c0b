//! How steps are divided, as an engine was asked to: the settings of its builder that concern two
//! backends.
//!
//! They hold for all jobs of an engine. Each job has a controller of its own under the same policy,
//! because what a backend is good at depends on the job: lists cross the bus entry by entry, a sum
//! as a few numbers a target.

use crate::balance::Strategy;
use nearfield_balance::{Policy, SUBREGIONS, Subdivision, Ties};

/// Cells along an edge of a brick, where nothing else was asked for.
pub(crate) const BRICK_EDGE: u32 = 2;

/// Settings of the division; their numbers have been checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// Chooses the threshold from the times of earlier steps.
    pub(crate) policy: Policy,
    /// Cells along each edge of a brick, 1 to 8.
    pub(crate) brick_edge: u32,
    /// Subregions of a step, 1 to 64 of them.
    pub(crate) subregions: Subdivision,
    /// Order of bricks whose occupancy is alike.
    pub(crate) ties: Ties,
    /// Nothing may depend on what steps took.
    pub(crate) deterministic: bool,
}

impl Settings {
    /// A policy, and what is usual of everything else.
    pub(crate) fn of(policy: Policy) -> Self {
        Self {
            policy,
            brick_edge: BRICK_EDGE,
            subregions: SUBREGIONS.into(),
            ties: ties_for(Strategy::Flat, policy),
            deterministic: false,
        }
    }
}

/// Bricks that go over together. For strategies that go from cell to cell the cost of a cell
/// depends on its points; for the others only the pairs count, and the CPU backend's bricks may as
/// well lie together. Policy `band` moves by notches of occupancy, whatever a pair costs.
pub(crate) fn ties_for(strategy: Strategy, policy: Policy) -> Ties {
    match (strategy.of_share(), policy) {
        (_, Policy::Band { .. }) => Ties::Octaves,
        (Strategy::Flat, _) => Ties::Compact,
        _ => Ties::Octaves,
    }
}
