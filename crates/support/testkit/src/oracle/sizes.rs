//! Few points with radii far above all others, which would make a search for every pair as wide as
//! their own.
//!
//! Pairs whose radius is small are found by a search within the largest such radius, and the few
//! others by testing each. The contract's d² is compared with the same number in both, so no pair
//! is decided otherwise.

use super::{Neighbor, Problem, RadiusRule, Real};
use rayon::prelude::*;

/// Radii are small up to this share of the search radius.
const SMALL: f64 = 1.0 / 8.0;

/// Points with larger radii are few up to one in this many.
const FEW: usize = 20;

impl<T: Real> Problem<'_, T> {
    /// The largest small radius, if few points have larger ones.
    pub(super) fn small_radius(&self) -> Option<T> {
        let radii = match self.radii.rule {
            RadiusRule::Uniform => return None,
            RadiusRule::Gather => [self.radii.targets, &[]],
            RadiusRule::Scatter => [&[], self.radii.sources],
            RadiusRule::Symmetric => [self.radii.targets, self.radii.sources],
        };
        let small = T::round(SMALL * self.radius.to_f64());
        let all = || radii.into_iter().flatten();
        let large = all().filter(|radius| **radius > small).count();
        (FEW * large <= all().count()).then_some(small)
    }

    /// The neighbours of every target, where all but few points have radii up to `small`.
    pub(super) fn neighbors_by_size(&self, small: T) -> Vec<Vec<Neighbor>> {
        let within = Problem {
            radius: small,
            ..*self
        };
        let (mut lists, metric, sources) = (within.swept(), self.metric(), self.sources());
        let lists_of = lists.par_iter_mut().zip(self.targets).enumerate();
        lists_of.for_each(|(target, (list, &at))| {
            let is_large = |source: usize| self.radius_of(target, source) > small;
            list.retain(|near| !is_large(near.index as usize));
            for (index, &source) in (0..).zip(sources) {
                if is_large(index as usize) {
                    metric.images_within(at, source, |image| {
                        let near = Neighbor { index, image };
                        if self.lists_pair(target, near) {
                            list.push(near);
                        }
                    });
                }
            }
            list.sort_unstable();
        });
        lists
    }
}
