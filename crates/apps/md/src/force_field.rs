//! The forces between atoms.

use crate::{Error, ErrorKind, System, system::check_types};
use nearfield::kernels::{CutoffCoulomb, LennardJones, LongRange};

/// Lennard-Jones coefficients of every kind of atom, and perhaps charges.
#[derive(Debug, Clone, PartialEq)]
pub struct ForceField {
    pub(crate) lennard_jones: LennardJones,
    pub(crate) coulomb: Option<CutoffCoulomb>,
}

impl From<LennardJones> for ForceField {
    fn from(lennard_jones: LennardJones) -> Self {
        Self {
            lennard_jones,
            coulomb: None,
        }
    }
}

impl ForceField {
    /// The same with charges that act within the same cut-off.
    pub fn with_coulomb(mut self, coulomb: CutoffCoulomb) -> Self {
        self.coulomb = Some(coulomb);
        self
    }

    /// Within which atoms act on each other.
    pub fn cutoff(&self) -> f64 {
        self.lennard_jones.cutoff()
    }

    /// Energy and virial of the Lennard-Jones terms beyond the cut-off; zero where the box
    /// is not periodic along all axes, or energies are shifted.
    pub fn long_range(&self, system: &System) -> LongRange {
        let of_volume = |volume| self.lennard_jones.long_range(&system.type_counts(), volume);
        system
            .cell()
            .volume()
            .map_or(LongRange::default(), of_volume)
    }

    /// Refuses a system with kinds of atoms that have no coefficients, or without charges where
    /// they count.
    pub(crate) fn check(&self, system: &System) -> Result<(), Error> {
        check_types(&system.types, self.lennard_jones.types())?;
        if self.coulomb.is_some() && system.charges.is_empty() && !system.is_empty() {
            Err(ErrorKind::Count {
                what: "charges",
                found: 0,
                atoms: system.len(),
            }
            .into())
        } else {
            Ok(())
        }
    }
}
