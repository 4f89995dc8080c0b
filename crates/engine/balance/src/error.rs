//! Errors of a plan's input, with the numbers that locate them.
//!
//! A layout or plan is made from counts, cuts and times that a caller measured, so each of them may
//! be inconsistent. Messages name the cell, the subregion or the stage.
//!
//! # Adding a cause
//!
//! A cause is a variant of [`ErrorKind`] with the numbers that contradict each other.
//!
//! **Invariant:** a call that returns an error has learnt nothing and changed nothing, so the
//! controller can go on with the next step.

use nearfield_grid::memory::Shortage;

/// Why bricks, a plan, times, a policy or an emulated machine were refused;
/// [`kind`](Self::kind) tells the causes apart.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] ErrorKind);

impl Error {
    /// The cause, with the numbers.
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }
}

/// The causes for which bricks, a plan, times, a policy or an emulated machine are refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A brick of no cells.
    #[error("bricks of 0 cells along an edge hold nothing: use at least 1")]
    BrickEdge,
    /// No subregions.
    #[error("0 subregions were asked for: use at least 1, at best 32 or more")]
    NoSubregions,
    /// A cell coordinate outside the cells of a periodic axis.
    #[error(
        "cell {cell:?} is outside the {cells} cells of its periodic axis {axis}: wrap it into \
         0..{cells}"
    )]
    Cell {
        /// The cell.
        cell: [i64; 3],
        /// Axis: 0, 1 or 2.
        axis: usize,
        /// Cells along that axis.
        cells: i64,
    },
    /// A cell so far out that offsets to its neighbours could overflow.
    #[error("cell {cell:?} is farther than 2^60 cells from the origin")]
    FarCell {
        /// The cell.
        cell: [i64; 3],
    },
    /// Rows or periods that no lattice has.
    #[error("the neighbourhood of cells has {what}")]
    Neighbourhood {
        /// The contradiction, with the numbers.
        what: String,
    },
    /// Counts that do not fit.
    #[error("the cell or brick at {at:?} holds over 4,294,967,295 points: use smaller bricks")]
    TooManyPoints {
        /// Coordinates of the cell or brick.
        at: [i64; 3],
    },
    /// Another number of cuts than subregions.
    #[error("{cuts} cuts for {subregions} subregions: give one for each")]
    Cuts {
        /// Cuts given.
        cuts: usize,
        /// Subregions of the layout.
        subregions: usize,
    },
    /// Times of another number of subregions than were planned.
    #[error(
        "times of {cpu} subregions on the CPU and {gpu} on the GPU for a plan of {subregions}: \
         give one of each for every subregion"
    )]
    Times {
        /// Subregions with CPU times.
        cpu: usize,
        /// Subregions with GPU times.
        gpu: usize,
        /// Subregions planned.
        subregions: usize,
    },
    /// A span that runs backwards or is not finite.
    #[error(
        "{stage} of subregion {subregion} runs from {start_ms} to {end_ms} ms: times must \
         be finite and not run backwards"
    )]
    Span {
        /// The stage that was timed.
        stage: &'static str,
        /// Number of the subregion; that behind the last for what followed all of them.
        subregion: usize,
        /// Start, milliseconds.
        start_ms: f64,
        /// End, milliseconds.
        end_ms: f64,
    },
    /// Memory for a layout or a plan was refused.
    #[error(transparent)]
    Memory(#[from] Shortage),
    /// Options of a policy that contradict each other or mean nothing.
    #[error("policy {policy}: {what}")]
    Policy {
        /// Name of the policy.
        policy: &'static str,
        /// The contradiction, with the numbers.
        what: String,
    },
    /// A policy's name that is not understood.
    #[error("unknown policy \"{0}\": use model, band[:ALPHA:BETA], fraction or fixed:THETA")]
    UnknownPolicy(String),
    /// What subregions cannot have about as much of.
    #[error("subregions of equal {0:?} are unknown: use work or points")]
    UnknownEqual(String),
    /// A key of an emulated device that does not exist.
    #[error(
        "emulated device: unknown key \"{0}\"; there are speed, launch_us, bandwidth, memory_mib, \
         jitter, fail and seed, as in speed=8,jitter=0.05"
    )]
    UnknownKey(String),
    /// A key of an emulated device that is given twice.
    #[error("emulated device: {0} is given twice")]
    KeyTwice(String),
    /// A value that a key of an emulated device cannot have.
    #[error("emulated device: {key}={value} is not understood: {key} must be {must}")]
    KeyValue {
        /// The key.
        key: &'static str,
        /// The value given.
        value: String,
        /// The requirement.
        must: &'static str,
    },
}

impl From<Shortage> for Error {
    fn from(shortage: Shortage) -> Self {
        Self(shortage.into())
    }
}
