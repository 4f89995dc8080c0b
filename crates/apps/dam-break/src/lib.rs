//! Dam breaks: the collapse of a water column, whose front is compared with experiments, or a scene
//! from a file with obstacles and probes.
//!
//! A [`Scene`] describes the tank, the water and the physics. [`Scene::column`] is the classic case
//! of Martin & Moyce 1952: a column one wide and two high in the end of a tank four long. [`run`]
//! simulates a scene with [`nearfield_sph`] and writes particles, pictures, an animation, tables
//! and a plot into a directory; [`execute`] also prints the results. [`Args`] are the command-line
//! flags of both the example and the `nearfield dam-break` command.
//!
//! The front is computed, not fitted. An ideal front on a smooth floor runs ahead of the
//! experiments, whose gates and floors slow the water down. So the water here has a small viscosity
//! and the floor some friction, both the same at every resolution. Only these two numbers were
//! chosen with regard to the experiments. The front is the place with a fixed volume of water ahead
//! of it, so it does not depend on the resolution. `docs/physics.md` has the figures,
//! `summary.json` the largest deviation from every experiment.

mod args;
mod error;
mod frames;
mod journal;
mod names;
mod notes;
mod output;
mod page;
pub mod picture;
mod pieces;
mod probes;
mod reference;
mod run;
mod scene;
mod summary;
mod units;

pub use args::{Args, DeviceFlag, count};
pub use error::{Error, ErrorKind};
pub use reference::{BAND, Comparison, Experiment, FROM_T, Point, TO_Z, experiments};
pub use run::{Setup, files, run, to_json};
pub use scene::{Block, HEIGHT, Probe, Probes, Scene, TANK, WIDTH};
pub use summary::{EnergySummary, FrontSummary, ProbesSummary, SpreadSummary, Summary};

use std::{io::Write, path::Path};

/// Runs the dam break and prints its summary: one JSON object with `--json`,
/// a few lines otherwise.
///
/// # Errors
/// As [`run`].
pub fn execute(args: &Args) -> Result<(), Error> {
    let summary = run(args)?;
    let text = if args.json {
        to_json(&summary)?
    } else {
        summary.to_string()
    };
    writeln!(std::io::stdout(), "{text}")
        .map_err(|error| Error::output(Path::new("standard output"), error))
}
