//! Sums over all pairs, checked and handed to the backends.
//!
//! Every method makes one [`SumWork`] of its arguments; [`AllPairs::run`] checks that in full
//! before a backend sees it. So backends check nothing, and a sum that is refused has written
//! nothing.

use super::{backends::SumBackends, check, report::AllPairsReport};
use crate::{
    Error,
    all_pairs::{Arithmetic, PairSum, PairSumSettings, Real, SampleGrid, Sources},
    backend::sums::{SumWork, Targets},
};
use nearfield_grid::memory::{filled, zeroed};
use std::ops::Range;

/// Sums over all pairs of points, on a CPU, a GPU or both; made by
/// [`Engine::all_pairs`](crate::Engine::all_pairs).
///
/// An infinite radius is a single cell: on either backend the sources go tile by tile past targets
/// that stay in registers, as candidates do in a cell.
///
/// ```
/// use nearfield::{all_pairs::SampleGrid, prelude::*};
///
/// let mut sums = Engine::all_pairs().build()?;
/// // Two bodies of mass 1 and 3 at a distance of 2, with G = 1.
/// let bodies = [[0.0f64, 0.0, 0.0], [2.0, 0.0, 0.0]];
/// let pull = sums.gravity(&bodies, &[1.0, 3.0], 0.0)?;
/// assert!((pull[0][0] - 0.75).abs() < 1e-12 && (pull[1][0] + 0.25).abs() < 1e-12);
///
/// // The potential of a charge at the nodes of a grid.
/// let grid = SampleGrid { dims: [3, 1, 1], spacing: 1.0, origin: [1.0, 0.0, 0.0] };
/// let potential = sums.coulomb(&grid, &[[0.0f32; 3]], &[2.0], 0.0)?;
/// assert!((potential[1] - 1.0).abs() < 1e-6);
/// # Ok::<(), nearfield::Error>(())
/// ```
///
/// # What is computed
///
/// [`PairSum`] has the sums; coordinates are `f32` or `f64`, and so is the arithmetic. Sums are
/// compensated, so in `f32` every result is within 1e-5 of the sum of its terms' absolute values,
/// and usually within 1e-6. [`Arithmetic::Exact`] takes correctly rounded roots and gives the same
/// bits on every device. **A source exactly at a target adds nothing** if there is no softening
/// (with [`Arithmetic::Fast`], also one so near that the square of the distance is no normal
/// number: 1e-19 in `f32`); with a softening ε > 0 it adds w/ε to the potential, and no pull.
///
/// # Errors
/// All sums refuse coordinates, weights and softenings that are not finite, by index, points so far
/// apart that squares of distances overflow (1e19 in `f32`: take other units, or `f64`), and arrays
/// that do not fit each other ([`ErrorKind::Coordinate`](crate::ErrorKind::Coordinate) and the
/// kinds beside it).
#[derive(Debug)]
pub struct AllPairs {
    pub(super) arithmetic: Arithmetic,
    pub(super) backends: SumBackends,
}

impl AllPairs {
    /// Accelerations of bodies by the gravity of all others, with G = 1: Σ m_j d / (d² + ε²)^(3/2).
    ///
    /// `positions` and `masses` have an element per body; `softening` is ε, in the unit of the
    /// positions. The time grows with the square of the number of bodies.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut sums = Engine::all_pairs().build()?;
    /// let bodies = [[0.0f64; 3], [3.0, 4.0, 0.0]];
    /// let pull = sums.gravity(&bodies, &[1.0, 50.0], 0.0)?;
    /// assert!((pull[0][0] - 1.2).abs() < 1e-12 && (pull[0][1] - 1.6).abs() < 1e-12);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Coordinate`](crate::ErrorKind::Coordinate) and others, see [`AllPairs`].
    pub fn gravity<T: Real>(
        &mut self,
        positions: &[[T; 3]],
        masses: &[T],
        softening: T,
    ) -> Result<Vec<[T; 3]>, Error> {
        let mut accelerations = filled(positions.len(), [T::default(); 3], "accelerations")?;
        self.gravity_into(positions, masses, softening, &mut accelerations)?;
        Ok(accelerations)
    }

    /// The same into an array of the caller's, one element per body, which is overwritten. A step
    /// of a simulation then allocates nothing.
    ///
    /// # Errors
    /// As [`gravity`](Self::gravity).
    pub fn gravity_into<T: Real>(
        &mut self,
        positions: &[[T; 3]],
        masses: &[T],
        softening: T,
        accelerations: &mut [[T; 3]],
    ) -> Result<(), Error> {
        let sources = Sources {
            points: positions,
            weights: masses,
        };
        let results = accelerations.as_flattened_mut();
        self.sum(PairSum::Pull, positions, sources, softening, results)
    }

    /// Potentials of bodies by the gravity of all others, with G = 1: −Σ m_j / (d² + ε²)^½. With a
    /// softening the body itself would count; it is taken out.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut sums = Engine::all_pairs().build()?;
    /// let bodies = [[0.0f64; 3], [3.0, 4.0, 0.0]];
    /// let potential = sums.gravity_potential(&bodies, &[1.0, 50.0], 0.0)?;
    /// assert!((potential[0] + 10.0).abs() < 1e-12 && (potential[1] + 0.2).abs() < 1e-12);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`gravity`](Self::gravity).
    pub fn gravity_potential<T: Real>(
        &mut self,
        positions: &[[T; 3]],
        masses: &[T],
        softening: T,
    ) -> Result<Vec<T>, Error> {
        let mut potentials = filled(positions.len(), T::default(), "potentials")?;
        let sources = Sources {
            points: positions,
            weights: masses,
        };
        self.sum(
            PairSum::Potential,
            positions,
            sources,
            softening,
            &mut potentials,
        )?;
        for (potential, mass) in potentials.iter_mut().zip(masses) {
            let own = match softening.double() {
                0.0 => 0.0,
                softening => mass.double() / softening.abs(),
            };
            *potential = T::of(own - potential.double());
        }
        Ok(potentials)
    }

    /// The electric potential of charges at the points of a grid: Σ q_j / (d² + ε²)^½, x fastest.
    /// Units are those of the arguments; there is no factor 1/(4π ε₀).
    ///
    /// `atoms` and `charges` have an element per charge. Atoms may lie anywhere, in the grid or
    /// outside.
    ///
    /// # Errors
    /// As [`gravity`](Self::gravity), and for grids that [are none](SampleGrid::check).
    pub fn coulomb<T: Real>(
        &mut self,
        grid: &SampleGrid,
        atoms: &[[T; 3]],
        charges: &[T],
        softening: T,
    ) -> Result<Vec<T>, Error> {
        grid.check()?;
        let mut potentials = zeroed(grid.len(), "potentials on a grid")?;
        let sources = Sources {
            points: atoms,
            weights: charges,
        };
        self.coulomb_rows(grid, 0..grid.rows(), sources, softening, &mut potentials)?;
        Ok(potentials)
    }

    /// The same for the rows `rows` of the grid alone: row y + ny·z holds the points at y and z.
    /// The weights of `sources` are charges, and `potentials` has a number for every point of the
    /// rows.
    ///
    /// Rows let a program sum a grid piece by piece, in less memory than the whole grid takes.
    ///
    /// # Errors
    /// As [`coulomb`](Self::coulomb).
    pub fn coulomb_rows<T: Real>(
        &mut self,
        grid: &SampleGrid,
        rows: Range<usize>,
        sources: Sources<'_, T>,
        softening: T,
        potentials: &mut [T],
    ) -> Result<(), Error> {
        let settings = self.settings(PairSum::Potential, softening);
        self.sum_rows(settings, grid, rows, sources, potentials)
    }

    /// The electric field of charges at the points of rows of a grid: −Σ q_j d / (d² + ε²)^(3/2), d
    /// being from the point to the charge.
    ///
    /// `field` has a vector for every point of the rows.
    ///
    /// # Errors
    /// As [`coulomb`](Self::coulomb).
    pub fn coulomb_field_rows<T: Real>(
        &mut self,
        grid: &SampleGrid,
        rows: Range<usize>,
        sources: Sources<'_, T>,
        softening: T,
        field: &mut [[T; 3]],
    ) -> Result<(), Error> {
        let (settings, results) = (
            self.settings(PairSum::Pull, softening),
            field.as_flattened_mut(),
        );
        self.sum_rows(settings, grid, rows, sources, results)?;
        results.iter_mut().for_each(|one| *one = -*one);
        Ok(())
    }

    /// Any sum for any targets; [`PairSum::components`] numbers a target go to `results`, one
    /// target after the other.
    ///
    /// ```
    /// use nearfield::{all_pairs::{PairSum, Sources}, prelude::*};
    /// let mut sums = Engine::all_pairs().build()?;
    /// let sources = Sources { points: &[[0.0f64; 3]], weights: &[6.0] };
    /// let mut potential = [0.0; 2];
    /// let at = [[2.0, 0.0, 0.0], [0.0, 3.0, 0.0]];
    /// sums.sum(PairSum::Potential, &at, sources, 0.0, &mut potential)?;
    /// assert!((potential[0] - 3.0).abs() < 1e-12 && (potential[1] - 2.0).abs() < 1e-12);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`gravity`](Self::gravity).
    pub fn sum<T: Real>(
        &mut self,
        sum: PairSum,
        targets: &[[T; 3]],
        sources: Sources<'_, T>,
        softening: T,
        results: &mut [T],
    ) -> Result<(), Error> {
        check::points("target", targets)?;
        let work = SumWork {
            settings: self.settings(sum, softening),
            targets: Targets::Points(targets),
            sources,
        };
        self.run(work, results)
    }

    fn settings<T>(&self, sum: PairSum, softening: T) -> PairSumSettings<T> {
        PairSumSettings {
            sum,
            arithmetic: self.arithmetic,
            softening,
        }
    }

    fn sum_rows<T: Real>(
        &mut self,
        settings: PairSumSettings<T>,
        grid: &SampleGrid,
        rows: Range<usize>,
        sources: Sources<'_, T>,
        results: &mut [T],
    ) -> Result<(), Error> {
        check::rows(grid, &rows)?;
        let work = SumWork {
            settings,
            targets: Targets::Rows(grid, rows),
            sources,
        };
        self.run(work, results)
    }

    /// Checks everything that is left to check, and sums.
    ///
    /// The first and the last point of a grid, which is finite and regular, stand for all in the
    /// check of the extent.
    fn run<T: Real>(&mut self, work: SumWork<'_, T>, results: &mut [T]) -> Result<(), Error> {
        let SumWork {
            settings,
            targets,
            sources,
        } = &work;
        check::sources(*sources)?;
        check::softening(settings.softening)?;
        let places: &[[T; 3]] = match targets {
            Targets::Points(targets) => targets,
            Targets::Rows(grid, _) => &corners(grid),
        };
        check::extent(places, sources.points, settings.softening)?;
        let expected = settings.sum.components() * targets.points();
        check::results(results.len(), expected)?;
        self.backends.run(work, results)
    }

    /// Where the last sum ran, and why there; before the first, where the next will.
    pub fn report(&self) -> AllPairsReport {
        self.backends.report()
    }
}

/// The first point of a grid and the last.
fn corners<T: Real>(grid: &SampleGrid) -> [[T; 3]; 2] {
    let last = |axis: usize| grid.dims[axis].saturating_sub(1) as f64 * grid.spacing;
    let end = |axis: usize| T::of(grid.origin[axis] + last(axis));
    [grid.origin.map(T::of), [end(0), end(1), end(2)]]
}
