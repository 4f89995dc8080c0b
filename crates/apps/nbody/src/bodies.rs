//! Bodies: masses, positions and velocities.

use crate::{Error, ErrorKind};
use nearfield::all_pairs::Real;
use nearfield_grid::memory::with_room;

/// Bodies, an array per quantity. The unit of time follows from those of length and mass by G = 1.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bodies<T> {
    /// Masses, not negative; 0 for bodies that are attracted and do not attract.
    pub masses: Vec<T>,
    /// Positions.
    pub positions: Vec<[T; 3]>,
    /// Velocities.
    pub velocities: Vec<[T; 3]>,
}

impl<T: Real> Bodies<T> {
    /// Number of bodies.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Returns true if there are no bodies.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// The same bodies in another precision, rounded once.
    ///
    /// # Errors
    /// [`ErrorKind::Engine`] when memory is short.
    pub fn rounded<U: Real>(&self) -> Result<Bodies<U>, Error> {
        let vectors = |from: &[[T; 3]], what| -> Result<Vec<[U; 3]>, Error> {
            let mut vectors = with_room(from.len(), what)?;
            vectors.extend(from.iter().map(|v| v.map(|x| U::of(x.double()))));
            Ok(vectors)
        };
        let mut masses = with_room(self.masses.len(), "masses")?;
        masses.extend(self.masses.iter().map(|mass| U::of(mass.double())));
        Ok(Bodies {
            masses,
            positions: vectors(&self.positions, "positions")?,
            velocities: vectors(&self.velocities, "velocities")?,
        })
    }

    /// Refuses arrays of different lengths, numbers that are not finite and negative masses.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let bodies = self.len();
        for (what, found) in [
            ("masses", self.masses.len()),
            ("velocities", self.velocities.len()),
        ] {
            if found != bodies {
                return Err(ErrorKind::Lengths {
                    what,
                    found,
                    bodies,
                }
                .into());
            }
        }
        let refuse = |what, index, value: T| {
            let value = value.double();
            Err(ErrorKind::NotFinite { what, index, value }.into())
        };
        for index in 0..bodies {
            if !self.masses[index].is_finite() {
                return refuse("mass", index, self.masses[index]);
            }
            let value = self.masses[index].double();
            if value < 0.0 {
                return Err(ErrorKind::NegativeMass { index, value }.into());
            }
            for (what, vectors) in [
                ("position", &self.positions),
                ("velocity", &self.velocities),
            ] {
                if let Some(value) = vectors[index].into_iter().find(|x| !x.is_finite()) {
                    return refuse(what, index, value);
                }
            }
        }
        Ok(())
    }
}
