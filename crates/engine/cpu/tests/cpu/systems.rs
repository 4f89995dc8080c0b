//! Many systems in one search: the pairs of every system are the contract's, images and bits
//! included, whatever its cell; and systems that cannot be are refused by name.

use nearfield_cpu::{
    CpuBackend, ErrorKind, ListOrder, Quantities, SimdLevel, SystemPairs, SystemReal, Systems,
};
use nearfield_grid as grid;
use nearfield_pairs::ListKind;
use nearfield_testkit::{
    oracle::{self, Real},
    random::Random,
    systems::{Batch, Pair},
};
use std::mem::discriminant;

/// The arrays of a batch.
fn systems<T>(batch: &Batch<T>) -> Systems<'_, T> {
    Systems::new(&batch.positions, &batch.offsets, &batch.radii)
        .in_cells(&batch.cells, &batch.periodic)
}

fn all<T: SystemReal>(pairs: &SystemPairs<T>) -> Vec<Pair<T>> {
    (0..pairs.len())
        .map(|k| Pair {
            target: pairs.targets()[k],
            source: pairs.sources()[k],
            image: pairs.images()[k],
            displacement: pairs.displacements()[k],
            distance: pairs.distances()[k],
        })
        .collect()
}

/// The pairs of a batch by the definition.
fn expected<T: Real>(batch: &Batch<T>, kind: ListKind) -> Vec<Pair<T>> {
    batch.pairs(match kind {
        ListKind::Full => oracle::ListKind::Full,
        ListKind::Half => oracle::ListKind::Half,
    })
}

/// Systems of 0 to 60 points.
fn drawn<T: Real>(seed: u64, systems: usize) -> Batch<T> {
    Batch::drawn(seed, systems, 60)
}

fn search<T: SystemReal>(
    backend: &CpuBackend,
    systems: &Systems<'_, T>,
    kind: ListKind,
    pairs: &mut SystemPairs<T>,
) -> Result<(), nearfield_cpu::Error> {
    let order = ListOrder::Ascending;
    backend.search_systems(systems, kind, order, Quantities::ALL, pairs)
}

fn pairs_are_the_contracts<T: SystemReal + Real>(seed: u64) {
    let mut pairs = SystemPairs::default();
    for (number, &level) in SimdLevel::available().iter().cycle().take(12).enumerate() {
        let backend = CpuBackend::new(1 + number % 3).unwrap().with_level(level);
        let kind = [ListKind::Full, ListKind::Half][number % 2];
        let batch = drawn::<T>(seed + number as u64, 60);
        search(&backend, &systems(&batch), kind, &mut pairs).unwrap();
        let expected = expected(&batch, kind);
        let found = all(&pairs);
        for (k, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(found, expected, "pair {k} of {number} at {level:?}");
        }
        assert_eq!(found.len(), expected.len());
        assert_eq!(*pairs.offsets().last().unwrap() as usize, found.len());
        for point in 0..batch.positions.len() {
            let targets = &pairs.targets()[pairs.of(point)];
            assert!(targets.iter().all(|&target| target == point as i64));
        }
    }
}

#[test]
fn pairs_of_systems_are_the_contracts() {
    pairs_are_the_contracts::<f32>(100);
}

#[test]
fn pairs_of_systems_are_the_contracts_in_double() {
    pairs_are_the_contracts::<f64>(200);
}

#[test]
fn points_exactly_at_the_radius_are_pairs_to_the_last_bit() {
    let cell = [[3.0, 0.0, 0.0], [1.0, 3.0, 0.0], [0.0, -1.0, 3.0]];
    for radius in [5.0f64, 5.0f64.next_down()] {
        let systems = Systems::new(&[[0.0, 0.0, 0.0], [3.0, 4.0, 0.0f64]], &[0, 2], &[0.0]);
        let radii = [radius];
        let systems = Systems {
            radii: &radii,
            ..systems
        };
        let mut pairs = SystemPairs::<f64>::default();
        let backend = CpuBackend::new(1).unwrap();
        search(&backend, &systems, ListKind::Full, &mut pairs).unwrap();
        assert_eq!(pairs.len(), if radius == 5.0 { 2 } else { 0 });
        let (cells, periodic) = ([cell], [[true; 3]]);
        let boxed = systems.in_cells(&cells, &periodic);
        search(&backend, &boxed, ListKind::Full, &mut pairs).unwrap();
        let has = all(&pairs).iter().any(|pair| pair.distance == 5.0);
        assert_eq!(has, radius == 5.0);
        search(
            &backend,
            &boxed.strictly_within(),
            ListKind::Full,
            &mut pairs,
        )
        .unwrap();
        assert!(all(&pairs).iter().all(|pair| pair.distance < radius));
    }
}

/// A crystal of so many points, jittered, in a cube.
fn crystal(random: &mut Random, edge: usize) -> (Vec<[f32; 3]>, [[f64; 3]; 3]) {
    let side = edge as f64;
    let mut points = Vec::new();
    for number in 0..edge.pow(3) {
        let place = [number % edge, number / edge % edge, number / edge.pow(2)];
        points.push(place.map(|k| (k as f64 + random.between(0.3, 0.7)) as f32));
    }
    let cell = [0, 1, 2].map(|k| [0, 1, 2].map(|axis| if k == axis { side } else { 0.0 }));
    (points, cell)
}

#[test]
fn a_system_of_many_points_among_small_ones_is_searched_by_cells() {
    let random = &mut Random::new(3);
    let mut batch = drawn::<f32>(5, 20);
    for edge in [9, 11, 33] {
        let (points, cell) = crystal(random, edge);
        batch.push(&points, 1.2, cell, [true; 3]);
    }
    batch.append(&drawn(6, 20));
    let (mut one, mut two) = (SystemPairs::default(), SystemPairs::default());
    for kind in [ListKind::Full, ListKind::Half] {
        let backend = CpuBackend::new(1).unwrap();
        search(&backend, &systems(&batch), kind, &mut one).unwrap();
        let backend = CpuBackend::new(3).unwrap();
        search(&backend, &systems(&batch), kind, &mut two).unwrap();
        assert!(all(&one) == all(&two), "pairs do not depend on threads");
        // The oracle of tilted boxes tests all pairs: too slow for the largest.
        let mut few = batch.clone();
        few.truncate(22);
        let begin = few.positions.len();
        let expected = expected(&few, kind);
        assert!(all(&one)[..expected.len()] == expected[..]);
        assert_eq!(one.offsets()[begin] as usize, expected.len());
    }
}

#[test]
fn what_is_not_asked_for_is_empty_and_indices_have_the_type_that_is() {
    let batch = drawn::<f32>(9, 40);
    let backend = CpuBackend::new(2).unwrap();
    let mut every = SystemPairs::default();
    search(&backend, &systems(&batch), ListKind::Full, &mut every).unwrap();
    let mut pairs = SystemPairs::<f32, i32>::default();
    let mut asked = |wanted: Quantities| {
        let (kind, order) = (ListKind::Full, ListOrder::Ascending);
        backend
            .search_systems(&systems(&batch), kind, order, wanted, &mut pairs)
            .unwrap();
        assert_eq!(pairs.offsets(), every.offsets());
        let len = |is_wanted: bool| if is_wanted { every.len() } else { 0 };
        assert_eq!(pairs.targets().len(), len(wanted.targets));
        assert_eq!(pairs.sources().len(), len(wanted.sources));
        assert_eq!(pairs.images().len(), len(wanted.images));
        assert_eq!(pairs.displacements().len(), len(wanted.displacements));
        assert_eq!(pairs.distances().len(), len(wanted.distances));
        let wide = |indices: &[i32]| indices.iter().map(|&i| i.into()).collect::<Vec<i64>>();
        if wanted.sources {
            assert_eq!(wide(pairs.sources()), every.sources());
        }
        if wanted.distances {
            assert_eq!(pairs.distances(), every.distances());
        }
    };
    asked(Quantities::ALL);
    asked(Quantities::NONE);
    asked(Quantities::LISTS);
    asked(Quantities {
        distances: true,
        ..Quantities::NONE
    });
    asked(Quantities::EDGES);
}

#[test]
fn systems_that_cannot_be_are_refused_by_name() {
    let backend = CpuBackend::new(2).unwrap();
    let good = drawn::<f32>(11, 30);
    let mut pairs = SystemPairs::default();
    let mut refused = |change: &dyn Fn(&mut Batch<f32>)| {
        let mut batch = good.clone();
        change(&mut batch);
        search(&backend, &systems(&good), ListKind::Full, &mut pairs).unwrap();
        let error = search(&backend, &systems(&batch), ListKind::Full, &mut pairs).unwrap_err();
        assert!(pairs.is_empty() && pairs.sources().is_empty() && pairs.offsets().is_empty());
        error
    };
    let last = good.positions.len() - 1;
    let last_system = good.offsets.iter().position(|&o| o > last as i64).unwrap() - 1;
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let error = refused(&|batch| batch.positions[last][1] = bad);
        let text = error.to_string();
        let named = format!("system {last_system}: point {last} has y = {bad}");
        assert!(text.contains(&named), "{text}");
    }
    let far = refused(&|batch| {
        batch.positions[last] = [1e30; 3];
        batch.cells[last_system] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        batch.periodic[last_system] = [true; 3];
    });
    assert!(far.to_string().contains(&format!("point {last} ")), "{far}");

    type Offsets<'a> = &'a dyn Fn(&mut Vec<i64>);
    type Change<'a> = &'a dyn Fn(&mut Batch<f32>);
    let changes: [(Offsets<'_>, usize); 6] = [
        (&|offsets| offsets[0] = 1, 0),
        (&|offsets| offsets[0] = -1, 0),
        (&|offsets| offsets[4] = offsets[5] + 1, 4),
        (&|offsets| offsets[7] = i64::MIN, 6),
        (&|offsets| *offsets.last_mut().unwrap() += 1, 29),
        (&|offsets| *offsets.last_mut().unwrap() = i64::MAX, 29),
    ];
    for (change, system) in changes {
        let error = refused(&|batch| change(&mut batch.offsets));
        let text = error.to_string();
        assert!(text.contains(&format!("system {system} ")), "{text}");
    }
    let few = refused(&|batch| {
        batch.positions.push([0.0; 3]);
    });
    assert!(few.to_string().contains("system 29"), "{few}");
    let error = refused(&|batch| batch.offsets.clear());
    assert!(matches!(error.kind(), ErrorKind::SystemOffsets { .. }));

    for radius in [f64::NAN, f64::INFINITY, 0.0, -1.0, 1e-300, 1e300] {
        let text = refused(&|batch| batch.radii[8] = radius).to_string();
        assert!(text.contains("system 8: radius"), "{text}");
    }
    let shapes: [(Change<'_>, &str); 4] = [
        (&|batch| batch.radii.truncate(29), "29 radii for 30 systems"),
        (&|batch| batch.radii.clear(), "0 radii"),
        (&|batch| batch.cells.truncate(2), "2 cells for 30 systems"),
        (&|batch| batch.periodic.truncate(7), "7 periodicities"),
    ];
    for (change, named) in shapes {
        let text = refused(change).to_string();
        assert!(text.contains(named), "{text}");
    }
    let cells = [
        [[0.0; 3]; 3],
        [[f64::NAN, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
        [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 2.0, 1.0]],
        [[f64::INFINITY, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    ];
    for cell in cells {
        let error = refused(&|batch| {
            batch.cells[13] = cell;
            batch.periodic[13] = [true; 3];
        });
        let ErrorKind::System { system: 13, source } = error.kind() else {
            panic!("{error}")
        };
        let kinds = [
            discriminant(&grid::ErrorKind::BoxVector {
                name: 'a',
                vector: [0.0; 3],
            }),
            discriminant(&grid::ErrorKind::FlatBox {
                vector: 'a',
                length: 0.0,
                width: 0.0,
            }),
            discriminant(&grid::ErrorKind::BoxLength {
                axis: 'x',
                length: 0.0,
            }),
        ];
        assert!(kinds.contains(&discriminant(source.kind())), "{error}");
    }
    // So many images that no search takes them.
    let error = refused(&|batch| {
        let system = last_system;
        batch.cells[system] = [[1e-6, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        batch.periodic[system] = [true, false, false];
        batch.radii[system] = 1.0;
        let begin = batch.offsets[system] as usize;
        batch.positions[begin..].fill([0.0; 3]);
    });
    let text = error.to_string();
    assert!(text.contains(&format!("system {last_system}: ")), "{text}");
}

#[test]
fn the_first_of_several_faults_is_named_whatever_the_number_of_threads() {
    let mut batch = drawn::<f32>(12, 400);
    batch.radii[31] = f64::NAN;
    batch.radii[390] = -1.0;
    for threads in 1..4 {
        let backend = CpuBackend::new(threads).unwrap();
        let mut pairs = SystemPairs::default();
        let error = search(&backend, &systems(&batch), ListKind::Full, &mut pairs).unwrap_err();
        assert!(
            error.to_string().contains("system 31: radius NaN"),
            "{error}"
        );
    }
}

#[test]
fn no_systems_and_empty_ones_have_no_pairs() {
    let backend = CpuBackend::new(1).unwrap();
    let mut pairs = SystemPairs::<f64>::default();
    let none = Systems::<f64>::new(&[], &[0], &[]);
    search(&backend, &none, ListKind::Full, &mut pairs).unwrap();
    assert_eq!((pairs.len(), pairs.offsets()), (0, &[0][..]));
    let empty = Systems::<f64>::new(&[], &[0, 0, 0, 0], &[1.0]);
    search(&backend, &empty, ListKind::Half, &mut pairs).unwrap();
    assert_eq!((pairs.len(), pairs.offsets()), (0, &[0][..]));
}

#[test]
fn one_cell_and_one_periodicity_serve_for_all() {
    let batch = drawn::<f32>(14, 6);
    let cell = [[[2.0, 0.0, 0.0], [0.5, 1.5, 0.0], [0.0, 0.25, 3.0]]];
    let many = Batch {
        radii: vec![0.75; 6],
        cells: vec![cell[0]; 6],
        periodic: vec![[true, true, false]; 6],
        ..batch.clone()
    };
    let few = Batch {
        radii: vec![0.75],
        cells: cell.to_vec(),
        periodic: vec![[true, true, false]],
        ..batch
    };
    let backend = CpuBackend::new(1).unwrap();
    let (mut a, mut b) = (SystemPairs::default(), SystemPairs::default());
    search(&backend, &systems(&many), ListKind::Full, &mut a).unwrap();
    search(&backend, &systems(&few), ListKind::Full, &mut b).unwrap();
    assert!(!a.is_empty() && all(&a) == all(&b));
    let open = systems(&few).in_cells(&[], &[]);
    search(&backend, &open, ListKind::Full, &mut a).unwrap();
    assert!(all(&a).iter().all(|pair| pair.image == [0; 3]));
}

#[test]
fn a_point_alone_sees_thousands_of_its_own_images() {
    let cell = [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]];
    let periodic = [[true; 3]];
    let systems = Systems::new(&[[0.3f32, 0.2, 0.1]], &[0, 1], &[20.0]);
    let systems = systems.in_cells(&cell, &periodic);
    let backend = CpuBackend::new(1).unwrap();
    let mut pairs = SystemPairs::default();
    search(&backend, &systems, ListKind::Full, &mut pairs).unwrap();
    let within = |[x, y, z]: [i32; 3]| x * x + y * y + z * z <= 400;
    let all: Vec<_> = (-20..=20)
        .flat_map(|x| (-20..=20).flat_map(move |y| (-20..=20).map(move |z| [x, y, z])))
        .filter(|&image| within(image) && image != [0; 3])
        .collect();
    assert_eq!(pairs.images(), all);
}
