//! Policy `model`: goes to the threshold at which both lanes are predicted to end together.
//!
//! It starts by giving every eighth subregion to the CPU lane, so that both lanes are seen at work
//! on every class of occupancy. After that one threshold holds for all subregions, and it moves when
//! the predicted gain is worth it, as far as a lane has been seen to do an eighth of what it would be given.
//! Both extremes are among the candidates. What a lane takes alone
//! does not follow from what it takes beside the other (it may go another way about it), so an extreme
//! that may be worth it is tried, early on. When nothing has moved for a while it steps aside once: a
//! little more to one lane, or everything to the better single lane, to see whether what it believes
//! is still so. It allows itself a thousandth of the time for each of these.

use super::{
    Action, Decision,
    knowledge::Knowledge,
    prices::{Predicted, Prices},
    record::{REGIMES, Regime},
};
use crate::{Cut, Lane, Layout, Plan, StepTimes};

/// Predicted gain below which nothing moves.
const LEAST_GAIN: f64 = 0.01;
/// How much more for every part of uncertainty about the ratio of the lanes' times: an error of that
/// ratio looks like a gain of half of it.
const CAUTION: f64 = 0.5;
/// Steps without a move before the first step aside.
const PATIENCE: u64 = 24;
/// Share of the time that steps aside of one kind may cost.
const CURIOSITY: f64 = 0.001;
/// Every how many subregions one goes to the CPU lane in the first steps.
const FIRST_SHARE: usize = 8;
/// Kinds of steps aside: more to the CPU, more to the GPU, everything to one lane.
const KINDS: usize = 3;
/// Steps without a move before a lane is tried alone.
const SETTLED: u64 = 4;
/// It is where that is predicted to take at most as many times as long as both together…
const ALONE: f64 = 2.0;
/// …and again, so that chance does not decide, where the first try came as close as this…
const CLOSE: f64 = 1.2;
/// …until it has been tried so often.
const TRIES: usize = 3;
/// Shares of a subregion's work that are moved in a step aside, the first that can be afforded; the
/// last one stands for a single brick.
const ASIDES: [f64; 2] = [0.25, 1e-9];

#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    knowledge: Knowledge,
    /// The threshold; `None` until both lanes have been seen.
    theta: Option<f64>,
    /// The CPU lane's share of the work at that.
    share: f64,
    /// Steps since the last move or step aside.
    calm: u64,
    /// Steps since the last step aside of each kind.
    waited: [u64; KINDS],
    /// Whose turn it is to be looked at.
    turn: usize,
    /// By regime, whether it has been gone through.
    warm: [bool; REGIMES],
    /// The step aside that was just made, until it has been repeated.
    aside: Option<Vec<Cut>>,
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

    /// The same share of the work on another layout: its bricks may hold other numbers of points, so that the
    /// old threshold would mean something else.
    pub(super) fn move_to(&mut self, layout: &Layout) {
        self.aside = None;
        self.theta = self.theta.map(|_| layout.theta_at(self.share));
    }

    pub(super) fn next(
        &mut self,
        layout: &Layout,
        plan: &Plan,
        times: &StepTimes,
        memory: Option<f64>,
    ) -> Decision {
        self.calm += 1;
        if let Some(decision) = self.warm_up(layout, plan, times) {
            return decision;
        }
        let notes = self.knowledge.learn(plan, times);
        self.waited.iter_mut().for_each(|waited| *waited += 1);
        let mut seen = format!(
            "measured CPU {:.3} ms, GPU {:.3} ms",
            times.cpu_ms(),
            times.gpu_ms()
        );
        for note in notes {
            seen.push_str("; ");
            seen.push_str(&note);
        }
        let aside = self.aside.take();
        if self.knowledge.doubts() {
            return self.wait(layout, aside, seen);
        }
        let prices = match Prices::new(layout, &self.knowledge) {
            Ok(Some(prices)) => prices,
            Ok(None) => return unseen_lane(layout, plan),
            // The step itself has succeeded.
            Err(shortage) => {
                let reason = format!("{seen}; nothing is predicted: {shortage}");
                return Decision::new(self.cuts(layout), Action::Keep, reason);
            }
        };
        let (theta, best) = prices.best(memory, self.knowledge.shares());
        let now = self.theta.map(|theta| prices.at(theta));
        let worth = self.worth(best, now);
        let alone = now.and_then(|now| match worth {
            Some(_) => self.again(
                &prices,
                layout,
                best,
                now,
                now.total() < CLOSE * best.total(),
            ),
            None if self.calm >= SETTLED => {
                let better = best.total() < now.total() * (1.0 - self.least_gain());
                let again = self.again(&prices, layout, best, now, better);
                again.or_else(|| self.alone(&prices, layout, now, memory))
            }
            None => None,
        });
        if let Some(decision) = alone {
            self.aside = Some(decision.cuts.clone());
            return decision;
        }
        if let Some(instead) = worth {
            self.theta = Some(theta);
            self.share = layout.share_at(theta);
            self.calm = 0;
            let reason = format!(
                "theta {theta:.3}: predicted CPU {:.3} ms, GPU {:.3} ms, in all {:.3}{instead}; \
                 {seen}",
                best.cpu,
                best.gpu,
                best.total()
            );
            return Decision::new(layout.cuts(theta), Action::Move, reason);
        }
        if let (Some(now), true) = (now, self.calm >= PATIENCE) {
            // What there is not or what cannot be afforded yet is passed over; its turn comes again.
            let aside = self.step_aside(&prices, layout, now);
            let kind = self.turn % KINDS;
            self.turn += 1;
            if let Some(decision) = aside {
                self.calm = 0;
                self.waited[kind] = 0;
                self.aside = Some(decision.cuts.clone());
                return decision;
            }
        }
        let reason = format!(
            "{seen}; the best predicted is {:.3} ms at theta {theta:.3}, not worth a move",
            best.total()
        );
        Decision::new(self.cuts(layout), Action::Keep, reason)
    }

    /// As before, until the next step confirms a surprise or not; one aside is confirmed aside.
    fn wait(&self, layout: &Layout, aside: Option<Vec<Cut>>, seen: String) -> Decision {
        match aside.filter(|cuts| cuts.len() == layout.subregions().len()) {
            Some(cuts) => Decision::new(cuts, Action::Explore, seen),
            None => Decision::new(self.cuts(layout), Action::Wait, seen),
        }
    }

    /// Whether the best is worth a move; then also what it is better than, in words.
    fn worth(&self, best: Predicted, now: Option<Predicted>) -> Option<String> {
        let Some(now) = now else {
            return Some(String::new());
        };
        let mut gain = self.least_gain();
        // What was tried often enough is what it is on average.
        if best.regime() != now.regime() && self.knowledge.seen(best.regime()) < TRIES {
            gain += 2.0 * self.knowledge.spread(best.regime());
        }
        (best.total() < now.total() * (1.0 - gain))
            .then(|| format!(" instead of {:.3}", now.total()))
    }

    fn least_gain(&self) -> f64 {
        LEAST_GAIN + self.knowledge.uncertainty() * CAUTION
    }

    /// When a lane was alone for the first time it has touched memory that it had not needed before:
    /// what it took is dropped, and the step repeated.
    fn warm_up(&mut self, layout: &Layout, plan: &Plan, times: &StepTimes) -> Option<Decision> {
        let works = |lane| !plan.load(lane).is_empty();
        let regime = Regime::of(works(Lane::Cpu), works(Lane::Gpu));
        if regime == Regime::Together || std::mem::replace(&mut self.warm[regime as usize], true) {
            return None;
        }
        let reason = format!(
            "once more: the first step of a lane alone, {:.3} ms, is dropped",
            times.total_ms()
        );
        Some(match &self.aside {
            Some(cuts) => Decision::new(cuts.clone(), Action::Explore, reason),
            None => Decision::new(self.cuts(layout), Action::Keep, reason),
        })
    }

    /// A lane alone, while nobody knows what it takes so.
    fn alone(
        &self,
        prices: &Prices<'_>,
        layout: &Layout,
        now: Predicted,
        memory: Option<f64>,
    ) -> Option<Decision> {
        let lanes = [Regime::GpuAlone, Regime::CpuAlone];
        lanes.into_iter().find_map(|regime| {
            // A GPU that is short of memory is not given everything.
            let possible = regime == Regime::CpuAlone || memory.is_none();
            let unknown = now.regime() == Regime::Together && self.knowledge.seen(regime) == 0;
            let possible = possible && self.reaches(regime);
            let once = once(prices, layout, regime, now);
            (possible && unknown && once.1.total() <= ALONE * now.total()).then_some(once.0)
        })
    }

    /// Whether a lane has been seen to do enough for what it would take alone to be predicted.
    fn reaches(&self, regime: Regime) -> bool {
        let [least, most] = self.knowledge.shares();
        match regime {
            Regime::Together => true,
            Regime::CpuAlone => most >= 1.0,
            Regime::GpuAlone => least <= 0.0,
        }
    }

    /// The same once more, where a lane alone seems better than both together and that is in doubt: because
    /// it is by no more than chance may have made it, or because what it took differed from try to try.
    fn again(
        &self,
        prices: &Prices<'_>,
        layout: &Layout,
        best: Predicted,
        now: Predicted,
        in_doubt: bool,
    ) -> Option<Decision> {
        let regime = best.regime();
        let alone = regime != Regime::Together && now.regime() == Regime::Together;
        let few = (1..TRIES).contains(&self.knowledge.seen(regime));
        (alone && few && in_doubt).then(|| once(prices, layout, regime, now).0)
    }

    /// The step aside whose turn it is.
    fn step_aside(&self, prices: &Prices<'_>, layout: &Layout, now: Predicted) -> Option<Decision> {
        let theta = self.theta?;
        let kind = self.turn % KINDS;
        let subregion = (self.turn / KINDS * 5) % layout.subregions().len();
        let allowed = now.total() * (1.0 + CURIOSITY * self.waited[kind] as f64);
        let (cuts, predicted, what) = ASIDES
            .iter()
            .filter_map(|&share| match kind {
                0 => a_little(prices, layout, theta, subregion, share),
                1 => a_little(prices, layout, theta, subregion, -share),
                _ => single_lane(prices, layout, theta),
            })
            .find(|(_, predicted, _)| {
                predicted.total() <= allowed && self.reaches(predicted.regime())
            })?;
        let reason = format!(
            "once {what}, to see: predicted {:.3} ms instead of {:.3}",
            predicted.total(),
            now.total()
        );
        Some(Decision::new(cuts, Action::Explore, reason))
    }
}

/// Everything to one lane for a step, and what that is predicted to take.
fn once(
    prices: &Prices<'_>,
    layout: &Layout,
    regime: Regime,
    now: Predicted,
) -> (Decision, Predicted) {
    let (theta, lane) = match regime {
        Regime::GpuAlone => (0.0, "GPU"),
        _ => (layout.highest(), "CPU"),
    };
    let predicted = prices.at(theta);
    let reason = format!(
        "everything to the {lane} once, to see what it takes alone: predicted {:.3} ms instead of \
         {:.3}",
        predicted.total(),
        now.total()
    );
    let decision = Decision::new(layout.cuts(theta), Action::Explore, reason);
    (decision, predicted)
}

/// Everything to the lane that has not worked yet.
fn unseen_lane(layout: &Layout, plan: &Plan) -> Decision {
    let (cut, lane) = match plan.share() > 0.0 {
        true => (Cut::NONE, "GPU"),
        false => (Cut::ALL, "CPU"),
    };
    let cuts = vec![cut; layout.subregions().len()];
    let reason = format!("everything to the {lane} once, because it has not worked yet");
    Decision::new(cuts, Action::Explore, reason)
}

/// Cuts for a step aside, what they are predicted to take, and what they are.
type Aside = (Vec<Cut>, Predicted, String);

/// A share of one subregion's work more (or less) for the CPU lane.
fn a_little(
    prices: &Prices<'_>,
    layout: &Layout,
    theta: f64,
    subregion: usize,
    share: f64,
) -> Option<Aside> {
    let mut cuts = layout.cuts(theta);
    let before = layout.bricks_of(subregion, cuts[subregion]);
    let work = |bricks: usize| layout.work_below(subregion, bricks) as f64;
    let wanted = work(before) + share * layout.work(subregion) as f64;
    let last = layout.ladder(subregion).len();
    let mut bricks = if share > 0.0 {
        (before + 1).min(last)
    } else {
        before.saturating_sub(1)
    };
    while share > 0.0 && bricks < last && work(bricks) < wanted {
        bricks += 1;
    }
    while share < 0.0 && bricks > 0 && work(bricks) > wanted {
        bricks -= 1;
    }
    if bricks == before {
        return None;
    }
    cuts[subregion] = layout.cut_at(subregion, bricks);
    let aside = layout.theta_of(subregion, cuts[subregion]);
    let predicted = prices.with(theta, Some((subregion, aside)));
    let lane = if share > 0.0 { "CPU" } else { "GPU" };
    let what = format!("more to the {lane} in subregion {subregion}");
    Some((cuts, predicted, what))
}

/// Everything to the better single lane, unless that is so already.
fn single_lane(prices: &Prices<'_>, layout: &Layout, theta: f64) -> Option<Aside> {
    let gpu = prices.at(0.0);
    let cpu = prices.at(layout.highest());
    let (theta_alone, predicted, lane) = if gpu.total() < cpu.total() {
        (0.0, gpu, "GPU")
    } else {
        (layout.highest(), cpu, "CPU")
    };
    let cuts = layout.cuts(theta_alone);
    let what = format!("everything to the {lane}");
    (cuts != layout.cuts(theta)).then_some((cuts, predicted, what))
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
