//! The dam break on ranks: the solver of `nearfield-sph` with its particles on many ranks, as
//! threads of this process or on any [transport](crate::transport).
//!
//! All ranks describe the scene and keep a share of it. Rank 0 gathers frames and tables and writes
//! them, so the files are those of one rank. With [`Args::deterministic`] they have the same bytes
//! on any number of ranks: sums over neighbours are taken by ascending id, and sums over particles
//! are [exact](crate::ExactSum).
//!
//! If the device of all ranks is a GPU, the particles stay there, and only particles and fields
//! that cross borders and a few numbers per step come to the host.

mod neighborhood;
mod on_gpus;
mod whole;

use nearfield::Device;
use nearfield_dam_break::{Error, ErrorKind, Setup, Summary};
use nearfield_sph::{DeviceNeighborhood, Neighborhood};
use std::{num::NonZero, thread};

use crate::{
    ExactSum, RankedBuilder, RankedEngine,
    device::DeviceRankedEngine,
    error::{self, Refusal},
    gpus,
    transport::{Fault, Reduction, Transport, threads},
};
use neighborhood::{RankSum, Ranked};
use on_gpus::OnGpus;

/// Maximum number of ranks of one process; an engine has as many threads at most.
const MAX_THREADS: usize = 4096;

/// The flags of the dam break on ranks.
#[derive(clap::Args, Clone, Debug, Default, PartialEq)]
pub struct Args {
    /// The flags of the dam break on one engine.
    #[command(flatten)]
    pub run: nearfield_dam_break::Args,

    /// The same bytes on any number of ranks; sums take longer
    #[arg(long)]
    pub deterministic: bool,

    /// Whether messages are sent from the memory of GPUs and received into it; see
    /// [`RankedBuilder::gpu_messages`].
    #[arg(skip)]
    pub gpu_messages: bool,
}

/// Simulates the dam break on this rank, with `threads` threads. Collective; every rank returns the
/// summary, and rank 0 writes the files.
///
/// # Errors
/// As [`nearfield_dam_break::run`], the same on all ranks. If a rank cannot continue, the others
/// get a [`Fault`], which [`fault`] finds.
pub fn run<T: Transport + 'static>(
    args: &Args,
    threads: usize,
    mut transport: T,
) -> Result<Summary, Error> {
    let setup = Setup::new(&args.run, transport.rank(), transport.ranks());
    let setup = agree(&mut transport, setup)?;
    let gpu = gpus::in_turn(&mut transport, args.run.device.any_gpu);
    let gpu = gpu.map_err(|fault| solver(error::Error::from(fault)))?;
    let device = args.run.device.with(gpu.unwrap_or(0));
    let builder = RankedEngine::builder(setup.radius());
    let builder = builder.device(device).threads(threads);
    let builder = builder.strategy(args.run.strategy).policy(args.run.policy);
    let builder = builder.deterministic(args.deterministic);
    let builder = builder.gpu_messages(args.gpu_messages);
    if args.deterministic {
        build::<ExactSum, T>(setup, builder, transport)
    } else if on_gpus(&mut transport, device)? {
        setup.run(|scene| {
            scene.build_on_gpus(OnGpus::new(DeviceRankedEngine::start(builder, transport)?))
        })
    } else {
        build::<f64, T>(setup, builder, transport)
    }
}

/// Simulates the dam break with `ranks` ranks as threads of this process, which share its cores
/// unless a number of threads per rank is given.
///
/// # Errors
/// As [`run`].
pub fn run_on_threads(args: &Args, ranks: usize) -> Result<Summary, Error> {
    if !(1..=MAX_THREADS).contains(&ranks) {
        let (name, value) = ("ranks", ranks as f64);
        let wanted = "from 1 to 4096 as threads of one process";
        return Err(ErrorKind::Setting {
            name,
            value,
            wanted,
        }
        .into());
    }
    let threads = match args.run.threads {
        0 => (cores() / ranks).max(1),
        threads => threads,
    };
    // A process has one recording, which holds what all its threads do.
    let mut without_trace = args.clone();
    without_trace.run.trace = None;
    let outcomes = threads::run(ranks, |transport| {
        let own = if transport.rank() == 0 {
            args
        } else {
            &without_trace
        };
        run(own, threads, transport)
    });
    let outcomes = outcomes.into_iter().map(|outcome| match outcome {
        Ok(outcome) => outcome,
        Err(lost) => Err(solver(error::Error::from(lost))),
    });
    // The first error that does not follow from another one.
    let mut first: Option<Result<Summary, Error>> = None;
    for outcome in outcomes {
        let cause = matches!(&outcome, Err(error) if fault(error).is_none());
        match &first {
            None => first = Some(outcome),
            Some(Err(error)) if fault(error).is_none() => {}
            Some(Ok(_)) if outcome.is_err() => first = Some(outcome),
            Some(Err(_)) if cause => first = Some(outcome),
            Some(_) => {}
        }
    }
    first.unwrap_or_else(|| Err(solver("no rank has run")))
}

/// The neighbourhood of an SPH solver on this rank, for scenes of a program's own; pass it to
/// [`nearfield_sph::SimulationBuilder::build_on`]. Sums over particles do not depend on the number
/// of ranks; those over neighbours do not if the engine is
/// [deterministic](RankedBuilder::deterministic).
pub fn neighborhood(engine: RankedEngine) -> impl Neighborhood + 'static {
    Ranked::<ExactSum>::new(engine)
}

/// The neighbourhood of an SPH solver whose particles are on the GPUs of the ranks; pass it to
/// [`nearfield_sph::SimulationBuilder::build_on_gpus`]. Sums depend on the number of ranks.
pub fn neighborhood_on_gpus(engine: DeviceRankedEngine) -> impl DeviceNeighborhood + 'static {
    OnGpus::new(engine)
}

/// Returns true if the device of all ranks is a GPU; particles are then there. Collective.
fn on_gpus<T: Transport>(transport: &mut T, device: Device) -> Result<bool, Error> {
    let mut all = [f64::from(u8::from(matches!(device, Device::Gpu(_))))];
    let reduced = transport.reduce(&mut all, Reduction::Min);
    reduced.map_err(|fault| solver(error::Error::from(fault)))?;
    Ok(all[0] == 1.0)
}

/// Cores that this process may use.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// The fault that an error stands for, if it is one.
pub fn fault(error: &Error) -> Option<&Fault> {
    let ErrorKind::Solver(error) = error.kind() else {
        return None;
    };
    let nearfield_sph::ErrorKind::Elsewhere(cause) = error.kind() else {
        return None;
    };
    match cause.downcast_ref::<error::Error>()?.kind() {
        error::ErrorKind::Fault(fault) => Some(fault),
        _ => None,
    }
}

/// An error from outside the dam break.
fn solver(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    ErrorKind::Solver(nearfield_sph::Error::elsewhere(cause)).into()
}

/// Returns `local` if all ranks have succeeded, and otherwise the error of this rank or of the
/// lowest rank that has one.
fn agree<T: Transport, R>(transport: &mut T, local: Result<R, Error>) -> Result<R, Error> {
    let message = match &local {
        Ok(_) => Vec::new(),
        Err(error) => Refusal::new(error).to_bytes(),
    };
    let all = transport.gather(&message);
    let all = all.map_err(|fault| solver(error::Error::from(fault)))?;
    let refused = all.iter().position(|message| !message.is_empty());
    match (local, refused) {
        (Ok(_), Some(rank)) => Err(solver(Refusal::read(rank, &all[rank]))),
        (local, _) => local,
    }
}

/// Builds and runs the simulation with one kind of sums.
fn build<S: RankSum, T: Transport + 'static>(
    setup: Setup<'_>,
    engine: RankedBuilder,
    transport: T,
) -> Result<Summary, Error> {
    setup.run(|builder| builder.build_on(Ranked::<S>::new(engine.build(transport)?)))
}
