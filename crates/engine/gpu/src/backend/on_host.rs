//! The walks of the device code on the CPU: compiled by the machine's C++ compiler and compared
//! with the contract on all conformance cases, bit for bit, where there is no GPU.
//!
//! Every walk is a job that asks for images, so the geometry of every pair is compared with the
//! contract's too, bit for bit: image vector, displacement, its square and its root. Masks are
//! expanded as `flat_expand` does it, to places and images, from which pairs are computed anew.
//! Lists are also sorted as the lanes of a warp and the threads of a block do it, one lane or
//! thread being all there is.
//!
//! Without a compiler of the host (`c++`, or the one named by `CXX`) the tests do nothing, or fail
//! if `NEARFIELD_REQUIRE_CXX=1`.

use crate::launch::{
    FilteredWalk, Filters, Geometry, KernelLattice, Lattice, PairArrays, Points, Row, Table, Walk,
};
use crate::traversal::Candidates;
use libloading::Library;
use nearfield_grid::{self as grid, Bounds, Domain, Radius};
use nearfield_shared::Header;
use nearfield_testkit::{
    conformance::{Case, Level, Lists, Runner},
    oracle,
    random::Random,
};
use std::{env, fs, path::Path, process::Command, sync::OnceLock};

/// `ListOutput` of walk.cpp.
#[repr(C)]
struct ListOutput {
    counts: *mut u64,
    entries: *mut u32,
    pairs: *mut PairOutput,
}

/// `PairOutput` of walk.cpp: the geometry of a pair.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[repr(C)]
pub(super) struct PairOutput {
    image: [i64; 3],
    shift: [f32; 3],
    d: [f32; 3],
    squared: f32,
    distance: f32,
}

/// Lists of a case, by target: the index of every neighbour and the geometry of the pair.
pub(super) type Found = Vec<Vec<(u32, PairOutput)>>;

type WalkLists = unsafe extern "C" fn(*const FilteredWalk, *const ListOutput, u32, u32, u32, u32);
type AscendList = unsafe extern "C" fn(*mut u32, *const PairArrays, u32, u32);
type PlaceOfPoint = unsafe extern "C" fn(*const Lattice, *const f32, *mut f64, *mut i32);

/// The compiled walks; None where a test is to be skipped.
pub(super) fn walks() -> Option<&'static Library> {
    static COMPILED: OnceLock<Option<Library>> = OnceLock::new();
    let compile = || compiled("walk.cpp", &KernelLattice::HEADERS, &[]);
    COMPILED.get_or_init(compile).as_ref()
}

/// A file of kernels/host, which includes `headers`, compiled with these macros; None where a test
/// is to be skipped.
pub(super) fn compiled(source: &str, headers: &[Header], macros: &[&str]) -> Option<Library> {
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
        "-O2",
        "-ffp-contract=off",
        "-shared",
        "-fPIC",
        "-o",
    ];
    let output = Command::new(&compiler)
        .arg("-I")
        .arg(folder.path())
        .args(macros)
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

/// A set sorted as grid.cu does it.
struct Sorted {
    table: Table,
    at: Vec<[f32; 4]>,
    wraps: Vec<[i32; 4]>,
    changes: Vec<u32>,
    starts: Vec<u32>,
    flags: [u32; 3],
}

/// Cell and wraps of a point by the device code.
fn place(walks: &Library, lattice: &Lattice, at: [f32; 3]) -> (grid::Cell, [i32; 3]) {
    let (mut cells, mut wraps) = ([0.0; 3], [0; 3]);
    // SAFETY: the function is declared so in walk.cpp; it reads and writes three numbers each.
    unsafe {
        let function = walks.get::<PlaceOfPoint>(b"place_of_point").unwrap();
        function(lattice, at.as_ptr(), cells.as_mut_ptr(), wraps.as_mut_ptr());
    }
    (cells.map(|cell| cell as i64), wraps)
}

impl Sorted {
    /// None where the table would be sparse.
    fn new(
        walks: &Library,
        lattice: &grid::Lattice,
        layout: &Lattice,
        points: &[[f32; 3]],
        bounds: &Bounds,
        changes_known: bool,
    ) -> Option<Self> {
        let table = Table::around(lattice, bounds);
        if table.cells() > 1 << 20 {
            return None;
        }
        let mut places: Vec<(usize, u32, [i32; 3])> = Vec::new();
        for (index, &at) in points.iter().enumerate() {
            let (cell, wraps) = place(walks, layout, at);
            assert_eq!(cell, lattice.cell(at), "cell of {at:?}");
            assert_eq!(wraps, lattice.wraps(at), "wraps of {at:?}");
            let inside = |axis: usize| {
                let offset = (cell[axis] - table.origin[axis]) as usize;
                assert!(offset < table.dims[axis] as usize);
                offset
            };
            let row = inside(2) * table.dims[1] as usize + inside(1);
            places.push((
                row * table.dims[0] as usize + inside(0),
                index as u32,
                wraps,
            ));
        }
        places.sort_unstable();
        let mut starts = vec![0; table.cells() as usize + 1];
        places.iter().for_each(|place| starts[place.0 + 1] += 1);
        (1..starts.len()).for_each(|cell| starts[cell] += starts[cell - 1]);
        let wrapped = places.iter().any(|place| place.2 != [0; 3]);
        let mut changes = vec![0u32; places.len().div_ceil(32)];
        for slot in (1..places.len()).filter(|&slot| places[slot].2 != places[slot - 1].2) {
            changes[slot / 32] |= 1 << (slot % 32);
        }
        let mut at: Vec<[f32; 4]> = places
            .iter()
            .map(|&(_, index, _)| {
                let [x, y, z] = points[index as usize];
                [x, y, z, f32::from_bits(index)]
            })
            .collect();
        // Read behind the last, and thrown away.
        at.extend([[0.0; 4]; 2]);
        Some(Self {
            table,
            at,
            wraps: places
                .iter()
                .map(|&(_, _, [x, y, z])| [x, y, z, 0])
                .collect(),
            changes,
            starts,
            flags: [u32::from(wrapped), 0, u32::from(changes_known)],
        })
    }

    fn layout(&self) -> Points {
        Points {
            at: self.at.as_ptr() as u64,
            wraps: if self.flags[0] == 0 {
                0
            } else {
                self.wraps.as_ptr() as u64
            },
            changes: self.changes.as_ptr() as u64,
            starts: self.starts.as_ptr() as u64,
            flags: self.flags.as_ptr() as u64,
            ids: 0,
            bricks: 0,
            origin: self.table.origin,
            dims: self.table.dims,
            mask: 0,
            sparse: 0,
            cells: self.table.cells() as u32,
            count: self.at.len() as u32 - 2,
            pad: self.table.pad,
            slots: 0,
        }
    }
}

/// How often each way was taken.
#[derive(Debug, Default)]
pub(super) struct PathCounts {
    pub(super) domains: [usize; 5],
    sparse: usize,
    /// Boxes with rows one cell farther than the radius is divided.
    fitted: usize,
}

/// How lists are found, as `ListMethod` of walk.cpp.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ListMethod {
    Walks,
    Masks,
    Rows,
}

/// What walks leave out of the lists of a case, made for the sorted sources; see `filters_on_host`.
pub(super) type MakeFilters<'a> = &'a dyn Fn(&[[f32; 4]]) -> Filters;

/// Lists that were found by `means`; None where the device code would be given a sparse
/// table.
pub(super) fn lists(
    walks: &Library,
    case: &Case,
    subdivision: [u32; 3],
    means: ListMethod,
    filters: MakeFilters<'_>,
    taken: &mut PathCounts,
) -> Option<Found> {
    let domain = match case.vectors {
        Some(vectors) => Domain::from_vectors(vectors).unwrap(),
        None => Domain::new(case.periodic).unwrap(),
    };
    let bounds: Vec<Bounds> = (case.sets.iter())
        .map(|set| Bounds::of(set.as_slice().into(), &domain).unwrap())
        .collect();
    let all = bounds.iter().fold(Bounds::EMPTY, |all, one| all.union(one));
    let radius = Radius::new(case.radius).unwrap();
    let make = if subdivision[0] > subdivision[1] {
        grid::Lattice::fitted
    } else {
        grid::Lattice::divided
    };
    let lattice = make(radius, domain, subdivision, &all).unwrap();
    let layout = Lattice::new(&lattice);
    let targets = case.targets().len();
    if targets == 0 || case.sets[case.source].is_empty() {
        return None;
    }
    // The first sort that meets points outside of a box does not know where it changes.
    let known = subdivision != [2, 2, 2];
    let sorted = |set: usize| {
        Sorted::new(
            walks,
            &lattice,
            &layout,
            &case.sets[set],
            &bounds[set],
            known,
        )
    };
    let (Some(of), Some(sources)) = (sorted(case.target), sorted(case.source)) else {
        taken.sparse += 1;
        return None;
    };
    let geometry = Geometry::of(&lattice, sources.table, subdivision[1]);
    let rows: Vec<Row> = lattice.rows().iter().map(Row::new).collect();
    let walk = Walk {
        lattice: layout,
        geometry: geometry.unwrap_or_default(),
        targets: of.layout(),
        sources: sources.layout(),
        rows: rows.as_ptr() as u64,
        row_count: rows.len() as u32,
        same_set: u32::from(case.target == case.source),
    };
    let filters = filters(&sources.at[..sources.at.len() - 2]);
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
        Some(_) => Candidates::Open,
    };
    let one_set = case.target == case.source;
    let number = if number == Candidates::Open && one_set {
        Candidates::OneSet
    } else {
        number
    };
    taken.domains[number as usize] += 1;
    let farther = lattice.max_offsets()[1] > i64::from(subdivision[1]);
    taken.fitted += usize::from(geometry.is_some() && farther);
    let half = u32::from(case.list == oracle::ListKind::Half);
    let mut counts = vec![0u64; targets];
    let run = |counts: &mut [u64], entries: *mut u32, pairs: *mut PairOutput| {
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
    let mut pairs = vec![PairOutput::default(); all];
    run(&mut counts, entries.as_mut_ptr(), pairs.as_mut_ptr());
    let mut lists = vec![Vec::new(); targets];
    let mut rest = entries.into_iter().zip(pairs);
    for (slot, &count) in counts.iter().enumerate() {
        let list = rest.by_ref().take(count as usize).collect();
        lists[of.at[slot][3].to_bits() as usize] = list;
    }
    Some(lists)
}

/// Checks that every pair of `found` has the geometry of the contract.
pub(super) fn check_geometry(case: &Case, found: &Found) {
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
                shift: domain.image_vector(pair.image),
                d: problem.displacement(from, to, pair.image),
                squared,
                distance: squared.sqrt(),
            };
            let numbers = |pair: &PairOutput| {
                let numbers = [pair.shift, pair.d, [pair.squared, pair.distance, 0.0]];
                numbers.map(|three| three.map(f32::to_bits))
            };
            let same = numbers(&pair) == numbers(&expected);
            assert!(same, "{}: {pair:?} instead of {expected:?}", case.name);
        }
    }
}

/// Indices and images of the pairs of every target, in ascending order.
pub(super) fn neighbors(found: &Found) -> Vec<Vec<oracle::Neighbor>> {
    let ascending = |list: &Vec<(u32, PairOutput)>| {
        let mut list: Vec<_> = (list.iter())
            .map(|&(index, pair)| oracle::Neighbor {
                index,
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

#[test]
fn walks_of_the_device_code_find_the_pairs_of_the_contract() {
    let Some(walks) = walks() else { return };
    let runner = Runner::new(Level::Quick)
        .keep(|case| case.rule == oracle::RadiusRule::Uniform && !case.is_slanted());
    let mut taken = PathCounts::default();
    for subdivision in [[1, 1, 1], [4, 1, 1], [2, 2, 2], [6, 3, 3]] {
        for (case, expected) in runner.with_neighbors() {
            let none = |_: &[[f32; 4]]| Filters::default();
            let mut find = |means| lists(walks, case, subdivision, means, &none, &mut taken);
            let found = [ListMethod::Walks, ListMethod::Masks, ListMethod::Rows]
                .map(|means| (means, find(means)));
            assert_eq!(
                found[0].1, found[2].1,
                "{}: lists in the same order",
                case.name
            );
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
    assert!(taken.fitted > 0, "{taken:?}");
}

/// What belongs to an entry, made of its index and its image.
fn belongings(index: u32, image: [i32; 3]) -> (u32, [f32; 3], f32) {
    let number = index as f32 + 100.0 * image[0] as f32;
    (7 * index, [number, image[1] as f32, -number], 0.5 * number)
}

#[test]
fn lists_ascend_with_all_that_belongs_to_their_pairs() {
    let Some(walks) = walks() else { return };
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
