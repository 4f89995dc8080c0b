//! Engines on a GPU give the contract's neighbours too. Without a GPU the tests do nothing, or fail
//! if `NEARFIELD_REQUIRE_GPU=1`.
#![allow(
    clippy::disallowed_methods,
    reason = "copies of a test need no counting"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/functions.rs"]
mod functions;
#[path = "../common/kinds.rs"]
mod kinds;
#[path = "../common/portions.rs"]
mod portions_of;
#[path = "../common/with_text.rs"]
mod with_text;

mod alone;
mod device_data;
mod device_double;
mod device_engine;
mod device_filters;
mod device_geometry;
mod device_parts;
mod device_query;
mod device_sequences;
mod device_shared;
mod device_verlet;
mod fields;
mod filters;
mod host_lists;
mod hybrid;
mod indices;
mod kernels;
mod on_gpu;
mod over_lists;
mod portions;
mod sums;
mod systems;
mod wide;

use nearfield::{Builder, Pair, prelude::*, report::SplitReport};
use nearfield_testkit::{
    conformance::Case,
    oracle::{self, Real},
};
use std::{env, sync::RwLock, time::SystemTime};

const GPU: Device = Device::Gpu(0);
const BOTH: Device = Device::Hybrid(0);

/// Whether there is a GPU to test on.
fn gpu() -> bool {
    let required = env::var("NEARFIELD_REQUIRE_GPU").is_ok_and(|value| value == "1");
    match Engine::builder(1.0).device(GPU).build() {
        Ok(_) => true,
        Err(error) if required => panic!("NEARFIELD_REQUIRE_GPU=1, but {error}"),
        Err(error) => {
            eprintln!("skipped: {error}");
            false
        }
    }
}

/// Held for writing by a test that fills the memory of the card, where others could not load their
/// kernels meanwhile.
static CARD: RwLock<()> = RwLock::new(());

/// Ends a test where there is no GPU; else the card has memory until the end of the test, or is the
/// test's `alone`.
macro_rules! needs_gpu {
    () => {
        needs_gpu!(@ read);
    };
    (alone) => {
        needs_gpu!(@ write);
    };
    (@ $held:ident) => {
        let held = crate::CARD.$held();
        let _held = held.unwrap_or_else(std::sync::PoisonError::into_inner);
        if !crate::gpu() {
            return;
        }
    };
}
use needs_gpu;

fn uniform<T: Real>(case: &Case<T>) -> bool {
    case.rule == oracle::RadiusRule::Uniform
}

/// The GPU did the work: nothing fell back to the CPU backend.
fn assert_on_gpu(engine: &Engine) {
    let report = engine.report();
    assert_eq!(report.device, GPU, "{:?}, {:?}", report.gpu, report.jobs);
}

/// How both backends shared every job.
fn splits(engine: &Engine) -> Vec<SplitReport> {
    let jobs = engine.report().jobs.into_iter();
    jobs.filter_map(|job| job.split).collect()
}

/// An engine on a device with points, and its set.
fn engine_with(builder: Builder, device: Device, points: &[[f32; 3]]) -> (Engine, PointSetId) {
    let mut engine = builder.device(device).build().unwrap();
    let set = engine.add_point_set(points).unwrap();
    (engine, set)
}

/// Checks that numbers differ by at most a share of each and a share of the largest.
fn assert_close(found: &[f32], expected: &[f32], of_each: f32, of_largest: f32, what: &str) {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        let error = (a - b).abs();
        let most = of_each * b.abs() + of_largest * largest;
        assert!(error <= most, "{what}: number {i} is {a}, not {b}");
    }
}

/// Random numbers that differ from run to run; a failure prints the seed.
fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(1, |since| since.as_nanos() as u64)
}

/// A kernel that exists for the CPU alone.
struct OnCpu;

impl PairKernel for OnCpu {
    type Target = ();
    type Source = ();
    type Output = f32;

    fn pair(&self, pair: Pair, _: (), _: ()) -> f32 {
        pair.d2
    }
}
