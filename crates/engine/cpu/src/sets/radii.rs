//! Radii of single points, checked, squared and sorted for the loops.
//!
//! Cells and rows are made so that every pair that any rule lets in is a candidate anyway. Squares
//! are kept in the order of the sorted points and padded as their coordinates are, so the loops
//! load them by the vector. Where one radius is much larger than the others, points are sorted by
//! their radii first ([`CpuBackend::sort_by_radii`]).
//!
//! # In the loops
//!
//! A candidate carries its square into the scratch, and every test compares with the larger of
//! that and the target's. Under the rule "scatter", where only sources count, the target's square
//! is −1, below any square, so one loop serves all rules. Whether candidates carry squares is a
//! constant parameter: a search of one radius is compiled without them.
//!
//! # Checks
//!
//! A radius must be positive, finite and at most the search radius, because cells are made for
//! that; a larger one would lose pairs. All radii are checked in parallel before any is sorted,
//! and the error names the first offender and counts all. A refused call leaves the sorted radii
//! of before.

use super::rule::SetRadii;
use crate::{
    error::{Error, ErrorKind},
    pool::CpuBackend,
};
use nearfield_grid::{Grid, PADDING, Precision, Radius, SortedPoints, parallel::PoolLoops};
use rayon::prelude::*;

/// Points a worker takes at a time at least.
const SHARE: usize = 1 << 12;

impl<T> SetRadii<T> {
    /// Checks that there is a radius for each of `targets` and `sources` points where radii count;
    /// `len` says how many a `T` holds.
    ///
    /// # Errors
    /// [`ErrorKind::RadiiLength`].
    pub(crate) fn check(
        &self,
        targets: usize,
        sources: usize,
        len: impl Fn(&T) -> usize,
    ) -> Result<(), Error> {
        let sides = [(self.targets(), targets), (self.sources(), sources)];
        for (radii, expected) in sides {
            let found = radii.map_or(expected, &len);
            if found != expected {
                return Err(ErrorKind::RadiiLength { found, expected }.into());
            }
        }
        Ok(())
    }
}

/// Squared radii of a point set in the order of its sorted points; written by
/// [`CpuBackend::sort_radii`], and again after every sort of the points.
///
/// Squares, not radii, because the loops compare squares. They are stored in `f32`, in which the
/// contract rounds them; a search in double precision would need squares in `f64` and refuses
/// radii.
#[derive(Debug, Clone, Default)]
pub struct SortedRadii {
    /// [`PADDING`] longer than there are points, as their coordinates are; empty without points.
    squared: Vec<f32>,
}

impl SortedRadii {
    /// Number of points.
    pub fn len(&self) -> usize {
        self.squared.len().saturating_sub(PADDING)
    }

    /// Returns true if there are no points.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// fl(r·r) of every sorted point, and [`PADDING`] zeros.
    pub(crate) fn squared(&self) -> &[f32] {
        &self.squared
    }

    /// Forgets all radii and keeps the memory.
    pub fn clear(&mut self) {
        self.squared.clear();
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        size_of::<f32>() * self.squared.capacity()
    }

    /// Makes room for the radii of `points`.
    fn reserve(&mut self, points: usize) -> Result<(), Error> {
        let room = points.saturating_add(PADDING);
        self.squared
            .try_reserve_exact(room.saturating_sub(self.squared.len()))
            .map_err(|_| {
                Error::from(ErrorKind::OutOfMemory {
                    bytes: room.saturating_mul(size_of::<f32>()),
                    what: "sorted radii",
                })
            })
    }

    /// Squares the radii, one per point, in the order of the points, and pads them with zeros: a
    /// candidate behind the last reaches nothing.
    fn fill(&mut self, radii: &[f32], points: &SortedPoints) {
        points.index()[..points.len()]
            .par_iter()
            .with_min_len(SHARE)
            .map(|&index| {
                let radius = radii[index as usize];
                radius * radius
            })
            .put_into(&mut self.squared);
        self.squared.resize(points.len() + PADDING, 0.0);
    }
}

impl CpuBackend {
    /// Checks `radii`, one per point of `grid` in the caller's order, and brings their squares into
    /// the order of its sorted points, reusing the memory of `sorted`.
    ///
    /// # Errors
    /// What [`check_radii`](Self::check_radii) says of the grid's points and radius,
    /// [`ErrorKind::RadiiInDouble`](crate::ErrorKind::RadiiInDouble) for a grid in double
    /// precision, and [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory); `sorted` is then
    /// unchanged.
    ///
    /// To be called again after every sort of the points.
    pub fn sort_radii(
        &self,
        radii: &[f32],
        grid: &Grid,
        sorted: &mut SortedRadii,
    ) -> Result<(), Error> {
        let points = grid.points();
        if grid.lattice().radius().precision() == Precision::Double {
            return Err(ErrorKind::RadiiInDouble.into());
        }
        self.check_radii(radii, points.len(), grid.lattice().radius())?;
        sorted.reserve(points.len())?;
        self.install_for(radii.len(), || sorted.fill(radii, points));
        Ok(())
    }

    /// Checks that there are as many `radii` as `points`, and that each is finite, positive (at
    /// least [`Radius::MIN`]) and at most `largest`.
    ///
    /// # Errors
    /// [`ErrorKind::RadiiLength`], and [`ErrorKind::PointRadius`] naming the first that cannot be
    /// used.
    pub fn check_radii(&self, radii: &[f32], points: usize, largest: Radius) -> Result<(), Error> {
        if radii.len() != points {
            let (found, expected) = (radii.len(), points);
            return Err(ErrorKind::RadiiLength { found, expected }.into());
        }
        let usable = Radius::MIN..=largest.value();
        let is_bad = |(_, value): &(usize, &f32)| !usable.contains(value);
        let all = || radii.par_iter().with_min_len(SHARE).enumerate();
        self.install_for(points, || {
            let bad = |item: (usize, &f32)| if is_bad(&item) { item.0 } else { usize::MAX };
            let index = all().map(bad).combined(|| usize::MAX, usize::min);
            let Some(&value) = radii.get(index) else {
                return Ok(());
            };
            Err(ErrorKind::PointRadius {
                index,
                value,
                largest: largest.value(),
                count: (all().map(|item| usize::from(is_bad(&item)))).combined(|| 0, |a, b| a + b),
                points,
            }
            .into())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RadiusRule, sets::PairOfSets};
    use nearfield_grid::{Bounds, Domain, Lattice, Positions};

    fn grid(points: &[[f32; 3]]) -> Grid {
        let bounds = Bounds::of(points.into(), &Domain::OPEN).unwrap();
        let radius = Radius::new(2.0).unwrap();
        let lattice = Lattice::new(radius, Domain::OPEN, 1, &bounds).unwrap();
        let mut grid = Grid::new(lattice.clone());
        grid.build(points.into(), bounds, &lattice).unwrap();
        grid
    }

    fn row(len: usize) -> (Vec<[f32; 3]>, Vec<f32>) {
        let at = |i: usize| ((i * 7) % len) as f32;
        let points = (0..len).map(|i| [at(i), 0.0, 0.0]).collect();
        let radii = (0..len).map(|i| 0.1 + at(i) / len as f32).collect();
        (points, radii)
    }

    #[test]
    fn squares_follow_the_sorted_points_and_are_padded() {
        let backend = CpuBackend::new(2).unwrap();
        let mut sorted = SortedRadii::default();
        for len in [20_000, 10, 1] {
            let (points, radii) = row(len);
            let grid = grid(&points);
            backend.sort_radii(&radii, &grid, &mut sorted).unwrap();
            assert_eq!(sorted.len(), len);
            assert_eq!(sorted.squared().len(), len + PADDING);
            for (slot, &index) in grid.points().index()[..len].iter().enumerate() {
                let radius = radii[index as usize];
                assert_eq!(sorted.squared()[slot], radius * radius);
            }
            assert!(sorted.squared()[len..].iter().all(|&square| square == 0.0));
        }
        sorted.clear();
        assert!(sorted.is_empty() && sorted.bytes() >= 4 * 20_000);
    }

    #[test]
    fn radii_that_cannot_be_used_are_named_and_change_nothing() {
        let backend = CpuBackend::new(2).unwrap();
        let (points, mut radii) = row(20_000);
        let grid = grid(&points);
        let mut sorted = SortedRadii::default();
        backend.sort_radii(&radii, &grid, &mut sorted).unwrap();
        let before = sorted.squared().to_vec();
        for bad in [0.0, -1.0, f32::NAN, f32::INFINITY, 2.0f32.next_up(), 1e-20] {
            radii[7] = bad;
            radii[19_000] = bad;
            let error = backend.sort_radii(&radii, &grid, &mut sorted).unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::PointRadius { index: 7, count: 2, value, .. }
                    if value.to_bits() == bad.to_bits()),
                "{error}"
            );
        }
        let error = backend.sort_radii(&radii[..9], &grid, &mut sorted);
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("9 radii") && error.contains("20000 points"),
            "{error}"
        );
        assert_eq!(sorted.squared(), before);
        radii[7] = 2.0;
        radii[19_000] = Radius::MIN;
        backend.sort_radii(&radii, &grid, &mut sorted).unwrap();
    }

    #[test]
    fn a_grid_in_double_precision_takes_no_radii() {
        let backend = CpuBackend::new(1).unwrap();
        let points = [[0.0f64; 3], [0.5, 0.0, 0.0]];
        let points: Positions<'_> = (&points).into();
        let bounds = Bounds::of(points, &Domain::OPEN).unwrap();
        let radius = Radius::new_f64(2.0).unwrap();
        let lattice = Lattice::new(radius, Domain::OPEN, 1, &bounds).unwrap();
        let mut double = Grid::new(lattice.clone());
        double.build(points, bounds, &lattice).unwrap();
        let mut sorted = SortedRadii::default();
        let refused = backend.sort_radii(&[1.0, 1.0], &double, &mut sorted);
        assert!(
            matches!(
                refused.as_ref().map_err(|error| error.kind()),
                Err(ErrorKind::RadiiInDouble)
            ) && sorted.is_empty()
        );

        let single = grid(&[[0.0; 3], [0.5, 0.0, 0.0]]);
        backend
            .sort_radii(&[1.0, 1.0], &single, &mut sorted)
            .unwrap();
        let sets = PairOfSets {
            targets: &double,
            sources: &double,
            same_set: true,
            radii: SetRadii::Gather { targets: &sorted },
            filter: Default::default(),
            share: None,
        };
        let refused = backend.count(sets, &mut [0; 2]);
        assert!(matches!(
            refused.as_ref().map_err(|error| error.kind()),
            Err(ErrorKind::RadiiInDouble)
        ));
    }

    #[test]
    fn a_rule_asks_for_the_radii_that_count_and_no_others() {
        use RadiusRule::*;
        for (rule, targets, sources) in [
            (Uniform, false, false),
            (Gather, true, false),
            (Scatter, false, true),
            (Symmetric, true, true),
        ] {
            let given = |counts: bool, value| {
                if counts {
                    Ok(value)
                } else {
                    Err("not asked for")
                }
            };
            let radii = rule
                .choose(|| given(targets, 1), || given(sources, 2))
                .unwrap();
            assert_eq!(radii.rule(), rule);
            assert_eq!(radii.targets().copied(), targets.then_some(1));
            assert_eq!(radii.sources().copied(), sources.then_some(2));
            assert_eq!(rule.is_symmetric(), targets == sources);
        }
    }
}
