//! Flags that several commands share.

pub(crate) use nearfield_dam_break::count;

use nearfield::{
    Builder, Device, Engine,
    balance::{Equal, Policy, Strategy},
};
use serde::Serialize;
use std::str::FromStr;

/// Reads a count of at least one.
///
/// # Errors
/// As [`count`], and when it is zero.
pub(crate) fn positive_count(text: &str) -> Result<usize, String> {
    match count(text)? {
        0 => Err("at least one is needed".into()),
        count => Ok(count),
    }
}

/// Reads a count of steps.
pub(crate) fn steps(text: &str) -> Result<u64, String> {
    positive_count(text).map(|count| count as u64)
}

/// The given items in their order, each once.
pub(crate) fn distinct<T: Copy + PartialEq>(given: &[T]) -> Vec<T> {
    let mut once = Vec::new();
    for &item in given {
        if !once.contains(&item) {
            once.push(item);
        }
    }
    once
}

/// The end of a command's help: command lines that work.
macro_rules! examples {
    ($($line:literal),+) => {
        concat!("Examples:", $("\n  ", $line),+)
    };
}
pub(crate) use examples;

/// The points of a command that times them: by a word, or by a flag.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CloudOption {
    /// lattice, pool-spray, clusters, plummer or uniform; bench and tune take a file of points too
    /// [default: lattice]
    #[arg(value_name = "CLOUD", conflicts_with = "cloud")]
    place: Option<String>,
    /// The same as a flag
    #[arg(long, value_name = "CLOUD")]
    cloud: Option<String>,
}

impl CloudOption {
    /// The name of a cloud, or of a file.
    pub(crate) fn name(&self) -> &str {
        let given = self.place.as_deref().or(self.cloud.as_deref());
        given.unwrap_or("lattice")
    }
}

/// Seed of the points of a named cloud, where no flag says otherwise.
pub(crate) const SEED: u64 = 1;

/// Where to run.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct EngineOptions {
    /// Where to run: auto, cpu, gpu[:N], hybrid[:N] or emulated[:KEY=VALUE,…]
    #[arg(long, default_value_t = Device::Auto)]
    pub(crate) device: Device,
    /// Worker threads on the CPU; 0 for one per core
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) threads: usize,
    /// How the GPU maps cells to threads: flat, child-per-cell, child-aggregated, or auto, which
    /// times the others on the first steps
    #[arg(long, default_value_t = Strategy::Flat)]
    pub(crate) strategy: Strategy,
    /// Policy that divides the work between both backends (hybrid, emulated): model,
    /// band[:ALPHA:BETA], fraction or fixed:THETA
    #[arg(long, default_value_t = Policy::Model)]
    pub(crate) policy: Policy,
    /// What the parts of a step of both backends have about as much of (hybrid, emulated): work
    /// or points
    #[arg(long, default_value_t = Equal::Work, value_name = "WHAT")]
    pub(crate) equal_subregions: Equal,
    /// Ignore timings: same input, same bits
    #[arg(long)]
    pub(crate) deterministic: bool,
}

impl EngineOptions {
    /// An engine's settings with these options.
    pub(crate) fn engine(&self, radius: Radius) -> Builder {
        radius
            .builder()
            .device(self.device)
            .threads(self.threads)
            .deterministic(self.deterministic)
            .strategy(self.strategy)
            .policy(self.policy)
            .equal_subregions(self.equal_subregions)
    }
}

/// The name of a value on the command line and in JSON.
pub(crate) fn name(value: impl clap::ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// A precision to search in, as it is named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Precision {
    F32,
    F64,
}

/// A search radius in the precision to search in.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Radius {
    Single(f32),
    Double(f64),
}

impl Radius {
    /// An engine's settings with this radius, in its precision.
    pub(crate) fn builder(self) -> Builder {
        match self {
            Self::Single(radius) => Engine::builder(radius),
            Self::Double(radius) => Engine::builder(radius).precision(nearfield::Precision::Double),
        }
    }
}

/// A radius before its precision is chosen: it is rounded once, to either.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RadiusText {
    single: f32,
    double: f64,
}

impl FromStr for RadiusText {
    type Err = std::num::ParseFloatError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self {
            single: text.parse()?,
            double: text.parse()?,
        })
    }
}

impl RadiusText {
    /// The radius in double precision, to be compared with other lengths.
    pub(crate) fn double(self) -> f64 {
        self.double
    }

    /// The radius in this precision.
    pub(crate) fn to(self, precision: Precision) -> Radius {
        match precision {
            // A radius that f32 cannot hold is out of range in either precision; in f64 the error
            // names it as it was given.
            Precision::F32 if self.single == 0.0 || !self.single.is_finite() => {
                Radius::Double(self.double)
            }
            Precision::F32 => Radius::Single(self.single),
            Precision::F64 => Radius::Double(self.double),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_counts_are_of_one_at_least() {
        assert!(positive_count("0").is_err() && positive_count("0e5").is_err());
        assert_eq!(positive_count("1e0"), Ok(1));
    }
}
