//! Which points with radii of their own are sorted into cells together.
//!
//! Cells of the largest radius serve any radii, but a target of small radius then tests far more
//! candidates than it has neighbours. [`CpuBackend::sort_by_radii`] sorts a set into levels
//! ([`Grid::build_levels`]), each with cells for its own largest radius, where a model of the cost
//! says that this pays.
//!
//! # The model
//!
//! Points are counted by halvings of the largest radius, and neighbouring counts are put together
//! as long as that lowers the cost. The cost of a search is the number of candidates that are
//! tested if points fill their bounds evenly, with a little for every candidate that is only looked
//! at, for every row of cells, and for every group of targets and level. It only has to tell a
//! factor of two from none.
//!
//! A few giants among a million points become a level of their own, radii spread over decades some
//! three or four, and radii within a factor of two stay together. Only bounds are known of where
//! points lie, so a cloud of dense clusters is taken to be thinner than it is. Levels are then cut
//! more coarsely than they could be, and the search is slower, never wrong.
//!
//! If the radius of one side decides, cells of large radii may be too large for the small radii of
//! the other side, so cells that hold many points are divided.
//!
//! **Invariant:** levels depend on the radii and the bounds of the points alone, so the order of
//! lists and the bits of sums do not depend on threads or on earlier steps.

use super::rule::RadiusRule;
use crate::pool::CpuBackend;
use nearfield_grid::{Error, Grid, LevelSpec, MAX_LEVELS, Radii, Radius, parallel::PoolLoops};
use rayon::prelude::*;
use std::f64::consts::PI;

/// Halvings of the largest radius that are told apart; smaller radii are those of the last.
const BINS: usize = MAX_LEVELS - 1;

/// Share of the cost that must be saved. Sorting once more takes a tenth of a search.
const WORTH: f64 = 0.75;

/// Candidates that are tested in the time of sorting a point once more. If this number or one of
/// those below is wrong for a machine, searches take longer there, and find the same.
const SORT: f64 = 40.0;

/// Candidates that are tested in the time that a group of targets takes per level.
const GROUP: f64 = 60.0;

/// The same per row of cells.
const ROW: f64 = 8.0;

/// The same per candidate that is only compared with the box of a group of targets.
const LOOK: f64 = 0.5;

/// Share of a cube around a group that its candidates fill once they are pruned.
const PRUNED: f64 = 0.76;

/// Points of a cell from which on it is divided where the other side's radii may be smaller.
const MANY: f64 = 16.0;

/// Points in a cell of the largest radius from which on a set without radii of its own is sorted
/// into smaller cells.
const CROWD: f64 = 128.0;

/// Most cells to a radius.
const MAX_DIVISION: f64 = 64.0;

/// Rows of cells in reach, per point, that a level may have.
///
/// These take 48 bytes a point, as much as the sorted points of all levels. Smaller cells would
/// save tests of candidates, but a radius of thousands of cells has millions of rows, and all of
/// them are made by one thread, before the search begins.
const ROWS_PER_POINT: f64 = 2.0;

/// Rows that a level of few points may have: those of a radius of 200 cells.
///
/// They take 3 MB, and are made in about a millisecond.
const FEW_ROWS: f64 = (1 << 17) as f64;

/// Points of similar radius.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Class {
    /// Their number.
    points: f64,
    /// The largest of their radii.
    radius: f64,
    /// Edge of its cells.
    edge: f64,
}

/// The points in the bounds that they are taken to fill.
struct Room {
    /// Lengths of the bounds.
    extent: [f64; 3],
    /// Axes along which points have images.
    periodic: [bool; 3],
    /// The radius of the lattice.
    largest: f64,
    /// The least edge of cells, below which their rows in reach of that radius would be too many.
    least_edge: f64,
    /// Whether the radii of targets and of sources count.
    counts: [bool; 2],
}

impl Room {
    /// The room of the points of a grid, no narrower than its radius.
    fn of(grid: &Grid, rule: RadiusRule) -> Self {
        let radius = grid.lattice().radius().value_f64();
        let (lengths, extent) = (grid.lattice().domain().lengths(), grid.bounds().extent());
        let extent = [0, 1, 2].map(|axis| {
            let within = lengths[axis].unwrap_or(f64::INFINITY);
            // A cloud flatter than a cell is as dense as if it filled a small one.
            extent[axis].min(within).max(1e-3 * radius)
        });
        let rows = (ROWS_PER_POINT * grid.points().len() as f64).max(FEW_ROWS);
        Self {
            extent,
            least_edge: radius * (PI / rows).sqrt(),
            periodic: lengths.map(|length| length.is_some()),
            largest: radius,
            counts: [rule.needs_targets(), rule.needs_sources()],
        }
    }

    /// Share of the points in a cube of this edge; above 1 where they have images in it.
    fn share(&self, edge: f64) -> f64 {
        let most = |axis: usize| {
            if self.periodic[axis] {
                f64::INFINITY
            } else {
                1.0
            }
        };
        let along = |axis: usize| (edge / self.extent[axis]).min(most(axis));
        [0, 1, 2].map(along).into_iter().product()
    }

    /// As much of a length as lies where there are points, along an axis. Rows beyond are few
    /// enough not to count ([`least_edge`](Self::least_edge)).
    fn within(&self, length: f64, axis: usize) -> f64 {
        if self.periodic[axis] {
            length
        } else {
            length.min(self.extent[axis])
        }
    }

    /// The cost of a search of a set by itself, sorted into `classes`.
    fn cost(&self, classes: &[Class]) -> f64 {
        let of_targets = |a: &Class| {
            let in_group = (a.points * self.share(a.edge)).clamp(1.0, a.points.max(1.0));
            let of_sources = |b: &Class| {
                let radii = [(self.counts[0], a.radius), (self.counts[1], b.radius)];
                let reach = radii.map(|(counts, radius)| if counts { radius } else { 0.0 });
                let around = a.edge + 2.0 * reach[0].max(reach[1]);
                let rows = [1, 2].map(|axis| self.within(around, axis) / b.edge + 1.0);
                in_group * PRUNED * b.points * self.share(around)
                    + LOOK * b.points * self.share(around + b.edge)
                    + ROW * rows[0] * rows[1]
                    + GROUP
            };
            let of_group: f64 = classes.iter().map(of_sources).sum();
            a.points / in_group * of_group
        };
        classes.iter().map(of_targets).sum()
    }

    /// The class with cells of its radius, or larger ones where these would be mostly empty: a
    /// point of large radius looks at all of them.
    fn whole(&self, class: Class) -> Class {
        self.with_edge(class, class.radius)
    }

    /// The class with its cells divided as far as many points are in each.
    fn divided(&self, class: Class) -> Class {
        let radius = class.radius;
        let in_cell = class.points * self.share(radius);
        self.with_edge(
            class,
            radius / (in_cell / MANY).cbrt().clamp(1.0, MAX_DIVISION),
        )
    }

    /// The class with cells of this edge, or of one that holds a point and whose rows are not too
    /// many.
    fn with_edge(&self, class: Class, edge: f64) -> Class {
        let volume: f64 = self.extent.into_iter().product();
        let edge = edge.max((volume / class.points.max(1.0)).cbrt());
        let edge = edge.max(self.least_edge).min(self.largest);
        Class { edge, ..class }
    }

    /// The classes with neighbours put together as long as that lowers the cost; `cells` makes the
    /// cells of a class. And that cost.
    fn merged(&self, bins: &[Class], cells: &dyn Fn(Class) -> Class) -> (Vec<Class>, f64) {
        let mut classes: Vec<Class> = bins.iter().copied().map(cells).collect();
        let mut cost = self.cost(&classes);
        loop {
            let merged = (1..classes.len()).map(|at| {
                let mut merged = classes.clone();
                let (small, large) = (merged[at - 1], merged.remove(at));
                merged[at - 1] = cells(Class {
                    points: small.points + large.points,
                    ..large
                });
                (self.cost(&merged), merged)
            });
            let best = merged.min_by(|(a, _), (b, _)| a.total_cmp(b));
            match best {
                Some((lower, merged)) if lower <= cost => (cost, classes) = (lower, merged),
                _ => return (classes, cost),
            }
        }
    }
}

/// The halvings that a radius is below the largest: its bin.
fn bin_of(radius: f64, largest: f64) -> usize {
    // Radii were checked: the quotient is a normal number of at least 1.
    let exponent = (largest / radius).to_bits() >> 52;
    (exponent.saturating_sub(1023) as usize).min(BINS - 1)
}

/// Points of every bin that has some, by ascending radius.
fn binned<T: Copy + Into<f64> + Sync>(radii: &[T], largest: f64) -> Vec<Class> {
    let count = |radii: &[T]| {
        let mut bins = [(0usize, 0.0f64); BINS];
        for &radius in radii {
            let radius = radius.into();
            let (count, most) = &mut bins[bin_of(radius, largest)];
            (*count, *most) = (*count + 1, most.max(radius));
        }
        bins
    };
    let both = |a: [(usize, f64); BINS], b: [(usize, f64); BINS]| {
        std::array::from_fn(|bin| (a[bin].0 + b[bin].0, a[bin].1.max(b[bin].1)))
    };
    let bins = (radii.par_chunks(1 << 12).map(count)).combined(|| [(0, 0.0); BINS], both);
    // Smaller radii than the last bin's share its cells.
    let least = largest * 0.5f64.powi(BINS as i32);
    let class = |(points, radius): (usize, f64)| Class {
        points: points as f64,
        radius: radius.max(least),
        edge: 0.0,
    };
    let some = bins.into_iter().rev().filter(|(points, _)| *points > 0);
    some.map(class).collect()
}

/// The levels that a set is to be sorted into, by ascending radius; none where the cells of the
/// lattice serve as well. `radii` are those of its points, if they have any.
fn levels_for(grid: &Grid, radii: Option<Radii<'_>>, rule: RadiusRule) -> Vec<Class> {
    let room = Room::of(grid, rule);
    let plain = Class {
        points: grid.points().len() as f64,
        radius: grid.lattice().radius().value_f64(),
        edge: grid.lattice().radius().value_f64(),
    };
    let Some(radii) = radii else {
        // Only the radii of other sets count, and these may be small.
        let crowded = plain.points * room.share(plain.radius) > CROWD;
        return if crowded && !rule.is_symmetric() {
            vec![room.divided(plain)]
        } else {
            Vec::new()
        };
    };
    let bins = match radii {
        Radii::Single(radii) => binned(radii, plain.radius),
        Radii::Double(radii) => binned(radii, plain.radius),
    };
    let (mut best, mut cost) = room.merged(&bins, &|class| room.whole(class));
    if !rule.is_symmetric() {
        let divided = room.merged(&bins, &|class| room.divided(class));
        if divided.1 < cost {
            (best, cost) = divided;
        }
    }
    let worth = cost + SORT * plain.points < WORTH * room.cost(&[plain]);
    if worth { best } else { Vec::new() }
}

impl CpuBackend {
    /// Sorts the points of `grid` by their radii into `levels`, in memory that `levels` has, if a
    /// search with `rule` is much faster so; false if not, and the grid itself is to be searched.
    /// `radii` are [checked](Self::check_radii), one per point in the caller's order; None for a
    /// set that has none.
    ///
    /// Searches of either find the same pairs, in another order. Shares of a set that was sorted so
    /// cannot be searched.
    ///
    /// # Errors
    /// [`OutOfMemory`](nearfield_grid::ErrorKind::OutOfMemory).
    pub fn sort_by_radii(
        &self,
        radii: Option<Radii<'_>>,
        rule: RadiusRule,
        grid: &Grid,
        levels: &mut Grid,
    ) -> Result<bool, Error> {
        let (points, largest) = (grid.points().len(), grid.lattice().radius());
        if rule == RadiusRule::Uniform || points == 0 || grid.given() != points {
            return Ok(false);
        }
        // Radii are kept in the precision of their set.
        let precision = largest.precision();
        if radii.is_some_and(|radii| radii.precision() != precision) || !grid.can_have_levels() {
            return Ok(false);
        }
        self.install_for(points, || {
            let classes = levels_for(grid, radii, rule);
            if classes.is_empty() {
                return Ok(false);
            }
            let mut specs = [LevelSpec {
                radius: largest,
                edge: largest,
            }; MAX_LEVELS];
            for (spec, class) in specs.iter_mut().zip(&classes) {
                *spec = LevelSpec {
                    radius: Radius::in_precision(class.radius, precision)?,
                    edge: Radius::in_precision(class.edge, precision)?,
                };
            }
            let (specs, index) = (&specs[..classes.len()], grid.points().index());
            let last = specs.len() as u8 - 1;
            let of = |radius: f64| {
                let level = specs
                    .iter()
                    .position(|spec| radius <= spec.radius.value_f64());
                level.map_or(last, |level| level as u8)
            };
            levels.build_levels(grid, specs, &|slot| match radii {
                None => last,
                Some(Radii::Single(radii)) => of(radii[index[slot] as usize].into()),
                Some(Radii::Double(radii)) => of(radii[index[slot] as usize]),
            })?;
            Ok(true)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfield_grid::{Bounds, Domain, Lattice};
    use nearfield_testkit::conformance::{self, Runner};

    const RULES: [RadiusRule; 3] = [
        RadiusRule::Gather,
        RadiusRule::Scatter,
        RadiusRule::Symmetric,
    ];

    /// A lattice of `side` cubed points a unit apart, in cells of radius `largest`.
    fn cube(side: usize, largest: f32) -> Grid {
        let at = |i: usize| [i % side, i / side % side, i / side / side].map(|x| x as f32);
        let points: Vec<[f32; 3]> = (0..side.pow(3)).map(at).collect();
        let points = (&points).into();
        let bounds = Bounds::of(points, &Domain::OPEN).unwrap();
        let radius = Radius::new(largest).unwrap();
        let lattice = Lattice::new(radius, Domain::OPEN, 1, &bounds).unwrap();
        let mut grid = Grid::new(lattice.clone());
        grid.build(points, bounds, &lattice).unwrap();
        grid
    }

    #[test]
    fn one_large_radius_becomes_a_level_and_equal_ones_none() {
        let grid = cube(24, 40.0);
        let mut radii = vec![2.0f32; grid.points().len()];
        radii[7] = 40.0;
        for rule in RULES {
            let levels = levels_for(&grid, Some((&radii).into()), rule);
            assert_eq!(levels.len(), 2, "{rule}: {levels:?}");
            assert_eq!((levels[0].radius, levels[1].radius), (2.0, 40.0));
            assert_eq!(levels[1].points, 1.0);
        }
        let equal = cube(12, 2.0);
        let radii = vec![2.0f32; equal.points().len()];
        for rule in RULES {
            assert_eq!(levels_for(&equal, Some((&radii).into()), rule), []);
            assert_eq!(levels_for(&equal, None, rule), []);
        }
        // Below what the engine allows, cells are those of the points.
        let levels = levels_for(
            &grid,
            Some((&vec![2.0f32; grid.points().len()]).into()),
            RadiusRule::Symmetric,
        );
        assert_eq!(levels.len(), 1);
        assert!(levels_for(&grid, None, RadiusRule::Gather)[0].edge < 5.0);
    }

    #[test]
    fn a_giant_far_larger_than_the_cloud_has_no_more_rows_than_a_few_megabytes_hold() {
        let grid = cube(20, 40_000.0);
        let mut radii = vec![0.1f32; grid.points().len()];
        radii[7] = 40_000.0;
        for rule in RULES {
            for level in levels_for(&grid, Some((&radii).into()), rule) {
                let rows = PI * (40_000.0 / level.edge).powi(2);
                assert!(rows <= 1.01 * FEW_ROWS, "{rule}: {level:?}");
            }
        }
    }

    /// The conformance cases with a few giants are sorted into levels, or they would test nothing.
    #[test]
    fn the_giants_of_the_conformance_cases_become_levels() {
        let mut found = 0;
        let runner = Runner::new(conformance::Level::Quick);
        for case in runner
            .cases()
            .filter(|case| case.name.contains("a hundred times"))
        {
            let (points, radii) = (&case.sets[0], &case.radii[0]);
            let domain = match case.vectors {
                Some(vectors) => Domain::from_vectors(vectors).unwrap(),
                None => Domain::new(case.periodic).unwrap(),
            };
            let positions = points.into();
            let bounds = Bounds::of(positions, &domain).unwrap();
            let radius = Radius::new(case.radius).unwrap();
            let lattice = Lattice::new(radius, domain, 1, &bounds).unwrap();
            let mut grid = Grid::new(lattice.clone());
            grid.build(positions, bounds, &lattice).unwrap();
            for rule in RULES {
                let levels = levels_for(&grid, Some(radii.into()), rule);
                assert!(levels.len() > 1, "{}: {levels:?}", case.name);
                found += 1;
            }
        }
        assert!(found > 20, "{found}");
    }

    #[test]
    fn the_giants_of_the_conformance_cases_in_double_become_levels() {
        let (backend, mut found) = (CpuBackend::new(1).unwrap(), 0);
        let runner = Runner::in_double(conformance::Level::Quick);
        for case in runner
            .cases()
            .filter(|case| case.name.contains("a hundred times"))
        {
            let domain = match case.vectors {
                Some(vectors) => Domain::from_vectors(vectors).unwrap(),
                None => Domain::new(case.periodic).unwrap(),
            };
            // The same once more, too far from the origin for levels.
            for (away, levels) in [(0.0, true), (1e7 * case.radius, false)] {
                let moved = |at: &[f64; 3]| at.map(|x| x + away);
                let points: Vec<[f64; 3]> = case.sets[0].iter().map(moved).collect();
                let positions = (&points).into();
                let bounds = Bounds::of(positions, &domain).unwrap();
                let radius = Radius::new_f64(case.radius).unwrap();
                let lattice = Lattice::new(radius, domain, 1, &bounds).unwrap();
                let (mut grid, mut by_radii) = (Grid::new(lattice.clone()), Grid::new(lattice));
                let lattice = grid.lattice().clone();
                grid.build(positions, bounds, &lattice).unwrap();
                let radii = Some((&case.radii[0]).into());
                let sorted =
                    backend.sort_by_radii(radii, RadiusRule::Symmetric, &grid, &mut by_radii);
                assert_eq!(sorted.unwrap(), levels, "{}", case.name);
                assert_eq!(by_radii.has_levels(), levels, "{}", case.name);
                found += 1;
            }
        }
        assert!(found > 20, "{found}");
    }

    #[test]
    fn bins_are_halvings_of_the_largest_radius() {
        let of = |share: f64| bin_of(3.0 * share, 3.0);
        assert_eq!([1.0, 0.51, 0.5, 0.3, 0.25].map(of), [0, 0, 1, 1, 2]);
        assert_eq!(of(1e-6), BINS - 1);
        let bins = binned(&[3.0, 1e-6, 1.0, 1.2], 3.0);
        let found: Vec<(f64, f64)> = bins.iter().map(|bin| (bin.points, bin.radius)).collect();
        assert_eq!(found, [(1.0, 3.0 / 512.0), (2.0, 1.2), (1.0, 3.0)]);
    }
}
