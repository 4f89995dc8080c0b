//! The walks of the device code on the CPU: compiled by the machine's C++ compiler and compared
//! with the contract on all conformance cases, bit for bit, where there is no GPU.
//!
//! Both precisions run through the same functions, by two libraries of the same source. Points that
//! lie outside the box, and all of double precision, are walked as proxies, decided as given.
//!
//! Every walk is a job that asks for images, so the geometry of every pair is compared with the
//! contract's too, bit for bit: image vector, displacement, its square and its root. Masks are
//! expanded as `flat_expand` does it, to places and images, from which pairs are computed anew.
//! Lists are also sorted as the lanes of a warp and the threads of a block do it, one lane or
//! thread being all there is.
//!
//! Cells are compared with those of the host too, in every box, also where a box vector leans along
//! an open axis: ranges of targets come in the order of the host's cells, and a device that shares
//! work would otherwise own other targets than its plan says.
//!
//! Without a compiler of the host (`c++`, or the one named by `CXX`) the tests do nothing, or fail
//! if `NEARFIELD_REQUIRE_CXX=1`.

use super::{
    named_on_host::Named,
    sorted_on_host::{Sorted, is_double},
    wide_on_host::BulkCells,
};
use crate::constants::NEAR_WRAPPED;
use crate::launch::{
    FilteredWalk, Filters, Geometry, KernelLattice, Lattice, PairArrays, Row, Walk, image_steps,
};
use crate::traversal::Candidates;
use libloading::Library;
use nearfield_grid::{self as grid, Bounds, Domain, Positions, Radius};
use nearfield_shared::Header;
use nearfield_testkit::{
    conformance::{Case, Level, Lists, Runner},
    oracle::{self, Real},
    random::Random,
};
use std::{env, ffi::c_void, fs, path::Path, process::Command, sync::OnceLock};

/// `ListOutput` of walk.cpp.
#[repr(C)]
struct ListOutput {
    counts: *mut u64,
    entries: *mut u32,
    pairs: *mut c_void,
}

/// `PairOutput` of walk.cpp: the geometry of a pair.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[repr(C)]
pub(super) struct PairOutput<T> {
    image: [i64; 3],
    shift: [T; 3],
    d: [T; 3],
    squared: T,
    distance: T,
}

/// Lists of a case, by target: the index of every neighbour and the geometry of the pair.
pub(super) type Found<T> = Vec<Vec<(u32, PairOutput<T>)>>;

/// The radius of a search in the precision of its type.
pub(super) fn radius_of<T: Real>(radius: T) -> Radius {
    if is_double::<T>() {
        Radius::new_f64(radius.to_f64()).unwrap()
    } else {
        Radius::rounded(radius.to_f64()).unwrap()
    }
}

type WalkLists = unsafe extern "C" fn(*const FilteredWalk, *const ListOutput, u32, u32, u32, u32);
type AscendList = unsafe extern "C" fn(*mut u32, *const PairArrays, u32, u32);

/// The compiled walks of a precision; None where a test is to be skipped.
pub(super) fn walks<T: Real>() -> Option<&'static Library> {
    static COMPILED: [OnceLock<Option<Library>>; 2] = [OnceLock::new(), OnceLock::new()];
    let double = is_double::<T>();
    let define = if double {
        "-DNF_DOUBLE=1"
    } else {
        "-DNF_DOUBLE=0"
    };
    let compile = || compiled("walk.cpp", &KernelLattice::HEADERS, &[define]);
    COMPILED[usize::from(double)].get_or_init(compile).as_ref()
}

/// A file of kernels/host, which includes `headers`; None where a test is to be skipped.
pub(super) fn compiled(source: &str, headers: &[Header], defines: &[&str]) -> Option<Library> {
    let compiler = env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../kernels/host");
    let source = sources.join(source);
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("host.so");
    for header in headers {
        let place = folder.path().join(header.name);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, header.text).unwrap();
    }
    let flags = [
        "-std=c++17",
        // More takes compilers twice as long and saves less than that.
        "-O1",
        "-ffp-contract=off",
        "-shared",
        "-fPIC",
        "-o",
    ];
    let output = Command::new(&compiler)
        .arg("-I")
        .arg(folder.path())
        .args(defines)
        .args(flags)
        .arg(&library)
        .arg(source)
        .output();
    match output {
        Ok(output) => {
            let messages = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{compiler}: {messages}");
        }
        Err(error) => {
            let required = env::var("NEARFIELD_REQUIRE_CXX").is_ok_and(|value| value == "1");
            assert!(
                !required,
                "NEARFIELD_REQUIRE_CXX=1, but {compiler}: {error}"
            );
            eprintln!("skipped: {compiler}: {error}");
            return None;
        }
    }
    // SAFETY: the library was made from this repository's sources a moment ago and has no
    // initialisers of its own.
    Some(unsafe { Library::new(library) }.unwrap())
}

/// How often each way was taken.
#[derive(Debug, Default)]
pub(super) struct PathCounts {
    /// Searches for targets in another order than that of the cells.
    named: usize,
    pub(super) domains: [usize; 5],
    /// Searches in cells for the bulk of the points.
    pub(super) wide: usize,
    sparse: usize,
    /// Boxes with rows one cell farther than the radius is divided.
    fitted: usize,
    /// Searches of points outside the box, around single targets.
    wrapped: usize,
    /// Those of them whose images are found from packed counts of boxes: in straight boxes, and in
    /// tilted ones.
    imaged: [usize; 2],
}

/// How lists are found, as `ListMethod` of walk.cpp.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ListMethod {
    Walks,
    Masks,
    Rows,
    Kernels,
}

/// What walks leave out of the lists of a case, made for the sorted sources; see `filters_on_host`.
pub(super) type MakeFilters<'a> = &'a dyn Fn(&[[f32; 4]]) -> Filters;

/// Lists that were found by `means`; None where the device code would be given a sparse
/// table. With `bulk` cells are made for that radius, where they may be.
pub(super) fn lists<T: Real>(
    walks: &Library,
    case: &Case<T>,
    subdivision: [u32; 3],
    means: ListMethod,
    (filters, bulk): (MakeFilters<'_>, Option<Radius>),
    taken: &mut PathCounts,
) -> Option<Found<T>>
where
    for<'a> Positions<'a>: From<&'a [[T; 3]]>,
{
    let domain = match case.vectors {
        Some(vectors) => Domain::from_vectors(vectors).unwrap(),
        None => Domain::new(case.periodic).unwrap(),
    };
    let bounds: Vec<Bounds> = (case.sets.iter())
        .map(|set| Bounds::of(set.as_slice().into(), &domain).unwrap())
        .collect();
    let all = bounds.iter().fold(Bounds::EMPTY, |all, one| all.union(one));
    let radius = radius_of(case.radius);
    let make = if subdivision[0] > subdivision[1] {
        grid::Lattice::fitted
    } else {
        grid::Lattice::divided
    };
    let made = |radius| make(radius, domain, subdivision, &all).unwrap();
    let bulk = bulk.and_then(|bulk| BulkCells::new(made(bulk), radius));
    let lattice = (bulk.as_ref()).map_or_else(|| made(radius), |bulk| bulk.lattice.clone());
    let layout = Lattice::new(&lattice).within(radius);
    let targets = case.targets().len();
    if targets == 0 || case.sets[case.source].is_empty() {
        return None;
    }
    let sorted = |set: usize| Sorted::new(walks, &lattice, &layout, &case.sets[set], &bounds[set]);
    let (Some(of), Some(sources)) = (sorted(case.target), sorted(case.source)) else {
        taken.sparse += 1;
        return None;
    };
    let geometry = Geometry::of(&lattice, sources.table, subdivision[1]);
    let rows: Vec<Row> = lattice.rows().iter().map(Row::new).collect();
    let steps = image_steps(&lattice);
    let full = case.list == oracle::ListKind::Full;
    let named = (full && (targets + means as usize) % 4 == 1)
        .then(|| Named::new(&of.at, &of.wraps, &of.given));
    taken.named += usize::from(named.is_some());
    let walk = Walk {
        lattice: layout,
        geometry: geometry.unwrap_or_default(),
        targets: match &named {
            Some(named) => named.layout(of.layout()),
            None => of.layout(),
        },
        sources: sources.layout(),
        rows: rows.as_ptr() as u64,
        steps: if steps.is_empty() {
            0
        } else {
            steps.as_ptr() as u64
        },
        row_count: rows.len() as u32,
        same_set: u32::from(case.target == case.source),
    };
    let sorted = &sources.at[..sources.at.len() - 2];
    let (mut filters, mut wide) = (filters(sorted), vec![0]);
    if let Some(bulk) = bulk {
        // SAFETY: filters are made for these sources.
        filters = unsafe { bulk.filters(filters, sorted.len(), &mut wide) };
        taken.wide += 1;
    }
    let filters = match &geometry {
        Some(geometry) => filters.reaching(&lattice, geometry),
        None => filters,
    };
    let walk = FilteredWalk { walk, filters };
    let seen = lattice.effective_domain();
    let number = match geometry {
        None => Candidates::Rows,
        Some(_) if seen.is_tilted() => Candidates::Tilted,
        Some(_) if lattice.domain().is_periodic() => Candidates::Periodic,
        Some(_) if case.target == case.source => Candidates::OneSet,
        Some(_) => Candidates::Open,
    };
    taken.domains[number as usize] += 1;
    let farther = lattice.max_offsets()[1] > i64::from(subdivision[1]);
    taken.fitted += usize::from(geometry.is_some() && farther);
    let wrapped = of.flags[0] + sources.flags[0] > 0;
    taken.wrapped += usize::from(geometry.is_some() && wrapped);
    let near = of.flags[0] == NEAR_WRAPPED && sources.flags[0] == NEAR_WRAPPED;
    let periodic = matches!(number, Candidates::Periodic | Candidates::Tilted);
    let imaged = !is_double::<T>() && near && periodic;
    if means == ListMethod::Kernels && !imaged {
        return None;
    }
    if means == ListMethod::Kernels {
        taken.imaged[usize::from(number == Candidates::Tilted)] += 1;
    }
    let half = u32::from(case.list == oracle::ListKind::Half);
    let mut counts = vec![0u64; targets];
    let run = |counts: &mut [u64], entries: *mut u32, pairs: *mut c_void| {
        let found = ListOutput {
            counts: counts.as_mut_ptr(),
            entries,
            pairs,
        };
        // SAFETY: the function is declared so in walk.cpp; `counts` has room for every target, and
        // `entries` and `pairs` for as many as were counted before, or they are null.
        unsafe {
            walks.get::<WalkLists>(b"walk_lists").unwrap()(
                &walk,
                &found,
                number as u32,
                subdivision[1],
                half,
                means as u32,
            )
        };
    };
    run(&mut counts, std::ptr::null_mut(), std::ptr::null_mut());
    let all = counts.iter().sum::<u64>() as usize;
    let mut entries = vec![u32::MAX; all];
    let mut pairs = vec![PairOutput::<T>::default(); all];
    run(&mut counts, entries.as_mut_ptr(), pairs.as_mut_ptr().cast());
    let mut lists = vec![Vec::new(); targets];
    let mut rest = entries.into_iter().zip(pairs);
    for (slot, &count) in counts.iter().enumerate() {
        let list = rest.by_ref().take(count as usize).collect();
        let at = named.as_ref().map_or(&of.at, |named| &named.at);
        lists[at[slot][3].to_bits() as usize] = list;
    }
    Some(lists)
}

/// Checks that every pair of `found` has the geometry of the contract.
pub(super) fn check_geometry<T: Real>(case: &Case<T>, found: &Found<T>) {
    let domain = match case.vectors {
        Some(vectors) => Domain::from_vectors(vectors).unwrap(),
        None => Domain::new(case.periodic).unwrap(),
    };
    let problem = case.problem();
    for (target, list) in found.iter().enumerate() {
        for &(index, pair) in list {
            let (from, to) = (case.targets()[target], case.sources()[index as usize]);
            let squared = problem.distance_squared(from, to, pair.image);
            let expected = PairOutput {
                image: pair.image,
                shift: domain.image_vector_f64(pair.image).map(T::round),
                d: problem.displacement(from, to, pair.image),
                squared,
                distance: T::round(squared.to_f64().sqrt()),
            };
            let numbers = |pair: &PairOutput<T>| {
                let rest = [pair.squared, pair.distance, pair.distance];
                [pair.shift, pair.d, rest].map(|three| three.map(|x| x.to_f64().to_bits()))
            };
            let same = numbers(&pair) == numbers(&expected);
            assert!(same, "{}: {pair:?} instead of {expected:?}", case.name);
        }
    }
}

/// Indices and images of the pairs of every target, in ascending order.
pub(super) fn neighbors<T>(found: &Found<T>) -> Vec<Vec<oracle::Neighbor>> {
    let ascending = |list: &Vec<(u32, PairOutput<T>)>| {
        let mut list: Vec<_> = (list.iter())
            .map(|(index, pair)| oracle::Neighbor {
                index: *index,
                image: pair.image,
            })
            .collect();
        list.sort_unstable_by_key(|neighbor| (neighbor.index, neighbor.image));
        list
    };
    found.iter().map(ascending).collect()
}

/// The indices alone.
fn indices(lists: &[Vec<oracle::Neighbor>]) -> Lists {
    let list = |list: &Vec<oracle::Neighbor>| list.iter().map(|one| one.index).collect();
    lists.iter().map(list).collect()
}

/// Compares all ways to find lists with the contract.
fn check_walks<T: Real>(runner: Runner<T>, subdivisions: &[[u32; 3]]) -> Option<PathCounts>
where
    for<'a> Positions<'a>: From<&'a [[T; 3]]>,
{
    let mut taken = PathCounts::default();
    let walks = walks::<T>()?;
    let runner = runner.keep(|case| case.rule == oracle::RadiusRule::Uniform);
    for &subdivision in subdivisions {
        for (case, expected) in runner.with_neighbors() {
            let none = |_: &[[f32; 4]]| Filters::default();
            let by = (&none as MakeFilters<'_>, None);
            let mut find = |means| lists(walks, case, subdivision, means, by, &mut taken);
            use ListMethod::{Kernels, Masks, Rows, Walks};
            let found = [Walks, Masks, Rows, Kernels].map(|means| (means, find(means)));
            for (by, found_by) in &found[2..] {
                let same = found_by.is_none() && *by == Kernels || found[0].1 == *found_by;
                assert!(same, "{}: lists in the same order", case.name);
            }
            for (means, found) in found {
                let Some(found) = found else { continue };
                check_geometry(case, &found);
                let found = neighbors(&found);
                let by = || format!("{} by {subdivision:?}, {means:?}", case.name);
                let checked = case.check_against(&indices(expected), indices(&found));
                checked.unwrap_or_else(|error| panic!("{}: {error}", by()));
                assert!(found == *expected, "{}: images", by());
            }
        }
    }
    println!("{taken:?}");
    assert!(taken.domains.iter().all(|&cases| cases > 20), "{taken:?}");
    assert!(taken.wrapped > 20 && taken.named > 50, "{taken:?}");
    Some(taken)
}

#[test]
fn walks_of_the_device_code_find_the_pairs_of_the_contract() {
    let subdivisions = [[1, 1, 1], [4, 1, 1], [2, 2, 2], [6, 3, 3]];
    let taken = check_walks(Runner::new(Level::Quick), &subdivisions);
    let all = |taken: PathCounts| taken.fitted > 0 && taken.imaged.iter().all(|&count| count > 10);
    assert!(taken.is_none_or(all));
}

#[test]
fn walks_over_proxies_find_the_pairs_of_the_contract_in_double_precision() {
    check_walks(Runner::in_double(Level::Quick), &[[4, 1, 1], [2, 2, 2]]);
}

/// What belongs to an entry, made of its index and its image.
fn belongings(index: u32, image: [i32; 3]) -> (u32, [f32; 3], f32) {
    let number = index as f32 + 100.0 * image[0] as f32;
    (7 * index, [number, image[1] as f32, -number], 0.5 * number)
}

#[test]
fn lists_ascend_with_all_that_belongs_to_their_pairs() {
    let Some(walks) = walks::<f32>() else {
        return;
    };
    let mut random = Random::new(11);
    for length in (0..40).chain([100, 255, 256, 300, 1000]) {
        for (indices, with_images) in [(10_000, true), (4, true), (4, false)] {
            for by_block in [0, 1] {
                if by_block == 0 && length > 256 {
                    continue;
                }
                let mut entries: Vec<u32> =
                    (0..length).map(|_| random.below(indices) as u32).collect();
                let mut images: Vec<[i32; 3]> = (0..length)
                    .map(|_| [0; 3].map(|_: i32| random.below(5) as i32 - 2))
                    .collect();
                let of = |at: usize| belongings(entries[at], images[at]);
                let mut targets: Vec<u32> = (0..length).map(|at| of(at).0).collect();
                let mut shifts: Vec<[f32; 3]> = (0..length).map(|at| of(at).1).collect();
                let mut squares: Vec<f32> = (0..length).map(|at| of(at).2).collect();
                let mut expected: Vec<_> = entries.iter().copied().zip(images.clone()).collect();
                expected.sort_unstable();
                let arrays = PairArrays {
                    targets: targets.as_mut_ptr() as u64,
                    images: if with_images {
                        images.as_mut_ptr() as u64
                    } else {
                        0
                    },
                    shifts: shifts.as_mut_ptr() as u64,
                    squares: squares.as_mut_ptr() as u64,
                    ..PairArrays::default()
                };
                // SAFETY: the function is declared so in walk.cpp; all arrays that are named have
                // as many values as the list.
                unsafe {
                    let function = walks.get::<AscendList>(b"ascend_list").unwrap();
                    function(entries.as_mut_ptr(), &arrays, length as u32, by_block);
                }
                let indices: Vec<u32> = expected.iter().map(|pair| pair.0).collect();
                assert_eq!(entries, indices, "{length} entries");
                if !with_images {
                    // Pairs of one source are in any order.
                    assert!((0..length).all(|at| targets[at] == 7 * entries[at]));
                    continue;
                }
                let found: Vec<_> = entries.into_iter().zip(images).collect();
                assert_eq!(found, expected, "{length} entries");
                for (at, (index, image)) in found.into_iter().enumerate() {
                    let found = (targets[at], shifts[at], squares[at]);
                    assert_eq!(found, belongings(index, image), "{length} entries");
                }
            }
        }
    }
}
