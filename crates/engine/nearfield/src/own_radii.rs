//! A copy of radii of single points, in the precision of an engine.
//!
//! Callers give radii in either precision; what an engine keeps has one.
//!
//! **Invariant:** radii in `f64` that become `f32` are rounded to the nearest, as the radius of an
//! engine in `f32` is.

use nearfield_grid::{
    Precision, Radii,
    memory::{Shortage, make_room, with_room},
};

/// Radii in the precision of the engine.
#[derive(Debug)]
pub(crate) enum OwnRadii {
    /// In `f32`.
    Single(Vec<f32>),
    /// In `f64`.
    Double(Vec<f64>),
}

impl Default for OwnRadii {
    fn default() -> Self {
        Self::Single(Vec::new())
    }
}

impl OwnRadii {
    /// A copy of `radii`, rounded to this precision.
    ///
    /// # Errors
    /// [`Shortage`].
    pub(crate) fn copy_of(radii: Radii<'_>, precision: Precision) -> Result<Self, Shortage> {
        let mut copy = Self::default();
        copy.make_room(radii.len(), precision)?;
        copy.fill(radii);
        Ok(copy)
    }

    /// A copy of those of `points`, which there are.
    ///
    /// # Errors
    /// [`Shortage`].
    pub(crate) fn of_points(radii: Radii<'_>, points: &[u32]) -> Result<Self, Shortage> {
        let mut copy = Self::default();
        copy.make_room(points.len(), radii.precision())?;
        let places = points.iter().map(|&point| point as usize);
        match (&mut copy, radii) {
            (Self::Single(to), Radii::Single(from)) => to.extend(places.map(|at| from[at])),
            (Self::Double(to), Radii::Double(from)) => to.extend(places.map(|at| from[at])),
            // The copy was made in the precision of the radii.
            _ => {}
        }
        Ok(copy)
    }

    /// Makes room for so many of this precision.
    pub(crate) fn make_room(&mut self, radii: usize, precision: Precision) -> Result<(), Shortage> {
        const WHAT: &str = "radii in the caller's order";
        match (&mut *self, precision) {
            (Self::Single(own), Precision::Single) => make_room(own, radii, WHAT),
            (Self::Double(own), Precision::Double) => make_room(own, radii, WHAT),
            (_, precision) => {
                *self = match precision {
                    Precision::Single => Self::Single(with_room(radii, WHAT)?),
                    Precision::Double => Self::Double(with_room(radii, WHAT)?),
                };
                Ok(())
            }
        }
    }

    /// Takes `radii` in place of those there are; there is room for them.
    pub(crate) fn fill(&mut self, radii: Radii<'_>) {
        self.clear();
        match (self, radii) {
            (Self::Single(own), Radii::Single(radii)) => own.extend_from_slice(radii),
            (Self::Single(own), Radii::Double(radii)) => {
                own.extend(radii.iter().map(|&radius| radius as f32));
            }
            (Self::Double(own), Radii::Single(radii)) => {
                own.extend(radii.iter().map(|&radius| f64::from(radius)));
            }
            (Self::Double(own), Radii::Double(radii)) => own.extend_from_slice(radii),
        }
    }

    /// Forgets them and keeps the memory.
    pub(crate) fn clear(&mut self) {
        match self {
            Self::Single(own) => own.clear(),
            Self::Double(own) => own.clear(),
        }
    }

    /// The radii.
    pub(crate) fn get(&self) -> Radii<'_> {
        match self {
            Self::Single(own) => own.into(),
            Self::Double(own) => own.into(),
        }
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Single(own) => size_of::<f32>() * own.capacity(),
            Self::Double(own) => size_of::<f64>() * own.capacity(),
        }
    }
}
