//! Every way from a cold start, so that no way may be slow before it has settled: the first step,
//! the slowest of ten steps in any of ten runs, and the slowest step.
//!
//! Two ratios to the better backend: to its settled steps, and to the same ten steps of its own
//! cold start, because a backend alone takes memory in its first steps too. `auto` starts its GPU
//! while the CPU works, so its first tens of steps are the CPU's; [`fresh`] has what that means in
//! a process of its own.

use super::{Options, Scene, Subject, Way, Work, by_turns, fresh, median, scenes};
use nearfield::{balance::Strategy, prelude::Device};
use std::{
    error::Error as StdError,
    time::{Duration, Instant},
};

/// Steps of a run; the first two are not compared, because both backends are new.
const STEPS: usize = 32;
/// Steps of an engine that takes a GPU in meanwhile.
const STEPS_OF_AUTO: usize = 202;
/// Steps whose median is compared.
const TEN: usize = 10;
/// Steps that are told of.
const TOLD: usize = 14;

/// How often a way is run.
#[derive(Clone, Copy)]
pub(super) struct Effort {
    /// At most so many runs…
    pub(super) runs: usize,
    /// …of so many steps…
    pub(super) steps: usize,
    /// …and none begins after this time.
    pub(super) limit: Duration,
    /// Whether a run begins to count when the engine has its GPU, which it is given this time for.
    pub(super) wait: Option<Duration>,
}

/// What the runs of a way took, in milliseconds.
pub(super) struct Runs {
    pub(super) name: &'static str,
    /// The first step of the first run.
    pub(super) first: f64,
    /// The median of all steps that are compared.
    pub(super) usual: f64,
    /// The greatest medians of ten steps: of the first ten of all runs, of the second and so on.
    pub(super) tens: Vec<f64>,
    /// The greatest step from the third on.
    pub(super) worst: f64,
    /// The CPU backend's share of the work in the last step, where both had one.
    pub(super) share: f64,
}

impl Runs {
    /// The greatest median of ten steps of a run.
    pub(super) fn worst_ten(&self) -> f64 {
        self.tens.iter().copied().fold(0.0, f64::max)
    }

    /// The greatest ratio of ten steps to the same ten of another way, or to its last ones.
    fn by(&self, other: &Self) -> f64 {
        let last = other.tens.len() - 1;
        let tens = self.tens.iter().enumerate();
        tens.map(|(number, ten)| ten / other.tens[number.min(last)])
            .fold(0.0, f64::max)
    }
}

/// Prints a table for every cloud and work.
pub(super) fn run(options: &Options, gpu: bool) -> Result<(), Box<dyn StdError>> {
    let runs = if options.quick { 2 } else { 10 };
    for scene in scenes(options) {
        for work in options.works(&[Work::Lists, Work::Density]) {
            let ways = ways(gpu, &options.way);
            let rows = ways.iter().map(|&way| {
                let steps = match way.device {
                    Device::Auto => STEPS_OF_AUTO,
                    _ => STEPS,
                };
                let limit = Duration::MAX;
                let effort = Effort {
                    runs,
                    steps,
                    limit,
                    wait: None,
                };
                of_way(&scene, work, way, options, effort)
            });
            let rows = rows.collect::<Result<Vec<_>, _>>()?;
            let better = better(&ways, &rows);
            let (name, points, work_name) = (&scene.name, scene.points.len(), work.name());
            println!("{name} ({points}), {work_name}: {runs} runs, milliseconds");
            println!(
                "  {:12} {:>9} {:>9} {:>9} {:>9}   worst ten by the better backend, settled and \
                 from its own start",
                "", "first", "usual", "worst ten", "worst"
            );
            for row in &rows {
                let ratios = better.map_or_else(String::new, |better| {
                    let settled = row.worst_ten() / better.usual;
                    format!("{settled:.3} {:.3}", row.by(better))
                });
                println!(
                    "  {:12} {:9.3} {:9.3} {:9.3} {:9.3}   {ratios}",
                    row.name,
                    row.first,
                    row.usual,
                    row.worst_ten(),
                    row.worst
                );
            }
            fresh::run(&scene, work, &ways, options)?;
        }
    }
    Ok(())
}

/// The better backend alone, of those that were timed.
pub(super) fn better<'r>(ways: &[Way], rows: &'r [Runs]) -> Option<&'r Runs> {
    let alone = |way: &Way| matches!(way.device, Device::Cpu | Device::Gpu(_));
    let rows = ways.iter().zip(rows).filter(|(way, _)| alone(way));
    rows.map(|(_, row)| row)
        .min_by(|a, b| a.usual.total_cmp(&b.usual))
}

/// The CPU and the GPU alone, both, and the choice of the engine.
pub(super) fn ways(gpu: bool, named: &str) -> Vec<Way> {
    let way_of = |name, device| by_turns::way(name, device, Strategy::Flat);
    let mut ways = vec![way_of("CPU", Device::Cpu)];
    if gpu {
        ways.push(way_of("GPU", Device::Gpu(0)));
        ways.push(way_of("hybrid", Device::Hybrid(0)));
        ways.push(way_of("auto", Device::Auto));
    } else {
        ways.push(way_of("emulated", Device::Emulated(Default::default())));
    }
    ways.retain(|way| way.name.contains(named));
    ways
}

/// Runs a way again and again, with an engine of its own every time.
pub(super) fn of_way(
    scene: &Scene,
    work: Work,
    way: Way,
    options: &Options,
    effort: Effort,
) -> Result<Runs, nearfield::Error> {
    let began = Instant::now();
    let (mut all, mut tens) = (Vec::new(), Vec::new());
    let (mut first, mut share) = (0.0, 0.0);
    for number in 0..effort.runs {
        if number > 0 && began.elapsed() > effort.limit {
            break;
        }
        let mut subject = Subject::new(scene, work, way, options)?;
        if number == 0 {
            first = subject.step()?;
        }
        if let (Device::Auto, Some(limit)) = (way.device, effort.wait) {
            wait_for_gpu(&mut subject, limit)?;
        }
        let mut times = Vec::new();
        // The first step of the first run is one of two that are not compared.
        for step in usize::from(number == 0)..effort.steps {
            let took = subject.step()?;
            if options.steps && number == 0 && step < TOLD {
                subject.tell(step, took);
            }
            if step >= 2 {
                times.push(took);
            }
        }
        for (number, ten) in times.chunks(TEN).enumerate() {
            let ten = median(ten.to_vec());
            match tens.get_mut(number) {
                Some(worst) => *worst = ten.max(*worst),
                None => tens.push(ten),
            }
        }
        all.extend_from_slice(&times);
        share = super::split_of(&subject.engine).map_or(0.0, |split| split.share);
    }
    Ok(Runs {
        name: way.name,
        first,
        worst: all.iter().copied().fold(0.0, f64::max),
        tens,
        usual: median(all),
        share,
    })
}

/// Steps until the engine has taken its GPU in, or the time is over.
fn wait_for_gpu(subject: &mut Subject<'_>, limit: Duration) -> Result<(), nearfield::Error> {
    let began = Instant::now();
    while began.elapsed() < limit && subject.engine.report().device == Device::Cpu {
        subject.step()?;
    }
    Ok(())
}
