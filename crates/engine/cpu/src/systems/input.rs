//! Many systems of points in one array, each with a cell, a periodicity and a radius of its own.
//!
//! Programs that train or evaluate potentials keep the atoms of thousands of molecules or crystals
//! behind each other. [`Systems`] borrows such arrays as they are. Shapes are checked once for all
//! systems ([`Systems::check`]); the cell, the radius and the points of a system are checked by
//! whoever searches it, so that it is done by all workers.
//!
//! # What is read
//!
//! Offsets are `i64`, as the tensors of machine-learning libraries are, and cells and radii are
//! `f64` in either precision of the coordinates, because the contract computes image vectors in
//! `f64`. Vectors of axes that are not periodic are not read: files and libraries leave zeros or
//! anything else there.
//!
//! **Invariant:** errors name the system, and points by their place in the whole array.

use super::quantities::PairIndex;
use crate::{
    all_pairs::Levels,
    error::{Error, ErrorKind},
    lists::geometry::PairArrays,
};
use nearfield_grid::{self as grid, Bounds, Domain, Positions, Precision, Radius, Value};
use std::ops::Range;

/// The name of the memory of a search in messages.
pub(super) const WHAT: &str = "the neighbour lists of systems";

/// A coordinate that systems may be given in: `f32` or `f64`. Sealed. Pairs are decided in its
/// arithmetic.
#[expect(private_bounds, reason = "it is sealed")]
pub trait SystemReal: Levels {
    /// The precision of the search.
    const PRECISION: Precision;

    /// Checks a radius for a search in this precision, to which it is rounded.
    ///
    /// # Errors
    /// [`grid::ErrorKind::Radius`].
    fn radius(value: f64) -> Result<Radius, grid::Error>;

    /// Its bound on squared distances.
    #[doc(hidden)]
    fn squared(radius: Radius) -> Self;

    /// A view of positions.
    fn positions(points: &[[Self; 3]]) -> Positions<'_>;

    /// The number for a message.
    fn value(self) -> Value;

    /// `self · a + b`, rounded once.
    #[doc(hidden)]
    fn fused(self, a: Self, b: Self) -> Self;

    /// The root, rounded once.
    #[doc(hidden)]
    fn root(self) -> Self;

    /// The arrays of this precision; none for those of the other.
    #[doc(hidden)]
    fn arrays<'a>(arrays: PairArrays<'a>) -> (&'a [[Self; 3]], &'a [Self]);
}

/// Implements [`SystemReal`] for a precision.
macro_rules! system_real {
    ($real:ident, $precision:ident, $radius:path, $squared:ident) => {
        impl SystemReal for $real {
            const PRECISION: Precision = Precision::$precision;

            fn radius(value: f64) -> Result<Radius, grid::Error> {
                $radius(value)
            }

            fn squared(radius: Radius) -> Self {
                radius.$squared()
            }

            fn positions(points: &[[Self; 3]]) -> Positions<'_> {
                points.into()
            }

            fn value(self) -> Value {
                self.into()
            }

            #[inline(always)]
            fn fused(self, a: Self, b: Self) -> Self {
                self.mul_add(a, b)
            }

            #[inline(always)]
            fn root(self) -> Self {
                self.sqrt()
            }

            fn arrays<'a>(arrays: PairArrays<'a>) -> (&'a [[Self; 3]], &'a [Self]) {
                match arrays {
                    PairArrays::$precision {
                        displacement,
                        distance_squared,
                    } => (displacement, distance_squared),
                    _ => (&[], &[]),
                }
            }
        }
    };
}
system_real!(f32, Single, Radius::rounded, squared);
system_real!(f64, Double, Radius::new_f64, squared_f64);

/// Systems of points that lie behind each other in one array. There are no pairs between systems.
///
/// ```
/// use nearfield_cpu::Systems;
/// // Two molecules of two atoms and one.
/// let positions = [[0.0f32, 0.0, 0.0], [0.0, 0.0, 1.1], [0.3, 0.0, 0.0]];
/// let systems = Systems::new(&positions, &[0, 2, 3], &[1.5]);
/// assert_eq!(systems.len(), 2);
/// // The same in boxes: one cell for both, periodic along x.
/// let cell = [[[4.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 4.0]]];
/// let systems = systems.in_cells(&cell, &[[true, false, false]]);
/// # let _ = systems;
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Systems<'a, T = f32> {
    /// Coordinates of all points, system after system.
    pub positions: &'a [[T; 3]],
    /// The first point of every system, and the number of points behind the last: `batch_ptr`, one
    /// number more than there are systems. It begins with 0 and never falls; a system may be empty.
    pub offsets: &'a [i64],
    /// Radius of every system, or one for all. It is rounded to the precision of the coordinates.
    pub radii: &'a [f64],
    /// Cell of every system, one for all, or none where everything is open. A row is a vector, in
    /// the unit of the coordinates; the rows of axes that are not periodic are not read.
    pub cells: &'a [[[f64; 3]; 3]],
    /// Which vectors of its cell every system repeats along; one for all, or none where everything
    /// is open.
    pub periodic: &'a [[bool; 3]],
    /// Whether pairs exactly as far apart as their radius are left out.
    pub strict: bool,
}

/// A system, its numbers checked but for its points.
#[derive(Debug, Clone)]
pub(super) struct SystemBox {
    /// Its cell, enumerated by short vectors.
    pub(super) domain: Domain,
    /// Its radius.
    pub(super) radius: Radius,
}

impl<'a, T> Systems<'a, T> {
    /// Systems in open space. `radii` has a radius for every system, or one for all.
    pub fn new(positions: &'a [[T; 3]], offsets: &'a [i64], radii: &'a [f64]) -> Self {
        Self {
            positions,
            offsets,
            radii,
            cells: &[],
            periodic: &[],
            strict: false,
        }
    }

    /// The same systems in cells: a cell and a periodicity for every system, or one for all.
    #[must_use]
    pub fn in_cells(self, cells: &'a [[[f64; 3]; 3]], periodic: &'a [[bool; 3]]) -> Self {
        Self {
            cells,
            periodic,
            ..self
        }
    }

    /// The same systems without pairs exactly as far apart as their radius, as
    /// [`Radius::strict`] says.
    #[must_use]
    pub fn strictly_within(self) -> Self {
        Self {
            strict: true,
            ..self
        }
    }

    /// Number of systems; 0 also where there are no offsets at all.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Returns true if there are no systems.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The points of a system, of checked offsets.
    pub(super) fn range(&self, system: usize) -> Range<usize> {
        self.offsets[system] as usize..self.offsets[system + 1] as usize
    }

    /// The points of consecutive systems, of checked offsets.
    pub(super) fn points_of_range(&self, systems: &Range<usize>) -> Range<usize> {
        self.offsets[systems.start] as usize..self.offsets[systems.end] as usize
    }

    /// Their number.
    pub(super) fn points_of(&self, systems: &Range<usize>) -> usize {
        self.points_of_range(systems).len()
    }

    /// Checks the shapes of all arrays: offsets that ascend from 0 to the number of points, and a
    /// radius, a cell and a periodicity for every system, or one for all.
    ///
    /// # Errors
    /// [`ErrorKind::SystemOffsets`] with the first system whose offsets cannot be, and
    /// [`ErrorKind::SystemsLength`].
    pub fn check(&self) -> Result<(), Error> {
        let points = self.positions.len();
        let refuse = |system: usize, begin: i64, end: i64| {
            Err(ErrorKind::SystemOffsets {
                system,
                begin,
                end,
                points,
            }
            .into())
        };
        let (first, last) = match self.offsets {
            [] => return refuse(0, 0, 0),
            [first, .., last] => (*first, *last),
            [only] => (*only, *only),
        };
        if first != 0 {
            return refuse(0, first, *self.offsets.get(1).unwrap_or(&first));
        }
        for (system, ends) in self.offsets.windows(2).enumerate() {
            if ends[0] > ends[1] || ends[1] as u64 > points as u64 {
                return refuse(system, ends[0], ends[1]);
            }
        }
        if last as u64 != points as u64 {
            let begin = self.offsets[self.len().saturating_sub(1)];
            return refuse(self.len().saturating_sub(1), begin, last);
        }
        let expected = self.len();
        let check = |what, found: usize, may_miss: bool| {
            if found == expected || found == 1 || (may_miss && found == 0) {
                return Ok(());
            }
            Err(Error::from(ErrorKind::SystemsLength {
                what,
                found,
                expected,
            }))
        };
        check("radii", self.radii.len(), expected == 0)?;
        check("cells", self.cells.len(), true)?;
        check("periodicities", self.periodic.len(), true)?;
        if self.cells.is_empty() && self.periodic.iter().flatten().any(|&periodic| periodic) {
            return Err(ErrorKind::SystemsLength {
                what: "cells",
                found: 0,
                expected,
            }
            .into());
        }
        Ok(())
    }
}

impl<T> Systems<'_, T> {
    /// Checks the shapes of all arrays, and that points have indices of type `I`.
    ///
    /// # Errors
    /// As [`check`](Self::check), and [`ErrorKind::IndexType`].
    pub fn check_for<I: PairIndex>(&self) -> Result<(), Error> {
        self.check()?;
        let points = self.positions.len();
        if points > I::MAX_POINTS {
            let kind = I::NAME;
            return Err(ErrorKind::IndexType { points, kind }.into());
        }
        Ok(())
    }
}

impl<T: SystemReal> Systems<'_, T> {
    /// Cell and radius of a system.
    ///
    /// # Errors
    /// [`ErrorKind::System`].
    pub(super) fn system(&self, system: usize) -> Result<SystemBox, Error> {
        let refuse = |source| Error::from(ErrorKind::System { system, source });
        let periodic = of(self.periodic, system).unwrap_or_default();
        let radius = of(self.radii, system).unwrap_or(f64::NAN);
        let radius = T::radius(radius).map_err(refuse)?;
        let radius = if self.strict { radius.strict() } else { radius };
        let cell = of(self.cells, system).filter(|_| periodic != [false; 3]);
        let domain = match cell {
            None => Domain::OPEN,
            Some(cell) => {
                let vectors = std::array::from_fn(|k| periodic[k].then_some(cell[k]));
                Domain::from_vectors(vectors).map_err(refuse)?.reduced()
            }
        };
        Ok(SystemBox { domain, radius })
    }

    /// Checks the shapes of all arrays, and everything of one system.
    ///
    /// For a backend that only learns which system it cannot search.
    ///
    /// # Errors
    /// As [`check`](Self::check), and [`ErrorKind::System`].
    pub fn check_system(&self, system: usize) -> Result<(), Error> {
        self.check()?;
        if system >= self.len() {
            return Ok(());
        }
        let of = self.system(system)?;
        self.bounds(system, &of.domain).map(|_| ())
    }

    /// Bounds of the points of a system whose coordinates may be unusable.
    ///
    /// # Errors
    /// [`ErrorKind::System`] naming the point by its place in the whole array.
    pub(super) fn bounds(&self, system: usize, domain: &Domain) -> Result<Bounds, Error> {
        let range = self.range(system);
        let begin = range.start;
        Bounds::of(T::positions(&self.positions[range]), domain).map_err(|error| {
            let source = error.at(begin);
            ErrorKind::System { system, source }.into()
        })
    }
}

/// That of a system, where there is one for each or one for all.
fn of<T: Copy>(all: &[T], system: usize) -> Option<T> {
    match all {
        [one] => Some(*one),
        all => all.get(system).copied(),
    }
}
