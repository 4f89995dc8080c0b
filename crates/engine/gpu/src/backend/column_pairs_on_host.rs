//! The kernel of column_pairs.cu on the CPU: the pairs of lists that name sources alone have the
//! images, displacements and distances of the contract, bit for bit, in either precision and also
//! of points far outside the box. As in `systems_on_host`.

use super::{
    on_host::compiled,
    sorted_on_host::is_double,
    stored::candidates,
    stored_on_host::{domain_of, lattice_of},
};
use crate::{
    launch::{ColumnsKernel, Lattice, ListedPoints, PairOutput, StoredLists, sources},
    traversal::Candidates,
};
use libloading::Library;
use nearfield_grid::{self as grid, Positions};
use nearfield_testkit::{
    conformance::{Case, Level, Runner},
    oracle::{self, Real},
};

type RunPairs = unsafe extern "C" fn(*const StoredLists, *const PairOutput, *const ListedPoints);

/// A pair as the kernel writes it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pair<T> {
    indices: [i64; 2],
    image: [i32; 3],
    d: [T; 3],
    distance: T,
}

/// The same by the contract; None if an image has no 32-bit numbers.
fn expected<T: Real>(case: &Case<T>, neighbors: &[Vec<oracle::Neighbor>]) -> Option<Vec<Pair<T>>> {
    let problem = case.problem();
    let of_target = |(target, list): (usize, &Vec<oracle::Neighbor>)| {
        let pairs = list.iter().map(|neighbor| {
            let (from, to) = (
                case.targets()[target],
                case.sources()[neighbor.index as usize],
            );
            let squared = problem.distance_squared(from, to, neighbor.image);
            let image = neighbor.image.map(i32::try_from);
            Some(Pair {
                indices: [target as i64, i64::from(neighbor.index)],
                image: [image[0].ok()?, image[1].ok()?, image[2].ok()?],
                d: problem.displacement(from, to, neighbor.image),
                distance: T::round(squared.to_f64().sqrt()),
            })
        });
        pairs.collect::<Option<Vec<_>>>()
    };
    let lists = neighbors.iter().enumerate().map(of_target);
    Some(lists.collect::<Option<Vec<_>>>()?.concat())
}

/// The pairs that the kernel writes with this much room.
fn written<T: Real>(
    library: &Library,
    case: &Case<T>,
    neighbors: &[Vec<oracle::Neighbor>],
    lattice: &grid::Lattice,
    room: usize,
) -> Vec<Pair<T>> {
    // Lists of the last targets come first in the storage.
    let (mut starts, mut entries) = (vec![0u64; neighbors.len()], Vec::new());
    for (target, list) in neighbors.iter().enumerate().rev() {
        starts[target] = entries.len() as u64;
        entries.extend(list.iter().map(|neighbor| neighbor.index));
    }
    let counts: Vec<u32> = neighbors.iter().map(|list| list.len() as u32).collect();
    let mut sums = vec![0u64; ColumnsKernel::sums(neighbors.len())];
    let (mut targets, mut sources) = (vec![-1i64; room], vec![-1i64; room]);
    let (mut images, mut d) = (vec![[0i32; 3]; room], vec![[T::round(0.0); 3]; room]);
    let (mut distances, mut far) = (vec![T::round(0.0); room], 0u32);
    let lists = StoredLists {
        starts: starts.as_ptr() as u64,
        counts: counts.as_ptr() as u64,
        entries: entries.as_ptr() as u64,
        capacity: entries.len() as u64,
        sums: sums.as_mut_ptr() as u64,
        count: neighbors.len() as u32,
        wide: (size_of::<T>() / 4) as u32,
        ..StoredLists::default()
    };
    let output = PairOutput {
        targets: targets.as_mut_ptr() as u64,
        sources: sources.as_mut_ptr() as u64,
        images: images.as_mut_ptr() as u64,
        displacements: d.as_mut_ptr() as u64,
        distances: distances.as_mut_ptr() as u64,
        capacity: room as u64,
        index_bytes: 8,
        ..PairOutput::default()
    };
    let points = ListedPoints {
        lattice: Lattice::of_box(lattice),
        inverse: super::nearest_image::rounded_inverse(lattice.domain()),
        pad: 0,
        targets: case.targets().as_ptr() as u64,
        sources: case.sources().as_ptr() as u64,
        far: (&raw mut far) as u64,
    };
    // SAFETY: declared so in column_pairs.cpp; all arrays are as long as the structs say.
    unsafe { library.get::<RunPairs>(b"run_column_pairs").unwrap()(&lists, &output, &points) };
    assert_eq!(far, 0, "{}", case.name);
    let pair = |k: usize| Pair {
        indices: [targets[k], sources[k]],
        image: images[k],
        d: d[k],
        distance: distances[k],
    };
    (0..room).map(pair).collect()
}

#[test]
fn pairs_of_lists_have_the_geometry_of_the_contract() {
    check_pairs(Runner::new(Level::Quick));
}

#[test]
fn pairs_of_lists_in_double_have_the_geometry_of_the_contract() {
    check_pairs(Runner::in_double(Level::Quick));
}

fn check_pairs<T: Real>(runner: Runner<T>)
where
    for<'a> Positions<'a>: From<&'a [[T; 3]]>,
{
    let define = format!("-DNF_DOUBLE={}", u32::from(is_double::<T>()));
    let headers = sources::COLUMN_PAIRS.headers;
    let Some(library) = compiled("column_pairs.cpp", headers, &[&define]) else {
        return;
    };
    let runner = runner.keep(|case| case.rule == oracle::RadiusRule::Uniform);
    let (mut taken, mut boxes_away) = ([0; 3], 0);
    for (number, (case, neighbors)) in runner.with_neighbors().enumerate() {
        let lattice = lattice_of(case, case.radius);
        let way = match candidates(&lattice, lattice.radius()) {
            Candidates::ListedOpen => 0,
            Candidates::ListedNearest => 1,
            Candidates::ListedTilted => 2,
            _ => continue,
        };
        let all: usize = neighbors.iter().map(Vec::len).sum();
        // Threads of the host take their time.
        if all == 0 || all > 60_000 || (way == 0 && number % 4 > 1) {
            continue;
        }
        let Some(exact) = expected(case, neighbors) else {
            continue;
        };
        assert_eq!(domain_of(case).is_periodic(), way > 0);
        taken[way] += 1;
        boxes_away += usize::from(
            exact
                .iter()
                .any(|pair| pair.image.iter().any(|n| n.abs() > 1)),
        );
        for room in [all, all - all / 3] {
            let found = written(&library, case, neighbors, &lattice, room);
            assert!(found == exact[..room], "{}", case.name);
        }
    }
    println!("{taken:?}, {boxes_away} with points boxes away");
    assert!(taken.iter().all(|&cases| cases > 5), "{taken:?}");
    assert!(boxes_away > 3, "{boxes_away}");
}
