//! From the times of the last step to the thresholds of the next.
//!
//! No clock, device or thread is used here: plans and times go in, cuts and a reason come out. The
//! policies differ in how much they assume.
//!
//! | policy | assumes | goes to |
//! | --- | --- | --- |
//! | [`fixed`](Policy::Fixed) | nothing | the threshold it was given |
//! | [`band`](Policy::Band) | work takes proportional time | a ratio of times inside the band |
//! | [`fraction`](Policy::Fraction) | work takes proportional time | a share in proportion to speed |
//! | [`model`](Policy::Model) | costs per class, subregion and byte | the predicted optimum |
//!
//! # Rules for all of them
//!
//! * The times of the first step are dropped: programs are loaded and memory is touched for the
//!   first time.
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
    Band(Band),
    Model(Box<Model>),
}

impl Controller {
    /// A policy that has learnt nothing yet.
    ///
    /// # Errors
    /// [`ErrorKind::Policy`](crate::ErrorKind::Policy) when its numbers contradict each other.
    pub fn new(policy: Policy) -> Result<Self, Error> {
        policy.check()?;
        let state = match policy {
            Policy::Fixed { theta } => State::Fixed(theta),
            Policy::Fraction => State::Fraction(Fraction::default()),
            Policy::Band { alpha, beta } => State::Band(Band::new(alpha, beta)),
            Policy::Model => State::Model(Box::default()),
        };
        Ok(Self {
            policy,
            state,
            steps: 0,
            lost: false,
            memory: None,
        })
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
            State::Band(_) => band::start(layout),
            State::Model(model) => model.start(layout),
        };
        self.guarded(layout, decision)
    }

    /// The current decision on a new layout. `cuts` are those on the layout `before`, where that is
    /// still known. The CPU backend keeps its share of the work, except with a fixed threshold.
    pub fn on_layout(
        &mut self,
        layout: &Layout,
        before: Option<&Layout>,
        cuts: &[Cut],
    ) -> Vec<Cut> {
        let cuts = match &mut self.state {
            State::Fixed(theta) => layout.cuts(*theta),
            State::Fraction(fraction) => fraction.start(layout).cuts,
            State::Model(model) => {
                model.move_to(layout);
                model.cuts(layout)
            }
            State::Band(_) => match before {
                Some(before) => carried_over(layout, before, cuts),
                None => carried(layout, cuts),
            },
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
        let decision = match times.fault {
            Some(fault) => self.after_fault(layout, plan, fault),
            None if self.lost => self.repeated(layout, plan, LOST_REASON),
            None if self.steps == 1 => {
                self.repeated(layout, plan, "the first step's times are dropped")
            }
            None => {
                let memory = self.memory.map(|(bytes, _)| bytes);
                match &mut self.state {
                    State::Fixed(theta) => {
                        let cuts = layout.cuts(*theta);
                        Decision::new(cuts, Action::Keep, format!("theta is fixed at {theta}"))
                    }
                    State::Fraction(fraction) => fraction.next(layout, plan, times),
                    State::Band(band) => band.next(layout, plan, times),
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

/// Cuts that give the CPU backend the share of every subregion that it had of the corresponding one
/// before.
///
/// Policy `band` keeps a threshold per subregion; on a new layout a subregion inherits the share
/// of the one at the corresponding place.
fn carried_over(layout: &Layout, before: &Layout, cuts: &[Cut]) -> Vec<Cut> {
    let count = layout.subregions().len();
    let old = before.subregions().len().min(cuts.len());
    if old == 0 {
        return carried(layout, cuts);
    }
    (0..count)
        .map(|subregion| {
            let place = (subregion * old / count).min(old - 1);
            let had = before.work_below(place, before.bricks_of(place, cuts[place]));
            let wanted = had as f64 / before.work(place).max(1) as f64;
            let wanted = wanted * layout.work(subregion) as f64;
            let below = |bricks: usize| layout.work_below(subregion, bricks) as f64;
            let mut bricks = 0;
            while bricks < layout.ladder(subregion).len() && below(bricks + 1) <= wanted {
                bricks += 1;
            }
            layout.cut_at(subregion, bricks)
        })
        .collect()
}
