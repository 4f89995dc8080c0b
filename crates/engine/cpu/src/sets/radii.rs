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
//! # Double precision
//!
//! Coordinates of candidates are proxies there, and what their squared distances are compared with
//! is a bound of the filter: a point's own, made for the radius of the lattice, less what its
//! radius is smaller ([`bound`]). The bound of either point of a pair does, so candidates of
//! scattered radii carry that of the source. What passes is decided by squares in `f64`, which are
//! kept too.
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
use nearfield_grid::{
    DoublePoints, Grid, PADDING, Precision, Radii, Radius, SortedPoints, Value, memory::Shortage,
    memory::make_room, parallel::PoolLoops,
};
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
/// Squares, not radii, because the loops compare squares, rounded in the precision of the points as
/// the contract has it.
#[derive(Debug, Clone, Default)]
pub struct SortedRadii {
    /// [`PADDING`] longer than there are points, as their coordinates are; empty without points. In
    /// double precision bounds of the filter.
    squared: Vec<f32>,
    /// In double precision the squares, one per point.
    exact: Vec<f64>,
    /// In double precision the largest bound; else 0.
    max_bound: f32,
    /// That of the points.
    precision: Precision,
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

    /// What squared distances of sorted coordinates are compared with, and [`PADDING`] zeros:
    /// fl(r·r) of every sorted point, in double precision the bound of the filter.
    pub(crate) fn squared(&self) -> &[f32] {
        &self.squared
    }

    /// fl(r·r) of every sorted point in double precision; `None` in single precision.
    pub(crate) fn exact(&self) -> Option<&[f64]> {
        (self.precision == Precision::Double).then_some(&self.exact[..])
    }

    /// The largest bound of the filter in double precision; 0 in single precision, where no square
    /// is above the lattice's.
    pub(crate) fn max_bound(&self) -> f32 {
        self.max_bound
    }

    /// Forgets all radii and keeps the memory.
    pub fn clear(&mut self) {
        self.squared.clear();
        self.exact.clear();
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        size_of::<f32>() * self.squared.capacity() + size_of::<f64>() * self.exact.capacity()
    }

    /// Makes room for the radii of `points`.
    fn reserve(&mut self, points: usize, precision: Precision) -> Result<(), Shortage> {
        const WHAT: &str = "sorted radii";
        make_room(&mut self.squared, points.saturating_add(PADDING), WHAT)?;
        if precision == Precision::Double {
            make_room(&mut self.exact, points, WHAT)?;
        }
        Ok(())
    }

    /// Squares the radii, one per point, in the order of the points, and pads them with zeros: a
    /// candidate behind the last reaches nothing.
    fn fill<T: Given>(&mut self, radii: &[T], grid: &Grid) {
        let (points, largest) = (grid.points(), grid.lattice().radius());
        (self.precision, self.max_bound) = (largest.precision(), 0.0);
        self.exact.clear();
        match points.double() {
            None => self.square(points, |_, index| {
                let radius = radii[index].single();
                radius * radius
            }),
            Some(double) => {
                self.square_in_double(radii, points);
                self.square(points, |slot, index| {
                    bound(radii[index].double(), double, slot, largest)
                });
                let bounds = self.squared.par_iter().with_min_len(SHARE);
                self.max_bound = bounds.copied().combined(|| 0.0, f32::max);
            }
        }
        self.squared.resize(points.len() + PADDING, 0.0);
    }

    /// Writes what the radius of every sorted point is compared with, by slot and index.
    fn square(&mut self, points: &SortedPoints, of: impl Fn(usize, usize) -> f32 + Sync) {
        points.index()[..points.len()]
            .par_iter()
            .enumerate()
            .with_min_len(SHARE)
            .map(|(slot, &index)| of(slot, index as usize))
            .put_into(&mut self.squared);
    }

    /// Writes the squares in double precision.
    fn square_in_double<T: Given>(&mut self, radii: &[T], points: &SortedPoints) {
        points.index()[..points.len()]
            .par_iter()
            .with_min_len(SHARE)
            .map(|&index| {
                let radius = radii[index as usize].double();
                radius * radius
            })
            .put_into(&mut self.exact);
    }
}

/// A radius as it was given, which a search takes in its own precision.
trait Given: Copy + Into<Value> + Sync {
    /// Rounded once where it was given in `f64`.
    fn single(self) -> f32;

    /// The same number.
    fn double(self) -> f64;
}

impl Given for f32 {
    fn single(self) -> f32 {
        self
    }

    fn double(self) -> f64 {
        self.into()
    }
}

impl Given for f64 {
    fn single(self) -> f32 {
        self as f32
    }

    fn double(self) -> f64 {
        self
    }
}

/// The bound on the squared distance of proxies for a point in `slot` with this radius.
///
/// The filter's bound of the point is at least (R + E)²(1 + 2⁻²⁰) as rounded to `f32`, with the
/// radius R of the lattice and E the errors of the proxies of any pair that the contract finds and
/// the point is part of. These errors are bounded for pairs within R, so they hold for those within
/// its own radius r as well, whose proxies are at most r + E apart. The root of the bound is larger
/// than R + E by a share of 2⁻²¹ less 2⁻²⁵, and what is taken from it, added and squared here in
/// `f64` loses less than 2⁻⁵⁰ of R + E.
fn bound(radius: f64, double: &DoublePoints, slot: usize, largest: Radius) -> f32 {
    let reach = f64::from(double.filter_r2()[slot]).sqrt();
    let own = (reach - largest.value_f64()).max(0.0) + radius;
    (own * own * (1.0 + 2f64.powi(-20))) as f32
}

impl CpuBackend {
    /// Checks `radii`, one per point of `grid` in the caller's order, and brings their squares into
    /// the order of its sorted points, reusing the memory of `sorted`.
    ///
    /// # Errors
    /// What [`check_radii`](Self::check_radii) says of the grid's points and radius, and
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory); `sorted` is then unchanged.
    ///
    /// To be called again after every sort of the points.
    pub fn sort_radii<'a>(
        &self,
        radii: impl Into<Radii<'a>>,
        grid: &Grid,
        sorted: &mut SortedRadii,
    ) -> Result<(), Error> {
        let (points, largest) = (grid.points().len(), grid.lattice().radius());
        let radii = radii.into();
        self.check_radii(radii, points, largest)?;
        sorted.reserve(points, largest.precision())?;
        self.install_for(points, || match radii {
            Radii::Single(radii) => sorted.fill(radii, grid),
            Radii::Double(radii) => sorted.fill(radii, grid),
        });
        Ok(())
    }

    /// Checks that there are as many `radii` as `points`, and that each, in the precision of
    /// `largest`, is finite, positive (at least [`Radius::MIN`]) and at most `largest`.
    ///
    /// # Errors
    /// [`ErrorKind::RadiiLength`], and [`ErrorKind::PointRadius`] naming the first that cannot be
    /// used.
    pub fn check_radii<'a>(
        &self,
        radii: impl Into<Radii<'a>>,
        points: usize,
        largest: Radius,
    ) -> Result<(), Error> {
        let radii = radii.into();
        if radii.len() != points {
            let (found, expected) = (radii.len(), points);
            return Err(ErrorKind::RadiiLength { found, expected }.into());
        }
        self.install_for(points, || match radii {
            Radii::Single(radii) => check_each(radii, largest),
            Radii::Double(radii) => check_each(radii, largest),
        })
    }
}

/// Checks that every radius can be that of a point where `largest` is the largest.
fn check_each<T: Given>(radii: &[T], largest: Radius) -> Result<(), Error> {
    let is_bad = |(_, value): &(usize, &T)| !largest.bounds((**value).into());
    let all = || radii.par_iter().with_min_len(SHARE).enumerate();
    let bad = |item: (usize, &T)| if is_bad(&item) { item.0 } else { usize::MAX };
    let index = all().map(bad).combined(|| usize::MAX, usize::min);
    let Some(&value) = radii.get(index) else {
        return Ok(());
    };
    Err(ErrorKind::PointRadius {
        index,
        value: largest.as_refused(value.into()),
        largest: largest.as_given(),
        count: (all().map(|item| usize::from(is_bad(&item)))).combined(|| 0, |a, b| a + b),
        points: radii.len(),
    }
    .into())
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
                    if value.get().to_bits() == f64::from(bad).to_bits()),
                "{error}"
            );
        }
        // In double precision a tenth in `f32` is more than a tenth, and is printed as such.
        let (points, tenths) = ([[0.0f64; 3]; 2], [0.1f32; 2]);
        let error = backend.sort_radii(&tenths, &in_double(&points, 0.1), &mut sorted);
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("radius 0.10000000149011612, which"),
            "{error}"
        );
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

    fn in_double(points: &[[f64; 3]], radius: f64) -> Grid {
        let points: Positions<'_> = points.into();
        let bounds = Bounds::of(points, &Domain::OPEN).unwrap();
        let radius = Radius::new_f64(radius).unwrap();
        let lattice = Lattice::new(radius, Domain::OPEN, 1, &bounds).unwrap();
        let mut grid = Grid::new(lattice.clone());
        grid.build(points, bounds, &lattice).unwrap();
        grid
    }

    #[test]
    fn radii_in_double_precision_are_squared_in_it_and_bound_the_proxies() {
        let backend = CpuBackend::new(1).unwrap();
        let points = [[0.0f64; 3], [0.5, 0.0, 0.0], [1e9, 0.0, 0.0]];
        let (double, mut sorted) = (in_double(&points, 2.0), SortedRadii::default());
        let given = [0.1f64, 2.0, 0.3];
        backend.sort_radii(&given, &double, &mut sorted).unwrap();
        let exact = sorted.exact().unwrap();
        for (slot, &index) in double.points().index()[..3].iter().enumerate() {
            let radius = given[index as usize];
            assert_eq!(exact[slot], radius * radius);
            let bound = f64::from(sorted.squared()[slot]);
            assert!(bound > exact[slot] && bound <= f64::from(sorted.max_bound()));
            if index < 2 {
                assert!(bound < 1.01 * exact[slot], "{bound}");
            }
        }
        // The same numbers in f32 are not those of f64; widened they are what they were.
        let single = [0.1f32, 2.0, 0.3];
        backend.sort_radii(&single, &double, &mut sorted).unwrap();
        let slot = double.points().index()[..3]
            .iter()
            .position(|&i| i == 0)
            .unwrap();
        assert_eq!(sorted.exact().unwrap()[slot], f64::from(0.1f32).powi(2));
        let above = [0.1, 2.0f64.next_up(), 0.3];
        let error = backend
            .sort_radii(&above, &double, &mut sorted)
            .unwrap_err();
        assert!(error.to_string().contains("2.0000000000000004"), "{error}");
        // A search in f32 rounds them.
        let grid = grid(&[[0.0; 3], [0.5, 0.0, 0.0], [9.0, 0.0, 0.0]]);
        backend.sort_radii(&above, &grid, &mut sorted).unwrap();
        let slot = grid.points().index()[..3]
            .iter()
            .position(|&i| i == 0)
            .unwrap();
        assert_eq!(sorted.squared()[slot], 0.1f32 * 0.1f32);
        assert!(sorted.exact().is_none() && sorted.max_bound() == 0.0);
    }

    #[test]
    fn radii_that_were_sorted_in_another_precision_are_refused() {
        let backend = CpuBackend::new(1).unwrap();
        let double = in_double(&[[0.0f64; 3], [0.5, 0.0, 0.0]], 2.0);
        let single = grid(&[[0.0; 3], [0.5, 0.0, 0.0]]);
        for [sorted_with, searched] in [[&single, &double], [&double, &single]] {
            let mut sorted = SortedRadii::default();
            (backend.sort_radii(&[1.0f32; 2], sorted_with, &mut sorted)).unwrap();
            for radii in [
                SetRadii::Gather { targets: &sorted },
                SetRadii::Scatter { sources: &sorted },
            ] {
                let sets = PairOfSets {
                    targets: searched,
                    sources: searched,
                    same_set: true,
                    radii,
                    filter: Default::default(),
                    share: None,
                };
                let refused = backend.count(sets, &mut [0; 2]).unwrap_err();
                assert!(matches!(refused.kind(), ErrorKind::RadiiPrecision));
                let refused = sets.for_each_neighbor(0, |_, _, _| ()).unwrap_err();
                assert!(matches!(refused.kind(), ErrorKind::RadiiPrecision));
            }
        }
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
