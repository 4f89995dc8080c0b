//! Whether cells are made for all radii of single points, or for the bulk of them.
//!
//! In cells of the largest radius a target of small radius tests far more candidates than it has
//! neighbours. Where few points have a far larger radius than the others, a GPU sorts points into
//! cells for the others and compares the few with every point (`kernels/cuda/wide.cuh`).
//!
//! Points are counted by halvings of the largest radius. Of the radii that leave few enough points
//! above them, that is taken for which a model finds the least cost. The cost is the number of
//! candidates that are tested if points fill their bounds evenly. All sets of an engine share their
//! cells, so the model sees the points of all of them as one set.
//!
//! # What is lost at worst
//!
//! Cells are smaller along every axis or not made, so a walk tests no more candidates than in cells
//! of the largest radius. What comes on top are the comparisons with the few. They may be at most a
//! [tenth](MAX_APART) of the candidates in cells of the largest radius, and those are counted low:
//! a set whose points crowd has more of them than one whose points lie evenly.
//!
//! **Invariant:** the choice depends on radii and bounds alone, not on times.

use super::cells::Occupancy;
use crate::balance::Strategy;
use nearfield_cpu::CpuBackend;
use nearfield_gpu::{MAX_WIDE_POINTS, RADIUS_CLASSES, RadiusCounts};
use nearfield_grid::{Bounds, Domain, parallel::PoolLoops};
use rayon::prelude::*;

/// Share of the cost in cells of the largest radius from which other cells are not made.
const WORTH: f64 = 0.6;

/// The same where there are such cells already, and how many times the least cost they may have.
const KEPT: f64 = 0.8;
const KEPT_TIMES: f64 = 1.25;

/// Share of the candidates in cells of the largest radius that comparisons with the few may be.
const MAX_APART: f64 = 0.1;

/// Share of a cube around a target's cells that its candidates fill: rows are cut to chords.
const PRUNED: f64 = 0.6;

/// Times that a target is compared with sources of larger radius: lists are counted and written.
const TIMES: f64 = 2.0;

/// Candidates that a device tests for all targets while one block tests one for a wide target, as
/// often as its list needs. A block runs on one of more than a hundred multiprocessors.
const BLOCK: f64 = 256.0;

/// Wide targets that have a block each at a time.
const BLOCKS: usize = 128;

/// Candidates that a device tests while it starts the kernels that find the few and compare them.
const START: f64 = 1e7;

/// Cells per point that a table for the smaller radii may have.
const MAX_CELLS: f64 = 4.0;

/// Numbers of points of similar radius, by halvings of the largest, and the largest of each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RadiusClasses {
    /// Points of every class.
    points: [usize; RADIUS_CLASSES],
    /// The largest radius of every class.
    largest: [f32; RADIUS_CLASSES],
}

impl RadiusClasses {
    pub(crate) const NONE: Self = Self {
        points: [0; RADIUS_CLASSES],
        largest: [0.0; RADIUS_CLASSES],
    };

    /// Counts radii, none above `most`.
    pub(crate) fn of(radii: &[f32], most: f32, cpu: &CpuBackend) -> Self {
        let count = |radii: &[f32]| {
            let mut classes = Self::NONE;
            for &radius in radii {
                // Radii were checked: the quotient is a normal number of at least 1.
                let exponent = (most / radius).to_bits() >> 23;
                let class = (exponent.saturating_sub(127) as usize).min(RADIUS_CLASSES - 1);
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

    /// Points of each class that has some, and its largest radius.
    fn each(&self) -> impl Iterator<Item = (usize, f32)> {
        let classes = self.points.into_iter().zip(self.largest);
        classes.filter(|&(points, _)| points > 0)
    }

    /// Points in classes whose largest radius is above this one: no fewer have larger radii.
    fn above(&self, radius: f32) -> usize {
        let above = self.each().filter(|&(_, largest)| largest > radius);
        above.map(|(points, _)| points).sum()
    }
}

impl From<RadiusCounts> for RadiusClasses {
    fn from(counts: RadiusCounts) -> Self {
        Self {
            points: counts.points.map(|points| points as usize),
            largest: counts.largest,
        }
    }
}

/// The points of an engine, as far as the model knows them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BulkModel {
    /// Radii of the points that have some of their own.
    radii: RadiusClasses,
    /// Whether radii of targets count, and those of sources.
    counts: [bool; 2],
    /// Of all sets that search.
    points: usize,
    /// Lengths of the bounds of all points, at most those of a periodic box.
    extent: [f64; 3],
}

/// Candidates that are tested.
#[derive(Debug, Clone, Copy)]
struct Cost {
    /// In cells.
    walked: f64,
    /// One by one, for wide points.
    apart: f64,
}

impl BulkModel {
    /// The model of so many points in these bounds; `radii` are of those that have some.
    pub(crate) fn new(
        radii: RadiusClasses,
        counts: [bool; 2],
        points: usize,
        (bounds, domain): (&Bounds, &Domain),
    ) -> Self {
        let (extent, lengths) = (bounds.extent(), domain.lengths());
        let within = |axis: usize| extent[axis].min(lengths[axis].unwrap_or(f64::INFINITY));
        Self {
            radii,
            counts,
            points,
            extent: [0, 1, 2].map(within),
        }
    }

    /// The radius that cells are to be made for, if not for the largest. If there are cells for the
    /// radius `present` they stay while they are about as good.
    pub(crate) fn choose(&self, largest: f32, present: Option<f32>) -> Option<f32> {
        let (all, edges) = (self.cost(largest)?.walked, self.edges(largest));
        let smaller = |radius| (0..3).all(|axis| self.edges(radius)[axis] <= edges[axis]);
        let cost = |radius: f32, worth: f64| {
            let cost = self
                .cost(radius)
                .filter(|_| radius < largest && smaller(radius))?;
            let total = cost.walked + cost.apart;
            (cost.apart <= MAX_APART * all && total <= worth * all).then_some(total)
        };
        let radii = self.radii.each().map(|(_, radius)| self.affordable(radius));
        let costs = radii.filter_map(|radius| Some((cost(radius, WORTH)?, radius)));
        let best = costs.min_by(|(a, _), (b, _)| a.total_cmp(b));
        if let Some(present) = present {
            let least = best.map_or(all, |(cost, _)| cost);
            if cost(present, KEPT).is_some_and(|cost| cost <= KEPT_TIMES * least) {
                return Some(present);
            }
        }
        best.map(|(_, radius)| radius)
    }

    /// The least radius of cells for points up to `radius`: whose table is small enough, and of few
    /// bits, so that radii may change a little without other cells.
    fn affordable(&self, radius: f32) -> f32 {
        let cells = |radius: f32| Occupancy::new(self.points, self.extent, [radius.into(); 3]);
        let mut affordable = radius;
        while cells(affordable).cells_per_point() > MAX_CELLS && affordable < f32::MAX / 2.0 {
            affordable *= 1.25;
        }
        const DROPPED: u32 = (1 << 17) - 1;
        f32::from_bits((affordable.to_bits() + DROPPED) & !DROPPED)
    }

    /// Edges of the cells for a radius.
    fn edges(&self, radius: f32) -> [f64; 3] {
        let radius = f64::from(radius);
        let cells = Occupancy::new(self.points, self.extent, [radius; 3]).cells(Strategy::Flat);
        let across = radius / f64::from(cells.per_radius);
        [across / f64::from(cells.along_x), across, across]
    }

    /// Candidates that are tested with cells for this radius; `None` if too many points have a
    /// larger one.
    fn cost(&self, radius: f32) -> Option<Cost> {
        let wide = self.radii.above(radius);
        if wide > MAX_WIDE_POINTS {
            return None;
        }
        let [of_targets, of_sources] = self.counts;
        let points = self.points as f64;
        let edges = self.edges(radius);
        // Candidates of a target that reaches so far.
        let around = |reach: f64| {
            let share = |axis: usize| ((2.0 * reach + edges[axis]) / self.extent[axis]).min(1.0);
            PRUNED * points * [0, 1, 2].map(share).into_iter().product::<f64>()
        };
        let reach = |own: f32| f64::from(if of_sources { radius } else { own.min(radius) });
        let searching = (self.radii.each()).filter(|&(_, own)| !of_targets || own <= radius);
        let own: f64 = searching
            .map(|(points, own)| points as f64 * around(reach(own)))
            .sum();
        // Points without radii of their own are targets where these do not count.
        let others = self.points - self.radii.points.iter().sum::<usize>();
        let walked = own
            + if of_targets {
                0.0
            } else {
                others as f64 * around(radius.into())
            };
        if wide == 0 {
            return Some(Cost { walked, apart: 0.0 });
        }
        let rounds = wide.div_ceil(BLOCKS) as f64;
        let targets = if of_targets { rounds * BLOCK } else { 0.0 };
        let sources = if of_sources { TIMES * wide as f64 } else { 0.0 };
        let apart = START + points * (targets + sources);
        Some(Cost { walked, apart })
    }
}

/// How large the radii of a set are, counted when they have changed.
#[derive(Debug, Default)]
pub(super) struct CountedRadii {
    /// The stamp of the radii, and the largest that there may be.
    of: Option<(u64, f32)>,
    classes: Option<RadiusClasses>,
}

impl CountedRadii {
    /// Counts radii up to `largest`, unless those with this stamp have been counted.
    pub(super) fn count(
        &mut self,
        radii: &[f32],
        stamp: u64,
        largest: f32,
        cpu: &CpuBackend,
    ) -> RadiusClasses {
        let of = Some((stamp, largest));
        match self.classes.filter(|_| self.of == of) {
            Some(classes) => classes,
            None => {
                let classes = RadiusClasses::of(radii, largest, cpu);
                (self.of, self.classes) = (of, Some(classes));
                classes
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The choice for so many points a unit apart with these radii, by gather, scatter and
    /// symmetric; `present` are the cells that there are.
    fn chosen(radii: &[(usize, f32)], present: Option<f32>) -> [Option<f32>; 3] {
        let largest = radii
            .iter()
            .fold(0.0, |most: f32, (_, radius)| most.max(*radius));
        let all: Vec<f32> = (radii.iter())
            .flat_map(|&(points, radius)| std::iter::repeat_n(radius, points))
            .collect();
        let classes = RadiusClasses::of(&all, largest, &CpuBackend::new(1).unwrap());
        let side = (all.len() as f64).cbrt();
        let bounds = Bounds {
            min: [0.0; 3],
            max: [side; 3],
        };
        let counts = [[true, false], [false, true], [true, true]];
        counts.map(|counts| {
            let model = BulkModel::new(classes, counts, all.len(), (&bounds, &Domain::OPEN));
            model.choose(largest, present)
        })
    }

    #[test]
    fn a_few_large_radii_are_set_apart() {
        for large in [(1, 200.0), (1, 40.0), (500, 200.0)] {
            let found = chosen(&[(1_000_000, 2.0), large], None);
            assert_eq!(found, [Some(2.0); 3], "{large:?}");
        }
        // Those between the two are few enough as well.
        let some = [(1_000_000, 2.0), (30, 40.0), (3, 200.0)];
        assert_eq!(chosen(&some, None), [Some(2.0); 3]);
        // Those of tests on a card.
        for tests in [[(195_112, 1.2), (3, 50.0)], [(195_112, 1.2), (12, 50.0)]] {
            assert!(
                chosen(&tests, None).iter().all(Option::is_some),
                "{tests:?}"
            );
        }
    }

    #[test]
    fn equal_radii_and_many_large_ones_stay_together() {
        for radii in [
            &[(1_000_000, 2.0)][..],
            &[(900_000, 2.0), (100_000, 6.0)],
            &[(1_000_000, 2.0), (1, 3.0)],
            // A thousand points have no need of cells.
            &[(1_000, 2.0), (20, 8.0)],
        ] {
            assert_eq!(chosen(radii, None), [None; 3], "{radii:?}");
        }
    }

    #[test]
    fn cells_hold_points_also_where_radii_are_tiny() {
        let [gather, ..] = chosen(&[(1_000_000, 1e-6), (1, 100.0)], None);
        assert!(
            gather.is_some_and(|radius| (0.5..1.0).contains(&radius)),
            "{gather:?}"
        );
    }

    #[test]
    fn cells_stay_while_they_are_about_as_good() {
        let radii = |small| [(1_000_000, small), (1, 200.0)];
        assert_eq!(chosen(&radii(1.97), Some(2.0)), [Some(2.0); 3]);
        assert!(
            chosen(&radii(2.01), Some(2.0))
                .iter()
                .all(|bulk| bulk.unwrap() >= 2.01)
        );
        assert_eq!(chosen(&radii(2.0), Some(60.0)), [Some(2.0); 3]);
    }
}
