//! Pairs computed once for both points against the same pairs computed from either side. Without a
//! GPU the tests do nothing, or fail if `NEARFIELD_REQUIRE_GPU=1`.
use crate::common::{Scene, backend};
use nearfield_gpu::{
    Deliver, DeviceField, DeviceFields, DeviceResults, GpuBackend, PairCall, PairFields,
    PairProgram, PairScratch, Strategy,
};
use nearfield_grid::Domain;
use nearfield_pairs::{
    Coefficients, Interactions, LennardJones, Mixing, Pair, PairKernel, SphForce, Truncation,
    WendlandC2, pair_kernel,
};
use nearfield_testkit::{
    cloud::Cloud,
    conformance::{Level, Runner},
    oracle, shapes,
};

/// Whole numbers, which sums hold exactly: the number of neighbours, products of labels, and
/// differences of labels, which change their sign with the side. The backend is told so by
/// [`Signed`] alone.
struct Tally;

#[pair_kernel(crate = nearfield_pairs)]
impl PairKernel for Tally {
    type Target = f32;
    type Source = f32;
    type Output = [f32; 3];
    const SYMMETRIC: bool = true;

    fn pair(&self, _: Pair, target: f32, source: f32) -> [f32; 3] {
        [1.0, target * source, source - target]
    }
}

/// The same, and the backend knows which channel changes its sign.
struct Signed;

#[pair_kernel(crate = nearfield_pairs, antisymmetric = [2])]
impl PairKernel for Signed {
    type Target = f32;
    type Source = f32;
    type Output = [f32; 3];
    const SYMMETRIC: bool = true;

    fn pair(&self, _: Pair, target: f32, source: f32) -> [f32; 3] {
        [1.0, target * source, source - target]
    }
}

/// The source's result is neither the target's nor its opposite.
struct Lopsided;

#[pair_kernel(crate = nearfield_pairs)]
impl PairKernel for Lopsided {
    type Target = (f32, f32);
    type Source = [f32; 3];
    type Output = (f32, f32);
    const SYMMETRIC: bool = true;

    fn pair(&self, _: Pair, (a, b): (f32, f32), [c, d, e]: [f32; 3]) -> (f32, f32) {
        (a + 3.0 * d, b * e - c)
    }
}

/// Products of a number of either point. The third channel of `symmetric` counts the pairs that
/// were evaluated for both points at once; that of `pair` is 0.
struct Traded;

#[pair_kernel(crate = nearfield_pairs)]
impl PairKernel for Traded {
    type Target = (f32, f32);
    type Source = (f32, f32);
    type Output = [f32; 3];
    const SYMMETRIC: bool = true;

    fn pair(&self, _: Pair, (a, b): (f32, f32), (c, d): (f32, f32)) -> [f32; 3] {
        [a * d, b * c, 0.0]
    }

    fn symmetric(&self, _: Pair, i: Labels, j: Labels) -> ([f32; 3], [f32; 3]) {
        let ((a, b), (e, f)) = i;
        let ((g, h), (c, d)) = j;
        ([a * d, b * c, 1.0], [g * f, h * e, 1.0])
    }
}

/// The values of a point of [`Traded`] as a target, and as a source.
type Labels = ((f32, f32), (f32, f32));

/// Sets of one radius, 1.
fn places() -> Vec<(&'static str, Vec<[f32; 3]>, Domain)> {
    let open = Domain::OPEN;
    let cube = |length: f64| Domain::new([Some(length); 3]).unwrap();
    let inside = |count, length: f32| shapes::uniform_box(count, [[0.0; 3], [length; 3]], 5);
    let mixed = [Some(4.2), None, Some(2.5)];
    let tilted = [[5.0, 0.0, 0.0], [1.7, 4.0, 0.0], [-0.8, 2.1, 3.6]];
    let narrow = [[1.3, 0.0, 0.0], [0.6, 1.1, 0.0], [0.2, -0.4, 2.2]];
    let vectors = |vectors: [[f64; 3]; 3]| vectors.map(Some);
    let in_vectors = |of| Domain::from_vectors(vectors(of)).unwrap();
    let large = [
        inside(2000, 1.5),
        shapes::translated(inside(700, 0.4), [6.0, -3.0, 2.0]),
        shapes::translated(inside(33, 6.0), [-3.0; 3]),
    ];
    let scattered = (0..40).map(|k| {
        let by = [k * k * 37, k * 1001, -k * 499].map(|x| x as f32);
        shapes::translated(inside(1 + 3 * k as usize, 1.2), by)
    });
    vec![
        ("one point", vec![[0.5; 3]], open),
        ("two points", vec![[0.95; 3], [1.2; 3]], open),
        ("open", inside(3000, 6.0), open),
        ("thin", inside(500, 9.0), open),
        ("clusters", Cloud::Clusters.points(6000, 3), open),
        ("large cells", large.concat(), open),
        ("far apart", scattered.collect::<Vec<_>>().concat(), open),
        ("periodic", inside(3000, 7.3), cube(7.3)),
        ("large cells and periodic", inside(3000, 3.1), cube(3.1)),
        (
            "outside the box",
            shapes::unwrapped(inside(2000, 5.4), [Some(5.4); 3], 3, 8),
            cube(5.4),
        ),
        (
            "some axes periodic",
            shapes::unwrapped(inside(1500, 6.0), mixed, 1, 9),
            Domain::new(mixed).unwrap(),
        ),
        ("one cell", inside(150, 1.05), cube(1.05)),
        ("two cells", inside(400, 2.1), cube(2.1)),
        ("three cells", inside(900, 3.2), cube(3.2)),
        ("less than a radius", inside(40, 0.45), cube(0.45)),
        (
            "tilted",
            shapes::uniform_cell(2500, tilted, 0.0, 6),
            in_vectors(tilted),
        ),
        (
            "tilted and outside",
            shapes::unwrapped_cell(
                shapes::uniform_cell(1500, tilted, 0.3, 7),
                vectors(tilted),
                2,
                4,
            ),
            in_vectors(tilted),
        ),
        (
            "tilted and narrow",
            shapes::uniform_cell(200, narrow, 0.0, 2),
            in_vectors(narrow),
        ),
    ]
}

/// Sums of a kernel by a strategy. Fields of a point are whole numbers, or what `field` makes of
/// them.
fn sums<K: PairKernel>(
    backend: &GpuBackend,
    kernel: &K,
    scene: &Scene,
    (targets, sources): (&[f32], &[f32]),
    strategy: Strategy,
    scratch: &mut PairScratch,
) -> Vec<f32> {
    use nearfield_pairs::Channels;
    let (program, uniforms) = PairProgram::of(kernel).unwrap();
    // Poisoned, so that what is not written is not taken for a sum.
    let mut found = vec![f32::NAN; scene.sets[0].len() * K::Output::COUNT];
    let fields = PairFields { targets, sources };
    let of = scene.pair(0, 0);
    backend
        .evaluate(
            of,
            PairCall {
                program: &program,
                uniforms: &uniforms,
            },
            fields,
            strategy,
            &mut found,
            scratch,
        )
        .unwrap();
    found
}

/// `channels` whole numbers from 0 to 6 per point.
fn labels(points: usize, channels: usize) -> Vec<f32> {
    (0..points * channels).map(|k| (k * k % 7) as f32).collect()
}

/// Runs `check` on every place with every number of cells to a radius.
fn everywhere(check: impl Fn(&GpuBackend, &str, &[[f32; 3]], &Scene, &mut PairScratch)) {
    let Some(backend) = backend() else { return };
    let mut scratch = PairScratch::default();
    for (name, points, domain) in places() {
        for subdivision in 1..=3 {
            let name = format!("{name}, K = {subdivision}");
            let scene = Scene::new(
                &backend,
                (1.0, domain, subdivision),
                std::slice::from_ref(&points),
            )
            .unwrap();
            check(&backend, &name, &points, &scene, &mut scratch);
        }
    }
}

#[test]
fn every_pair_gives_both_points_their_share_once() {
    everywhere(|backend, name, points, scene, scratch| {
        let [one, two, three] = [1, 2, 3].map(|channels| labels(points.len(), channels));
        let mut both = |strategy| {
            [
                sums(backend, &Signed, scene, (&one, &one), strategy, scratch),
                sums(backend, &Tally, scene, (&one, &one), strategy, scratch),
                sums(backend, &Lopsided, scene, (&two, &three), strategy, scratch),
            ]
        };
        let [expected, found] = [Strategy::Flat, Strategy::HalfTiles].map(&mut both);
        assert!(expected == found, "{name}");
    });
}

#[test]
fn a_kernel_that_evaluates_both_points_at_once_does_so() {
    everywhere(|backend, name, points, scene, scratch| {
        let [one, two, more] = [1, 2, 4].map(|channels| labels(points.len(), channels));
        let (targets, sources) = more.split_at(two.len());
        let counts = sums(
            backend,
            &Signed,
            scene,
            (&one, &one),
            Strategy::Flat,
            scratch,
        );
        let mut by = |strategy| {
            sums(
                backend,
                &Traded,
                scene,
                (targets, sources),
                strategy,
                scratch,
            )
        };
        let [expected, found] = [Strategy::Flat, Strategy::HalfTiles].map(&mut by);
        let (expected, counts) = (expected.as_chunks::<3>().0, counts.as_chunks::<3>().0);
        for ((expected, found), count) in expected.iter().zip(found.as_chunks::<3>().0).zip(counts)
        {
            assert_eq!(found, &[expected[0], expected[1], count[0]], "{name}");
        }
    });
}

#[test]
fn pairs_are_the_contracts_in_the_conformance_run() {
    let Some(backend) = backend() else { return };
    let mut scratch = PairScratch::default();
    let runner = Runner::new(Level::Quick).keep(|case| {
        let one_set = case.sets.len() == 1 && case.list == oracle::ListKind::Full;
        let uniform = case.rule == oracle::RadiusRule::Uniform;
        one_set && uniform && !case.sets[0].is_empty() && !case.is_slanted()
    });
    let mut compared = 0;
    for case in runner.cases() {
        for subdivision in 1..=2 {
            let scene = Scene::of_case(&backend, case, subdivision).unwrap();
            let label = labels(scene.sets[0].len(), 1);
            let mut by = |strategy| {
                let kernel = Signed;
                sums(
                    &backend,
                    &kernel,
                    &scene,
                    (&label, &label),
                    strategy,
                    &mut scratch,
                )
            };
            let [expected, found] = [Strategy::Flat, Strategy::HalfTiles].map(&mut by);
            assert!(expected == found, "{}, K = {subdivision}", case.name);
            compared += 1;
        }
    }
    assert!(compared > 10, "only {compared} cases");
}

/// Whether all sums agree but for rounding: by point, as a share of its largest sum, or of that of
/// half of the points.
fn assert_alike(name: &str, outputs: usize, expected: &[f32], found: &[f32]) {
    let largest = |sums: &[f32]| sums.iter().fold(0.0f32, |most, sum| most.max(sum.abs()));
    let mut sizes: Vec<f32> = expected.chunks(outputs).map(largest).collect();
    sizes.sort_by(f32::total_cmp);
    let middle = sizes[sizes.len() / 2];
    for (i, (a, b)) in expected
        .chunks(outputs)
        .zip(found.chunks(outputs))
        .enumerate()
    {
        let allowed = 1e-3 * (largest(a) + middle);
        let close = a.iter().zip(b).all(|(a, b)| (a - b).abs() <= allowed);
        assert!(close, "{name}: point {i} has {b:?}, not {a:?}");
    }
}

#[test]
fn forces_are_those_of_flat_and_the_same_bits_twice() {
    let atoms = [0.01, 0.02].map(|sigma| Coefficients {
        epsilon: 1.0,
        sigma,
    });
    let table = LennardJones::new(&atoms, Mixing::default(), &[], 1.0, Truncation::Plain).unwrap();
    let force = SphForce {
        kernel: WendlandC2::with_support(1.0),
        h: 0.5,
        alpha_c: 0.3,
    };
    everywhere(|backend, name, points, scene, scratch| {
        let types: Vec<f32> = (0..points.len()).map(|i| (i % 2) as f32).collect();
        let state = |i: usize| {
            let wave = |k: f32| (k * i as f32).sin();
            [
                wave(0.7),
                wave(1.3),
                wave(2.1),
                1.0 + 0.1 * wave(0.3),
                5.0 + wave(0.9),
            ]
        };
        let moving: Vec<f32> = (0..points.len()).flat_map(state).collect();
        let with_mass = |i: usize| [&state(i)[..], &[1.0 + (i % 3) as f32]].concat();
        let massive: Vec<f32> = (0..points.len()).flat_map(with_mass).collect();
        let mut both = |strategy| {
            let kernel = Interactions(&table);
            [
                sums(backend, &kernel, scene, (&types, &types), strategy, scratch),
                sums(
                    backend,
                    &force,
                    scene,
                    (&moving, &massive),
                    strategy,
                    scratch,
                ),
            ]
        };
        let [expected, found, again] =
            [Strategy::Flat, Strategy::HalfTiles, Strategy::HalfTiles].map(&mut both);
        for ((expected, found), outputs) in expected.iter().zip(&found).zip([5, 3]) {
            assert_alike(name, outputs, expected, found);
        }
        let bits = |sums: &[Vec<f32>; 2]| {
            sums.concat()
                .into_iter()
                .map(f32::to_bits)
                .collect::<Vec<_>>()
        };
        assert!(bits(&found) == bits(&again), "{name}: other bits");
    });
}

#[test]
fn sums_are_added_once_to_what_was_there() {
    everywhere(|backend, name, points, scene, scratch| {
        let label = labels(points.len(), 1);
        let expected = sums(
            backend,
            &Signed,
            scene,
            (&label, &label),
            Strategy::Flat,
            scratch,
        );
        let stream = backend.stream().clone();
        let on_device = stream.clone_htod(&label).unwrap();
        let before: Vec<f32> = (0..expected.len()).map(|k| (k % 5) as f32).collect();
        let mut results = stream.clone_htod(&before).unwrap();
        let (program, uniforms) = PairProgram::of(&Signed).unwrap();
        let field = || vec![DeviceField::new(on_device.as_view(), 1)];
        let fields = DeviceFields {
            targets: field(),
            sources: field(),
        };
        backend
            .evaluate_on_device(
                scene.pair(0, 0),
                PairCall {
                    program: &program,
                    uniforms: &uniforms,
                },
                &fields,
                DeviceResults {
                    values: &mut results.as_view_mut(),
                    deliver: Deliver::Combine,
                },
                Strategy::HalfTiles,
                scratch,
            )
            .unwrap();
        let found = stream.clone_dtoh(&results).unwrap();
        let added = before.iter().zip(&expected).map(|(a, b)| a + b);
        assert!(found.into_iter().eq(added), "{name}");
    });
}
