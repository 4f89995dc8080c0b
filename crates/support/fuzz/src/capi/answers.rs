//! Calls that give sets points or bring results back, with checks of every result.

use super::{
    common::{Array, RADII, failed, points as points_of},
    input::{Points, Room},
    memory::Results,
};
use nearfield_c::*;
use std::{
    ffi::{c_char, c_void},
    ptr,
    sync::atomic::{AtomicU32, Ordering},
};

/// The list of a point; every entry is read.
pub(super) fn of_point(
    engine: *mut NfEngine,
    lists: &NfLists,
    point: usize,
) -> Result<Vec<u32>, NfStatus> {
    let (mut first, mut len) = (ptr::null(), usize::MAX);
    // SAFETY: lists as they were got, and places for the answers.
    let status = unsafe { nf_neighbors_of(engine, lists, point, &raw mut first, &raw mut len) };
    if failed(status) {
        return Err(status);
    }
    if len == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the engine was not changed since it said so.
    Ok(unsafe { std::slice::from_raw_parts(first, len) }.to_vec())
}

/// Reads whole lists from where they lie.
pub(super) fn check_lists(lists: &NfLists, sources: usize) {
    let mut pairs = 0u64;
    for point in 0..lists.points {
        // SAFETY: lists that were just got: one start and one count a point, and their entries.
        unsafe {
            let (start, count) = (*lists.start.add(point) as usize, *lists.count.add(point));
            pairs += u64::from(count);
            for n in 0..count as usize {
                assert!((*lists.indices.add(start + n) as usize) < sources);
            }
        }
    }
    assert_eq!(pairs, lists.pairs);
}

pub(super) fn add(engine: *mut NfEngine, points: &Points) {
    let array = Array::new(points);
    let mut set = u32::MAX;
    let (points, stride) = (array.points, array.stride);
    // SAFETY: the array holds `points` points `stride` bytes apart; `set` takes the number.
    let status = unsafe {
        if array.double {
            nf_add_points_f64(engine, array.place(), points, stride, &raw mut set)
        } else {
            nf_add_points_f32(engine, array.place(), points, stride, &raw mut set)
        }
    };
    if failed(status) {
        assert_eq!(set, u32::MAX);
    } else {
        assert_eq!(points_of(engine, set as u8), Some(points));
    }
}

pub(super) fn update(engine: *mut NfEngine, set: u8, points: &Points) {
    let before = points_of(engine, set);
    let array = Array::new(points);
    let (points, stride, number) = (array.points, array.stride, u32::from(set));
    // SAFETY: the array holds `points` points `stride` bytes apart.
    let status = unsafe {
        if array.double {
            nf_update_f64(engine, number, array.place(), points, stride)
        } else {
            nf_update_f32(engine, number, array.place(), points, stride)
        }
    };
    let expected = if failed(status) { before } else { Some(points) };
    assert_eq!(points_of(engine, set), expected);
}

/// As compressed rows; they are the lists.
pub(super) fn csr(engine: *mut NfEngine, [targets, sources]: [u8; 2], room: Room) {
    let mut lists = std::mem::MaybeUninit::<NfLists>::uninit();
    let (targets, sources) = (targets.into(), sources.into());
    // SAFETY: a place for the lists.
    let status = unsafe { nf_neighbors(engine, targets, sources, lists.as_mut_ptr()) };
    let (points, pairs) = match status {
        NfStatus::Ok => {
            // SAFETY: filled.
            let lists = unsafe { lists.assume_init() };
            (lists.points, lists.pairs as usize)
        }
        _ => (3, 5),
    };
    let (rows, entries) = (room.length(points + 1), room.length(pairs));
    let mut offsets = Results::of::<u64>(rows);
    let mut indices = Results::of::<u32>(entries);
    // SAFETY: arrays of these lengths, or null.
    let status = unsafe {
        let (offsets, indices) = (room.place(&mut offsets), room.place(&mut indices));
        nf_neighbors_csr(engine, targets, sources, offsets, rows, indices, entries)
    };
    offsets.check();
    indices.check();
    if failed(status) {
        assert!(offsets.is_untouched() && indices.is_untouched());
        return;
    }
    assert_eq!((rows, entries), (points + 1, pairs));
    if !matches!(room, Room::Null) {
        let found = offsets.u64s();
        assert!(found.is_sorted() && found[0] == 0 && found[points] == pairs as u64);
        let sources = points_of(engine, sources as u8).expect("the set is there");
        assert!(
            indices
                .u32s()
                .iter()
                .all(|index| (*index as usize) < sources)
        );
    }
}

pub(super) fn query(engine: *mut NfEngine, points: &Points, sources: u8) {
    let array = Array::new(points);
    let mut found = ptr::null_mut();
    let (points, stride, number) = (array.points, array.stride, u32::from(sources));
    // SAFETY: the array holds `points` points `stride` bytes apart; `found` takes the query.
    let status = unsafe {
        if array.double {
            nf_query_f64(
                engine,
                array.place(),
                points,
                stride,
                number,
                &raw mut found,
            )
        } else {
            nf_query_f32(
                engine,
                array.place(),
                points,
                stride,
                number,
                &raw mut found,
            )
        }
    };
    if failed(status) {
        assert!(found.is_null());
        return;
    }
    let mut lists = std::mem::MaybeUninit::<NfLists>::uninit();
    // SAFETY: a place for the lists.
    let status = unsafe { nf_query_lists(found, lists.as_mut_ptr()) };
    assert_eq!(status, NfStatus::Ok);
    // SAFETY: filled.
    let lists = unsafe { lists.assume_init() };
    assert_eq!(lists.points, points);
    check_lists(
        &lists,
        points_of(engine, sources).expect("the set is there"),
    );
    assert_eq!(nf_query_free(found), NfStatus::Ok);
    assert_eq!(nf_query_free(found), NfStatus::BadHandle);
}

pub(super) fn count(engine: *mut NfEngine, [targets, sources]: [u8; 2], room: Room) {
    let points = points_of(engine, targets).unwrap_or(3);
    let len = room.length(points);
    let mut counts = Results::of::<u32>(len);
    // SAFETY: an array of this length, or null.
    let status = unsafe {
        let place = room.place(&mut counts);
        nf_count_neighbors(engine, targets.into(), sources.into(), place, len)
    };
    counts.check();
    if failed(status) {
        assert!(counts.is_untouched());
    } else {
        assert_eq!(len, points);
    }
}

pub(super) fn density(engine: *mut NfEngine, [targets, sources]: [u8; 2], room: Room, deliver: u8) {
    let points = points_of(engine, targets).unwrap_or(3);
    let masses = vec![1.0f32; points_of(engine, sources).unwrap_or(2)];
    let len = room.length(points);
    let mut results = Results::of::<f32>(len);
    let support = RADII[usize::from(deliver) / 3 % RADII.len()] as f32;
    // SAFETY: arrays of these lengths, or null.
    let status = unsafe {
        nf_sph_density(
            engine,
            targets.into(),
            sources.into(),
            support,
            if deliver < 128 { 3 } else { 2 },
            masses.as_ptr(),
            masses.len(),
            // Packed, packed by name, an overlap, a fraction of a number.
            [0, 4, 2, 6][usize::from(deliver) / 7 % 4],
            room.place(&mut results),
            len,
            (deliver % 3).into(),
        )
    };
    results.check();
    if failed(status) {
        assert!(results.is_untouched());
    }
}

pub(super) fn force(engine: *mut NfEngine, [targets, sources]: [u8; 2], room: Room, deliver: u8) {
    let points = points_of(engine, targets).unwrap_or(3);
    let others = points_of(engine, sources).unwrap_or(2);
    let ones = vec![1.0f32; 3 * points.max(others)];
    let fields = |points: usize| NfSphPoints {
        points,
        velocity: ones.as_ptr(),
        density: ones.as_ptr(),
        pressure: ones.as_ptr(),
        mass: ones.as_ptr(),
        velocity_stride: [0, 12, 4, 14][usize::from(deliver) / 7 % 4],
        density_stride: [0, 4, 8, 12][usize::from(deliver) / 28 % 4],
        pressure_stride: 12,
        mass_stride: 0,
    };
    let (of_targets, of_sources) = (fields(points), fields(others));
    let parameters = NfSphForce {
        support: RADII[usize::from(deliver) / 3 % RADII.len()] as f32,
        alpha_c: 0.5,
        dimensions: if deliver < 128 { 3 } else { 2 },
    };
    let len = room.length(points);
    let mut results = Results::of::<[f32; 3]>(len);
    // SAFETY: arrays of these lengths, or null.
    let status = unsafe {
        nf_sph_force(
            engine,
            targets.into(),
            sources.into(),
            &raw const parameters,
            &raw const of_targets,
            &raw const of_sources,
            room.place(&mut results),
            len,
            (deliver % 3).into(),
        )
    };
    results.check();
    if failed(status) {
        assert!(results.is_untouched());
    }
}

/// Data of the function of `nf_for_each_batch`.
struct Visit {
    engine: *mut NfEngine,
    /// Batches to go before it asks to stop.
    left: AtomicU32,
    sources: usize,
}

/// Reads the whole batch, reads the engine, and is refused when it tries to change it.
unsafe extern "C" fn visit(user: *mut c_void, batch: *const NfBatch) -> i32 {
    // SAFETY: `batches` passes a `Visit` that outlives the call, and the batch is lent for it.
    let (visit, batch) = unsafe { (&*user.cast::<Visit>(), &*batch) };
    // SAFETY: `sources` of a batch has `pairs` elements.
    let sources = unsafe { std::slice::from_raw_parts(batch.sources, batch.pairs) };
    assert!(
        sources
            .iter()
            .all(|source| (*source as usize) < visit.sources)
    );
    let mut points = 0;
    // SAFETY: a place for the answer.
    let read = unsafe { nf_points(visit.engine, 0, &raw mut points) };
    assert_eq!(read, NfStatus::Ok);
    assert_eq!(nf_find_neighbors(visit.engine), NfStatus::Busy);
    assert_eq!(nf_engine_free(visit.engine), NfStatus::Busy);
    let left = visit
        .left
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(1)
        });
    i32::from(left.is_err())
}

pub(super) fn batches(engine: *mut NfEngine, [targets, sources]: [u8; 2], stop: Option<u8>) {
    let mut user = Visit {
        engine,
        left: AtomicU32::new(stop.map_or(u32::MAX, u32::from)),
        sources: points_of(engine, sources).unwrap_or(0),
    };
    let user = (&raw mut user).cast::<c_void>();
    // SAFETY: the function may be called from any thread with this.
    let status =
        unsafe { nf_for_each_batch(engine, targets.into(), sources.into(), Some(visit), user) };
    failed(status);
    // SAFETY: nothing is called without a function.
    let status = unsafe { nf_for_each_batch(engine, targets.into(), sources.into(), None, user) };
    assert!(failed(status));
}

pub(super) fn sort(engine: *mut NfEngine, set: u8, room: Room) {
    let points = points_of(engine, set).unwrap_or(3);
    let len = room.length(points);
    let mut order = Results::of::<u32>(len);
    // SAFETY: an array of this length, or null.
    let status = unsafe { nf_z_sort(engine, set.into(), room.place(&mut order), len) };
    order.check();
    if failed(status) {
        assert!(order.is_untouched());
    } else if !matches!(room, Room::Null) {
        let mut order = order.u32s();
        order.sort_unstable();
        assert!(
            order
                .iter()
                .enumerate()
                .all(|(n, index)| n == *index as usize)
        );
    }
}

/// Texts into a buffer that may be too small.
pub(super) fn texts(engine: *mut NfEngine, capacity: usize) {
    type Copy = unsafe extern "C" fn(*const NfEngine, *mut c_char, usize, *mut usize) -> NfStatus;
    for copy in [nf_report as Copy, nf_engine_error as Copy] {
        let mut needed = 0;
        // SAFETY: no buffer, and a place for the length.
        let asked = unsafe { copy(engine, ptr::null_mut(), 0, &raw mut needed) };
        let mut buffer = Results::of::<u8>(capacity);
        // SAFETY: the buffer has `capacity` bytes.
        let status = unsafe { copy(engine, buffer.place(), capacity, &raw mut needed) };
        buffer.check();
        if failed(status) {
            assert!(buffer.is_untouched());
        } else {
            assert_eq!(asked, NfStatus::Ok);
            assert!((1..=capacity).contains(&needed));
        }
    }
}
