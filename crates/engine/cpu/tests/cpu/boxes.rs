//! Points of a periodic domain that lie in different boxes, and pairs in double precision whose
//! distance is that of the radius but for a few roundings: vector loops against the scalar visit of
//! single targets, list by list, image by image and bit by bit.

use nearfield_cpu::{
    CpuBackend, Fields, ListOrder, NeighborLists, Output, PairOfSets, PairScratch, PairsOfImage,
    SetRadii, SimdLevel, VisitPairs,
};
use nearfield_grid::{Bounds, Domain, Grid, Lattice, Radius};
use nearfield_pairs::{ListKind, Pair, PairKernel, Reduce};
use nearfield_testkit::random::Random;
use std::ops::ControlFlow;

/// A pair as it is found: caller's indices, image and the bits of the geometry.
type Found = (u32, [i64; 3], [u32; 4]);

fn found(source: u32, image: [i64; 3], pair: Pair) -> Found {
    let [x, y, z] = pair.d;
    (source, image, [x, y, z, pair.d2].map(f32::to_bits))
}

/// Pairs per sorted target.
#[derive(Default)]
struct Pairs(Vec<Vec<Found>>);

impl VisitPairs for Pairs {
    fn target(&mut self, slot: usize) -> ControlFlow<()> {
        assert_eq!(slot, self.0.len());
        self.0.push(Vec::new());
        ControlFlow::Continue(())
    }

    fn pairs(&mut self, pairs: PairsOfImage<'_>) {
        assert!(!pairs.sources.is_empty());
        let found = |(source, pair)| found(source, pairs.image, pair);
        self.0.last_mut().unwrap().extend(pairs.iter().map(found));
    }
}

/// The number of neighbours, from pairs that are evaluated once for both points.
struct Number;

impl PairKernel for Number {
    type Target = ();
    type Source = ();
    type Output = f32;
    const SYMMETRIC: bool = true;

    fn pair(&self, _: Pair, (): (), (): ()) -> f32 {
        1.0
    }
}

/// The largest displacement along each axis, and the largest square.
struct Largest;

impl PairKernel for Largest {
    type Target = ();
    type Source = ();
    type Output = [f32; 4];
    const REDUCE: Reduce = Reduce::Max;
    const SYMMETRIC: bool = true;

    fn pair(&self, Pair { d: [x, y, z], d2 }: Pair, (): (), (): ()) -> [f32; 4] {
        [x, y, z, d2]
    }
}

/// Compares results of kernels with those of the pairs `expected`, by sorted target.
fn check_kernels(backend: &CpuBackend, sets: PairOfSets<'_>, expected: &[Vec<Found>], name: &str) {
    let index = sets.targets.points().index();
    let none = Fields {
        targets: &[],
        sources: &[],
    };
    let mut number = vec![f32::NAN; expected.len()];
    let mut largest = vec![[f32::NAN; 4]; expected.len()];
    let output = Output::Write(&mut number);
    backend.traverse(&Number, sets, none, output).unwrap();
    let output = Output::Write(&mut largest);
    backend.traverse(&Largest, sets, none, output).unwrap();
    let mut counts = vec![0; expected.len()];
    backend.count(sets, &mut counts).unwrap();
    for (slot, pairs) in expected.iter().enumerate() {
        let target = index[slot] as usize;
        let largest_of = |k: usize| {
            let values = pairs.iter().map(|(.., bits)| f32::from_bits(bits[k]));
            values.fold(f32::NEG_INFINITY, f32::max)
        };
        assert_eq!(
            number[target],
            pairs.len() as f32,
            "{name}: sum of {target}"
        );
        assert_eq!(
            counts[target] as usize,
            pairs.len(),
            "{name}: count of {target}"
        );
        assert_eq!(
            largest[target],
            [0, 1, 2, 3].map(largest_of),
            "{name}: {target}"
        );
    }
}

/// How points are spread over boxes.
#[derive(Debug, Clone, Copy)]
enum Spread {
    /// All inside the box that the domain names.
    Inside,
    /// All in one other box.
    Together,
    /// One in ten outside.
    Few,
    /// Up to this number of boxes away along every vector.
    Far(i64),
}

fn cloud(
    vectors: [Option<[f64; 3]>; 3],
    points: usize,
    spread: Spread,
    random: &mut Random,
) -> Vec<[f64; 3]> {
    let mut point = |_| {
        let mut at = [0.0; 3];
        for (k, vector) in vectors.into_iter().enumerate() {
            let mut share = random.between(0.0, 1.0);
            let away = match spread {
                Spread::Inside => 0,
                Spread::Together => [2, -1, 3][k],
                Spread::Few if random.below(10) > 0 => 0,
                Spread::Few => random.below(3) as i64 - 1,
                Spread::Far(boxes) => random.below(2 * boxes as u64 + 1) as i64 - boxes,
            };
            let vector = vector.unwrap_or_else(|| {
                share = 40.0 + 5.0 * share;
                std::array::from_fn(|axis| f64::from(u8::from(axis == k)))
            });
            let boxes = if vectors[k].is_some() {
                away as f64
            } else {
                0.0
            };
            for axis in 0..3 {
                at[axis] += (share + boxes) * vector[axis];
            }
        }
        at.map(|x| f64::from(x as f32))
    };
    (0..points).map(&mut point).collect()
}

/// Compares everything that is found of the targets among the sources with the scalar visit.
fn check(targets: &Grid, sources: &Grid, same_set: bool, name: &str) -> usize {
    let sets = PairOfSets {
        targets,
        sources,
        same_set,
        radii: SetRadii::Uniform,
        filter: Default::default(),
        share: None,
    };
    let points = targets.points();
    let mut expected = Vec::new();
    for slot in 0..points.len() {
        let mut pairs = Vec::new();
        let visited = sets.for_each_neighbor(slot, |source, image, pair| {
            pairs.push(found(source, image, pair));
        });
        visited.unwrap();
        expected.push(pairs);
    }
    for &level in SimdLevel::available() {
        let backend = CpuBackend::new(1).unwrap().with_level(level);
        let mut visited = Pairs::default();
        let scratch = &mut PairScratch::default();
        let slots = 0..points.len();
        (backend.visit_pairs(sets, slots, scratch, &mut visited)).unwrap();
        assert!(visited.0 == expected, "{name}, {level:?}: pairs");
        check_kernels(&backend, sets, &expected, &format!("{name}, {level:?}"));
        for kind in [ListKind::Full, ListKind::Half] {
            for order in [ListOrder::Unspecified, ListOrder::Ascending] {
                let mut lists = NeighborLists::default();
                backend.search(sets, kind, order, &mut lists).unwrap();
                let got: Vec<_> = lists.iter().collect();
                for (slot, pairs) in expected.iter().enumerate() {
                    let target = points.index()[slot];
                    let belongs = |&&(source, image, _): &&Found| {
                        kind == ListKind::Full
                            || !same_set
                            || source > target
                            || source == target && image > [0; 3]
                    };
                    let mut list: Vec<u32> = (pairs.iter().filter(belongs))
                        .map(|&(source, ..)| source)
                        .collect();
                    if order == ListOrder::Ascending {
                        list.sort_unstable();
                    }
                    assert!(
                        got[target as usize] == list,
                        "{name}, {level:?}: {kind:?} of {target}"
                    );
                }
            }
        }
    }
    expected.iter().map(Vec::len).sum()
}

#[test]
fn points_in_many_boxes_are_found_as_by_single_targets() {
    let straight = [
        Some([4.1, 0.0, 0.0]),
        Some([0.0, 3.3, 0.0]),
        Some([0.0, 0.0, 5.2]),
    ];
    let open_along_y = [straight[0], None, straight[2]];
    // Image vectors are whole multiples of these lengths in single precision too.
    let short = [
        Some([4.125, 0.0, 0.0]),
        Some([0.0, f64::from(3.3f32), 0.0]),
        Some([0.0, 0.0, 5.0]),
    ];
    let tilted = [
        Some([4.1, 0.0, 0.0]),
        Some([1.4, 3.7, 0.0]),
        Some([-0.9, 0.8, 3.9]),
    ];
    let slanted = [Some([4.0, 1.5, 0.0]), None, Some([0.0, -0.7, 4.4])];
    let narrow = [
        Some([1.3, 0.0, 0.0]),
        Some([0.0, 4.0, 0.0]),
        Some([0.0, 0.0, 4.0]),
    ];
    let mut random = Random::new(11);
    for vectors in [straight, open_along_y, short, tilted, slanted, narrow] {
        let domain = Domain::from_vectors(vectors).unwrap();
        for spread in [
            [Spread::Far(1), Spread::Far(1)],
            [Spread::Far(40), Spread::Far(3)],
            [Spread::Few, Spread::Few],
            [Spread::Together, Spread::Together],
            [Spread::Inside, Spread::Far(2)],
            [Spread::Far(2), Spread::Inside],
            [Spread::Together, Spread::Far(1 << 22)],
        ] {
            for double in [false, true] {
                let name = format!("{vectors:?}, {spread:?}, double {double}");
                let radius = if double {
                    Radius::new_f64(1.0)
                } else {
                    Radius::new(1.0)
                };
                // Cells are coarse where coordinates are.
                let far = matches!(spread[1], Spread::Far(100..));
                let points = if far { 60 } else { 200 };
                let [a, b] = spread.map(|spread| cloud(vectors, points, spread, &mut random));
                let single = [&a, &b].map(|points| -> Vec<[f32; 3]> {
                    points.iter().map(|at| at.map(|x| x as f32)).collect()
                });
                let bounds = [&a, &b].map(|points| Bounds::of(points.into(), &domain).unwrap());
                let both = Bounds {
                    min: [0, 1, 2].map(|k| bounds[0].min[k].min(bounds[1].min[k])),
                    max: [0, 1, 2].map(|k| bounds[0].max[k].max(bounds[1].max[k])),
                };
                let lattice = Lattice::new(radius.unwrap(), domain, 1, &both).unwrap();
                let grids = [(&a, &single[0]), (&b, &single[1])].map(|(points, single)| {
                    let mut grid = Grid::new(lattice.clone());
                    if double {
                        grid.build(points.into(), both, &lattice).unwrap();
                    } else {
                        grid.build(single.into(), both, &lattice).unwrap();
                    }
                    grid
                });
                let pairs = check(&grids[0], &grids[0], true, &name)
                    + check(&grids[0], &grids[1], false, &name)
                    + check(&grids[1], &grids[0], false, &name);
                assert!(pairs > points, "{name}: {pairs} pairs");
            }
        }
    }
}

/// Shares of the radius by which distances differ from it.
const OFF: [f64; 12] = [
    0.0, 2.3e-16, -2.3e-16, 1e-15, -1e-15, 1e-12, -1e-9, 5e-8, -5e-8, 1e-6, -1e-5, 1e-3,
];

/// The points, and a partner of each that is a radius away from it, but for a share of [`OFF`].
fn at_the_radius(points: Vec<[f64; 3]>, radius: f64, random: &mut Random) -> Vec<[f64; 3]> {
    let directions = [
        [1.0, 0.0, 0.0],
        [0.0, -1.0, 0.0],
        [0.0, 0.6, 0.8],
        // Exact in binary digits but for the division.
        [1.0 / 3.0, -2.0 / 3.0, 2.0 / 3.0],
        [0.577, 0.577, 0.5780006],
    ];
    let others: Vec<[f64; 3]> = (points.iter().enumerate())
        .map(|(k, at)| {
            let direction = directions[random.below(5) as usize];
            let distance = radius * (1.0 + OFF[k % OFF.len()]);
            [0, 1, 2].map(|axis| at[axis] + distance * direction[axis])
        })
        .collect();
    [points, others].concat()
}

/// Points within three radii of the place `at`.
fn around(at: [f64; 3], radius: f64, count: usize, random: &mut Random) -> Vec<[f64; 3]> {
    let mut point = |_| at.map(|x| x + radius * random.between(-3.0, 3.0));
    (0..count).map(&mut point).collect()
}

/// Compares searches of one set in double precision with the scalar visit.
fn check_double(
    vectors: [Option<[f64; 3]>; 3],
    radius: Radius,
    points: &Vec<[f64; 3]>,
    name: &str,
) -> usize {
    let domain = Domain::from_vectors(vectors).unwrap();
    let bounds = Bounds::of(points.into(), &domain).unwrap();
    let mut found = Vec::new();
    for subdivision in [1, 2] {
        let lattice = Lattice::new(radius, domain, subdivision, &bounds).unwrap();
        let mut grid = Grid::new(lattice.clone());
        grid.build(points.into(), bounds, &lattice).unwrap();
        found.push(check(&grid, &grid, true, name));
    }
    assert_eq!(found[0], found[1], "{name}");
    found[0]
}

#[test]
fn pairs_at_the_radius_are_decided_in_double_precision() {
    let mut random = Random::new(5);
    // Far from the centre proxies are too coarse to decide, and in between some of them do.
    for far in [0.0, 40.0, 3e3, 1.2e4, 4e4, 1e6, 1e12] {
        for place in [[far, 0.0, -0.5 * far], [-far; 3]] {
            let mut points = at_the_radius(around(place, 1.0, 60, &mut random), 1.0, &mut random);
            points.push(place.map(|x| -x));
            let name = format!("{far} away");
            let radius = Radius::new_f64(1.0).unwrap();
            let pairs = check_double([None; 3], radius, &points, &name);
            let strict = check_double([None; 3], radius.strict(), &points, &name);
            assert!(strict <= pairs && pairs > points.len(), "{name}: {pairs}");
        }
    }
}

#[test]
fn small_and_large_radii_are_decided_in_double_precision() {
    let mut random = Random::new(6);
    let powers = [-49, -20, 0, 38, 39, 40, 58, 60, 62];
    for radius in powers.map(|power| 2f64.powi(power)) {
        for outlier in [None, Some(2f64.powi(61)), Some(1e300)] {
            let place = [0.0, 2.0 * radius, -7.0 * radius];
            let points = around(place, radius, 50, &mut random);
            let mut points = at_the_radius(points, radius, &mut random);
            // Nearer to each other than any number of single precision tells.
            for tiny in [0.0, 5e-324, -5e-324, 1e-310, 1e-160] {
                points.push([tiny, place[1], place[2]]);
            }
            if let Some(far) = outlier {
                points.extend([
                    [far, -far, far],
                    [far, -far, far.next_up()],
                    [-far, 0.0, 0.0],
                ]);
            }
            let name = format!("radius {radius}, {outlier:?}");
            let radius = Radius::new_f64(radius).unwrap();
            let pairs = check_double([None; 3], radius, &points, &name);
            assert!(pairs > points.len(), "{name}: {pairs}");
        }
    }
}

#[test]
fn images_at_the_radius_are_decided_in_double_precision() {
    let mut random = Random::new(7);
    let straight = |length: f64| {
        [
            Some([length, 0.0, 0.0]),
            Some([0.0, length, 0.0]),
            Some([0.0, 0.0, length]),
        ]
    };
    let tilted = [
        Some([4.0, 0.0, 0.0]),
        Some([1.5, 4.0, 0.0]),
        Some([-1.25, 0.75, 3.5]),
    ];
    let slanted = [Some([4.0, 1.5, 0.0]), None, Some([0.0, -0.75, 4.5])];
    for (vectors, radius) in [
        (straight(4.0), 1.0),
        (straight(1.0), 1.0),
        (straight(256.0), 64.0),
        ([straight(4.0)[0], None, None], 1.0),
        (tilted, 1.0),
        (slanted, 1.0),
        // Too long for proxies along the axes of the box.
        (straight(2f64.powi(61)), 2f64.powi(59)),
        ([straight(2f64.powi(61))[0], None, None], 1.0),
    ] {
        for boxes in [0.0, 3.0, 1e5] {
            let length = vectors[0].map_or(1.0, |[x, ..]| x);
            // Distances that are exactly the radius, through faces too.
            let step = 0.25 * radius;
            let mut point = |_| {
                let whole = [0, 1, 2].map(|_| step * random.below(20) as f64);
                let away = boxes * (random.below(3) as f64 - 1.0);
                let from = vectors[0].unwrap_or_default();
                [0, 1, 2].map(|axis| whole[axis] + away * from[axis])
            };
            let mut points: Vec<[f64; 3]> = (0..50).map(&mut point).collect();
            let centre = [0.5 * length; 3];
            points.extend(around(centre, radius.min(0.1 * length), 30, &mut random));
            let points = at_the_radius(points, radius, &mut random);
            let name = format!("{vectors:?}, {boxes} boxes");
            let pairs = check_double(vectors, Radius::new_f64(radius).unwrap(), &points, &name);
            assert!(pairs > 40, "{name}: {pairs}");
        }
    }
}
