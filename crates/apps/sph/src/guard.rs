//! Finds the particle that ends a run.
//!
//! Looked for after every drift, before the neighbour engine sees the
//! positions, and at the end of every step.

use crate::{Domain, Loss, LostParticle, particles::Particles};

/// Where particles may be, and the step in which they are looked at.
#[derive(Clone, Copy)]
pub(crate) struct Watch {
    pub(crate) domain: Domain,
    pub(crate) step: u64,
    pub(crate) time: f64,
}

impl Watch {
    /// The first particle that is not a number or outside the domain.
    pub(crate) fn inspect(&self, fluid: &Particles) -> Option<LostParticle> {
        let fine = |i: usize| fluid.is_finite(i) && self.domain.contains(fluid.position[i]);
        let mut lost = (0..fluid.len()).filter(|&i| !fine(i));
        let first = lost.next()?;
        Some(LostParticle {
            id: fluid.id[first],
            reason: if fluid.is_finite(first) {
                Loss::LeftDomain
            } else {
                Loss::NotANumber
            },
            position: fluid.position[first],
            velocity: fluid.velocity[first],
            count: 1 + lost.count(),
            step: self.step,
            time: self.time,
            evidence: None,
        })
    }
}
