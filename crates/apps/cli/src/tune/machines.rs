//! `nearfield tune --sweep-machines N`: compares the policies with an exhaustive sweep, on emulated
//! machines of random speed.
//!
//! Policy model must come within 3 % of the best row in at most 8 steps and stay there. Other
//! policies are shown for comparison.

use super::{
    emulated::{best, cells, layout},
    task::{Division, Task, as_map, key},
};
use crate::{bench::Work, failure::Failure, options, output};
use indicatif::HumanCount;
use nearfield::balance::{Policy, emulated::EmulatedSpec};
use nearfield_balance::{
    Action, Controller, Layout, Machine, Plan, Ties,
    tune::{Row, sweep},
};
use nearfield_testkit::random::Random;
use serde::Serialize;

/// Allowed share above the best row, and allowed steps to reach it.
const ABOVE: f64 = 0.03;
const STEPS: usize = 8;

/// All machines, as JSON has them.
#[derive(Debug, Serialize)]
struct Summary<'a> {
    cloud: &'a str,
    points: usize,
    radius: f32,
    work: Work,
    bricks: u32,
    subregions: usize,
    rows: usize,
    steps: usize,
    machines: Vec<Trial>,
    /// The largest `to_best` and the most steps of every policy.
    #[serde(serialize_with = "as_map")]
    worst: Vec<(String, Convergence)>,
    /// Whether policy model was within 3 % of the best in 8 steps everywhere; null where it did not
    /// run.
    within: Option<bool>,
}

/// One machine.
#[derive(Debug, Serialize)]
struct Trial {
    seed: u64,
    speed: f64,
    bandwidth: f64,
    launch_us: f64,
    device: String,
    best: Row,
    #[serde(serialize_with = "as_map")]
    policies: Vec<(String, Convergence)>,
}

/// How closely and how fast a policy came to the best row.
#[derive(Debug, Clone, Copy, Serialize)]
struct Convergence {
    /// Milliseconds of its last step divided by the best row's.
    to_best: f64,
    /// Steps until it was within 3 % of the best row for good, exploration steps left out; null if
    /// never.
    steps: Option<usize>,
}

impl Convergence {
    fn passes(&self) -> bool {
        self.to_best <= 1.0 + ABOVE && self.steps.is_some_and(|steps| steps <= STEPS)
    }

    /// The worse of both, number by number.
    fn worse(self, other: Self) -> Self {
        Self {
            to_best: self.to_best.max(other.to_best),
            steps: self.steps.zip(other.steps).map(|(a, b)| a.max(b)),
        }
    }
}

pub(super) fn run(
    task: &Task,
    cloud: &str,
    seed: u64,
    count: u32,
    json: bool,
) -> Result<(), Failure> {
    let division = only(task)?;
    let (cells, near) = cells(task)?;
    let layout = layout(task, &cells, &near, division, Ties::Even)?;
    let machines = (0..u64::from(count))
        .map(|number| try_machine(task, &layout, seed.wrapping_add(number)))
        .collect::<Result<Vec<_>, _>>()?;
    let summary = Summary {
        cloud,
        points: task.positions.len(),
        radius: task.radius,
        work: task.work,
        bricks: division.edge,
        subregions: division.subregions.count,
        rows: task.rows,
        steps: task.steps,
        worst: worst(&machines),
        within: verdict(&machines),
        machines,
    };
    output::print(json, &summary, || lines(&summary))?;
    match summary.within {
        Some(false) => Err(Failure::Wrong(format!(
            "policy model is not within {} % of the best in {STEPS} steps on every machine",
            100.0 * ABOVE
        ))),
        _ => Ok(()),
    }
}

/// The only combination of layout settings; refuses several.
fn only(task: &Task) -> Result<Division, Failure> {
    match (task.edges.as_slice(), task.subregions.as_slice()) {
        (&[edge], &[subregions]) => Ok(Division { edge, subregions }),
        (edges, subregions) => Err(Failure::Usage(format!(
            "random machines are tried on one layout: give one --bricks instead of {} and one \
             --subregions instead of {}",
            edges.len(),
            subregions.len()
        ))),
    }
}

/// A machine with log-uniform random properties.
fn random_spec(seed: u64) -> EmulatedSpec {
    let mut random = Random::new(seed);
    let mut between = |low: f64, high: f64| low * (high / low).powf(random.unit());
    EmulatedSpec {
        speed: between(0.05, 50.0),
        bandwidth: between(1.0, 60.0),
        launch_us: between(2.0, 50.0),
        seed,
        ..EmulatedSpec::default()
    }
}

fn try_machine(task: &Task, layout: &Layout, seed: u64) -> Result<Trial, Failure> {
    let spec = random_spec(seed);
    let best = best(&sweep(layout, &Machine::new(spec), task.rows)?)?;
    let mut policies = Vec::new();
    for &policy in &task.policies {
        let found = follow(layout, spec, policy, task.steps, best.total_ms)?;
        policies.push((key(policy, &task.policies), found));
    }
    Ok(Trial {
        seed,
        speed: spec.speed,
        bandwidth: spec.bandwidth,
        launch_us: spec.launch_us,
        device: format!("emulated:{spec}"),
        best,
        policies,
    })
}

/// Runs a policy and compares every step of it with the best row.
fn follow(
    layout: &Layout,
    spec: EmulatedSpec,
    policy: Policy,
    steps: usize,
    best: f64,
) -> Result<Convergence, Failure> {
    let mut machine = Machine::new(spec);
    let mut controller = Controller::new(policy)?;
    let mut decision = controller.start(layout);
    let (mut last, mut away) = (f64::INFINITY, 0);
    for step in 1..=steps {
        let plan = Plan::new(layout, &decision.cuts)?;
        let times = machine.step(layout, &plan);
        // An exploration step does not count.
        if decision.action != Action::Explore {
            last = machine.quiet(layout, &plan).total_ms() / best;
            if last > 1.0 + ABOVE {
                away = step;
            }
        }
        decision = controller.next(layout, &plan, &times)?;
    }
    Ok(Convergence {
        to_best: last,
        steps: (last <= 1.0 + ABOVE).then_some(away),
    })
}

fn worst(machines: &[Trial]) -> Vec<(String, Convergence)> {
    let mut worst: Vec<(String, Convergence)> = Vec::new();
    for (name, found) in machines.iter().flat_map(|machine| &machine.policies) {
        match worst.iter_mut().find(|(known, _)| known == name) {
            Some((_, so_far)) => *so_far = so_far.worse(*found),
            None => worst.push((name.clone(), *found)),
        }
    }
    worst
}

/// Whether policy model passes everywhere.
fn verdict(machines: &[Trial]) -> Option<bool> {
    let found = machines.iter().flat_map(|machine| &machine.policies);
    found
        .filter(|(name, _)| name == Policy::Model.name())
        .map(|(_, found)| found.passes())
        .reduce(|a, b| a && b)
}

fn lines(summary: &Summary<'_>) -> Vec<String> {
    let mut lines = vec![
        format!(
            "{} of {} points, radius {}, {}: bricks of {}³ cells, {} subregions",
            summary.cloud,
            HumanCount(summary.points as u64),
            summary.radius,
            options::name(summary.work),
            summary.bricks,
            summary.subregions
        ),
        format!(
            "time after {} steps divided by the best of {} thresholds, and steps until it stays within {} %",
            summary.steps,
            summary.rows + 1,
            100.0 * ABOVE
        ),
        String::new(),
    ];
    let mut header = format!(
        "{:>5}{:>9}{:>7}{:>8}{:>10}{:>11}",
        "seed", "speed", "GB/s", "launch", "best CPU", "best ms"
    );
    for (name, _) in &summary.worst {
        header += &format!("{name:>15}");
    }
    lines.push(header);
    for machine in &summary.machines {
        let mut line = format!(
            "{:>5}{:>9.3}{:>7.1}{:>5.0} µs{:>8.1} %{:>11.3}",
            machine.seed,
            machine.speed,
            machine.bandwidth,
            machine.launch_us,
            100.0 * machine.best.share,
            machine.best.total_ms
        );
        machine
            .policies
            .iter()
            .for_each(|(_, found)| line += &cell(found));
        lines.push(line);
    }
    let mut line = format!("{:>50}", "worst");
    summary
        .worst
        .iter()
        .for_each(|(_, found)| line += &cell(found));
    lines.push(line);
    lines.extend(worst_case(summary));
    lines
}

fn cell(found: &Convergence) -> String {
    let steps = found
        .steps
        .map_or("never".into(), |steps| steps.to_string());
    format!("{:>9.4}{steps:>6}", found.to_best)
}

/// A sentence about the machine on which policy model does worst.
fn worst_case(summary: &Summary<'_>) -> Option<String> {
    let of_model = |machine: &Trial| {
        let mut policies = machine.policies.iter();
        policies
            .find(|(name, _)| name == Policy::Model.name())
            .map(|&(_, found)| found)
    };
    let tried = summary.machines.iter();
    let (machine, found) = tried
        .filter_map(|machine| Some((machine, of_model(machine)?)))
        .max_by(|a, b| a.1.to_best.total_cmp(&b.1.to_best))?;
    Some(format!(
        "model does worst on seed {}: {} the best ({})",
        machine.seed,
        super::report::compared(found.to_best),
        machine.device
    ))
}
