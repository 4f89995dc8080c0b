//! `nearfield info`: what this machine offers.

use crate::{failure::Failure, output};
use nearfield::{Engine, SimdLevel};
use serde::Serialize;

/// Flags of `nearfield info`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Info {
    version: &'static str,
    cores: usize,
    simd: Vec<&'static str>,
    gpu: &'static str,
    auto: String,
    reason: &'static str,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let report = Engine::builder(1.0).build()?.report();
    let info = Info {
        version: env!("CARGO_PKG_VERSION"),
        cores: report.threads,
        simd: SimdLevel::available()
            .iter()
            .map(|level| level.name())
            .collect(),
        gpu: "not part of this build",
        auto: report.device.to_string(),
        reason: report.reason,
    };
    if args.json {
        return output::print_json(&info);
    }
    output::print_lines([
        format!("nearfield {}", info.version),
        format!(
            "CPU lane     {} threads, vectors: {}",
            info.cores,
            info.simd.join(", ")
        ),
        format!("GPU lane     {}", info.gpu),
        format!("device auto  {} ({})", info.auto, info.reason),
    ])
}
