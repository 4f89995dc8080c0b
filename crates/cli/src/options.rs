//! Flags that several commands share.

use nearfield::{Builder, Device, Engine, Strategy};

/// Where to run.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct EngineOptions {
    /// Where to run: auto, cpu, gpu, gpu:N, hybrid or hybrid:N
    #[arg(long, default_value_t = Device::Auto)]
    pub(crate) device: Device,
    /// Worker threads on the CPU; 0 for one per core
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) threads: usize,
    /// How the GPU maps cells to threads: flat, child-per-cell, child-aggregated or cell-tasks
    #[arg(long, default_value_t = Strategy::Flat)]
    pub(crate) strategy: Strategy,
}

impl EngineOptions {
    /// An engine's settings with these options.
    pub(crate) fn engine(&self, radius: f32) -> Builder {
        Engine::builder(radius)
            .device(self.device)
            .threads(self.threads)
            .strategy(self.strategy)
    }
}
