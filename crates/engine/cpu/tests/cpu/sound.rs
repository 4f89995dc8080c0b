//! What safe callers may hand in that makes no sense is refused, or has no meaning, but nothing is
//! read or written out of place.

use nearfield_cpu::{
    BorrowedBuffer, BufferProvider, ChosenPoints, CpuBackend, CutoffTable, Error, ErrorKind,
    Exclusions, Fields, Inside, ListOrder, NeighborLists, Output, PairFilter, PairOfSets,
    PointTypes, SetRadii, StoredPairs, TypeCutoffs,
};
use nearfield_grid::{Bounds, BrickParts, Domain, Grid, Lattice, Radius};
use nearfield_pairs::{Field, ListKind, SphDensity};
use std::ptr::NonNull;

fn points(count: usize) -> Vec<[f32; 3]> {
    let coordinate = |k: usize| (k as u32).wrapping_mul(2_654_435_761) as f32 / 1e9;
    (0..count)
        .map(|k| {
            [
                coordinate(3 * k),
                coordinate(3 * k + 1),
                coordinate(3 * k + 2),
            ]
        })
        .collect()
}

fn lattice(double: bool) -> Lattice {
    let radius = if double {
        Radius::new_f64(0.5)
    } else {
        Radius::new(0.5)
    };
    Lattice::new(radius.unwrap(), Domain::OPEN, 1, &Bounds::EMPTY).unwrap()
}

fn grid(points: &[[f32; 3]]) -> Grid {
    let bounds = Bounds::of(points.into(), &Domain::OPEN).unwrap();
    let mut grid = Grid::new(lattice(false));
    grid.build(points.into(), bounds, &lattice(false)).unwrap();
    grid
}

fn pair<'a>(targets: &'a Grid, sources: &'a Grid, same_set: bool) -> PairOfSets<'a> {
    PairOfSets {
        targets,
        sources,
        same_set,
        radii: SetRadii::Uniform,
        filter: Default::default(),
        share: None,
    }
}

/// The errors of all jobs on the sets.
fn refusals(of: PairOfSets<'_>) -> Vec<Error> {
    let backend = CpuBackend::new(2).unwrap();
    let kernel = SphDensity::with_support(0.5);
    let mass = vec![1.0; of.sources.given()];
    let mut results = vec![0.0; of.targets.given()];
    let fields = Fields {
        targets: &[],
        sources: &[Field::from(&mass)],
    };
    let mut errors = Vec::new();
    errors.extend(
        backend
            .search(
                of,
                ListKind::Full,
                ListOrder::Unspecified,
                &mut NeighborLists::default(),
            )
            .err(),
    );
    errors.extend(backend.count(of, &mut vec![0; of.targets.given()]).err());
    errors.extend(backend.measure(of, ListKind::Half).err());
    errors.extend(
        backend
            .traverse(&kernel, of, fields, Output::Write(&mut results))
            .err(),
    );
    errors
}

#[test]
fn two_grids_are_not_one_set() {
    let (all, few) = (points(2000), points(10));
    let (all, few, copy) = (grid(&all), grid(&few), grid(&all));
    for of in [
        pair(&all, &few, true),
        pair(&few, &all, true),
        pair(&all, &copy, true),
    ] {
        let errors = refusals(of);
        assert_eq!(errors.len(), 4);
        let two = |error: &Error| error.to_string().contains("two grids");
        assert!(errors.iter().all(two), "{errors:?}");
    }
    assert!(refusals(pair(&all, &all, true)).is_empty());
    assert!(refusals(pair(&all, &few, false)).is_empty());
}

#[test]
fn sets_of_both_precisions_do_not_meet() {
    let points = points(500);
    let wide: Vec<[f64; 3]> = points.iter().map(|at| at.map(f64::from)).collect();
    let bounds = Bounds::of((&wide).into(), &Domain::OPEN).unwrap();
    let mut double = Grid::new(lattice(true));
    double
        .build((&wide).into(), bounds, &lattice(true))
        .unwrap();
    let single = grid(&points);
    for of in [pair(&single, &double, false), pair(&double, &single, false)] {
        let errors = refusals(of);
        assert_eq!(errors.len(), 4);
        assert!(errors.iter().all(|error| error.to_string().contains("f64")));
    }
}

#[test]
fn lists_of_a_part_of_the_targets_are_refused() {
    let points = points(3000);
    let bounds = Bounds::of((&points).into(), &Domain::OPEN).unwrap();
    let lattice = lattice(false);
    let mut bricks = BrickParts::new(4, [0; 3], [3; 3], 0, usize::MAX)
        .unwrap()
        .unwrap();
    for x in 0..2 {
        bricks.set([x, 0, 0], 1);
        bricks.set([x, 1, 0], 1);
    }
    let mut part = Grid::new(lattice.clone());
    part.build_part(&points, &bounds, &lattice, &bricks, 1)
        .unwrap();
    assert!(!part.points().is_empty() && part.points().len() < part.given());
    let errors = refusals(pair(&part, &part, true));
    assert_eq!(errors.len(), 2, "counts and sums are possible: {errors:?}");
    assert!(
        errors
            .iter()
            .all(|error| error.to_string().contains("part"))
    );
}

#[test]
fn stored_lists_of_one_set_need_sets_of_one_size() {
    let (few, many) = (points(10), points(1000));
    let backend = CpuBackend::new(2).unwrap();
    let (targets, sources) = (grid(&few), grid(&many));
    let mut lists = NeighborLists::default();
    backend
        .search(
            pair(&targets, &sources, false),
            ListKind::Full,
            ListOrder::Unspecified,
            &mut lists,
        )
        .unwrap();
    let pairs = StoredPairs {
        lists: &lists,
        kind: ListKind::Half,
        lattice: targets.lattice(),
        targets: &few,
        sources: &many,
        same_set: true,
        radius: Radius::new(0.5).unwrap(),
        radii: SetRadii::Uniform,
        cutoffs: None,
        chosen: None,
    };
    let kernel = SphDensity::with_support(0.5);
    let (mass, mut results) = (vec![1.0; many.len()], vec![0.0; few.len()]);
    let fields = Fields {
        targets: &[],
        sources: &[Field::from(&mass)],
    };
    let done = backend.traverse_lists(&kernel, &pairs, fields, Output::Write(&mut results));
    assert!(
        matches!(
            done.as_ref().map_err(|error| error.kind()),
            Err(ErrorKind::Sets { .. })
        ),
        "{done:?}"
    );
}

#[derive(Debug)]
struct Memory<T>(Vec<T>);

// SAFETY: the Vec is never changed.
unsafe impl<T: Send + Sync + std::fmt::Debug> BorrowedBuffer<T> for Memory<T> {
    fn elements(&mut self) -> NonNull<[T]> {
        NonNull::from(self.0.as_mut_slice())
    }
}

/// Lends less than it is asked for, if `short`.
struct Lends {
    short: bool,
}

impl BufferProvider for Lends {
    type Error = Error;

    fn starts(&self, len: usize) -> Result<Box<dyn BorrowedBuffer<u64>>, Error> {
        Ok(Box::new(Memory(vec![
            0;
            if self.short { len / 2 } else { len }
        ])))
    }

    fn words(&self, len: usize) -> Result<Box<dyn BorrowedBuffer<u32>>, Error> {
        Ok(Box::new(Memory(vec![
            0;
            if self.short { len / 2 } else { len }
        ])))
    }
}

/// Lists at these places among entries that descend.
fn received(places: &[(u64, u32)], entries: u64, short: bool) -> Result<NeighborLists, Error> {
    let mut lists = NeighborLists::default();
    let fill = |start: &mut [u64], count: &mut [u32], to: &mut [u32], _: Inside| {
        for (k, &(first, len)) in places.iter().enumerate() {
            (start[k], count[k]) = (first, len);
        }
        for (k, entry) in (0..entries as u32).rev().zip(to) {
            *entry = k;
        }
        Ok(None)
    };
    lists.receive(places.len(), entries, &Lends { short }, fill)?;
    Ok(lists)
}

#[test]
fn lists_that_overlap_can_be_sorted() {
    let entries = 100_000;
    for short in [false, true] {
        // All the same, and each a little into the next.
        for step in [0, 7] {
            let places: Vec<_> = (0..9000).map(|k| (k * step, 20)).collect();
            let mut lists = received(&places, entries, short).unwrap();
            lists.sort();
            assert_eq!(lists.len(), places.len());
            assert!(lists.iter().all(|list| list.len() == 20));
            assert!(lists.iter().next_back_sorted());
        }
    }
}

/// Whether the list that was sorted last is in order.
trait LastSorted {
    fn next_back_sorted(self) -> bool;
}

impl<'a, I: Iterator<Item = &'a [u32]>> LastSorted for I {
    fn next_back_sorted(self) -> bool {
        self.last().is_some_and(<[u32]>::is_sorted)
    }
}

#[test]
fn lists_that_lie_side_by_side_in_any_order_are_sorted() {
    for length in [1u64, 2, 63, 64, 65, 200] {
        let count = 3000u64;
        // 7 has no factor in common with the number of lists.
        let mut places: Vec<_> = (0..count)
            .map(|k| (k * 7 % count * length, length as u32))
            .collect();
        // Lists without entries may begin anywhere.
        places.extend([(0, 0), (length / 2, 0), (count * length, 0)]);
        let mut lists = received(&places, count * length, false).unwrap();
        lists.sort();
        assert!(lists.iter().all(<[u32]>::is_sorted));
        let mut all: Vec<u32> = lists.iter().flatten().copied().collect();
        all.sort_unstable();
        assert!(
            all.into_iter().eq(0..(count * length) as u32),
            "nothing is lost"
        );
    }
}

#[test]
fn lists_outside_their_entries_are_an_error() {
    for place in [(95, 6), (101, 0), (u64::MAX, 2), (1 << 40, 1)] {
        let error = received(&[(0, 3), place], 100, false).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::ListsOutside), "{error}");
    }
}

/// Set in a process whose threads would have a stack that no system has room for.
const WITHOUT_THREADS: &str = "NEARFIELD_TEST_WITHOUT_THREADS";

#[test]
fn threads_that_were_asked_for_and_refused_are_an_error() {
    if std::env::var_os(WITHOUT_THREADS).is_none() {
        let name = "sound::threads_that_were_asked_for_and_refused_are_an_error";
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--test-threads", "1"])
            .env(WITHOUT_THREADS, "1")
            .env("RUST_MIN_STACK", (1u64 << 50).to_string())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(
            child.status.success() && said.contains("1 passed"),
            "{said}"
        );
        return;
    }
    let points = points(20_000);
    let grid = grid(&points);
    let (mut counts, mut lists) = (vec![0; points.len()], NeighborLists::default());
    let sets = pair(&grid, &grid, true);
    let asked = CpuBackend::new(3).unwrap();
    for _ in 0..2 {
        let error = asked.count(sets, &mut counts).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Threads { threads: 3, .. }),
            "{error}"
        );
        let order = ListOrder::Unspecified;
        let error = asked
            .search(sets, ListKind::Full, order, &mut lists)
            .unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Threads { threads: 3, .. }),
            "{error}"
        );
    }
    assert!(counts.iter().all(|&count| count == 0), "nothing was done");
    let left_to_it = CpuBackend::new(0).unwrap();
    left_to_it.count(sets, &mut counts).unwrap();
    assert_eq!(left_to_it.threads(), 1);
    assert!(counts.iter().any(|&count| count > 0));
}

#[test]
fn filters_that_are_not_those_of_the_sets_are_refused() {
    let points = [[0.0f32; 3], [0.25, 0.0, 0.0], [0.0, 0.25, 0.0]];
    let grid = grid(&points);
    let radius = Radius::new(0.5).unwrap();
    let one = CutoffTable::new(&[[0.5]], radius, false).unwrap();
    let two = CutoffTable::new(&[[0.5, 0.5], [0.5, 0.5]], radius, false).unwrap();
    let (mut types, mut few) = (PointTypes::default(), PointTypes::default());
    types.take(&[0u8, 1, 1], 3, two.types()).unwrap();
    few.take(&[0u8], 1, 2).unwrap();
    let molecules = Exclusions::molecules(&[0; 2]).unwrap();
    let chosen = ChosenPoints::with_mask(&[true; 4]).unwrap();
    let cutoffs = |table, types| {
        let cutoffs = Some(TypeCutoffs { table, types });
        PairFilter {
            cutoffs,
            ..PairFilter::default()
        }
    };
    let filters = [
        (cutoffs(&one, [&types, &types]), "more types than there are"),
        (cutoffs(&two, [&few, &types]), "types for 1 points"),
        (cutoffs(&two, [&types, &few]), "types for 1 points"),
        (
            PairFilter {
                excluded: Some(&molecules),
                ..PairFilter::default()
            },
            "exclusions for 2 points",
        ),
        (
            PairFilter {
                chosen: Some(&chosen),
                ..PairFilter::default()
            },
            "chosen targets for 4 points",
        ),
    ];
    for (filter, words) in filters {
        let of = PairOfSets {
            filter,
            ..pair(&grid, &grid, true)
        };
        let errors = refusals(of);
        assert_eq!(errors.len(), 4, "{words}");
        for error in errors {
            assert!(error.to_string().contains(words), "{error}");
        }
    }
    let of = PairOfSets {
        filter: cutoffs(&two, [&types, &types]),
        ..pair(&grid, &grid, true)
    };
    let mut counts = [0; 3];
    CpuBackend::new(1).unwrap().count(of, &mut counts).unwrap();
    assert_eq!(counts, [2, 2, 2]);
}
