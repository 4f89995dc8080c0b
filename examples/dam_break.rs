//! A dam breaks: water collapses in a tank, simulated by the SPH solver that
//! rides on the neighbour engine.
//!
//! `cargo run --release --example dam_break` takes half a minute and leaves
//! particles for ParaView, pictures, an animation and a plot of the front
//! against experiments in `./dam_break`. Try `-- --dim 2`, `-- --quick` or
//! `-- --help`.

use std::process::ExitCode;

use clap::Parser;
use nearfield_sph::dam_break::{self, Args};

#[derive(Parser)]
#[command(name = "dam_break", about)]
struct Cli {
    #[command(flatten)]
    args: Args,
}

fn main() -> ExitCode {
    match dam_break::execute(&Cli::parse().args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
