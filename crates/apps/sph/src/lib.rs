//! A weakly compressible SPH solver built on Nearfield.
//!
//! Smoothed particle hydrodynamics for violent free-surface flows of water, in
//! the plane and in space: a [`Config`] holds the physics and numerics,
//! [`Simulation::builder`] takes fluid and wall particles, and
//! [`Simulation::step`] advances them. The solver embeds the neighbour engine as
//! any program would: two point sets, one update per step, and fused
//! traversals with kernels of its own, no neighbour list stored.
//!
//! ```
//! use nearfield_sph::{Config, Dimensions, Simulation, scene, scene::Top};
//!
//! // A dam of 0.5 m × 1 m in a tank 2 m long.
//! let (plane, spacing) = (Dimensions::Two, 0.05);
//! let mut simulation = Simulation::builder(Config::water(plane, spacing, 1.0))
//!     .fluid(&scene::block(plane, [0, 0, 0], [10, 20, 0], spacing)?)
//!     .walls(&scene::tank(plane, [40, 40, 0], Top::Open, 3, spacing)?)
//!     .build()?;
//! let start = simulation.energy()?.total();
//! while simulation.time() < 0.1 {
//!     simulation.step()?;
//! }
//! let drift = simulation.energy()?.total() / start - 1.0;
//! assert!(drift.abs() < 1e-3);
//! # Ok::<(), nearfield_sph::Error>(())
//! ```
//!
//! # What it computes
//!
//! * Wendland's C2 kernel ([`Wendland`]) and Tait's equation of state ([`Tait`]),
//!   without negative pressures.
//! * Density from the continuity equation with diffusion (Molteni & Colagrossi
//!   2009, Fourtakas et al. 2019), pressure forces in the form that conserves
//!   energy with it, artificial viscosity (Monaghan 1992).
//! * Walls of resting particles whose pressure is extrapolated from the fluid
//!   (Adami, Hu & Adams 2012, DOI 10.1016/j.jcp.2012.05.005); smooth ones let it
//!   slip, rough ones hold it by friction.
//! * Kick–drift–kick steps under acoustic, force and viscous limits.
//!
//! # What callers can rely on
//!
//! * Mass is exact: particles neither change nor get lost. A particle that
//!   leaves the [`Domain`] or is no longer a number stops the run with an error
//!   that names it, and a frame that shows it.
//! * [`Energy`] and [`Momentum`] account for everything that goes in and out;
//!   their residuals are the errors of time step and rounding.
//! * Particle arrays are in single precision; time, budgets and sums in double.
//! * The same scene gives the same run, bit for bit, whatever the number of
//!   threads.
//!
//! The crate `nearfield-dam-break` is a complete program on top of this solver,
//! with pictures and a comparison with experiments.

mod advance;
mod body;
mod budget;
mod builder;
mod checkpoint;
mod config;
#[doc(hidden)]
pub mod constants;
mod device;
mod error;
mod front;
mod guard;
mod host;
mod kernel;
mod matter;
mod moment;
mod neighborhood;
mod particles;
mod parts;
mod passes;
mod probes;
mod running;
pub mod scene;
mod simulation;
mod space;
mod state;
mod time_step;
mod walls;

pub use budget::{Energy, Momentum};
pub use builder::SimulationBuilder;
pub use checkpoint::Checkpoint;
pub use config::Config;
pub use device::{DeviceArrays, DeviceNeighborhood, FLUID, programs};
pub use error::{Error, ErrorKind, Loss, LostParticle};
pub use front::FrontRule;
pub use kernel::Wendland;
pub use moment::{Moment, PendingMoment};
pub use neighborhood::{Accumulator, Arrays, Column, Neighborhood, Set, Spread, Whole};
pub use probes::{ProbeColumn, Probes, Readings};
pub use running::Running;
pub use simulation::{Simulation, StepReport};
pub use space::{Dimensions, Domain};
pub use state::Tait;
