//! The sweep on real backends: runs every threshold and every policy for some steps of a moving
//! cloud.

use super::{
    emulated::{best, cells, layout},
    task::{Combination, Division, Outcome, Task, key},
};
use crate::{
    bench::{Order, Repetitions, Steps, Subject, median},
    failure::Failure,
};
use nearfield::{
    Device, Engine,
    balance::{Policy, Strategy},
    report::SplitReport,
};
use nearfield_balance::{
    Ties,
    tune::{Row, Settled},
};
use nearfield_grid::memory::copied;

/// Untimed and timed steps at a threshold.
const STEPS_PER_ROW: Repetitions = Repetitions {
    uncounted: 2,
    timed: 5,
};
/// Steps of every policy, and of the best threshold, which is timed again for comparison.
const STEPS_BESIDE: Repetitions = Repetitions {
    timed: 21,
    ..STEPS_PER_ROW
};
/// A policy has settled when its times exceed those of its last shares by no more than this part.
const CLOSE: f64 = 0.03;
/// The time at a share is fitted to rows within this distance of it.
const AROUND: f64 = 0.1;

/// Sweeps thresholds and runs the policies on the CPU backend and the GPU with this number
/// together: one [`Combination`] per pair of [`Task::combinations`].
pub(super) fn run(task: &Task, number: u32) -> Result<Vec<Combination>, Failure> {
    let (cells, near) = cells(task)?;
    let mut combinations = Vec::new();
    for division in task.combinations() {
        // As engines break ties with this strategy.
        let ties = match task.strategy.of_share() {
            Strategy::Flat => Ties::Compact,
            _ => Ties::Octaves,
        };
        let layout = layout(task, &cells, &near, division, ties)?;
        let mut backends = Backends::new(task, number, division)?;
        let mut sweep = Vec::new();
        for theta in layout.thetas(task.rows)? {
            sweep.push(backends.row(theta, STEPS_PER_ROW)?);
        }
        let best = best(&sweep)?;
        let mut policies = Vec::new();
        for &policy in &task.policies {
            let settled = backends.settle(policy, task.steps, &sweep)?;
            let beside = backends.row(best.theta, STEPS_BESIDE)?;
            let to_best = settled.total_ms / beside.total_ms;
            policies.push((key(policy, &task.policies), Outcome { settled, to_best }));
        }
        combinations.push(Combination {
            bricks: division.edge,
            subregions: division.subregions.count,
            occupied_bricks: layout.bricks().as_slice().len(),
            highest: layout.highest(),
            sweep,
            best,
            policies,
        });
    }
    Ok(combinations)
}

/// An engine on both backends, with its points and job.
struct Backends {
    steps: Steps,
    subject: Subject,
    /// Where the points begin whenever something else is timed.
    positions: Vec<[f32; 3]>,
}

impl Backends {
    fn new(task: &Task, number: u32, division: Division) -> Result<Self, Failure> {
        let builder = Engine::builder(task.radius)
            .device(Device::Hybrid(number))
            .threads(task.threads)
            .strategy(task.strategy)
            .brick_edge(division.edge)
            .subregions(division.subregions.count)
            .equal_subregions(division.subregions.equal);
        let builder = match task.boundaries {
            Some(boundaries) => boundaries.set(builder),
            None => builder,
        };
        let positions = || copied(&task.positions, "points");
        Ok(Self {
            steps: Steps::new(builder, task.radius, positions()?, Order::Shuffled)?,
            positions: positions()?,
            subject: Subject::new(task.work, task.positions.len(), task.radius)?,
        })
    }

    /// Everything as it was in the beginning, divided by another policy.
    fn begin(&mut self, policy: Policy) -> Result<(), Failure> {
        self.steps.go_back(&self.positions);
        Ok(self.steps.engine_mut().set_policy(policy)?)
    }

    /// Runs one step and returns its report.
    fn step(&mut self) -> Result<SplitReport, Failure> {
        self.steps.next(&mut self.subject)?;
        let report = self.steps.engine().report();
        let failed = report.gpu.and_then(|gpu| gpu.failed);
        match (failed, report.jobs.into_iter().find_map(|job| job.split)) {
            (None, Some(split)) => Ok(split),
            (failed, _) => Err(Failure::Wrong(format!(
                "the GPU has failed: {}",
                failed.unwrap_or_else(|| "it did no work".to_owned())
            ))),
        }
    }

    /// Medians at a threshold.
    fn row(&mut self, theta: f64, repetitions: Repetitions) -> Result<Row, Failure> {
        self.steps
            .engine_mut()
            .set_policy(Policy::Fixed { theta })?;
        for _ in 0..repetitions.uncounted {
            self.step()?;
        }
        let works = (0..repetitions.timed)
            .map(|_| self.step())
            .collect::<Result<Vec<_>, _>>()?;
        let share = works.last().map_or(0.0, |work| work.share);
        Ok(Row {
            theta,
            share,
            cpu_ms: median(works.iter().map(|work| work.backends[0].milliseconds)),
            gpu_ms: median(works.iter().map(|work| work.backends[1].milliseconds)),
            total_ms: median(works.iter().map(|work| work.milliseconds)),
        })
    }

    /// Runs a policy. The sweep gives the times of its shares without noise.
    fn settle(&mut self, policy: Policy, steps: usize, sweep: &[Row]) -> Result<Settled, Failure> {
        self.begin(policy)?;
        let works = (0..steps.max(2))
            .map(|_| self.step())
            .collect::<Result<Vec<_>, _>>()?;
        let half = works.len() / 2;
        let late = &works[half..];
        let end = median(late.iter().map(|work| on_sweep(sweep, work.share)));
        let shares = works[..half].iter().map(|work| (work.share, work.aside));
        let settled = steps_to_rest(shares, |share| {
            (on_sweep(sweep, share) / end - 1.0).abs() > CLOSE
        });
        Ok(Settled {
            theta: median(late.iter().map(|work| work.theta)),
            share: median(late.iter().map(|work| work.share)),
            total_ms: median(late.iter().map(|work| work.milliseconds)),
            steps: (settled < half).then_some(settled),
            reason: works
                .last()
                .map_or_else(String::new, |work| work.reason.clone()),
        })
    }
}

/// The step after which no share is far from the last ones; exploration steps are left out, as they
/// are taken back at once.
fn steps_to_rest(shares: impl Iterator<Item = (f64, bool)>, far: impl Fn(f64) -> bool) -> usize {
    let far = shares.map(|(share, exploration)| !exploration && far(share));
    let last = far.enumerate().filter(|(_, far)| *far).last();
    last.map_or(0, |(step, _)| step + 1)
}

/// Time of a step in which the CPU backend has this share of the work, from a line fitted to the
/// rows around it: measured rows scatter, but while both backends work the time of each is nearly
/// linear in the share. Rows are not chosen by threshold, because the share of a threshold changes
/// when points move and a new plan is made.
fn on_sweep(sweep: &[Row], share: f64) -> f64 {
    let shared = |share: f64| share > 0.0 && share < 1.0;
    let near: Vec<_> = (sweep.iter())
        .filter(|row| shared(row.share) && (row.share - share).abs() <= AROUND)
        .collect();
    if !shared(share) || near.len() < 3 {
        let from = |row: &&Row| (row.share - share).abs();
        let nearest = sweep.iter().min_by(|a, b| from(a).total_cmp(&from(b)));
        return nearest.map_or(0.0, |row| row.total_ms);
    }
    let line = |ms: fn(&Row) -> f64| {
        let mean = |of: &dyn Fn(&Row) -> f64| {
            near.iter().map(|row| of(row)).sum::<f64>() / near.len() as f64
        };
        let (middle, height) = (mean(&|row| row.share), mean(&ms));
        let spread = mean(&|row| (row.share - middle).powi(2));
        let rise = mean(&|row| (row.share - middle) * (ms(row) - height));
        let slope = if spread > 0.0 { rise / spread } else { 0.0 };
        height + slope * (share - middle)
    };
    line(|row| row.cpu_ms).max(line(|row| row.gpu_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exploration_steps_do_not_count_until_it_rests() {
        let run = |exploration: usize| {
            let shares = [0.9, 0.5, 0.1, 0.9, 0.1].into_iter().enumerate();
            let shares = shares.map(|(step, share)| (share, step == exploration));
            steps_to_rest(shares, |share| share > 0.2)
        };
        assert_eq!(run(3), 2);
        assert_eq!(run(9), 4);
    }

    #[test]
    fn a_share_takes_what_those_around_it_took() {
        // 2 + 10 s and 9 - 8 s ms, every other row a millisecond off, and backends alone.
        let rows = (0..=100).map(|number| {
            let share = f64::from(number) / 100.0;
            let off = if number % 2 == 0 { 0.5 } else { -0.5 };
            let cpu_ms = if number == 0 {
                0.0
            } else {
                2.0 + 10.0 * share + off
            };
            let gpu_ms = if number == 100 {
                0.0
            } else {
                9.0 - 8.0 * share - off
            };
            Row {
                theta: share,
                share,
                cpu_ms,
                gpu_ms,
                total_ms: cpu_ms.max(gpu_ms),
            }
        });
        let sweep: Vec<_> = rows.collect();
        for (share, expected) in [(0.2, 7.4), (0.6, 8.0), (0.389, 5.89)] {
            let found = on_sweep(&sweep, share);
            assert!((found - expected).abs() < 0.05, "{share}: {found}");
        }
        assert_eq!(on_sweep(&sweep, 0.0), 8.5);
        assert_eq!(on_sweep(&sweep, 1.0), 12.5);
        assert_eq!(on_sweep(&[sweep[0], sweep[50], sweep[100]], 0.45), 7.5);
    }
}
