//! Fluid and walls together, as the builder hands them to a body.

use crate::{
    particles::{Forces, Particles},
    walls::Walls,
};

/// All particles of a simulation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Matter {
    pub(crate) fluid: Particles,
    pub(crate) walls: Walls,
    /// Those of a checkpoint; none where they are to be evaluated.
    pub(crate) forces: Option<Forces>,
}
