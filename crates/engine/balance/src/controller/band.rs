//! Policy `band`: the seed rule, by notches of occupancy.
//!
//! With α < t_cpu/t_gpu < β nothing changes. Below the band the CPU backend is given work, but only
//! as far as its predicted time t_cpu · (w_now + w_added) / w_now stays under β times that of the
//! GPU, which has so much less work then. Without work on the CPU backend (w_now = 0) there is
//! nothing to predict from, so a single brick is given to it first, as a probe. Above the band work
//! goes back to the GPU, at once down to the middle of the band, because a GPU that waits is the
//! more costly error.
//!
//! # Notches
//!
//! Occupancies are cut into [`NOTCHES`] ranges of about equal work, the same for all subregions.
//! The threshold of a subregion stands at a notch, and moves from one to the next: up in the
//! subregion where it is lowest, down where it is highest. So thresholds of all subregions stay
//! within a notch of each other, and sparse bricks go to the CPU backend everywhere before denser
//! ones do anywhere. A step moves as many notches as fit, and the last one in part, down to a
//! single brick; so the rule settles in few steps whatever the number of subregions. Only where not
//! even a brick fits at the lowest threshold does one from a higher threshold go ahead.
//!
//! Inside the band a backend may still wait for the other for 1 − α of the time, so unlike `model`
//! this can be slower than the better single backend by as much.

use super::{
    decision::{Action, Decision, carried},
    stall::Speeds,
};
use crate::{Backend, Cut, Error, Layout, Plan, StepTimes};

/// Ranges of occupancy that are moved at a time.
const NOTCHES: usize = 64;

/// The band and the speeds that a step is compared with.
#[derive(Debug, Clone)]
pub(super) struct Band {
    /// Lower end of the band.
    alpha: f64,
    /// Upper end of the band.
    beta: f64,
    /// The usual speeds of both backends.
    speeds: Speeds,
    /// If the last move was a single brick, the milliseconds of the step before it.
    single: Option<f64>,
    /// The step with a single brick more was shorter, though its ratio is above the band.
    shorter: bool,
    /// A single brick had to go back, and no speed has changed since.
    overshot: bool,
}

/// Everything to the GPU: the seed method starts there.
pub(super) fn start(layout: &Layout) -> Decision {
    let cuts = vec![Cut::NONE; layout.subregions().len()];
    let reason = "everything to the GPU to begin with".to_owned();
    Decision::new(cuts, Action::Start, reason)
}

impl Band {
    /// A band from `alpha` to `beta`.
    pub(super) fn new(alpha: f64, beta: f64) -> Self {
        Self {
            alpha,
            beta,
            speeds: Speeds::default(),
            single: None,
            shorter: false,
            overshot: false,
        }
    }

    /// The decision after a step.
    pub(super) fn next(&mut self, layout: &Layout, plan: &Plan, times: &StepTimes) -> Decision {
        let cuts = carried(layout, plan.cuts());
        let keep = |reason: String| Decision::new(cuts.clone(), Action::Keep, reason);
        if let Some(doubt) = self.speeds.doubt(plan, times) {
            (self.overshot, self.shorter) = (false, false);
            return keep(doubt);
        }
        let (cpu, gpu) = (times.cpu_ms(), times.gpu_ms());
        if plan.load(Backend::Gpu).is_empty() {
            return keep("the GPU has no work: the last it had did not pay".to_owned());
        }
        let ratio = cpu / gpu;
        let now = plan.load(Backend::Cpu).work();
        let seen = format!("CPU {cpu:.3} ms / GPU {gpu:.3} ms = {ratio:.3}");
        let (alpha, beta) = (self.alpha, self.beta);
        if (alpha..=beta).contains(&ratio) {
            return keep(format!("{seen} is within {alpha} to {beta}"));
        }
        if let (Some(before), true) = (self.single.take(), ratio > beta) {
            self.overshot = true;
            self.shorter = times.total_ms() < before;
        }
        self.shorter &= ratio > beta;
        if self.shorter {
            return keep(format!(
                "{seen} is above {beta}, and shorter than with a brick less"
            ));
        }
        if ratio < alpha && now == 0 {
            return probe(layout, cuts, &seen);
        }
        let per_pair = |ms: f64, backend: Backend| ms / plan.load(backend).work() as f64;
        let of_both = [(cpu, Backend::Cpu), (gpu, Backend::Gpu)].map(|(ms, on)| per_pair(ms, on));
        // The work to take from the CPU backend for a ratio, at their measured times per pair.
        let to_give = |ratio: f64| (cpu - ratio * gpu) / (of_both[0] + ratio * of_both[1]);
        let moved = Notches::new(layout, cuts.clone()).map(|notches| {
            if ratio < alpha {
                // A single brick may make the GPU's part so short that the ratio leaves the band;
                // not again after it has.
                let alone = now as f64 * (beta * gpu / cpu - 1.0);
                let alone = if self.overshot { 0.0 } else { alone };
                let seen = format!("{seen} is below {alpha}");
                notches.raise([-to_give(beta), alone], &seen, beta)
            } else {
                let work = to_give((alpha + beta) / 2.0);
                notches.lower(work, &format!("{seen} is above {beta}"))
            }
        });
        // The step itself has succeeded.
        let decision =
            moved.unwrap_or_else(|shortage| keep(format!("{seen}; nothing is moved: {shortage}")));
        let bricks = |cuts: &[Cut]| (0..cuts.len()).map(|s| layout.bricks_of(s, cuts[s])).sum();
        let (before, after): (usize, usize) = (bricks(&cuts), bricks(&decision.cuts));
        self.single = (after == before + 1).then_some(times.total_ms());
        decision
    }
}

/// Thresholds of all subregions as numbers of notches, and what they are moved by.
///
/// Made for one decision: its tables cost a pass over the bricks and a look-up per subregion and
/// notch, which a decision to stay does not need.
struct Notches<'a> {
    layout: &'a Layout,
    cuts: Vec<Cut>,
    /// Bricks below every notch, subregion by subregion.
    below: Vec<Vec<usize>>,
    /// Bricks of the CPU backend by subregion.
    bricks: Vec<usize>,
}

impl<'a> Notches<'a> {
    /// Where `cuts` stand.
    ///
    /// # Errors
    /// [`ErrorKind::Memory`](crate::ErrorKind::Memory).
    fn new(layout: &'a Layout, cuts: Vec<Cut>) -> Result<Self, Error> {
        let thetas = layout.thetas(NOTCHES)?;
        let subregions = 0..cuts.len();
        let below = |s: usize| thetas.iter().map(|&theta| layout.below(s, theta)).collect();
        let bricks = subregions.clone().map(|s| layout.bricks_of(s, cuts[s]));
        Ok(Self {
            layout,
            bricks: bricks.collect(),
            below: subregions.map(below).collect(),
            cuts,
        })
    }

    /// The notch that a subregion has reached: the last one that its bricks fill.
    fn reached(&self, s: usize) -> usize {
        self.below[s].partition_point(|&below| below <= self.bricks[s]) - 1
    }

    /// The notch that a subregion stands in: the first one that holds all of its bricks.
    fn inside(&self, s: usize) -> usize {
        self.below[s].partition_point(|&below| below < self.bricks[s])
    }

    /// Work of a subregion's first `bricks` bricks.
    fn work(&self, s: usize, bricks: usize) -> f64 {
        self.layout.work_below(s, bricks) as f64
    }

    /// Gives less than `allowed` work to the CPU backend, by notches where the threshold is lowest.
    /// If not even a brick fits there, it is a single brick of less than `alone` work, from the
    /// lowest threshold where there is one.
    fn raise(mut self, [allowed, alone]: [f64; 2], seen: &str, beta: f64) -> Decision {
        let before = self.bricks.clone();
        let mut added = 0.0;
        while let Some(&s) = self.open().first() {
            let bricks = self.fitting(s, allowed - added);
            if bricks == self.bricks[s] {
                break;
            }
            added += self.work(s, bricks) - self.work(s, self.bricks[s]);
            self.bricks[s] = bricks;
        }
        let next = |s: usize| self.work(s, before[s] + 1) - self.work(s, before[s]);
        let single = self.open().into_iter().find(|&s| next(s) < alone);
        if let (true, Some(s)) = (self.bricks == before, single) {
            let brick = next(s);
            self.bricks[s] += 1;
            let why = format!("{brick:.3e} pairs, more than the {allowed:.3e} for {beta}");
            return self.decided(&before, seen, "to the CPU", &why);
        }
        if self.bricks == before {
            let reason = format!("{seen}, but no brick fits under {beta} times the GPU's time");
            return Decision::new(self.cuts, Action::Keep, reason);
        }
        let why = format!("{added:.3e} pairs of the {allowed:.3e} that would make it {beta}");
        self.decided(&before, seen, "to the CPU", &why)
    }

    /// The subregions that have bricks left for the CPU backend, those with low thresholds first.
    fn open(&self) -> Vec<usize> {
        let open = (0..self.cuts.len()).filter(|&s| self.reached(s) + 1 < self.below[s].len());
        let mut open: Vec<usize> = open.collect();
        open.sort_by_key(|&s| self.reached(s));
        open
    }

    /// Bricks of a subregion at its next notch, or as many as add less than `allowed` work.
    fn fitting(&self, s: usize, allowed: f64) -> usize {
        let (mut bricks, next) = (self.bricks[s], self.below[s][self.reached(s) + 1]);
        let most = self.work(s, bricks) + allowed;
        if self.work(s, next) < most {
            return next;
        }
        while bricks < next && self.work(s, bricks + 1) < most {
            bricks += 1;
        }
        bricks
    }

    /// Takes about `work` from the CPU backend, by notches where the threshold is highest; at least
    /// one brick, so that the ratio changes.
    fn lower(mut self, work: f64, seen: &str) -> Decision {
        let before = self.bricks.clone();
        let mut taken = 0.0;
        loop {
            let used = (0..self.cuts.len()).filter(|&s| self.bricks[s] > 0);
            // Of equal ones the last, which is the last to be raised.
            let Some(s) = used.max_by_key(|&s| self.inside(s)) else {
                break;
            };
            let (now, next) = (self.bricks[s], self.below[s][self.inside(s) - 1]);
            let has = self.work(s, now);
            let mut bricks = now - 1;
            while bricks > next && taken + has - self.work(s, bricks) < work {
                bricks -= 1;
            }
            taken += has - self.work(s, bricks);
            self.bricks[s] = bricks;
            if taken >= work {
                break;
            }
        }
        if self.bricks == before {
            return Decision::new(self.cuts, Action::Keep, "there are no points".to_owned());
        }
        let why = format!("{taken:.3e} pairs of the {work:.3e} to the middle of the band");
        self.decided(&before, seen, "back to the GPU", &why)
    }

    /// The new cuts, and which thresholds have moved how far.
    fn decided(mut self, before: &[usize], seen: &str, to: &str, why: &str) -> Decision {
        let layout = self.layout;
        let moved: Vec<usize> = (0..before.len())
            .filter(|&s| self.bricks[s] != before[s])
            .collect();
        for &s in &moved {
            self.cuts[s] = layout.cut_at(s, self.bricks[s]);
        }
        let bricks: usize = moved
            .iter()
            .map(|&s| before[s].abs_diff(self.bricks[s]))
            .sum();
        let thetas = || (0..self.cuts.len()).map(|s| layout.theta_of(s, self.cuts[s]));
        let (low, high) = (
            thetas().fold(f64::INFINITY, f64::min),
            thetas().fold(0.0, f64::max),
        );
        let who = match moved.len() {
            1 => "1 subregion gives".to_owned(),
            count => format!("{count} subregions give"),
        };
        let reason =
            format!("{seen}: {who} {bricks} bricks {to} (theta {low:.2} to {high:.2}), {why}");
        Decision::new(self.cuts, Action::Move, reason)
    }
}

/// One brick, the sparsest of all and of least work among these, to the CPU backend.
///
/// A small one costs the step little, and the sparsest goes over first in any case.
fn probe(layout: &Layout, mut cuts: Vec<Cut>, seen: &str) -> Decision {
    let with_points = (0..cuts.len()).filter(|&s| !layout.ladder(s).is_empty());
    let points = |s: usize| layout.bricks().as_slice()[layout.ladder(s)[0] as usize].targets;
    match with_points.min_by_key(|&s| (points(s), layout.work_below(s, 1))) {
        None => Decision::new(cuts, Action::Keep, "there are no points".to_owned()),
        Some(s) => {
            cuts[s] = layout.cut_at(s, 1);
            let reason = format!("{seen}: a brick of subregion {s} goes to the CPU as a probe");
            Decision::new(cuts, Action::Move, reason)
        }
    }
}
