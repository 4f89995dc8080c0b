//! Pair kernels as users write them, each beside a plain loop over neighbour lists.
//!
//! ```sh
//! cargo bench -p nearfield --bench kernels -- [KERNEL…] [--device cpu|gpu] [--simd avx2]
//! ```
//!
//! A figure is nanoseconds per directed pair on the threads named (one by default); `µs` on a GPU
//! are of a whole call with data on the host. The columns:
//!
//! - *engine*: the kernel as it is written, places and sums, as the engine chooses;
//! - *in place*, *packed*: the same with [`PairKernel::PACKED`] set either way;
//! - *loop*: lists of the engine, then a loop over them on one thread by the compiler's default
//!   instructions, as a program that only asks for lists has it;
//! - *per operation*: the cost of a pair divided by the kernel's operations, relative to the
//!   built-in density. Operations are counted in the translation for GPUs (see [`operations`]).
//!
//! All columns are medians of runs that take turns, so a busy machine changes them together.

#[path = "kernels/fluids.rs"]
mod fluids;
#[path = "kernels/particles.rs"]
mod particles;

use clap::Parser;
use nearfield::{
    Engine, Error, PointSetId,
    kernels::{Field, SphDensity, cuda_source},
    prelude::*,
    report::SimdLevel,
};
use nearfield_testkit::{Cloud, random::Random};
use std::{hint::black_box, time::Instant};

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
struct Forced<'a, K, const PACKED: bool>(&'a K);

impl<K: PairKernel, const PACKED: bool> PairKernel for Forced<'_, K, PACKED> {
    type Target = K::Target;
    type Source = K::Source;
    type Output = K::Output;
    const REDUCE: Reduce = K::REDUCE;
    const PACKED: bool = PACKED;

    #[inline(always)]
    fn pair(&self, pair: Pair, target: K::Target, source: K::Source) -> K::Output {
        self.0.pair(pair, target, source)
    }
}

/// The points and what kernels read of them.
struct Bench {
    options: Options,
    engine: Engine,
    set: PointSetId,
    positions: Vec<[f32; 3]>,
    values: Vec<[f32; CHANNELS]>,
    /// Cost of a pair of the built-in density, per operation.
    unit: Option<f64>,
    ratios: Vec<(String, f64, f64)>,
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
    let values = (0..cloud.len())
        .map(|_| std::array::from_fn(|_| 0.5 + 0.5 * random.unit() as f32))
        .collect();
    let mut bench = Bench {
        options,
        engine,
        set,
        positions: cloud,
        values,
        unit: None,
        ratios: Vec::new(),
    };
    println!("| kernel | engine | in place | packed | loop | loop / engine | per operation |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let radius = bench.options.radius;
    bench.time("density (built in)", &SphDensity::with_support(radius))?;
    fluids::all(&mut bench, radius)?;
    particles::all(&mut bench, radius)?;
    bench.summary();
    Ok(())
}

impl Bench {
    /// Times a kernel and prints its row.
    fn time<K: PairKernel>(&mut self, name: &str, kernel: &K) -> Result<(), Error> {
        let named = &self.options.kernels;
        let density = self.unit.is_none();
        if !named.is_empty() && !density && !named.iter().any(|k| name.starts_with(k.as_str())) {
            return Ok(());
        }
        self.engine.find_neighbors()?;
        let pairs = self.engine.neighbors(self.set, self.set)?.pairs() as f64;
        let mut times = [const { Vec::new() }; 4];
        for _ in 0..self.options.repetitions {
            times[0].push(self.step(kernel)?);
            times[1].push(self.step(&Forced::<K, false>(kernel))?);
            times[2].push(self.step(&Forced::<K, true>(kernel))?);
            times[3].push(self.by_lists(kernel)?);
        }
        let [engine, in_place, packed, by_lists] = times.map(|mut times: Vec<f64>| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2] * 1e9 / pairs
        });
        let each = engine / operations(kernel);
        let unit = *self.unit.get_or_insert(each);
        let (gain, relative) = (by_lists / engine, each / unit);
        println!(
            "| {name} | {engine:.2} | {in_place:.2} | {packed:.2} | {by_lists:.2} | {gain:.2} | {relative:.2} |"
        );
        self.ratios.push((name.to_owned(), gain, relative));
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
        // The data live as long as the process.
        let bytes: &'static [u8] = {
            let values: &[f32] = self.values.as_flattened();
            // SAFETY: floats have no padding; nothing changes or frees the values before the end.
            unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
        };
        let stride = CHANNELS * size_of::<f32>();
        Ok(vec![Field::strided(
            bytes,
            0,
            stride,
            self.values.len(),
            channels,
        )?])
    }

    /// Prints the medians and what is out of line.
    fn summary(&self) {
        let own = self.ratios.get(1..).unwrap_or_default();
        let mut gains: Vec<f64> = own.iter().map(|row| row.1).collect();
        gains.sort_by(f64::total_cmp);
        let Some(median) = gains.get(gains.len() / 2) else {
            return;
        };
        println!(
            "\nMedian of loop / engine: {median:.2}, smallest {:.2}.",
            gains[0]
        );
        let dear = own.iter().filter(|row| row.2 > 1.5);
        let dear: Vec<String> = dear.map(|row| format!("{} {:.2}", row.0, row.2)).collect();
        println!(
            "More than 1.5 times the built-in density per operation: {}.",
            dear.join(", ")
        );
    }
}

/// Arithmetic operations of a pair, distance and sums included, as the text for GPUs has them:
/// roots and quotients count 4, exponentials and powers 16.
fn operations<K: PairKernel>(kernel: &K) -> f64 {
    let text = cuda_source(kernel).unwrap_or_default();
    let count = |name: &str| text.matches(name).count() as f64;
    let plain = [
        " + ", " - ", " * ", " < ", " > ", " <= ", " >= ", "fmaf(", "fmaxf(", "fminf(",
    ];
    let plain: f64 = plain.iter().map(|name| count(name)).sum();
    let roots = count("sqrt") + count(" / ") + count("rsqrt") + count("fast_div");
    let powers = count("expf(") + count("powf(") + count("sinf(") + count("cosf(");
    8.0 + K::Output::COUNT as f64 + plain + 4.0 * roots + 16.0 * powers
}
