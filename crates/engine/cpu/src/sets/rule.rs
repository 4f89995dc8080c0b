//! Whose radius decides whether two points are neighbours.
//!
//! A rule changes only the number that a squared distance is compared with: the square of the
//! target's radius, of the source's, or the larger of the two. Each square is fl(r·r), rounded once
//! per point. Comparing with the larger square is comparing with the square of the larger radius,
//! because rounding keeps order.
//!
//! # The four rules
//!
//! * **Uniform**: one radius for all points, the lattice's.
//! * **Gather**: the target's radius decides. SPH with adaptive smoothing lengths gathers the
//!   sources within the target's own support.
//! * **Scatter**: the source's radius decides. A source reaches every target within its own
//!   support.
//! * **Symmetric**: the larger radius decides, so both points find each other and momentum is
//!   conserved.
//!
//! Gather and scatter are not symmetric: i may be a neighbour of j while j is none of i. Half
//! lists and kernels that are evaluated once for both points need a symmetric rule, and other
//! rules are refused there.

use std::fmt;

/// Whose radius decides whether two points are neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RadiusRule {
    /// One radius for all points.
    #[default]
    Uniform,
    /// The target's: j is a neighbour of i when d² ≤ fl(r_i·r_i).
    Gather,
    /// The source's: j is a neighbour of i when d² ≤ fl(r_j·r_j).
    Scatter,
    /// The larger one: j is a neighbour of i when d² ≤ max(fl(r_i·r_i), fl(r_j·r_j)), and then i is
    /// one of j.
    Symmetric,
}

impl RadiusRule {
    /// The rule's name, as messages give it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::Symmetric => "symmetric",
        }
    }

    /// Returns true if the radii of targets count.
    pub fn needs_targets(self) -> bool {
        matches!(self, Self::Gather | Self::Symmetric)
    }

    /// Returns true if the radii of sources count.
    pub fn needs_sources(self) -> bool {
        matches!(self, Self::Scatter | Self::Symmetric)
    }

    /// Returns true if j is a neighbour of i whenever i is one of j, which half lists need.
    pub fn is_symmetric(self) -> bool {
        self.needs_targets() == self.needs_sources()
    }

    /// The radii that count, each asked for only if it does.
    ///
    /// # Errors
    /// What `targets` or `sources` say.
    pub fn choose<T, E>(
        self,
        targets: impl FnOnce() -> Result<T, E>,
        sources: impl FnOnce() -> Result<T, E>,
    ) -> Result<SetRadii<T>, E> {
        Ok(match self {
            Self::Uniform => SetRadii::Uniform,
            Self::Gather => SetRadii::Gather {
                targets: targets()?,
            },
            Self::Scatter => SetRadii::Scatter {
                sources: sources()?,
            },
            Self::Symmetric => SetRadii::Symmetric {
                targets: targets()?,
                sources: sources()?,
            },
        })
    }
}

impl fmt::Display for RadiusRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Radii of a pair of sets: a [`RadiusRule`] and the radii that count under it, one `T` per set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SetRadii<T> {
    /// The lattice's radius for all points.
    #[default]
    Uniform,
    /// The targets' radii.
    Gather {
        /// Of the points that search.
        targets: T,
    },
    /// The sources' radii.
    Scatter {
        /// Of the points that are found.
        sources: T,
    },
    /// The larger radius of both points.
    Symmetric {
        /// Of the points that search.
        targets: T,
        /// Of the points that are found.
        sources: T,
    },
}

impl<T> SetRadii<T> {
    /// Whose radius decides.
    pub fn rule(&self) -> RadiusRule {
        match self {
            Self::Uniform => RadiusRule::Uniform,
            Self::Gather { .. } => RadiusRule::Gather,
            Self::Scatter { .. } => RadiusRule::Scatter,
            Self::Symmetric { .. } => RadiusRule::Symmetric,
        }
    }

    /// The targets' radii, where they count.
    pub fn targets(&self) -> Option<&T> {
        match self {
            Self::Gather { targets } | Self::Symmetric { targets, .. } => Some(targets),
            _ => None,
        }
    }

    /// The sources' radii, where they count.
    pub fn sources(&self) -> Option<&T> {
        match self {
            Self::Scatter { sources } | Self::Symmetric { sources, .. } => Some(sources),
            _ => None,
        }
    }
}
