//! Many small systems in one search: 4,096 crystals or molecules of about 55 atoms, 22 neighbours
//! each around periodic cells. On the CPU also in `f64`, and single systems of 30 and 100 atoms
//! with all quantities. On a GPU also with data that are there: a search with its `finish`, and
//! searches that follow each other.
//!
//! `cargo bench -p nearfield --bench systems [-- --device cpu|gpu[:N]] [--systems 4096]
//! [--atoms 55] [--threads 0] [--repetitions 20]`

use clap::Parser;
use nearfield::{
    Device, ListOrder,
    all_pairs::Real,
    device::{Context, DeviceSystemSearch, DeviceSystems, DeviceValue, Progress},
    systems::{Quantities, SystemPairs, SystemReal, SystemSearch, Systems},
};
use nearfield_testkit::random::Random;
use std::time::Instant;

#[derive(Parser)]
struct Arguments {
    /// cpu or gpu[:N].
    #[arg(long, default_value = "cpu")]
    device: Device,
    /// Number of systems.
    #[arg(long, default_value_t = 4096)]
    systems: usize,
    /// Mean number of atoms of a system.
    #[arg(long, default_value_t = 55)]
    atoms: usize,
    /// Worker threads; 0 for one per core.
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Timed searches, of which the median is printed.
    #[arg(long, default_value_t = 20)]
    repetitions: usize,
    /// Passed by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Systems of unit density in leaning cells.
struct Batch<T> {
    positions: Vec<[T; 3]>,
    offsets: Vec<i64>,
    cells: Vec<[[f64; 3]; 3]>,
}

fn batch<T: Real>(systems: usize, atoms: usize) -> Batch<T> {
    let random = &mut Random::new(1);
    let mut batch = Batch {
        positions: Vec::new(),
        offsets: vec![0],
        cells: Vec::new(),
    };
    for _ in 0..systems {
        let spread = if systems == 1 { 0 } else { atoms / 5 };
        let count = atoms - spread + random.below(2 * spread as u64 + 1) as usize;
        let side = (count as f64).cbrt();
        let mut lean = || 0.2 * side * random.between(-1.0, 1.0);
        let cell = [
            [side, 0.0, 0.0],
            [lean(), side, 0.0],
            [lean(), lean(), side],
        ];
        for _ in 0..count {
            let shares = [random.unit(), random.unit(), random.unit()];
            let along = |axis: usize| (0..3).map(|k| shares[k] * cell[k][axis]).sum();
            batch
                .positions
                .push([0, 1, 2].map(|axis| T::of(along(axis))));
        }
        batch.offsets.push(batch.positions.len() as i64);
        batch.cells.push(cell);
    }
    batch
}

/// Median milliseconds of a search.
fn time<T: SystemReal>(
    arguments: &Arguments,
    name: &str,
    batch: &Batch<T>,
    periodic: bool,
    quantities: Quantities,
) {
    let builder = SystemSearch::builder().device(arguments.device);
    let builder = builder.threads(arguments.threads);
    let search = builder.list_order(ListOrder::Ascending).build();
    let mut search = search.expect("the device is there");
    let systems = Systems::new(&batch.positions, &batch.offsets, &[1.73]);
    let periodic = [[periodic; 3]];
    let systems = systems.in_cells(&batch.cells, &periodic);
    let mut pairs = SystemPairs::<T, i64>::default();
    let mut times = Vec::new();
    let few = batch.offsets.len() == 2;
    let repetitions = arguments.repetitions.max(1) * if few { 100 } else { 1 };
    for _ in 0..repetitions + 2 {
        let begin = Instant::now();
        let found = search.neighbors(&systems, quantities, &mut pairs);
        found.expect("the systems can be searched");
        times.push(1e3 * begin.elapsed().as_secs_f64());
    }
    times.drain(..2);
    times.sort_by(f64::total_cmp);
    println!(
        "{name:<34} {:>9.4} ms  (least {:.4}), {} points, {} pairs",
        times[times.len() / 2],
        times[0],
        batch.positions.len(),
        pairs.len()
    );
}

/// As [`time`] around periodic cells with data on the device and indices of 32 bits; also the mean
/// of searches that follow each other without a `finish`.
#[allow(clippy::disallowed_methods)] // the input, once
fn time_on_device<T: SystemReal + DeviceValue>(
    number: u32,
    repetitions: usize,
    batch: &Batch<T>,
    (name, quantities): (&str, Quantities),
) -> Result<(), Box<dyn std::error::Error>> {
    let stream = Context::open(number)?.new_stream()?;
    let positions = stream.clone_htod(batch.positions.as_flattened())?;
    let offsets = stream.clone_htod(&batch.offsets)?;
    let radii = stream.clone_htod(&[1.73f64])?;
    let cells = stream.clone_htod(batch.cells.as_flattened().as_flattened())?;
    let periodic = stream.clone_htod(&[1u8; 3])?;
    let systems = DeviceSystems {
        positions: positions.as_view(),
        offsets: offsets.as_view(),
        radii: radii.as_view(),
        cells: Some(cells.as_view()),
        periodic: Some(periodic.as_view()),
        strict: false,
    };
    let mut search = DeviceSystemSearch::<T, i32>::on(&stream)?;
    let mut times = Vec::new();
    for _ in 0..repetitions + 3 {
        let begin = Instant::now();
        search.neighbors(&systems, quantities)?;
        while let Progress::Repeat = search.finish(&systems)? {
            search.neighbors(&systems, quantities)?;
        }
        times.push(1e3 * begin.elapsed().as_secs_f64());
    }
    times.drain(..3);
    times.sort_by(f64::total_cmp);
    let begin = Instant::now();
    for _ in 0..repetitions {
        search.neighbors(&systems, quantities)?;
    }
    assert_eq!(search.finish(&systems)?, Progress::Valid);
    let each = 1e3 * begin.elapsed().as_secs_f64() / repetitions as f64;
    let pairs = search.pairs().map_or(0, |pairs| pairs.count);
    println!(
        "{name:<34} {:>9.4} ms with finish, {each:.4} ms in a row, {pairs} pairs",
        times[times.len() / 2]
    );
    Ok(())
}

fn main() {
    let arguments = Arguments::parse();
    let builder = SystemSearch::builder().device(arguments.device);
    let search = builder.threads(arguments.threads).build();
    println!("{:?}", search.expect("the device is there").report());
    let single = batch::<f32>(arguments.systems, arguments.atoms);
    let (lists, all) = (Quantities::LISTS, Quantities::ALL);
    time(&arguments, "periodic, lists, f32", &single, true, lists);
    time(&arguments, "periodic, i j S D d, f32", &single, true, all);
    time(&arguments, "open, lists, f32", &single, false, lists);
    time(&arguments, "open, i j S D d, f32", &single, false, all);
    if let Device::Gpu(number) = arguments.device {
        let repetitions = arguments.repetitions.max(1);
        for job in [
            ("on the device, lists, f32", lists),
            ("on the device, i j S D d, f32", all),
        ] {
            time_on_device(number, repetitions, &single, job).expect("the systems can be searched");
        }
        return;
    }
    let double = batch::<f64>(arguments.systems, arguments.atoms);
    time(&arguments, "periodic, lists, f64", &double, true, lists);
    time(&arguments, "periodic, i j S D d, f64", &double, true, all);
    for atoms in [30, 100] {
        let one = batch::<f64>(1, atoms);
        let name = format!("one of {atoms}, i j S D d, f64");
        time(&arguments, &name, &one, true, all);
    }
}
