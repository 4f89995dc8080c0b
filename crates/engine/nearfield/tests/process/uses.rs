//! Everything that is done with engines, by name.

use nearfield::{
    Builder, ListKind, ListOrder, PairKernel, RadiusRule,
    all_pairs::{Arithmetic, SampleGrid},
    kernels::SphDensity,
    lists::{PairGeometry, VerletLists},
    prelude::*,
};
use std::ops::ControlFlow;

/// A cloud of points in [0, 10)³.
pub(crate) fn cloud(points: usize) -> Vec<[f32; 3]> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 24) as f32 * 10.0
    };
    (0..points).map(|_| [next(), next(), next()]).collect()
}

/// Points to work on, and masses.
pub(crate) struct Input {
    pub(crate) single: Vec<[f32; 3]>,
    pub(crate) double: Vec<[f64; 3]>,
    pub(crate) ones: Vec<f32>,
    /// The points, some of them very far away.
    pub(crate) far: Vec<[f32; 3]>,
    pub(crate) radius: f32,
    /// Smaller ones, one per point.
    pub(crate) radii: Vec<f32>,
}

impl Input {
    pub(crate) fn new(points: usize) -> Self {
        let single = cloud(points);
        // Some thirty neighbours each.
        let radius = 10.0 * (7.0 / points.max(1) as f32).cbrt();
        Self {
            double: single.iter().map(|at| at.map(f64::from)).collect(),
            ones: vec![1.0; points],
            far: (single.iter().enumerate())
                .map(|(k, at)| at.map(|x| if k % 64 == 0 { x * 1e6 } else { x }))
                .collect(),
            radius,
            radii: vec![0.7 * radius; points],
            single,
        }
    }
}

/// A use of an engine; returns a number that is the same on every run and not 0.
pub(crate) type Use = fn(&Input, Builder) -> Result<u64, Error>;

fn single(input: &Input, builder: Builder) -> Result<(Engine, PointSetId), Error> {
    let mut engine = builder.build()?;
    let set = engine.add_point_set(&input.single)?;
    Ok((engine, set))
}

fn lists(input: &Input, builder: Builder) -> Result<u64, Error> {
    let (mut engine, set) = single(input, builder.list_order(ListOrder::Ascending))?;
    engine.find_neighbors()?;
    engine.update(set, &input.single)?;
    engine.find_neighbors()?;
    let csr = engine.neighbors(set, set)?.to_csr()?;
    Ok(csr.indices.len() as u64)
}

fn half_lists(input: &Input, builder: Builder) -> Result<u64, Error> {
    let (mut engine, set) = single(input, builder.lists(ListKind::Half))?;
    engine.find_neighbors()?;
    Ok(engine.neighbors(set, set)?.pairs())
}

fn limited(input: &Input, builder: Builder) -> Result<u64, Error> {
    let (mut engine, set) = single(input, builder.memory_limit(1 << 28))?;
    engine.find_neighbors()?;
    let pairs = engine.neighbors(set, set)?.pairs();
    let mut chunks = engine.list_chunks(set, set)?;
    let mut same = 0;
    while let Some(chunk) = chunks.next_chunk()? {
        same += chunk.pairs();
    }
    assert_eq!(pairs, same);
    Ok(pairs)
}

fn counts(input: &Input, builder: Builder) -> Result<u64, Error> {
    let (engine, set) = single(input, builder)?;
    Ok(engine
        .count_neighbors(set, set)?
        .into_iter()
        .map(u64::from)
        .sum())
}

fn density(radius: f32) -> SphDensity {
    SphDensity::with_support(radius)
}

fn bits(values: &[f32]) -> u64 {
    values.iter().fold(0, |sum, value| {
        sum.rotate_left(7) ^ u64::from(value.to_bits())
    })
}

fn traverse(input: &Input, builder: Builder) -> Result<u64, Error> {
    let (mut engine, set) = single(input, builder)?;
    let (kernel, fields) = (density(input.radius), &input.ones);
    let values = engine.traverse(&kernel, set, set).sources(fields).run()?;
    engine.find_neighbors()?;
    Ok(bits(&values))
}

fn over_lists(input: &Input, builder: Builder) -> Result<u64, Error> {
    let (mut engine, set) = single(input, builder)?;
    let (kernel, fields) = (density(input.radius), &input.ones);
    engine.find_neighbors()?;
    let over = engine.traverse(&kernel, set, set).over_lists();
    let over = over.sources(fields).run()?;
    Ok(bits(&over))
}

/// Number of neighbours, evaluated once per pair.
#[derive(Debug)]
struct Symmetric;

impl PairKernel for Symmetric {
    type Target = ();
    type Source = ();
    type Output = f32;
    const SYMMETRIC: bool = true;

    fn pair(&self, _: Pair, (): (), (): ()) -> f32 {
        1.0
    }

    fn symmetric(&self, _: Pair, _: ((), ()), _: ((), ())) -> (f32, f32) {
        (1.0, 1.0)
    }
}

fn symmetric(input: &Input, builder: Builder) -> Result<u64, Error> {
    let (mut engine, set) = single(input, builder.lists(ListKind::Half))?;
    let values = engine.traverse(&Symmetric, set, set).run()?;
    engine.find_neighbors()?;
    let over = engine.traverse(&Symmetric, set, set).over_lists().run()?;
    assert_eq!(values, over);
    Ok(values.iter().map(|&count| count as u64).sum())
}

fn queries(input: &Input, builder: Builder) -> Result<u64, Error> {
    let (engine, set) = single(input, builder)?;
    let found = engine.query(&input.single, set)?.pairs();
    let mut near = 0;
    engine.for_each_neighbor(set, set, 0, |_, _| near += 1)?;
    let mut geometry = PairGeometry::default();
    engine.pair_geometry(set, set, &mut geometry)?;
    let batched = std::sync::atomic::AtomicU64::new(0);
    let order = std::sync::atomic::Ordering::Relaxed;
    let _ = engine.for_each_batch(set, set, |batch| {
        batched.fetch_add(batch.sources.len() as u64, order);
        ControlFlow::Continue(())
    })?;
    assert_eq!(geometry.lists().pairs(), batched.into_inner());
    let permutation = engine.z_sort(set)?;
    let sorted = permutation.reordered(&input.single)?;
    Ok(found + near + sorted.len() as u64)
}

fn radii(input: &Input, builder: Builder) -> Result<u64, Error> {
    let (mut engine, set) = single(input, builder.radii(RadiusRule::Symmetric))?;
    engine.set_radii(set, &input.radii)?;
    engine.find_neighbors()?;
    Ok(engine.neighbors(set, set)?.pairs())
}

fn verlet(input: &Input, builder: Builder) -> Result<u64, Error> {
    let mut lists = VerletLists::new(builder.lists(ListKind::Half), 0.1 * input.radius)?;
    let set = lists.add_point_set(&input.single)?;
    lists.refresh()?;
    lists.update(set, &input.single)?;
    lists.refresh()?;
    let fields = &input.ones;
    let kernel = density(input.radius);
    let values = lists.traverse(&kernel, set, set).sources(fields).run()?;
    Ok(bits(&values))
}

fn radius_changed(input: &Input, builder: Builder) -> Result<u64, Error> {
    let (mut engine, set) = single(input, builder)?;
    engine.set_radius(0.9 * input.radius)?;
    engine.find_neighbors()?;
    Ok(engine.neighbors(set, set)?.pairs())
}

fn scattered(input: &Input, builder: Builder) -> Result<u64, Error> {
    let mut engine = builder.build()?;
    let set = engine.add_point_set(&input.far)?;
    engine.find_neighbors()?;
    Ok(engine.neighbors(set, set)?.pairs())
}

/// Of engines in single precision.
pub(crate) const SINGLE: &[(&str, Use)] = &[
    ("lists", lists),
    ("half lists", half_lists),
    ("lists within a limit", limited),
    ("counts", counts),
    ("a traversal", traverse),
    ("a traversal over lists", over_lists),
    ("a traversal once per pair", symmetric),
    ("queries", queries),
    ("radii of points", radii),
    ("lists with a skin", verlet),
    ("another radius", radius_changed),
    ("points far apart", scattered),
];

/// The same where both backends work, one of them emulated.
pub(crate) const HYBRID: &[(&str, Use)] = &[
    ("lists", lists),
    ("counts", counts),
    ("a traversal", traverse),
];

/// An engine in double precision.
pub(crate) fn double(input: &Input, builder: Builder) -> Result<u64, Error> {
    let mut engine = builder.build()?;
    let set = engine.add_point_set(&input.double)?;
    engine.find_neighbors()?;
    let found = engine.neighbors(set, set)?.pairs();
    let counted: u64 = engine
        .count_neighbors(set, set)?
        .into_iter()
        .map(u64::from)
        .sum();
    assert_eq!(found, counted);
    let (kernel, fields) = (density(input.radius), &input.ones);
    let values = engine.traverse(&kernel, set, set).sources(fields).run()?;
    engine.pair_geometry(set, set, &mut PairGeometry::default())?;
    engine.set_radius(0.9 * f64::from(input.radius))?;
    Ok(found + bits(&values) % 1000)
}

/// Sums over all pairs, of few of the points.
pub(crate) fn all_pairs(input: &Input, threads: usize) -> Result<u64, Error> {
    let mut sums = Engine::all_pairs()
        .device(Device::Cpu)
        .threads(threads)
        .arithmetic(Arithmetic::Exact)
        .build()?;
    let few = input.single.len().min(500);
    let (points, masses) = (&input.single[..few], &input.ones[..few]);
    let pull = sums.gravity(points, masses, 0.1)?;
    let well = sums.gravity_potential(points, masses, 0.1)?;
    let grid = SampleGrid {
        dims: [input.single.len(), 2, 4],
        spacing: 0.5,
        origin: [0.0; 3],
    };
    let one = sums.coulomb(&grid, &points[..1], &masses[..1], 0.0)?;
    Ok(bits(pull.as_flattened()) ^ bits(&well) ^ bits(&one))
}

/// Settings of an engine on the CPU.
pub(crate) fn on_cpu(input: &Input, threads: usize) -> Builder {
    Engine::builder(input.radius)
        .device(Device::Cpu)
        .threads(threads)
}

/// Settings of one with an emulated device.
pub(crate) fn on_both(input: &Input, threads: usize) -> Builder {
    let device = "emulated".parse().unwrap();
    Engine::builder(input.radius)
        .device(device)
        .threads(threads)
}

/// Settings of one in double precision.
pub(crate) fn in_double(input: &Input, threads: usize) -> Builder {
    Engine::builder(input.radius)
        .precision(Precision::Double)
        .device(Device::Cpu)
        .threads(threads)
}

/// Does everything once with `threads` threads; returns the results.
pub(crate) fn all(input: &Input, threads: usize) -> Vec<u64> {
    let mut found = Vec::new();
    for boxed in [false, true] {
        for (name, of) in SINGLE {
            let builder = on_cpu(input, threads);
            let builder = if boxed {
                builder.periodic([10.0; 3].map(Some))
            } else {
                builder
            };
            let result = of(input, builder);
            found.push(result.unwrap_or_else(|error| panic!("{name}, {boxed}: {error}")));
        }
        let builder = in_double(input, threads);
        let builder = if boxed {
            builder.periodic([10.0; 3].map(Some))
        } else {
            builder
        };
        found.push(double(input, builder).unwrap());
    }
    found.push(all_pairs(input, threads).unwrap());
    found
}
