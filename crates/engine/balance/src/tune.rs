//! A sweep of the threshold, and the settled states of the policies, on an emulated machine.
//!
//! The sweep shows what any threshold would take without noise; the policies are run with noise
//! and should settle near its minimum. Rows are plain data; with the cargo feature `serde` they
//! serialise to the JSON of `nearfield tune`.
//!
//! **Invariant:** the first row of a sweep is GPU only and the last is CPU only.

use crate::{
    Action, Controller, Cut, EmulatedSpec, Error, Layout, Machine, Plan, Policy, StepTimes,
};
use std::collections::BTreeMap;

/// One threshold of a sweep.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Row {
    /// The threshold: bricks of at most as many points go to the CPU backend (the fractional part:
    /// that share of the bricks with one point more). The largest occupancy is CPU only.
    pub theta: f64,
    /// The CPU backend's share of the work, 0 to 1.
    pub share: f64,
    /// The CPU backend's milliseconds.
    pub cpu_ms: f64,
    /// The GPU backend's milliseconds, from the first upload to the last result.
    pub gpu_ms: f64,
    /// Milliseconds until both have ended.
    pub total_ms: f64,
}

impl Row {
    /// The row of a measured step.
    pub fn new(theta: f64, plan: &Plan, times: &StepTimes) -> Self {
        Self {
            theta,
            share: plan.share(),
            cpu_ms: times.cpu_ms(),
            gpu_ms: times.gpu_ms(),
            total_ms: times.total_ms(),
        }
    }
}

/// The settled state of a policy.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Settled {
    /// Mean threshold over subregions, weighted by work. For `fraction`, which has none, that of
    /// the same number of bricks.
    pub theta: f64,
    /// The CPU backend's share of the work.
    pub share: f64,
    /// Median milliseconds of the second half of the run, exploration steps included.
    pub total_ms: f64,
    /// Steps until it stayed within 3 % of its end, exploration steps left out; `None` if it never
    /// did in the first half of the run.
    pub steps: Option<usize>,
    /// The last reason it gave.
    pub reason: String,
}

/// A sweep over thresholds, and the policies that are compared with it.
///
/// The object that `nearfield tune --json` prints.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Tuning {
    /// Subregions of the layout.
    pub subregions: usize,
    /// Bricks of the layout.
    pub bricks: usize,
    /// Rows with evenly rising shares, both extremes among them.
    pub sweep: Vec<Row>,
    /// The row of least time.
    pub best: Row,
    /// Policies by name.
    pub policies: BTreeMap<String, Settled>,
}

/// Sweeps `rows` + 1 thresholds over the machine of `spec`, without jitter, and runs every policy
/// for `steps` steps, with it.
///
/// # Errors
/// [`ErrorKind::Policy`](crate::ErrorKind::Policy) for a policy whose numbers contradict each
/// other.
///
/// The sweep makes `rows` + 1 plans, and each policy `steps` of them.
pub fn tune(
    layout: &Layout,
    spec: EmulatedSpec,
    policies: &[Policy],
    rows: usize,
    steps: usize,
) -> Result<Tuning, Error> {
    let sweep = sweep(layout, &Machine::new(spec), rows)?;
    let mut best = sweep[0];
    for row in &sweep[1..] {
        if row.total_ms < best.total_ms {
            best = *row;
        }
    }
    let mut settled = BTreeMap::new();
    for policy in policies {
        settled.insert(policy.to_string(), settle(layout, spec, *policy, steps)?);
    }
    Ok(Tuning {
        subregions: layout.subregions().len(),
        bricks: layout.bricks().as_slice().len(),
        sweep,
        best,
        policies: settled,
    })
}

/// Times at `rows` + 1 thresholds, from GPU only to CPU only, without jitter or faults.
///
/// # Errors
/// [`ErrorKind::Memory`](crate::ErrorKind::Memory); [`ErrorKind::Cuts`](crate::ErrorKind::Cuts) is
/// not caused by the layout's own cuts.
///
/// The rows rise evenly in the CPU backend's share, not in θ.
pub fn sweep(layout: &Layout, machine: &Machine, rows: usize) -> Result<Vec<Row>, Error> {
    layout
        .thetas(rows)?
        .into_iter()
        .map(|theta| {
            let plan = Plan::new(layout, &layout.cuts(theta))?;
            Ok(Row::new(theta, &plan, &machine.quiet(layout, &plan)))
        })
        .collect()
}

/// Runs a policy for `steps` steps (at least 2) and tells where it came to rest.
///
/// # Errors
/// [`ErrorKind::Policy`](crate::ErrorKind::Policy) for a policy whose numbers contradict each
/// other.
///
/// The machine has the noise and faults of `spec`.
pub fn settle(
    layout: &Layout,
    spec: EmulatedSpec,
    policy: Policy,
    steps: usize,
) -> Result<Settled, Error> {
    let mut machine = Machine::new(spec);
    let mut controller = Controller::new(policy)?;
    let mut decision = controller.start(layout);
    let (mut measured, mut quiet) = (Vec::new(), Vec::new());
    let (mut theta, mut share) = (0.0, 0.0);
    for step in 1..=steps.max(2) {
        let plan = Plan::new(layout, &decision.cuts)?;
        let times = machine.step(layout, &plan);
        measured.push(times.total_ms());
        if decision.action != Action::Explore {
            quiet.push((step, machine.quiet(layout, &plan).total_ms()));
            (theta, share) = (mean_theta(layout, plan.cuts()), plan.share());
        }
        decision = controller.next(layout, &plan, &times)?;
    }
    let half = measured.len() / 2;
    let mut late = measured.split_off(half);
    late.sort_by(f64::total_cmp);
    Ok(Settled {
        theta,
        share,
        total_ms: late[late.len() / 2],
        steps: steps_to_rest(&quiet).filter(|&steps| steps <= half),
        reason: decision.reason,
    })
}

/// The step after which all stay within 3 % of the last one.
///
/// Counted in quiet times, so that noise does not restart the count.
fn steps_to_rest(quiet: &[(usize, f64)]) -> Option<usize> {
    let end = quiet.last()?.1;
    let far = |ms: f64| (ms / end - 1.0).abs() > 0.03;
    match quiet.iter().rev().find(|(_, ms)| far(*ms)) {
        None => Some(0),
        Some((step, _)) => Some(*step),
    }
}

/// Mean threshold over subregions, weighted by work.
fn mean_theta(layout: &Layout, cuts: &[Cut]) -> f64 {
    let (mut sum, mut work) = (0.0, 0.0);
    for (subregion, &cut) in cuts.iter().enumerate() {
        let weight = layout.work(subregion) as f64;
        sum += weight * layout.theta_of(subregion, cut);
        work += weight;
    }
    if work > 0.0 { sum / work } else { 0.0 }
}
