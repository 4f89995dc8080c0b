//! Pairs evaluated once for both points give what they give when evaluated from both sides.

use nearfield_cpu::{
    CpuBackend, Fields, ListOrder, Output, PairOfSets, RadiusRule, SetRadii, Share, SimdLevel,
    SortedRadii, Spent,
};
use nearfield_grid::{Bounds, BrickParts, Domain, Grid, Lattice, Radius};
use nearfield_pairs::{
    Channels, Field, ListKind, Pair, PairKernel, Reduce, SphDensity, SphForce, WendlandC2,
};
use nearfield_testkit::{
    cloud::Cloud,
    oracle::{self, Pairing, Problem},
    random::Random,
    shapes::uniform_box,
};
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// Points on which a search takes several tasks.
struct Scene {
    name: &'static str,
    points: Vec<[f32; 3]>,
    radius: f32,
}

fn scene(name: &'static str, points: Vec<[f32; 3]>, radius: f32) -> Scene {
    Scene {
        name,
        points,
        radius,
    }
}

fn scenes() -> Vec<Scene> {
    let uniform = |count, high, seed| uniform_box(count, [[0.05; 3], high], seed);
    let mut outliers = uniform(30_000, [31.0; 3], 3);
    outliers[11] = [1e7, -3.0, 2.0];
    outliers[20_000] = [0.0, 1e30, -1e30];
    outliers[20_001] = outliers[20_000];
    vec![
        scene("lattice", Cloud::Lattice.points(32_768, 1), 2.0),
        scene("clusters", Cloud::Clusters.points(30_000, 2), 1.0),
        scene(
            "a film across x",
            uniform(30_000, [1.95, 100.0, 80.0], 4),
            1.0,
        ),
        scene(
            "a film across y",
            uniform(30_000, [100.0, 1.95, 80.0], 5),
            1.0,
        ),
        // Half of all points lie between a point and those above it.
        scene(
            "a small film across z",
            uniform(14_700, [70.0, 60.0, 1.95], 6),
            1.0,
        ),
        scene(
            "a film across z",
            uniform(30_000, [100.0, 80.0, 1.95], 7),
            1.0,
        ),
        // A radius larger than the set, which is large enough for several tasks: all pairs.
        scene("all pairs", uniform(2_500, [3.0; 3], 10), 9.0),
        scene("a plane", uniform(30_000, [170.0, 170.0, 0.05], 8), 2.0),
        scene("outliers", outliers, 2.0),
        scene("few points", uniform(300, [5.0; 3], 9), 1.0),
    ]
}

impl Scene {
    fn grid(&self, subdivision: u32) -> Grid {
        let positions = self.points.as_slice().into();
        let bounds = Bounds::of(positions, &Domain::OPEN).unwrap();
        let radius = Radius::new(self.radius).unwrap();
        let lattice = Lattice::new(radius, Domain::OPEN, subdivision, &bounds).unwrap();
        let mut grid = Grid::new(lattice.clone());
        grid.build(positions, bounds, &lattice).unwrap();
        grid
    }

    /// Per-point values for every kernel here: as many random channels as asked for, positive.
    fn values(&self, channels: usize, seed: u64) -> Vec<f32> {
        let mut random = Random::new(seed);
        let count = self.points.len() * channels;
        (0..count)
            .map(|_| random.between(0.5, 2.0) as f32)
            .collect()
    }

    /// Radii over two decades, most of them small.
    fn radii(&self) -> Vec<f32> {
        let mut random = Random::new(77);
        let mut radius = || (0.01_f64.powf(random.unit()) as f32 * self.radius).min(self.radius);
        let mut radii: Vec<f32> = self.points.iter().map(|_| radius()).collect();
        radii[0] = self.radius;
        radii
    }
}

fn itself<'a>(grid: &'a Grid, radii: SetRadii<&'a SortedRadii>) -> PairOfSets<'a> {
    PairOfSets {
        targets: grid,
        sources: grid,
        same_set: true,
        radii,
        filter: Default::default(),
        share: None,
    }
}

fn traverse<K: PairKernel>(
    backend: &CpuBackend,
    kernel: &K,
    sets: PairOfSets<'_>,
    fields: Fields<'_>,
) -> Vec<K::Output> {
    let mut results = vec![K::Output::read(|_| f32::NAN); sets.targets.points().len()];
    let output = Output::Write(&mut results);
    backend.traverse(kernel, sets, fields, output).unwrap();
    results
}

/// Fields of targets and sources alike.
fn of_both<'a>(both: &'a [Field<'a>]) -> Fields<'a> {
    Fields {
        targets: both,
        sources: both,
    }
}

/// Fields of sources alone.
fn of_sources<'a>(sources: &'a [Field<'a>]) -> Fields<'a> {
    Fields {
        targets: &[],
        sources,
    }
}

/// A kernel that is to be evaluated from both sides.
struct Twice<'a, K>(&'a K);

impl<K: PairKernel> PairKernel for Twice<'_, K> {
    type Target = K::Target;
    type Source = K::Source;
    type Output = K::Output;
    const REDUCE: Reduce = K::REDUCE;
    const PACKED: bool = K::PACKED;
    const SYMMETRIC: bool = false;

    #[inline(always)]
    fn pair(&self, pair: Pair, target: K::Target, source: K::Source) -> K::Output {
        self.0.pair(pair, target, source)
    }
}

/// The sizes of a kernel's contributions, which bound what their order of summation changes.
struct Sizes<'a, K>(&'a K);

impl<K: PairKernel> PairKernel for Sizes<'_, K> {
    type Target = K::Target;
    type Source = K::Source;
    type Output = K::Output;

    #[inline(always)]
    fn pair(&self, pair: Pair, target: K::Target, source: K::Source) -> K::Output {
        let mut channels = [0.0f32; 16];
        let value = self.0.pair(pair, target, source);
        value.write(|channel, value| channels[channel] = value.abs());
        K::Output::read(|channel| channels[channel])
    }
}

/// Whole numbers that tell target, source and direction apart; their sums are exact in any order.
struct Labels;

impl PairKernel for Labels {
    type Target = f32;
    type Source = f32;
    type Output = [f32; 3];
    const SYMMETRIC: bool = true;

    #[inline(always)]
    fn pair(&self, pair: Pair, target: f32, source: f32) -> [f32; 3] {
        let ahead = pair.d[0] + pair.d[1] > pair.d[2];
        [
            1.0,
            source + 2.0 * target,
            if ahead { source } else { -1.0 },
        ]
    }
}

fn labels(points: usize) -> Vec<f32> {
    (0..points).map(|i| (i % 61) as f32).collect()
}

/// The expected results of [`Labels`], from the oracle's lists.
fn expected_labels(problem: &Problem<'_>) -> Vec<[f32; 3]> {
    let labels = labels(problem.targets.len());
    let contribution = |i: usize, j: usize| {
        let [from, to] = [problem.targets[i], problem.targets[j]];
        let d = [to[0] - from[0], to[1] - from[1], to[2] - from[2]];
        Labels.pair(Pair { d, d2: 0.0 }, labels[i], labels[j])
    };
    let sum = |(i, list): (usize, &Vec<u32>)| {
        let mut sum = [0.0; 3];
        for &j in list {
            let value = contribution(i, j as usize);
            sum = [sum[0] + value[0], sum[1] + value[1], sum[2] + value[2]];
        }
        sum
    };
    let lists = problem.index_lists();
    lists.par_iter().enumerate().map(sum).collect()
}

/// The smallest (or largest) of values that tell target, source and direction apart.
struct Extreme<const MAX: bool>;

impl<const MAX: bool> PairKernel for Extreme<MAX> {
    type Target = f32;
    type Source = [f32; 2];
    type Output = (f32, [f32; 2]);
    const REDUCE: Reduce = if MAX { Reduce::Max } else { Reduce::Min };
    const SYMMETRIC: bool = true;

    #[inline(always)]
    fn pair(&self, pair: Pair, target: f32, source: [f32; 2]) -> Self::Output {
        let [x, y, z] = pair.d;
        (
            pair.d2 * target,
            [x * source[0] + y * target, z - source[1]],
        )
    }
}

fn force(radius: f32) -> SphForce {
    SphForce {
        kernel: WendlandC2::with_support(radius),
        h: 0.5 * radius,
        alpha_c: 0.3,
    }
}

fn channels<T: Channels>(value: T) -> [f32; 16] {
    let mut channels = [0.0; 16];
    value.write(|channel, value| channels[channel] = value);
    channels
}

fn bits<T: Channels>(values: &[T]) -> Vec<[u32; 16]> {
    let bits = |value: &T| channels(*value).map(f32::to_bits);
    values.iter().map(bits).collect()
}

/// Compares sums over pairs evaluated once with those over pairs evaluated twice, and returns
/// whether any bit differs, as the order of summation does.
fn check_sums<K: PairKernel>(
    what: &str,
    backend: &CpuBackend,
    kernel: &K,
    sets: PairOfSets<'_>,
    fields: Fields<'_>,
) -> bool {
    let once = traverse(backend, kernel, sets, fields);
    let twice = traverse(backend, &Twice(kernel), sets, fields);
    let sizes = traverse(backend, &Sizes(kernel), sets, fields);
    let mut counts = vec![0; once.len()];
    backend.count(sets, &mut counts).unwrap();
    for i in 0..once.len() {
        let [a, b, size] = [once[i], twice[i], sizes[i]].map(channels);
        for channel in 0..K::Output::COUNT {
            // Either sum is off by less than a rounding of all sizes together per contribution.
            let tolerance = counts[i] as f32 * f32::EPSILON * size[channel];
            let apart = (a[channel] - b[channel]).abs();
            assert!(
                apart <= tolerance,
                "{what}, point {i}, channel {channel}: {} and {}",
                a[channel],
                b[channel]
            );
        }
    }
    bits(&once) != bits(&twice)
}

/// A solver sorts its points once a step and evaluates several kernels over their pairs. The later
/// ones read the notes of the first.
#[test]
fn traversals_of_the_same_points_have_the_bits_of_the_first() {
    for scene in scenes() {
        let name = scene.name;
        let velocities = scene.values(3, 2).as_chunks::<3>().0.to_vec();
        let [densities, pressures] = [3, 4].map(|seed| scene.values(1, seed));
        let masses = scene.values(1, 1);
        let masses = [Field::from(&masses)];
        let states = [
            Field::from(&velocities),
            Field::from(&densities),
            Field::from(&pressures),
        ];
        let sources = [&states[..], &masses].concat();
        let of_both = Fields {
            targets: &states,
            sources: &sources,
        };
        let (density, force) = (SphDensity::with_support(scene.radius), force(scene.radius));
        for &level in SimdLevel::available() {
            let new = || CpuBackend::new(2).unwrap().with_level(level);
            let (backend, grid) = (new(), scene.grid(1));
            let sets = itself(&grid, SetRadii::Uniform);
            let densities = bits(&traverse(&new(), &density, sets, of_sources(&masses)));
            let forces = bits(&traverse(&new(), &force, sets, of_both));
            for step in 0..3 {
                let grid = scene.grid(1);
                let sets = itself(&grid, SetRadii::Uniform);
                for time in 0..2 {
                    let found = traverse(&backend, &density, sets, of_sources(&masses));
                    assert!(
                        bits(&found) == densities,
                        "{name}, {level:?}, {step}, {time}"
                    );
                    let found = traverse(&backend, &force, sets, of_both);
                    assert!(bits(&found) == forces, "{name}, {level:?}, {step}, {time}");
                }
            }
        }
    }
}

#[test]
fn sums_are_those_of_pairs_evaluated_from_both_sides() {
    let backend = CpuBackend::new(2).unwrap();
    for scene in scenes() {
        let (grid, name) = (scene.grid(1), scene.name);
        let sets = itself(&grid, SetRadii::Uniform);
        let masses = scene.values(1, 1);
        let density = SphDensity::with_support(scene.radius);
        let masses = [Field::from(&masses)];
        let fields = of_sources(&masses);
        let differs = check_sums(name, &backend, &density, sets, fields);
        assert!(differs, "{name}: pairs are evaluated once");
        let states = scene.values(5, 2);
        let states: Vec<_> = states
            .chunks(5)
            .map(|s| ([s[0], s[1], s[2]], s[3], s[4]))
            .collect();
        let velocities: Vec<[f32; 3]> = states.iter().map(|state| state.0).collect();
        let densities: Vec<f32> = states.iter().map(|state| state.1).collect();
        let pressures: Vec<f32> = states.iter().map(|state| state.2).collect();
        let of_both = [
            Field::from(&velocities),
            Field::from(&densities),
            Field::from(&pressures),
        ];
        let of_sources = [&of_both[..], &masses].concat();
        let fields = Fields {
            targets: &of_both,
            sources: &of_sources,
        };
        let differs = check_sums(name, &backend, &force(scene.radius), sets, fields);
        assert!(differs, "{name}: pairs are evaluated once");
    }
}

#[test]
fn every_pair_is_visited_once_in_either_direction() {
    let backend = CpuBackend::new(2).unwrap();
    for scene in scenes() {
        let labels = labels(scene.points.len());
        let both = [Field::from(&labels)];
        let fields = of_both(&both);
        let pairing = Pairing::Within(oracle::ListKind::Full);
        let problem = Problem::open(scene.radius, &scene.points, pairing);
        let expected = expected_labels(&problem);
        for subdivision in 1..=3 {
            let grid = scene.grid(subdivision);
            let sets = itself(&grid, SetRadii::Uniform);
            let found = traverse(&backend, &Labels, sets, fields);
            assert!(found == expected, "{} at K = {subdivision}", scene.name);
        }
    }
}

/// Bricks of `edge`³ cells, given to part 1 where `own` says so, counted from the first brick.
fn shared_bricks(grid: &Grid, edge: u32, own: impl Fn([u32; 3]) -> bool) -> BrickParts {
    let cells: Vec<_> = grid.cells(0..grid.points().len()).collect();
    let bricks = |axis: usize| {
        let of = cells
            .iter()
            .map(move |(cell, _)| cell[axis].div_euclid(i64::from(edge)));
        (of.clone().min().unwrap(), of.max().unwrap())
    };
    let ends = [bricks(0), bricks(1), bricks(2)];
    // Bricks outside the box, far away, are of part 0.
    let dims = ends.map(|(first, last)| (last - first + 1).min(64) as u32);
    let first = ends.map(|(first, _)| first);
    let mut parts = BrickParts::new(edge, first, dims, 0, usize::MAX)
        .unwrap()
        .unwrap();
    for z in 0..dims[2] {
        for y in 0..dims[1] {
            for x in (0..dims[0]).filter(|&x| own([x, y, z])) {
                let brick = [x, y, z];
                let at = std::array::from_fn(|axis| first[axis] + i64::from(brick[axis]));
                parts.set(at, 1);
            }
        }
    }
    parts
}

#[test]
fn of_a_share_every_target_meets_all_its_neighbours_once() {
    let backend = CpuBackend::new(2).unwrap();
    // Most of the bricks, a slab, every other brick (whose pairs are evaluated from both sides),
    // all, and none.
    type Own = fn([u32; 3]) -> bool;
    let shares: [(&str, Own); 5] = [
        ("most", |[x, y, z]| (7 * x + 3 * y + 5 * z) % 11 != 0),
        ("a slab", |[_, _, z]| z % 16 < 7),
        ("every other", |[x, y, z]| (x + y + z) % 2 == 0),
        ("all", |_| true),
        ("none", |_| false),
    ];
    let mut once = 0;
    let small = ["lattice", "a small film across z", "outliers", "few points"];
    let scenes = scenes().into_iter();
    for scene in scenes.filter(|scene| small.contains(&scene.name)) {
        let labels = labels(scene.points.len());
        let masses = scene.values(1, 1);
        let both = [Field::from(&labels)];
        let fields = of_both(&both);
        let masses = [Field::from(&masses)];
        let of_masses = of_sources(&masses);
        let density = SphDensity::with_support(scene.radius);
        let pairing = Pairing::Within(oracle::ListKind::Full);
        let expected = expected_labels(&Problem::open(scene.radius, &scene.points, pairing));
        for (subdivision, edge) in [(1, 1), (1, 2), (2, 3)] {
            let grid = scene.grid(subdivision);
            for (name, own) in shares {
                let what = format!(
                    "{}, {name}, K = {subdivision}, bricks of {edge}",
                    scene.name
                );
                let bricks = shared_bricks(&grid, edge, own);
                let rows = grid.lattice().rows().iter();
                let reach = rows
                    .map(|row| row.reach.max(row.y.abs()).max(row.z.abs()))
                    .max();
                let near = bricks
                    .around(|part| part == 1, (reach.unwrap() as u32).div_ceil(edge))
                    .unwrap();
                let mut part = Grid::new(grid.lattice().clone());
                part.build_part(&scene.points, grid.bounds(), grid.lattice(), &near, 1)
                    .unwrap();
                for grid in [&grid, &part] {
                    let spent = Spent::default();
                    // Of another traversal, and so none of this one's business.
                    let mut taken: Vec<AtomicBool> = Vec::new();
                    taken.resize_with(scene.points.len(), || AtomicBool::new(true));
                    let sets = PairOfSets {
                        share: Some(Share {
                            bricks: &bricks,
                            parts: (1, 255),
                            taken: &taken,
                            spent: &spent,
                        }),
                        ..itself(grid, SetRadii::Uniform)
                    };
                    let mut found = vec![[f32::NAN; 3]; scene.points.len()];
                    let output = Output::Write(&mut found);
                    backend.traverse(&Labels, sets, fields, output).unwrap();
                    for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                        let mine = bricks.part(grid.lattice().cell(scene.points[i])) == 1;
                        if mine {
                            assert_eq!(found, expected, "{what}, point {i}")
                        } else {
                            assert!(found[0].is_nan(), "{what}, point {i}")
                        }
                        assert!(
                            !mine || taken[i].load(Ordering::Relaxed),
                            "{what}, point {i}"
                        );
                    }
                    let mut sums = [0, 1].map(|_| vec![0.0f32; scene.points.len()]);
                    let [from_one, from_both] = &mut sums;
                    backend
                        .traverse(&density, sets, of_masses, Output::Write(from_one))
                        .unwrap();
                    let twice = Twice(&density);
                    backend
                        .traverse(&twice, sets, of_masses, Output::Write(from_both))
                        .unwrap();
                    once += usize::from(bits(&sums[0]) != bits(&sums[1]));
                }
            }
        }
    }
    assert!(once > 20, "pairs are evaluated once: {once}");
}

#[test]
fn extremes_are_those_of_pairs_evaluated_from_both_sides() {
    fn check<const MAX: bool>(backend: &CpuBackend, scene: &Scene) {
        let (targets, sources) = (scene.values(1, 3), scene.values(2, 4));
        let sources: Vec<[f32; 2]> = sources.chunks(2).map(|pair| [pair[0], pair[1]]).collect();
        let fields = Fields {
            targets: &[Field::from(&targets)],
            sources: &[Field::from(&sources)],
        };
        let grid = scene.grid(1);
        let sets = itself(&grid, SetRadii::Uniform);
        let once = traverse(backend, &Extreme::<MAX>, sets, fields);
        let twice = traverse(backend, &Twice(&Extreme::<MAX>), sets, fields);
        // Not bit by bit: the reverse of a difference of zero is a negative zero.
        let same = once
            .iter()
            .zip(&twice)
            .all(|(a, b)| channels(*a) == channels(*b));
        assert!(same, "{}, largest: {MAX}", scene.name);
        let alone = Extreme::<MAX>::REDUCE.identity();
        let lonely = once.iter().filter(|value| value.0 == alone).count();
        assert!(
            lonely < once.len() / 2,
            "{}: most have neighbours",
            scene.name
        );
    }
    let backend = CpuBackend::new(2).unwrap();
    for scene in scenes() {
        check::<false>(&backend, &scene);
        check::<true>(&backend, &scene);
    }
}

#[test]
fn results_are_combined_with_what_is_there() {
    let backend = CpuBackend::new(2).unwrap();
    let scene = scene(
        "uniform",
        uniform_box(30_000, [[0.0; 3], [31.0; 3]], 12),
        2.0,
    );
    let grid = scene.grid(1);
    let sets = itself(&grid, SetRadii::Uniform);
    let labels = labels(scene.points.len());
    let both = [Field::from(&labels)];
    let fields = of_both(&both);
    let sums = traverse(&backend, &Labels, sets, fields);
    let mut twice = sums.clone();
    backend
        .traverse(&Labels, sets, fields, Output::Combine(&mut twice))
        .unwrap();
    assert!(
        twice
            .iter()
            .zip(&sums)
            .all(|(a, b)| *a == b.map(|sum| 2.0 * sum))
    );
    let (targets, sources) = (scene.values(1, 3), scene.values(2, 4));
    let sources: Vec<[f32; 2]> = sources.chunks(2).map(|pair| [pair[0], pair[1]]).collect();
    let fields = Fields {
        targets: &[Field::from(&targets)],
        sources: &[Field::from(&sources)],
    };
    let largest = traverse(&backend, &Extreme::<true>, sets, fields);
    let mut at_least_one = vec![(1.0f32, [1.0f32; 2]); largest.len()];
    let output = Output::Combine(&mut at_least_one);
    backend
        .traverse(&Extreme::<true>, sets, fields, output)
        .unwrap();
    let or_one = |(a, [b, c]): (f32, [f32; 2])| (a.max(1.0), [b.max(1.0), c.max(1.0)]);
    assert!(at_least_one.into_iter().eq(largest.into_iter().map(or_one)));
}

#[test]
fn sums_are_the_same_bits_for_any_number_of_threads_and_vector_width() {
    for scene in scenes() {
        let grid = scene.grid(1);
        let backend = CpuBackend::new(1).unwrap();
        let radii = scene.radii();
        let mut sorted = SortedRadii::default();
        backend.sort_radii(&radii, &grid, &mut sorted).unwrap();
        let (targets, sources) = (&sorted, &sorted);
        let masses = scene.values(1, 5);
        let masses = [Field::from(&masses)];
        let fields = of_sources(&masses);
        let kernel = SphDensity::with_support(scene.radius);
        for radii in [SetRadii::Uniform, SetRadii::Symmetric { targets, sources }] {
            let run = |backend: CpuBackend| {
                bits(&traverse(&backend, &kernel, itself(&grid, radii), fields))
            };
            let reference = run(CpuBackend::new(1).unwrap());
            for threads in 2..=4 {
                let found = run(CpuBackend::new(threads).unwrap());
                assert!(found == reference, "{}, {threads} threads", scene.name);
            }
            for &level in SimdLevel::available() {
                let found = run(CpuBackend::new(2).unwrap().with_level(level));
                assert!(found == reference, "{}, {}", scene.name, level.name());
            }
        }
    }
}

/// The problem of a scene with radii for the oracle.
fn problem<'a>(scene: &'a Scene, radii: &'a [f32], rule: oracle::RadiusRule) -> Problem<'a> {
    Problem {
        radii: oracle::Radii {
            rule,
            targets: radii,
            sources: radii,
        },
        ..Problem::open(
            scene.radius,
            &scene.points,
            Pairing::Within(oracle::ListKind::Full),
        )
    }
}

#[test]
fn radii_of_single_points_decide_by_every_rule() {
    let backend = CpuBackend::new(2).unwrap();
    let rules = [
        (RadiusRule::Gather, oracle::RadiusRule::Gather),
        (RadiusRule::Scatter, oracle::RadiusRule::Scatter),
        (RadiusRule::Symmetric, oracle::RadiusRule::Symmetric),
    ];
    for scene in scenes() {
        let radii = scene.radii();
        let labels = labels(scene.points.len());
        let both = [Field::from(&labels)];
        let fields = of_both(&both);
        for (rule, same_rule) in rules {
            let expected = expected_labels(&problem(&scene, &radii, same_rule));
            for subdivision in 1..=2 {
                let grid = scene.grid(subdivision);
                let mut sorted = SortedRadii::default();
                backend.sort_radii(&radii, &grid, &mut sorted).unwrap();
                let of = || Ok::<_, nearfield_cpu::Error>(&sorted);
                let sets = itself(&grid, rule.choose(of, of).unwrap());
                let found = traverse(&backend, &Labels, sets, fields);
                assert!(
                    found == expected,
                    "{} {rule} at K = {subdivision}",
                    scene.name
                );
            }
        }
    }
}

#[test]
fn sums_by_the_larger_radius_are_those_of_pairs_evaluated_from_both_sides() {
    let backend = CpuBackend::new(2).unwrap();
    for scene in scenes() {
        let grid = scene.grid(1);
        // Less spread, so that points have many neighbours.
        let radii: Vec<f32> = scene
            .radii()
            .iter()
            .map(|r| r.max(0.7 * scene.radius))
            .collect();
        let mut sorted = SortedRadii::default();
        backend.sort_radii(&radii, &grid, &mut sorted).unwrap();
        let (targets, sources) = (&sorted, &sorted);
        let sets = itself(&grid, SetRadii::Symmetric { targets, sources });
        let masses = scene.values(1, 6);
        let kernel = SphDensity::with_support(scene.radius);
        let masses = [Field::from(&masses)];
        let fields = of_sources(&masses);
        let differs = check_sums(scene.name, &backend, &kernel, sets, fields);
        assert!(differs, "{}: pairs are evaluated once", scene.name);
    }
}

#[test]
fn radii_of_another_set_and_half_lists_by_one_sided_rules_are_refused() {
    let backend = CpuBackend::new(1).unwrap();
    let few = scene("few", uniform_box(20, [[0.0; 3], [2.0; 3]], 1), 1.0);
    let fewer = scene("fewer", few.points[..19].to_vec(), 1.0);
    let grid = few.grid(1);
    let (mut sorted, mut other) = (SortedRadii::default(), SortedRadii::default());
    backend.sort_radii(&[0.5; 20], &grid, &mut sorted).unwrap();
    backend
        .sort_radii(&[0.5; 19], &fewer.grid(1), &mut other)
        .unwrap();
    let sources = &other;
    for radii in [
        SetRadii::Gather { targets: sources },
        SetRadii::Scatter { sources },
        SetRadii::Symmetric {
            targets: &sorted,
            sources,
        },
    ] {
        let sets = itself(&grid, radii);
        let refused = |error: nearfield_cpu::Error| {
            let error = error.to_string();
            assert!(error.contains("19 radii for 20 points"), "{error}");
        };
        refused(backend.count(sets, &mut [0; 20]).unwrap_err());
        refused(backend.measure(sets, ListKind::Full).unwrap_err());
        let mut lists = Default::default();
        refused(
            backend
                .search(sets, ListKind::Full, ListOrder::Unspecified, &mut lists)
                .unwrap_err(),
        );
        let mut results = [[0.0; 3]; 20];
        let labels = labels(20);
        let both = [Field::from(&labels)];
        let fields = of_both(&both);
        let output = Output::Write(&mut results);
        refused(backend.traverse(&Labels, sets, fields, output).unwrap_err());
    }
    let targets = &sorted;
    let one_sided = itself(&grid, SetRadii::Gather { targets });
    let error = backend
        .measure(one_sided, ListKind::Half)
        .unwrap_err()
        .to_string();
    assert!(error.contains("by the rule gather"), "{error}");
    let two_sets = PairOfSets {
        same_set: false,
        ..one_sided
    };
    assert!(
        backend.measure(two_sets, ListKind::Half).is_ok(),
        "kept as they are"
    );
}

/// A box, how its points lie and what they are searched with.
struct Boxed {
    name: &'static str,
    domain: Domain,
    /// Maximum distance of points from the box, in boxes.
    strayed: f64,
    points: usize,
    radius: f32,
}

impl Boxed {
    fn grid(&self) -> Grid {
        let mut random = Random::new(31);
        let vectors = self.domain.vectors();
        let mut along = || random.between(-self.strayed, 1.0 + self.strayed);
        let points: Vec<[f32; 3]> = (0..self.points)
            .map(|_| {
                let shares = [along(), along(), along()];
                let at = |axis: usize| {
                    let sum: f64 = (0..3)
                        .map(|k| match vectors[k] {
                            Some(vector) => shares[k] * vector[axis],
                            None if k == axis => 9.0 * shares[k],
                            None => 0.0,
                        })
                        .sum();
                    sum as f32
                };
                [at(0), at(1), at(2)]
            })
            .collect();
        let bounds = Bounds::of((&points).into(), &self.domain).unwrap();
        let radius = Radius::new(self.radius).unwrap();
        let lattice = Lattice::new(radius, self.domain, 1, &bounds).unwrap();
        let mut grid = Grid::new(lattice.clone());
        grid.build((&points).into(), bounds, &lattice).unwrap();
        grid
    }
}

#[test]
fn in_periodic_boxes_every_pair_and_image_is_visited_once_in_either_direction() {
    let cube = |length| Domain::new([Some(length); 3]).unwrap();
    let boxed = |name, domain, strayed, points, radius| Boxed {
        name,
        domain,
        strayed,
        points,
        radius,
    };
    let scenes = [
        boxed("cube", cube(30.0), 0.0, 27_000, 2.0),
        boxed("a few points outside", cube(30.0), 0.005, 27_000, 2.0),
        boxed("most points outside", cube(30.0), 0.6, 27_000, 2.0),
        boxed(
            "a slab",
            Domain::new([Some(40.0), None, Some(40.0)]).unwrap(),
            0.0,
            20_000,
            1.5,
        ),
        boxed(
            "an open x",
            Domain::new([None, Some(40.0), Some(40.0)]).unwrap(),
            0.0,
            20_000,
            1.5,
        ),
        boxed(
            "tilted",
            Domain::triclinic([Some(30.0), Some(28.0), Some(32.0)], [9.0, -7.0, 11.0]).unwrap(),
            0.3,
            27_000,
            2.0,
        ),
        boxed(
            "tilted, a few points outside",
            Domain::triclinic([Some(30.0), Some(28.0), Some(32.0)], [9.0, -7.0, 11.0]).unwrap(),
            0.005,
            27_000,
            2.0,
        ),
        boxed("two cells wide", cube(5.0), 0.0, 300, 2.3),
        boxed("smaller than the radius", cube(1.0), 0.4, 5, 2.2),
        boxed("one point", cube(1.0), 0.0, 1, 1.5),
    ];
    for scene in scenes {
        let grid = scene.grid();
        let (sets, labels) = (itself(&grid, SetRadii::Uniform), labels(scene.points));
        let both = [Field::from(&labels)];
        let fields = of_both(&both);
        let one = CpuBackend::new(1).unwrap();
        let expected = traverse(&one, &Twice(&Labels), sets, fields);
        assert!(expected.iter().any(|sums| sums[0] > 0.0), "{}", scene.name);
        for &level in SimdLevel::available() {
            let backend = CpuBackend::new(2).unwrap().with_level(level);
            let found = traverse(&backend, &Labels, sets, fields);
            assert!(found == expected, "{} at {}", scene.name, level.name());
        }
        // Sums that are rounded are the same bits for any number of threads, and others than those
        // of pairs evaluated twice.
        let masses: Vec<f32> = labels.iter().map(|label| 1.0 + 0.01 * label).collect();
        let masses = [Field::from(&masses)];
        let fields = of_sources(&masses);
        let kernel = SphDensity::with_support(scene.radius);
        let once = bits(&traverse(&one, &kernel, sets, fields));
        let three = CpuBackend::new(3).unwrap();
        assert!(
            once == bits(&traverse(&three, &kernel, sets, fields)),
            "{}",
            scene.name
        );
        let differs = check_sums(scene.name, &one, &kernel, sets, fields);
        assert!(
            differs || scene.points < 1000,
            "{}: evaluated twice",
            scene.name
        );
    }
}
