//! Points of a periodic domain that lie in different boxes: vector loops against the scalar visit
//! of single targets, list by list, image by image and bit by bit.

use nearfield_cpu::{
    CpuBackend, ListOrder, NeighborLists, PairOfSets, PairScratch, SetRadii, SimdLevel, VisitPairs,
};
use nearfield_grid::{Bounds, Domain, Grid, Lattice, Radius};
use nearfield_pairs::{ListKind, Pair};
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

    fn pair(&mut self, source: u32, image: [i64; 3], pair: Pair) {
        self.0.last_mut().unwrap().push(found(source, image, pair));
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
        share: None,
    };
    let points = targets.points();
    let mut expected = Vec::new();
    for slot in 0..points.len() {
        let mut pairs = Vec::new();
        sets.for_each_neighbor(slot, |source, image, pair| {
            pairs.push(found(source, image, pair));
        });
        expected.push(pairs);
    }
    for &level in SimdLevel::available() {
        let backend = CpuBackend::new(1).unwrap().with_level(level);
        let mut visited = Pairs::default();
        let scratch = &mut PairScratch::default();
        let slots = 0..points.len();
        (backend.visit_pairs(sets, slots, scratch, &mut visited)).unwrap();
        assert!(visited.0 == expected, "{name}, {level:?}: pairs");
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
    for vectors in [straight, open_along_y, tilted, slanted, narrow] {
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
