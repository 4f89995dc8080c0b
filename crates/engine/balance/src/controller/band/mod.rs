//! Policy `band`: the seed rule.
//!
//! With α < t_cpu/t_gpu < β nothing changes. Outside of the band the thresholds of neighbouring
//! subregions move by a [notch of occupancy](crate::layout::notches) each, up below the band and
//! down above it, until both backends are predicted to end at the middle of the band. So sparse
//! bricks are the CPU backend's in every subregion, dense ones the GPU's, and no two subregions
//! differ by more than one notch.
//!
//! # Prediction
//!
//! A backend takes a fixed time, at first its setup, and a time in proportion to its work. After a
//! move two shares tell which part of the time is fixed. That is wrong where the bricks that move
//! are denser than those before, so the rule predicts anew after every move. Shares that
//! were too small and too large are remembered, and the next one lies between them: the rule cannot
//! go to and fro.
//!
//! Inside the band the times of up to five steps count by their medians, so that a step that
//! scatters moves nothing.
//!
//! # The course of a run
//!
//! | step | what happens |
//! | --- | --- |
//! | first | the sparsest bricks are the CPU's, an eighth of the work or the share of earlier runs |
//! | second | the first times that count; both backends get a line of time by work |
//! | some more | the share moves to where the lines meet in the middle of the band |
//! | then | a backend alone is tried, once or twice, where it may be better |
//! | later | nothing, until a time leaves the band or the patience is over |
//!
//! A share that no place comes near enough to, because there are few bricks, is left at the better
//! one of its two neighbours.
//!
//! # Stalls and changes
//!
//! A step in which a backend takes more than half as long again as before is ignored once. If the
//! next one is like it the backend has changed: all that was measured is forgotten, except the
//! share, and the run begins anew from there. Each regime has speeds of its own, because a backend
//! alone may take another time per pair than next to the other.
//!
//! # A backend alone
//!
//! Inside the band a backend may wait for the other for 1 − α of the time, and sharing a step has
//! fixed costs. So once a share has settled, either backend is tried alone, where that may pay. The
//! step stays shared only where it takes at most 0.98 of the better backend's time. Otherwise that
//! backend works alone, and sharing is tried again when the [budget](super::budget) has saved for
//! it. A try that changed nothing doubles the number of steps before the next one.

mod alone;
mod lines;

use super::{
    budget::{Budget, Patience},
    decision::{Action, Decision, carried},
    record::{REGIMES, Regime},
    stall::{Speeds, median},
};
use crate::{
    Backend, Layout, Plan, StepTimes,
    layout::notches::{Notches, Place},
};
use lines::{Line, Point};
use nearfield_grid::memory::Shortage;
use std::collections::VecDeque;

/// The CPU backend's share of the work in the first steps. Small, because a step waits
/// for the slower backend, and large enough for its time to be more than a fixed cost.
const FIRST_SHARE: f64 = 0.125;
/// Steps of a regime that are remembered.
const MEMORY: usize = 5;
/// A shared step has to take at most this part of the better backend's time. The rest
/// pays for noise: a backend alone is never slower than itself.
const WORTH: f64 = 0.98;
/// A backend is tried alone where it is predicted to take at most this many times as long as the
/// better way there is.
const ALONE: f64 = 2.0;
/// The other backend, after the better one was tried, where it is predicted to take at most this
/// many times as long: the prediction of the better one has held by then, or was too high.
const OTHER_ALONE: f64 = 1.5;
/// It is tried again, up to [`TRIES`] times, where it came within this factor.
const CLOSE: f64 = 1.1;
/// Maximum number of tries: the mean of three halves a noise of a few per cent.
const TRIES: usize = 3;
/// Shares that differ by less are the same. A share is a sum of whole bricks, so the error is that
/// of a rounded quotient.
const SAME: f64 = 1e-9;

/// A share of the CPU backend that left the band, and the milliseconds per pair of a step at it.
///
/// Two of them enclose the share that is looked for.
#[derive(Debug, Clone, Copy)]
struct Seen {
    /// The CPU backend's share of the work.
    share: f64,
    /// Milliseconds of the step per pair.
    ms: f64,
}

/// The state of the policy between steps.
///
/// `share` outlives a backend's time alone, so that sharing is tried again where it was best.
/// Everything else is measured, and forgotten when a backend changes.
#[derive(Debug, Clone)]
pub(super) struct Band {
    /// Lower end of the band.
    alpha: f64,
    /// Upper end of the band.
    beta: f64,
    /// The CPU backend's share of a shared step.
    share: f64,
    /// The backends that work, except in a try.
    stand: Regime,
    /// Milliseconds of both backends at the present share, latest last.
    recent: VecDeque<[f64; 2]>,
    /// Both backends at the share before the last move.
    before: Option<[Point; 2]>,
    /// By regime, milliseconds of a step per pair, latest last.
    took: [VecDeque<f64>; REGIMES],
    /// By regime, what a backend alone was last predicted to take per pair.
    predicted: [Option<f64>; REGIMES],
    /// The largest share that was below the band, and the smallest above it.
    bounds: [Option<Seen>; 2],
    /// By regime, the usual speeds of both backends.
    speeds: [Speeds; REGIMES],
    /// By regime, true once its first step is over.
    warm: [bool; REGIMES],
    /// What tries may still cost, and when the next one is due.
    budget: Budget,
    patience: Patience,
    /// The try that was just made, and the predicted milliseconds of the step in whose place.
    tried: Option<(Regime, f64)>,
}

/// A step as the rule sees it.
///
/// Made once per decision and handed to all parts of the rule. Its notches belong to the layout of
/// the next step, which may be another one than that of the plan.
struct Step<'a> {
    layout: &'a Layout,
    plan: &'a Plan,
    times: &'a StepTimes,
    notches: Notches<'a>,
    /// Pairs of the layout.
    work: f64,
    /// The GPU is short of memory.
    short: bool,
    /// The measured times, for the reason.
    seen: String,
}

impl Band {
    /// A band from `alpha` to `beta`. The CPU backend begins with a `share` of the work, or with an
    /// eighth.
    pub(super) fn new(alpha: f64, beta: f64, share: Option<f64>) -> Self {
        Self {
            alpha,
            beta,
            share: share.unwrap_or(FIRST_SHARE),
            stand: Regime::Together,
            recent: VecDeque::new(),
            before: None,
            took: Default::default(),
            predicted: [None; REGIMES],
            bounds: [None; 2],
            speeds: Default::default(),
            warm: [true, false, false],
            budget: Budget::default(),
            patience: Patience::default(),
            tried: None,
        }
    }

    /// The decision before the first step.
    pub(super) fn start(&self, layout: &Layout) -> Decision {
        let reason = format!(
            "the sparsest bricks, with {:.3} of the work, go to the CPU to begin with",
            self.share
        );
        Decision::new(self.cuts(layout), Action::Start, reason)
    }

    /// Where it stands.
    pub(super) fn cuts(&self, layout: &Layout) -> Vec<crate::Cut> {
        self.cuts_in(layout, self.stand)
    }

    /// The cuts of a regime, at the present share if both backends work.
    ///
    /// Without memory for notches one threshold gives the same share, by the order of the layout.
    fn cuts_in(&self, layout: &Layout, regime: Regime) -> Vec<crate::Cut> {
        let place = Notches::of(layout).and_then(|notches| notches.nearest(self.share_in(regime)));
        match place {
            Ok(place) => place.cuts,
            Err(_) => layout.cuts(layout.theta_at(self.share_in(regime))),
        }
    }

    /// The CPU backend's share of the work in a regime.
    fn share_in(&self, regime: Regime) -> f64 {
        match regime {
            Regime::Together => self.share,
            Regime::CpuAlone => 1.0,
            Regime::GpuAlone => 0.0,
        }
    }

    /// On a new layout the backends keep their shares. Its places are others, so that what was too
    /// much or too little on the old one is forgotten.
    pub(super) fn move_to(&mut self, layout: &Layout) -> Vec<crate::Cut> {
        self.tried = None;
        (self.bounds, self.before) = ([None; 2], None);
        self.cuts(layout)
    }

    /// The decision after a step. `short` says that the GPU has run out of memory lately.
    pub(super) fn next(
        &mut self,
        layout: &Layout,
        plan: &Plan,
        times: &StepTimes,
        short: bool,
    ) -> Decision {
        let seen = format!(
            "CPU {:.3} ms / GPU {:.3} ms = {:.3}",
            times.cpu_ms(),
            times.gpu_ms(),
            times.cpu_ms() / times.gpu_ms()
        );
        let notches = match Notches::of(layout) {
            Ok(notches) => notches,
            // The step itself has succeeded.
            Err(shortage) => {
                let reason = format!("{seen}; nothing is decided: {shortage}");
                return Decision::new(carried(layout, plan.cuts()), Action::Keep, reason);
            }
        };
        let work = layout.bricks().work() as f64;
        let step = Step {
            layout,
            plan,
            times,
            notches,
            work,
            short,
            seen,
        };
        self.decide(&step).unwrap_or_else(|shortage| {
            let reason = format!("{}; nothing is decided: {shortage}", step.seen);
            Decision::new(carried(layout, plan.cuts()), Action::Keep, reason)
        })
    }

    /// The decision after a step whose notches are known.
    ///
    /// A step that says little is made again: the first one of a backend alone, and one that took
    /// much longer or shorter than those before.
    ///
    /// # Errors
    /// When there is no memory for cuts.
    fn decide(&mut self, step: &Step<'_>) -> Result<Decision, Shortage> {
        let total = step.times.total_ms();
        let works = |backend| !step.plan.load(backend).is_empty();
        let regime = Regime::of(works(Backend::Cpu), works(Backend::Gpu));
        self.budget.pay_in(total);
        self.patience.step();
        let tried = self.tried.take();
        if let Some((_, usual)) = tried {
            self.budget.spend(total - usual, usual);
        }
        let again = |band: &mut Self, reason: String| {
            band.tried = tried;
            let action = if tried.is_some() {
                Action::Explore
            } else {
                Action::Keep
            };
            Ok(Decision::new(
                carried(step.layout, step.plan.cuts()),
                action,
                reason,
            ))
        };
        if !std::mem::replace(&mut self.warm[regime as usize], true) {
            let reason =
                format!("once more: the first step of a backend alone, {total:.3} ms, is dropped");
            return again(self, reason);
        }
        let speeds = &mut self.speeds[regime as usize];
        if let Some(doubt) = speeds.doubt(step.plan, step.times) {
            return again(self, doubt);
        }
        if speeds.changed() {
            self.forget();
        }
        let took = &mut self.took[regime as usize];
        took.push_back(total / step.work.max(1.0));
        if took.len() > MEMORY {
            took.pop_front();
        }
        match tried {
            Some((tried, _)) => self.after_try(step, tried),
            None if regime == Regime::Together => self.shared(step),
            None => self.alone(step, regime),
        }
    }

    /// A backend has changed: what was measured is no longer known, and what was tried is tried
    /// anew. The share stays, which is the best guess there is.
    fn forget(&mut self) {
        self.took.iter_mut().for_each(VecDeque::clear);
        self.recent.clear();
        self.predicted = [None; REGIMES];
        (self.bounds, self.before) = ([None; 2], None);
        self.patience = Patience::default();
    }

    /// Milliseconds per pair of a step of a regime, if it was seen.
    fn known(&self, regime: Regime) -> Option<f64> {
        median(self.took[regime as usize].iter().copied())
    }

    /// The better backend alone and what it takes, of those that were seen.
    fn better_alone(&self) -> Option<(Regime, f64)> {
        let all = [Regime::CpuAlone, Regime::GpuAlone].into_iter();
        let known = all.filter_map(|regime| Some((regime, self.known(regime)?)));
        known.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// After a shared step: the rule of the band.
    ///
    /// A plan may differ from what was decided, where the GPU lacked memory; the rule then goes on
    /// from its share.
    fn shared(&mut self, step: &Step<'_>) -> Result<Decision, Shortage> {
        let share = step.plan.share();
        if (share - self.share).abs() > SAME {
            (self.share, self.stand) = (share, Regime::Together);
        }
        self.recent
            .push_back([step.times.cpu_ms(), step.times.gpu_ms()]);
        if self.recent.len() > MEMORY {
            self.recent.pop_front();
        }
        let of = |backend: usize| median(self.recent.iter().map(|ms| ms[backend])).unwrap_or(0.0);
        let [cpu, gpu] = [of(0), of(1)];
        let ratio = cpu / gpu;
        if (self.alpha..=self.beta).contains(&ratio) {
            self.bounds = [None; 2];
            let reason = format!("{} is within {} to {}", step.seen, self.alpha, self.beta);
            let lines = self.lines(step, [cpu, gpu]);
            return self.settled(step, lines, reason);
        }
        let above = ratio > self.beta;
        let took = self.known(Regime::Together).unwrap_or(0.0);
        self.bounds[usize::from(above)] = Some(Seen { share, ms: took });
        let other = &mut self.bounds[usize::from(!above)];
        let contradicts = |seen: &Seen| {
            if above {
                seen.share >= share
            } else {
                seen.share <= share
            }
        };
        if other.as_ref().is_some_and(contradicts) {
            *other = None;
        }
        let lines = self.lines(step, [cpu, gpu]);
        let wanted = self.balanced_share(step, lines);
        let shared = lines[1].at((1.0 - wanted.clamp(0.0, 1.0)) * step.work) / step.work.max(1.0);
        let seen = step.seen.clone();
        if let Some(decision) = self.try_alone(step, lines, shared, &seen)? {
            return Ok(decision);
        }
        if wanted <= 0.0 || wanted >= 1.0 {
            return self.give_all(step, wanted >= 1.0);
        }
        let place = match self.place_for(step, wanted)? {
            Some(place) => place,
            None => {
                let reason = format!(
                    "{} is {} {}, but no brick fits",
                    step.seen,
                    if above { "above" } else { "below" },
                    if above { self.beta } else { self.alpha }
                );
                return self.settled(step, lines, reason);
            }
        };
        self.before = Some([Backend::Cpu, Backend::Gpu].map(|backend| Point {
            work: step.plan.load(backend).work() as f64,
            ms: [cpu, gpu][backend as usize],
        }));
        Ok(self.go(step, place, above))
    }

    /// What both backends take by their work. From two shares that differ it is known which part of
    /// the time is fixed; from one it is taken to be the setup.
    fn lines(&self, step: &Step<'_>, ms: [f64; 2]) -> [Line; 2] {
        [Backend::Cpu, Backend::Gpu].map(|backend| {
            let number = backend as usize;
            let now = Point {
                work: step.plan.load(backend).work() as f64,
                ms: ms[number],
            };
            let setup = step.times.setup[number].ms();
            Line::of(now, self.before.map(|before| before[number]), setup)
        })
    }

    /// The share at which both backends are predicted to end at the middle of the band.
    fn balanced_share(&self, step: &Step<'_>, [cpu, gpu]: [Line; 2]) -> f64 {
        let middle = (self.alpha + self.beta) / 2.0;
        let all = middle * gpu.at(step.work) - cpu.fixed;
        all / (cpu.rate + middle * gpu.rate).max(f64::MIN_POSITIVE) / step.work.max(1.0)
    }

    /// The place for a share: between those that were too little and too much, and not the present
    /// one. None where there is no such place.
    fn place_for(&self, step: &Step<'_>, wanted: f64) -> Result<Option<Place>, Shortage> {
        let [low, high] = [(0, 0.0), (1, 1.0)]
            .map(|(at, end)| self.bounds[at].map_or(end, |seen: Seen| seen.share));
        let between = |share: f64| low + SAME < share && share < high - SAME;
        let middle = (low + high) / 2.0;
        for share in [if between(wanted) { wanted } else { middle }, middle] {
            let place = step.notches.nearest(share)?;
            if between(place.share) && (place.share - self.share).abs() > SAME {
                return Ok(Some(place));
            }
        }
        // The neighbours of the best place are both outside of the band: the better one it is.
        let [Some(low), Some(high)] = self.bounds else {
            return Ok(None);
        };
        let (now, other) = if (low.share - self.share).abs() < SAME {
            (low, high)
        } else {
            (high, low)
        };
        let better = other.ms < WORTH * now.ms;
        Ok(if better {
            Some(step.notches.nearest(other.share)?)
        } else {
            None
        })
    }

    /// Moves to a place, and says in the reason what moves and how far.
    ///
    /// What a shared step took before is forgotten: it was another share.
    fn go(&mut self, step: &Step<'_>, place: Place, above: bool) -> Decision {
        self.recent.clear();
        self.took[Regime::Together as usize].clear();
        self.patience.moved();
        let end = if above {
            format!("above {}", self.beta)
        } else {
            format!("below {}", self.alpha)
        };
        let to = if above { "GPU" } else { "CPU" };
        let all = place.cuts.iter().enumerate();
        let bricks: usize = all.map(|(s, &cut)| step.layout.bricks_of(s, cut)).sum();
        let moved = bricks.abs_diff(step.plan.load(Backend::Cpu).bricks as usize);
        let reason = format!(
            "{} is {end}: {moved} bricks go to the {to}; the CPU has {:.3} of the work instead of \
             {:.3}, notch {} of {} (up to {} points) in all subregions and the next one in {} of \
             them",
            step.seen,
            place.share,
            self.share,
            place.notch,
            step.notches.len(),
            step.notches.occupancy(place.notch),
            place.ahead
        );
        (self.share, self.stand) = (place.share, Regime::Together);
        Decision::new(place.cuts, Action::Move, reason)
    }

    /// What a backend needs before its part alone exceeds the other's time for everything.
    fn give_all(&mut self, step: &Step<'_>, to_cpu: bool) -> Result<Decision, Shortage> {
        let (regime, name) = match to_cpu {
            true => (Regime::CpuAlone, "CPU"),
            false => (Regime::GpuAlone, "GPU"),
        };
        if step.short && !to_cpu {
            return Ok(self.keep(step, format!("{}; the GPU has no room for more", step.seen)));
        }
        let reason = format!(
            "{}: everything to the {name}, which ends before the other has begun",
            step.seen
        );
        self.stand_alone(step, regime, reason)
    }

    /// Everything as it is.
    fn keep(&self, step: &Step<'_>, reason: String) -> Decision {
        Decision::new(carried(step.layout, step.plan.cuts()), Action::Keep, reason)
    }
}
