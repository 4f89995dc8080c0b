//! The C interface for data on a GPU: what callers do wrong is refused by name, and what they do
//! right goes through the calls of the driver. The null GPU finds no pairs.

use crate::common::{on_device as at, on_null_gpu};
use nearfield_c::*;
use std::{ffi::CStr, mem::MaybeUninit, ptr};

/// The text of the last failure.
fn said() -> String {
    // SAFETY: never null, and ends with a NUL.
    let text = unsafe { CStr::from_ptr(nf_last_error()) };
    text.to_string_lossy().into_owned()
}

/// Asserts the status of a call and what it says.
#[track_caller]
fn refused(status: NfStatus, expected: NfStatus, text: &str) {
    assert_eq!(status, expected, "{}", said());
    assert!(said().contains(text), "{}", said());
}

#[track_caller]
fn done(status: NfStatus) {
    assert_eq!(status, NfStatus::Ok, "{}", said());
}

fn options() -> NfDeviceOptions {
    let mut options = MaybeUninit::uninit();
    // SAFETY: there is room for the options, which are initialised when it succeeds.
    unsafe {
        done(nf_device_options_init(
            options.as_mut_ptr(),
            size_of::<NfDeviceOptions>(),
        ));
        let mut options: NfDeviceOptions = options.assume_init();
        options.radius = 0.1;
        options
    }
}

fn engine(options: &NfDeviceOptions) -> *mut NfDeviceEngine {
    let mut engine = ptr::null_mut();
    // SAFETY: the options are initialised and the place is there.
    done(unsafe { nf_device_engine_new(options, &mut engine) });
    engine
}

fn integers<T: Copy>(array: &[T], integer: NfInteger) -> NfDeviceIntegers {
    NfDeviceIntegers {
        values: at(array),
        len: array.len(),
        integer: integer as u32,
    }
}

const NO_LISTS: NfDeviceLists = NfDeviceLists {
    start: 7,
    count: 7,
    indices: 7,
    points: 7,
    entries: 7,
};

const NO_PAIRS: NfDevicePairs = NfDevicePairs {
    lists: NO_LISTS,
    targets: 7,
    images: 7,
    shifts: 7,
    displacements: 7,
    squares: 7,
    distances: 7,
    precision: 7,
};

const NO_FIELD: NfDeviceField = NfDeviceField {
    values: 0,
    len: 0,
    stride: 0,
};

/// An engine with a set of so many points in the middle of a unit box.
fn with_points(options: &NfDeviceOptions, points: usize) -> *mut NfDeviceEngine {
    let engine = engine(options);
    let (single, double) = (vec![0.5f32; 3 * points], vec![0.5f64; 3 * points]);
    let at = match options.precision {
        0 => at(&single),
        _ => at(&double),
    };
    let mut set = 7;
    // SAFETY: arrays of the GPU are there.
    done(unsafe { nf_device_engine_add_points(engine, at, points, &mut set) });
    assert_eq!(set, 0);
    engine
}

fn finish(engine: *mut NfDeviceEngine) {
    for _ in 0..5 {
        let mut valid = 0;
        // SAFETY: the place is there.
        done(unsafe { nf_device_engine_finish(engine, &mut valid) });
        if valid == 1 {
            return;
        }
    }
    panic!("results stay provisional");
}

#[test]
fn options_of_an_engine_on_a_gpu_are_refused_by_name() {
    on_null_gpu("c_interface::options_refused");
}

#[test]
#[ignore = "runs in a child"]
fn options_refused() {
    let new = |change: &dyn Fn(&mut NfDeviceOptions)| {
        let mut options = options();
        change(&mut options);
        let mut engine = ptr::dangling_mut();
        // SAFETY: the options are initialised and the place is there.
        let status = unsafe { nf_device_engine_new(&options, &mut engine) };
        assert_eq!(engine, ptr::dangling_mut(), "left alone");
        status
    };
    let cutoffs = [0.1, 0.2, 0.2, 0.1];
    let table = |options: &mut NfDeviceOptions| {
        options.types = 2;
        options.cutoffs = cutoffs.as_ptr();
    };
    use NfStatus::{BadArgument, NullPointer, Setup};
    refused(new(&|o| o.struct_size = 8), BadArgument, "bytes");
    refused(new(&|o| o.precision = 2), BadArgument, "precision is 2");
    refused(new(&|o| o.lists = 2), BadArgument, "lists is 2");
    refused(new(&|o| o.order = 2), BadArgument, "order is 2");
    refused(new(&|o| o.strict = 2), BadArgument, "strict is 2");
    refused(new(&|o| o.radii = 4), BadArgument, "radii is 4");
    refused(new(&|o| o.subdivision = 9), BadArgument, "subdivision is 9");
    refused(new(&|o| o.use_stream = 2), BadArgument, "use_stream is 2");
    refused(new(&|o| o.use_within = 2), BadArgument, "use_within is 2");
    refused(new(&|o| o.periodic[1] = 2), BadArgument, "periodic is 2");
    refused(new(&|o| o.types = 1025), BadArgument, "types is 1025");
    refused(new(&|o| o.types = 2), NullPointer, "cutoffs");
    refused(new(&table), BadArgument, "cut-off");
    refused(new(&|o| o.radius = -1.0), Setup, "radius");
    let corner = |o: &mut NfDeviceOptions| {
        o.use_within = 1;
        o.within_high[2] = f32::INFINITY;
    };
    refused(new(&corner), BadArgument, "within");
    let strategy = |o: &mut NfDeviceOptions| o.strategy = c"flatter".as_ptr();
    refused(new(&strategy), BadArgument, "flatter");
    let half = |o: &mut NfDeviceOptions| (o.lists, o.nearest) = (1, 4);
    refused(new(&half), BadArgument, "half lists");
    let missing = |o: &mut NfDeviceOptions| o.device = 3;
    refused(new(&missing), NfStatus::Device, "3");
}

#[test]
fn wrong_handles_numbers_and_arrays_of_a_gpu_are_refused() {
    on_null_gpu("c_interface::misuse");
}

#[test]
#[ignore = "runs in a child"]
fn misuse() {
    use NfStatus::*;
    let engine = with_points(&options(), 8);
    let (mut set, mut lists, mut pairs) = (7, NO_LISTS, NO_PAIRS);
    let points = [0u32, 1];
    let numbers = integers(&points, NfInteger::U32);
    // SAFETY: arrays of the GPU are there; places are there or null.
    unsafe {
        for (handle, expected) in [(ptr::null_mut(), NullPointer), (engine.cast(), BadHandle)] {
            let verlet: *mut NfDeviceVerlet = handle;
            assert_eq!(nf_device_verlet_remove_set(verlet, 0), expected);
            assert_eq!(nf_device_systems_finish(handle.cast(), &mut set), expected);
            let mut chunk = MaybeUninit::uninit();
            let status = nf_device_chunks_next(engine, handle.cast(), chunk.as_mut_ptr());
            assert_eq!(status, expected);
        }
        let radii = [0.1f32; 8];
        let status = nf_device_engine_set_radii(engine, 0, radii.as_ptr(), 7);
        refused(status, BadArgument, "radii has 7 elements, not 8");
        let status = nf_device_engine_set_radii(engine, 0, radii.as_ptr(), 8);
        refused(status, BadArgument, "radii");
        let status = nf_device_engine_set_radii_from_device(engine, 0, at(&radii), 8);
        refused(status, BadArgument, "radii");
        let status = nf_device_engine_set_types(engine, 0, ptr::null(), 8);
        refused(status, NullPointer, "types");
        let status = nf_device_engine_set_types_from_device(engine, 0, numbers);
        refused(status, BadArgument, "types");
        let other = NfDeviceIntegers {
            integer: 4,
            ..numbers
        };
        let status = nf_device_engine_set_molecules_from_device(engine, 0, other);
        refused(status, BadArgument, "integer is 4");
        let unaligned = NfDeviceIntegers {
            values: numbers.values + 1,
            ..numbers
        };
        let status = nf_device_engine_set_molecules_from_device(engine, 0, unaligned);
        refused(status, BadArgument, "aligned");
        let status = nf_device_engine_set_molecules_from_device(engine, 0, numbers);
        refused(status, Gpu, "2");
        let status = nf_device_engine_set_target_mask(engine, 0, ptr::null(), 8);
        refused(status, NullPointer, "the mask");
        let status = nf_device_engine_set_target_mask_from_device(engine, 0, at(&radii), 9);
        refused(status, Gpu, "9");
        let status = nf_device_engine_exclude_pairs(engine, 0, [0, 8].as_ptr(), 1);
        refused(status, BadArgument, "8");
        let status = nf_device_engine_set_targets(engine, 0, [8].as_ptr(), 1);
        refused(status, BadArgument, "8");
        assert_eq!(nf_device_engine_clear_targets(engine, 1), UnknownPointSet);
        let status = nf_device_engine_neighbors(engine, 0, 0, &mut lists);
        refused(status, NoLists, "");
        assert_eq!(lists.points, 7, "left alone");
        let status = nf_device_engine_geometry(engine, 0, 0, &mut pairs);
        refused(status, NoLists, "");
        let status = nf_device_engine_pair_geometry(engine, 0, 0, NfQuantity::Sources as u32);
        refused(status, BadArgument, "nf_device_engine_find_neighbors");
        let status = nf_device_engine_pair_geometry(engine, 0, 0, 128);
        refused(status, BadArgument, "quantities is 128");
        let status = nf_device_engine_neighbors_of(engine, 0, 0, &mut lists);
        refused(status, NoLists, "");
        let status = nf_device_engine_find_neighbors_of(engine, 0, 0, other);
        refused(status, BadArgument, "integer is 4");
        let status = nf_device_engine_query(engine, at(&radii), 2, 0, ptr::null_mut());
        refused(status, NullPointer, "set's number");
        let status = nf_device_engine_query(engine, 0, 2, 0, &mut set);
        refused(status, NullPointer, "positions");
        let status = nf_device_engine_query(engine, at(&radii), usize::MAX, 0, &mut set);
        refused(status, BadArgument, "more than memory holds");
        let (radius, at) = (radii.as_ptr(), at(&radii));
        let status = nf_device_engine_query_radii(engine, at, 2, radius, 1, 0, &mut set);
        refused(status, BadArgument, "radii has 1 elements, not 2");
        let status = nf_device_engine_query_radii(engine, at, 2, radius, 2, 0, &mut set);
        refused(status, BadArgument, "radii");
        assert_eq!(set, 7, "left alone");
        let status = nf_device_chunks_new(engine, 0, 0, 0, 0, ptr::null_mut(), ptr::null_mut());
        refused(status, NullPointer, "chunks");
        let mass = NfDeviceField {
            values: at,
            len: 8,
            stride: 1,
        };
        let density = [0.0f32; 8];
        let results = density.as_ptr().addr() as u64;
        let status = nf_device_engine_sph_density(engine, 0, 0, 0.1, 3, mass, results, 8, 2, 0);
        refused(status, BadArgument, "over_lists is 2");
        let status = nf_device_engine_sph_density(engine, 0, 0, 0.1, 3, mass, results, 8, 1, 0);
        refused(status, NoLists, "");
    }
    done(nf_device_engine_free(engine));
    assert_eq!(
        nf_device_engine_find_neighbors(engine, 0, 0),
        NfStatus::BadHandle
    );
}

#[test]
fn every_call_of_an_engine_on_a_gpu_arrives() {
    on_null_gpu("c_interface::calls");
}

#[test]
#[ignore = "runs in a child"]
fn calls() {
    let every = NfQuantity::Targets as u32
        + NfQuantity::Images as u32
        + NfQuantity::Shifts as u32
        + NfQuantity::Displacements as u32
        + NfQuantity::Squares as u32
        + NfQuantity::Distances as u32;
    for precision in [NfPrecision::F32, NfPrecision::F64] {
        let mut options = options();
        options.precision = precision as u32;
        options.order = NfListOrder::Ascending as u32;
        options.strict = 1;
        options.memory_limit = 1 << 30;
        let cutoffs = [0.1, 0.05, 0.05, 0.0];
        (options.types, options.cutoffs) = (2, cutoffs.as_ptr());
        let engine = with_points(&options, 100);
        let types: Vec<i64> = (0..100).map(|k| k % 2).collect();
        let molecules: Vec<u32> = (0..100).map(|k| k / 3).collect();
        let mask = [1u8; 100];
        let (mut lists, mut pairs) = (NO_LISTS, NO_PAIRS);
        let mass = [1.0f32; 100];
        let field = NfDeviceField {
            values: at(&mass),
            len: 100,
            stride: 1,
        };
        let density = [0.0f32; 100];
        // SAFETY: arrays of the GPU are there.
        unsafe {
            let missing = nf_device_engine_find_neighbors(engine, 0, 0);
            refused(missing, NfStatus::BadArgument, "types");
            let given = integers(&types, NfInteger::I64);
            done(nf_device_engine_set_types_from_device(engine, 0, given));
            let given = integers(&molecules, NfInteger::U32);
            done(nf_device_engine_set_molecules_from_device(engine, 0, given));
            done(nf_device_engine_set_target_mask_from_device(
                engine,
                0,
                at(&mask),
                100,
            ));
            done(nf_device_engine_clear_targets(engine, 0));
            done(nf_device_engine_clear_exclusions(engine, 0));
            done(nf_device_engine_pair_geometry(engine, 0, 0, every));
            finish(engine);
            done(nf_device_engine_geometry(engine, 0, 0, &mut pairs));
            assert_eq!(
                (pairs.lists.points, pairs.precision),
                (100, precision as u32)
            );
            let arrays = [
                pairs.targets,
                pairs.images,
                pairs.shifts,
                pairs.displacements,
                pairs.squares,
                pairs.distances,
            ];
            assert!(arrays.iter().all(|&array| array > 7), "{arrays:?}");
            let results = at(&density);
            done(nf_device_engine_sph_density(
                engine, 0, 0, 0.1, 3, field, results, 100, 1, 0,
            ));
            let some = [3u64, 1];
            let points = integers(&some, NfInteger::U64);
            done(nf_device_engine_find_neighbors_of(engine, 0, 0, points));
            finish(engine);
            done(nf_device_engine_neighbors_of(engine, 0, 0, &mut lists));
            assert_eq!(lists.points, 2);
            done(nf_device_engine_find_neighbors(engine, 0, 0));
            finish(engine);
            let status = nf_device_engine_geometry(engine, 0, 0, &mut pairs);
            refused(status, NfStatus::NoLists, "");
            let mut set = 0;
            let status = nf_device_engine_query(engine, at(&types), 2, 0, &mut set);
            refused(status, NfStatus::BadArgument, "types");
        }
        done(nf_device_engine_free(engine));
    }
}

#[test]
fn chunks_of_a_gpu_end_and_are_refused_after_a_change() {
    on_null_gpu("c_interface::chunks");
}

#[test]
#[ignore = "runs in a child"]
fn chunks() {
    let engine = with_points(&options(), 100);
    let other = with_points(&options(), 100);
    let (mut begun, mut pairs) = (ptr::null_mut(), 7);
    let positions = [0.25f32; 300];
    // SAFETY: arrays of the GPU are there; places are there.
    unsafe {
        let quantities = NfQuantity::Displacements as u32;
        done(nf_device_chunks_new(
            engine, 0, 0, quantities, 0, &mut pairs, &mut begun,
        ));
        let mut chunk: NfDeviceChunk = MaybeUninit::zeroed().assume_init();
        let status = nf_device_chunks_next(other, begun, &mut chunk);
        refused(status, NfStatus::BadArgument, "engine");
        let mut targets = 0;
        for _ in 0..200 {
            done(nf_device_chunks_next(engine, begun, &mut chunk));
            targets += chunk.target_count;
            if chunk.target_count == 0 {
                break;
            }
            assert_eq!(chunk.pairs.lists.points, chunk.target_count);
        }
        assert_eq!((targets, chunk.target_count, pairs), (100, 0, 0));
        done(nf_device_chunks_free(begun));
        let status = nf_device_chunks_next(engine, begun, &mut chunk);
        refused(status, NfStatus::BadHandle, "chunks");
        done(nf_device_chunks_new(
            engine,
            0,
            0,
            0,
            1 << 20,
            ptr::null_mut(),
            &mut begun,
        ));
        done(nf_device_engine_update(engine, 0, at(&positions), 100));
        let status = nf_device_chunks_next(engine, begun, &mut chunk);
        refused(status, NfStatus::NoLists, "");
        done(nf_device_chunks_free(begun));
        done(nf_device_engine_free(engine));
        done(nf_device_engine_free(other));
    }
}

#[test]
fn lists_with_a_skin_on_a_gpu_are_built_before_they_are_used() {
    on_null_gpu("c_interface::skin");
}

#[test]
#[ignore = "runs in a child"]
fn skin() {
    let (positions, results) = ([0.5f32; 300], [0.0f32; 100]);
    let kernel = NfDeviceKernel {
        name: c"ones.cu".as_ptr(),
        text: c"void pair(const float* u, const Pair& pair, const float* target,
                const float* source, float* result) { result[0] = 1.0f; }"
            .as_ptr(),
        uniforms: ptr::null(),
        uniform_count: 0,
        target_channels: 0,
        source_channels: 0,
        outputs: 1,
        reduce: 0,
    };
    let mut lists = ptr::null_mut();
    // SAFETY: arrays of the GPU are there; places are there.
    unsafe {
        let mut half = options();
        half.lists = 1;
        let status = nf_device_verlet_new(&half, 0.02, &mut lists);
        refused(status, NfStatus::BadArgument, "half lists");
        let status = nf_device_verlet_new(&options(), -1.0, &mut lists);
        refused(status, NfStatus::BadArgument, "skin");
        done(nf_device_verlet_new(&options(), 0.02, &mut lists));
        let mut set = 7;
        let positions = at(&positions);
        done(nf_device_verlet_add_points(lists, positions, 100, &mut set));
        let traverse = || {
            let results = at(&results);
            nf_device_verlet_traverse(
                lists, &kernel, set, set, NO_FIELD, NO_FIELD, results, 100, 0,
            )
        };
        let mut found = NO_LISTS;
        let status = nf_device_verlet_candidates(lists, set, set, &mut found);
        refused(status, NfStatus::OutOfDate, "");
        refused(traverse(), NfStatus::OutOfDate, "");
        let (mut valid, mut rebuilt, mut builds, mut moved) = (7, 7, 7, -1.0);
        done(nf_device_verlet_finish(lists, &mut valid));
        assert_eq!(valid, 0, "the lists were built");
        done(nf_device_verlet_candidates(lists, set, set, &mut found));
        assert_eq!(found.points, 100);
        done(nf_device_verlet_update(lists, set, positions, 100));
        done(traverse());
        done(nf_device_verlet_finish(lists, &mut valid));
        assert_eq!(valid, 1);
        done(nf_device_verlet_displacement(lists, set, &mut moved));
        assert_eq!(moved, 0.0);
        done(nf_device_verlet_replace(lists, set, positions, 100));
        done(nf_device_verlet_refresh(lists, &mut rebuilt));
        done(nf_device_verlet_builds(lists, &mut builds));
        assert_eq!((rebuilt, builds), (1, 2));
        let status = nf_device_verlet_exclude_pairs(lists, set, [0, 100].as_ptr(), 1);
        refused(status, NfStatus::BadArgument, "100");
        done(nf_device_verlet_exclude_pairs(
            lists,
            set,
            [0, 99].as_ptr(),
            1,
        ));
        done(nf_device_verlet_clear_exclusions(lists, set));
        let status = nf_device_verlet_set_active(lists, set, set, 2);
        refused(status, NfStatus::BadArgument, "active is 2");
        done(nf_device_verlet_remove_set(lists, set));
        refused(traverse(), NfStatus::UnknownPointSet, "has been removed");
        done(nf_device_verlet_free(lists));
        refused(traverse(), NfStatus::BadHandle, "freed");
    }
}

#[test]
fn systems_on_a_gpu_have_pairs_after_a_search_was_finished() {
    on_null_gpu("c_interface::systems");
}

#[test]
#[ignore = "runs in a child"]
fn systems() {
    use NfStatus::*;
    let (positions, offsets, radii) = ([0.5f64; 30], [0i64, 4, 10], [0.1f64]);
    let input = NfDeviceSystemsInput {
        positions: at(&positions),
        points: 10,
        systems: 2,
        offsets: at(&offsets),
        radii: at(&radii),
        radius_count: 1,
        cells: 0,
        cell_count: 0,
        periodic: 0,
        periodic_count: 0,
    };
    let mut search = ptr::null_mut();
    // SAFETY: arrays of the GPU are there; places are there.
    unsafe {
        let mut options = MaybeUninit::uninit();
        let size = size_of::<NfDeviceSystemsOptions>();
        done(nf_device_systems_options_init(options.as_mut_ptr(), size));
        let mut options: NfDeviceSystemsOptions = options.assume_init();
        options.integer = NfInteger::U64 as u32;
        let status = nf_device_systems_new(&options, &mut search);
        refused(status, BadArgument, "NF_INTEGER_U64");
        options.integer = NfInteger::I64 as u32;
        options.precision = NfPrecision::F64 as u32;
        done(nf_device_systems_new(&options, &mut search));
        let (mut valid, mut pairs) = (7, MaybeUninit::uninit());
        let status = nf_device_systems_finish(search, &mut valid);
        refused(status, NoLists, "nf_device_systems_neighbors");
        let status = nf_device_systems_pairs(search, pairs.as_mut_ptr());
        refused(status, NoLists, "nf_device_systems_finish");
        let status = nf_device_systems_neighbors(search, ptr::null(), 1);
        refused(status, NullPointer, "input");
        let status = nf_device_systems_neighbors(search, &input, NfQuantity::Shifts as u32);
        refused(status, BadArgument, "NF_QUANTITY_SHIFTS");
        let three = NfDeviceSystemsInput {
            radius_count: 3,
            ..input
        };
        refused(nf_device_systems_neighbors(search, &three, 1), Gpu, "3");
        let nowhere = NfDeviceSystemsInput {
            offsets: 0,
            ..input
        };
        let status = nf_device_systems_neighbors(search, &nowhere, 1);
        refused(status, NullPointer, "offsets");
        // The null GPU counts no pairs; without systems there are none to count.
        let none = NfDeviceSystemsInput {
            points: 0,
            systems: 0,
            ..input
        };
        for _ in 0..5 {
            done(nf_device_systems_neighbors(search, &none, 1 + 2));
            done(nf_device_systems_finish(search, &mut valid));
            if valid == 1 {
                break;
            }
        }
        done(nf_device_systems_pairs(search, pairs.as_mut_ptr()));
        let pairs: NfDeviceSystemPairs = pairs.assume_init();
        assert_eq!((valid, pairs.points, pairs.pairs), (1, 0, 0));
        assert_eq!((pairs.precision, pairs.integer), (1, 3));
        done(nf_device_systems_free(search));
        let status = nf_device_systems_neighbors(search, &input, 1);
        refused(status, BadHandle, "search of systems on a GPU");
    }
}

#[test]
fn a_set_without_points_has_lists_on_a_gpu_once_they_are_found() {
    on_null_gpu("c_interface::no_points");
}

#[test]
#[ignore = "runs in a child"]
fn no_points() {
    let engine = with_points(&options(), 0);
    let (mut lists, mut pairs) = (NO_LISTS, NO_PAIRS);
    let images = NfQuantity::Images as u32;
    // SAFETY: the places are there, and no array has elements.
    unsafe {
        done(nf_device_engine_find_neighbors(engine, 0, 0));
        finish(engine);
        done(nf_device_engine_neighbors(engine, 0, 0, &mut lists));
        assert_eq!(lists.points, 0);
        done(nf_device_engine_pair_geometry(engine, 0, 0, images));
        finish(engine);
        done(nf_device_engine_geometry(engine, 0, 0, &mut pairs));
        assert_eq!(pairs.lists.points, 0);
        let none: [u32; 0] = [];
        let points = integers(&none, NfInteger::U32);
        done(nf_device_engine_find_neighbors_of(engine, 0, 0, points));
        finish(engine);
        done(nf_device_engine_neighbors_of(engine, 0, 0, &mut lists));
        assert_eq!(lists.points, 0);
    }
    done(nf_device_engine_free(engine));
}
