//! Clouds, random machines and runs that several tests share.
#![allow(dead_code)] // Every test program uses another part.

use nearfield_balance::{
    Action, Bricks, CellLoad, Controller, EmulatedSpec, Layout, Machine, Neighbourhood, Plan,
    Policy, SUBREGIONS, Ties, Traffic,
};
use nearfield_testkit::random::Random;
use std::collections::BTreeMap;

/// Cells from points whose coordinates are in cells.
pub(crate) fn binned(points: impl Iterator<Item = [f64; 3]>) -> Vec<CellLoad> {
    let mut cells = BTreeMap::<[i64; 3], u32>::new();
    for point in points {
        *cells.entry(point.map(|x| x.floor() as i64)).or_default() += 1;
    }
    cells
        .into_iter()
        .map(|(cell, points)| CellLoad {
            cell,
            targets: points,
            sources: points,
        })
        .collect()
}

/// Eight points in each of 28³ cells.
pub(crate) fn uniform() -> Vec<CellLoad> {
    let cells = (0..28i64.pow(3)).map(|n| [n % 28, n / 28 % 28, n / 784]);
    cells
        .map(|cell| CellLoad {
            cell,
            targets: 8,
            sources: 8,
        })
        .collect()
}

/// Gaussian clusters of 100 to 10,000 points.
pub(crate) fn clusters() -> Vec<CellLoad> {
    let mut random = Random::new(3);
    let mut points = Vec::new();
    for _ in 0..30 {
        let size = 100.0 * 100f64.powf(random.unit());
        let sigma = 0.8 * (size / 1500.0).cbrt();
        let centre: [f64; 3] = std::array::from_fn(|_| random.between(2.0, 32.0));
        for _ in 0..size as usize {
            points.push(centre.map(|c| c + sigma * random.normal()));
        }
    }
    binned(points.into_iter())
}

/// A pool of about eight points per cell and spray of a few points per brick above it.
pub(crate) fn pool_and_spray() -> Vec<CellLoad> {
    let mut random = Random::new(4);
    let mut points = Vec::new();
    for _ in 0..100_000 {
        points.push([
            random.between(0.0, 30.0),
            random.between(0.0, 30.0),
            random.between(0.0, 15.0),
        ]);
    }
    for _ in 0..40_000 {
        let height = 15.0 + (40.0 * random.exponential()).min(300.0);
        points.push([random.between(0.0, 30.0), random.between(0.0, 30.0), height]);
    }
    binned(points.into_iter())
}

/// A layout of 32 subregions.
pub(crate) fn layout(cells: Vec<CellLoad>, edge: u32, traffic: Traffic) -> Layout {
    layout_with_ties(cells, edge, traffic, Ties::Even)
}

fn layout_with_ties(cells: Vec<CellLoad>, edge: u32, traffic: Traffic, ties: Ties) -> Layout {
    let bricks = Bricks::new(cells, &Neighbourhood::cube(1), edge).unwrap();
    Layout::with_ties(bricks, SUBREGIONS, traffic, ties).unwrap()
}

/// The clouds that policies are tried on.
pub(crate) fn layouts() -> Vec<(&'static str, Layout)> {
    vec![
        ("uniform, sums", layout(uniform(), 2, Traffic::SUMS)),
        ("uniform, lists", layout(uniform(), 3, Traffic::LISTS)),
        ("clusters, lists", layout(clusters(), 2, Traffic::LISTS)),
        ("clusters, cells", layout(clusters(), 1, Traffic::SUMS)),
        (
            "pool and spray",
            layout(pool_and_spray(), 4, Traffic::LISTS),
        ),
        (
            "clusters, octaves",
            layout_with_ties(clusters(), 2, Traffic::SUMS, Ties::Octaves),
        ),
    ]
}

/// A machine with a GPU of 0.05 to 50 times the CPU backend's speed behind 1 to 60 GB/s.
pub(crate) fn random_spec(seed: u64) -> EmulatedSpec {
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

/// The least time over 201 thresholds, both extremes among them, and the better single backend's.
pub(crate) fn best(machine: &Machine, layout: &Layout) -> (f64, f64) {
    let total = |theta: f64| {
        let plan = Plan::new(layout, &layout.cuts(theta)).unwrap();
        machine.quiet(layout, &plan).total_ms()
    };
    let thetas = layout.thetas(200).unwrap();
    let best = thetas
        .iter()
        .map(|&theta| total(theta))
        .fold(f64::INFINITY, f64::min);
    (best, total(0.0).min(total(layout.highest())))
}

/// One step of a run.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) action: Action,
    pub(crate) share: f64,
    /// Milliseconds of the plan without jitter.
    pub(crate) quiet: f64,
    /// Measured milliseconds.
    pub(crate) measured: f64,
    pub(crate) reason: String,
}

/// A policy on a machine.
pub(crate) struct Run<'a> {
    pub(crate) controller: Controller,
    pub(crate) machine: Machine,
    pub(crate) layout: &'a Layout,
    cuts: Vec<nearfield_balance::Cut>,
    action: Action,
    reason: String,
}

impl<'a> Run<'a> {
    pub(crate) fn new(policy: Policy, spec: EmulatedSpec, layout: &'a Layout) -> Self {
        let mut controller = Controller::new(policy).unwrap();
        let first = controller.start(layout);
        Self {
            controller,
            machine: Machine::new(spec),
            layout,
            cuts: first.cuts,
            action: first.action,
            reason: first.reason,
        }
    }

    /// How the next step is divided.
    pub(crate) fn cuts(&self) -> &[nearfield_balance::Cut] {
        &self.cuts
    }

    pub(crate) fn steps(&mut self, count: usize) -> Vec<Step> {
        (0..count).map(|_| self.step()).collect()
    }

    fn step(&mut self) -> Step {
        let plan = Plan::new(self.layout, &self.cuts).unwrap();
        let quiet = self.machine.quiet(self.layout, &plan).total_ms();
        let times = self.machine.step(self.layout, &plan);
        let next = self.controller.next(self.layout, &plan, &times).unwrap();
        let step = Step {
            action: self.action,
            share: plan.share(),
            quiet,
            measured: times.total_ms(),
            reason: std::mem::replace(&mut self.reason, next.reason),
        };
        self.cuts = next.cuts;
        self.action = next.action;
        step
    }
}

/// The first step from which on every step but those aside takes at most `limit` ms; the number of
/// steps when there is none.
pub(crate) fn settled(steps: &[Step], limit: f64) -> usize {
    steps
        .iter()
        .rposition(|step| step.action != Action::Explore && step.quiet > limit)
        .map_or(0, |last| last + 1)
}
