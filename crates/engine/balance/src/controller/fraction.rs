//! Policy `fraction`: a share of the work in every subregion, in proportion to the backends'
//! speeds.
//!
//! The share of the CPU backend is gpu / (cpu + gpu), from the median milliseconds per pair of
//! either in the last five steps. It takes the first bricks of every subregion in brick order,
//! whatever their occupancy. This is the rule of most heterogeneous codes, kept for comparison: it
//! cannot know that a GPU is slow on sparse bricks, so it divides a mixed cloud worse than a
//! threshold does.
//!
//! # Settling
//!
//! From half and half it reaches the share that the speeds ask for in one move, once both backends
//! have been seen, and then follows the medians in steps of at least one percent.
//!
//! **Invariant:** the shares of all subregions add up to the share of the whole, up to half a
//! brick.

use super::{
    decision::{Action, Decision},
    stall::Speeds,
};
use crate::{Backend, Cut, Layout, Plan, StepTimes};

/// A change of the share below this is not worth a new plan.
const MIN_CHANGE: f64 = 0.01;

/// The current share and the speeds it follows from.
#[derive(Debug, Clone)]
pub(super) struct Fraction {
    /// The CPU backend's share of the work.
    share: f64,
    /// The usual speeds of both backends.
    speeds: Speeds,
}

impl Fraction {
    /// A policy that has learnt nothing. The CPU backend begins with a `share` of the work, or with
    /// half of it.
    pub(super) fn new(share: Option<f64>) -> Self {
        Self {
            share: share.unwrap_or(0.5),
            speeds: Speeds::default(),
        }
    }

    /// The decision before the first step.
    pub(super) fn start(&self, layout: &Layout) -> Decision {
        let reason = format!("{:.3} of the work to the CPU, to learn from", self.share);
        Decision::new(cuts(layout, self.share), Action::Start, reason)
    }

    /// The decision after a step.
    pub(super) fn next(&mut self, layout: &Layout, plan: &Plan, times: &StepTimes) -> Decision {
        let doubt = self.speeds.doubt(plan, times);
        let (cpu, gpu) = (
            self.speeds.ms_per_pair(Backend::Cpu),
            self.speeds.ms_per_pair(Backend::Gpu),
        );
        let mut action = Action::Keep;
        let reason = match (doubt, cpu, gpu) {
            (Some(doubt), ..) => doubt,
            (None, Some(cpu), Some(gpu)) => {
                let (before, share) = (self.share, gpu / (cpu + gpu));
                if (share - before).abs() >= MIN_CHANGE {
                    self.share = share;
                    action = Action::Move;
                }
                format!(
                    "medians of {cpu:.3e} ms per pair on the CPU and {gpu:.3e} on the GPU ask for \
                     a share of {share:.3} on the CPU; it was {before:.3}"
                )
            }
            _ => format!(
                "a backend has not worked yet: CPU {:.3} ms, GPU {:.3} ms",
                times.cpu_ms(),
                times.gpu_ms()
            ),
        };
        Decision::new(cuts(layout, self.share), action, reason)
    }
}

/// Gives the first bricks of every subregion to the CPU backend until it has its share; the excess
/// or lack of one subregion is made up for by the next.
///
/// A brick goes to the CPU backend if more than half of it lies within the share.
fn cuts(layout: &Layout, share: f64) -> Vec<Cut> {
    let all = layout.bricks().as_slice();
    let (mut wanted, mut given) = (0.0, 0.0);
    layout
        .subregions()
        .iter()
        .enumerate()
        .map(|(number, subregion)| {
            wanted += layout.work(number) as f64 * share;
            let mut leading = 0;
            for brick in &all[subregion.bricks.clone()] {
                if brick.targets == 0 {
                    continue;
                }
                if given + brick.work as f64 / 2.0 >= wanted {
                    break;
                }
                given += brick.work as f64;
                leading += 1;
            }
            Cut::Leading(leading)
        })
        .collect()
}
