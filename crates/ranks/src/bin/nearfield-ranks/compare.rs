//! `nearfield-ranks compare`: compares predictions of [`predict`](crate::predict) with
//! measurements.
//!
//! The steps are those of [`measure`](crate::measure), on the ranks there are, with sizes and
//! numbers of ranks that the machine file was not made from. Halo points, messages and bytes depend
//! only on the ranks. Times are meaningful only if each thread has a core of its own.

use crate::{
    Failure,
    measure::{self, Hardware, Step},
    predict::{Machine, Row},
};
use nearfield_ranks::transport::{
    Transport,
    mpi::{Mpi, MpiTransport},
};
use serde::Serialize;
use std::{fmt::Write, path::PathBuf};

/// The flags.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file that measure wrote
    #[arg(long, value_name = "FILE")]
    machine: PathBuf,

    /// Points of each rank, one or more numbers
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1e6",
        value_parser = measure::points)]
    points_per_rank: Vec<f64>,

    #[command(flatten)]
    on: Hardware,

    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

/// A measured step, and its prediction.
#[derive(Debug, Serialize)]
struct Pair {
    measured: Step,
    predicted: Row,
}

/// The outcome.
#[derive(Debug, Serialize)]
struct Comparison {
    ranks: usize,
    threads: usize,
    device: String,
    steps: Vec<Pair>,
}

pub(crate) fn run(args: &Args, mpi: &Mpi, mut transport: MpiTransport) -> Result<String, Failure> {
    // Rank 0 reads the file, and all have to know whether it could.
    let (rank, ranks) = (transport.rank(), transport.ranks());
    let machine = (rank == 0).then(|| Machine::read(&args.machine));
    let refused = match &machine {
        Some(Err(text)) => text.clone(),
        _ => String::new(),
    };
    let refused = transport.gather(refused.as_bytes())?;
    if !refused[0].is_empty() {
        let text = String::from_utf8_lossy(&refused[0]);
        return Err(Failure::Shared(text.into_owned()));
    }
    let on = args.on.take(&mut transport)?;
    drop(transport);
    let mut measured = Vec::new();
    for points in &args.points_per_rank {
        measured.push(measure::steps(mpi, *points, on)?);
    }
    let Some(Ok(machine)) = machine else {
        return Ok(String::new());
    };
    let number = ranks as f64;
    let steps = measured.into_iter().map(|measured| Pair {
        predicted: machine.predict(measured.points * number, number),
        measured,
    });
    let comparison = Comparison {
        ranks,
        threads: on.threads,
        device: args.on.name(),
        steps: steps.collect(),
    };
    if args.json {
        return crate::json(&comparison);
    }
    Ok(table(&comparison))
}

/// A table with each measured number and the predicted one divided by it.
fn table(comparison: &Comparison) -> String {
    let (ranks, threads, device) = (comparison.ranks, comparison.threads, &comparison.device);
    let mut text = format!(
        "{ranks} ranks of {threads} threads on {device}: measured, and predicted / measured\n\
         {:>12} {:>10} {:>6} {:>12} {:>6} {:>9} {:>6} {:>12} {:>6}",
        "points/rank", "s/step", "", "halo/rank", "", "messages", "", "bytes", ""
    );
    for Pair {
        measured,
        predicted,
    } in &comparison.steps
    {
        // A String takes all that is written into it.
        let _ = write!(
            text,
            "\n{:>12.3e} {:>10.4} {:>6} {:>12.3e} {:>6} {:>9.1} {:>6} {:>12.3e} {:>6}",
            measured.points,
            measured.seconds,
            ratio(predicted.step_seconds, measured.seconds),
            measured.halo,
            ratio(predicted.halo_points_per_rank, measured.halo),
            measured.messages,
            ratio(predicted.messages, measured.messages),
            measured.bytes,
            ratio(predicted.bytes, measured.bytes),
        );
    }
    text
}

/// The predicted number divided by the measured one, which may be 0.
fn ratio(predicted: f64, measured: f64) -> String {
    if measured == 0.0 {
        return "-".to_owned();
    }
    format!("{:.2}", predicted / measured)
}
