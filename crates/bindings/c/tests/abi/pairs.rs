//! Pairs with their geometry, of engines and of systems, and what is refused.

use crate::misuse::{engine, last_error, options};
use nearfield::{
    prelude::*,
    systems::{Quantities, SystemPairs, SystemSearch, Systems},
};
use nearfield_c::*;
use nearfield_testkit::{
    cloud::{Cloud, drift},
    systems::Batch,
};
use std::{ptr, slice};

const ALL: u32 = 31;

/// A place for pairs.
fn place() -> *mut NfPairs {
    let mut pairs = ptr::null_mut();
    // SAFETY: a place for a handle.
    assert_eq!(unsafe { nf_pairs_new(&mut pairs) }, NfStatus::Ok);
    pairs
}

fn arrays(pairs: *mut NfPairs) -> NfPairArrays {
    // SAFETY: all zeros are null pointers and no pairs.
    let mut found: NfPairArrays = unsafe { std::mem::zeroed() };
    // SAFETY: a place for the structure.
    assert_eq!(unsafe { nf_pairs_arrays(pairs, &mut found) }, NfStatus::Ok);
    found
}

fn read<T: Copy>(first: *const T, len: usize) -> Vec<T> {
    // SAFETY: an array of the library with so many elements, since the last search.
    unsafe { slice::from_raw_parts(first, len) }.to_vec()
}

fn input(batch: &Batch<f64>, periodic: &[[u8; 3]]) -> NfSystemsInput {
    NfSystemsInput {
        systems: batch.offsets.len() - 1,
        offsets: batch.offsets.as_ptr(),
        radii: batch.radii.as_ptr(),
        radius_count: batch.radii.len(),
        cells: batch.cells.as_ptr().cast(),
        cell_count: batch.cells.len(),
        periodic: periodic.as_ptr().cast(),
        periodic_count: periodic.len(),
    }
}

fn new_search() -> *mut NfSystems {
    let mut search = ptr::null_mut();
    let options = systems_options();
    // SAFETY: the options are initialised, and a place for a handle.
    let made = unsafe { nf_systems_new(&options, &mut search) };
    assert_eq!(made, NfStatus::Ok);
    search
}

fn systems_options() -> NfSystemsOptions {
    // SAFETY: numbers and a pointer, for which zero is a value; the library fills them.
    let mut options: NfSystemsOptions = unsafe { std::mem::zeroed() };
    // SAFETY: a place for the structure.
    unsafe {
        let size = size_of::<NfSystemsOptions>();
        assert_eq!(nf_systems_options_init(&mut options, size), NfStatus::Ok);
        options.order = NfListOrder::Ascending as u32;
    }
    options
}

#[test]
fn the_pairs_of_systems_are_those_of_the_library() {
    let batch = Batch::<f64>::drawn(3, 12, 30);
    let flags = |flags: &[bool; 3]| flags.map(u8::from);
    let periodic: Vec<[u8; 3]> = batch.periodic.iter().map(flags).collect();
    let mut expected = SystemPairs::<f64, u32>::default();
    let search = SystemSearch::builder().list_order(ListOrder::Ascending);
    let systems = Systems::new(&batch.positions, &batch.offsets, &batch.radii);
    let systems = systems.in_cells(&batch.cells, &batch.periodic);
    let mut search = search.build().unwrap();
    search
        .neighbors(&systems, Quantities::ALL, &mut expected)
        .unwrap();
    let (search, pairs, input) = (new_search(), place(), input(&batch, &periodic));
    let points = batch.positions.len();
    let find = |input: &NfSystemsInput, quantities| {
        let at = batch.positions.as_ptr().cast();
        // SAFETY: all arrays are as long as is said.
        unsafe { nf_systems_neighbors_f64(search, at, points, input, quantities, pairs) }
    };
    assert_eq!(find(&input, ALL), NfStatus::Ok);
    let found = arrays(pairs);
    assert_eq!((found.points, found.pairs), (points, expected.len()));
    assert!(found.pairs > 100 && found.precision == NfPrecision::F64 as u32);
    assert_eq!(read(found.offsets, points + 1), expected.offsets());
    assert_eq!(read(found.targets, found.pairs), expected.targets());
    assert_eq!(read(found.sources, found.pairs), expected.sources());
    let images = read(found.images.cast::<[i32; 3]>(), found.pairs);
    assert_eq!(images, expected.images());
    let d = read(found.displacements.cast::<[f64; 3]>(), found.pairs);
    assert_eq!(d, expected.displacements());
    let d = read(found.distances.cast::<f64>(), found.pairs);
    assert_eq!(d, expected.distances());
    // What is not asked for is null.
    assert_eq!(find(&input, NfQuantity::Sources as u32), NfStatus::Ok);
    let found = arrays(pairs);
    assert!(found.targets.is_null() && found.distances.is_null() && !found.sources.is_null());
    // What cannot be searched is named, and leaves no pairs of the search before.
    let is_left_empty = || {
        let empty = arrays(pairs).pairs == 0;
        empty && find(&input, ALL) == NfStatus::Ok && arrays(pairs).pairs == expected.len()
    };
    let short = NfSystemsInput {
        radius_count: 2,
        ..input
    };
    assert_eq!(find(&short, ALL), NfStatus::BadArgument);
    assert!(last_error().contains("radii"), "{}", last_error());
    assert!(is_left_empty());
    let wrong = vec![[2u8; 3]; periodic.len()];
    let wrong = NfSystemsInput {
        periodic: wrong.as_ptr().cast(),
        ..input
    };
    assert_eq!(find(&wrong, ALL), NfStatus::BadArgument);
    assert!(last_error().contains("system 0"), "{}", last_error());
    assert!(is_left_empty());
    assert_eq!(find(&input, 32), NfStatus::BadArgument);
    assert!(is_left_empty());
    let null = NfSystemsInput {
        offsets: ptr::null(),
        ..input
    };
    assert_eq!(find(&null, ALL), NfStatus::NullPointer);
    assert!(is_left_empty());
    assert_eq!(nf_systems_free(search), NfStatus::Ok);
    assert_eq!(find(&input, ALL), NfStatus::BadHandle);
    assert_eq!(nf_pairs_free(pairs), NfStatus::Ok);
}

#[test]
fn the_geometry_of_two_sets_is_that_of_the_engine() {
    for precision in [NfPrecision::F32, NfPrecision::F64] {
        let mut options = options(1.0);
        options.precision = precision as u32;
        options.order = NfListOrder::Ascending as u32;
        options.periodic = [1, 0, 0];
        options.box_vectors[0][0] = 4.0;
        let (engine, pairs, mut set) = (engine(&options), place(), 0);
        let at = [[0.25f32, 0.0, 0.0], [3.75, 0.0, 0.0], [0.5, 0.5, 0.0]];
        // SAFETY: the points are there.
        let added = unsafe { nf_add_points_f32(engine, at.as_ptr().cast(), 3, 12, &mut set) };
        assert_eq!(added, NfStatus::Ok);
        assert_eq!(nf_pair_geometry(engine, 0, 0, ALL, pairs), NfStatus::Ok);
        let found = arrays(pairs);
        assert_eq!((found.points, found.pairs), (3, 6));
        assert_eq!(read(found.targets, 6), [0, 0, 1, 1, 2, 2]);
        assert_eq!(read(found.sources, 6), [1, 2, 0, 2, 0, 1]);
        assert_eq!(read(found.images, 3), [-1, 0, 0]);
        assert_eq!(found.precision, precision as u32);
        let (d, distance) = match precision {
            NfPrecision::F32 => (
                (read(found.displacements.cast::<f32>(), 3).into_iter())
                    .map(f64::from)
                    .collect(),
                f64::from(read(found.distances.cast::<f32>(), 1)[0]),
            ),
            NfPrecision::F64 => (
                read(found.displacements.cast::<f64>(), 3),
                read(found.distances.cast::<f64>(), 1)[0],
            ),
        };
        assert_eq!((d, distance), (vec![-0.5, 0.0, 0.0], 0.5));
        assert_eq!(
            nf_pair_geometry(engine, 0, 7, ALL, pairs),
            NfStatus::UnknownPointSet
        );
        let none = ptr::null_mut();
        assert_eq!(
            nf_pair_geometry(engine, 0, 0, ALL, none),
            NfStatus::NullPointer
        );
        assert_eq!(nf_pairs_free(pairs), NfStatus::Ok);
        assert_eq!(nf_engine_free(engine), NfStatus::Ok);
    }
}

#[test]
fn lists_with_a_skin_have_the_pairs_of_an_engine_at_the_points_of_now() {
    let mut points: Vec<[f32; 3]> = Cloud::Lattice.points(2_000, 3);
    let mut options = options(2.0);
    options.order = NfListOrder::Ascending as u32;
    options.periodic = [1, 0, 1];
    options.box_vectors = [[20.0, 0.0, 0.0], [0.0; 3], [1.0, 0.0, 20.0]];
    let engine = engine(&options);
    let (mut lists, mut set, mut rebuilt) = (ptr::null_mut(), 9, 9);
    let pairs = [place(), place()];
    let at = |points: &[[f32; 3]]| points.as_ptr().cast::<f32>();
    // SAFETY: all arrays and places are there.
    unsafe {
        let refused = nf_verlet_new(&options, -1.0, &mut lists);
        assert_eq!(refused, NfStatus::BadArgument);
        assert_eq!(nf_verlet_new(&options, 0.5, &mut lists), NfStatus::Ok);
        let (first, n) = (at(&points), points.len());
        let added = nf_verlet_add_points_f32(lists, first, n, 12, &mut set);
        assert_eq!((added, set), (NfStatus::Ok, 0));
        let added = nf_add_points_f32(engine, first, n, 12, &mut set);
        assert_eq!((added, set), (NfStatus::Ok, 0));
        let early = nf_verlet_pair_geometry(lists, 0, 0, ALL, pairs[0]);
        assert_eq!(early, NfStatus::OutOfDate);
        for step in 0..6 {
            drift(&mut points, 0.05, step);
            let first = at(&points);
            assert_eq!(nf_verlet_update_f32(lists, 0, first, n, 12), NfStatus::Ok);
            assert_eq!(nf_update_f32(engine, 0, first, n, 12), NfStatus::Ok);
            assert_eq!(nf_verlet_refresh(lists, &mut rebuilt), NfStatus::Ok);
            let found = nf_verlet_pair_geometry(lists, 0, 0, ALL, pairs[0]);
            let expected = nf_pair_geometry(engine, 0, 0, ALL, pairs[1]);
            assert_eq!([found, expected], [NfStatus::Ok; 2]);
            let [found, expected] = pairs.map(|pairs| {
                let found = arrays(pairs);
                (
                    read(found.sources, found.pairs),
                    read(found.images, 3 * found.pairs),
                    read(found.displacements.cast::<u32>(), 3 * found.pairs),
                )
            });
            assert!(found == expected && found.0.len() > 1_000, "step {step}");
        }
        let mut builds = 0;
        assert_eq!(nf_verlet_builds(lists, &mut builds), NfStatus::Ok);
        assert!((1..6).contains(&builds), "{builds}");
        assert_eq!(nf_verlet_remove_set(lists, 0), NfStatus::Ok);
    }
    assert_eq!(nf_verlet_free(lists), NfStatus::Ok);
    assert_eq!(nf_verlet_free(lists), NfStatus::BadHandle);
    nf_engine_free(engine);
    for pairs in pairs {
        assert_eq!(nf_pairs_free(pairs), NfStatus::Ok);
    }
}

#[test]
fn a_search_of_systems_with_a_skin_keeps_lists_and_finds_the_pairs_of_a_fresh_one() {
    let points = Cloud::Lattice.points(1_000, 5);
    let mut points: Vec<[f64; 3]> = points.iter().map(|p| p.map(f64::from)).collect();
    let (offsets, radius) = ([0i64, 400, 1_000], 2.0);
    let input = NfSystemsInput {
        systems: 2,
        offsets: offsets.as_ptr(),
        radii: &radius,
        radius_count: 1,
        cells: ptr::null(),
        cell_count: 0,
        periodic: ptr::null(),
        periodic_count: 0,
    };
    let mut options = systems_options();
    let (fresh, mut kept, mut builds) = (new_search(), ptr::null_mut(), 9);
    // SAFETY: the options are initialised, and all places are there.
    unsafe {
        options.skin = -1.0;
        let refused = nf_systems_new(&options, &mut kept);
        assert_eq!((refused, kept), (NfStatus::BadArgument, ptr::null_mut()));
        assert!(last_error().contains("skin"), "{}", last_error());
        options.skin = 0.5;
        options.device = c"gpu".as_ptr();
        assert_eq!(nf_systems_new(&options, &mut kept), NfStatus::BadArgument);
        options.device = ptr::null();
        assert_eq!(nf_systems_new(&options, &mut kept), NfStatus::Ok);
        assert_eq!(nf_systems_builds(fresh, &mut builds), NfStatus::BadArgument);
        assert_eq!(builds, 9, "left alone");
    }
    let pairs = [place(), place()];
    for step in 0..6 {
        for (k, point) in points.iter_mut().enumerate() {
            point[k % 3] += 0.04;
        }
        for double in [true, false] {
            let single: Vec<[f32; 3]> = points.iter().map(|p| p.map(|x| x as f32)).collect();
            let found = [(kept, pairs[0]), (fresh, pairs[1])].map(|(search, pairs)| {
                let n = points.len();
                // SAFETY: all arrays are there.
                let status = unsafe {
                    if double {
                        let first = points.as_ptr().cast();
                        nf_systems_neighbors_f64(search, first, n, &input, ALL, pairs)
                    } else {
                        let first = single.as_ptr().cast();
                        nf_systems_neighbors_f32(search, first, n, &input, ALL, pairs)
                    }
                };
                assert_eq!(status, NfStatus::Ok, "{}", last_error());
                let found = arrays(pairs);
                let words = if double { 2 } else { 1 };
                (
                    read(found.sources, found.pairs),
                    read(found.distances.cast::<u32>(), words * found.pairs),
                )
            });
            assert!(
                found[0] == found[1] && found[0].0.len() > 1_000,
                "step {step}"
            );
        }
    }
    // SAFETY: a place for the number.
    let counted = unsafe { nf_systems_builds(kept, &mut builds) };
    assert_eq!(counted, NfStatus::Ok);
    assert!((2..12).contains(&builds), "{builds} in two precisions");
    for search in [fresh, kept] {
        assert_eq!(nf_systems_free(search), NfStatus::Ok);
    }
    for pairs in pairs {
        assert_eq!(nf_pairs_free(pairs), NfStatus::Ok);
    }
}

#[test]
fn rows_of_a_fixed_length_have_the_first_neighbours_and_say_how_many_there_are() {
    let at = [
        [0.0f32, 0.0, 0.0],
        [1.0, 0.0, 0.0],
        [2.0, 0.0, 0.0],
        [9.0, 0.0, 0.0],
    ];
    let mut options = options(2.0);
    options.order = NfListOrder::Ascending as u32;
    let (engine, pairs, mut set) = (engine(&options), place(), 9);
    let (mut rows, mut counts, mut largest) = ([7u32; 4], [7u32; 4], 7);
    // SAFETY: the points are there.
    let added = unsafe { nf_add_points_f32(engine, at.as_ptr().cast(), 4, 12, &mut set) };
    assert_eq!(added, NfStatus::Ok);
    let mut padded = |width, places: usize, points, rows: &mut [u32; 4]| {
        let (to, counts) = (rows.as_mut_ptr(), counts.as_mut_ptr());
        // SAFETY: there is room for so many numbers.
        unsafe { nf_pairs_padded(pairs, width, 4, to, places, counts, points, &mut largest) }
    };
    let ends = NfQuantity::Targets as u32;
    assert_eq!(nf_pair_geometry(engine, 0, 0, ends, pairs), NfStatus::Ok);
    assert_eq!(padded(1, 4, 4, &mut rows), NfStatus::BadArgument);
    assert!(last_error().contains("NF_QUANTITY_SOURCES"));
    let ends = NfQuantity::Sources as u32;
    assert_eq!(nf_pair_geometry(engine, 0, 0, ends, pairs), NfStatus::Ok);
    for (width, places, points) in [(1, 3, 4), (1, 4, 3), (usize::MAX, 4, 4)] {
        let status = padded(width, places, points, &mut rows);
        assert_eq!(status, NfStatus::BadArgument, "{width} {places} {points}");
    }
    assert_eq!(rows, [7; 4], "left alone");
    assert_eq!(padded(1, 4, 4, &mut rows), NfStatus::Ok);
    assert_eq!((rows, counts, largest), ([1, 0, 0, 4], [1, 1, 1, 0], 2));
    assert_eq!(nf_pairs_free(pairs), NfStatus::Ok);
    assert_eq!(nf_engine_free(engine), NfStatus::Ok);
}

#[test]
fn strict_searches_of_systems_leave_out_pairs_exactly_as_far_apart_as_the_radius() {
    let points: Vec<[f64; 3]> = (0..64)
        .map(|n| [n % 4, n / 4 % 4, n / 16].map(f64::from))
        .collect();
    let (offsets, radius) = ([0i64, 30, 64], 2.0);
    let input = NfSystemsInput {
        systems: 2,
        offsets: offsets.as_ptr(),
        radii: &radius,
        radius_count: 1,
        cells: ptr::null(),
        cell_count: 0,
        periodic: ptr::null(),
        periodic_count: 0,
    };
    let pairs = place();
    let mut counts = Vec::new();
    for (skin, strict) in [(0.0, 0), (0.0, 1), (0.4, 1)] {
        let (mut options, mut search) = (systems_options(), ptr::null_mut());
        (options.skin, options.strict) = (skin, strict);
        // SAFETY: the options are initialised, and all places and arrays are there.
        unsafe {
            assert_eq!(nf_systems_new(&options, &mut search), NfStatus::Ok);
            let (at, n) = (points.as_ptr().cast(), points.len());
            let found = nf_systems_neighbors_f64(search, at, n, &input, ALL, pairs);
            assert_eq!(found, NfStatus::Ok, "{}", last_error());
        }
        let found = arrays(pairs);
        let distances = read(found.distances.cast::<f64>(), found.pairs);
        let at_radius = distances.iter().filter(|&&distance| distance == 2.0);
        counts.push((distances.len(), at_radius.count()));
        assert_eq!(nf_systems_free(search), NfStatus::Ok);
    }
    assert!(counts[0].1 > 50);
    assert_eq!(counts[1], (counts[0].0 - counts[0].1, 0));
    assert_eq!(counts[2], counts[1]);
    let (mut options, mut search) = (systems_options(), ptr::null_mut());
    options.strict = 2;
    // SAFETY: the options are initialised, and a place for a handle.
    let refused = unsafe { nf_systems_new(&options, &mut search) };
    assert_eq!((refused, search), (NfStatus::BadArgument, ptr::null_mut()));
    assert!(last_error().contains("strict"), "{}", last_error());
    assert_eq!(nf_pairs_free(pairs), NfStatus::Ok);
}
