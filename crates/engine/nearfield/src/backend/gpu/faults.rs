//! When a GPU that has failed is tried again.
//!
//! A GPU that ran out of memory may have some again soon, because another program ended or sets
//! became smaller; one whose context was destroyed by a kernel's fault never works again in this
//! process. So a fault either steps the GPU aside for a number of jobs, more of them after every
//! fault, or for good.
//!
//! The rest is counted in jobs and not in seconds, so that no result depends on a clock. It doubles
//! from 8 to 1024, because a try that fails costs the time until the failure, often an allocation,
//! and then the whole job on the CPU backend. A try that works does not shorten the next rest: a
//! GPU whose memory another program takes again and again fails again.

/// The warning after a fault, with the fields `error` and `lost`. Traces are searched for it: a
/// test compares it with `nearfield_trace`, which a build without that crate cannot take it from.
pub(super) const GPU_FAILED: &str = "the CPU backend takes over from the GPU";

/// Jobs that the GPU stays away from after its first fault…
const FIRST_REST: u32 = 8;
/// …and after many.
const MAX_REST: u32 = 1024;

/// The faults of a GPU.
#[derive(Debug, Clone, Default)]
pub(crate) struct FaultRecord {
    now: Option<Outage>,
    so_far: u32,
    last: Option<String>,
}

/// The fault that keeps the GPU from working.
#[derive(Debug, Clone)]
struct Outage {
    lost: bool,
    /// Jobs until it is tried again.
    rest: u32,
}

impl FaultRecord {
    /// The GPU has failed; `lost` says that it cannot work again in this process.
    pub(crate) fn note(&mut self, error: String, lost: bool) {
        let rest = FIRST_REST
            .checked_shl(self.so_far)
            .map_or(MAX_REST, |rest| rest.clamp(FIRST_REST, MAX_REST));
        self.so_far = self.so_far.saturating_add(1);
        self.now = Some(Outage { lost, rest });
        self.last = Some(error);
    }

    /// Whether a job may use the GPU; asked once per job, it counts those that may not.
    ///
    /// The call that ends a rest also forgets the fault, so [`reason`](Self::reason) is `None` from
    /// then on; [`last`](Self::last) and [`so_far`](Self::so_far) remain.
    pub(crate) fn may_try(&mut self) -> bool {
        match &mut self.now {
            None => true,
            Some(Outage { lost: true, .. }) => false,
            Some(fault) if fault.rest > 0 => {
                fault.rest -= 1;
                false
            }
            Some(_) => {
                self.now = None;
                true
            }
        }
    }

    /// Whether the GPU does nothing at present.
    pub(crate) fn stand(&self) -> bool {
        self.now.is_some()
    }

    /// Whether the GPU cannot work again in this process.
    pub(crate) fn are_final(&self) -> bool {
        self.now.as_ref().is_some_and(|fault| fault.lost)
    }

    /// How often it has failed.
    pub(crate) fn so_far(&self) -> u32 {
        self.so_far
    }

    /// Text of the last fault.
    pub(crate) fn last(&self) -> Option<&str> {
        self.last.as_deref()
    }

    /// Why the GPU does nothing at present.
    pub(crate) fn reason(&self) -> Option<String> {
        let fault = self.now.as_ref()?;
        let error = self.last.as_deref().unwrap_or_default();
        Some(if fault.lost {
            error.to_owned()
        } else {
            format!("{error}; it is tried again after {} more jobs", fault.rest)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jobs that do without the GPU until it is tried again.
    fn rest(faults: &mut FaultRecord) -> u32 {
        (0..10_000).take_while(|_| !faults.may_try()).count() as u32
    }

    #[test]
    fn a_gpu_without_memory_rests_ever_longer_and_is_tried_again() {
        let mut faults = FaultRecord::default();
        assert!(faults.may_try() && !faults.stand() && faults.reason().is_none());
        for expected in [8, 16, 32, 64, 128, 256, 512, 1024, 1024] {
            faults.note("out of memory".to_owned(), false);
            assert!(faults.stand() && !faults.are_final());
            assert!(faults.reason().unwrap().contains("out of memory"));
            assert_eq!(rest(&mut faults), expected);
            assert!(!faults.stand() && faults.reason().is_none());
            assert_eq!(faults.last(), Some("out of memory"));
        }
        assert_eq!(faults.so_far(), 9);
        faults.so_far = u32::MAX;
        faults.note("once more".to_owned(), false);
        assert_eq!(rest(&mut faults), MAX_REST);
    }

    #[test]
    fn traces_know_the_warning_the_reason_and_the_policies_by_their_texts() {
        use nearfield_balance::{LOST_REASON, Policy};
        use nearfield_trace::model;
        assert_eq!(GPU_FAILED, model::GPU_FAILED);
        assert_eq!(LOST_REASON, model::GPU_LOST);
        assert_eq!(Policy::Model.name(), model::POLICY_MODEL);
        assert_eq!(Policy::Fixed { theta: 1.0 }.name(), model::POLICY_FIXED);
    }

    #[test]
    fn a_gpu_that_is_lost_is_never_tried_again() {
        let mut faults = FaultRecord::default();
        faults.note("illegal address".to_owned(), true);
        assert_eq!(rest(&mut faults), 10_000);
        assert!(faults.are_final());
        assert_eq!(faults.reason().unwrap(), "illegal address");
    }
}
