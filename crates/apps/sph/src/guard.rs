//! Finds the particle that ends a run.
//!
//! Looked for after every drift, before the neighbour engine sees the
//! positions, and at the end of every step.

use std::ops::Range;

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
        let lost = self.inspect_some(fluid, 0..fluid.len())?;
        Some(self.describe(fluid, lost))
    }

    /// The lost ones among some of the particles.
    pub(crate) fn inspect_some(&self, fluid: &Particles, some: Range<usize>) -> Option<Lost> {
        let fine = |i: usize| fluid.is_finite(i) && self.domain.contains(fluid.position[i]);
        let mut lost = some.filter(|&i| !fine(i));
        let first = lost.next()?;
        Some(Lost {
            first,
            count: 1 + lost.count(),
        })
    }

    /// The report on lost particles.
    pub(crate) fn describe(&self, fluid: &Particles, Lost { first, count }: Lost) -> LostParticle {
        LostParticle {
            id: fluid.id[first],
            reason: if fluid.is_finite(first) {
                Loss::LeftDomain
            } else {
                Loss::NotANumber
            },
            position: fluid.position[first],
            velocity: fluid.velocity[first],
            count,
            step: self.step,
            time: self.time,
            evidence: None,
        }
    }
}

/// Particles that were lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    /// Index of the first of them.
    pub(crate) first: usize,
    /// How many they are.
    pub(crate) count: usize,
}
