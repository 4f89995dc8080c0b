//! The backend on a GPU against the oracle and the CPU backend. Without a GPU the tests do nothing,
//! or fail if `NEARFIELD_REQUIRE_GPU=1`.
use crate::common::{Scene, backend};
use nearfield_cpu::{CpuBackend, Fields, Output, PairOfSets, SetRadii};
use nearfield_gpu::{
    Destination, DeviceLattice, DeviceLists, DevicePoints, Error, ErrorKind, GpuBackend, HostLists,
    PairCall, PairFields, PairOfPoints, PairProgram, PairScratch, PositionBounds, Strategy,
};
use nearfield_grid::{Bounds, Domain, Grid, Lattice, Radius};
use nearfield_pairs::{
    Cuda, Field, ListKind, Pair, PairKernel, Reduce, SphDensity, SphForce, WendlandC2, pair_kernel,
};
use nearfield_testkit::{
    cloud::Cloud,
    conformance::{Case, Level, Lists, Runner},
    oracle, shapes,
};

fn kind(case: &Case) -> ListKind {
    match case.list {
        oracle::ListKind::Full => ListKind::Full,
        oracle::ListKind::Half => ListKind::Half,
    }
}

fn lists(
    backend: &GpuBackend,
    case: &Case,
    subdivision: u32,
    strategy: Strategy,
    storage: &mut DeviceLists,
) -> Result<Lists, Error> {
    let scene = Scene::of_case(backend, case, subdivision)?;
    let pair = scene.pair(case.target, case.source);
    backend.search(pair, kind(case), strategy, storage)?;
    let targets = case.targets().len();
    // Poisoned, so that what is not written is not taken for a list.
    let (mut start, mut count) = (vec![u64::MAX; targets], vec![u32::MAX; targets]);
    let mut entries = vec![u32::MAX; storage.pairs() as usize];
    storage.download(backend, &mut start, &mut count, &mut entries)?;
    let list = |i: usize| {
        let begin = start[i] as usize;
        entries[begin..begin + count[i] as usize].to_vec()
    };
    let mut counts = vec![u32::MAX; targets];
    let (to, scratch) = (Destination::whole(&mut counts), &mut PairScratch::default());
    backend.count(pair, kind(case), strategy, to, scratch)?;
    assert_eq!(counts, count, "counted and listed");
    Ok((0..targets).map(list).collect())
}

fn conform(level: Level, strategies: &[Strategy], subdivisions: &[u32]) {
    let Some(backend) = backend() else { return };
    let runner = Runner::new(level).keep(|case| case.rule == oracle::RadiusRule::Uniform);
    let mut storage = DeviceLists::default();
    for &strategy in strategies {
        for &subdivision in subdivisions {
            let run = |case: &Case| {
                lists(&backend, case, subdivision, strategy, &mut storage)
                    .map_err(|error| format!("{strategy}, K = {subdivision}: {error}"))
            };
            let summary = runner.run(run).unwrap();
            println!("{strategy}, K = {subdivision}: {summary:?}");
        }
    }
}

#[test]
fn flat_lists_are_the_contracts() {
    conform(Level::Quick, &[Strategy::Flat], &[1, 2, 3]);
}

#[test]
fn lists_of_child_kernels_are_the_contracts() {
    conform(
        Level::Quick,
        &[Strategy::ChildPerCell, Strategy::ChildAggregated],
        &[1],
    );
}

#[test]
#[ignore = "minutes"]
fn lists_are_the_contracts_in_the_full_conformance_run() {
    conform(Level::Full, &Strategy::ALL, &[1, 2]);
}

fn grid(points: &[[f32; 3]], radius: f32, subdivision: u32) -> Grid {
    let bounds = Bounds::of(points.into(), &Domain::OPEN).unwrap();
    let radius = Radius::new(radius).unwrap();
    let lattice = Lattice::new(radius, Domain::OPEN, subdivision, &bounds).unwrap();
    let mut grid = Grid::new(lattice.clone());
    grid.build(points.into(), bounds, &lattice).unwrap();
    grid
}

fn open(backend: &GpuBackend, points: &[[f32; 3]], radius: f32, subdivision: u32) -> Scene {
    Scene::new(
        backend,
        (radius, Domain::OPEN, subdivision),
        &[points.to_vec()],
    )
    .unwrap()
}

/// Clouds with full and with empty cells, and their radii.
fn clouds_of_all_kinds() -> [(Vec<[f32; 3]>, f32); 4] {
    let large = [
        shapes::coincident(3000, [0.5; 3]),
        shapes::coincident(129, [7.0; 3]),
        Cloud::Uniform.points(5000, 3),
    ]
    .concat();
    [
        (Cloud::Lattice.points(64_000, 1), 2.0),
        (Cloud::Clusters.points(200_000, 2), 1.0),
        (large, 1.0),
        (Cloud::Plummer.points(20_000, 4), 0.1),
    ]
}

#[test]
fn the_sorted_order_is_that_of_the_cpu() {
    let Some(backend) = backend() else { return };
    let mut compared = 0;
    for (points, radius) in clouds_of_all_kinds() {
        for subdivision in [1, 2, 4] {
            let scene = open(&backend, &points, radius, subdivision);
            // Bricks are numbered as they are found.
            if scene.sets[0].is_sparse() {
                continue;
            }
            compared += 1;
            let found = scene.sets[0].order(&backend).unwrap();
            let permutation = grid(&points, radius, subdivision).permutation().unwrap();
            assert_eq!(found, permutation.order());
        }
    }
    assert!(compared >= 6, "only {compared} tables are dense");
}

#[test]
fn the_occupancy_of_cells_is_that_of_the_cpu() {
    let Some(backend) = backend() else { return };
    let far: Vec<[f32; 3]> = (0..999)
        .map(|k| [0, 1, 2].map(|a| 1e3 * (k * k % (97 + a)) as f32))
        .collect();
    let mut kinds = [0, 0];
    for (points, radius) in clouds_of_all_kinds().into_iter().chain([(far, 1.0)]) {
        for subdivision in [1, 2] {
            let scene = open(&backend, &points, radius, subdivision);
            kinds[usize::from(scene.sets[0].is_sparse())] += 1;
            let found = backend.occupancy(&scene.sets[0]).unwrap();
            let grid = grid(&points, radius, subdivision);
            let squares = grid
                .cells(0..points.len())
                .map(|(_, slots)| slots.len().pow(2));
            assert_eq!(found, squares.sum::<usize>() as f64 / points.len() as f64);
        }
    }
    assert!(
        kinds.iter().all(|kind| *kind != 0),
        "dense and sparse: {kinds:?}"
    );
    assert_eq!(backend.occupancy(&backend.points()).unwrap(), 0.0);
}

fn compare<K: PairKernel<Output = O>, O: Copy + Default + bytemuck::Pod>(
    kernel: &K,
    points: &[[f32; 3]],
    radius: f32,
    fields: (&[Field<'_>], &[f32]),
    sources: (&[Field<'_>], &[f32]),
    tolerance: f32,
) {
    let Some(backend) = backend() else { return };
    let cpu = CpuBackend::new(2).unwrap();
    let grid = grid(points, radius, 1);
    let sets = PairOfSets {
        targets: &grid,
        sources: &grid,
        same_set: true,
        radii: SetRadii::Uniform,
        filter: Default::default(),
        share: None,
    };
    let mut expected = vec![O::default(); points.len()];
    let of_cpu = Fields {
        targets: fields.0,
        sources: sources.0,
    };
    cpu.traverse(kernel, sets, of_cpu, Output::Write(&mut expected))
        .unwrap();
    let expected: &[f32] = bytemuck::cast_slice(&expected);
    let finite = expected.iter().filter(|x| x.is_finite());
    let scale = finite.map(|x| x.abs()).fold(0.0, f32::max);
    assert!(scale > 0.0, "nothing to compare");
    let (program, uniforms) = PairProgram::of(kernel).unwrap();
    let mut scratch = PairScratch::default();
    for strategy in Strategy::ALL {
        for subdivision in [1, 2] {
            let scene = open(&backend, points, radius, subdivision);
            let mut found = vec![f32::NAN; expected.len()];
            let on_device = PairFields {
                targets: fields.1,
                sources: sources.1,
            };
            let of = scene.pair(0, 0);
            backend
                .evaluate(
                    of,
                    PairCall {
                        program: &program,
                        uniforms: &uniforms,
                    },
                    on_device,
                    strategy,
                    &mut found,
                    &mut scratch,
                )
                .unwrap();
            for (i, (a, b)) in expected.iter().zip(&found).enumerate() {
                let error = (a - b).abs() / (a.abs() + 0.01 * scale);
                assert!(
                    a == b || error <= tolerance,
                    "{strategy}: value {i} is {b}, not {a}"
                );
            }
        }
    }
}

#[test]
fn densities_are_those_of_the_cpu() {
    let points = Cloud::Clusters.points(20_000, 7);
    let mass: Vec<f32> = (0..points.len()).map(|i| 1.0 + (i % 7) as f32).collect();
    let kernel = SphDensity {
        kernel: WendlandC2::with_support(1.0),
    };
    let sources = [Field::from(&mass)];
    compare(&kernel, &points, 1.0, (&[], &[]), (&sources, &mass), 2e-5);
}

#[test]
fn forces_are_those_of_the_cpu() {
    let points = Cloud::Lattice.points(27_000, 8);
    let count = points.len();
    let wave = |i: usize, k: f32| (k * i as f32).sin();
    let velocity: Vec<[f32; 3]> = (0..count)
        .map(|i| [wave(i, 0.7), wave(i, 1.3), wave(i, 2.1)])
        .collect();
    let density: Vec<f32> = (0..count).map(|i| 1.0 + 0.1 * wave(i, 0.3)).collect();
    let pressure: Vec<f32> = (0..count).map(|i| 5.0 + wave(i, 0.9)).collect();
    let mass = vec![1.5f32; count];
    let kernel = SphForce {
        kernel: WendlandC2::with_support(2.0),
        h: 1.0,
        alpha_c: 0.3,
    };
    let of_targets: Vec<f32> = (0..count)
        .flat_map(|i| {
            [
                velocity[i][0],
                velocity[i][1],
                velocity[i][2],
                density[i],
                pressure[i],
            ]
        })
        .collect();
    let of_sources: Vec<f32> = of_targets
        .chunks(5)
        .zip(&mass)
        .flat_map(|(shared, &mass)| [shared, &[mass]].concat())
        .collect();
    let targets = [
        Field::from(&velocity),
        Field::from(&density),
        Field::from(&pressure),
    ];
    let sources = [targets[0], targets[1], targets[2], Field::from(&mass)];
    compare(
        &kernel,
        &points,
        2.0,
        (&targets, &of_targets),
        (&sources, &of_sources),
        2e-4,
    );
}

/// The distance to the nearest and the farthest neighbour, by either reduction.
struct Extreme<const FAR: bool>;

#[pair_kernel(crate = nearfield_pairs)]
impl<const FAR: bool> PairKernel for Extreme<FAR> {
    type Target = ();
    type Source = ();
    type Output = f32;
    const REDUCE: Reduce = if FAR { Reduce::Max } else { Reduce::Min };

    fn pair(&self, pair: Pair, _: (), _: ()) -> f32 {
        pair.d2
    }
}

#[test]
fn smallest_and_largest_are_those_of_the_cpu_to_the_bit() {
    let points = Cloud::PoolSpray.points(20_000, 9);
    compare(&Extreme::<false>, &points, 2.0, (&[], &[]), (&[], &[]), 0.0);
    compare(&Extreme::<true>, &points, 2.0, (&[], &[]), (&[], &[]), 0.0);
}

struct Broken;

impl PairKernel for Broken {
    type Target = ();
    type Source = ();
    type Output = f32;

    fn pair(&self, _: Pair, _: (), _: ()) -> f32 {
        0.0
    }

    fn cuda(&self) -> Option<Cuda> {
        let text = "void pair(const float*, const Pair& p, const float*, const float*, float* r) {\n\
                    \n    r[0] = p.distance;\n}";
        // SAFETY: it reads the channels of the kernel and writes its result, nothing else.
        Some(unsafe { Cuda::new("mine.cu", text) })
    }
}

#[test]
fn compile_errors_name_the_users_own_line() {
    let Some(backend) = backend() else { return };
    let points = shapes::lattice([3, 3, 3]);
    let scene = open(&backend, &points, 1.5, 1);
    let (program, uniforms) = PairProgram::of(&Broken).unwrap();
    let mut found = vec![0.0; points.len()];
    let error = backend
        .evaluate(
            scene.pair(0, 0),
            PairCall {
                program: &program,
                uniforms: &uniforms,
            },
            PairFields::default(),
            Strategy::Flat,
            &mut found,
            &mut PairScratch::default(),
        )
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("mine.cu(3)") && error.contains("distance"),
        "{error}"
    );
}

#[test]
fn coordinates_that_are_not_finite_are_found() {
    let Some(backend) = backend() else { return };
    let mut points = Cloud::Uniform.points(5000, 1);
    points[4000][1] = f32::NAN;
    points[3000][2] = f32::NEG_INFINITY;
    let mut set = backend.points();
    let measured = backend.upload(&mut set, &points).unwrap();
    assert_eq!(
        measured,
        PositionBounds::NotFinite {
            first: 3000,
            count: 2
        }
    );
    points.truncate(3000);
    let measured = backend.upload(&mut set, &points).unwrap();
    assert!(
        matches!(measured, PositionBounds::Bounds(_)),
        "usable again"
    );
}

#[test]
fn a_set_sorted_again_says_when_points_have_left_its_cells() {
    let Some(backend) = backend() else { return };
    let stream = backend.stream().clone();
    let points = Cloud::Uniform.points(5000, 1);
    for subdivision in [1, 2] {
        let bounds = Bounds::of(points.as_slice().into(), &Domain::OPEN).unwrap();
        let radius = Radius::new(1.0).unwrap();
        let lattice = Lattice::new(radius, Domain::OPEN, subdivision, &bounds).unwrap();
        let lattice = backend.lattice(&lattice, subdivision).unwrap();
        let mut set = backend.points();
        assert!(matches!(
            backend.sort_again(&mut backend.points(), &lattice),
            Ok(())
        ));
        backend.upload(&mut set, &points).unwrap();
        assert!(matches!(
            backend
                .sort_again(&mut set, &lattice)
                .as_ref()
                .map_err(Error::kind),
            Err(ErrorKind::Unsorted)
        ));
        backend.sort(&mut set, &lattice, &bounds).unwrap();
        // A little farther than the last cell, where empty ones follow, and a lot.
        for beyond in [0.0, 1.2, 2.3, 50.0] {
            let mut moved = points.clone();
            moved[7][0] = bounds.max[0] as f32 + beyond;
            let moved = stream.clone_htod(moved.as_flattened()).unwrap();
            backend.place(&mut set, &moved.as_view()).unwrap();
            backend.sort_again(&mut set, &lattice).unwrap();
            let finished = backend.finish(&mut set, &lattice, &bounds);
            match beyond == 0.0 {
                true => assert!(finished.is_ok(), "{finished:?}"),
                false => assert!(
                    matches!(
                        finished.as_ref().map_err(Error::kind),
                        Err(ErrorKind::Outside { count: 1, .. })
                    ),
                    "{beyond} beyond: {finished:?}"
                ),
            }
        }
    }
}

/// Points of two sets, of any lattice.
fn two_sets<'a>(
    lattice: &'a DeviceLattice,
    targets: &'a DevicePoints,
    sources: &'a DevicePoints,
) -> PairOfPoints<'a> {
    PairOfPoints {
        lattice,
        targets,
        sources,
        same_set: false,
        share: None,
        filter: Default::default(),
    }
}

#[test]
fn points_of_another_lattice_and_lists_of_other_points_are_refused() {
    let Some(backend) = backend() else { return };
    let points = Cloud::Uniform.points(3000, 2);
    let bounds = Bounds::of(points.as_slice().into(), &Domain::OPEN).unwrap();
    let [fine, coarse] = [2, 1].map(|subdivision| {
        let radius = Radius::new(1.0).unwrap();
        let lattice = Lattice::new(radius, Domain::OPEN, subdivision, &bounds).unwrap();
        backend.lattice(&lattice, subdivision).unwrap()
    });
    let [mut one, mut other] = [backend.points(), backend.points()];
    for (set, lattice) in [(&mut one, &fine), (&mut other, &coarse)] {
        backend.upload(set, &points).unwrap();
        // Positions that were never sorted have nothing to be looked at.
        let unsorted = backend.finish(set, lattice, &bounds);
        assert!(
            matches!(
                unsorted.as_ref().map_err(Error::kind),
                Err(ErrorKind::Unsorted)
            ),
            "{unsorted:?}"
        );
        backend.sort(set, lattice, &bounds).unwrap();
    }
    let again = backend.sort_again(&mut other, &fine);
    assert!(
        matches!(
            again.as_ref().map_err(Error::kind),
            Err(ErrorKind::OtherLattice)
        ),
        "{again:?}"
    );
    backend.sort(&mut other, &coarse, &bounds).unwrap();
    let mut storage = DeviceLists::default();
    for of in [two_sets(&fine, &one, &other), two_sets(&fine, &other, &one)] {
        let found = backend.search(of, ListKind::Full, Strategy::Flat, &mut storage);
        assert!(
            matches!(
                found.as_ref().map_err(Error::kind),
                Err(ErrorKind::OtherLattice)
            ),
            "{found:?}"
        );
    }

    // PositionBounds for the set as it was sorted before.
    let measured = backend.measure_lists(
        two_sets(&fine, &one, &one),
        ListKind::Full,
        Strategy::Flat,
        &mut storage,
    );
    let mut entries = vec![0; measured.unwrap() as usize];
    backend.sort_again(&mut one, &fine).unwrap();
    let (mut start, mut count) = (vec![0; points.len()], vec![0; points.len()]);
    let to = HostLists {
        start: &mut start,
        count: &mut count,
        entries: &mut entries,
    };
    let of = two_sets(&fine, &one, &one);
    let delivered = backend.deliver_lists(of, &mut storage, to, None, |_, _| {});
    assert!(
        matches!(
            delivered.as_ref().map_err(Error::kind),
            Err(ErrorKind::OtherLists)
        ),
        "{delivered:?}"
    );
}

#[test]
fn kernels_of_impossibly_many_channels_are_refused() {
    for (place, what) in ["a target", "a source", "a result"].into_iter().enumerate() {
        let mut channels = [1; 3];
        channels[place] = 1 << 60;
        // SAFETY: never compiled.
        let cuda = unsafe { Cuda::new("many.cu", "") };
        let refused = PairProgram::new(cuda, channels, Reduce::Sum).unwrap_err();
        let message = refused.to_string();
        assert!(message.contains(what), "{message}");
        assert!(message.contains("1152921504606846976"), "{message}");
    }
}

#[test]
fn lists_delivered_in_parts_are_those_written_at_once() {
    let Some(backend) = backend() else { return };
    // Some 20 million pairs: several parts, the last one shorter.
    let points = Cloud::Lattice.points(200_000, 5);
    let scene = open(&backend, &points, 3.0, 2);
    let of = scene.pair(0, 0);
    for kind in [ListKind::Full, ListKind::Half] {
        let mut storage = DeviceLists::default();
        backend
            .search(of, kind, Strategy::Flat, &mut storage)
            .unwrap();
        let arrays = |pairs: u64| {
            let (start, count) = (vec![u64::MAX; points.len()], vec![u32::MAX; points.len()]);
            (start, count, vec![u32::MAX; pairs as usize])
        };
        let (mut start, mut count, mut entries) = arrays(storage.pairs());
        storage
            .download(&backend, &mut start, &mut count, &mut entries)
            .unwrap();
        for strategy in [Strategy::Flat, Strategy::ChildAggregated] {
            let mut parts = DeviceLists::default();
            for _ in 0..2 {
                let pairs = backend
                    .measure_lists(of, kind, strategy, &mut parts)
                    .unwrap();
                assert_eq!(pairs, storage.pairs());
                let mut found = arrays(pairs);
                let to = HostLists {
                    start: &mut found.0,
                    count: &mut found.1,
                    entries: &mut found.2,
                };
                let mut placed = 0;
                let whole = |start: &mut [u64], _: &mut [u32]| placed = start.len();
                backend
                    .deliver_lists(of, &mut parts, to, None, whole)
                    .unwrap();
                assert_eq!(placed, start.len());
                assert_eq!((&found.0, &found.1), (&start, &count));
                if strategy == Strategy::Flat {
                    assert!(found.2 == entries, "other entries");
                }
            }
        }
        assert!(kind == ListKind::Half || storage.pairs() > 16 << 20);
    }
}

/// Lists whose rows do not fit their masks are found by warps, or by whole blocks where they are
/// many; both beside another strategy, in all domains.
#[test]
fn rows_beyond_their_masks_are_listed_too() {
    let Some(backend) = backend() else { return };
    let side = 26.0;
    let inside = |points: Vec<[f32; 3]>| -> Vec<[f32; 3]> {
        let within = |x: f32| x.rem_euclid(side as f32).min(side as f32 - 0.001);
        points.into_iter().map(|at| at.map(within)).collect()
    };
    let uniform = Cloud::Uniform.points(20_000, 3);
    let clusters = Cloud::Clusters.points(20_000, 3);
    let periodic = Domain::new([Some(side); 3]).unwrap();
    let tilted = Domain::triclinic([Some(side); 3], [5.2, 2.6, -3.9]).unwrap();
    for (points, radius, domain) in [
        (clusters.clone(), 1.0, Domain::OPEN),
        (uniform.clone(), 2.2, Domain::OPEN),
        (inside(uniform.clone()), 2.2, periodic),
        (inside(clusters.clone()), 0.9, periodic),
        (uniform.clone(), 2.2, periodic),
        (inside(uniform), 2.2, tilted),
        (inside(clusters), 0.9, tilted),
    ] {
        for (kind, subdivision) in [
            (ListKind::Full, 1),
            (ListKind::Full, 2),
            (ListKind::Half, 1),
        ] {
            let scene = Scene::new(
                &backend,
                (radius, domain, subdivision),
                std::slice::from_ref(&points),
            );
            let scene = scene.unwrap();
            let found = [Strategy::Flat, Strategy::ChildAggregated].map(|strategy| {
                let mut storage = DeviceLists::default();
                (backend.search(scene.pair(0, 0), kind, strategy, &mut storage)).unwrap();
                let (mut start, mut count) = (vec![0; points.len()], vec![0; points.len()]);
                let mut entries = vec![u32::MAX; storage.pairs() as usize];
                (storage.download(&backend, &mut start, &mut count, &mut entries)).unwrap();
                let list = |i: usize| {
                    let begin = start[i] as usize;
                    let mut list = entries[begin..begin + count[i] as usize].to_vec();
                    list.sort_unstable();
                    list
                };
                (0..points.len()).map(list).collect::<Vec<_>>()
            });
            assert!(
                found[0] == found[1],
                "{radius} {domain:?} {subdivision} {kind:?}"
            );
        }
    }
}

/// Counting looks first whether a warp has any candidates, lists do not. Of two sets that lie apart
/// in most places both say the same.
#[test]
fn targets_far_from_most_sources_are_counted_as_they_are_listed() {
    let Some(backend) = backend() else { return };
    // By a warp and by a thread per target.
    for count in [9_261, 21_952] {
        let targets = Cloud::Lattice.points(count, 3);
        let side = (count as f32).cbrt();
        let wall = |near: &dyn Fn(&[f32; 3]) -> bool| {
            let near = targets.iter().copied().filter(near);
            near.map(|x| x.map(|x| x + 0.3)).collect::<Vec<_>>()
        };
        let sources = [
            wall(&|x| x[0] < 2.0),
            wall(&|x| x[1] > side - 3.0 || x[2] < 1.5),
            vec![[0.5 * side; 3]],
            // Just in reach of a corner, and of nothing.
            vec![[-1.2; 3], [side + 90.0; 3]],
        ];
        for (sources, subdivision) in sources.iter().flat_map(|s| [1, 2].map(|k| (s, k))) {
            let sets = [targets.clone(), sources.clone()];
            let scene = Scene::new(&backend, (2.3, Domain::OPEN, subdivision), &sets).unwrap();
            let of = scene.pair(0, 1);
            let mut storage = DeviceLists::default();
            (backend.search(of, ListKind::Full, Strategy::Flat, &mut storage)).unwrap();
            let (mut start, mut listed) = (vec![0; targets.len()], vec![0; targets.len()]);
            let mut entries = vec![0; storage.pairs() as usize];
            (storage.download(&backend, &mut start, &mut listed, &mut entries)).unwrap();
            let mut counts = vec![u32::MAX; targets.len()];
            let (to, scratch) = (Destination::whole(&mut counts), &mut PairScratch::default());
            (backend.count(of, ListKind::Full, Strategy::Flat, to, scratch)).unwrap();
            assert!(counts == listed, "{count}, K = {subdivision}");
            let met = counts.iter().filter(|&&count| count > 0).count();
            assert!((1..targets.len() / 2).contains(&met), "{met} of {count}");
        }
    }
}
