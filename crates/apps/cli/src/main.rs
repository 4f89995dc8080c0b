//! The `nearfield` command: neighbour lists of particle files, benchmarks, and the dam break.
//!
//! Results go to standard output (one JSON object with `--json`), everything else to standard
//! error. Exit code 0, 1 for a failed run, 2 for wrong usage. No output may be an input: that is
//! checked before the first file is opened.

#![forbid(unsafe_code)]
// It panics where standard error is full: use `output::notice`.
#![deny(clippy::print_stderr)]

mod bench;
mod compare;
mod convert;
mod coulomb;
mod domain;
mod failure;
mod files;
mod gravity;
mod info;
mod input;
mod kernels;
mod lj;
mod near_radius;
mod neighbors;
mod options;
mod output;
mod precision;
mod progress;
mod scaling;
#[cfg(test)]
mod short_of_memory;
mod trace;
mod tune;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use failure::Failure;
use nearfield_dam_break as dam_break;
use nearfield_files::Plan;
#[cfg(not(test))]
use nearfield_files::ReserveAllocator;
use nearfield_trace::{Options, Recording};
use options::examples;
use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

/// Libraries that draw pictures end the process where memory is refused; see
/// [`nearfield_files::Reserve`].
#[cfg(not(test))]
#[global_allocator]
static MEMORY: ReserveAllocator = ReserveAllocator;

/// Fixed-radius neighbours of particles, fast and exact.
#[derive(Debug, Parser)]
#[command(name = "nearfield", version, propagate_version = true)]
struct Command {
    #[command(subcommand)]
    task: Task,
    /// Record where the time goes into a file, for nearfield trace
    #[arg(long, value_name = "FILE", global = true)]
    trace: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Lists processors, GPUs and libraries of this machine, and what the engine would use
    #[command(after_help = examples!("nearfield info --json"))]
    Info(info::Args),
    /// Finds the neighbours of all points of a file
    #[command(after_help = examples!("nearfield neighbors water.xyz --radius 3.5", "nearfield neighbors points.npy --radius 0.1 --box 1,1,1 --output lists.npz"))]
    Neighbors(neighbors::Args),
    /// Writes a particle file in another format
    #[command(after_help = examples!("nearfield convert run.lammpstrj.gz last.extxyz --frame last", "nearfield convert scan.pcd scan.npy"))]
    Convert(convert::Args),
    /// Energy, virial and forces of Lennard-Jones atoms with cut-off charges; with --steps, a run
    #[command(after_help = examples!("nearfield lj argon.xyz --cutoff 3 --steps 1000 --temperature 0.9 --output run"))]
    Lj(lj::Args),
    /// Times searches and traversals on a named cloud or a file
    #[command(after_help = examples!("nearfield bench lattice --points 1e5 --radius 2", "nearfield bench points.npy --radius 0.1 --work density"))]
    Bench(bench::Args),
    /// Compiles the GPU's kernels, for a cache or to check them
    #[command(subcommand)]
    Kernels(kernels::Task),
    /// Shows how the cost grows with the number of points
    #[command(after_help = examples!("nearfield scaling clusters --to 1e5 --work lists,count"))]
    Scaling(scaling::Args),
    /// Measures the gain from splitting a step between CPU and GPU, and where the policies settle
    #[command(after_help = examples!("nearfield tune pool-spray --points 1e5 --device emulated:speed=8"))]
    Tune(tune::Args),
    /// Simulates a collapsing water column and draws it
    #[command(after_help = examples!("nearfield dam-break --quick --output water"))]
    DamBreak(DamBreak),
    /// Moves bodies that attract each other
    #[command(after_help = examples!("nearfield gravity bodies.csv --steps 1000 --dt 0.001 --output run"))]
    Gravity(gravity::Args),
    /// Computes the electric potential of atoms at the points of a grid
    #[command(after_help = examples!("nearfield coulomb atoms.xyz --grid 64,64,64 --spacing 0.25 --output out.vti"))]
    Coulomb(coulomb::Args),
    /// Analyses a recorded trace: --trace FILE records one with any other command
    #[command(subcommand)]
    Trace(trace::Task),
}

/// The dam break on one engine, or on ranks.
#[derive(Debug, clap::Args)]
struct DamBreak {
    #[command(flatten)]
    args: nearfield_ranks::dam_break::Args,

    /// Ranks as threads of this process, each with a part of the particles [default: none, or one
    /// with --deterministic]
    #[arg(long, value_name = "N", value_parser = options::positive_count)]
    ranks: Option<usize>,
}

fn main() -> ExitCode {
    let command = match command() {
        Ok(command) => command,
        Err(refused) => return show(&refused),
    };
    match run(&command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            output::notice(&failure);
            ExitCode::from(failure.code())
        }
    }
}

/// The command line. A number behind a flag may be negative: what is wrong with it is then said of
/// the flag, not of a flag -1.
fn command() -> Result<Command, clap::Error> {
    fn negative_numbers(command: clap::Command) -> clap::Command {
        command
            .mut_args(|arg| {
                let named = arg.get_long().is_some() && arg.get_action().takes_values();
                if named && !arg.is_allow_hyphen_values_set() {
                    arg.allow_negative_numbers(true)
                } else {
                    arg
                }
            })
            .mut_subcommands(negative_numbers)
    }
    let matches = negative_numbers(<Command as CommandFactory>::command()).try_get_matches()?;
    Command::from_arg_matches(&matches)
}

/// Prints the help, the version, or the mistake in the command line. Requested text that cannot be
/// written is a failure.
fn show(reason: &clap::Error) -> ExitCode {
    let shown = reason.print().and_then(|()| io::stdout().flush());
    match shown.map_err(Failure::from) {
        Err(failure) if !reason.use_stderr() && !failure.is_closed_pipe() => {
            output::notice(&failure);
            ExitCode::from(failure.code())
        }
        _ => ExitCode::from(u8::try_from(reason.exit_code()).unwrap_or(2)),
    }
}

fn run(command: &Command) -> Result<(), Failure> {
    check_files(command)?;
    let recording = record(command)?;
    let done = perform(&command.task);
    match (&done, recording) {
        (Err(_), Some(recording)) => recording.abandon(),
        // Ends, and is complete, when it is dropped; a failure has been told when it happened.
        (_, recording) => drop(recording),
    }
    done
}

/// Refuses outputs that are inputs, and files that are named for two outputs; removes what killed
/// runs have left of them.
fn check_files(command: &Command) -> Result<(), Failure> {
    let mut plan = Plan::default();
    match &command.task {
        Task::Info(_) => {}
        Task::Neighbors(args) => args.files(&mut plan),
        Task::Convert(args) => args.files(&mut plan),
        Task::Lj(args) => args.files(&mut plan),
        Task::Bench(args) => args.files(&mut plan),
        Task::Kernels(task) => task.files(&mut plan),
        Task::Scaling(args) => args.files(&mut plan),
        Task::Tune(args) => args.files(&mut plan),
        Task::DamBreak(args) => dam_break::files(&args.args.run, &mut plan),
        Task::Gravity(args) => args.files(&mut plan),
        Task::Coulomb(args) => args.files(&mut plan),
        Task::Trace(task) => task.files(&mut plan),
    }
    match (&command.task, &command.trace) {
        // The dam break has the flag itself.
        (Task::DamBreak(_), _) | (_, None) => {}
        (_, Some(trace)) => plan.write("--trace", trace),
    }
    plan.check()?;
    plan.remove_leftovers();
    Ok(())
}

fn perform(task: &Task) -> Result<(), Failure> {
    match task {
        Task::Info(args) => info::run(args),
        Task::Neighbors(args) => neighbors::run(args),
        Task::Convert(args) => convert::run(args),
        Task::Lj(args) => lj::run(args),
        Task::Bench(args) => bench::run(args),
        Task::Kernels(task) => kernels::run(task),
        Task::Scaling(args) => scaling::run(args),
        Task::Tune(args) => tune::run(args),
        Task::DamBreak(args) => dam_break(args),
        Task::Gravity(args) => gravity::run(args),
        Task::Coulomb(args) => coulomb::run(args),
        Task::Trace(task) => trace::run(task),
    }
}

/// Starts to record a trace of the command, if `--trace` is given.
fn record(command: &Command) -> Result<Option<Recording>, Failure> {
    let Some(path) = &command.trace else {
        return Ok(None);
    };
    // The dam break has the flag itself, for its example.
    if let Task::DamBreak(_) = command.task {
        return Ok(None);
    }
    let options = Options::default().program("nearfield", env!("CARGO_PKG_VERSION"));
    Ok(Some(options.start(path)?))
}

fn dam_break(DamBreak { args, ranks }: &DamBreak) -> Result<(), Failure> {
    let ranks = ranks.or(args.deterministic.then_some(1));
    let summary = match ranks {
        Some(ranks) => nearfield_ranks::dam_break::run_on_threads(args, ranks)?,
        None => dam_break::run(&args.run)?,
    };
    output::print_lines([if args.run.json {
        dam_break::to_json(&summary)?
    } else {
        summary.to_string()
    }])
}
