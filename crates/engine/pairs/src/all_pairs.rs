//! Sums over all pairs, without a radius: what is summed, in which arithmetic, at which points.
//!
//! Both backends compute exactly what follows, so in [`Arithmetic::Exact`] they give the same bits:
//!
//! * d = fl(x_j − x_i) per axis and d² = fma(dz, dz, fma(dy, dy, fma(dx, dx, ε²))), with ε² =
//!   fl(ε·ε). At the points of a [`SampleGrid`] the parts along y and z come first, because a row
//!   of points shares them: d² = fma(dx, dx, fma(dy, dy, fma(dz, dz, ε²))).
//! * Sources are added in the order given, [`TILE`] of them to a partial sum, and the partial sums
//!   to the result with compensation (Kahan 1965, DOI 10.1145/363707.363723): the error of a sum
//!   does not grow with the number of sources.
//! * A source with d² = 0 adds nothing: a body to its own field, an atom that lies on a grid point.
//!   With a softening d² is never 0, and the potential of a source at its own position is w/ε.

use crate::{Error, ErrorKind};
use bytemuck::Pod;
use std::{
    collections::TryReserveError,
    fmt,
    ops::Range,
    ops::{Add, Mul, Neg, Sub},
};

/// Sources that are added up one by one before the sum is added to the result.
///
/// It bounds the error: TILE − 1 additions in `f32` err by at most 127·2⁻²⁴ = 7.6e-6 of the sum of
/// the absolute values.
pub const TILE: usize = nearfield_kernels::constants::ALL_PAIRS_TILE as usize;

/// The precision of a sum: `f32` or `f64`.
pub trait Real:
    Pod
    + PartialOrd
    + Default
    + Send
    + Sync
    + fmt::Debug
    + fmt::Display
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + private::Sealed
{
    /// Name in messages, in file headers and on command lines.
    const NAME: &'static str;

    /// Rounds to this precision.
    fn of(value: f64) -> Self;

    /// The value in double precision.
    fn double(self) -> f64;

    /// Whether the value is neither NaN nor infinite.
    fn is_finite(self) -> bool {
        self.double().is_finite()
    }
}

impl Real for f32 {
    const NAME: &'static str = "f32";

    #[inline(always)]
    fn of(value: f64) -> Self {
        value as f32
    }

    #[inline(always)]
    fn double(self) -> f64 {
        self.into()
    }
}

impl Real for f64 {
    const NAME: &'static str = "f64";

    #[inline(always)]
    fn of(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn double(self) -> f64 {
        self
    }
}

mod private {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// How reciprocal roots are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Arithmetic {
    /// An estimate of the hardware, refined: the error of a term is below 1e-6 in `f32` and 4e-15
    /// in `f64`. The last bits depend on the processor.
    #[default]
    Fast,
    /// Roots and divisions rounded correctly: w/√d² and w/(d²·√d²). Every backend, processor and
    /// vector width gives the same bits.
    Exact,
}

/// The sum over the sources j with weights w (masses, charges) for a target i.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PairSum {
    /// Σ w_j / (d² + ε²)^½: one number a target.
    Potential,
    /// Σ w_j (x_j − x_i) / (d² + ε²)^(3/2): three numbers a target. With masses it is the
    /// acceleration by gravity (Newton), with charges the electric field with its sign changed.
    Pull,
}

impl PairSum {
    /// Numbers per target.
    pub fn components(self) -> usize {
        match self {
            Self::Potential => 1,
            Self::Pull => 3,
        }
    }
}

/// A sum and how it is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairSumSettings<T> {
    /// The sum.
    pub sum: PairSum,
    /// How roots are computed.
    pub arithmetic: Arithmetic,
    /// Softening ε, in the unit of the coordinates; 0 for none.
    pub softening: T,
}

/// The sources of a sum: where they are, and a weight (mass, charge) each.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a, T> {
    /// Positions.
    pub points: &'a [[T; 3]],
    /// As many weights.
    pub weights: &'a [T],
}

/// Points at the nodes of a regular grid; x runs fastest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleGrid {
    /// Points along x, y and z.
    pub dims: [usize; 3],
    /// Distance between points next to each other, in the unit of the coordinates.
    pub spacing: f64,
    /// The first point.
    pub origin: [f64; 3],
}

impl SampleGrid {
    /// Maximum number of points of a grid.
    const MOST: usize = 1 << 40;

    /// Refuses grids without points, without a spacing or without a place.
    ///
    /// # Errors
    /// [`Error`], the first that holds.
    pub fn check(&self) -> Result<(), Error> {
        if !(self.spacing.is_finite() && self.spacing > 0.0) {
            return Err(ErrorKind::GridSpacing(self.spacing).into());
        }
        if !self.origin.iter().all(|x| x.is_finite()) {
            return Err(ErrorKind::GridOrigin(self.origin).into());
        }
        let [x, y, z] = self.dims;
        match x.checked_mul(y).and_then(|area| area.checked_mul(z)) {
            Some(0) => Err(ErrorKind::EmptyGrid(self.dims).into()),
            Some(points) if points <= Self::MOST => Ok(()),
            _ => Err(ErrorKind::LargeGrid(self.dims).into()),
        }
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// Returns true if there are no points.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Rows of points along x.
    pub fn rows(&self) -> usize {
        self.dims[1] * self.dims[2]
    }

    /// The coordinates along an axis: origin + n·spacing in `f64`, rounded once.
    ///
    /// # Errors
    /// If memory is short.
    pub fn axis<T: Real>(&self, axis: usize) -> Result<Vec<T>, TryReserveError> {
        let mut along = Vec::new();
        along.try_reserve_exact(self.dims[axis])?;
        let coordinate = |n: usize| T::of(self.origin[axis] + n as f64 * self.spacing);
        along.extend((0..self.dims[axis]).map(coordinate));
        Ok(along)
    }

    /// The points of rows `rows`, in order.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn points<T: Real>(&self, rows: Range<usize>) -> Result<Vec<[T; 3]>, TryReserveError> {
        let [x, y, z] = [self.axis::<T>(0)?, self.axis(1)?, self.axis(2)?];
        let mut points = Vec::new();
        points.try_reserve_exact(rows.len().saturating_mul(x.len()))?;
        let row = |row: usize| (y[row % self.dims[1]], z[row / self.dims[1]]);
        for number in rows {
            let (y, z) = row(number);
            points.extend(x.iter().map(|&x| [x, y, z]));
        }
        Ok(points)
    }
}
