//! From the times of the last step to the thresholds of the next.
//!
//! No clock, device or thread is used here: plans and times go in, cuts and a reason come out. The
//! policies differ in how much they assume.
//!
//! | policy | assumes | goes to |
//! | --- | --- | --- |
//! | [`fixed`](Policy::Fixed) | nothing | the threshold it was given |
//! | [`band`](Policy::Band) | work takes proportional time | a ratio of times inside the band, or a backend alone |
//! | [`fraction`](Policy::Fraction) | work takes proportional time | a share in proportion to speed |
//! | [`model`](Policy::Model) | costs per class, subregion and byte | the predicted optimum |
//!
//! # Rules for all of them
//!
//! * The times of the first step are dropped: programs are loaded and memory is touched for the
//!   first time. A caller that has not told them says so ([`Controller::begun`]).
//! * No policy acts on a single step in which a backend was much slower or faster than before. It
//!   acts when the next step says the same, so a stall costs nothing and a change of speed costs
//!   one step.
//! * Steps that a policy makes to learn cost at most half a per cent of the time of the run, and
//!   some steps' worth at its beginning.
//! * After a fault the GPU gets less, or nothing any more, whatever the policy: after it ran out
//!   of memory at most 0.8 of the bytes for 256 steps, after it was lost nothing.
//!
//! **Invariant:** a decision has one cut per subregion of the layout it was made for.

mod band;
mod budget;
mod costs;
pub(crate) mod decision;
mod fit;
mod fraction;
mod knowledge;
mod model;
pub(crate) mod policy;
mod record;
mod stall;

use crate::{Cut, DeviceFault, Error, Layout, Plan, StepTimes};
use band::Band;
use decision::{Action, Decision, carried};
use fraction::Fraction;
use model::Model;
use policy::Policy;

/// The [reason](Decision::reason) of every decision after the GPU was lost begins so. Stable: the
/// analysis of traces looks for it.
pub const LOST_REASON: &str = "the GPU is lost";

/// Steps after which the GPU may again be given as much as did not fit.
const MEMORY_RETRY: u64 = 256;

/// Least share of either backend in first steps that are guessed.
const MIN_SHARE: f64 = 1.0 / 16.0;

/// A policy and what it has learnt.
///
/// It is a value without references: an engine keeps one per job and pair of sets, and may clone
/// it.
#[derive(Debug, Clone)]
pub struct Controller {
    /// The policy as it was asked for.
    policy: Policy,
    /// Its state.
    state: State,
    /// Steps so far.
    steps: u64,
    /// True until the first step is over.
    cold: bool,
    /// The GPU is gone for good.
    lost: bool,
    /// Bytes that the GPU is known to hold at most, and the step at which that was found.
    memory: Option<(f64, u64)>,
}

/// The state of each policy.
#[derive(Debug, Clone)]
enum State {
    Fixed(f64),
    Fraction(Fraction),
    Band(Box<Band>),
    Model(Box<Model>),
}

impl Controller {
    /// A policy that has learnt nothing yet.
    ///
    /// # Errors
    /// [`ErrorKind::Policy`](crate::ErrorKind::Policy) when its numbers contradict each other.
    pub fn new(policy: Policy) -> Result<Self, Error> {
        Self::beginning(policy, None)
    }

    /// A policy that gives the CPU backend this share of the work in the first steps, as the rates
    /// of earlier runs suggest. A share near to nothing or everything is raised or lowered to a
    /// sixteenth, so that both backends are seen; one that is not a number is ignored, as are all
    /// by [`Policy::Fixed`].
    ///
    /// ```
    /// use nearfield_balance::*;
    /// # let cells = (0..4096i64).map(|n| CellLoad {
    /// #     cell: [n % 16, n / 16 % 16, n / 256],
    /// #     targets: 8,
    /// #     sources: 8,
    /// # });
    /// # let bricks = Bricks::new(cells, &Neighbourhood::cube(1), 2)?;
    /// # let layout = Layout::new(bricks, SUBREGIONS, Traffic::LISTS)?;
    /// let mut controller = Controller::with_share(Policy::Model, 0.5)?;
    /// let plan = Plan::new(&layout, &controller.start(&layout).cuts)?;
    /// assert!((plan.share() - 0.5).abs() < 0.05);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_share(policy: Policy, share: f64) -> Result<Self, Error> {
        let share = share
            .is_finite()
            .then(|| share.clamp(MIN_SHARE, 1.0 - MIN_SHARE));
        Self::beginning(policy, share)
    }

    /// A policy that begins with a share, if one is given.
    ///
    /// # Errors
    /// When the policy's numbers contradict each other.
    fn beginning(policy: Policy, share: Option<f64>) -> Result<Self, Error> {
        policy.check()?;
        let state = match policy {
            Policy::Fixed { theta } => State::Fixed(theta),
            Policy::Fraction => State::Fraction(Fraction::new(share)),
            Policy::Band { alpha, beta } => State::Band(Box::new(Band::new(alpha, beta, share))),
            Policy::Model => State::Model(Box::new(Model::new(share))),
        };
        Ok(Self {
            policy,
            state,
            steps: 0,
            cold: true,
            lost: false,
            memory: None,
        })
    }

    /// The first step was made, and its times will not be told: those of the next one count.
    pub fn begun(&mut self) {
        self.cold = false;
    }

    /// The policy.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Thresholds for the first step, on `layout`.
    ///
    /// Nothing is known yet, so the cuts are chosen to learn from.
    pub fn start(&mut self, layout: &Layout) -> Decision {
        let decision = match &self.state {
            State::Fixed(theta) => {
                let reason = format!("theta is fixed at {theta}");
                Decision::new(layout.cuts(*theta), Action::Start, reason)
            }
            State::Fraction(fraction) => fraction.start(layout),
            State::Band(band) => band.start(layout),
            State::Model(model) => model.start(layout),
        };
        self.guarded(layout, decision)
    }

    /// The current decision on a new layout. The CPU backend keeps its share of the work, except
    /// with a fixed threshold.
    pub fn on_layout(&mut self, layout: &Layout) -> Vec<Cut> {
        let cuts = match &mut self.state {
            State::Fixed(theta) => layout.cuts(*theta),
            State::Fraction(fraction) => fraction.start(layout).cuts,
            State::Model(model) => {
                model.move_to(layout);
                model.cuts(layout)
            }
            State::Band(band) => band.move_to(layout),
        };
        let decision = Decision::new(cuts, Action::Keep, String::new());
        self.guarded(layout, decision).cuts
    }

    /// Thresholds for the next step, on `layout`, from what the last one took.
    ///
    /// # Errors
    /// [`ErrorKind::Times`](crate::ErrorKind::Times) and
    /// [`ErrorKind::Span`](crate::ErrorKind::Span) when `times` do not belong to `plan`; nothing is
    /// learnt then.
    ///
    /// Call it once per step, in order; steps that were not timed may be left out.
    pub fn next(
        &mut self,
        layout: &Layout,
        plan: &Plan,
        times: &StepTimes,
    ) -> Result<Decision, Error> {
        times.check(plan)?;
        self.steps += 1;
        let first = std::mem::take(&mut self.cold);
        let decision = match times.fault {
            Some(fault) => self.after_fault(layout, plan, fault),
            None if self.lost => self.repeated(layout, plan, LOST_REASON),
            None if first => self.repeated(layout, plan, "the first step's times are dropped"),
            None => {
                let memory = self.memory.map(|(bytes, _)| bytes);
                match &mut self.state {
                    State::Fixed(theta) => {
                        let cuts = layout.cuts(*theta);
                        Decision::new(cuts, Action::Keep, format!("theta is fixed at {theta}"))
                    }
                    State::Fraction(fraction) => fraction.next(layout, plan, times),
                    State::Band(band) => band.next(layout, plan, times, memory.is_some()),
                    State::Model(model) => model.next(layout, plan, times, memory),
                }
            }
        };
        if self
            .memory
            .is_some_and(|(_, since)| self.steps > since + MEMORY_RETRY)
        {
            self.memory = None;
        }
        Ok(self.guarded(layout, decision))
    }

    /// Takes note of a fault and repeats the last decision, which is then guarded.
    fn after_fault(&mut self, layout: &Layout, plan: &Plan, fault: DeviceFault) -> Decision {
        let reason = match fault {
            DeviceFault::Lost => {
                self.lost = true;
                format!("{LOST_REASON}: everything goes to the CPU backend")
            }
            DeviceFault::OutOfMemory => {
                let bytes = plan.device_bytes() * 0.8;
                self.memory = Some((bytes, self.steps));
                format!(
                    "the GPU ran out of memory with {:.1} MiB: it gets at most {:.1} MiB now",
                    plan.device_bytes() / 1_048_576.0,
                    bytes / 1_048_576.0
                )
            }
        };
        Decision {
            action: Action::Fault,
            ..self.repeated(layout, plan, &reason)
        }
    }

    /// The last decision of the policy, once more.
    fn repeated(&self, layout: &Layout, plan: &Plan, why: &str) -> Decision {
        let cuts = match &self.state {
            State::Model(model) => model.cuts(layout),
            State::Band(band) => band.cuts(layout),
            _ => carried(layout, plan.cuts()),
        };
        Decision::new(cuts, Action::Keep, why.to_owned())
    }

    /// No more for the GPU than it can take: whole subregions go to the CPU backend, the last ones
    /// first.
    ///
    /// A layout whose cuts would need more memory than the GPU is known to hold loses whole
    /// subregions from the end, until it fits.
    fn guarded(&self, layout: &Layout, mut decision: Decision) -> Decision {
        if self.lost {
            decision.cuts.fill(Cut::ALL);
            return decision;
        }
        let Some((bytes, _)) = self.memory else {
            return decision;
        };
        let fits = |cuts: &[Cut]| Plan::new(layout, cuts).is_ok_and(|p| p.device_bytes() <= bytes);
        let mut kept = decision.cuts.len();
        while kept > 0 && !fits(&decision.cuts) {
            kept -= 1;
            decision.cuts[kept] = Cut::ALL;
        }
        decision
    }
}
