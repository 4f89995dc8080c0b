//! Molecular dynamics that embeds the Nearfield engine as a user would: Lennard-Jones atoms of up
//! to eight kinds with cut-off charges, forces by Newton's third law, lists with a skin, velocity
//! Verlet.
//!
//! ```
//! use nearfield::kernels::{Coefficients, LennardJones, Mixing, Truncation};
//! use nearfield_md::{Cell, ForceField, Options, Simulation, System};
//!
//! // A cubic crystal of argon, in units of its sigma, epsilon and mass.
//! let side = 6;
//! let positions = (0..side * side * side)
//!     .map(|k| [k % side, k / side % side, k / side / side].map(|x| 1.1 * x as f64))
//!     .collect();
//! let mut system = System::new(positions, Cell::cube(1.1 * side as f64)?)?;
//! system.heat(1.0, 7);
//!
//! let argon = Coefficients { epsilon: 1.0, sigma: 1.0 };
//! let pairs = LennardJones::new(&[argon], Mixing::default(), &[], 2.5, Truncation::ForceShift)?;
//! let options = Options { skin: 0.3, ..Options::default() };
//! let mut simulation = Simulation::new(system, ForceField::from(pairs), options)?;
//! let start = simulation.observe()?.total();
//! for _ in 0..20 {
//!     simulation.step(0.002)?;
//! }
//! let now = simulation.observe()?;
//! assert!((now.total() - start).abs() < 1e-4 * now.kinetic);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Units and precision
//!
//! Numbers may be in any consistent units: with σ, ε and the mass of an atom as units, times are in
//! σ√(m/ε) and temperatures in ε/k. Positions and velocities are `f64`; Pairs are found and
//! evaluated in `f32` from positions wrapped into the box, or in `f64` on the host
//! ([`Options::precision`]). Energies of atoms are summed in `f64`.
//!
//! # Deterministic
//!
//! A run on the CPU gives the same bits for any number of threads, also if it [resumes](Checkpoint)
//! from a checkpoint, because lists are rebuilt whenever one is written.

mod cell;
mod checkpoint;
#[doc(hidden)]
pub mod constants;
mod device;
mod double;
mod error;
mod evaluate;
mod file;
mod force_field;
mod host;
mod observe;
mod options;
mod simulation;
mod system;
mod trajectory;

pub use cell::Cell;
pub use checkpoint::Checkpoint;
pub use device::{DYNAMICS, programs};
pub use error::{Error, ErrorKind};
pub use evaluate::{Evaluation, Evaluator};
pub use file::{FieldFile, read_nist};
pub use force_field::ForceField;
pub use observe::{Drift, EnergyGuard, Observation};
pub use options::Options;
pub use simulation::Simulation;
pub use system::System;
pub use trajectory::Trajectory;
