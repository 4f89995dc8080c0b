//! Either backend alone and both together, step by step in turns.
//!
//! All run in one process, so that other programs on the machine slow all of them alike. Turns go
//! forwards and backwards, so that each way comes after either of the others: the step before
//! decides what is in the caches and which cores are awake.

use super::{Options, SLOW_MS, Scene, Subject, Way, Work, median, scenes, split_of};
use nearfield::{
    balance::{Policy, Strategy},
    prelude::Device,
};
use nearfield_plot::INK;
use std::error::Error;

/// Times every job and strategy on all clouds.
pub(super) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    for scene in scenes(options) {
        for (work, strategy) in [
            (Work::Lists, Strategy::Flat),
            (Work::Density, Strategy::Flat),
            (Work::Force, Strategy::Flat),
            (Work::Density, Strategy::ChildPerCell),
            (Work::Force, Strategy::ChildPerCell),
        ] {
            // Dense cells take long, and are timed only where they are asked for. Their lists do
            // not fit everywhere.
            let skipped = is_dense(&scene) && (options.cloud.is_empty() || work == Work::Lists);
            if !skipped && strategy.to_string().contains(&options.way) {
                compare(&scene, work, strategy, options)?;
            }
        }
    }
    Ok(())
}

fn is_dense(scene: &Scene) -> bool {
    scene.occupancy.is_some_and(|points| points > 30.0)
}

pub(super) fn way(name: &'static str, device: Device, strategy: Strategy) -> Way {
    Way {
        name,
        device,
        strategy,
        policy: Policy::Model,
        color: INK,
    }
}

/// Times one job with one strategy, and prints a line.
fn compare(
    scene: &Scene,
    work: Work,
    strategy: Strategy,
    options: &Options,
) -> Result<(), Box<dyn Error>> {
    let dense = is_dense(scene);
    let mut ways = vec![
        way("both", Device::Hybrid(0), strategy),
        way("CPU", Device::Cpu, strategy),
        way("GPU", Device::Gpu(0), strategy),
    ];
    if strategy == Strategy::Flat {
        // Differs from itself by what no difference between ways says anything about.
        ways.push(way("GPU again", Device::Gpu(0), strategy));
    }
    let made = ways
        .iter()
        .map(|&way| Subject::new(scene, work, way, options));
    let mut subjects = made.collect::<Result<Vec<_>, _>>()?;
    // Short steps scatter more.
    let (before, timed) = match (options.quick, work) {
        (true, _) => (12, 5),
        (false, _) if dense && strategy == Strategy::Flat => (45, 51),
        (false, _) if dense => (25, 15),
        (false, Work::Lists) => (45, 51),
        (false, _) if strategy == Strategy::Flat => (45, 101),
        (false, _) => (45, 25),
    };
    let mut times = vec![Vec::new(); ways.len()];
    // A backend alone needs a few steps to have its memory; both need many to settle.
    let alone_from = before - 6;
    for number in 0..before + timed {
        let count = ways.len();
        for turn in 0..count {
            let turn = if number % 2 == 0 {
                turn
            } else {
                count - 1 - turn
            };
            let way = (turn + number / 2) % count;
            let settling = ways[way].name == "both";
            if !settling && (number < alone_from || is_slow(&times, way)) {
                // All have the same points at the same time.
                subjects[way].drift();
                continue;
            }
            let took = subjects[way].step()?;
            if settling && options.steps {
                subjects[way].tell(number, took);
            }
            if number >= before {
                times[way].push(took);
            }
        }
    }
    let medians: Vec<f64> = times.into_iter().map(median).collect();
    let (together, alone) = (medians[0], &medians[1..3]);
    let better = alone.iter().copied().fold(f64::INFINITY, f64::min);
    let names = ways.iter().zip(&medians);
    let each: Vec<_> = names
        .map(|(way, ms)| format!("{} {ms:.2}", way.name))
        .collect();
    let split = split_of(&subjects[0].engine);
    let share = split.map_or(0.0, |split| 100.0 * split.share);
    println!(
        "{} ({}), {}, {strategy}: {} ms, {:.3} times as fast as the better backend, \
         {share:.1} % on the CPU",
        scene.name,
        scene.points.len(),
        work.name(),
        each.join(", "),
        better / together
    );
    Ok(())
}

/// Returns true if a way is so slow that more of its steps would tell nothing new.
fn is_slow(times: &[Vec<f64>], way: usize) -> bool {
    let own = &times[way];
    let slower_than =
        |other: &Vec<f64>| other.len() > 10 && median(own.clone()) > 2.0 * median(other.clone());
    own.len() > 10 && times.iter().any(slower_than)
        || own.len() > 1 && own.iter().all(|&ms| ms > 4.0 * SLOW_MS)
}
