//! Cut-offs of types, exclusions, chosen targets and the k nearest, as C asks for them.

use crate::{
    misuse::{engine, last_error, no_lists, options},
    results::read,
};
use nearfield_c::*;
use std::ptr;

/// Five points in a row, one apart.
fn row(settings: &NfOptions) -> *mut NfEngine {
    let engine = engine(settings);
    let points: Vec<[f32; 3]> = (0..5).map(|i| [i as f32, 0.0, 0.0]).collect();
    let (data, mut set) = (points.as_ptr().cast(), 0);
    // SAFETY: the number of points is that of the array.
    let status = unsafe { nf_add_points_f32(engine, data, points.len(), 12, &mut set) };
    assert_eq!((status, set), (NfStatus::Ok, 0));
    engine
}

/// The lists of the set in itself, found now.
fn found(engine: *mut NfEngine) -> Vec<Vec<u32>> {
    assert_eq!(nf_find_neighbors(engine), NfStatus::Ok, "{}", last_error());
    let mut lists = no_lists();
    // SAFETY: the place is there, and the engine is not changed meanwhile.
    unsafe {
        assert_eq!(nf_neighbors(engine, 0, 0, &mut lists), NfStatus::Ok);
        read(&lists)
    }
}

/// Asserts that a call was refused, with a text that says so.
fn refused(status: NfStatus, words: &str) {
    assert_eq!(status, NfStatus::BadArgument, "{words}");
    assert!(last_error().contains(words), "{}", last_error());
}

#[test]
fn types_have_cut_offs_of_their_own() {
    let cutoffs = [2.0, 1.0, 1.0, 0.0];
    let mut settings = options(2.0);
    (settings.types, settings.cutoffs) = (2, cutoffs.as_ptr());
    let engine = row(&settings);
    refused(nf_find_neighbors(engine), "has no types for its 5 points");
    let set_types =
        // SAFETY: the number of types is that of the slice.
        |types: &[u32]| unsafe { nf_set_types(engine, 0, types.as_ptr(), types.len()) };
    refused(set_types(&[0; 4]), "types has 4 elements, not 5");
    refused(set_types(&[0, 0, 2, 0, 0]), "point 2 has the type 2");
    // SAFETY: null is refused.
    let null = unsafe { nf_set_types(engine, 0, ptr::null(), 5) };
    assert_eq!(null, NfStatus::NullPointer);
    assert_eq!(set_types(&[0, 1, 1, 0, 0]), NfStatus::Ok);
    let wanted: [&[u32]; 5] = [&[1], &[0], &[3], &[2, 4], &[3]];
    assert_eq!(found(engine), wanted);
    assert_eq!(nf_engine_free(engine), NfStatus::Ok);
    for (types, cutoffs, words) in [
        (2, [2.0, 1.0, 0.5, 0.0], "must be symmetric"),
        (1, [3.0, 0.0, 0.0, 0.0], "cut-off of types 0 and 0 is 3"),
        (5000, [0.0; 4], "types is 5000"),
    ] {
        let mut made = ptr::null_mut();
        (settings.types, settings.cutoffs) = (types, cutoffs.as_ptr());
        // SAFETY: there are as many cut-offs as are read.
        refused(unsafe { nf_engine_new(&settings, &mut made) }, words);
    }
    settings.cutoffs = ptr::null();
    settings.types = 1;
    let mut made = ptr::null_mut();
    // SAFETY: null is refused.
    let null = unsafe { nf_engine_new(&settings, &mut made) };
    assert_eq!(null, NfStatus::NullPointer);
}

#[test]
fn excluded_pairs_are_left_out_until_they_are_cleared() {
    let engine = row(&options(1.0));
    // SAFETY: all arrays are as long as is said, or refused before they are read.
    unsafe {
        let exclude =
            |pairs: &[[u32; 2]]| nf_exclude_pairs(engine, 0, pairs.as_ptr().cast(), pairs.len());
        assert_eq!(exclude(&[[1, 0], [2, 3]]), NfStatus::Ok);
        let without: [&[u32]; 5] = [&[], &[2], &[1], &[4], &[3]];
        assert_eq!(found(engine), without);
        refused(exclude(&[[4, 5]]), "point 4 excludes point 5");
        let lists = |offsets: &[u64], indices: &[u32]| {
            let (first, count) = (indices.as_ptr(), indices.len());
            nf_set_exclusions(engine, 0, offsets.as_ptr(), offsets.len() - 1, first, count)
        };
        refused(
            lists(&[0, 1, 1, 1, 1, 1], &[1]),
            "point 0 excludes point 1, which",
        );
        refused(lists(&[0, 0], &[]), "exclusions has 1 elements, not 5");
        assert_eq!(found(engine), without, "nothing has changed");
        assert_eq!(lists(&[0, 1, 2, 2, 2, 2], &[1, 0]), NfStatus::Ok);
        let without: [&[u32]; 5] = [&[], &[2], &[1, 3], &[2, 4], &[3]];
        assert_eq!(found(engine), without);
        let molecules = [7u32, 8, 8, 8, 9];
        assert_eq!(
            nf_set_molecules(engine, 0, molecules.as_ptr(), 5),
            NfStatus::Ok
        );
        let without: [&[u32]; 5] = [&[1], &[0], &[], &[4], &[3]];
        assert_eq!(found(engine), without);
        assert_eq!(nf_clear_exclusions(engine, 0), NfStatus::Ok);
        assert_eq!(found(engine)[2], [1, 3]);
        assert_eq!(nf_clear_exclusions(engine, 3), NfStatus::UnknownPointSet);
    }
    assert_eq!(nf_engine_free(engine), NfStatus::Ok);
}

#[test]
fn chosen_targets_alone_have_lists() {
    let engine = row(&options(1.0));
    // SAFETY: all arrays are as long as is said.
    unsafe {
        let chosen = [3u32, 0];
        assert_eq!(nf_set_targets(engine, 0, chosen.as_ptr(), 2), NfStatus::Ok);
        let lists: [&[u32]; 5] = [&[1], &[], &[], &[2, 4], &[]];
        assert_eq!(found(engine), lists);
        refused(nf_set_targets(engine, 0, [5u32].as_ptr(), 1), "index 5");
        let mask = [0u8, 1, 0, 0, 7];
        assert_eq!(
            nf_set_target_mask(engine, 0, mask.as_ptr(), 5),
            NfStatus::Ok
        );
        let lists: [&[u32]; 5] = [&[], &[0, 2], &[], &[], &[3]];
        assert_eq!(found(engine), lists);
        refused(
            nf_set_target_mask(engine, 0, mask.as_ptr(), 4),
            "the mask has 4",
        );
        assert_eq!(nf_set_targets(engine, 0, ptr::null(), 0), NfStatus::Ok);
        assert_eq!(found(engine), [[0u32; 0]; 5]);
        assert_eq!(nf_clear_targets(engine, 0), NfStatus::Ok);
        assert_eq!(found(engine)[4], [3]);
    }
    assert_eq!(nf_engine_free(engine), NfStatus::Ok);
}

#[test]
fn the_nearest_are_those_of_a_query_too() {
    let mut settings = options(3.0);
    settings.nearest = 2;
    let engine = row(&settings);
    let lists: [&[u32]; 5] = [&[1, 2], &[0, 2], &[1, 3], &[2, 4], &[2, 3]];
    assert_eq!(found(engine), lists);
    let (at, mut query, mut lists) = ([3.9f32, 0.0, 0.0], ptr::null_mut(), no_lists());
    // SAFETY: all places are there.
    unsafe {
        let status = nf_query_f32(engine, at.as_ptr(), 1, 12, 0, &mut query);
        assert_eq!(status, NfStatus::Ok);
        assert_eq!(nf_query_lists(query, &mut lists), NfStatus::Ok);
        assert_eq!(read(&lists), [[3, 4]]);
        assert_eq!(nf_query_free(query), NfStatus::Ok);
        assert_eq!(nf_engine_free(engine), NfStatus::Ok);
        settings.lists = NfListKind::Half as u32;
        let mut made = ptr::null_mut();
        refused(nf_engine_new(&settings, &mut made), "half lists");
    }
}
