//! The `nearfield-ranks` command, for ranks that MPI has started.
//!
//! `mpirun -n 4 nearfield-ranks check` tests whether ranks, messages and bits are right; use it
//! first. Only rank 0 prints. An error that all ranks share ends them in order, with exit code 1,
//! or 2 for wrong usage; a rank that is lost ends all at once by `MPI_Abort`.

mod check;
mod compare;
mod measure;
mod predict;

use clap::{Parser, Subcommand};
use nearfield::Device;
use nearfield_ranks::{
    dam_break,
    transport::{
        Fault, Transport,
        mpi::{Mpi, MpiTransport},
    },
};
use std::{
    fmt,
    io::{self, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::Duration,
};

/// Nearfield on the ranks of MPI.
#[derive(Debug, Parser)]
#[command(name = "nearfield-ranks", version)]
struct Command {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Prints where the ranks run, and checks messages and results
    Check(check::Args),
    /// Simulates a collapsing water column on all ranks and draws it
    DamBreak(Box<DamBreak>),
    /// Times messages and steps on these ranks, for predict
    Measure(measure::Args),
    /// Predicts weak and strong scaling on more ranks than there are
    Predict(predict::Args),
    /// Times steps on these ranks and compares them with predict
    Compare(compare::Args),
}

/// The dam break on the ranks of MPI.
#[derive(Debug, clap::Args)]
struct DamBreak {
    #[command(flatten)]
    args: dam_break::Args,

    /// Sends from GPU memory and receives into it, for which MPI must be CUDA-aware; with --device
    /// gpu [default: messages pass through page-locked memory of the host]
    #[arg(long, conflicts_with = "deterministic")]
    gpu_messages: bool,
}

/// Why a command failed on this rank.
#[derive(Debug)]
enum Failure {
    /// All ranks have failed for this reason.
    Shared(String),
    /// Wrong usage.
    Usage(String),
    /// A rank is lost to the others.
    Lost(Fault),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared(text) | Self::Usage(text) => f.write_str(text),
            Self::Lost(fault) => fault.fmt(f),
        }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Lost(fault)
    }
}

impl From<nearfield_ranks::Error> for Failure {
    fn from(error: nearfield_ranks::Error) -> Self {
        match error.kind() {
            nearfield_ranks::ErrorKind::Fault(fault) => Self::Lost(fault.clone()),
            _ => Self::Shared(error.to_string()),
        }
    }
}

impl From<nearfield_dam_break::Error> for Failure {
    fn from(error: nearfield_dam_break::Error) -> Self {
        match dam_break::fault(&error) {
            Some(fault) => Self::Lost(fault.clone()),
            None => Self::Shared(error.to_string()),
        }
    }
}

fn main() -> ExitCode {
    let mpi = match Mpi::start() {
        Ok(mpi) => mpi,
        Err(error) => {
            tell(error);
            return ExitCode::FAILURE;
        }
    };
    let transport = match mpi.transport() {
        Ok(transport) => transport,
        Err(error) => {
            tell(error);
            mpi.abort(1);
        }
    };
    let rank = transport.rank();
    let command = match Command::try_parse() {
        Ok(command) => command,
        Err(wrong) => {
            if rank == 0 {
                // A closed pipe takes no complaint either.
                wrong.print().ok();
            }
            return ExitCode::from(wrong.exit_code() as u8);
        }
    };
    let performed = catch_unwind(AssertUnwindSafe(|| perform(&command.task, &mpi, transport)));
    let Ok(performed) = performed else {
        end_all(&mpi, rank, &format!("rank {rank} panicked"));
    };
    match performed {
        Ok(text) if rank != 0 || print(&text).is_ok() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(Failure::Lost(fault)) => {
            end_all(&mpi, rank, &fault.to_string());
        }
        Err(failure) => {
            if rank == 0 {
                tell(&failure);
            }
            match failure {
                Failure::Usage(_) => ExitCode::from(2),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

/// Prints an error on standard error. If that is full or closed nothing else changes: in
/// particular, ranks that must end still do.
fn tell(what: impl fmt::Display) {
    writeln!(io::stderr(), "nearfield-ranks: {what}").ok();
}

/// Prints why all ranks end, and ends them. A launcher that has to end drops output that it has not
/// forwarded yet, so it gets some time for that.
fn end_all(mpi: &Mpi, rank: usize, reason: &str) -> ! {
    tell(format_args!("rank {rank} ends all ranks: {reason}"));
    thread::sleep(Duration::from_millis(200));
    mpi.abort(1)
}

/// A result as one JSON object.
fn json(result: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(result);
    text.map_err(|error| Failure::Shared(error.to_string()))
}

/// Parses a positive count, such as 20000 or 1e12.
fn count(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 1.0 && number.fract() == 0.0 => Ok(number),
        _ => Err("expected a whole number from 1 on, such as 20000 or 1e12".to_owned()),
    }
}

/// Prints the result of rank 0.
fn print(text: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{text}")
}

/// Runs a command on this rank; returns what rank 0 prints.
fn perform(task: &Task, mpi: &Mpi, transport: MpiTransport) -> Result<String, Failure> {
    match task {
        Task::Check(args) => check::run(args, mpi, transport),
        Task::DamBreak(args) => dam_break(args, transport),
        Task::Measure(args) => measure::run(args, mpi, transport),
        Task::Predict(args) => predict::run(args, transport.rank()),
        Task::Compare(args) => compare::run(args, mpi, transport),
    }
}

/// The file of a rank: `trace.jsonl` becomes `trace.rank3.jsonl`.
fn of_rank(path: &Path, rank: usize) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".rank{rank}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

fn dam_break(task: &DamBreak, mut transport: MpiTransport) -> Result<String, Failure> {
    let mut args = task.args.clone();
    let device = args.run.device.device;
    if task.gpu_messages && !matches!(device, Device::Gpu(_)) {
        return Err(Failure::Usage(format!(
            "--gpu-messages with --device {device}: take --device gpu, or a number such as gpu:1, \
             with which particles live on GPUs"
        )));
    }
    args.gpu_messages = task.gpu_messages;
    let threads = match args.run.threads {
        0 => check::fair_threads(&mut transport)?,
        threads => threads,
    };
    let rank = transport.rank();
    let clash_of = |args: &dam_break::Args| {
        let mut plan = nearfield_files::Plan::default();
        nearfield_dam_break::files(&args.run, &mut plan);
        plan.check().err().map(|clash| clash.to_string())
    };
    // Of the files as they were named, and of all ranks, because each has a trace of its own.
    let mut clash = clash_of(&args);
    if transport.ranks() > 1 {
        args.run.trace = args.run.trace.map(|path| of_rank(&path, rank));
        clash = clash.or_else(|| clash_of(&args));
    }
    let all = transport.gather(clash.unwrap_or_default().as_bytes())?;
    if let Some(clash) = all.iter().find(|clash| !clash.is_empty()) {
        return Err(Failure::Usage(String::from_utf8_lossy(clash).into_owned()));
    }
    let summary = dam_break::run(&args, threads, transport)?;
    if args.run.json {
        Ok(nearfield_dam_break::to_json(&summary)?)
    } else {
        Ok(summary.to_string())
    }
}
