//! `nearfield-ranks check`: tests ranks, messages and bits.
//!
//! It lists the machines, times messages, and compares lists and sums of all ranks with those of
//! one engine on rank 0.

use crate::Failure;
use nearfield::{Engine, ListOrder, kernels::SphDensity};
use nearfield_ranks::{
    RankedEngine,
    transport::{
        Tag, Transport,
        mpi::{Mpi, MpiTransport},
    },
};
use serde::Serialize;
use std::{collections::BTreeMap, num::NonZero, thread, time::Instant};

/// Points of the check along each axis.
const SIDE: usize = 16;
/// Their search radius; they are 1 apart.
const RADIUS: f32 = 1.9;
/// Messages of the check.
const PING: Tag = Tag(Tag::FIRST_FREE + 200);
/// Round trips of short and of long messages.
const ROUNDS: usize = 200;
/// Bytes of a long message.
const LONG: usize = 1 << 20;

/// The flags.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,

    /// Let this rank panic, to test that all others end
    #[arg(long, value_name = "RANK")]
    panic: Option<usize>,
}

/// The outcome.
#[derive(Debug, Serialize)]
struct Report {
    library: String,
    ranks: usize,
    /// Ranks by machine.
    hosts: BTreeMap<String, Vec<usize>>,
    /// Threads of a rank by default.
    threads: usize,
    /// A message of one byte from one rank to another, microseconds; 0 on one rank.
    latency_us: f64,
    /// Long messages, megabytes a second; 0 on one rank.
    megabytes_per_second: f64,
    points: usize,
    pairs: u64,
}

/// Threads for each rank, so that no core is used twice: the cores of this rank's mask, divided by
/// the ranks of this machine with the same mask.
pub(crate) fn fair_threads(transport: &mut MpiTransport) -> Result<usize, Failure> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find(|line| line.starts_with("Cpus_allowed:"));
    let own = format!("{}\n{}", Mpi::host(), mask.unwrap_or_default());
    let all = transport.gather(own.as_bytes())?;
    let sharing = all.iter().filter(|one| **one == own.as_bytes()).count();
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    Ok((cores / sharing.max(1)).max(1))
}

pub(crate) fn run(args: &Args, _: &Mpi, mut transport: MpiTransport) -> Result<String, Failure> {
    let (rank, ranks) = (transport.rank(), transport.ranks());
    if let Some(victim) = args.panic {
        assert!(
            rank != victim,
            "rank {rank} panics, as it was told by --panic"
        );
    }
    let names = transport.gather(Mpi::host().as_bytes())?;
    let mut hosts: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (rank, name) in names.iter().enumerate() {
        let name = String::from_utf8_lossy(name).into_owned();
        hosts.entry(name).or_default().push(rank);
    }
    let threads = fair_threads(&mut transport)?;
    let latency = ping(&mut transport, 1)?;
    let long = ping(&mut transport, LONG)?;
    let pairs = compare(transport, threads)?;
    let report = Report {
        library: Mpi::library(),
        ranks,
        hosts,
        threads,
        latency_us: 1e6 * latency,
        megabytes_per_second: if long > 0.0 {
            LONG as f64 / long / 1e6
        } else {
            0.0
        },
        points: SIDE.pow(3),
        pairs,
    };
    if args.json {
        return crate::json(&report);
    }
    let hosts = report.hosts.iter();
    let hosts: Vec<String> = hosts
        .map(|(name, ranks)| format!("{name}: {} ranks", ranks.len()))
        .collect();
    Ok(format!(
        "{}\n{} ranks with {} threads each on {}\nmessages take {:.1} µs, long ones go at {:.0} MB/s\n\
         lists and sums of {} points ({} pairs) have the bits of one engine",
        report.library,
        ranks,
        report.threads,
        hosts.join(", "),
        report.latency_us,
        report.megabytes_per_second,
        report.points,
        report.pairs
    ))
}

/// The time in seconds of a message of `bytes` bytes from rank 0 to the last: half of a round trip.
pub(crate) fn ping(transport: &mut MpiTransport, bytes: usize) -> Result<f64, Failure> {
    let (rank, last) = (transport.rank(), transport.ranks() - 1);
    let rounds = if bytes > 1000 { ROUNDS / 10 } else { ROUNDS };
    let mut least = f64::INFINITY;
    for _ in 0..rounds {
        let begin = Instant::now();
        if last == 0 {
            return Ok(0.0);
        } else if rank == 0 {
            transport.post(last, PING, vec![1; bytes])?;
            transport.receive(last, PING)?;
        } else if rank == last {
            let message = transport.receive(0, PING)?;
            transport.post(0, PING, message)?;
        }
        least = least.min(begin.elapsed().as_secs_f64() / 2.0);
    }
    Ok(least)
}

/// Points of a jittered lattice.
fn points() -> Vec<[f32; 3]> {
    let off = |number: usize, step: f64| (0.2 * (number as f64 * step).fract()) as f32;
    let sites = 0..SIDE.pow(3);
    let point = |number: usize| {
        let [x, y, z] = [number % SIDE, number / SIDE % SIDE, number / SIDE / SIDE];
        [
            x as f32 + off(number, 0.618_034),
            y as f32 + off(number, 0.414_214),
            z as f32 + off(number, 0.732_051),
        ]
    };
    sites.map(point).collect()
}

/// Compares lists and sums with those of one engine on every rank; returns the number of pairs.
fn compare(transport: MpiTransport, threads: usize) -> Result<u64, Failure> {
    let wrong = |error: nearfield::Error| Failure::Shared(error.to_string());
    let points = points();
    let mut one = Engine::builder(RADIUS)
        .threads(threads)
        .list_order(ListOrder::Ascending)
        .build()
        .map_err(wrong)?;
    let set = one.add_point_set(&points).map_err(wrong)?;
    one.find_neighbors().map_err(wrong)?;
    let lists = one.neighbors(set, set).map_err(wrong)?;
    let kernel = SphDensity::with_support(RADIUS);
    let masses = vec![1.0; points.len()];
    let traversal = one.traverse(&kernel, set, set).sources(&masses);
    let sums = traversal.over_lists().run().map_err(wrong)?;

    let builder = RankedEngine::builder(RADIUS).threads(threads);
    let mut ranked: RankedEngine = builder.deterministic(true).build(transport)?;
    // Dealt out like cards: most points are given by another rank than their owner.
    let mine: Vec<usize> = (ranked.rank()..points.len())
        .step_by(ranked.ranks())
        .collect();
    let ids: Vec<u64> = mine.iter().map(|at| *at as u64).collect();
    let own: Vec<[f32; 3]> = mine.iter().map(|at| points[*at]).collect();
    let ranked_set = ranked.add_point_set(&own, Some(&ids))?;
    ranked.find_neighbors()?;
    let found = ranked.lists_by_id(ranked_set, ranked_set)?;
    let traversal = ranked.traverse(&kernel, ranked_set, ranked_set);
    let values = traversal.sources(&vec![1.0; own.len()]).run()?;
    let differs = mine.iter().enumerate().find(|(k, at)| {
        let list = lists.of(**at).iter().map(|j| u64::from(*j));
        !found.of(*k).iter().copied().eq(list) || values[*k].to_bits() != sums[**at].to_bits()
    });
    let mut first = [differs.map_or(f64::INFINITY, |(_, at)| *at as f64)];
    ranked.min(&mut first)?;
    if first[0] != f64::INFINITY {
        return Err(Failure::Shared(format!(
            "point {} has another list or sum than in one engine",
            first[0]
        )));
    }
    let mut pairs = [found.ids.len() as f64];
    ranked.sum(&mut pairs)?;
    Ok(pairs[0] as u64)
}
