//! Settings of an evaluation or a run.

use crate::Cell;
use nearfield::{
    Builder, Device, Engine, Precision,
    balance::{Equal, Policy, Strategy},
};

/// Settings of the computation, which change results only by rounding.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where pairs are found and evaluated; [`Device::Auto`] by default. With [`Device::Gpu`] and a
    /// skin, a [`Simulation`](crate::Simulation) keeps its atoms on the GPU from step to step.
    pub device: Device,
    /// Worker threads; 0, the default, for one per core.
    pub threads: usize,
    /// How a GPU maps cells to threads.
    pub strategy: Strategy,
    /// Policy that divides the work of hybrid devices.
    pub policy: Policy,
    /// What the subregions of a step of hybrid devices have about as much of.
    pub equal_subregions: Equal,
    /// Whether sums are to be the same bits on devices that choose by timings; false by default.
    pub deterministic: bool,
    /// Distance by which lists reach beyond the cut-off, so that they need not be found every step.
    /// 0, the default, stores no lists: in a Lennard-Jones liquid a CPU finds pairs in half the
    /// time that it takes to read them. Atoms stay on a GPU only if this is positive.
    pub skin: f32,
    /// Precision of positions when pairs are found, and of the sums over pairs;
    /// [`Precision::Single`] by default. Double sums are the host's.
    pub precision: Precision,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            device: Device::Auto,
            threads: 0,
            strategy: Strategy::Flat,
            policy: Policy::Model,
            equal_subregions: Equal::Work,
            deterministic: false,
            skin: 0.0,
            precision: Precision::Single,
        }
    }
}

impl Options {
    /// An engine's settings.
    pub(crate) fn builder(&self, cell: &Cell, cutoff: f64) -> Builder {
        cell.set(Engine::builder(cutoff).precision(self.precision))
            .device(self.device)
            .threads(self.threads)
            .strategy(self.strategy)
            .policy(self.policy)
            .equal_subregions(self.equal_subregions)
            .deterministic(self.deterministic)
    }
}
