//! The symplectic integrators.

use std::{fmt, str::FromStr};

/// A symplectic integrator: the energy stays within bounds instead of drifting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Integrator {
    /// Kick, drift, kick: v += a·h/2, x += v·h, v += a·h/2. Second order (Verlet 1967,
    /// DOI 10.1103/PhysRev.159.98).
    #[default]
    Leapfrog,
    /// v += a·h, x += v·h. First order, and as cheap.
    SymplecticEuler,
}

/// A name that does not belong to an integrator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown integrator \"{0}\": use leapfrog or symplectic-euler")]
pub struct ParseIntegratorError(String);

impl FromStr for Integrator {
    type Err = ParseIntegratorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "leapfrog" => Ok(Self::Leapfrog),
            "symplectic-euler" => Ok(Self::SymplecticEuler),
            _ => Err(ParseIntegratorError(text.to_owned())),
        }
    }
}

impl fmt::Display for Integrator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Leapfrog => "leapfrog",
            Self::SymplecticEuler => "symplectic-euler",
        })
    }
}
