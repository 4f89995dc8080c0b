//! The storage of neighbour lists: reused between searches, grown without losing anything.

use nearfield_cpu::{CpuBackend, ListOrder, NeighborLists, PairOfSets, SetRadii, SimdLevel};
use nearfield_grid::{Bounds, Domain, Grid, Lattice, Radius};
use nearfield_pairs::ListKind;
use nearfield_testkit::cloud::Cloud;

fn grid(points: &[[f32; 3]], radius: f32) -> Grid {
    let bounds = Bounds::of(points.into(), &Domain::OPEN).unwrap();
    let radius = Radius::new(radius).unwrap();
    let lattice = Lattice::new(radius, Domain::OPEN, 1, &bounds).unwrap();
    let mut grid = Grid::new(lattice.clone());
    grid.build(points.into(), bounds, &lattice).unwrap();
    grid
}

/// A cloud; under Miri, which is a thousand times slower, a twentieth of it.
fn cloud(cloud: Cloud, points: usize, seed: u64) -> Vec<[f32; 3]> {
    cloud.points(if cfg!(miri) { points / 20 } else { points }, seed)
}

fn of(grid: &Grid) -> PairOfSets<'_> {
    PairOfSets {
        targets: grid,
        sources: grid,
        same_set: true,
        radii: SetRadii::Uniform,
        filter: Default::default(),
        share: None,
    }
}

fn search(backend: &CpuBackend, grid: &Grid, lists: &mut NeighborLists) {
    let order = ListOrder::Unspecified;
    backend
        .search(of(grid), ListKind::Full, order, lists)
        .unwrap();
}

fn same(a: &NeighborLists, b: &NeighborLists) -> bool {
    a.iter().eq(b.iter())
}

#[test]
fn storage_that_is_too_small_grows_without_losing_a_neighbour() {
    let points = cloud(Cloud::Clusters, 30_000, 5);
    for threads in [1, 3] {
        let backend = CpuBackend::new(threads).unwrap();
        let mut fresh = NeighborLists::default();
        search(&backend, &grid(&points, 1.0), &mut fresh);
        let mut grown = NeighborLists::default();
        search(&backend, &grid(&points, 0.1), &mut grown);
        let before = grown.storage().len() as u64;
        search(&backend, &grid(&points, 1.0), &mut grown);
        assert!(before < fresh.pairs(), "the first storage was too small");
        assert_eq!(grown.pairs(), fresh.pairs());
        assert!(same(&grown, &fresh));
    }
}

#[test]
fn the_steady_state_allocates_no_storage() {
    // Many workers share a small storage too.
    for threads in [2, 16] {
        let backend = CpuBackend::new(threads).unwrap();
        let mut points = cloud(Cloud::Lattice, 27_000, 1);
        let mut lists = NeighborLists::default();
        search(&backend, &grid(&points, 2.0), &mut lists);
        search(&backend, &grid(&points, 2.0), &mut lists);
        let storage = lists.storage().as_ptr();
        for step in 0..5 {
            nearfield_testkit::cloud::drift(&mut points, 0.03, step);
            search(&backend, &grid(&points, 2.0), &mut lists);
            let same = lists.storage().as_ptr() == storage;
            assert!(same, "step {step} with {threads} threads");
        }
    }
}

#[test]
fn sorted_lists_are_the_same_lists_in_ascending_order() {
    let backend = CpuBackend::new(2).unwrap();
    let grid = grid(&cloud(Cloud::Uniform, 5_000, 2), 2.0);
    let mut lists = NeighborLists::default();
    search(&backend, &grid, &mut lists);
    let mut expected: Vec<Vec<u32>> = lists.iter().map(<[u32]>::to_vec).collect();
    expected.iter_mut().for_each(|list| list.sort_unstable());
    lists.sort();
    assert!(lists.iter().eq(expected.iter().map(Vec::as_slice)));
}

#[test]
fn ascending_lists_are_the_sorted_lists() {
    let mut clusters = cloud(Cloud::Clusters, 30_000, 3);
    // Hundreds of points on each other: groups of more candidates than a network sorts.
    clusters.extend([[1.0; 3]; 700]);
    let clouds = [cloud(Cloud::Lattice, 8_000, 3), clusters];
    for (points, radius) in clouds.iter().zip([2.0, 1.0]) {
        let grid = grid(points, radius);
        let mut sorted = NeighborLists::default();
        search(&CpuBackend::new(1).unwrap(), &grid, &mut sorted);
        sorted.sort();
        assert!(sorted.iter().all(|list| list.is_sorted()));
        for &level in SimdLevel::available() {
            for kind in [ListKind::Full, ListKind::Half] {
                let backend = CpuBackend::new(2).unwrap().with_level(level);
                let mut lists = NeighborLists::default();
                backend
                    .search(of(&grid), kind, ListOrder::Ascending, &mut lists)
                    .unwrap();
                for (target, (list, full)) in lists.iter().zip(sorted.iter()).enumerate() {
                    let first = match kind {
                        ListKind::Full => 0,
                        ListKind::Half => full.partition_point(|&j| j as usize <= target),
                    };
                    assert_eq!(list, &full[first..], "{level:?}, {kind:?}, {target}");
                }
            }
        }
    }
}

#[test]
fn a_search_within_a_storage_is_whole_or_finds_nothing() {
    let points = cloud(Cloud::Clusters, 30_000, 5);
    let (dense, sparse) = (grid(&points, 1.0), grid(&points, 0.1));
    for threads in [1, 3] {
        let backend = CpuBackend::new(threads).unwrap();
        let mut expected = NeighborLists::default();
        search(&backend, &dense, &mut expected);
        let within = |grid: &Grid, max: u64, lists: &mut NeighborLists| {
            let order = ListOrder::Unspecified;
            backend
                .search_within(of(grid), ListKind::Full, order, max, lists)
                .unwrap()
        };
        let (pairs, roomy) = (expected.pairs(), 2 * expected.pairs());
        let mut lists = NeighborLists::default();
        for max in [0, 1, pairs / 2, pairs] {
            assert!(!within(&dense, max, &mut lists), "{max} entries");
            assert!(lists.is_empty() && lists.pairs() == 0);
            assert!(lists.storage().len() as u64 <= max);
        }
        assert!(within(&dense, roomy, &mut lists) && same(&lists, &expected));
        assert!(lists.storage().len() as u64 <= roomy);
        // The last search found few pairs, so the room is found to be too small on the way.
        let mut few = NeighborLists::default();
        assert!(within(&sparse, roomy, &mut few));
        let held = few.storage().len() as u64;
        assert!(held < pairs);
        assert!(!within(&dense, held, &mut few) && few.is_empty());
        assert!(within(&dense, roomy, &mut few) && same(&few, &expected));
    }
}

#[test]
fn a_search_for_nothing_needs_no_storage() {
    let backend = CpuBackend::new(2).unwrap();
    let mut lists = NeighborLists::default();
    let order = ListOrder::Ascending;
    for points in [&[][..], &[[0.0; 3]]] {
        let (some, none) = (grid(points, 1.0), grid(&[], 1.0));
        let of = PairOfSets {
            sources: &none,
            same_set: false,
            ..of(&some)
        };
        let found = backend.search_within(of, ListKind::Full, order, 0, &mut lists);
        assert!(found.unwrap() && lists.len() == points.len() && lists.pairs() == 0);
    }
}

#[test]
fn a_backend_can_be_held_to_a_level_the_processor_has() {
    for &level in SimdLevel::available() {
        let backend = CpuBackend::new(1).unwrap().with_level(level);
        assert_eq!(backend.level(), level);
    }
    assert!(CpuBackend::new(usize::MAX).is_err());
}
