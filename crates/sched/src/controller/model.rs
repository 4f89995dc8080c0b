//! Policy `model`: goes to the threshold at which both lanes are predicted to end together.
//!
//! It starts by giving every eighth subregion to the CPU lane, so that both lanes are seen at work
//! on every class of occupancy. After that one threshold holds for all subregions, and it moves when
//! the predicted gain is worth it. Both extremes are among the candidates. When nothing has moved
//! for a while it steps aside once: a little more to one lane, or everything to the better single
//! lane, to see whether what it believes is still so. It allows itself a thousandth of the time for
//! that.

use super::{
    Action, Decision,
    knowledge::{Knowledge, Predicted},
};
use crate::{Cut, Estimate, Layout, Plan, StepTimes};

/// Predicted gain below which nothing moves.
const LEAST_GAIN: f64 = 0.01;
/// Steps without a move before the first step aside.
const PATIENCE: u64 = 24;
/// Share of the time that steps aside may cost.
const CURIOSITY: f64 = 0.001;
/// Every how many subregions one goes to the CPU lane in the first steps.
const FIRST_SHARE: usize = 8;
/// Share of a subregion's work that is moved in a step aside.
const ASIDE: f64 = 0.25;

#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    knowledge: Knowledge,
    /// The threshold; `None` until both lanes have been seen.
    theta: Option<f64>,
    /// Steps since the last move or step aside.
    calm: u64,
    /// Steps aside so far.
    asides: usize,
}

impl Model {
    pub(super) fn start(&self, layout: &Layout) -> (Vec<Cut>, String) {
        let reason = "every eighth subregion goes to the CPU, to learn from".to_owned();
        (self.cuts(layout), reason)
    }

    /// Where it stands.
    pub(super) fn cuts(&self, layout: &Layout) -> Vec<Cut> {
        match self.theta {
            Some(theta) => layout.cuts(theta),
            None => first_cuts(layout),
        }
    }

    pub(super) fn next(
        &mut self,
        layout: &Layout,
        plan: &Plan,
        times: &StepTimes,
        memory: Option<f64>,
    ) -> Decision {
        let notes = self.knowledge.learn(plan, times).join("; ");
        self.calm += 1;
        let measured = format!(
            "measured CPU {:.3} ms, GPU {:.3} ms",
            times.cpu_ms(),
            times.gpu_ms()
        );
        let join = |text: String| match notes.is_empty() {
            true => text,
            false => format!("{text}; {notes}"),
        };
        if self.knowledge.doubts() {
            return Decision::new(self.cuts(layout), Action::Keep, join(measured));
        }
        let Some((theta, best)) = self.best(layout, memory) else {
            return self.unseen_lane(layout, plan);
        };
        let now = self.theta.and_then(|theta| self.at(layout, theta));
        let worth = match now {
            None => true,
            Some(now) => best.total() < now.total() * (1.0 - LEAST_GAIN),
        };
        if worth {
            self.theta = Some(theta);
            self.calm = 0;
            let instead = now.map_or(String::new(), |now| format!(" instead of {:.3}", now.total()));
            let reason = format!(
                "theta {theta:.3}: predicted CPU {:.3} ms, GPU {:.3} ms, in all {:.3}{instead}; \
                 {measured}",
                best.cpu,
                best.gpu,
                best.total()
            );
            return Decision::new(layout.cuts(theta), Action::Move, join(reason));
        }
        if let Some(aside) = self.step_aside(layout, now) {
            return aside;
        }
        let reason = format!(
            "{measured}; the best predicted is {:.3} ms at theta {theta:.3}, not worth a move",
            best.total()
        );
        Decision::new(self.cuts(layout), Action::Keep, join(reason))
    }

    /// Everything to the lane that has not worked yet.
    fn unseen_lane(&self, layout: &Layout, plan: &Plan) -> Decision {
        let seen_cpu = plan.share() > 0.0;
        let (cut, lane) = match seen_cpu {
            true => (Cut::NONE, "GPU"),
            false => (Cut::ALL, "CPU"),
        };
        let reason = format!("everything to the {lane} once, because it has not worked yet");
        Decision::new(vec![cut; layout.subregions().len()], Action::Explore, reason)
    }

    fn at(&self, layout: &Layout, theta: f64) -> Option<Predicted> {
        self.knowledge.predict(estimates(layout, move |_| theta))
    }

    /// The best threshold and what it is predicted to take.
    fn best(&self, layout: &Layout, memory: Option<f64>) -> Option<(f64, Predicted)> {
        let highest = layout.highest();
        let lowest = memory.map_or(0.0, |bytes| least_that_fits(layout, bytes));
        // The CPU lane takes longer the higher theta is, the GPU lane shorter.
        let (mut low, mut high) = (lowest, highest);
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            let predicted = self.at(layout, middle)?;
            if predicted.cpu < predicted.gpu {
                low = middle;
            } else {
                high = middle;
            }
        }
        let mut best: Option<(f64, Predicted)> = None;
        for theta in [lowest, highest, low, high] {
            let predicted = self.at(layout, theta)?;
            if best.is_none_or(|(_, best)| predicted.total() < best.total()) {
                best = Some((theta, predicted));
            }
        }
        best
    }

    fn step_aside(&mut self, layout: &Layout, now: Option<Predicted>) -> Option<Decision> {
        let (theta, now) = (self.theta?, now?);
        if self.calm < PATIENCE {
            return None;
        }
        let allowed = now.total() * (1.0 + CURIOSITY * self.calm as f64);
        let subregion = (self.asides / 3 * 5) % layout.subregions().len();
        let (cuts, predicted, what) = match self.asides % 3 {
            0 => self.a_little(layout, theta, subregion, ASIDE)?,
            1 => self.a_little(layout, theta, subregion, -ASIDE)?,
            _ => self.single_lane(layout)?,
        };
        // Something that cannot be afforded yet is skipped, not waited for, unless all is.
        if predicted.total() > allowed {
            self.asides += 1;
            return None;
        }
        self.asides += 1;
        self.calm = 0;
        let reason = format!(
            "once {what}, to see: predicted {:.3} ms instead of {:.3}",
            predicted.total(),
            now.total()
        );
        Some(Decision::new(cuts, Action::Explore, reason))
    }

    /// A share of one subregion's work more (or less) for the CPU lane.
    fn a_little(
        &self,
        layout: &Layout,
        theta: f64,
        subregion: usize,
        share: f64,
    ) -> Option<(Vec<Cut>, Predicted, String)> {
        let mut cuts = layout.cuts(theta);
        let before = layout.bricks_of(subregion, cuts[subregion]);
        let wanted = layout.work_below(subregion, before) as f64
            + share * layout.work(subregion) as f64;
        let mut bricks = before;
        if share > 0.0 {
            let last = layout.ladder(subregion).len();
            while bricks < last && (layout.work_below(subregion, bricks) as f64) < wanted {
                bricks += 1;
            }
        } else {
            while bricks > 0 && layout.work_below(subregion, bricks) as f64 > wanted {
                bricks -= 1;
            }
        }
        cuts[subregion] = layout.cut_at(subregion, bricks);
        let aside = layout.theta_of(subregion, cuts[subregion]);
        let estimates = estimates(layout, move |s| if s == subregion { aside } else { theta });
        let predicted = self.knowledge.predict(estimates)?;
        let lane = if share > 0.0 { "CPU" } else { "GPU" };
        let what = format!("more to the {lane} in subregion {subregion}");
        Some((cuts, predicted, what))
    }

    /// Everything to the better single lane.
    fn single_lane(&self, layout: &Layout) -> Option<(Vec<Cut>, Predicted, String)> {
        let gpu = self.at(layout, 0.0)?;
        let cpu = self.at(layout, layout.highest())?;
        let (cut, predicted, lane) = if gpu.total() < cpu.total() {
            (Cut::NONE, gpu, "GPU")
        } else {
            (Cut::ALL, cpu, "CPU")
        };
        let cuts = vec![cut; layout.subregions().len()];
        Some((cuts, predicted, format!("everything to the {lane}")))
    }
}

/// Every eighth subregion to the CPU lane; half of the bricks where there are few subregions.
fn first_cuts(layout: &Layout) -> Vec<Cut> {
    let count = layout.subregions().len();
    (0..count)
        .map(|subregion| match subregion % FIRST_SHARE {
            _ if count < FIRST_SHARE => {
                layout.cut_at(subregion, layout.ladder(subregion).len() / 2)
            }
            0 => Cut::ALL,
            _ => Cut::NONE,
        })
        .collect()
}

fn estimates(
    layout: &Layout,
    theta: impl Fn(usize) -> f64 + Clone,
) -> impl Iterator<Item = Estimate> + Clone {
    (0..layout.subregions().len()).map(move |s| layout.estimate(s, theta(s)))
}

/// The lowest threshold at which the GPU holds what it must in `bytes`.
fn least_that_fits(layout: &Layout, bytes: f64) -> f64 {
    let needs = |theta: f64| {
        let (mut upload, mut results) = (0.0, 0.0f64);
        for part in estimates(layout, move |_| theta) {
            upload += part.upload;
            results = results.max(part.download);
        }
        upload + 3.0 * results
    };
    if needs(0.0) <= bytes {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, layout.highest());
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if needs(middle) > bytes {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}
