//! Steps whose data live on a GPU on named clouds: build, counts, density, force, lists, the sums
//! over these once more, and lists with the geometry of their pairs, medians of 20 in milliseconds,
//! by events on the device, for several numbers of cells to a radius. Beside each geometry is the
//! time in which the device sets as many bytes.
//!
//! `cargo bench -p nearfield-gpu [-- --strategies --cells=KxX,… CLOUD/POINTS/RADIUS[/DOMAIN] …]`;
//! `--cells` chooses cells to a radius along y and z, and how many along x for each; without
//! arguments the clouds of the tables in docs/measurements/gpu.md. DOMAIN is `open`, `periodic` (a
//! box that the cloud fills), `left` (the same, one coordinate of 100 a box outside), `unwrapped`
//! (the same, all points up to a box outside along each axis), `tilted` or `tilted-left`.
//! `--strategies` times density and force by all of them.
#![allow(clippy::disallowed_methods, reason = "copies outside of what is timed")]

use nearfield_gpu::{
    Deliver, DeviceBuffer, DeviceField, DeviceFields, DeviceLattice, DeviceLists, DevicePoints,
    DeviceResults, DriverError, Error, GeometryQuantities, GpuBackend, ListedPairs, PairCall,
    PairOfPoints, PairProgram, PairScratch, PositionBounds, SlotsOfLists, Strategy,
};
use nearfield_grid::{Bounds, Domain, Lattice, Precision, Radius};
use nearfield_pairs::{Channels, ListKind, PairKernel, SphDensity, SphForce, WendlandC2};
use nearfield_testkit::{
    cloud::{Cloud, drift},
    random::Random,
};
use std::env;

const REPETITIONS: usize = 20;
const CLOUDS: [&str; 13] = [
    "lattice/1e6/2",
    "lattice/1e6/3",
    "lattice/8e6/2",
    "clusters/4.5e5/1",
    "pool-spray/1e6/2",
    "lattice/1e6/6",
    "lattice/1e6/2/periodic",
    "lattice/1e6/3/periodic",
    "lattice/8e6/2/periodic",
    "lattice/10648/2.3/periodic",
    "lattice/1e6/2/left",
    "lattice/1e6/2/tilted",
    "lattice/1e6/3/tilted",
];
/// Cells to a radius along y and z, and how many of them there are along x for each.
const CELLS: [[u32; 2]; 9] = [
    [1, 1],
    [1, 2],
    [1, 4],
    [1, 8],
    [2, 1],
    [2, 2],
    [2, 4],
    [3, 1],
    [3, 2],
];

struct Subject {
    name: String,
    points: Vec<[f32; 3]>,
    bounds: Bounds,
    radius: f32,
    domain: Domain,
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
    let strategies = env::args().any(|arg| arg == "--strategies");
    let chosen = env::args().find_map(|arg| Some(arg.strip_prefix("--cells=")?.to_owned()));
    let cells = chosen.map_or_else(|| CELLS.to_vec(), |cells| parse_cells(&cells));
    if let Err(error) = run(&specs, &cells, strategies) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// Pairs such as `2x1`; what is none is left out.
fn parse_cells(text: &str) -> Vec<[u32; 2]> {
    let pair = |pair: &str| {
        let (cells, along_x) = pair.split_once('x')?;
        Some([cells.parse().ok()?, along_x.parse().ok()?])
    };
    text.split(',').filter_map(pair).collect()
}

fn run(specs: &[String], cells: &[[u32; 2]], strategies: bool) -> Result<(), Error> {
    let backend = GpuBackend::new(0)?;
    println!("{}", backend.device().name);
    for spec in specs {
        let Some(subject) = Subject::parse(spec, &backend)? else {
            eprintln!("{spec}: expected CLOUD/POINTS/RADIUS[/DOMAIN]");
            continue;
        };
        for &cells in cells {
            measure(&backend, &subject, cells, strategies)?;
        }
    }
    Ok(())
}

impl Subject {
    /// A cloud in sorted order, moved a little since it was sorted.
    fn parse(spec: &str, backend: &GpuBackend) -> Result<Option<Self>, Error> {
        let parts: Vec<&str> = spec.split('/').collect();
        let (cloud, points, radius, domain) = match parts[..] {
            [cloud, points, radius] => (cloud, points, radius, "open"),
            [cloud, points, radius, domain] => (cloud, points, radius, domain),
            _ => return Ok(None),
        };
        let (Ok(cloud), Ok(count), Ok(radius)) = (
            cloud.parse::<Cloud>(),
            points.parse::<f64>(),
            radius.parse::<f32>(),
        ) else {
            return Ok(None);
        };
        let mut points = cloud.points(count as usize, 1);
        let side = points
            .iter()
            .flatten()
            .fold(0f32, |most, &x| most.max(x))
            .ceil();
        let Some(domain) = boxed(&mut points, domain, f64::from(side)) else {
            return Ok(None);
        };
        let mut subject = Self {
            name: spec.to_owned(),
            points,
            bounds: Bounds::EMPTY,
            radius,
            domain,
        };
        let (_, set) = placed(backend, &subject, [1, 1])?;
        let order = set.order(backend)?;
        subject.points = (order.iter())
            .map(|&i| subject.points[i as usize])
            .collect();
        drift(&mut subject.points, 0.015 * radius, 2);
        subject.bounds = Bounds::of((&subject.points).into(), &domain).unwrap_or(Bounds::EMPTY);
        Ok(Some(subject))
    }
}

/// The domain of this name around points between about 0 and `side`, which are brought into it.
fn boxed(points: &mut [[f32; 3]], name: &str, side: f64) -> Option<Domain> {
    let length = side as f32;
    let mut random = Random::new(3);
    // Whole boxes that a point is moved along each axis.
    let mut outside = |x: f32| match name {
        "unwrapped" => x + (random.below(3) as f32 - 1.0) * length,
        "left" if random.below(100) == 0 => x + length,
        _ => x,
    };
    if matches!(name, "periodic" | "tilted" | "left" | "unwrapped") {
        let mut into = |x: f32| outside((x + 0.5).rem_euclid(length));
        points.iter_mut().for_each(|at| *at = at.map(&mut into));
    }
    match name {
        "open" => Some(Domain::OPEN),
        "periodic" | "left" | "unwrapped" => Domain::new([Some(side); 3]).ok(),
        "tilted" | "tilted-left" => {
            for [x, y, z] in points {
                *x += 0.2 * *y + 0.1 * *z;
                *y -= 0.15 * *z;
            }
            let tilts = [0.2, 0.1, -0.15].map(|tilt| tilt * side);
            Domain::triclinic([Some(side); 3], tilts).ok()
        }
        _ => None,
    }
}

fn placed(
    backend: &GpuBackend,
    subject: &Subject,
    [cells, along_x]: [u32; 2],
) -> Result<(DeviceLattice, DevicePoints), Error> {
    let mut set = backend.points();
    let bounds = match backend.upload(&mut set, &subject.points)? {
        PositionBounds::Bounds(bounds) => bounds,
        PositionBounds::NotFinite { first, .. } => {
            unreachable!("point {first} of a cloud is not finite")
        }
    };
    let radius = Radius::new(subject.radius).expect("a radius");
    let subdivision = [cells * along_x, cells, cells];
    // As engines do.
    let make = if along_x > 1 {
        Lattice::fitted
    } else {
        Lattice::divided
    };
    let lattice = make(radius, subject.domain, subdivision, &bounds).expect("a lattice");
    let lattice = backend.lattice(&lattice, cells)?;
    backend.sort(&mut set, &lattice, &bounds)?;
    Ok((lattice, set))
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

fn measure(
    backend: &GpuBackend,
    subject: &Subject,
    cells: [u32; 2],
    strategies: bool,
) -> Result<(), Error> {
    let label = format!("{:<26} K={}x{}", subject.name, cells[0], cells[1]);
    let (lattice, mut set) = match placed(backend, subject, cells) {
        Err(error) if error.is_out_of_memory() => {
            println!("{label}  {error}");
            return Ok(());
        }
        placed => placed?,
    };
    if set.is_sparse() {
        println!("{label}  the table is sparse");
        return Ok(());
    }
    let build = median(backend, || backend.sort_again(&mut set, &lattice))?;
    backend.finish(&mut set, &lattice, &subject.bounds)?;
    let mut density = Sums::of_density(backend, subject)?;
    let mut force = Sums::of_force(backend, subject)?;
    print!("{label} cells {:>9}  build {build:.4}", set.cells());
    for strategy in Strategy::ALL {
        let other = strategy != Strategy::Flat;
        let slow = strategy == Strategy::ChildPerCell && cells[0] > 1;
        if other && (!strategies || slow || cells[1] > 1) {
            continue;
        }
        for (name, sums) in [("density", &mut density), ("force", &mut force)] {
            let of = itself(&lattice, &set);
            let milliseconds = median(backend, || sums.evaluate(backend, of, Pairs::By(strategy)))?;
            print!("  {strategy} {name} {milliseconds:.4}");
        }
    }
    let mut step = || {
        backend.sort_again(&mut set, &lattice)?;
        density.evaluate(backend, itself(&lattice, &set), Pairs::By(Strategy::Flat))
    };
    print!("  | build + density {:.4}", median(backend, &mut step)?);
    let mut counts = (backend.stream())
        .alloc_zeros::<u32>(subject.points.len())
        .map_err(allocating)?;
    let scratch = &mut density.scratch;
    let mut step = || {
        backend.sort_again(&mut set, &lattice)?;
        let (of, counts) = (itself(&lattice, &set), &mut counts.as_view_mut());
        backend.count_on_device(of, ListKind::Full, Strategy::Flat, counts, scratch)
    };
    print!("  counts {:.4}", median(backend, &mut step)?);
    time_lists(backend, &lattice, &mut set, [&mut density, &mut force])
}

/// A pair kernel with its fields and its results on the device.
struct Sums {
    program: PairProgram,
    uniforms: Vec<f32>,
    /// Channels of every point.
    fields: DeviceBuffer<f32>,
    channels: usize,
    /// Whether the kernel reads those of a target too.
    of_targets: bool,
    results: DeviceBuffer<f32>,
    scratch: PairScratch,
}

impl Sums {
    /// A mass of every source.
    fn of_density(backend: &GpuBackend, subject: &Subject) -> Result<Self, Error> {
        let kernel = SphDensity {
            kernel: WendlandC2::with_support(subject.radius),
        };
        Self::new(backend, &kernel, [1.0].repeat(subject.points.len()), false)
    }

    /// Velocity, density, pressure and mass of every point.
    fn of_force(backend: &GpuBackend, subject: &Subject) -> Result<Self, Error> {
        let kernel = SphForce {
            kernel: WendlandC2::with_support(subject.radius),
            h: 0.5 * subject.radius,
            alpha_c: 0.1,
        };
        let of_point = |&[x, y, z]: &[f32; 3]| [y, -x, 0.1 * z, 1.0 + 0.001 * x, 2.0, 1.0];
        let fields = subject.points.iter().flat_map(of_point).collect();
        Self::new(backend, &kernel, fields, true)
    }

    fn new<K: PairKernel>(
        backend: &GpuBackend,
        kernel: &K,
        fields: Vec<f32>,
        of_targets: bool,
    ) -> Result<Self, Error> {
        let (program, uniforms) = PairProgram::of(kernel)?;
        let channels = K::Source::COUNT;
        let results = fields.len() / channels * K::Output::COUNT;
        let stream = backend.stream();
        Ok(Self {
            program,
            uniforms,
            fields: stream.clone_htod(&fields).map_err(allocating)?,
            channels,
            of_targets,
            results: stream.alloc_zeros(results).map_err(allocating)?,
            scratch: PairScratch::default(),
        })
    }

    /// Puts the sums of all targets on the stream.
    fn evaluate(
        &mut self,
        backend: &GpuBackend,
        of: PairOfPoints<'_>,
        pairs: Pairs<'_>,
    ) -> Result<(), Error> {
        let field = || DeviceField::new(self.fields.as_view(), self.channels);
        let fields = DeviceFields {
            targets: self.of_targets.then(field).into_iter().collect(),
            sources: vec![field()],
        };
        let call = PairCall {
            program: &self.program,
            uniforms: &self.uniforms,
        };
        let results = DeviceResults {
            values: &mut self.results.as_view_mut(),
            deliver: Deliver::Write,
        };
        let scratch = &mut self.scratch;
        match pairs {
            Pairs::By(strategy) => {
                backend.evaluate_on_device(of, call, &fields, results, strategy, scratch)
            }
            Pairs::Over(lists, slots) => {
                let since = None;
                let over = ListedPairs {
                    of,
                    lists,
                    slots,
                    since,
                };
                backend.evaluate_over_lists(over, call, &fields, results, scratch)
            }
        }
    }
}

/// Where the pairs of a sum come from.
enum Pairs<'a> {
    By(Strategy),
    Over(&'a DeviceLists, &'a mut SlotsOfLists),
}

fn allocating(error: DriverError) -> Error {
    Error::driver("allocating arrays", error)
}

/// Prints how long sorting and writing lists take.
fn time_lists(
    backend: &GpuBackend,
    lattice: &DeviceLattice,
    set: &mut DevicePoints,
    [density, force]: [&mut Sums; 2],
) -> Result<(), Error> {
    let mut lists = DeviceLists::default();
    backend.search(
        itself(lattice, set),
        ListKind::Full,
        Strategy::Flat,
        &mut lists,
    )?;
    let pairs = lists.pairs();
    let mut step = || {
        backend.sort_again(set, lattice)?;
        backend.search_again(
            itself(lattice, set),
            ListKind::Full,
            Strategy::Flat,
            &mut lists,
        )
    };
    print!("  lists {:.4}", median(backend, &mut step)?);
    lists.finish(backend)?;
    let mut slots = SlotsOfLists::default();
    // The untimed repetitions bring the entries to their places.
    for (name, sums) in [("density", density), ("force", force)] {
        let of = itself(lattice, set);
        let step = || sums.evaluate(backend, of, Pairs::Over(&lists, &mut slots));
        print!("  {name} over lists {:.4}", median(backend, step)?);
    }
    for (name, quantities) in GEOMETRIES {
        time_geometry(backend, lattice, set, name, quantities)?;
    }
    println!("  pairs {pairs}");
    Ok(())
}

/// Quantities that molecular dynamics, hosts and graph networks take.
const GEOMETRIES: [(&str, GeometryQuantities); 3] = [
    (
        "D and d2",
        GeometryQuantities {
            displacements: true,
            squares: true,
            ..GeometryQuantities::NONE
        },
    ),
    (
        "S, D and d2",
        GeometryQuantities {
            images: true,
            displacements: true,
            squares: true,
            ..GeometryQuantities::NONE
        },
    ),
    (
        "i, S, D and d",
        GeometryQuantities {
            targets: true,
            images: true,
            displacements: true,
            distances: true,
            ..GeometryQuantities::NONE
        },
    ),
];

/// Prints how long sorting and writing lists with the geometry of their pairs take, and writing as
/// many bytes.
fn time_geometry(
    backend: &GpuBackend,
    lattice: &DeviceLattice,
    set: &mut DevicePoints,
    name: &str,
    quantities: GeometryQuantities,
) -> Result<(), Error> {
    let mut lists = DeviceLists::default();
    lists.want(quantities);
    let kind = ListKind::Full;
    match backend.search(itself(lattice, set), kind, Strategy::Flat, &mut lists) {
        Err(error) if error.is_out_of_memory() => {
            print!("  {name}: {error}");
            return Ok(());
        }
        searched => searched?,
    }
    let bytes =
        lists.pairs() as usize * (size_of::<u32>() + quantities.bytes_per_pair(Precision::Single));
    let mut step = || {
        backend.sort_again(set, lattice)?;
        backend.search_again(itself(lattice, set), kind, Strategy::Flat, &mut lists)
    };
    print!("  {name} {:.4}", median(backend, &mut step)?);
    lists.finish(backend)?;
    drop(lists);
    let mut array = (backend.stream())
        .alloc_zeros::<u8>(bytes)
        .map_err(allocating)?;
    let mut fill = || {
        let filled = backend.stream().memset_zeros(&mut array.as_view_mut());
        filled.map_err(allocating)
    };
    print!(" (bytes {:.4})", median(backend, &mut fill)?);
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
        filter: Default::default(),
    }
}
