//! The policies there are, and their names.
//!
//! A policy is written as text on command lines, in C and in Python: `model`, `band:0.8:0.95`,
//! `fraction`, `fixed:12.5`. [`Policy`] parses and prints that form, and refuses numbers that
//! contradict each other.
//!
//! # Adding a policy
//!
//! A policy is a variant here, with a name and numbers; a state in the controller; and a function
//! from a layout, a plan and its times to a decision. It has no clock, and gets the times of every
//! step that ended without a fault.
//!
//! **Invariant:** printing a policy and parsing the text gives the same policy.

use crate::{Error, ErrorKind};
use std::{fmt, str::FromStr};

/// How thresholds follow from times.
///
/// Written `model`, `band`, `band:0.8:0.95`, `fraction`, `fixed:12.5` or `fixed:inf`.
///
/// The default is the model, which needs no numbers and reaches the optimum on machines of all
/// kinds in the tests.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum Policy {
    /// Fits what a pair, a launch and a byte cost each backend, and goes to the predicted optimum.
    #[default]
    Model,
    /// Keeps the ratio of the CPU backend's time to the GPU backend's between two bounds. The
    /// thresholds of neighbouring subregions move by notches of occupancy, so that sparse bricks
    /// are the CPU backend's in every subregion. Where sharing gains less than 2 %, the better
    /// backend works alone.
    Band {
        /// Below this ratio the CPU backend is given more.
        alpha: f64,
        /// Above this ratio, or when it is predicted to be exceeded, the GPU backend is given more.
        beta: f64,
    },
    /// Splits by share of the work whatever the occupancy: what others do.
    Fraction,
    /// One threshold, always.
    Fixed {
        /// Bricks of at most as many points go to the CPU backend; a fractional part gives it that
        /// share of the bricks with one point more. Where bricks of a range of occupancies are
        /// [ties](crate::Ties), as engines have it, it has the share of them that θ lies along that
        /// range. 0 is GPU only, infinity CPU only.
        theta: f64,
    },
}

impl Policy {
    /// The seed rule with a band of 0.8 to 0.95.
    pub const BAND: Self = Self::Band {
        alpha: 0.8,
        beta: 0.95,
    };

    /// Its name without numbers.
    ///
    /// Stable: traces, JSON and command lines use it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Band { .. } => "band",
            Self::Fraction => "fraction",
            Self::Fixed { .. } => "fixed",
        }
    }

    /// Refuses a band that is not 0 < α < β < 1, and a threshold below 0.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let what = match *self {
            Self::Band { alpha, beta } if !(0.0 < alpha && alpha < beta && beta < 1.0) => format!(
                "the band is {alpha} to {beta}, but 0 < alpha < beta < 1 must hold, as in 0.8 to \
                 0.95"
            ),
            Self::Fixed { theta } if theta.is_nan() || theta < 0.0 => {
                format!("theta is {theta}, but must be 0 (GPU only) or more")
            }
            _ => return Ok(()),
        };
        let policy = self.name();
        Err(ErrorKind::Policy { policy, what }.into())
    }
}

impl FromStr for Policy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || Error::from(ErrorKind::UnknownPolicy(text.to_owned()));
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let numbers = parts
            .map(|part| part.parse::<f64>().map_err(|_| unknown()))
            .collect::<Result<Vec<_>, _>>()?;
        let policy = match (name, numbers.as_slice()) {
            ("model", []) => Self::Model,
            ("band", []) => Self::BAND,
            ("band", &[alpha, beta]) => Self::Band { alpha, beta },
            ("fraction", []) => Self::Fraction,
            ("fixed", &[theta]) => Self::Fixed { theta },
            _ => return Err(unknown()),
        };
        policy.check()?;
        Ok(policy)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Model | Self::Fraction => Ok(()),
            Self::Band { alpha, beta } => write!(f, ":{alpha}:{beta}"),
            Self::Fixed { theta } => write!(f, ":{theta}"),
        }
    }
}
