//! The `nearfield` command: neighbour lists of particle files, benchmarks, and the dam break.
//!
//! Results go to standard output (one JSON object with `--json`), everything else to standard
//! error. Exit code 0, 1 for a failed run, 2 for wrong usage.

mod bench;
mod compare;
mod domain;
mod failure;
mod info;
mod kernels;
mod machine;
mod neighbors;
mod options;
mod output;
mod scaling;

use clap::{Parser, Subcommand};
use failure::Failure;
use nearfield_sph::dam_break;
use std::process::ExitCode;

/// Fixed-radius neighbours of particles, fast and exact.
#[derive(Debug, Parser)]
#[command(name = "nearfield", version, propagate_version = true)]
struct Command {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Says what this machine offers and what the engine would use
    Info(info::Args),
    /// Finds the neighbours of all points of a file
    Neighbors(neighbors::Args),
    /// Times searches and traversals on a named cloud or a file
    Bench(bench::Args),
    /// Compiles the GPU's kernels, for a cache or to check them
    #[command(subcommand)]
    Kernels(kernels::Task),
    /// Shows how the cost grows with the number of points
    Scaling(scaling::Args),
    /// Simulates a collapsing water column and draws it
    DamBreak(dam_break::Args),
}

fn main() -> ExitCode {
    let command = Command::parse();
    let done = match command.task {
        Task::Info(args) => info::run(&args),
        Task::Neighbors(args) => neighbors::run(&args),
        Task::Bench(args) => bench::run(&args),
        Task::Kernels(task) => kernels::run(&task),
        Task::Scaling(args) => scaling::run(&args),
        Task::DamBreak(args) => dam_break(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("nearfield: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn dam_break(args: &dam_break::Args) -> Result<(), Failure> {
    let summary = dam_break::run(args)?;
    let text = match args.json {
        true => dam_break::to_json(&summary)?,
        false => summary.to_string(),
    };
    output::print_lines([text])
}
