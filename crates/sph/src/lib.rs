//! A weakly compressible SPH solver built on Nearfield
//!
mod budget;
mod builder;
mod config;
mod error;
mod guard;
mod kernel;
mod particles;
mod passes;
pub mod scene;
mod search;
mod simulation;
mod state;
mod time_step;
mod walls;

pub use budget::{Energy, Momentum};
pub use builder::SimulationBuilder;
pub use config::{Config, Dimensions, Domain};
pub use error::{Error, Loss, LostParticle};
pub use kernel::Wendland;
pub use simulation::{Simulation, StepReport};
pub use state::Tait;
#[cfg(feature = "dam-break")]
pub mod dam_break;
