//! What sets cost beside their points: 10 to 10,000 sets, where few pairs of them are active.
//!
//! `cargo bench -p nearfield --bench many_sets` adds sets of `--points` points each (one by
//! default), which lie in a row, and lets each search the `--near` next ones. It prints the
//! microseconds of adding a set, of updating a set (or of outdating an active pair), and of
//! searching an active pair, for every number of sets. The same is done with all pairs active for
//! up to `--all` sets. It fails where one of these costs more than ten times what it costs among
//! 100 sets, so a cost that grows with the number of sets is seen on a busy machine too.

use clap::Parser;
use nearfield::{Engine, prelude::*};
use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

/// Growth of the cost of one set or pair that is allowed from 100 sets on: more memory is out of
/// the caches. A cost that follows the number of sets grows a hundredfold.
const MOST: f64 = 10.0;
/// Runs of every number of sets. The least times count.
const RUNS: usize = 3;
/// Below this many microseconds nothing is compared.
const SMALL: f64 = 1.0;

/// Flags of the command line.
#[derive(clap::Parser)]
struct Asked {
    /// Points of a set
    #[arg(long, default_value_t = 1)]
    points: usize,
    /// Sets that each set searches
    #[arg(long, default_value_t = 6)]
    near: usize,
    /// Largest number of sets that all search all
    #[arg(long, default_value_t = 1000)]
    all: usize,
    #[arg(long, default_value = "cpu")]
    device: Device,
    /// Added by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Microseconds of one part of the work: adding a set, updating one, searching a pair.
type Costs = [f64; 3];

fn micros(took: Duration, parts: usize) -> f64 {
    took.as_secs_f64() * 1e6 / parts.max(1) as f64
}

/// The points of a set: a row across the row of sets, moved a little by every step.
fn body(number: usize, points: usize, step: usize) -> Vec<[f32; 3]> {
    let x = 0.3 * number as f32 + 0.01 * step as f32;
    (0..points).map(|k| [x, 0.5 * k as f32, 0.0]).collect()
}

/// Adds sets and takes two steps; the costs are those of adding and of the second step.
fn costs(asked: &Asked, sets: usize, near: Option<usize>) -> Costs {
    let builder = Engine::builder(1.0).device(asked.device);
    let mut engine = builder.build().expect("settings");
    engine.set_all_active(near.is_none());
    let bodies: Vec<_> = (0..sets).map(|k| body(k, asked.points, 0)).collect();
    let begin = Instant::now();
    let add = |points: &Vec<[f32; 3]>| engine.add_point_set(points).expect("points");
    let ids: Vec<PointSetId> = bodies.iter().map(add).collect();
    let adding = micros(begin.elapsed(), sets);
    let mut pairs = if near.is_none() { sets * sets } else { 0 };
    for (k, targets) in ids.iter().enumerate() {
        for sources in ids.iter().skip(k + 1).take(near.unwrap_or(0)) {
            engine.set_active(*targets, *sources, true).expect("sets");
            pairs += 1;
        }
    }
    let (mut updating, mut searching) = (0.0, 0.0);
    for step in 0..2 {
        let bodies: Vec<_> = (0..sets).map(|k| body(k, asked.points, step)).collect();
        let begin = Instant::now();
        for (id, points) in ids.iter().zip(&bodies) {
            engine.update(*id, points).expect("points");
        }
        updating = micros(begin.elapsed(), sets + pairs);
        let begin = Instant::now();
        engine.find_neighbors().expect("lists");
        searching = micros(begin.elapsed(), pairs);
    }
    [adding, updating, searching]
}

/// Prints the costs of every number of sets; returns true if one grows.
fn table(asked: &Asked, what: &str, near: Option<usize>, most: usize) -> bool {
    println!("{what}");
    println!("    sets   add, µs a set   update, µs a set or pair   search, µs an active pair");
    let (mut usual, mut last) = ([f64::INFINITY; 3], [0.0; 3]);
    for sets in [10, 30, 100, 300, 1000, 3000, 10_000] {
        if sets > most {
            break;
        }
        last = (0..RUNS)
            .map(|_| costs(asked, sets, near))
            .fold([f64::INFINITY; 3], |least, costs| {
                std::array::from_fn(|k| costs[k].min(least[k]))
            });
        let [add, update, search] = last;
        println!("{sets:8}   {add:13.2}   {update:24.2}   {search:25.2}");
        if sets == 100 {
            usual = last;
        }
    }
    let grows = |(now, usual): (f64, f64)| now > MOST * usual.max(SMALL);
    last.into_iter().zip(usual).any(grows)
}

fn main() -> ExitCode {
    let asked = Asked::parse();
    let (near, all) = (asked.near, asked.all);
    println!(
        "nearfield {}, {} points per set, device {}",
        env!("CARGO_PKG_VERSION"),
        asked.points,
        asked.device
    );
    let few = format!("each set searches the next {near}");
    let grows = [
        table(&asked, &few, Some(near), 10_000),
        table(&asked, "all sets search all", None, all),
    ];
    if grows.contains(&true) {
        println!("the cost of a set or a pair grows with the number of sets");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
