//! Policy `band`: the seed rule.
//!
//! With α < t_cpu/t_gpu < β nothing changes. Above the band one subregion's threshold goes down;
//! below it one subregion's goes up, but only as far as the predicted t_cpu · (w_now + w_added) /
//! w_now stays under β · t_gpu. Without work on the CPU backend (w_now = 0) there is nothing to
//! predict from, so a single brick is given to it first, as a probe.
//!
//! The rule moves slowly and in one direction at a time, which makes it robust: it assumes only
//! that more work takes more time. Taking work away goes at once to the middle of the band,
//! because a GPU that waits is the more costly error.
//!
//! Inside the band a backend may still wait for the other for 1 − α of the time, so unlike `model`
//! this can be slower than the better single backend by as much.
//!
//! # Choice of the subregion
//!
//! Work is taken from the subregion where the CPU backend has most, and given in the one with the
//! lowest threshold where any brick fits. So thresholds of all subregions stay near each other.

use super::{
    decision::{Action, Decision, carried},
    stall::Speeds,
};
use crate::{Backend, Cut, Layout, Plan, StepTimes};

/// The band and the speeds that a step is compared with.
#[derive(Debug, Clone)]
pub(super) struct Band {
    /// Lower end of the band.
    alpha: f64,
    /// Upper end of the band.
    beta: f64,
    /// The usual speeds of both backends.
    speeds: Speeds,
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
        }
    }

    /// The decision after a step.
    pub(super) fn next(&mut self, layout: &Layout, plan: &Plan, times: &StepTimes) -> Decision {
        let cuts = carried(layout, plan.cuts());
        let keep = |reason: String| Decision::new(cuts.clone(), Action::Keep, reason);
        if let Some(doubt) = self.speeds.doubt(plan, times) {
            return keep(doubt);
        }
        let (cpu, gpu) = (times.cpu_ms(), times.gpu_ms());
        if plan.load(Backend::Gpu).is_empty() {
            return keep("the GPU has no work: the last it had did not pay".to_owned());
        }
        let ratio = cpu / gpu;
        let now = plan.load(Backend::Cpu).work();
        let seen = format!("CPU {cpu:.3} ms / GPU {gpu:.3} ms = {ratio:.3}");
        if ratio > self.beta {
            // The work that brings both to the middle of the band, at their measured times per
            // pair.
            let middle = (self.alpha + self.beta) / 2.0;
            let per_pair = |ms: f64, backend: Backend| ms / plan.load(backend).work() as f64;
            let change = per_pair(cpu, Backend::Cpu) + middle * per_pair(gpu, Backend::Gpu);
            self.lower(layout, cuts, (cpu - middle * gpu) / change, &seen)
        } else if ratio >= self.alpha {
            keep(format!("{seen} is within {} to {}", self.alpha, self.beta))
        } else if now == 0 {
            probe(layout, cuts, &seen)
        } else {
            let allowed = now as f64 * (self.beta * gpu / cpu - 1.0);
            self.raise(layout, cuts, allowed, &seen)
        }
    }

    /// Takes about `work` from the CPU backend in the subregion where it has most.
    ///
    /// At least one brick moves, so the ratio changes.
    fn lower(&self, layout: &Layout, mut cuts: Vec<Cut>, work: f64, seen: &str) -> Decision {
        let has = |s: usize| layout.work_below(s, layout.bricks_of(s, cuts[s]));
        let Some(s) = (0..cuts.len()).max_by_key(|&s| has(s)) else {
            return Decision::new(cuts, Action::Keep, "there are no points".to_owned());
        };
        let before = layout.bricks_of(s, cuts[s]);
        let left = has(s) as f64 - work;
        let mut bricks = before.saturating_sub(1);
        while bricks > 0 && layout.work_below(s, bricks) as f64 > left {
            bricks -= 1;
        }
        cuts[s] = layout.cut_at(s, bricks);
        let reason = format!(
            "{seen} is above {}: subregion {s} gives {} bricks back to the GPU (theta {:.2})",
            self.beta,
            before - bricks,
            layout.theta_of(s, cuts[s])
        );
        Decision::new(cuts, Action::Move, reason)
    }

    /// Gives at most `allowed` work to the CPU backend, in the subregion with the lowest threshold
    /// where any brick is allowed.
    ///
    /// At most so much is given that the predicted ratio stays under β; the predicted time grows
    /// in proportion to the work.
    fn raise(&self, layout: &Layout, mut cuts: Vec<Cut>, allowed: f64, seen: &str) -> Decision {
        let mut order: Vec<usize> = (0..cuts.len()).collect();
        order.sort_by(|&a, &b| {
            let theta = |s: usize| layout.theta_of(s, cuts[s]);
            theta(a).total_cmp(&theta(b))
        });
        for s in order {
            let before = layout.bricks_of(s, cuts[s]);
            let has = layout.work_below(s, before) as f64;
            let mut bricks = before;
            while bricks < layout.ladder(s).len()
                && layout.work_below(s, bricks + 1) as f64 - has < allowed
            {
                bricks += 1;
            }
            if bricks > before {
                cuts[s] = layout.cut_at(s, bricks);
                let added = layout.work_below(s, bricks) as f64 - has;
                let reason = format!(
                    "{seen} is below {}: subregion {s} gives {} bricks to the CPU (theta {:.2}), \
                     {added:.3e} pairs of {allowed:.3e} allowed by {} times the GPU's time",
                    self.alpha,
                    bricks - before,
                    layout.theta_of(s, cuts[s]),
                    self.beta
                );
                return Decision::new(cuts, Action::Move, reason);
            }
        }
        let reason = format!(
            "{seen} is below {}, but no brick fits under {} times the GPU's time",
            self.alpha, self.beta
        );
        Decision::new(cuts, Action::Keep, reason)
    }
}

/// One brick, the one of least work among the first of all ladders, to the CPU backend.
///
/// The brick is chosen small, because a probe costs the step what the CPU backend takes for it.
fn probe(layout: &Layout, mut cuts: Vec<Cut>, seen: &str) -> Decision {
    let with_points = (0..cuts.len()).filter(|&s| !layout.ladder(s).is_empty());
    match with_points.min_by_key(|&s| layout.work_below(s, 1)) {
        None => Decision::new(cuts, Action::Keep, "there are no points".to_owned()),
        Some(s) => {
            cuts[s] = layout.cut_at(s, 1);
            let reason = format!("{seen}: a brick of subregion {s} goes to the CPU as a probe");
            Decision::new(cuts, Action::Move, reason)
        }
    }
}
