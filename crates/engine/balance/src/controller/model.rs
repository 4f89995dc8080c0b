//! Policy `model`: goes to the threshold at which both backends are predicted to end together.
//!
//! # Learning
//!
//! It starts by giving every eighth subregion to the CPU backend, so that both backends are seen
//! at work on every class of occupancy. After that one threshold holds for all subregions. It
//! moves when the predicted gain exceeds 1 % plus half of the uncertainty of the ratio of the
//! backends' times, so measurements that scatter make it reluctant. It moves at most so far that a
//! backend gets eight times the work it has been seen to do, because a prediction is not trusted
//! farther.
//!
//! # A backend alone
//!
//! Both extremes are among the candidates. The time of a backend alone does not follow from its
//! time next to the other: it may use another algorithm (pairs evaluated once), one core more, or
//! no copies. So an extreme that may be worth it is tried as soon as the threshold has been found,
//! or nearly so where the extreme comes close. The better one comes first, up to three times where
//! chance could decide. The first step of a backend alone touches memory that it had not needed
//! before; its time is dropped and the step repeated.
//!
//! # Exploration steps
//!
//! When nothing has moved for 24 steps it explores: a little more to one backend, a little more to
//! the other, or everything to the better single backend, in turn, to see whether its beliefs
//! still hold. After three such steps that moved nothing it waits twice as long. All of them, and
//! the tries of a backend alone, are asked for at the
//! [budget](super::budget): half a per cent of the time of the run, and some steps' worth at its
//! beginning.
//!
//! # Trust
//!
//! A policy that predicts can be wrong in ways that a rule of thumb cannot. Four rules bound the
//! damage: no step is acted upon alone; predictions are not trusted far from what was seen; moves
//! must be worth more than the uncertainty; and exploration is paid for in advance. Tests hold the
//! policy to at most 2 % above the better single backend on twenty random machines and five
//! clouds.

use super::{
    budget::{Budget, Patience},
    costs::{Best, Costs, Predicted},
    decision::{Action, Decision},
    knowledge::Knowledge,
    record::{REGIMES, Regime},
};
use crate::{Backend, Cut, Layout, Plan, StepTimes};

/// Predicted gain below which nothing moves.
const MIN_GAIN: f64 = 0.01;
/// How much more for every part of uncertainty about the ratio of the backends' times: an error of
/// that ratio looks like a gain of half of it.
const CAUTION: f64 = 0.5;
/// Part of the subregions that go to the CPU backend in the first steps.
const FIRST_SHARE: f64 = 0.125;
/// Subregions from which whole ones are given in the first steps.
const FEW_SUBREGIONS: usize = 8;
/// Kinds of exploration steps: more to the CPU, more to the GPU, everything to one backend.
const KINDS: usize = 3;
/// A backend is tried alone where that is predicted to take at most this many times as long as both
/// together.
const ALONE: f64 = 2.0;
/// It is tried again, so that chance does not decide, where the first try came as close as this.
const CLOSE: f64 = 1.2;
/// A threshold has nearly settled where the best one is predicted to gain less than this factor. A
/// backend is tried then if it is predicted to take at most [so many](NEAR) times as long.
const NEARLY: f64 = 1.1;
/// As [`ALONE`], before the threshold has settled.
const NEAR: f64 = 1.5;
/// Maximum number of tries.
const TRIES: usize = 3;
/// Shares of a subregion's work that are moved in an exploration step, the first that can be
/// afforded; the last one stands for a single brick.
const MOVED_SHARES: [f64; 2] = [0.25, 1e-9];

/// The state of the policy between steps.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    /// Knowledge of the machine so far.
    knowledge: Knowledge,
    /// The threshold; `None` until both backends have been seen.
    theta: Option<f64>,
    /// The CPU backend's share of the work at that.
    share: f64,
    /// The CPU backend's share in the first steps; an eighth where none is known.
    first_share: Option<f64>,
    /// When the next exploration step is due.
    patience: Patience,
    /// What exploration steps and tries may still cost.
    budget: Budget,
    /// Predicted milliseconds of the step in whose place the last of them was made.
    usual: f64,
    /// Number of the next exploration step, which decides its kind and subregion.
    turn: usize,
    /// By regime, true once its first step is over.
    warm: [bool; REGIMES],
    /// The exploration step that was just made, until it has been repeated.
    explored: Option<Vec<Cut>>,
}

impl Model {
    /// A policy that has learnt nothing. The CPU backend begins with a `share` of the work, or with
    /// an eighth.
    pub(super) fn new(share: Option<f64>) -> Self {
        Self {
            first_share: share,
            ..Self::default()
        }
    }

    /// The decision before the first step.
    pub(super) fn start(&self, layout: &Layout) -> Decision {
        let reason = match self.first_share {
            Some(share) => format!(
                "subregions with {share:.3} of the work go to the CPU, by the rates of earlier runs"
            ),
            None => "every eighth subregion goes to the CPU, to learn from".to_owned(),
        };
        Decision::new(self.cuts(layout), Action::Start, reason)
    }

    /// Where it stands.
    pub(super) fn cuts(&self, layout: &Layout) -> Vec<Cut> {
        match self.theta {
            Some(theta) => layout.cuts(theta),
            None => first_cuts(layout, self.first_share.unwrap_or(FIRST_SHARE)),
        }
    }

    /// The same share of the work on another layout: its bricks may hold other numbers of points,
    /// so that the old threshold would mean something else.
    ///
    /// Called when points have moved so far that a new layout was made.
    pub(super) fn move_to(&mut self, layout: &Layout) {
        self.explored = None;
        self.theta = self.theta.map(|_| layout.theta_at(self.share));
    }

    /// The decision after a step. The GPU is to hold at most `memory` bytes.
    pub(super) fn next(
        &mut self,
        layout: &Layout,
        plan: &Plan,
        times: &StepTimes,
        memory: Option<f64>,
    ) -> Decision {
        self.account(times.total_ms());
        if let Some(decision) = self.warm_up(layout, plan, times) {
            return decision;
        }
        // Learn from the step, and say in the reason what was learnt.
        let notes = self.knowledge.learn(plan, times);
        let mut seen = format!(
            "measured CPU {:.3} ms, GPU {:.3} ms",
            times.cpu_ms(),
            times.gpu_ms()
        );
        for note in notes {
            seen.push_str("; ");
            seen.push_str(&note);
        }
        let explored = self.explored.take();
        if self.knowledge.doubts() {
            return self.wait(layout, explored, seen);
        }
        let costs = match Costs::new(layout, &self.knowledge) {
            Ok(Some(costs)) => costs,
            Ok(None) => return unseen_backend(layout, plan),
            // The step itself has succeeded.
            Err(shortage) => {
                let reason = format!("{seen}; nothing is predicted: {shortage}");
                return Decision::new(self.cuts(layout), Action::Keep, reason);
            }
        };
        let Best {
            theta,
            predicted: best,
        } = costs.best(memory, self.knowledge.shares());
        let now = self.theta.map(|theta| costs.at(theta));
        let worth = self.worth(best, now);
        let alone = now.and_then(|now| self.try_alone(&costs, layout, best, now, memory));
        if let (Some(decision), Some(now)) = (alone, now) {
            self.explored = Some(decision.cuts.clone());
            self.usual = now.total();
            return decision;
        }
        // The best threshold is worth a move.
        if let Some(instead) = worth {
            self.theta = Some(theta);
            self.share = layout.share_at(theta);
            self.patience.moved();
            let reason = format!(
                "theta {theta:.3}: predicted CPU {:.3} ms, GPU {:.3} ms, in all {:.3}{instead}; \
                 {seen}",
                best.cpu,
                best.gpu,
                best.total()
            );
            return Decision::new(layout.cuts(theta), Action::Move, reason);
        }
        if let (Some(now), true) = (now, self.patience.is_due()) {
            // A kind that does not exist here or cannot be afforded yet is passed over; its turn
            // comes again.
            let explored = self.exploration(&costs, layout, now);
            self.turn += 1;
            if let Some(decision) = explored {
                match self.turn % KINDS {
                    0 => self.patience.learnt_nothing(),
                    _ => self.patience.looks(),
                }
                self.usual = now.total();
                self.explored = Some(decision.cuts.clone());
                return decision;
            }
        }
        let reason = format!(
            "{seen}; the best predicted is {:.3} ms at theta {theta:.3}, not worth a move",
            best.total()
        );
        Decision::new(self.cuts(layout), Action::Keep, reason)
    }

    /// Enters a step into the budget. An exploration step is charged with what it took longer than
    /// was predicted for the one in whose place it was made.
    fn account(&mut self, total_ms: f64) {
        self.patience.step();
        self.budget.pay_in(total_ms);
        if self.explored.is_some() {
            self.budget.spend(total_ms - self.usual, self.usual);
        }
    }

    /// A backend alone for a step, where that is due: again after a try that left doubts, or for
    /// the first time once the threshold has settled, or nearly so.
    fn try_alone(
        &self,
        costs: &Costs<'_>,
        layout: &Layout,
        best: Predicted,
        now: Predicted,
        memory: Option<f64>,
    ) -> Option<Decision> {
        if self.worth(best, Some(now)).is_some() {
            let close = now.total() < CLOSE * best.total();
            let again = self.again(costs, layout, best, now, close);
            // What a backend takes alone matters more than the last tenth of the threshold.
            let nearly = now.total() < NEARLY * best.total();
            let first = || self.alone(costs, layout, (now, NEAR), memory);
            return again.or_else(|| nearly.then(first).flatten());
        }
        let better = best.total() < now.total() * (1.0 - self.min_gain());
        let again = self.again(costs, layout, best, now, better);
        again.or_else(|| self.alone(costs, layout, (now, ALONE), memory))
    }

    /// As before, until the next step confirms a surprise or not; an exploration step is repeated.
    fn wait(&self, layout: &Layout, explored: Option<Vec<Cut>>, seen: String) -> Decision {
        match explored.filter(|cuts| cuts.len() == layout.subregions().len()) {
            Some(cuts) => Decision::new(cuts, Action::Explore, seen),
            None => Decision::new(self.cuts(layout), Action::Wait, seen),
        }
    }

    /// If the best is worth a move, the words that compare it with the present threshold.
    ///
    /// A regime that was tried less than three times needs a gain beyond its spread as well.
    fn worth(&self, best: Predicted, now: Option<Predicted>) -> Option<String> {
        let Some(now) = now else {
            return Some(String::new());
        };
        let mut gain = self.min_gain();
        // A regime that was tried often enough is known on average.
        if best.regime() != now.regime() && self.knowledge.seen(best.regime()) < TRIES {
            gain += 2.0 * self.knowledge.spread(best.regime());
        }
        (best.total() < now.total() * (1.0 - gain))
            .then(|| format!(" instead of {:.3}", now.total()))
    }

    /// Predicted gain below which nothing moves, by the uncertainty of the predictions.
    fn min_gain(&self) -> f64 {
        MIN_GAIN + self.knowledge.uncertainty() * CAUTION
    }

    /// When a backend was alone for the first time it has touched memory that it had not needed
    /// before: the time of that step is dropped, and the step repeated.
    fn warm_up(&mut self, layout: &Layout, plan: &Plan, times: &StepTimes) -> Option<Decision> {
        let works = |backend| !plan.load(backend).is_empty();
        let regime = Regime::of(works(Backend::Cpu), works(Backend::Gpu));
        if regime == Regime::Together || std::mem::replace(&mut self.warm[regime as usize], true) {
            return None;
        }
        let reason = format!(
            "once more: the first step of a backend alone, {:.3} ms, is dropped",
            times.total_ms()
        );
        Some(match &self.explored {
            Some(cuts) => Decision::new(cuts.clone(), Action::Explore, reason),
            None => Decision::new(self.cuts(layout), Action::Keep, reason),
        })
    }

    /// A backend alone, while its time alone is unknown. The GPU is tried only where its memory is
    /// not short, and either only where its time alone is predicted to be at most so many times
    /// that of both together.
    fn alone(
        &self,
        costs: &Costs<'_>,
        layout: &Layout,
        (now, most): (Predicted, f64),
        memory: Option<f64>,
    ) -> Option<Decision> {
        let of = |regime| once(costs, layout, regime, now).1.total();
        let mut backends = [Regime::GpuAlone, Regime::CpuAlone];
        if of(Regime::CpuAlone) < of(Regime::GpuAlone) {
            backends.reverse();
        }
        backends.into_iter().find_map(|regime| {
            // A GPU that is short of memory is not given everything.
            let possible = regime == Regime::CpuAlone || memory.is_none();
            let unknown = now.regime() == Regime::Together && self.knowledge.seen(regime) == 0;
            let possible = possible && self.reaches(regime);
            let once = once(costs, layout, regime, now);
            let close = once.1.total() <= most * now.total();
            let affords = self.affords(regime, once.1, now);
            (possible && unknown && close && affords).then_some(once.0)
        })
    }

    /// Returns true if a backend has been seen to do enough for its time alone to be predicted.
    ///
    /// A backend that has been seen to do an eighth of everything has been seen enough.
    fn reaches(&self, regime: Regime) -> bool {
        let [least, most] = self.knowledge.shares();
        match regime {
            Regime::Together => true,
            Regime::CpuAlone => most >= 1.0,
            Regime::GpuAlone => least <= 0.0,
        }
    }

    /// A backend alone once more, where it seems better than both together and that is in doubt:
    /// because the difference may be chance, or because the times differed from try to try.
    fn again(
        &self,
        costs: &Costs<'_>,
        layout: &Layout,
        best: Predicted,
        now: Predicted,
        in_doubt: bool,
    ) -> Option<Decision> {
        let regime = best.regime();
        let alone = regime != Regime::Together && now.regime() == Regime::Together;
        let few = (1..TRIES).contains(&self.knowledge.seen(regime));
        if !(alone && few && in_doubt) {
            return None;
        }
        let (decision, predicted) = once(costs, layout, regime, now);
        self.affords(regime, predicted, now).then_some(decision)
    }

    /// Whether the budget has enough for a backend alone; its first step is made twice.
    fn affords(&self, regime: Regime, alone: Predicted, now: Predicted) -> bool {
        let steps = if self.warm[regime as usize] { 1.0 } else { 2.0 };
        let extra = steps * (alone.total() - now.total());
        self.budget.affords(extra, now.total())
    }

    /// The exploration step whose turn it is.
    fn exploration(&self, costs: &Costs<'_>, layout: &Layout, now: Predicted) -> Option<Decision> {
        let theta = self.theta?;
        let kind = self.turn % KINDS;
        let subregion = (self.turn / KINDS * 5) % layout.subregions().len();
        let allowed = now.total() + self.budget.left(now.total());
        let (cuts, predicted, what) = MOVED_SHARES
            .iter()
            .filter_map(|&share| match kind {
                0 => a_little(costs, layout, theta, subregion, share),
                1 => a_little(costs, layout, theta, subregion, -share),
                _ => single_backend(costs, layout, theta),
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

/// Everything to one backend for a step, with its predicted times.
///
/// Used for first tries and for repetitions. A type Exploration None of them is kept: the next
/// decision goes back.
fn once(
    costs: &Costs<'_>,
    layout: &Layout,
    regime: Regime,
    now: Predicted,
) -> (Decision, Predicted) {
    let (theta, backend) = match regime {
        Regime::GpuAlone => (0.0, "GPU"),
        _ => (layout.highest(), "CPU"),
    };
    let predicted = costs.at(theta);
    let reason = format!(
        "everything to the {backend} once, to see what it takes alone: predicted {:.3} ms instead of \
         {:.3}",
        predicted.total(),
        now.total()
    );
    let decision = Decision::new(layout.cuts(theta), Action::Explore, reason);
    (decision, predicted)
}

/// Everything to the backend that has not worked yet.
///
/// Without it a backend that got no work in the first steps, because the cloud has few bricks,
/// would never be known.
fn unseen_backend(layout: &Layout, plan: &Plan) -> Decision {
    let (cut, backend) = if plan.share() > 0.0 {
        (Cut::NONE, "GPU")
    } else {
        (Cut::ALL, "CPU")
    };
    let cuts = vec![cut; layout.subregions().len()];
    let reason = format!("everything to the {backend} once, because it has not worked yet");
    Decision::new(cuts, Action::Explore, reason)
}

/// Cuts of an exploration step, their predicted times, and a description.
type Exploration = (Vec<Cut>, Predicted, String);

/// A share of one subregion's work more (or less) for the CPU backend; at least one brick. None
/// where there is no brick to move.
fn a_little(
    costs: &Costs<'_>,
    layout: &Layout,
    theta: f64,
    subregion: usize,
    share: f64,
) -> Option<Exploration> {
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
    let explored = layout.theta_of(subregion, cuts[subregion]);
    let predicted = costs.with(theta, Some((subregion, explored)));
    let backend = if share > 0.0 { "CPU" } else { "GPU" };
    let what = format!("more to the {backend} in subregion {subregion}");
    Some((cuts, predicted, what))
}

/// Everything to the better single backend by prediction, unless that is the present state.
fn single_backend(costs: &Costs<'_>, layout: &Layout, theta: f64) -> Option<Exploration> {
    let gpu = costs.at(0.0);
    let cpu = costs.at(layout.highest());
    let (theta_alone, predicted, backend) = if gpu.total() < cpu.total() {
        (0.0, gpu, "GPU")
    } else {
        (layout.highest(), cpu, "CPU")
    };
    let cuts = layout.cuts(theta_alone);
    let what = format!("everything to the {backend}");
    (cuts != layout.cuts(theta)).then_some((cuts, predicted, what))
}

/// The cuts of the first steps: whole subregions, evenly spread, so that both backends are seen at
/// work on every occupancy. Where there are few subregions, half of the bricks of each.
fn first_cuts(layout: &Layout, share: f64) -> Vec<Cut> {
    let count = layout.subregions().len();
    // With an eighth: the first one of every eight.
    let given = |subregion: usize| ((subregion as f64 + 1.0) * share - share).ceil();
    (0..count)
        .map(|subregion| {
            if count < FEW_SUBREGIONS {
                layout.cut_at(subregion, layout.ladder(subregion).len() / 2)
            } else if given(subregion + 1) > given(subregion) {
                Cut::ALL
            } else {
                Cut::NONE
            }
        })
        .collect()
}
