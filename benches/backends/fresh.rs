//! Each way in processes of its own, whose GPU has no context yet.
//!
//! A backend alone waits for its context when its engine is built; `auto` works on the CPU
//! meanwhile. So steps are compared by when they are done: after n steps, `auto` and `hybrid`
//! should be no later than the backend that has done n steps first. The time counts from before the
//! engine is built.

use super::{Options, Scene, Subject, Way, Work, cold, scenes};
use nearfield::prelude::Device;
use serde::{Deserialize, Serialize};
use std::{env, error::Error, process::Command, time::Instant};

/// Steps of a process.
const STEPS: usize = 202;
/// Processes of a way.
const PROCESSES: usize = 3;

/// What a process took.
#[derive(Serialize, Deserialize)]
struct Took {
    /// Building the engine, with its points.
    build: f64,
    steps: Vec<f64>,
}

impl Took {
    /// Milliseconds after which every step was done.
    fn done(&self) -> Vec<f64> {
        let mut now = self.build;
        let steps = self.steps.iter();
        steps
            .map(|ms| {
                now += ms;
                now
            })
            .collect()
    }
}

/// Does the steps of the only way that is named, and prints their times.
pub(super) fn print(options: &Options) -> Result<(), Box<dyn Error>> {
    let scene = scenes(options).into_iter().next().ok_or("no such cloud")?;
    let works = options.works(&[Work::Lists, Work::Counts, Work::Density]);
    let ways = cold::ways(true, &options.way);
    let (Some(&work), Some(&way)) = (works.first(), ways.first()) else {
        return Err("no such job or way".into());
    };
    let began = Instant::now();
    let mut subject = Subject::new(&scene, work, way, options)?;
    let build = began.elapsed().as_secs_f64() * 1e3;
    let steps = (0..STEPS).map(|_| subject.step());
    let steps = steps.collect::<Result<_, _>>()?;
    println!("{}", serde_json::to_string(&Took { build, steps })?);
    Ok(())
}

/// Starts processes for every way, and prints a line for each.
pub(super) fn run(
    scene: &Scene,
    work: Work,
    ways: &[Way],
    options: &Options,
) -> Result<(), Box<dyn Error>> {
    if ways
        .iter()
        .any(|way| matches!(way.device, Device::Emulated(_)))
    {
        // Its clock has no start.
        return Ok(());
    }
    println!("  in {PROCESSES} new processes each, milliseconds from before the engine is built:");
    let mut all = Vec::new();
    for way in ways {
        let runs = (0..PROCESSES).map(|_| process(scene, work, way, options));
        let runs = runs.collect::<Result<Vec<_>, _>>()?;
        // The slowest process, step by step.
        let done = (0..STEPS).map(|step| {
            let each = runs.iter().map(|run| run[step]);
            each.fold(0.0, f64::max)
        });
        all.push((way, done.collect::<Vec<f64>>()));
    }
    let alone: Vec<_> = all
        .iter()
        .filter(|(way, _)| matches!(way.device, Device::Cpu | Device::Gpu(_)))
        .collect();
    for (way, done) in &all {
        let first = |step: usize| {
            let each = alone.iter().map(|(_, done)| done[step]);
            each.fold(f64::INFINITY, f64::min)
        };
        let behind = (2..STEPS).map(|step| done[step] / first(step));
        let most = behind.fold(0.0, f64::max);
        let ratio = match alone.is_empty() {
            true => String::new(),
            false => format!("; from the third on at most {most:.3} of the backend that was first"),
        };
        println!(
            "  {:12} first {:.1}, third {:.1}, 32nd {:.1}, {STEPS}th {:.1}{ratio}",
            way.name,
            done[0],
            done[2],
            done[31],
            done[STEPS - 1],
        );
    }
    Ok(())
}

/// When the steps of a way in a new process were done.
fn process(
    scene: &Scene,
    work: Work,
    way: &Way,
    options: &Options,
) -> Result<Vec<f64>, Box<dyn Error>> {
    let output = Command::new(env::current_exe()?)
        .arg("--fresh")
        .args(["--cloud", &scene.name, "--work", work.name()])
        .args(["--way", way.name])
        .args(["--points", &options.points().to_string()])
        .args(["--threads", &options.threads.to_string()])
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let took: Took = serde_json::from_slice(&output.stdout)?;
    Ok(took.done())
}
