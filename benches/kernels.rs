//! Pair kernels as users write them, each beside a plain loop over neighbour lists.
//!
//! ```sh
//! cargo bench -p nearfield --bench kernels -- [KERNEL…] [--device cpu|gpu] [--simd avx2]
//! ```
//!
//! A figure is nanoseconds per directed pair: of a whole step, divided by the number of pairs, on
//! one thread unless `--threads` says otherwise. On a GPU the data are the host's. The columns:
//!
//! - *engine*: the kernel as it is written, places and sums, as the engine chooses;
//! - *in place*, *packed*: the same with [`PairKernel::PACKED`] set either way;
//! - *loop*: lists of the engine, then a loop over them on one thread by the compiler's default
//!   instructions, as a program that only asks for lists has it.
//!
//! All columns are medians of runs that take turns, so a busy machine changes them together.

#[path = "kernels/fluids.rs"]
mod fluids;
#[path = "kernels/particles.rs"]
mod particles;

use clap::Parser;
use nearfield::{
    Engine, Error, PointSetId,
    kernels::{Cuda, Field, SphDensity},
    prelude::*,
    report::SimdLevel,
};
use nearfield_testkit::{Cloud, random::Random};
use std::{hint::black_box, time::Instant};

/// The name of the kernel that comes with the library.
const BUILT_IN: &str = "density (built in)";
/// Channels of the data that all kernels read the first few of.
const CHANNELS: usize = 8;

#[derive(Parser)]
struct Options {
    /// Kernels to run, by the beginning of their names; all by default.
    kernels: Vec<String>,
    #[arg(long, default_value = "cpu")]
    device: Device,
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Vector level of the CPU: scalar, avx2, avx512 or neon; the widest by default.
    #[arg(long)]
    simd: Option<String>,
    #[arg(long, default_value_t = 9)]
    repetitions: usize,
    #[arg(long, default_value_t = 27_000.0)]
    points: f64,
    /// Cut-off in spacings of the lattice.
    #[arg(long, default_value_t = 2.6)]
    radius: f32,
    #[arg(long, hide = true)]
    bench: bool,
}

/// A kernel with [`PairKernel::PACKED`] set.
#[repr(transparent)]
struct Forced<K, const PACKED: bool>(K);

impl<K, const PACKED: bool> Forced<K, PACKED> {
    /// The kernel itself and not a pointer to it, which would be evaluated less well.
    fn of(kernel: &K) -> &Self {
        // SAFETY: the structs have one representation.
        unsafe { &*std::ptr::from_ref(kernel).cast() }
    }
}

impl<K: PairKernel, const PACKED: bool> PairKernel for Forced<K, PACKED> {
    type Target = K::Target;
    type Source = K::Source;
    type Output = K::Output;
    const REDUCE: Reduce = K::REDUCE;
    const PACKED: bool = PACKED;

    #[inline(always)]
    fn pair(&self, pair: Pair, target: K::Target, source: K::Source) -> K::Output {
        self.0.pair(pair, target, source)
    }

    fn cuda(&self) -> Option<Cuda> {
        self.0.cuda()
    }
}

/// The points and what kernels read of them.
struct Bench {
    options: Options,
    engine: Engine,
    set: PointSetId,
    positions: Vec<[f32; 3]>,
    /// As long as the process, like the fields made of them.
    values: &'static [[f32; CHANNELS]],
    /// How much longer lists and a loop took, for every kernel but the built-in one.
    gains: Vec<f64>,
}

fn main() -> Result<(), Error> {
    let options = Options::parse();
    let cloud = Cloud::Lattice.points(options.points as usize, 1);
    let mut builder = Engine::builder(options.radius)
        .device(options.device)
        .threads(options.threads);
    if let Some(name) = &options.simd {
        let level = SimdLevel::available()
            .iter()
            .find(|level| level.name() == name);
        let Some(&level) = level else {
            panic!("this processor has no level {name}");
        };
        builder = builder.simd(level);
    }
    let mut engine = builder.build()?;
    let set = engine.add_point_set(&cloud)?;
    let mut random = Random::new(7);
    let values: Vec<_> = (0..cloud.len())
        .map(|_| std::array::from_fn(|_| 0.5 + 0.5 * random.unit() as f32))
        .collect();
    let mut bench = Bench {
        options,
        engine,
        set,
        positions: cloud,
        values: values.leak(),
        gains: Vec::new(),
    };
    println!("| kernel | engine | in place | packed | loop | loop / engine |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let radius = bench.options.radius;
    bench.time(BUILT_IN, &SphDensity::with_support(radius))?;
    fluids::all(&mut bench, radius)?;
    particles::all(&mut bench, radius)?;
    bench.summary();
    Ok(())
}

impl Bench {
    /// Times a kernel and prints its row.
    fn time<K: PairKernel>(&mut self, name: &str, kernel: &K) -> Result<(), Error> {
        let named = &self.options.kernels;
        if !named.is_empty() && !named.iter().any(|k| name.starts_with(k.as_str())) {
            return Ok(());
        }
        self.engine.find_neighbors()?;
        let pairs = self.engine.neighbors(self.set, self.set)?.pairs() as f64;
        let mut times = [const { Vec::new() }; 4];
        for _ in 0..self.options.repetitions.max(1) {
            times[0].push(self.step(kernel)?);
            times[1].push(self.step(Forced::<K, false>::of(kernel))?);
            times[2].push(self.step(Forced::<K, true>::of(kernel))?);
            times[3].push(self.by_lists(kernel)?);
        }
        let [engine, in_place, packed, by_lists] = times.map(|mut times: Vec<f64>| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2] * 1e9 / pairs
        });
        let gain = by_lists / engine;
        println!(
            "| {name} | {engine:.2} | {in_place:.2} | {packed:.2} | {by_lists:.2} | {gain:.2} |"
        );
        if name != BUILT_IN {
            self.gains.push(gain);
        }
        Ok(())
    }

    /// Seconds that placing the points and summing over pairs take.
    fn step<K: PairKernel>(&mut self, kernel: &K) -> Result<f64, Error> {
        let targets = self.field(K::Target::COUNT)?;
        let sources = self.field(K::Source::COUNT)?;
        let begin = Instant::now();
        self.engine.update(self.set, &self.positions)?;
        let sums = (self.engine.traverse(kernel, self.set, self.set))
            .targets(targets.as_slice())
            .sources(sources.as_slice())
            .run()?;
        black_box(sums);
        Ok(begin.elapsed().as_secs_f64())
    }

    /// Seconds that placing the points, finding lists and a loop over them take.
    fn by_lists<K: PairKernel>(&mut self, kernel: &K) -> Result<f64, Error> {
        let begin = Instant::now();
        self.engine.update(self.set, &self.positions)?;
        self.engine.find_neighbors()?;
        let lists = self.engine.neighbors(self.set, self.set)?;
        let sums: Vec<K::Output> = (0..self.positions.len())
            .map(|i| self.sum(kernel, i, lists.of(i)))
            .collect();
        black_box(sums);
        Ok(begin.elapsed().as_secs_f64())
    }

    /// The sum of one point over its list.
    fn sum<K: PairKernel>(&self, kernel: &K, i: usize, neighbors: &[u32]) -> K::Output {
        let mut sums = [K::REDUCE.identity(); 16];
        let target = K::Target::read(|k| self.values[i][k]);
        for &j in neighbors {
            let j = j as usize;
            let (a, b) = (self.positions[i], self.positions[j]);
            let d = [b[0] - a[0], b[1] - a[1], b[2] - a[2]];
            let d2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
            let source = K::Source::read(|k| self.values[j][k]);
            let value = kernel.pair(Pair { d, d2 }, target, source);
            value.write(|k, value| sums[k] = K::REDUCE.combine(sums[k], value));
        }
        K::Output::read(|k| sums[k])
    }

    /// The first channels of the data.
    fn field(&self, channels: usize) -> Result<Vec<Field<'static>>, Error> {
        if channels == 0 {
            return Ok(Vec::new());
        }
        let bytes = bytemuck::cast_slice(self.values);
        let stride = CHANNELS * size_of::<f32>();
        Ok(vec![Field::strided(
            bytes,
            0,
            stride,
            self.values.len(),
            channels,
        )?])
    }

    /// Prints the median and the smallest gain.
    fn summary(&mut self) {
        self.gains.sort_by(f64::total_cmp);
        if let Some(median) = self.gains.get(self.gains.len() / 2) {
            let least = self.gains[0];
            println!("\nMedian of loop / engine: {median:.2}, smallest {least:.2}.");
        }
    }
}
