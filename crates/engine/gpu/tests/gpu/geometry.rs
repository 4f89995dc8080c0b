//! Lists with the geometry of their pairs: every way that lists are written gives the contract's
//! images and, bit for bit, its displacements and distances.

use crate::common::{Scene, backend};
use nearfield_cpu::{CpuBackend, ListOrder, PairArrays, PairGeometry, PairOfSets, SetRadii};
use nearfield_gpu::{
    DeviceLists, DeviceView, Error, ErrorKind, GeometryQuantities, GpuBackend, HostLists,
    HostPairs, PairOfPoints, Strategy,
};
use nearfield_grid::{Bounds, Domain, Grid, Lattice, Precision, Radius};
use nearfield_pairs::ListKind;
use nearfield_testkit::{
    cloud::Cloud,
    conformance::{Case, Level, Runner},
    oracle, shapes,
};

const ALL: GeometryQuantities = GeometryQuantities {
    targets: true,
    images: true,
    shifts: true,
    displacements: true,
    squares: true,
    distances: true,
};

/// A pair with the bits of its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    index: u32,
    image: [i32; 3],
    shift: [u32; 3],
    displacement: [u32; 3],
    square: u32,
    distance: u32,
}

impl Found {
    fn new(domain: &Domain, index: u32, image: [i32; 3], d: [f32; 3], square: f32) -> Self {
        Self {
            index,
            image,
            shift: domain.image_vector(image).map(f32::to_bits),
            displacement: d.map(f32::to_bits),
            square: square.to_bits(),
            distance: square.sqrt().to_bits(),
        }
    }
}

/// The values of an array that was asked for.
fn values<T: nearfield_gpu::DeviceValue>(
    backend: &GpuBackend,
    array: Option<DeviceView<'_, T>>,
) -> Vec<T> {
    let array = array.expect("it was asked for");
    backend.stream().clone_dtoh(&array).unwrap()
}

/// All pairs of every target, ascending.
fn pairs(backend: &GpuBackend, lists: &DeviceLists) -> Vec<Vec<Found>> {
    let targets = lists.len();
    let (mut start, mut count) = (vec![u64::MAX; targets], vec![u32::MAX; targets]);
    let mut entries = vec![u32::MAX; lists.pairs() as usize];
    lists
        .download(backend, &mut start, &mut count, &mut entries)
        .unwrap();
    let views = lists.pair_views().expect("lists were searched for");
    let of = values(backend, views.targets);
    let images = values(backend, views.images);
    let shifts = values(backend, views.shifts);
    let displacements = values(backend, views.displacements);
    let squares = values(backend, views.squares);
    let distances = values(backend, views.distances);
    let list = |target: usize| {
        let begin = start[target] as usize;
        let mut list: Vec<_> = (begin..begin + count[target] as usize)
            .map(|at| {
                assert_eq!(of[at] as usize, target);
                Found {
                    index: entries[at],
                    image: images[at],
                    shift: shifts[at].map(f32::to_bits),
                    displacement: displacements[at].map(f32::to_bits),
                    square: squares[at].to_bits(),
                    distance: distances[at].to_bits(),
                }
            })
            .collect();
        list.sort_unstable();
        list
    };
    (0..targets).map(list).collect()
}

fn search(
    backend: &GpuBackend,
    of: PairOfPoints<'_>,
    kind: ListKind,
    strategy: Strategy,
    lists: &mut DeviceLists,
) -> Result<Vec<Vec<Found>>, Error> {
    lists.want(ALL);
    backend.search(of, kind, strategy, lists)?;
    let found = pairs(backend, lists);
    // Into the storage that is there.
    backend.search_again(of, kind, strategy, lists)?;
    lists.finish(backend)?;
    assert!(found == pairs(backend, lists), "the same again");
    Ok(found)
}

fn domain_of(case: &Case) -> Domain {
    match case.vectors {
        Some(vectors) => Domain::from_vectors(vectors).unwrap(),
        None => Domain::new(case.periodic).unwrap(),
    }
}

/// Pairs by the contract; None if an image has no 32-bit numbers.
fn by_contract(case: &Case, neighbors: &[Vec<oracle::Neighbor>]) -> Option<Vec<Vec<Found>>> {
    let (problem, domain) = (case.problem(), domain_of(case));
    let list = |(target, list): (usize, &Vec<oracle::Neighbor>)| {
        let pairs = list.iter().map(|pair| {
            let from = case.targets()[target];
            let to = case.sources()[pair.index as usize];
            let d = problem.displacement(from, to, pair.image);
            let square = problem.distance_squared(from, to, pair.image);
            let [a, b, c] = pair.image.map(|boxes| i32::try_from(boxes).ok());
            Some(Found::new(&domain, pair.index, [a?, b?, c?], d, square))
        });
        let mut pairs = pairs.collect::<Option<Vec<_>>>()?;
        pairs.sort_unstable();
        Some(pairs)
    };
    neighbors.iter().enumerate().map(list).collect()
}

#[test]
fn geometry_is_the_contracts_by_every_strategy() {
    let Some(backend) = backend() else { return };
    let runner = Runner::new(Level::Quick).keep(|case| case.rule == oracle::RadiusRule::Uniform);
    let mut lists = DeviceLists::default();
    for strategy in Strategy::ALL {
        let subdivisions = if strategy == Strategy::Flat { 3 } else { 1 };
        for subdivision in 1..=subdivisions {
            for (case, neighbors) in runner.with_neighbors() {
                let scene = Scene::of_case(&backend, case, subdivision).unwrap();
                let of = scene.pair(case.target, case.source);
                let kind = match case.list {
                    oracle::ListKind::Full => ListKind::Full,
                    oracle::ListKind::Half => ListKind::Half,
                };
                let found = search(&backend, of, kind, strategy, &mut lists);
                let name = format!("{} by {strategy}, K = {subdivision}", case.name);
                match by_contract(case, neighbors) {
                    Some(expected) => {
                        assert!(
                            found.unwrap_or_else(|e| panic!("{name}: {e}")) == expected,
                            "{name}"
                        );
                    }
                    None => {
                        let error = found.unwrap_err();
                        let far = matches!(error.kind(), ErrorKind::FarImages { .. });
                        assert!(far, "{name}: {error}");
                    }
                }
            }
        }
    }
}

/// A cloud of so many points that lists come from masks.
struct Large {
    name: &'static str,
    radius: f32,
    domain: Domain,
    targets: Vec<[f32; 3]>,
    /// None where they are the targets.
    sources: Option<Vec<[f32; 3]>>,
}

fn large_clouds() -> Vec<Large> {
    let uniform = |points, edge, seed| shapes::uniform_box(points, [[0.0; 3], [edge; 3]], seed);
    let edge = Some(24.0);
    let boxed = Domain::new([edge; 3]).unwrap();
    let mut outside = uniform(40_000, 24.0, 3);
    for (i, point) in outside.iter_mut().enumerate().step_by(7) {
        point[i % 3] += 24.0 * ((i % 5) as f32 - 2.0);
    }
    let tilted = Domain::from_vectors([
        Some([24.0, 0.0, 0.0]),
        Some([7.0, 22.0, 0.0]),
        Some([-5.0, 4.0, 20.0]),
    ]);
    let one = |name, radius, domain, targets| Large {
        name,
        radius,
        domain,
        targets,
        sources: None,
    };
    // Rows of more candidates than a mask has bits, in some blocks and in all.
    let mut dense = uniform(30_000, 30.0, 5);
    dense.extend(shapes::uniform_box(600, [[9.0; 3], [10.0; 3]], 6));
    vec![
        one(
            "lattice",
            2.0,
            Domain::OPEN,
            Cloud::Lattice.points(40_000, 1),
        ),
        one(
            "clusters",
            1.0,
            Domain::OPEN,
            Cloud::Clusters.points(20_000, 2),
        ),
        one("a dense corner", 1.0, Domain::OPEN, dense),
        one("dense", 2.0, Domain::OPEN, uniform(18_000, 12.0, 7)),
        one(
            "spray",
            2.0,
            Domain::OPEN,
            Cloud::PoolSpray.points(30_000, 8),
        ),
        one("periodic", 1.2, boxed, uniform(40_000, 24.0, 9)),
        one("outside of the box", 1.2, boxed, outside.clone()),
        one(
            "a dense box",
            1.5,
            Domain::new([Some(9.0); 3]).unwrap(),
            uniform(17_000, 9.0, 10),
        ),
        one(
            "a flat box",
            1.2,
            Domain::new([edge, Some(1.5), None]).unwrap(),
            outside[..20_000].to_vec(),
        ),
        one("tilted", 1.2, tilted.unwrap(), outside),
        Large {
            sources: Some(uniform(50_000, 20.0, 11)),
            ..one("two sets", 1.0, Domain::OPEN, uniform(30_000, 24.0, 12))
        },
        Large {
            sources: Some(uniform(50_000, 24.0, 13)),
            ..one("two sets in a box", 1.0, boxed, uniform(30_000, 24.0, 14))
        },
    ]
}

impl Large {
    fn sets(&self) -> Vec<Vec<[f32; 3]>> {
        let targets = std::iter::once(&self.targets);
        targets.chain(&self.sources).cloned().collect()
    }

    /// The pairs as the CPU backend finds them.
    fn on_cpu(&self, kind: ListKind) -> Vec<Vec<Found>> {
        let sets = self.sets();
        let bounds = |points: &[[f32; 3]]| Bounds::of(points.into(), &self.domain).unwrap();
        let all = (sets.iter()).fold(Bounds::EMPTY, |all, set| all.union(&bounds(set)));
        let radius = Radius::new(self.radius).unwrap();
        let lattice = Lattice::new(radius, self.domain, 1, &all).unwrap();
        let grids: Vec<_> = (sets.iter())
            .map(|points| {
                let mut grid = Grid::new(lattice.clone());
                let points = points.as_slice();
                grid.build(points.into(), bounds(points), &lattice).unwrap();
                grid
            })
            .collect();
        let sets = PairOfSets {
            targets: &grids[0],
            sources: &grids[grids.len() - 1],
            same_set: grids.len() == 1,
            radii: SetRadii::Uniform,
            share: None,
            filter: Default::default(),
        };
        let cpu = CpuBackend::new(2).unwrap();
        let mut geometry = PairGeometry::default();
        let measured = cpu.measure(sets, kind).unwrap();
        measured
            .write_geometry(ListOrder::Ascending, &mut geometry)
            .unwrap();
        let PairArrays::Single {
            displacement,
            distance_squared,
        } = geometry.arrays()
        else {
            panic!("positions are f32");
        };
        let (lists, images) = (geometry.lists(), geometry.images());
        let pair = |at: usize| {
            let (d, square) = (displacement[at], distance_squared[at]);
            Found::new(&self.domain, lists.storage()[at], images[at], d, square)
        };
        (0..lists.len())
            .map(|i| {
                let begin = lists.starts()[i] as usize;
                let mut list: Vec<_> = (begin..begin + lists.count(i)).map(pair).collect();
                list.sort_unstable();
                list
            })
            .collect()
    }
}

#[test]
fn geometry_from_masks_is_that_of_the_cpu() {
    let Some(backend) = backend() else { return };
    let mut lists = DeviceLists::default();
    for cloud in large_clouds() {
        let sets = cloud.sets();
        for kind in [ListKind::Full, ListKind::Half] {
            let expected = cloud.on_cpu(kind);
            for subdivision in 1..=3 {
                let of = (cloud.radius, cloud.domain, subdivision);
                let scene = Scene::new(&backend, of, &sets).unwrap();
                let of = scene.pair(0, sets.len() - 1);
                let found = search(&backend, of, kind, Strategy::Flat, &mut lists).unwrap();
                let same = found == expected;
                assert!(same, "{}, {kind:?}, K = {subdivision}", cloud.name);
            }
        }
    }
}

#[test]
fn only_what_is_wanted_is_written_and_held() {
    let Some(backend) = backend() else { return };
    let points = Cloud::Lattice.points(20_000, 4);
    let scene = Scene::new(&backend, (2.0, Domain::OPEN, 1), &[points]).unwrap();
    let (of, mut lists) = (scene.pair(0, 0), DeviceLists::default());
    let plain = {
        backend
            .search(of, ListKind::Full, Strategy::Flat, &mut lists)
            .unwrap();
        lists.bytes()
    };
    let wanted = GeometryQuantities {
        squares: true,
        ..GeometryQuantities::NONE
    };
    lists.want(wanted);
    assert!(!lists.has_room(), "squares have no storage yet");
    backend
        .search(of, ListKind::Full, Strategy::Flat, &mut lists)
        .unwrap();
    let views = lists.pair_views().unwrap();
    assert!(views.targets.is_none() && views.images.is_none() && views.shifts.is_none());
    assert!(views.displacements.is_none() && views.distances.is_none());
    let r2 = 4.0;
    let squares = values(&backend, views.squares);
    let written = &squares[..lists.pairs() as usize];
    assert!(written.iter().all(|&square| square > 0.0 && square <= r2));
    let pair = wanted.bytes_per_pair(Precision::Single);
    let room = lists.bytes() - plain;
    let pairs = lists.pairs() as usize;
    assert!(
        room >= pairs * pair && room <= (pairs + pairs / 4) * pair,
        "{room} bytes"
    );
    lists.want(GeometryQuantities::NONE);
    assert_eq!(
        lists.bytes(),
        plain,
        "arrays that nobody wants are given back"
    );
}

#[test]
fn geometry_that_is_delivered_in_parts_is_that_on_the_device() {
    let Some(backend) = backend() else { return };
    // More than a part of 4 Mi entries.
    let points = Cloud::Lattice.points(200_000, 4);
    let scene = Scene::new(&backend, (2.0, Domain::OPEN, 1), &[points]).unwrap();
    let (of, mut lists) = (scene.pair(0, 0), DeviceLists::default());
    let kind = ListKind::Full;
    for strategy in [Strategy::Flat, Strategy::ChildPerCell] {
        let expected = search(&backend, of, kind, strategy, &mut lists).unwrap();
        let pairs = backend
            .measure_pairs(of, kind, strategy, &mut lists)
            .unwrap() as usize;
        let targets = of.targets.len();
        let (mut start, mut count) = (vec![u64::MAX; targets], vec![u32::MAX; targets]);
        let mut entries = vec![u32::MAX; pairs];
        let mut images = vec![[i32::MAX; 3]; pairs];
        let mut displacements = vec![[f32::NAN; 3]; pairs];
        let mut squares = vec![f32::NAN; pairs];
        let to = HostLists {
            start: &mut start,
            count: &mut count,
            entries: &mut entries,
        };
        let short = HostPairs {
            images: Some(&mut images[1..]),
            displacements: &mut displacements,
            squares: &mut squares,
        };
        let refused = backend.deliver_pairs(of, &mut lists, to, short, |_, _| {});
        let error = refused.unwrap_err();
        assert!(error.to_string().contains("images of pairs"), "{error}");
        let measured = backend.measure_pairs(of, kind, strategy, &mut lists);
        assert_eq!(measured.unwrap() as usize, pairs);
        let to = HostLists {
            start: &mut start,
            count: &mut count,
            entries: &mut entries,
        };
        let all = HostPairs {
            images: Some(&mut images),
            displacements: &mut displacements,
            squares: &mut squares,
        };
        backend
            .deliver_pairs(of, &mut lists, to, all, |_, _| {})
            .unwrap();
        for (target, expected) in expected.iter().enumerate() {
            let begin = start[target] as usize;
            let range = begin..begin + count[target] as usize;
            let mut found: Vec<_> = range
                .map(|at| {
                    let (d, square) = (displacements[at], squares[at]);
                    Found::new(&Domain::OPEN, entries[at], images[at], d, square)
                })
                .collect();
            found.sort_unstable();
            assert!(found == *expected, "target {target} by {strategy}");
        }
    }
}
