//! The neighbours of every point by definition: slow, simple and correct.
//!
//! A source j seen through the image n is a neighbour of target i when
//! d² ≤ r2, all in f32: per axis d = fl(fl(xj − xi) + S) with S = n·L computed
//! in f64 and rounded once (zero on open axes; in a tilted box the sum n₁·v₁ +
//! n₂·v₂ + n₃·v₃ of its vectors in this order), d² = fma(dz, dz, fma(dy, dy,
//! dx·dx)), r2 = fl(r·r). With f64 coordinates and radius the same holds, all
//! in f64. Within one set, only the point itself in its own image is left out;
//! coincident points are in. Coordinates are taken as they are, never wrapped.
//! Where points have radii of their own, r2 is that of the target, of the
//! source, or the larger of the two: see [`Radii`].
//!
//! [`Problem::brute_force`] tests every pair in every image that could matter
//! and is the definition. [`Problem::neighbors`] returns the same from a sweep
//! that passes over pairs whose distance along a single axis already decides,
//! and is usable for a million points. Both return each list sorted.

mod filters;
mod metric;
mod neighbor;
mod real;
mod sizes;
mod sweep;
mod tilted;

use rayon::prelude::*;

pub use filters::Filters;
use metric::Metric;
pub use neighbor::Neighbor;
pub use real::Real;
pub use tilted::Vectors;
pub(crate) use tilted::normals;

/// Which pairs of one set a list holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListKind {
    /// Every pair from both ends.
    Full,
    /// Every pair once: (i, j) with i < j, or i = j in a lexicographically
    /// positive image.
    Half,
}

/// Which points are searched for the targets' neighbours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pairing<'a, T = f32> {
    /// The targets themselves.
    Within(ListKind),
    /// Another set of points; each of them counts.
    With(&'a [[T; 3]]),
}

/// Whose radius decides whether a source is a neighbour of a target: r in
/// r2 = fl(r·r).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RadiusRule {
    /// The search radius, for all points.
    #[default]
    Uniform,
    /// The target's own.
    Gather,
    /// The source's own.
    Scatter,
    /// The larger one of both.
    Symmetric,
}

impl RadiusRule {
    /// The rules by which points have radii of their own.
    pub const OWN: [Self; 3] = [Self::Gather, Self::Scatter, Self::Symmetric];

    /// Returns true if j is a neighbour of i whenever i is one of j.
    pub fn is_symmetric(self) -> bool {
        matches!(self, Self::Uniform | Self::Symmetric)
    }
}

/// A rule and the radii of all points. Radii above the search radius count as
/// the search radius, and under [`RadiusRule::Uniform`] there are none.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Radii<'a, T = f32> {
    /// Whose radius decides.
    pub rule: RadiusRule,
    /// Of the points that search.
    pub targets: &'a [T],
    /// Of the points that are found: the same where they are the targets.
    pub sources: &'a [T],
}

/// One search: points, radius and domain.
///
/// Points with a coordinate that is not finite have no neighbours; a box
/// length that is not positive and finite counts as open; box vectors must be
/// finite and linearly independent. Images more than 2³² boxes away are not considered. There are
/// at most 2³² points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Problem<'a, T = f32> {
    /// The search radius r.
    pub radius: T,
    /// The box length of each periodic axis, `None` for open axes.
    pub periodic: [Option<f64>; 3],
    /// The vectors of a tilted box, which take the place of `periodic`.
    pub vectors: Option<Vectors>,
    /// The points that search.
    pub targets: &'a [[T; 3]],
    /// The points that are found.
    pub pairing: Pairing<'a, T>,
    /// Radii of single points.
    pub radii: Radii<'a, T>,
}

impl<'a, T: Real> Problem<'a, T> {
    /// A search in an open domain.
    pub fn open(radius: T, targets: &'a [[T; 3]], pairing: Pairing<'a, T>) -> Self {
        Self {
            radius,
            periodic: [None; 3],
            vectors: None,
            targets,
            pairing,
            radii: Radii::default(),
        }
    }

    /// The radius that decides whether a source is a neighbour of a target.
    pub fn radius_of(&self, target: usize, source: usize) -> T {
        let Radii {
            rule,
            targets,
            sources,
        } = self.radii;
        match rule {
            RadiusRule::Uniform => self.radius,
            RadiusRule::Gather => targets[target],
            RadiusRule::Scatter => sources[source],
            RadiusRule::Symmetric => {
                if targets[target] > sources[source] {
                    targets[target]
                } else {
                    sources[source]
                }
            }
        }
    }

    /// The neighbours of every target, each list ascending. In a tilted box
    /// every pair is tested.
    pub fn neighbors(&self) -> Vec<Vec<Neighbor>> {
        match self.small_radius() {
            Some(small) => self.neighbors_by_size(small),
            None => self.swept(),
        }
    }

    /// The same by one sweep, as wide as the search radius.
    fn swept(&self) -> Vec<Vec<Neighbor>> {
        match sweep::Sweep::new(self.metric(), self.sources()) {
            Some(sweep) => self.lists(|at, found| sweep.visit(at, found)),
            None => self.brute_force(),
        }
    }

    /// The same as [`Problem::neighbors`] by testing every pair: time grows
    /// with targets × sources.
    pub fn brute_force(&self) -> Vec<Vec<Neighbor>> {
        let (metric, sources) = (self.metric(), self.sources());
        self.lists(|at, found| {
            for (index, &source) in (0..).zip(sources) {
                metric.images_within(at, source, |image| found(Neighbor { index, image }));
            }
        })
    }

    /// The indices alone: per target ascending, one entry per image.
    pub fn index_lists(&self) -> Vec<Vec<u32>> {
        let lists = self.neighbors().into_iter();
        lists
            .map(|list| list.into_iter().map(|neighbor| neighbor.index).collect())
            .collect()
    }

    /// How many neighbours each target has, without storing them.
    pub fn counts(&self) -> Vec<u64> {
        let Some(sweep) = sweep::Sweep::new(self.metric(), self.sources()) else {
            let lists = self.brute_force();
            return lists.iter().map(|list| list.len() as u64).collect();
        };
        let count = |(index, &at): (usize, &[T; 3])| {
            let mut count = 0;
            sweep.visit(at, &mut |neighbor| {
                count += u64::from(self.lists_pair(index, neighbor));
            });
            count
        };
        self.targets.par_iter().enumerate().map(count).collect()
    }

    /// The squared distance from target to source through `image`, as the
    /// contract computes it.
    pub fn distance_squared(&self, target: [T; 3], source: [T; 3], image: [i64; 3]) -> T {
        metric::squared(self.displacement(target, source, image))
    }

    /// The displacement from target to source through `image`, as the contract
    /// computes it.
    pub fn displacement(&self, target: [T; 3], source: [T; 3], image: [i64; 3]) -> [T; 3] {
        self.metric().displacement(target, source, image)
    }

    /// The image through which `source` is nearest to `target`.
    pub fn nearest_image(&self, target: [T; 3], source: [T; 3]) -> [i64; 3] {
        self.metric().nearest_image(target, source)
    }

    /// The points that are found.
    pub fn sources(&self) -> &'a [[T; 3]] {
        match self.pairing {
            Pairing::Within(_) => self.targets,
            Pairing::With(sources) => sources,
        }
    }

    fn metric(&self) -> Metric<T> {
        Metric::new(self.radius, self.periodic, self.vectors)
    }

    /// Runs `visit` for every target and collects its list.
    fn lists(&self, visit: impl Fn([T; 3], &mut dyn FnMut(Neighbor)) + Sync) -> Vec<Vec<Neighbor>> {
        let list = |(index, &at): (usize, &[T; 3])| {
            let mut list = Vec::new();
            visit(at, &mut |neighbor| {
                if self.lists_pair(index, neighbor) {
                    list.push(neighbor);
                }
            });
            list.sort_unstable();
            list
        };
        self.targets.par_iter().enumerate().map(list).collect()
    }

    /// Whether a source within the search radius of target `index` is in its
    /// list.
    fn lists_pair(&self, index: usize, neighbor: Neighbor) -> bool {
        let place = (neighbor.index as usize, neighbor.image);
        if self.radii.rule != RadiusRule::Uniform {
            let radius = self.radius_of(index, place.0);
            let [target, source] = [self.targets[index], self.sources()[place.0]];
            if self.distance_squared(target, source, neighbor.image) > radius * radius {
                return false;
            }
        }
        match self.pairing {
            Pairing::Within(ListKind::Full) => place != (index, [0; 3]),
            Pairing::Within(ListKind::Half) => place > (index, [0; 3]),
            Pairing::With(_) => true,
        }
    }
}
