//! Whether cells are made for all radii of single points, or for the bulk of them.
//!
//! In cells of the largest radius a target of small radius tests far more candidates than it has
//! neighbours. Where few points have a far larger radius than the others, a GPU sorts points into
//! cells for the others and compares the few with every point (`kernels/cuda/wide.cuh`).
//!
//! Points are counted by halvings of the largest radius. Of the radii that leave few enough points
//! above them, that is taken for which a model finds the least cost, if that is much less than with
//! cells of the largest radius. The cost is the number of candidates that are tested if points fill
//! their bounds evenly. It only has to tell a factor of two from none.
//!
//! **Invariant:** the choice depends on radii and bounds alone, not on times.

use nearfield_cpu::CpuBackend;
use nearfield_gpu::MAX_WIDE_POINTS;
use nearfield_grid::parallel::PoolLoops;
use rayon::prelude::*;

/// Halvings of the largest radius that are told apart; smaller radii are those of the last.
const HALVINGS: usize = 12;

/// Share of the cost above which nothing is gained for sure.
const WORTH: f64 = 0.6;

/// Share of a cube around a target's cells that its candidates fill: rows are cut to chords.
const PRUNED: f64 = 0.6;

/// Candidates that a device tests for all targets while one block tests one for a wide target. A
/// block runs on one of more than a hundred multiprocessors.
const BLOCK: f64 = 256.0;

/// Wide targets that have a block each at a time.
const BLOCKS: usize = 128;

/// Numbers of points of similar radius, by halvings of the largest, and the largest of each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RadiusClasses {
    points: [usize; HALVINGS],
    largest: [f32; HALVINGS],
}

impl RadiusClasses {
    pub(crate) const NONE: Self = Self {
        points: [0; HALVINGS],
        largest: [0.0; HALVINGS],
    };

    /// Counts radii, none above `most`.
    pub(crate) fn of(radii: &[f32], most: f32, cpu: &CpuBackend) -> Self {
        let count = |radii: &[f32]| {
            let mut classes = Self::NONE;
            for &radius in radii {
                // Radii were checked: the quotient is a normal number of at least 1.
                let exponent = (most / radius).to_bits() >> 23;
                let class = (exponent.saturating_sub(127) as usize).min(HALVINGS - 1);
                classes.points[class] += 1;
                classes.largest[class] = classes.largest[class].max(radius);
            }
            classes
        };
        cpu.install_for(radii.len(), || {
            (radii.par_chunks(1 << 12).map(count)).combined(|| Self::NONE, Self::and)
        })
    }

    /// The points of both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            points: std::array::from_fn(|class| self.points[class] + other.points[class]),
            largest: std::array::from_fn(|class| self.largest[class].max(other.largest[class])),
        }
    }

    /// Points whose radius is above this one, which is the largest of a class.
    fn above(&self, radius: f32) -> usize {
        let classes = self.points.iter().zip(&self.largest);
        let above = classes.filter(|(_, largest)| **largest > radius);
        above.map(|(points, _)| points).sum()
    }
}

/// Two sets, as far as the model knows them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BulkModel {
    /// Radii of the targets and of the sources, where these count.
    pub(crate) radii: [Option<RadiusClasses>; 2],
    /// Points of either set.
    pub(crate) points: [usize; 2],
    /// Lengths of the bounds of all points, and whether each axis repeats.
    pub(crate) extent: [f64; 3],
    pub(crate) periodic: [bool; 3],
}

impl BulkModel {
    /// The radius that cells are to be made for, if not for the largest.
    pub(crate) fn choose(&self, largest: f32) -> Option<f32> {
        let all = self.cost(largest)?;
        let some = self
            .radii
            .iter()
            .flatten()
            .flat_map(|classes| classes.largest);
        let smaller = some.filter(|&radius| radius > 0.0 && radius < largest);
        let costs = smaller.filter_map(|radius| Some((self.cost(radius)?, radius)));
        let best = costs.min_by(|(a, _), (b, _)| a.total_cmp(b));
        best.filter(|(cost, _)| *cost < WORTH * all)
            .map(|(_, radius)| radius)
    }

    /// Candidates that are tested with cells for this radius; `None` if too many are larger.
    fn cost(&self, radius: f32) -> Option<f64> {
        let [wide_targets, wide_sources] = self
            .radii
            .map(|classes| classes.map_or(0, |classes| classes.above(radius)));
        if wide_targets.max(wide_sources) > MAX_WIDE_POINTS {
            return None;
        }
        let [targets, sources] = self.points.map(|points| points as f64);
        let along = |axis: usize| {
            let share = 3.0 * f64::from(radius) / self.extent[axis].max(f64::from(radius));
            if self.periodic[axis] {
                share
            } else {
                share.min(1.0)
            }
        };
        let share: f64 = [0, 1, 2].map(along).into_iter().product();
        // A pair with a wide point is looked at in this many images.
        let repeating = self.periodic.iter().filter(|&&repeats| repeats).count();
        let images = 3.0f64.powi(repeating as i32);
        let rounds = wide_targets.div_ceil(BLOCKS) as f64;
        let apart = targets * wide_sources as f64 + rounds * BLOCK * sources;
        Some(targets * sources * PRUNED * share + images * apart)
    }
}

/// The choice for the radii that there were last.
#[derive(Debug, Default)]
pub(super) struct CountedRadii {
    /// The stamps of the radii, and the largest that there may be.
    of: Option<([u64; 2], f32)>,
    classes: [Option<RadiusClasses>; 2],
}

impl CountedRadii {
    /// Counts the radii of two sets, where they count; those of a set that is both once.
    pub(super) fn count(
        &mut self,
        radii: [Option<&[f32]>; 2],
        stamps: [u64; 2],
        (largest, one_set): (f32, bool),
        cpu: &CpuBackend,
    ) -> [Option<RadiusClasses>; 2] {
        let of = Some((stamps, largest));
        if self.of != of {
            let count = |radii: &[f32]| RadiusClasses::of(radii, largest, cpu);
            let targets = radii[0].map(count);
            let sources = match radii[1] {
                Some(_) if one_set && targets.is_some() => targets,
                sources => sources.map(count),
            };
            (self.of, self.classes) = (of, [targets, sources]);
        }
        self.classes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The choice for so many points a unit apart with these radii, by gather, scatter and
    /// symmetric.
    fn chosen(radii: &[(usize, f32)], periodic: bool) -> [Option<f32>; 3] {
        let largest = radii
            .iter()
            .fold(0.0, |most: f32, (_, radius)| most.max(*radius));
        let all: Vec<f32> = (radii.iter())
            .flat_map(|&(points, radius)| std::iter::repeat_n(radius, points))
            .collect();
        let classes = RadiusClasses::of(&all, largest, &CpuBackend::new(1).unwrap());
        let counts = [[true, false], [false, true], [true, true]];
        counts.map(|counts| {
            let model = BulkModel {
                radii: counts.map(|counts| counts.then_some(classes)),
                points: [all.len(); 2],
                extent: [(all.len() as f64).cbrt(); 3],
                periodic: [periodic; 3],
            };
            model.choose(largest)
        })
    }

    #[test]
    fn a_few_large_radii_are_set_apart() {
        let one = [(1_000_000, 2.0), (1, 200.0)];
        assert_eq!(chosen(&one, false), [Some(2.0); 3]);
        assert_eq!(chosen(&[(1_000_000, 2.0), (1, 40.0)], true), [Some(2.0); 3]);
        // Those between the two are few enough as well.
        let some = [(1_000_000, 2.0), (30, 40.0), (3, 200.0)];
        assert_eq!(chosen(&some, false)[0], Some(2.0));
    }

    #[test]
    fn equal_radii_and_many_large_ones_stay_together() {
        assert_eq!(chosen(&[(1_000_000, 2.0)], false), [None; 3]);
        assert_eq!(chosen(&[(900_000, 2.0), (100_000, 6.0)], false), [None; 3]);
        assert_eq!(chosen(&[(1_000_000, 2.0), (1, 3.0)], false), [None; 3]);
        // A thousand points have no need of cells.
        assert_eq!(chosen(&[(1_000, 2.0), (20, 8.0)], false), [None; 3]);
    }
}
