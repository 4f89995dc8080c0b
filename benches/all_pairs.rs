//! Sums over all pairs: gravity and direct Coulomb summation on a grid, on the CPU and the GPU.
//!
//! `cargo bench -p nearfield --bench all_pairs -- [--quick] [--cpu] [--gpu]`. The GPU's rates are
//! those of the kernels, by CUDA events; `with transfers` is a whole call. Medians. Beside every
//! rate stands the largest error of some results against the same sum in `f64`, relative to the sum
//! of the terms' absolute values.

use nearfield::{
    Device, Engine,
    all_pairs::{AllPairs, Arithmetic, PairSum, PairSumSettings, Real, SampleGrid, Sources},
    report::SimdLevel,
};
use nearfield_gpu::{AllPairsScratch, GpuBackend, PointsPerThread};
use nearfield_testkit::random::Random;
use std::{error::Error, time::Instant};

/// Results whose error is looked at.
const SAMPLES: usize = 24;

struct Sizes {
    /// Bodies on the GPU, and fewer where the arithmetic is slow.
    bodies: usize,
    slow_bodies: usize,
    /// Bodies on the CPU.
    cpu_bodies: usize,
    /// Points along x and y of a slice, and atoms, on the GPU.
    slice: [usize; 2],
    atoms: usize,
    /// The same on the CPU.
    cpu_slice: [usize; 2],
    cpu_atoms: usize,
    repetitions: usize,
}

const FULL: Sizes = Sizes {
    bodies: 262_144,
    slow_bodies: 65_536,
    cpu_bodies: 16_384,
    slice: [4096, 4096],
    atoms: 8192,
    cpu_slice: [1024, 64],
    cpu_atoms: 4096,
    repetitions: 7,
};

const QUICK: Sizes = Sizes {
    bodies: 8192,
    slow_bodies: 2048,
    cpu_bodies: 2048,
    slice: [512, 64],
    atoms: 1024,
    cpu_slice: [256, 16],
    cpu_atoms: 512,
    repetitions: 3,
};

fn main() -> Result<(), Box<dyn Error>> {
    let flags: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| flags.iter().any(|one| one == flag);
    let known = ["--bench", "--quick", "--cpu", "--gpu"];
    if let Some(flag) = flags.iter().find(|flag| !known.contains(&flag.as_str())) {
        return Err(format!("unknown flag {flag}: there are --quick, --cpu and --gpu").into());
    }
    let sizes = if has("--quick") { QUICK } else { FULL };
    if !has("--gpu") {
        on_cpu(&sizes)?;
    }
    if !has("--cpu") {
        match GpuBackend::new(0) {
            Ok(backend) => on_gpu(&backend, &sizes)?,
            Err(error) => println!("no GPU: {error}"),
        }
    }
    Ok(())
}

/// Bodies in a cube, all of a mass or of different ones.
fn bodies<T: Real>(count: usize, alike: bool) -> (Vec<[T; 3]>, Vec<T>) {
    let mut random = Random::new(1);
    let at = (0..count)
        .map(|_| [0; 3].map(|_| T::of(random.between(-1.0, 1.0))))
        .collect();
    let mass = |n: usize| {
        if alike {
            1.0
        } else {
            0.5 + (n % 16) as f64 / 16.0
        }
    };
    (
        at,
        (0..count).map(|n| T::of(mass(n) / count as f64)).collect(),
    )
}

/// A slice of points and charges of either sign around it.
fn slice<T: Real>([x, y]: [usize; 2], atoms: usize) -> (SampleGrid, Vec<[T; 3]>, Vec<T>) {
    let grid = SampleGrid {
        dims: [x, y, 1],
        spacing: 0.05,
        origin: [0.0; 3],
    };
    let mut random = Random::new(2);
    let wide = [0.05 * x as f64, 0.05 * y as f64];
    let at = |random: &mut Random| {
        [
            random.between(0.0, wide[0]),
            random.between(0.0, wide[1]),
            random.between(-5.0, 5.0),
        ]
        .map(T::of)
    };
    let positions = (0..atoms).map(|_| at(&mut random)).collect();
    (
        grid,
        positions,
        (0..atoms)
            .map(|_| T::of(random.between(-1.0, 1.0)))
            .collect(),
    )
}

/// Largest error of some results.
fn worst<T: Real>(
    settings: PairSumSettings<T>,
    target: impl Fn(usize) -> [T; 3],
    sources: Sources<'_, T>,
    results: &[T],
) -> f64 {
    let components = settings.sum.components();
    let targets = results.len() / components;
    let mut most = 0.0f64;
    for n in (0..SAMPLES).map(|n| n * 7919 % targets) {
        let (mut sum, mut terms) = ([0.0; 3], 0.0);
        let at = target(n).map(T::double);
        for (source, weight) in sources.points.iter().zip(sources.weights) {
            let d: [f64; 3] = std::array::from_fn(|axis| source[axis].double() - at[axis]);
            let d2 = d.iter().map(|d| d * d).sum::<f64>() + settings.softening.double().powi(2);
            if d2 == 0.0 {
                continue;
            }
            let weight = weight.double();
            let (factors, term) = match settings.sum {
                PairSum::Potential => ([1.0 / d2.sqrt(), 0.0, 0.0], weight / d2.sqrt()),
                PairSum::Pull => (d.map(|d| d / (d2 * d2.sqrt())), weight / d2),
            };
            (0..3).for_each(|axis| sum[axis] += weight * factors[axis]);
            terms += term.abs();
        }
        for c in 0..components {
            most = most.max((results[n * components + c].double() - sum[c]).abs() / terms);
        }
    }
    most
}

/// Prints a line of the table.
fn line(what: &str, pairs: f64, seconds: f64, error: f64) {
    let rate = pairs / seconds;
    let (rate, unit) = if rate < 1e12 {
        (rate * 1e-9, "G/s")
    } else {
        (rate * 1e-12, "T/s")
    };
    println!(
        "{what:58} {rate:9.3} {unit} {:10.3} ms   error {error:.1e}",
        seconds * 1e3
    );
}

/// Median of what `work` says it took.
fn median<E>(repetitions: usize, mut work: impl FnMut() -> Result<f64, E>) -> Result<f64, E> {
    work()?;
    let mut times = (0..repetitions)
        .map(|_| work())
        .collect::<Result<Vec<_>, E>>()?;
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

fn settings<T: Real>(sum: PairSum, arithmetic: Arithmetic, softening: f64) -> PairSumSettings<T> {
    PairSumSettings {
        sum,
        arithmetic,
        softening: T::of(softening),
    }
}

fn name<T: Real>(settings: PairSumSettings<T>) -> String {
    let exact = if settings.arithmetic == Arithmetic::Exact {
        " exact"
    } else {
        ""
    };
    format!("{}{exact}", T::NAME)
}

fn on_cpu(sizes: &Sizes) -> Result<(), Box<dyn Error>> {
    let report = Engine::all_pairs().device(Device::Cpu).build()?.report();
    println!("CPU, {} threads, {}", report.threads, report.simd.name());
    if let Some(limit) = IssueLimit::of(report.simd, report.threads) {
        limit.compare(sizes)?;
    }
    for arithmetic in [Arithmetic::Fast, Arithmetic::Exact] {
        gravity_on_cpu::<f32>(sizes, arithmetic)?;
        coulomb_on_cpu::<f32>(sizes, arithmetic)?;
        gravity_on_cpu::<f64>(sizes, arithmetic)?;
        coulomb_on_cpu::<f64>(sizes, arithmetic)?;
    }
    Ok(())
}

/// How fast these threads issue vector instructions, and what sums make of it.
struct IssueLimit {
    threads: usize,
}

impl IssueLimit {
    /// Numbers of a vector.
    const LANES: f64 = 16.0;

    /// `None` for levels whose instructions are not counted here.
    fn of(simd: SimdLevel, threads: usize) -> Option<Self> {
        (simd == SimdLevel::Avx512).then_some(Self { threads })
    }

    /// Vector instructions of floating point per second on all threads: multiply-adds that wait for
    /// nothing.
    fn measure(&self) -> f64 {
        const ROUNDS: u32 = 2_000_000;
        const CHAINS: u32 = 12;
        let begin = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..self.threads {
                scope.spawn(|| multiply_add(ROUNDS));
            }
        });
        f64::from(ROUNDS * CHAINS) * self.threads as f64 / begin.elapsed().as_secs_f64()
    }

    /// Prints how close sums come, in turn with the measurement: others may use the same cores. A
    /// vector of pairs takes 17 instructions of floating point for gravity and 8 for a row of a
    /// grid, as compiled. The root counts as two, because it is issued half as often.
    fn compare(&self, sizes: &Sizes) -> Result<(), Box<dyn Error>> {
        let (at, masses) = bodies::<f32>(sizes.cpu_bodies, true);
        let mut pull = vec![[0.0; 3]; at.len()];
        let (grid, atoms, charges) = slice::<f32>(sizes.cpu_slice, sizes.cpu_atoms);
        let sources = Sources {
            points: &atoms,
            weights: &charges,
        };
        let mut potentials = vec![0.0; grid.len()];
        let mut sums = cpu(Arithmetic::Fast)?;
        let (mut gravity, mut coulomb, mut limits) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..sizes.repetitions {
            let limit = self.measure() * Self::LANES;
            limits.push(limit / Self::LANES);
            let begin = Instant::now();
            sums.gravity_into(&at, &masses, 0.01, &mut pull)?;
            let rate = (at.len() as f64).powi(2) / begin.elapsed().as_secs_f64();
            gravity.push(17.0 * rate / limit);
            let begin = Instant::now();
            let rows = 0..grid.rows();
            sums.coulomb_rows(&grid, rows, sources, 0.0, &mut potentials)?;
            let pairs = grid.len() as f64 * atoms.len() as f64;
            coulomb.push(8.0 * pairs / begin.elapsed().as_secs_f64() / limit);
        }
        for all in [&mut gravity, &mut coulomb, &mut limits] {
            all.sort_by(f64::total_cmp);
        }
        let middle = sizes.repetitions / 2;
        println!(
            "{:.2} G vector instructions/s; of that limit gravity reaches {:.0} %, Coulomb {:.0} %",
            limits[middle] / 1e9,
            100.0 * gravity[middle],
            100.0 * coulomb[middle]
        );
        Ok(())
    }
}

/// Twelve independent multiply-adds of zeros, repeated `rounds` times.
#[cfg(target_arch = "x86_64")]
fn multiply_add(rounds: u32) {
    use std::arch::{asm, x86_64::_mm512_setzero_ps};
    assert!(SimdLevel::Avx512.is_available());

    #[target_feature(enable = "avx512f")]
    fn go(rounds: u32) {
        let zero = _mm512_setzero_ps();
        // SAFETY: the registers that are written are said to be.
        unsafe {
            asm!(
                "2:",
                "vfmadd213ps {a}, {zero}, {zero}",
                "vfmadd213ps {b}, {zero}, {zero}",
                "vfmadd213ps {c}, {zero}, {zero}",
                "vfmadd213ps {d}, {zero}, {zero}",
                "vfmadd213ps {e}, {zero}, {zero}",
                "vfmadd213ps {f}, {zero}, {zero}",
                "vfmadd213ps {g}, {zero}, {zero}",
                "vfmadd213ps {h}, {zero}, {zero}",
                "vfmadd213ps {i}, {zero}, {zero}",
                "vfmadd213ps {j}, {zero}, {zero}",
                "vfmadd213ps {k}, {zero}, {zero}",
                "vfmadd213ps {l}, {zero}, {zero}",
                "sub {rounds:e}, 1",
                "jnz 2b",
                rounds = inout(reg) rounds => _,
                zero = in(zmm_reg) zero,
                a = inout(zmm_reg) zero => _,
                b = inout(zmm_reg) zero => _,
                c = inout(zmm_reg) zero => _,
                d = inout(zmm_reg) zero => _,
                e = inout(zmm_reg) zero => _,
                f = inout(zmm_reg) zero => _,
                g = inout(zmm_reg) zero => _,
                h = inout(zmm_reg) zero => _,
                i = inout(zmm_reg) zero => _,
                j = inout(zmm_reg) zero => _,
                k = inout(zmm_reg) zero => _,
                l = inout(zmm_reg) zero => _,
                options(nomem, nostack),
            );
        }
    }
    // SAFETY: asserted.
    unsafe { go(rounds) }
}

#[cfg(not(target_arch = "x86_64"))]
fn multiply_add(_: u32) {}

fn cpu(arithmetic: Arithmetic) -> Result<AllPairs, nearfield::Error> {
    Engine::all_pairs()
        .device(Device::Cpu)
        .arithmetic(arithmetic)
        .build()
}

fn gravity_on_cpu<T: Real>(sizes: &Sizes, arithmetic: Arithmetic) -> Result<(), Box<dyn Error>> {
    let (at, masses) = bodies::<T>(sizes.cpu_bodies, true);
    let mut pull = vec![[T::default(); 3]; at.len()];
    let mut sums = cpu(arithmetic)?;
    let seconds = median(sizes.repetitions, || {
        let begin = Instant::now();
        sums.gravity_into(&at, &masses, T::of(0.01), &mut pull)?;
        Ok::<f64, nearfield::Error>(begin.elapsed().as_secs_f64())
    })?;
    let of = settings::<T>(PairSum::Pull, arithmetic, 0.01);
    let sources = Sources {
        points: &at,
        weights: &masses,
    };
    let error = worst(of, |n| at[n], sources, pull.as_flattened());
    let what = format!("gravity, {} bodies, {}", at.len(), name(of));
    line(&what, (at.len() as f64).powi(2), seconds, error);
    Ok(())
}

fn coulomb_on_cpu<T: Real>(sizes: &Sizes, arithmetic: Arithmetic) -> Result<(), Box<dyn Error>> {
    let (grid, at, charges) = slice::<T>(sizes.cpu_slice, sizes.cpu_atoms);
    let sources = Sources {
        points: &at,
        weights: &charges,
    };
    let mut potentials = vec![T::default(); grid.len()];
    let mut sums = cpu(arithmetic)?;
    let (rows, zero) = (grid.rows(), T::default());
    let seconds = median(sizes.repetitions, || {
        let begin = Instant::now();
        sums.coulomb_rows(&grid, 0..rows, sources, zero, &mut potentials)?;
        Ok::<f64, nearfield::Error>(begin.elapsed().as_secs_f64())
    })?;
    let of = settings::<T>(PairSum::Potential, arithmetic, 0.0);
    let points = grid.points::<T>(0..rows)?;
    let error = worst(of, |n| points[n], sources, &potentials);
    let what = format!(
        "Coulomb, {} points x {} atoms, {}",
        grid.len(),
        at.len(),
        name(of)
    );
    line(&what, grid.len() as f64 * at.len() as f64, seconds, error);
    Ok(())
}

fn on_gpu(backend: &GpuBackend, sizes: &Sizes) -> Result<(), Box<dyn Error>> {
    println!("{}, kernels alone", backend.device().name);
    let (many, few) = (sizes.bodies, sizes.slow_bodies);
    gravity_on_gpu::<f32>(backend, sizes, many, true, Arithmetic::Fast)?;
    gravity_on_gpu::<f32>(backend, sizes, many, false, Arithmetic::Fast)?;
    gravity_on_gpu::<f32>(backend, sizes, few, true, Arithmetic::Exact)?;
    gravity_on_gpu::<f64>(backend, sizes, few, true, Arithmetic::Fast)?;
    gravity_on_gpu::<f64>(backend, sizes, few, true, Arithmetic::Exact)?;
    for way in [
        PointsPerThread::One,
        PointsPerThread::Four,
        PointsPerThread::Eight,
        PointsPerThread::Mixed,
    ] {
        coulomb_on_gpu::<f32>(backend, sizes, sizes.slice, way, Arithmetic::Fast)?;
    }
    let lower = [sizes.slice[0], sizes.slice[1] / 8];
    coulomb_on_gpu::<f32>(
        backend,
        sizes,
        lower,
        PointsPerThread::Eight,
        Arithmetic::Exact,
    )?;
    coulomb_on_gpu::<f64>(
        backend,
        sizes,
        lower,
        PointsPerThread::Auto,
        Arithmetic::Fast,
    )?;
    coulomb_on_gpu::<f64>(
        backend,
        sizes,
        lower,
        PointsPerThread::Auto,
        Arithmetic::Exact,
    )?;
    println!("with transfers, from host arrays to host arrays");
    let (at, masses) = bodies::<f32>(many, true);
    for device in [Device::Gpu(0), Device::Hybrid(0)] {
        let mut sums = Engine::all_pairs().device(device).build()?;
        let mut pull = vec![[0.0f32; 3]; many];
        let mut share = 0.0;
        let seconds = median(sizes.repetitions, || {
            sums.gravity_into(&at, &masses, 0.01, &mut pull)?;
            let report = sums.report();
            share = report.cpu_share;
            Ok::<f64, nearfield::Error>(report.time.as_secs_f64())
        })?;
        let of = settings::<f32>(PairSum::Pull, Arithmetic::Fast, 0.01);
        let sources = Sources {
            points: &at,
            weights: &masses,
        };
        let error = worst(of, |n| at[n], sources, pull.as_flattened());
        let what = format!(
            "gravity, {many} bodies, f32, {device}, {:.2} % on the CPU",
            100.0 * share
        );
        line(&what, (many as f64).powi(2), seconds, error);
    }
    Ok(())
}

fn gravity_on_gpu<T: Real>(
    backend: &GpuBackend,
    sizes: &Sizes,
    count: usize,
    alike: bool,
    arithmetic: Arithmetic,
) -> Result<(), Box<dyn Error>> {
    let (at, masses) = bodies::<T>(count, alike);
    let sources = Sources {
        points: &at,
        weights: &masses,
    };
    let of = settings::<T>(PairSum::Pull, arithmetic, 0.01);
    let mut scratch = AllPairsScratch::default();
    let mut pull = vec![T::default(); 3 * count];
    let seconds = median(sizes.repetitions, || {
        backend.sum_pairs(of, &at, sources, &mut pull, &mut scratch)?;
        Ok::<f64, nearfield_gpu::Error>(f64::from(scratch.kernel_milliseconds()) * 1e-3)
    })?;
    let error = worst(of, |n| at[n], sources, &pull);
    let masses = if alike { "one mass" } else { "16 masses" };
    let what = format!("gravity, {count} bodies of {masses}, {}", name(of));
    line(&what, (count as f64).powi(2), seconds, error);
    Ok(())
}

fn coulomb_on_gpu<T: Real>(
    backend: &GpuBackend,
    sizes: &Sizes,
    points: [usize; 2],
    way: PointsPerThread,
    arithmetic: Arithmetic,
) -> Result<(), Box<dyn Error>> {
    let (grid, at, charges) = slice::<T>(points, sizes.atoms);
    let sources = Sources {
        points: &at,
        weights: &charges,
    };
    let of = settings::<T>(PairSum::Potential, arithmetic, 0.0);
    let mut scratch = AllPairsScratch::default();
    scratch.set_points_per_thread(way);
    let mut potentials = vec![T::default(); grid.len()];
    let seconds = median(sizes.repetitions, || {
        backend.sum_pairs_on_grid(
            of,
            &grid,
            0..grid.rows(),
            sources,
            &mut potentials,
            &mut scratch,
        )?;
        Ok::<f64, nearfield_gpu::Error>(f64::from(scratch.kernel_milliseconds()) * 1e-3)
    })?;
    let axes = [grid.axis::<T>(0)?, grid.axis(1)?, grid.axis(2)?];
    let point = |n: usize| [axes[0][n % points[0]], axes[1][n / points[0]], axes[2][0]];
    let error = worst(of, point, sources, &potentials);
    let ways = match way {
        PointsPerThread::One => "1 point a thread",
        PointsPerThread::Four => "4 points a thread",
        PointsPerThread::Eight => "8 points a thread",
        PointsPerThread::Mixed => "8 points, 2 of them guessed",
        _ => "points a thread as they come",
    };
    let what = format!(
        "Coulomb, {}² points x {}, {}, {ways}",
        points[0],
        at.len(),
        name(of)
    );
    let what = if points[0] == points[1] {
        what
    } else {
        what.replace('²', &format!("x{}", points[1]))
    };
    line(&what, grid.len() as f64 * at.len() as f64, seconds, error);
    Ok(())
}
