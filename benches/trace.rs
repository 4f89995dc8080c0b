//! What recording costs: the same steps with a subscriber that wants nothing, and with a trace
//! being written.
//!
//! `cargo bench --bench trace [-- --device cpu|gpu|hybrid|emulated]`. A subscriber is there in
//! either, because the threads of the engine's pool know only the one of the whole process; a
//! switch turns it off. Steps with and without are taken in turn in one process, so that both see
//! the same machine; what is printed is the median of each and of the differences of neighbours,
//! and the run fails when recording costs more than 2 % of a step or 50 µs, whichever is more.

use nearfield::prelude::*;
use nearfield_testkit::cloud::{self, Cloud};
use nearfield_trace::Options;
use std::{
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};
use tracing_subscriber::{Layer, Registry, filter::dynamic_filter_fn, layer::SubscriberExt};

/// Points of the lattice, and steps with each.
const POINTS: usize = 1_000_000;
const STEPS: usize = 41;

/// Whether steps are recorded.
static ON: AtomicBool = AtomicBool::new(true);

fn main() -> ExitCode {
    let mut given = std::env::args().skip_while(|argument| argument != "--device");
    let device = match given.nth(1) {
        Some(name) => name.parse().expect("a device"),
        None => Device::Cpu,
    };
    let cloud: Cloud = "lattice".parse().expect("a cloud");
    let radius = cloud.default_radius(POINTS);
    let mut positions = cloud.points(POINTS, 1);
    let mut engine = Engine::builder(radius)
        .device(device)
        .build()
        .expect("a device that is there");
    let set = engine.add_point_set(&positions).expect("good points");
    let order = engine.z_sort(set).expect("a set");
    positions = order.reordered(&positions).expect("as many points");

    let path = std::env::temp_dir().join(format!("nearfield-bench-{}.jsonl", std::process::id()));
    let (layer, recording) = Options::default().record(&path).expect("a trace");
    let layer = layer.with_filter(dynamic_filter_fn(|_, _| ON.load(Ordering::Relaxed)));
    let subscriber = Registry::default().with(layer);
    tracing::subscriber::set_global_default(subscriber).expect("the only subscriber");
    let (mut off, mut on) = (Vec::new(), Vec::new());
    for step in 0..=2 * STEPS {
        cloud::drift(&mut positions, 0.015 * radius, step as u64);
        let recorded = step % 2 == 1;
        ON.store(recorded, Ordering::Relaxed);
        let begin = Instant::now();
        {
            let _step = tracing::debug_span!(target: "nearfield", "bench.step", step).entered();
            engine.update(set, &positions).expect("good points");
            engine.find_neighbors().expect("enough memory");
        }
        let took = begin.elapsed().as_secs_f64() * 1e6;
        if recorded {
            on.push(took)
        } else {
            off.push(took)
        }
    }
    recording.finish().expect("room for the trace");
    let bytes = path.metadata().map_or(0, |file| file.len());
    // It served its purpose; a copy left behind in the temporary folder does no harm.
    let _ = std::fs::remove_file(&path);

    // The first step, without, pays for fresh memory.
    off.remove(0);
    let differences = on.iter().zip(&off).map(|(on, off)| on - off).collect();
    let (without, with, cost) = (median(off), median(on), median(differences));
    let most = (0.02 * without).max(50.0);
    println!(
        "lattice/1e6/r=2/lists/{device}: {without:.0} µs a step without, {with:.0} µs recorded, \
         {cost:.0} µs ({:.2} %) more; {} bytes a step; at most {most:.0} µs are allowed",
        100.0 * cost / without,
        bytes / STEPS as u64
    );
    if cost <= most {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
