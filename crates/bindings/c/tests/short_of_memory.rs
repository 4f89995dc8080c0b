//! Lists that a search which failed in the middle had begun to change: views of them are out of
//! date. A process of its own, whose allocator refuses what the test tells it to.

use nearfield_c::*;
use nearfield_testkit::memory::Refusing;
use std::{mem::MaybeUninit, ptr};

#[global_allocator]
static MEMORY: Refusing = Refusing::nothing();

const POINTS: usize = 20 * 20 * 20;

/// A lattice of 20³ points, `spacing` apart.
fn lattice(spacing: f32) -> Vec<[f32; 3]> {
    let at = |k: usize| (k % 20) as f32 * spacing;
    (0..POINTS)
        .map(|i| [at(i), at(i / 20), at(i / 400)])
        .collect()
}

fn engine(memory_limit: u64) -> *mut NfEngine {
    let (mut options, mut engine) = (MaybeUninit::uninit(), ptr::null_mut());
    // SAFETY: there is room for the options, which are initialised when it succeeds.
    unsafe {
        let status = nf_options_init(options.as_mut_ptr(), size_of::<NfOptions>());
        assert_eq!(status, NfStatus::Ok);
        let mut options = options.assume_init();
        options.radius = 1.5;
        options.threads = 2;
        options.memory_limit = memory_limit;
        assert_eq!(nf_engine_new(&options, &mut engine), NfStatus::Ok);
    }
    engine
}

fn update(engine: *mut NfEngine, set: u32, points: &[[f32; 3]]) {
    // SAFETY: the number of points is that of the slice.
    let status = unsafe { nf_update_f32(engine, set, points.as_ptr().cast(), points.len(), 12) };
    assert_eq!(status, NfStatus::Ok);
}

fn add(engine: *mut NfEngine, points: &[[f32; 3]]) -> u32 {
    let mut set = 0;
    let data = points.as_ptr().cast();
    // SAFETY: the number of points is that of the slice, and the place is there.
    let status = unsafe { nf_add_points_f32(engine, data, points.len(), 12, &mut set) };
    assert_eq!(status, NfStatus::Ok);
    set
}

fn view(engine: *mut NfEngine, set: u32) -> (NfStatus, NfLists) {
    let mut lists = NfLists {
        start: ptr::null(),
        count: ptr::null(),
        indices: ptr::null(),
        points: 0,
        pairs: 0,
        state: 0,
    };
    // SAFETY: the place is there.
    (unsafe { nf_neighbors(engine, set, set, &mut lists) }, lists)
}

fn of(engine: *mut NfEngine, lists: &NfLists, point: usize) -> (NfStatus, Vec<u32>) {
    let (mut first, mut count) = (ptr::null(), 0);
    // SAFETY: the lists were filled by the library, and the places are there.
    let status = unsafe { nf_neighbors_of(engine, lists, point, &mut first, &mut count) };
    let list = match status {
        // SAFETY: the library says that they are current.
        NfStatus::Ok => unsafe { std::slice::from_raw_parts(first, count) }.to_vec(),
        _ => Vec::new(),
    };
    (status, list)
}

#[test]
fn views_of_lists_that_a_failed_search_moved_are_out_of_date() {
    // Lists of points 0.6 apart take much more room than those of points 1.1 apart, which are kept
    // there until another pair of sets needs it.
    let limit = 56 * 4 * POINTS as u64 + 2 * 12 * POINTS as u64 + 400_000;
    let engine = engine(limit);
    let a = add(engine, &lattice(0.6));
    assert_eq!(nf_find_neighbors(engine), NfStatus::Ok);
    update(engine, a, &lattice(1.1));
    assert_eq!(nf_find_neighbors(engine), NfStatus::Ok);
    let b = add(engine, &lattice(0.9));
    assert_eq!(nf_set_active(engine, a, b, 0), NfStatus::Ok);
    assert_eq!(nf_set_active(engine, b, a, 0), NfStatus::Ok);
    let (status, lists) = view(engine, a);
    assert_eq!(status, NfStatus::Ok, "lists of the first set are current");
    let (status, before) = of(engine, &lists, 4321);
    assert_eq!((status, before.len()), (NfStatus::Ok, 6));

    // Room is given back, and then there is no memory for the new lists.
    let (mut refused, mut moved) = (0, 0);
    for large in [4 * POINTS, 8 * POINTS, 500_000] {
        let (status, lists) = view(engine, a);
        assert_eq!(status, NfStatus::Ok);
        let status = MEMORY.while_short(large, 0, || nf_find_neighbors(engine));
        assert_eq!(status, NfStatus::OutOfMemory, "without {large} bytes");
        refused += 1;
        assert_eq!(of(engine, &lists, 4321).0, NfStatus::OutOfDate);
        let (status, now) = view(engine, a);
        assert_eq!(
            status,
            NfStatus::Ok,
            "the lists themselves are what they were"
        );
        assert_eq!(of(engine, &now, 4321), (NfStatus::Ok, before.clone()));
        moved += usize::from(now.indices != lists.indices);
        assert_eq!(view(engine, b).0, NfStatus::NoLists);
    }
    assert_eq!(refused, 3);
    assert!(moved > 0, "no search gave room back");
    assert_eq!(nf_find_neighbors(engine), NfStatus::Ok);
    assert_eq!(view(engine, b).0, NfStatus::Ok);
    assert_eq!(nf_engine_free(engine), NfStatus::Ok);
}
