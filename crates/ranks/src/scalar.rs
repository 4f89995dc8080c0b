//! The two precisions of coordinates.

use nearfield::{Positions, Precision, Radii};
use nearfield_grid::{Cell, Error, Lattice, Radius};

/// A coordinate: `f32` or `f64`. Sealed.
pub trait Scalar: sealed::Sealed + bytemuck::Pod + Default + Send + Sync {
    /// The precision of engines with such coordinates.
    const PRECISION: Precision;

    /// The positions as the engine takes them.
    fn positions(points: &[[Self; 3]]) -> Positions<'_>;

    /// The radii as the engine takes them.
    fn radii(radii: &[Self]) -> Radii<'_>;

    #[doc(hidden)]
    fn cell(lattice: &Lattice, position: [Self; 3]) -> Cell;

    /// A number that was computed in this precision.
    #[doc(hidden)]
    fn of(value: f64) -> Self;

    #[doc(hidden)]
    fn radius(radius: f64) -> Result<Radius, Error>;
}

mod sealed {
    /// Keeps other crates from implementing [`super::Scalar`].
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

impl Scalar for f32 {
    const PRECISION: Precision = Precision::Single;

    fn positions(points: &[[Self; 3]]) -> Positions<'_> {
        points.into()
    }

    fn radii(radii: &[Self]) -> Radii<'_> {
        radii.into()
    }

    #[inline(always)]
    fn cell(lattice: &Lattice, [x, y, z]: [Self; 3]) -> Cell {
        // Spelt out: `map` is not always inlined, and every point of a step comes here.
        lattice.cell_f64([f64::from(x), f64::from(y), f64::from(z)])
    }

    fn of(value: f64) -> Self {
        value as Self
    }

    fn radius(radius: f64) -> Result<Radius, Error> {
        Radius::new(radius as f32)
    }
}

impl Scalar for f64 {
    const PRECISION: Precision = Precision::Double;

    fn positions(points: &[[Self; 3]]) -> Positions<'_> {
        points.into()
    }

    fn radii(radii: &[Self]) -> Radii<'_> {
        radii.into()
    }

    #[inline(always)]
    fn cell(lattice: &Lattice, position: [Self; 3]) -> Cell {
        lattice.cell_f64(position)
    }

    fn of(value: f64) -> Self {
        value
    }

    fn radius(radius: f64) -> Result<Radius, Error> {
        Radius::new_f64(radius)
    }
}
