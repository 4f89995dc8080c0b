//! A job's memory between steps: its plan, its controller, and the step they were made from.
//!
//! Three decisions are kept apart, because they cost differently. *Cutting* the bricks anew follows
//! every decision that moves the threshold. *Asking* the controller costs about a twentieth of a
//! short step, so it is put off while nothing happens ([`Calm`]). *Planning* from new points costs
//! a sort and some milliseconds, so a plan serves until making it anew is less than half a percent
//! of the steps since, or until a tenth of the points have come or gone.
//!
//! **Invariant:** plan and decision belong together: the plan is cut as the decision says. After an
//! error both are what they were.
//!
//! # What a controller is not told
//!
//! Times teach only if they are those of the plan at work. So some steps are counted in the report
//! and kept from the controller: the first one after a plan was made, whose time holds the sort;
//! one in which memory was taken; one in which the device had too little room or was in use by
//! another job. A fault in a step of both backends is told even in the first step after a plan.
//!
//! Setups of both backends, the time before their subregions, are kept as medians of the last five
//! steps that both had work in. A step of one backend alone cannot tell its setup from its work.

use super::{
    planned::{BrickPlan, layout, needed, next_version, parts_of, usual_theta},
    protocol::Backends,
    report::SplitReport,
    settings::Settings,
    times::StepMeasurement,
    trace,
};
use crate::{
    Error,
    backend::{Job, rates::JobRates},
};
use nearfield_balance::{
    Action, Backend, Controller, Decision, ErrorKind as BalanceErrorKind, Plan, Policy, StepTimes,
    Traffic,
};
use nearfield_cpu::PairOfSets;
use std::{collections::VecDeque, time::Instant};

/// Share of the time that making plans anew may take.
const FRESHNESS: f64 = 0.005;
/// Steps that a plan serves at least.
const MIN_AGE: u32 = 8;
/// Steps that a plan serves where times do not count.
const AGE: u32 = 64;
/// Part of the points that may come or go before a plan is made anew.
const TURNOVER: f64 = 0.1;
/// Neighbours per pair tested where nothing is known: half as many again as in a uniform cloud.
const HITS: f64 = 0.25;

/// Share of the time that decisions may take which leave things as they are, once they have for a
/// while.
const OWN_COST: f64 = 0.005;

/// Pairs that memory is taken for without knowing how many there are.
const SMALL_PAIRS: u64 = 1 << 21;

/// Steps of both backends from which it is known what they usually need before their subregions.
const SETUPS: usize = 5;

/// Steps of both backends that rates are medians of, at most: where a backend alone is better, both
/// work together in a few steps only.
const RATES: usize = 5;
/// Pairs tested in a step from which its rates say something about other runs.
const TELLING_PAIRS: u64 = 1 << 20;

/// A controller that begins with a share, if one is known.
fn controller(policy: Policy, share: Option<f64>) -> Result<Controller, nearfield_balance::Error> {
    match share {
        Some(share) => Controller::with_share(policy, share),
        None => Controller::new(policy),
    }
}

/// Whether anything happens that a controller should be asked about. Asking costs about as much as
/// a twentieth of a short step, so when it has kept everything as it was for a while and steps take
/// as long as they did, it is asked about every sixteenth only. It is always asked about a step
/// aside, or that would not be the only one.
#[derive(Debug, Default)]
struct Calm {
    /// The next step is one aside.
    aside: bool,
    /// Decisions in turn that kept everything as it was.
    kept: u32,
    /// Decisions since the last move, or since the plan was made.
    since_move: u32,
    /// Milliseconds of the step that was last decided on.
    usual_ms: f64,
    /// Steps since then.
    passed: u32,
}

impl Calm {
    /// Decisions after which it is calm.
    const PATIENCE: u32 = 8;
    /// In calm, every how many steps the controller is asked.
    const EVERY: u32 = 16;
    /// Change of a step's time that ends the calm.
    const SURPRISE: f64 = 0.2;
    /// Decisions after a move that are not put off, because they show what it was worth: a work
    /// that stands in a wrong place for hundreds of steps loses more than they take. A move to
    /// where the last step was made, aside, is known to be worth it.
    const EAGER: u32 = 4;
    /// Decisions in turn that have kept everything as it was, so that nothing is being tried.
    const RESTED: u32 = 2;

    /// Whether the next decision may be put off until steps have made up for the last one.
    fn may_wait(&self) -> bool {
        !self.aside && self.kept >= Self::RESTED && self.since_move >= Self::EAGER
    }

    /// Whether this step may pass without a question, which is then counted.
    fn is_as_before(&mut self, total_ms: f64) -> bool {
        let usual = (total_ms - self.usual_ms).abs() <= Self::SURPRISE * self.usual_ms;
        let rested = self.kept >= Self::PATIENCE && !self.aside;
        let calm = rested && usual && self.passed + 1 < Self::EVERY;
        self.passed += u32::from(calm);
        calm
    }

    /// The controller has decided after a step of this time; `moves` if the next step is divided
    /// otherwise.
    fn decided(&mut self, action: Action, moves: bool, total_ms: f64) {
        self.aside = action == Action::Explore;
        self.kept = match action {
            Action::Keep => self.kept + 1,
            // After a step aside it is as it was before.
            Action::Explore => Self::PATIENCE - 1,
            Action::Move if !moves => Self::RESTED,
            _ => 0,
        };
        self.since_move = match action {
            Action::Move if !moves => Self::EAGER,
            Action::Move => 0,
            _ => self.since_move.saturating_add(1),
        };
        (self.usual_ms, self.passed) = (total_ms, 0);
    }
}

/// A job between steps.
#[derive(Debug)]
pub(crate) struct JobState {
    /// Which, for traces.
    job: Job,
    controller: Controller,
    /// None before the first step, and after the lattice has changed.
    planned: Option<BrickPlan>,
    /// The last decision of the controller, also while there is no plan.
    decision: Option<Decision>,
    /// Points of targets and sources when the layout was made.
    points: [usize; 2],
    /// Steps since then, and what making it took.
    age: u32,
    cost_ms: f64,
    /// Neighbours per pair tested on either backend.
    hits: [Option<f64>; 2],
    calm: Calm,
    /// Cost of the last decision that the steps since have not yet made up for.
    /// Counts down by half a percent of each step's time.
    debt_ms: f64,
    /// Setups of both backends before their subregions, in the last steps of both.
    setups: VecDeque<[f64; 2]>,
    /// The CPU backend's share of the first steps, by the rates of earlier runs.
    first_share: Option<f64>,
    /// Rates of the last steps of both backends that were learnt from.
    rates: VecDeque<JobRates>,
    /// Steps done, for the report.
    steps: u64,
    /// True if the last step was an exploration step: θ differed from the settled value for one
    /// step to sample another split.
    aside: bool,
    /// The last step in numbers.
    last: StepMeasurement,
}

impl JobState {
    /// A job without a plan, whose controller has learnt nothing. `known` are the rates of earlier
    /// runs.
    ///
    /// # Errors
    /// When the policy's numbers contradict each other.
    pub(crate) fn new(
        job: Job,
        policy: Policy,
        known: Option<JobRates>,
    ) -> Result<Self, nearfield_balance::Error> {
        let first_share = known.map(JobRates::share);
        Ok(Self {
            job,
            controller: controller(policy, first_share)?,
            first_share,
            rates: VecDeque::new(),
            planned: None,
            decision: None,
            points: [0; 2],
            age: 0,
            cost_ms: 0.0,
            hits: [None; 2],
            calm: Calm::default(),
            debt_ms: 0.0,
            setups: VecDeque::new(),
            steps: 0,
            aside: false,
            last: StepMeasurement::default(),
        })
    }

    /// The plan there is.
    pub(crate) fn planned(&self) -> Option<&BrickPlan> {
        self.planned.as_ref()
    }

    /// Whether the device has work in the next step, or may have.
    pub(crate) fn wants_device(&self) -> bool {
        self.planned.is_none() || self.backends() != Backends::Cpu
    }

    /// Neighbours that the CPU backend and the device are expected to find, with some room to
    /// spare.
    ///
    /// An estimate for the size of list storage. One eighth is added to what the hits of the last
    /// step speak for; where a backend has found nothing yet, a quarter of the pairs tested, or all
    /// of them while these are few.
    pub(crate) fn expected_pairs(&self) -> [usize; 2] {
        let work = |backend| {
            self.planned
                .as_ref()
                .map_or(0, |p| p.plan.load(backend).work())
        };
        let of = |backend: usize, work: u64| match self.hits[backend] {
            Some(hits) => (1.125 * hits * work as f64) as usize + 4096,
            // No more than are tested; all of them while that is not much.
            None => work.min(SMALL_PAIRS).max((HITS * work as f64) as u64) as usize,
        };
        [of(0, work(Backend::Cpu)), of(1, work(Backend::Gpu))]
    }

    /// Takes the number of neighbours that each backend has found.
    pub(crate) fn found(&mut self, pairs: [u64; 2]) {
        let Some(planned) = &self.planned else {
            return;
        };
        for (backend, name) in [Backend::Cpu, Backend::Gpu].into_iter().enumerate() {
            let work = planned.plan.load(name).work();
            if work > 0 {
                self.hits[backend] = Some(pairs[backend] as f64 / work as f64);
            }
        }
    }

    /// Another policy, which has learnt nothing yet.
    ///
    /// The layout stays, so no sort is needed.
    pub(crate) fn restart(&mut self, policy: Policy) -> Result<(), nearfield_balance::Error> {
        self.controller = controller(policy, self.first_share)?;
        (self.decision, self.calm, self.steps) = (None, Calm::default(), 0);
        if let Some(planned) = &mut self.planned {
            let decision = self.controller.start(&planned.layout);
            planned.cut(&decision)?;
            self.decision = Some(decision);
        }
        Ok(())
    }

    /// The lattice has changed, and the plan's cells with it. The controller keeps its lessons.
    pub(crate) fn drop_plan(&mut self) {
        self.planned = None;
    }

    /// Whether a plan has to be made, or made anew, before the next step.
    ///
    /// `points` are those of targets and sources now. With `deterministic`, age counts in steps and
    /// not in time, so that a plan is made anew at the same step in every run.
    pub(crate) fn is_stale(&self, points: [usize; 2], deterministic: bool) -> bool {
        let turned = (0..2).any(|set| {
            let change = points[set].abs_diff(self.points[set]) as f64;
            change > TURNOVER * self.points[set] as f64
        });
        // Where the device works alone the host does not sort, and nothing depends on the plan.
        let old = match deterministic {
            true => self.age >= AGE,
            false => {
                self.age >= MIN_AGE
                    && f64::from(self.age) * self.last.total_ms * FRESHNESS >= self.cost_ms
                    && self.backends() != Backends::Device
            }
        };
        // A step aside that was decided on is made first: what it is for would have to be found
        // anew.
        let aside = matches!(&self.decision, Some(decision) if decision.action == Action::Explore);
        turned || old && !aside || self.planned.is_none()
    }

    /// The backends that have work by the plan; the CPU backend alone where there is none.
    pub(crate) fn backends(&self) -> Backends {
        let Some(planned) = &self.planned else {
            return Backends::Cpu;
        };
        let has = |backend| !planned.plan.load(backend).is_empty();
        match (has(Backend::Cpu), has(Backend::Gpu)) {
            (true, true) => Backends::Both,
            (false, true) => Backends::Device,
            _ => Backends::Cpu,
        }
    }

    /// Makes a plan from the points as they are.
    ///
    /// The controller's lessons are carried over: cuts of the old layout are translated to the new
    /// one. Cost: a pass over the occupied cells of both sets, the order of the bricks, and the
    /// map.
    ///
    /// # Errors
    /// Too little memory, or bricks that cannot be laid out. The job then has the plan it had.
    pub(crate) fn plan_for(
        &mut self,
        of: PairOfSets<'_>,
        settings: &Settings,
        traffic: Traffic,
    ) -> Result<(), Error> {
        let begin = Instant::now();
        let _span = tracing::debug_span!("balance.plan").entered();
        let points = [of.targets.points().len(), of.sources.points().len()];
        let lattice = of.targets.lattice();
        let (layout, edge) = layout(of, settings, traffic)?;
        if settings.deterministic && !matches!(settings.policy, Policy::Fixed { .. }) {
            let theta = usual_theta(&layout)?;
            self.controller = Controller::new(Policy::Fixed { theta })?;
            self.decision = None;
        }
        let decision = match &self.decision {
            Some(decision) => Decision {
                cuts: self.controller.on_layout(&layout),
                action: decision.action,
                reason: decision.reason.clone(),
            },
            None => self.controller.start(&layout),
        };
        let before = self.planned.as_ref().map(BrickPlan::split);
        let plan = Plan::new(&layout, &decision.cuts)?;
        let parts = parts_of(&layout, &plan, edge)?;
        let needed = needed(&parts, (&layout, &plan), lattice)?;
        // Nothing fails from here on: the points and the plan belong together.
        (self.points, self.age, self.calm) = (points, 0, Calm::default());
        self.planned = Some(BrickPlan {
            needed,
            parts,
            layout,
            plan,
            edge,
            lattice: lattice.clone(),
            version: next_version(),
        });
        if let Some(planned) = &self.planned {
            trace::occupancy(planned);
            let policy = self.controller.policy();
            trace::replan(self.job, policy, before, planned, &decision);
        }
        self.decision = Some(decision);
        self.cost_ms = begin.elapsed().as_secs_f64() * 1e3;
        Ok(())
    }

    /// Milliseconds that both backends usually need before they begin with their subregions:
    /// medians, since a step that takes memory anew needs more than the others.
    pub(crate) fn setups(&self) -> [f64; 2] {
        [0, 1].map(|backend| {
            let mut known: Vec<f64> = self.setups.iter().map(|setups| setups[backend]).collect();
            known.sort_by(f64::total_cmp);
            known.get(known.len() / 2).copied().unwrap_or(0.0)
        })
    }

    /// A step of both backends has shown them.
    pub(crate) fn set_up(&mut self, setups: [f64; 2]) {
        self.setups.push_back(setups);
        if self.setups.len() > SETUPS {
            self.setups.pop_front();
        }
    }

    /// A step was done.
    pub(crate) fn note(&mut self, measured: StepMeasurement) {
        self.steps += 1;
        self.age += 1;
        let decided = self.decision.as_ref().map(|decision| decision.action);
        self.aside = decided == Some(Action::Explore);
        self.last = measured;
        // The first step has made a plan, and is not told to the controller.
        self.controller.begun();
    }

    /// Whether the controller is to learn from the step that was [noted](Self::note), which took so
    /// long. Not when it made a plan first. Where times are `real`, a controller that has left
    /// things as they were for a while is asked again when steps have made up for what asking
    /// takes.
    pub(crate) fn asks(&mut self, total_ms: f64, failed: bool, real: bool) -> bool {
        if failed {
            return true;
        }
        if self.age == 1 {
            return false;
        }
        self.debt_ms -= OWN_COST * total_ms;
        let dear = real && self.calm.may_wait() && self.debt_ms > 0.0;
        !dear && !self.calm.is_as_before(total_ms)
    }

    /// Takes the times of a step in, and moves bricks for the next one if that is worth it.
    ///
    /// Too little memory for a new map is not an error: the step has its results, and the old plan
    /// serves on.
    pub(crate) fn learn(&mut self, times: &StepTimes) -> Result<(), Error> {
        let Some(planned) = &mut self.planned else {
            return Ok(());
        };
        let asked = Instant::now();
        let (layout, plan) = (&planned.layout, &planned.plan);
        let next = self.controller.next(layout, plan, times);
        let decision = next?;
        let pairs = [Backend::Cpu, Backend::Gpu].map(|backend| plan.load(backend).work());
        if times.fault.is_none()
            && let Some(rates) = JobRates::of([times.cpu_ms(), times.gpu_ms()], pairs)
        {
            self.rates.push_back(rates);
            if self.rates.len() > RATES {
                self.rates.pop_front();
            }
        }
        let before = planned.split();
        let moved = trace::moved(plan.cuts(), &decision.cuts);
        let moves = decision.cuts != plan.cuts();
        if moves {
            match planned.cut(&decision) {
                // The step has succeeded; the bricks stay where they are.
                Err(error) if matches!(error.kind(), BalanceErrorKind::Memory(_)) => return Ok(()),
                cut => cut?,
            }
        }
        self.calm.decided(decision.action, moves, times.total_ms());
        self.debt_ms = asked.elapsed().as_secs_f64() * 1e3;
        let policy = self.controller.policy();
        trace::retune(self.job, policy, (before, moved), planned, &decision);
        self.decision = Some(decision);
        Ok(())
    }

    /// Rates of the last steps of both backends, and the pairs of a step. None without such steps,
    /// or where they are so short that fixed costs decide.
    pub(crate) fn rates(&self) -> Option<(JobRates, u64)> {
        let work = self.planned.as_ref()?.layout.bricks().work();
        let median = |of: fn(&JobRates) -> f64| {
            let mut all: Vec<f64> = self.rates.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        (!self.rates.is_empty() && work >= TELLING_PAIRS).then(|| {
            let rates = JobRates {
                cpu: median(|rates| rates.cpu),
                gpu: median(|rates| rates.gpu),
            };
            (rates, work)
        })
    }

    /// The job for the report of the engine.
    pub(crate) fn report(&self) -> SplitReport {
        SplitReport {
            policy: self.controller.policy(),
            steps: self.steps,
            theta: self.planned.as_ref().map_or(0.0, BrickPlan::theta),
            share: self.last.share,
            aside: self.aside,
            backends: self.last.backends(),
            milliseconds: self.last.total_ms,
            planning: self.last.planning_ms,
            reason: (self.decision.as_ref())
                .map_or_else(String::new, |decision| decision.reason.clone()),
        }
    }
}

#[cfg(test)]
mod tests;
