//! Finds the particle that ends a run.
//!
//! It checks all particles after every drift, before the neighbour engine gets the positions, and
//! at the end of every step, in the passes that move or kick them.

use glam::Vec3;

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
        let all = Inspected {
            first: 0,
            position: &fluid.position,
            velocity: &fluid.velocity,
            compression: &fluid.compression,
        };
        let lost = self.inspect_some(all)?;
        Some(self.describe(fluid, lost))
    }

    /// The lost ones among some of the particles.
    pub(crate) fn inspect_some(&self, some: Inspected<'_>) -> Option<Lost> {
        // Without a branch per particle, which is what vectors need; hardly ever is one lost.
        let fine = || {
            let moving = some.position.iter().zip(some.velocity);
            let particles = moving.zip(some.compression);
            particles.map(|((&position, &velocity), &s)| self.is_fine(position, velocity, s))
        };
        let count = fine().map(|fine| usize::from(!fine)).sum();
        if count == 0 {
            return None;
        }
        let first = some.first + fine().position(|fine| !fine)?;
        Some(Lost { first, count })
    }

    /// Whether a particle is in the domain and all its numbers are finite.
    #[inline(always)]
    fn is_fine(&self, position: Vec3, velocity: Vec3, compression: f32) -> bool {
        let Domain { low, high } = self.domain;
        let inside = |x: f32, low: f32, high: f32| (x >= low) & (x <= high) & x.is_finite();
        inside(position.x, low.x, high.x)
            & inside(position.y, low.y, high.y)
            & inside(position.z, low.z, high.z)
            & velocity.x.is_finite()
            & velocity.y.is_finite()
            & velocity.z.is_finite()
            & compression.is_finite()
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

/// Particles that are looked at: consecutive ones.
#[derive(Clone, Copy)]
pub(crate) struct Inspected<'a> {
    /// Index of the first.
    pub(crate) first: usize,
    /// Their positions.
    pub(crate) position: &'a [Vec3],
    /// Their velocities.
    pub(crate) velocity: &'a [Vec3],
    /// Their compressions.
    pub(crate) compression: &'a [f32],
}

/// Particles that were lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    /// Index of the first of them.
    pub(crate) first: usize,
    /// How many they are.
    pub(crate) count: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Particles at rest within the domain, more than a vector of them.
    fn fluid(len: usize) -> Particles {
        Particles {
            position: vec![Vec3::splat(0.5); len],
            velocity: vec![Vec3::ZERO; len],
            compression: vec![0.0; len],
            id: (0..len as u64).collect(),
        }
    }

    fn watch() -> Watch {
        let domain = Domain {
            low: Vec3::ZERO,
            high: Vec3::ONE,
        };
        Watch {
            domain,
            step: 7,
            time: 0.25,
        }
    }

    #[test]
    fn every_number_of_a_particle_is_looked_at() {
        let len = 37;
        assert!(watch().inspect(&fluid(len)).is_none());
        type Change = fn(&mut Particles, usize);
        let changes: [(Change, Loss); 9] = [
            (|f, i| f.position[i].x = f32::NAN, Loss::NotANumber),
            (|f, i| f.position[i].y = f32::INFINITY, Loss::NotANumber),
            (|f, i| f.position[i].z = f32::NAN, Loss::NotANumber),
            (|f, i| f.velocity[i].x = f32::NEG_INFINITY, Loss::NotANumber),
            (|f, i| f.velocity[i].z = f32::NAN, Loss::NotANumber),
            (|f, i| f.compression[i] = f32::NAN, Loss::NotANumber),
            (|f, i| f.position[i].x = -1e-30, Loss::LeftDomain),
            (|f, i| f.position[i].y = 1.000_001, Loss::LeftDomain),
            (|f, i| f.position[i].z = 7.0, Loss::LeftDomain),
        ];
        for (change, reason) in changes {
            for at in [0, 8, len - 1] {
                let mut fluid = fluid(len);
                change(&mut fluid, at);
                let lost = watch().inspect(&fluid).expect("one is lost");
                assert_eq!((lost.id, lost.count), (at as u64, 1));
                assert_eq!(lost.reason, reason);
            }
        }
    }

    #[test]
    fn the_first_lost_particle_is_told_with_the_number_of_all() {
        let mut fluid = fluid(64);
        for at in [9, 20, 41] {
            fluid.position[at].y = 2.0;
        }
        let some = |range: std::ops::Range<usize>| Inspected {
            first: range.start,
            position: &fluid.position[range.clone()],
            velocity: &fluid.velocity[range.clone()],
            compression: &fluid.compression[range],
        };
        let lost = watch().inspect_some(some(10..60)).expect("some are lost");
        assert_eq!((lost.first, lost.count), (20, 2));
        assert!(watch().inspect_some(some(42..64)).is_none());
        let everywhere = Watch {
            domain: Domain::UNBOUNDED,
            ..watch()
        };
        assert!(everywhere.inspect(&fluid).is_none());
    }
}
