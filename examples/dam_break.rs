//! A dam breaks: water collapses in a tank, simulated by the SPH solver that
//! rides on the neighbour engine.
//!
//! `cargo run --release --example dam_break` takes half a minute and leaves
//! particles for ParaView, pictures, an animation and a plot of the front
//! against experiments in `./dam_break`. Try `-- --dim 2`, `-- --quick` or
//! `-- --help`.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use nearfield_dam_break::{Args, execute};
use nearfield_files::ReserveAllocator;

/// Libraries that draw pictures end the process where memory is refused.
#[global_allocator]
static MEMORY: ReserveAllocator = ReserveAllocator;

#[derive(Parser)]
#[command(name = "dam_break", about)]
struct Cli {
    #[command(flatten)]
    args: Args,
}

fn main() -> ExitCode {
    match execute(&Cli::parse().args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Unlike eprintln!, this does not panic where standard error is full.
            writeln!(io::stderr(), "error: {error}").ok();
            ExitCode::FAILURE
        }
    }
}
