//! Bodies that attract each other: gravity with G = 1, summed over all pairs by
//! [`nearfield::all_pairs::AllPairs`] on a CPU, a GPU or both.
//!
//! ```
//! use nearfield_nbody::{Bodies, Options, Simulation};
//!
//! // Two bodies of mass 1 on a circle of diameter 1 around each other.
//! let speed = 0.5f64.sqrt();
//! let bodies = Bodies {
//!     masses: vec![1.0, 1.0],
//!     positions: vec![[-0.5, 0.0, 0.0], [0.5, 0.0, 0.0]],
//!     velocities: vec![[0.0, -speed, 0.0], [0.0, speed, 0.0]],
//! };
//! let options = Options { time_step: 1e-3, ..Options::default() };
//! let mut simulation = Simulation::new(bodies, options)?;
//! let before = simulation.energy()?.total();
//! simulation.run(1000)?;
//! assert!((simulation.energy()?.total() - before).abs() < 1e-6);
//! # Ok::<(), nearfield_nbody::Error>(())
//! ```
//!
//! * [`Bodies`] are read from tables and particle files by [`read_bodies`].
//! * A [`Simulation`] moves them by a symplectic [`Integrator`], and returns energy and momentum.
//! * [`Simulation::save`] and [`Simulation::restore`] write and read checkpoints. A restored run
//!   continues with the same bits as an uninterrupted one.
//! * [`write_snapshot`] and [`draw`] write bodies to files and pictures.

#![forbid(unsafe_code)]

mod bodies;
mod checkpoint;
mod error;
mod integrator;
mod picture;
mod read;
mod simulation;
mod snapshot;
mod trails;

pub use bodies::Bodies;
pub use error::{Error, ErrorKind};
pub use integrator::{Integrator, ParseIntegratorError};
pub use picture::{Moment, Story, draw};
pub use read::{BodiesFile, MAX_NAMED, read_bodies, read_bodies_file};
pub use simulation::{Energy, Options, Simulation};
pub use snapshot::write_snapshot;
pub use trails::Trails;
