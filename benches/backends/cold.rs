//! Every way from a cold start, so that no way may be slow before it has settled: the first step,
//! the slowest of ten steps in any of ten runs, and the slowest step.

use super::{Options, Scene, Subject, Way, Work, by_turns, median, scenes};
use nearfield::{balance::Strategy, prelude::Device};
use std::error::Error as StdError;

/// Steps of a run; the first two are not compared, because both backends are new.
const STEPS: usize = 32;
/// Steps of an engine that takes a GPU in meanwhile.
const STEPS_OF_AUTO: usize = 202;
/// Steps whose median is compared.
const TEN: usize = 10;

/// What the runs of a way took, in milliseconds.
struct Runs {
    name: &'static str,
    /// The first step of the first run.
    first: f64,
    /// The median of all steps that are compared.
    usual: f64,
    /// The greatest median of ten steps of a run.
    worst_ten: f64,
    /// The greatest step from the third on.
    worst: f64,
}

/// Prints a table for every cloud and work.
pub(super) fn run(options: &Options, gpu: bool) -> Result<(), Box<dyn StdError>> {
    let runs = if options.quick { 2 } else { 10 };
    for scene in scenes(options) {
        for work in [Work::Lists, Work::Density] {
            let ways = ways(gpu);
            let rows = ways.iter().map(|&way| of_way(&scene, work, way, runs));
            let rows = rows.collect::<Result<Vec<_>, _>>()?;
            // Those of one backend come first.
            let alone = rows.iter().take(1 + usize::from(gpu));
            let better = alone.map(|row| row.usual).fold(f64::INFINITY, f64::min);
            let (name, points, work) = (&scene.name, scene.points.len(), work.name());
            println!("{name} ({points}), {work}: {runs} runs, milliseconds");
            println!(
                "  {:12} {:>9} {:>9} {:>9} {:>9}   worst ten by the better backend",
                "", "first", "usual", "worst ten", "worst"
            );
            for row in &rows {
                let Runs {
                    name,
                    first,
                    usual,
                    worst_ten,
                    worst,
                } = row;
                let ratio = worst_ten / better;
                println!(
                    "  {name:12} {first:9.3} {usual:9.3} {worst_ten:9.3} {worst:9.3}   {ratio:.3}"
                );
            }
        }
    }
    Ok(())
}

/// The CPU and the GPU alone, both, and the choice of the engine.
fn ways(gpu: bool) -> Vec<Way> {
    let way_of = |name, device| by_turns::way(name, device, Strategy::Flat);
    let mut ways = vec![way_of("CPU", Device::Cpu)];
    if gpu {
        ways.push(way_of("GPU", Device::Gpu(0)));
        ways.push(way_of("hybrid", Device::Hybrid(0)));
        ways.push(way_of("auto", Device::Auto));
    } else {
        ways.push(way_of("emulated", Device::Emulated(Default::default())));
    }
    ways
}

fn of_way(scene: &Scene, work: Work, way: Way, runs: usize) -> Result<Runs, nearfield::Error> {
    let steps = match way.device {
        Device::Auto => STEPS_OF_AUTO,
        _ => STEPS,
    };
    let (mut all, mut tens) = (Vec::new(), Vec::new());
    let mut first = 0.0;
    for number in 0..runs {
        let mut subject = Subject::new(scene, work, way)?;
        let times = (0..steps).map(|_| subject.step());
        let times = times.collect::<Result<Vec<_>, _>>()?;
        if number == 0 {
            first = times[0];
        }
        tens.extend(times[2..].chunks(TEN).map(|ten| median(ten.to_vec())));
        all.extend_from_slice(&times[2..]);
    }
    let worst_of = |times: &[f64]| times.iter().copied().fold(0.0, f64::max);
    Ok(Runs {
        name: way.name,
        first,
        worst: worst_of(&all),
        worst_ten: worst_of(&tens),
        usual: median(all),
    })
}
