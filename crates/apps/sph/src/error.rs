//! Errors of a simulation, with the numbers, the particle and the remedy.

use std::path::PathBuf;

use glam::Vec3;
use nearfield_grid::Value;

/// Why a simulation could not be built or had to stop; [`kind`](Self::kind) tells the causes apart.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(ErrorKind);

impl Error {
    /// The cause, with the numbers.
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }

    /// An error of the [neighbourhood](crate::Neighborhood) that the engine did not return.
    pub fn elsewhere(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(ErrorKind::Elsewhere(cause.into()))
    }

    /// The error for a rank number that is too large.
    pub(crate) fn no_such_rank(rank: usize) -> Self {
        Self(ErrorKind::Setting {
            name: "rank",
            value: rank as f64,
            wanted: "below the number of ranks",
        })
    }

    /// The particle that ended the run, if that is the cause.
    pub(crate) fn lost_mut(&mut self) -> Option<&mut LostParticle> {
        match &mut self.0 {
            ErrorKind::Lost(lost) => Some(lost),
            _ => None,
        }
    }
}

impl<T> From<T> for Error
where
    ErrorKind: From<T>,
{
    fn from(cause: T) -> Self {
        Self(cause.into())
    }
}

/// The causes for which a simulation could not be built or had to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A setting is out of range.
    #[error("{name} is {}, but must be {wanted}", Value::from(*.value))]
    Setting {
        /// Name of the setting.
        name: &'static str,
        /// The value given.
        value: f64,
        /// The values allowed.
        wanted: &'static str,
    },
    /// The scene holds no fluid.
    #[error("the scene holds no fluid particle: add some with SimulationBuilder::fluid")]
    NoFluid,
    /// Two arrays of the scene belong together and differ in length.
    #[error("{count} velocities were given for {particles} fluid particles: give one for each")]
    VelocityCount {
        /// Velocities given.
        count: usize,
        /// Fluid particles given.
        particles: usize,
    },
    /// A velocity or position of the scene is NaN or infinite.
    #[error("{what} of {set} particle {index} is {value}: every component must be finite")]
    NotFinite {
        /// "position" or "velocity".
        what: &'static str,
        /// "fluid" or "wall".
        set: &'static str,
        /// Index in the array given.
        index: usize,
        /// The value given.
        value: Vec3,
    },
    /// A two-dimensional scene has something off the plane z = 0.
    #[error("{what} {index} has z = {z}, but a two-dimensional scene lies in the plane z = 0")]
    OffPlane {
        /// The vector that is off the plane.
        what: &'static str,
        /// Its index in the array given.
        index: usize,
        /// Its z component.
        z: f32,
    },
    /// No particle has the id asked for.
    #[error("there is no particle {id}: ids run from 0 to {last}")]
    NoSuchParticle {
        /// The id asked for.
        id: u64,
        /// The largest id there is.
        last: u64,
    },
    /// A particle left the domain or its state is no longer a number; the run
    /// cannot go on.
    #[error(transparent)]
    Lost(Box<LostParticle>),
    /// The neighbour engine refused.
    #[error("neighbour engine: {0}")]
    Engine(#[from] nearfield::Error),
    /// The neighbourhood refused for reasons of its own, such as a lost rank.
    #[error("{0}")]
    Elsewhere(Box<dyn std::error::Error + Send + Sync>),
    /// A checkpoint could not be written or read, or is none.
    #[error("checkpoint {}: {reason}", path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// The message of the operating system, or what is wrong with the contents.
        reason: String,
    },
    /// A frame could not be written.
    #[error(transparent)]
    Write(#[from] nearfield_io::Error),
}

/// The particle that ended a run, as it was when it was found.
#[derive(Debug, thiserror::Error)]
#[error(
    "particle {id} {reason} at step {step}, t = {time:.6} s (position {position}, velocity \
     {velocity}; {count} such particles{}): use a smaller Courant number or a larger domain",
    evidence_note(.evidence)
)]
pub struct LostParticle {
    /// Id of the particle: its index in the fluid positions given at first.
    pub id: u64,
    /// Kind of the loss.
    pub reason: Loss,
    /// Where it is, metres.
    pub position: Vec3,
    /// Its velocity, m/s.
    pub velocity: Vec3,
    /// How many particles are lost in the same step, this one included.
    pub count: usize,
    /// The step in which it was found.
    pub step: u64,
    /// Simulated time of that step, seconds.
    pub time: f64,
    /// The frame that shows all particles at that moment, or why it could not
    /// be written; `None` when the simulation was not given a path for it.
    pub evidence: Option<Result<PathBuf, String>>,
}

/// Kind of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Its position, velocity or compression is NaN or infinite.
    NotANumber,
    /// It is outside the domain.
    LeftDomain,
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotANumber => "is no longer a number",
            Self::LeftDomain => "left the domain",
        })
    }
}

fn evidence_note(evidence: &Option<Result<PathBuf, String>>) -> String {
    match evidence {
        None => String::new(),
        Some(Ok(path)) => format!("; see {}", path.display()),
        Some(Err(reason)) => format!("; its frame could not be written: {reason}"),
    }
}

impl From<nearfield_grid::Error> for ErrorKind {
    fn from(source: nearfield_grid::Error) -> Self {
        Self::Engine(source.into())
    }
}

impl From<nearfield_grid::memory::Shortage> for ErrorKind {
    fn from(shortage: nearfield_grid::memory::Shortage) -> Self {
        Self::Engine(shortage.into())
    }
}

impl From<nearfield::error::gpu::Error> for ErrorKind {
    fn from(error: nearfield::error::gpu::Error) -> Self {
        Self::Engine(nearfield::ErrorKind::Gpu(error).into())
    }
}
