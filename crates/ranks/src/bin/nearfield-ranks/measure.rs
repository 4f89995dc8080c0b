//! `nearfield-ranks measure`: measures the parameters of the model of [`predict`](crate::predict).
//!
//! Steps of the engine on a jittered lattice at two sizes, with all messages counted, give the time
//! per point and per halo point, and the messages, bytes and reductions of a step. Messages of two
//! lengths give latency and bandwidth.

use crate::{Failure, check::ping, predict::Machine};
use nearfield::{Device, kernels::SphDensity};
use nearfield_dam_break::DeviceFlag;
use nearfield_ranks::{
    RankedEngine, gpus,
    transport::{
        Fault, Reduction, Tag, Transport,
        mpi::{Mpi, MpiTransport},
    },
};
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Search radius, in spacings of the lattice.
pub(crate) const RADIUS: f32 = 2.0;
/// Steps of each size; the first ones are not timed.
const STEPS: usize = 6;
/// Number of those.
const WARM: usize = 2;

/// The flags.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Points of each rank, in the larger of two sizes
    #[arg(long, value_name = "N", default_value = "1e6", value_parser = points)]
    points_per_rank: f64,

    #[command(flatten)]
    pub(crate) on: Hardware,

    /// The file of the machine
    #[arg(long, value_name = "FILE", default_value = "machine.json")]
    output: PathBuf,
}

/// The hardware of steps that are timed.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Hardware {
    /// Threads of each rank, 0 for an equal share of the cores
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,

    /// cpu, gpu[:N], hybrid[:N] or emulated[:key=value,…]; GPUs without a number are taken in turn
    #[arg(long, value_name = "DEVICE", default_value = "cpu", value_parser = device)]
    device: DeviceFlag,
}

/// Parses a device that does not change between steps.
fn device(text: &str) -> Result<DeviceFlag, String> {
    let flag: DeviceFlag = text
        .parse()
        .map_err(|error: nearfield::Error| error.to_string())?;
    if flag.device == Device::Auto {
        return Err(
            "auto takes a GPU in between two steps that are timed: name a device".to_owned(),
        );
    }
    Ok(flag)
}

/// The hardware of one rank.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    pub(crate) threads: usize,
    pub(crate) device: Device,
}

impl Hardware {
    /// The hardware of this rank. Collective.
    pub(crate) fn take(&self, transport: &mut MpiTransport) -> Result<Taken, Failure> {
        let gpu = gpus::in_turn(transport, self.device.any_gpu)?;
        Ok(Taken {
            threads: match self.threads {
                0 => crate::check::fair_threads(transport)?,
                threads => threads,
            },
            device: self.device.with(gpu.unwrap_or(0)),
        })
    }

    /// The name that the flag gave.
    pub(crate) fn name(&self) -> String {
        let device = self.device.device.to_string();
        match device.split_once(':') {
            Some((kind, _)) if self.device.any_gpu => kind.to_owned(),
            _ => device,
        }
    }
}

/// What a transport has counted.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    messages: u64,
    bytes: u64,
    reductions: u64,
    waiting: Duration,
}

/// A transport that counts.
struct Counted {
    inner: MpiTransport,
    counts: Arc<Mutex<Counts>>,
}

impl Counted {
    fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn timed<R>(&mut self, call: impl FnOnce(&mut MpiTransport) -> R) -> R {
        let begin = Instant::now();
        let result = call(&mut self.inner);
        let took = begin.elapsed();
        self.count(|counts| counts.waiting += took);
        result
    }
}

impl Transport for Counted {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn ranks(&self) -> usize {
        self.inner.ranks()
    }

    fn post(&mut self, to: usize, tag: Tag, message: Vec<u8>) -> Result<(), Fault> {
        self.count(|counts| {
            counts.messages += 1;
            counts.bytes += message.len() as u64;
        });
        self.inner.post(to, tag, message)
    }

    fn receive(&mut self, from: usize, tag: Tag) -> Result<Vec<u8>, Fault> {
        self.timed(|inner| inner.receive(from, tag))
    }

    fn poll(&mut self, from: usize, tag: Tag) -> Result<Option<Vec<u8>>, Fault> {
        self.inner.poll(from, tag)
    }

    fn fail(&mut self, fault: Fault) -> Fault {
        self.inner.fail(fault)
    }

    fn reduce(&mut self, values: &mut [f64], by: Reduction) -> Result<(), Fault> {
        self.count(|counts| counts.reductions += 1);
        self.timed(|inner| inner.reduce(values, by))
    }

    fn gather(&mut self, message: &[u8]) -> Result<Vec<Vec<u8>>, Fault> {
        self.timed(|inner| inner.gather(message))
    }
}

/// A step, as means over steps and ranks.
#[derive(Debug, Clone, Copy, Default, serde::Serialize)]
pub(crate) struct Step {
    /// Points of a rank.
    pub(crate) points: f64,
    /// Halo points of a rank.
    pub(crate) halo: f64,
    /// Seconds, and those that a rank waits in them.
    pub(crate) seconds: f64,
    pub(crate) waiting: f64,
    /// Messages of a rank, their bytes, and reductions.
    pub(crate) messages: f64,
    pub(crate) bytes: f64,
    pub(crate) reductions: f64,
}

/// Parses a number of points per rank.
pub(crate) fn points(text: &str) -> Result<f64, String> {
    let points = crate::count(text)?;
    if (1000.0..=1e9).contains(&points) {
        Ok(points)
    } else {
        Err("it must be from 1e3 to 1e9".to_owned())
    }
}

/// Measures steps with this number of points on each rank.
pub(crate) fn steps(mpi: &Mpi, points: f64, on: Taken) -> Result<Step, Failure> {
    let transport = mpi.transport();
    let transport = transport.map_err(|error| Failure::Shared(error.to_string()))?;
    measure(transport, points, on)
}

pub(crate) fn run(args: &Args, mpi: &Mpi, mut transport: MpiTransport) -> Result<String, Failure> {
    let on = args.on.take(&mut transport)?;
    let (rank, ranks) = (transport.rank(), transport.ranks());
    let (short, long) = (1, 1 << 22);
    let latency = ping(&mut transport, short)?;
    let rest = ping(&mut transport, long)? - latency;
    drop(transport);
    let mut steps = Vec::new();
    for points in [args.points_per_rank / 4.0, args.points_per_rank] {
        steps.push(self::steps(mpi, points, on)?);
    }
    let bandwidth = if rest > 0.0 {
        long as f64 / rest
    } else {
        f64::MAX
    };
    let messages = [latency, bandwidth];
    let mut machine = Machine::fit(ranks, on.threads, messages, [steps[0], steps[1]]);
    machine.device = args.on.name();
    let written = if rank == 0 {
        machine.write(&args.output)
    } else {
        Ok(())
    };
    written.map_err(|error| Failure::Shared(format!("{}: {error}", args.output.display())))?;
    Ok(machine.to_string())
}

/// Mean over steps with `points` points on each rank.
fn measure(transport: MpiTransport, points: f64, on: Taken) -> Result<Step, Failure> {
    let (rank, ranks) = (transport.rank(), transport.ranks());
    let counts = Arc::new(Mutex::new(Counts::default()));
    let counted = Counted {
        inner: transport,
        counts: counts.clone(),
    };
    let now = || *counts.lock().unwrap_or_else(PoisonError::into_inner);
    let side = (points * ranks as f64).cbrt().round() as usize;
    let slab = side.pow(3) * rank / ranks..side.pow(3) * (rank + 1) / ranks;
    let site = |number: usize| {
        let [x, y, z] = [number % side, number / side % side, number / side / side];
        let off = 0.1 * ((number as f64 * 0.618_034).fract() as f32);
        [x as f32 + off, y as f32 - off, z as f32 + off]
    };
    let mine: Vec<[f32; 3]> = slab.clone().map(site).collect();
    let ids: Vec<u64> = slab.map(|number| number as u64).collect();
    let mut engine: RankedEngine = RankedEngine::builder(RADIUS)
        .device(on.device)
        .threads(on.threads)
        .build(counted)?;
    let set = engine.add_point_set(&mine, Some(&ids))?;
    let mut mine = engine.migrate(set, &mine)?.bring(&mut engine, &mine)?;
    let kernel = SphDensity::with_support(RADIUS);
    let (mut begin, mut before) = (Instant::now(), now());
    for step in 0..STEPS {
        if step == WARM {
            engine.min(&mut [0.0])?;
            (begin, before) = (Instant::now(), now());
        }
        let moved = engine.migrate(set, &mine)?;
        mine = moved.bring(&mut engine, &mine)?;
        engine.find_neighbors()?;
        let masses = vec![1.0; mine.len()];
        engine.traverse(&kernel, set, set).sources(&masses).run()?;
    }
    let (seconds, after) = (begin.elapsed().as_secs_f64(), now());
    let [owned, halo] = engine.points(set)?;
    let steps = (STEPS - WARM) as f64;
    let mut sums = [
        owned as f64,
        halo as f64,
        seconds / steps,
        (after.waiting - before.waiting).as_secs_f64() / steps,
        (after.messages - before.messages) as f64 / steps,
        (after.bytes - before.bytes) as f64 / steps,
        (after.reductions - before.reductions) as f64 / steps,
    ];
    engine.sum(&mut sums)?;
    let [points, halo, seconds, waiting, messages, bytes, reductions] =
        sums.map(|sum| sum / ranks as f64);
    Ok(Step {
        points,
        halo,
        seconds,
        waiting,
        messages,
        bytes,
        reductions,
    })
}
