//! Steps whose data live on a GPU on named clouds: build, count, density and lists by every
//! strategy, medians of 20 in milliseconds, by events on the device.
//!
//! `cargo bench -p nearfield-gpu [-- CLOUD/POINTS/RADIUS …]`; without arguments the clouds of the
//! tables in docs/measurements.md.
#![allow(clippy::disallowed_methods, reason = "copies outside of what is timed")]

use nearfield_gpu::{
    Deliver, DeviceField, DeviceFields, DeviceLattice, DeviceLists, DevicePoints, Error,
    GpuBackend, Measured, PairOfPoints, PairProgram, PairScratch, Strategy,
};
use nearfield_grid::{Bounds, Domain, Lattice, Radius};
use nearfield_pairs::{ListKind, SphDensity, WendlandC2};
use nearfield_testkit::cloud::{Cloud, drift};
use std::env;

const REPETITIONS: usize = 20;
const CLOUDS: [&str; 6] = [
    "lattice/1e6/2",
    "lattice/1e6/3",
    "lattice/8e6/2",
    "clusters/4.5e5/1",
    "pool-spray/1e6/2",
    "lattice/1e6/6",
];

struct Subject {
    name: String,
    points: Vec<[f32; 3]>,
    bounds: Bounds,
    radius: f32,
}

fn main() {
    let specs: Vec<String> = env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let specs = match specs.is_empty() {
        true => CLOUDS.map(str::to_owned).to_vec(),
        false => specs,
    };
    if let Err(error) = run(&specs) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn run(specs: &[String]) -> Result<(), Error> {
    let backend = GpuBackend::new(0)?;
    println!("{}", backend.device().name);
    for spec in specs {
        let Some(subject) = Subject::parse(spec, &backend)? else {
            eprintln!("{spec}: expected CLOUD/POINTS/RADIUS");
            continue;
        };
        for subdivision in [1, 2, 3] {
            measure(&backend, &subject, subdivision)?;
        }
    }
    Ok(())
}

impl Subject {
    /// A cloud in sorted order, moved a little since it was sorted.
    fn parse(spec: &str, backend: &GpuBackend) -> Result<Option<Self>, Error> {
        let parts: Vec<&str> = spec.split('/').collect();
        let [cloud, points, radius] = parts[..] else {
            return Ok(None);
        };
        let (Ok(cloud), Ok(count), Ok(radius)) = (
            cloud.parse::<Cloud>(),
            points.parse::<f64>(),
            radius.parse::<f32>(),
        ) else {
            return Ok(None);
        };
        let mut points = cloud.points(count as usize, 1);
        let (_, set, _) = placed(backend, &points, radius, 1)?;
        let order = set.order(backend)?;
        points = order.iter().map(|&i| points[i as usize]).collect();
        drift(&mut points, 0.015 * radius, 2);
        let bounds = Bounds::of((&points).into(), &Domain::OPEN).unwrap_or(Bounds::EMPTY);
        Ok(Some(Self {
            name: spec.to_owned(),
            points,
            bounds,
            radius,
        }))
    }
}

fn placed(
    backend: &GpuBackend,
    points: &[[f32; 3]],
    radius: f32,
    subdivision: u32,
) -> Result<(DeviceLattice, DevicePoints, Bounds), Error> {
    let mut set = backend.points();
    let bounds = match backend.upload(&mut set, points)? {
        Measured::Bounds(bounds) => bounds,
        Measured::NotFinite { first, .. } => unreachable!("point {first} of a cloud is not finite"),
    };
    let radius = Radius::new(radius).expect("a radius");
    let lattice = Lattice::new(radius, Domain::OPEN, subdivision, &bounds).expect("a lattice");
    let lattice = backend.lattice(&lattice, subdivision)?;
    backend.sort(&mut set, &lattice, &bounds)?;
    Ok((lattice, set, bounds))
}

/// Median of the milliseconds that `work` takes on the device.
fn median(backend: &GpuBackend, mut work: impl FnMut() -> Result<(), Error>) -> Result<f32, Error> {
    let mut times = Vec::new();
    for _ in 0..REPETITIONS + 3 {
        times.push(backend.timed(&mut work)?.1);
    }
    let times = &mut times[3..];
    times.sort_by(f32::total_cmp);
    Ok(times[times.len() / 2])
}

fn measure(backend: &GpuBackend, subject: &Subject, subdivision: u32) -> Result<(), Error> {
    let (lattice, mut set, _) = match placed(backend, &subject.points, subject.radius, subdivision)
    {
        Err(error) if error.is_out_of_memory() => {
            println!("{:<18} K={subdivision}  {error}", subject.name);
            return Ok(());
        }
        placed => placed?,
    };
    let build = median(backend, || backend.sort_again(&mut set, &lattice))?;
    backend.finish(&mut set, &lattice, &subject.bounds)?;
    let kernel = SphDensity {
        kernel: WendlandC2::with_support(subject.radius),
    };
    let (program, uniforms) = PairProgram::of(&kernel)?;
    let mut scratch = PairScratch::default();
    let failed = |error| Error::driver("allocating fields", error);
    let mass = vec![1.0f32; subject.points.len()];
    let mass = backend.stream().clone_htod(&mass).map_err(failed)?;
    let mut sums = backend
        .stream()
        .alloc_zeros::<f32>(subject.points.len())
        .map_err(failed)?;
    let mut density = |of: PairOfPoints<'_>, strategy| {
        let fields = DeviceFields {
            targets: None,
            sources: Some(DeviceField::new(mass.as_view(), 1)),
        };
        let results = (&mut sums.as_view_mut(), Deliver::Write);
        backend.evaluate_on_device(
            of,
            (&program, &uniforms),
            &fields,
            results,
            strategy,
            &mut scratch,
        )
    };
    print!(
        "{:<18} K={subdivision} cells {:>9}  build {build:.4}",
        subject.name,
        set.cells(),
    );
    for strategy in Strategy::ALL {
        if strategy == Strategy::ChildPerCell && subdivision > 1 {
            continue;
        }
        let of = itself(&lattice, &set);
        let milliseconds = median(backend, || density(of, strategy))?;
        print!("  {strategy} density {milliseconds:.4}");
    }
    let mut step = || {
        backend.sort_again(&mut set, &lattice)?;
        density(itself(&lattice, &set), Strategy::Flat)
    };
    print!("  | build + density {:.4}", median(backend, &mut step)?);
    let mut lists = DeviceLists::default();
    backend.search(
        itself(&lattice, &set),
        ListKind::Full,
        Strategy::Flat,
        &mut lists,
    )?;
    let pairs = lists.pairs();
    let mut step = || {
        backend.sort_again(&mut set, &lattice)?;
        backend.search_again(
            itself(&lattice, &set),
            ListKind::Full,
            Strategy::Flat,
            &mut lists,
        )
    };
    println!(
        "  build + lists {:.4}  pairs {pairs}",
        median(backend, &mut step)?
    );
    lists.finish(backend)?;
    Ok(())
}

/// Every point of a set searching in the set.
fn itself<'a>(lattice: &'a DeviceLattice, set: &'a DevicePoints) -> PairOfPoints<'a> {
    PairOfPoints {
        lattice,
        targets: set,
        sources: set,
        same_set: true,
        share: None,
    }
}
