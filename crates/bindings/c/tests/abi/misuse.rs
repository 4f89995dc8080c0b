//! Wrong sequences, wrong pointers, wrong sizes, wrong threads: each has its status.

use nearfield_c::*;
use std::{
    ffi::{CStr, CString, c_void},
    ptr,
    sync::Barrier,
};

/// An engine with one set, and points to give it.
pub(crate) struct Made {
    pub(crate) engine: *mut NfEngine,
    pub(crate) points: Vec<[f32; 3]>,
}

pub(crate) fn options(radius: f64) -> NfOptions {
    let mut options = std::mem::MaybeUninit::uninit();
    // SAFETY: there is room for the options, which are initialised when it succeeds.
    unsafe {
        let status = nf_options_init(options.as_mut_ptr(), size_of::<NfOptions>());
        assert_eq!(status, NfStatus::Ok);
        let mut options = options.assume_init();
        options.radius = radius;
        options.threads = 2;
        options
    }
}

pub(crate) fn engine(options: &NfOptions) -> *mut NfEngine {
    let mut engine = ptr::null_mut();
    // SAFETY: the options are initialised and the place is there.
    assert_eq!(unsafe { nf_engine_new(options, &mut engine) }, NfStatus::Ok);
    engine
}

impl Made {
    pub(crate) fn new() -> Self {
        let points: Vec<[f32; 3]> = (0..1000)
            .map(|i| [i % 10, i / 10 % 10, i / 100].map(|k| k as f32))
            .collect();
        let engine = engine(&options(1.5));
        let mut set = 7;
        let data = points.as_ptr().cast();
        // SAFETY: the number of points is that of the array.
        let status = unsafe { nf_add_points_f32(engine, data, points.len(), 12, &mut set) };
        assert_eq!((status, set), (NfStatus::Ok, 0));
        Self { engine, points }
    }

    fn data(&self) -> *const f32 {
        self.points.as_ptr().cast()
    }

    fn lists(&self) -> (NfStatus, NfLists) {
        let mut lists = no_lists();
        // SAFETY: the place is there.
        (
            unsafe { nf_neighbors(self.engine, 0, 0, &mut lists) },
            lists,
        )
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        nf_engine_free(self.engine);
    }
}

pub(crate) fn no_lists() -> NfLists {
    NfLists {
        start: ptr::null(),
        count: ptr::null(),
        indices: ptr::null(),
        points: 0,
        pairs: 0,
        state: 0,
    }
}

pub(crate) fn last_error() -> String {
    // SAFETY: never null, and there is no failure in between.
    unsafe { CStr::from_ptr(nf_last_error()) }
        .to_str()
        .unwrap()
        .to_owned()
}

fn engine_error(engine: *const NfEngine) -> String {
    let mut buffer = [0u8; 512];
    // SAFETY: the size is that of the buffer.
    let status = unsafe {
        nf_engine_error(
            engine,
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            ptr::null_mut(),
        )
    };
    assert_eq!(status, NfStatus::Ok);
    CStr::from_bytes_until_nul(&buffer)
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned()
}

#[test]
fn null_foreign_and_freed_handles_are_told_apart() {
    let Made { engine, .. } = *std::mem::ManuallyDrop::new(Made::new());
    assert_eq!(nf_find_neighbors(ptr::null_mut()), NfStatus::NullPointer);
    assert!(last_error().contains("the engine is a null pointer"));
    let mut on_stack = 5u64;
    let foreign: *mut NfEngine = (&raw mut on_stack).cast();
    assert_eq!(nf_find_neighbors(foreign), NfStatus::BadHandle);
    assert_eq!(nf_query_free(engine.cast()), NfStatus::BadHandle);
    assert_eq!(nf_device_engine_free(engine.cast()), NfStatus::BadHandle);
    assert_eq!(nf_engine_free(engine), NfStatus::Ok);
    assert_eq!(nf_engine_free(engine), NfStatus::BadHandle);
    assert!(last_error().contains("freed"), "{}", last_error());
    assert_eq!(nf_find_neighbors(engine), NfStatus::BadHandle);
    assert_eq!(nf_engine_free(ptr::null_mut()), NfStatus::Ok);
}

#[test]
fn null_arrays_strides_and_sizes_are_refused_and_change_nothing() {
    let made = Made::new();
    let (engine, points) = (made.engine, made.points.len());
    assert_eq!(nf_find_neighbors(engine), NfStatus::Ok);
    // SAFETY: what is passed is refused before it is read, or is there.
    unsafe {
        let update = |data, points, stride| nf_update_f32(engine, 0, data, points, stride);
        assert_eq!(update(ptr::null(), 3, 12), NfStatus::NullPointer);
        assert_eq!(update(made.data(), points, 8), NfStatus::BadArgument);
        assert!(engine_error(engine).contains("stride is 8 bytes"));
        assert_eq!(update(made.data(), usize::MAX, 12), NfStatus::BadArgument);
        assert_eq!(update(made.data(), 3, usize::MAX), NfStatus::BadArgument);
        let mut counts = vec![0; 3];
        let count = |counts, len| nf_count_neighbors(engine, 0, 0, counts, len);
        assert_eq!(count(counts.as_mut_ptr(), 3), NfStatus::BadArgument);
        assert!(
            last_error().contains("3 elements, not 1000"),
            "{}",
            last_error()
        );
        assert_eq!(count(ptr::null_mut(), points), NfStatus::NullPointer);
        let odd = counts.as_mut_ptr().cast::<u8>().add(1).cast();
        assert_eq!(count(odd, points), NfStatus::BadArgument);
        assert_eq!(
            nf_neighbors(engine, 0, 0, ptr::null_mut()),
            NfStatus::NullPointer
        );
        let function = None;
        let status = nf_for_each_batch(engine, 0, 0, function, ptr::null_mut());
        assert_eq!(status, NfStatus::NullPointer);
    }
    assert_eq!(
        made.lists().0,
        NfStatus::Ok,
        "refused calls leave the engine as it was"
    );
}

#[test]
fn options_that_make_no_sense_are_named() {
    let refused = |change: &dyn Fn(&mut NfOptions)| {
        let mut options = options(1.0);
        change(&mut options);
        let mut engine = ptr::null_mut();
        // SAFETY: the options are initialised and the place is there.
        let status = unsafe { nf_engine_new(&options, &mut engine) };
        assert!(engine.is_null());
        (status, last_error())
    };
    let (status, text) = refused(&|options| options.radius = -1.0);
    assert_eq!(status, NfStatus::Setup, "{text}");
    let (status, text) = refused(&|options| options.precision = 9);
    assert!(
        status == NfStatus::BadArgument && text.contains("precision is 9"),
        "{text}"
    );
    let (status, text) = refused(&|options| options.struct_size = 8);
    assert!(
        status == NfStatus::BadArgument && text.contains("8 bytes"),
        "{text}"
    );
    let device = CString::new("tpu").unwrap();
    let (status, text) = refused(&|options| options.device = device.as_ptr());
    assert!(
        status == NfStatus::BadArgument && text.contains("tpu"),
        "{text}"
    );
    let (status, text) = refused(&|options| options.periodic[1] = 1);
    assert_eq!(status, NfStatus::Setup, "{text}");
    let device = CString::new("gpu:99").unwrap();
    let (status, text) = refused(&|options| options.device = device.as_ptr());
    assert_eq!(status, NfStatus::Device, "{text}");
}

#[test]
fn positions_that_cannot_be_used_are_named_and_leave_the_set_as_it_was() {
    let mut made = Made::new();
    made.points[17][1] = f32::NAN;
    // SAFETY: the number of points is that of the array.
    let status = unsafe { nf_update_f32(made.engine, 0, made.data(), 1000, 12) };
    assert_eq!(status, NfStatus::Positions);
    let text = engine_error(made.engine);
    assert!(text.contains("17") && text.contains("NaN"), "{text}");
    let mut points = 0;
    // SAFETY: the place is there.
    let asked = unsafe { nf_points(made.engine, 0, &mut points) };
    assert_eq!(asked, NfStatus::Ok);
    assert_eq!(points, 1000);
    assert_eq!(nf_find_neighbors(made.engine), NfStatus::Ok);
}

#[test]
fn calls_in_the_wrong_order_have_their_status() {
    let made = Made::new();
    assert_eq!(made.lists().0, NfStatus::NoLists, "nothing was found yet");
    assert_eq!(
        nf_set_active(made.engine, 0, 1, 1),
        NfStatus::UnknownPointSet
    );
    assert_eq!(nf_set_active(made.engine, 0, 0, 2), NfStatus::BadArgument);
    assert_eq!(nf_find_neighbors(made.engine), NfStatus::Ok);
    let (status, lists) = made.lists();
    assert_eq!(status, NfStatus::Ok);
    let (mut neighbors, mut count) = (ptr::null(), 0);
    let mut of = |point| {
        // SAFETY: the lists were filled by the library, and the places are there.
        unsafe { nf_neighbors_of(made.engine, &lists, point, &mut neighbors, &mut count) }
    };
    assert_eq!(of(555), NfStatus::Ok);
    assert_eq!(of(1000), NfStatus::UnknownPoint);
    // SAFETY: the number of points is that of the array.
    let updated = unsafe { nf_update_f32(made.engine, 0, made.data(), 1000, 12) };
    assert_eq!(updated, NfStatus::Ok);
    assert_eq!(of(555), NfStatus::OutOfDate);
    assert_eq!(
        made.lists().0,
        NfStatus::NoLists,
        "they are those of older positions"
    );
    assert_eq!(nf_find_neighbors(made.engine), NfStatus::Ok);
    assert_eq!(of(555), NfStatus::OutOfDate, "the old view stays refused");
    let other = Made::new();
    assert_eq!(nf_find_neighbors(other.engine), NfStatus::Ok);
    let (_, lists) = other.lists();
    // SAFETY: the lists were filled by the library, and the places are there.
    let status = unsafe { nf_neighbors_of(made.engine, &lists, 1, &mut neighbors, &mut count) };
    assert_eq!(status, NfStatus::OutOfDate, "lists of another engine");
    assert_eq!(nf_set_all_active(made.engine, 2), NfStatus::BadArgument);
    assert_eq!(nf_set_all_active(made.engine, 0), NfStatus::Ok);
    assert_eq!(made.lists().0, NfStatus::NoLists, "the pair is not active");
    assert_eq!(nf_set_active(made.engine, 0, 0, 1), NfStatus::Ok);
    assert_eq!(nf_find_neighbors(made.engine), NfStatus::Ok);
    assert_eq!(made.lists().0, NfStatus::Ok);
}

#[test]
fn a_text_that_does_not_fit_says_how_long_it_is() {
    let made = Made::new();
    let mut needed = 0;
    // SAFETY: the sizes are those of the buffers.
    unsafe {
        let report = |buffer, size, needed| nf_report(made.engine, buffer, size, needed);
        assert_eq!(report(ptr::null_mut(), 0, &mut needed), NfStatus::Ok);
        let mut buffer = vec![1i8; needed];
        assert_eq!(
            report(buffer.as_mut_ptr().cast(), needed - 1, &mut needed),
            NfStatus::BadArgument
        );
        assert_eq!(
            report(ptr::null_mut(), 5, &mut needed),
            NfStatus::NullPointer
        );
        assert_eq!(
            report(buffer.as_mut_ptr().cast(), needed, &mut needed),
            NfStatus::Ok
        );
        let text = CStr::from_ptr(buffer.as_ptr().cast()).to_str().unwrap();
        let report: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(report["sets"][0]["points"], 1000);
    }
}

/// Two threads meet inside a batch function, so that the outer call is certainly running.
struct Meeting {
    engine: *mut NfEngine,
    inside: Barrier,
    done: Barrier,
    first: std::sync::atomic::AtomicBool,
}

// SAFETY: the engine's handle is a name, which any thread may use.
unsafe impl Sync for Meeting {}

unsafe extern "C" fn meet(user: *mut c_void, _: *const NfBatch) -> i32 {
    // SAFETY: the test passes a meeting.
    let meeting = unsafe { &*user.cast::<Meeting>() };
    if meeting
        .first
        .swap(false, std::sync::atomic::Ordering::SeqCst)
    {
        meeting.inside.wait();
        meeting.done.wait();
        // From the callback itself too:
        if nf_find_neighbors(meeting.engine) != NfStatus::Busy {
            return 2;
        }
    }
    0
}

#[test]
fn a_second_thread_may_read_but_not_change_or_free() {
    let made = Made::new();
    assert_eq!(nf_find_neighbors(made.engine), NfStatus::Ok);
    let meeting = Meeting {
        engine: made.engine,
        inside: Barrier::new(2),
        done: Barrier::new(2),
        first: true.into(),
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let meeting = &meeting;
            meeting.inside.wait();
            assert_eq!(nf_find_neighbors(meeting.engine), NfStatus::Busy);
            assert_eq!(nf_set_radius(meeting.engine, 2.0), NfStatus::Busy);
            assert_eq!(nf_engine_free(meeting.engine), NfStatus::Busy);
            let mut radius = 0.0;
            // SAFETY: the place is there.
            let asked = unsafe { nf_radius(meeting.engine, &mut radius) };
            assert_eq!(asked, NfStatus::Ok);
            assert_eq!(radius, 1.5);
            meeting.done.wait();
        });
        let user = (&raw const meeting).cast_mut().cast();
        // SAFETY: the function may be called from any thread with a meeting.
        let status = unsafe { nf_for_each_batch(made.engine, 0, 0, Some(meet), user) };
        assert_eq!(status, NfStatus::Ok);
    });
    assert_eq!(
        made.lists().0,
        NfStatus::Ok,
        "refused calls changed nothing"
    );
    assert_eq!(nf_set_radius(made.engine, 2.0), NfStatus::Ok);
}

#[test]
fn a_place_that_cannot_be_written_is_found_before_anything_is_done() {
    let made = Made::new();
    let mut bytes = [0u64; 4];
    let odd = bytes.as_mut_ptr().cast::<u8>().wrapping_add(1);
    // SAFETY: what is passed is refused before it is used, or is there.
    unsafe {
        let added = nf_add_points_f32(made.engine, made.data(), 1000, 12, odd.cast());
        assert_eq!(added, NfStatus::BadArgument);
        let added = nf_add_points_f32(made.engine, made.data(), 1000, 12, ptr::null_mut());
        assert_eq!(added, NfStatus::NullPointer);
        let mut sets = 0;
        assert_eq!(nf_point_sets(made.engine, &mut sets), NfStatus::Ok);
        assert_eq!(sets, 1, "no set was added");
        let query = |place| nf_query_f32(made.engine, made.data(), 2, 12, 0, place);
        assert_eq!(query(odd.cast()), NfStatus::BadArgument);
        assert_eq!(query(ptr::null_mut()), NfStatus::NullPointer);
        let made = nf_engine_new(&options(1.0), odd.cast());
        assert_eq!(made, NfStatus::BadArgument);
    }
    assert_eq!(nf_find_neighbors(made.engine), NfStatus::Ok);
    let (_, lists) = made.lists();
    let (mut first, mut count) = (ptr::null(), 77);
    // SAFETY: the lists were filled by the library; places are refused or there.
    unsafe {
        let of = |first, count| nf_neighbors_of(made.engine, &lists, 3, first, count);
        assert_eq!(of(&mut first, odd.cast()), NfStatus::BadArgument);
        assert!(first.is_null(), "the other result is left alone");
        assert_eq!(of(ptr::null_mut(), &mut count), NfStatus::NullPointer);
        assert_eq!(count, 77);
    }
}

#[test]
fn results_that_lie_where_something_is_read_are_refused() {
    let made = Made::new();
    assert_eq!(nf_find_neighbors(made.engine), NfStatus::Ok);
    let mut numbers = vec![1.0f32; 8000];
    let at = numbers.as_mut_ptr();
    // SAFETY: the arrays are as long as is said.
    unsafe {
        let density =
            |mass, out| nf_sph_density(made.engine, 0, 0, 1.5, 3, mass, 1000, 0, out, 1000, 0);
        assert_eq!(density(at, at), NfStatus::BadArgument);
        assert!(
            last_error().contains("density and mass share memory"),
            "{}",
            last_error()
        );
        assert_eq!(density(at, at.add(999)), NfStatus::BadArgument);
        assert_eq!(density(at, at.add(1000)), NfStatus::Ok);
        // Between strided values too, and strides that no values can have.
        let strided = |mass: *const f32, masses, stride| {
            nf_sph_density(made.engine, 0, 0, 1.5, 3, mass, masses, stride, at, 1000, 0)
        };
        for (mass, masses, stride, text) in [
            (at.add(1), 1000, 28, "density and mass share memory"),
            (at.add(1000), 1000, 2, "mass: the stride is 2 bytes"),
            (
                at.add(1000),
                1000,
                6,
                "mass: a field of 1 channels with a stride of 6",
            ),
            (at.add(1000), usize::MAX / 2, 8, "more than memory holds"),
            (at.add(1000), usize::MAX / 16, 12, "more than memory holds"),
            (at.add(1000), 999, 28, "source field 0 holds 999 points"),
            (ptr::null_mut(), 1000, 28, "mass"),
        ] {
            let status = strided(mass, masses, stride);
            let null = if mass.is_null() {
                NfStatus::NullPointer
            } else {
                NfStatus::BadArgument
            };
            assert!(
                status == null && last_error().contains(text),
                "{}",
                last_error()
            );
        }
        assert_eq!(strided(at.add(1000), 1000, 28), NfStatus::Ok);
        let fields = NfSphPoints {
            points: 1000,
            velocity: at,
            density: at.add(3000),
            pressure: at.add(3000),
            mass: at.add(4000),
            velocity_stride: 0,
            density_stride: 0,
            pressure_stride: 0,
            mass_stride: 0,
        };
        let parameters = NfSphForce {
            support: 1.5,
            alpha_c: 0.0,
            dimensions: 3,
        };
        let force = |out| {
            nf_sph_force(
                made.engine,
                0,
                0,
                &parameters,
                &fields,
                &fields,
                out,
                1000,
                0,
            )
        };
        assert_eq!(force(at.add(4500)), NfStatus::BadArgument);
        assert!(
            last_error().contains("acceleration and mass"),
            "{}",
            last_error()
        );
        assert_eq!(force(at.add(2000)), NfStatus::BadArgument);
        assert_eq!(force(at.add(5000)), NfStatus::Ok);
        let (_, lists) = made.lists();
        let pairs = lists.pairs as usize;
        let mut arrays = vec![0u64; 1001 + pairs];
        let offsets = arrays.as_mut_ptr();
        let csr = |indices| nf_neighbors_csr(made.engine, 0, 0, offsets, 1001, indices, pairs);
        assert_eq!(csr(offsets.add(1000).cast()), NfStatus::BadArgument);
        assert_eq!(csr(offsets.add(1001).cast()), NfStatus::Ok);
    }
}

#[test]
fn texts_without_an_end_and_structures_of_another_size_are_not_read_to_the_end() {
    let endless = vec![b'x'; 4097];
    let mut wrong = options(1.0);
    wrong.device = endless.as_ptr().cast();
    let mut engine = ptr::null_mut();
    // SAFETY: what is read of the options and the text is there.
    let status = unsafe { nf_engine_new(&wrong, &mut engine) };
    assert_eq!(status, NfStatus::BadArgument);
    assert!(
        last_error().contains("device does not end within 4096 bytes"),
        "{}",
        last_error()
    );
    // An older structure, which is shorter.
    let old = Box::new([8usize]);
    // SAFETY: the size is there, and the rest is not read.
    let status = unsafe { nf_engine_new(old.as_ptr().cast(), &mut engine) };
    assert_eq!(status, NfStatus::BadArgument);
    assert!(last_error().contains("of 8 bytes"), "{}", last_error());
    let mut device_engine = ptr::null_mut();
    // SAFETY: as above.
    let status = unsafe { nf_device_engine_new(old.as_ptr().cast(), &mut device_engine) };
    assert_eq!(status, NfStatus::BadArgument);
    assert!(engine.is_null() && device_engine.is_null());
}

#[test]
fn numbers_that_are_no_whole_points_are_counted() {
    let mut points = 7;
    // SAFETY: the place is there.
    unsafe {
        assert_eq!(nf_whole_points(12, &mut points), NfStatus::Ok);
        assert_eq!(points, 4);
        assert_eq!(nf_whole_points(10, &mut points), NfStatus::BadArgument);
    }
    assert_eq!(points, 4);
    assert!(last_error().contains("10 numbers"), "{}", last_error());
}

#[test]
fn queries_and_sums_run_side_by_side_on_one_engine() {
    let made = Made::new();
    let engine = made.engine as usize;
    let ask = |thread: usize| {
        for round in 0..100 {
            let engine = engine as *mut NfEngine;
            let point = made.points[(7 * round + thread) % 1000];
            let (mut query, mut lists) = (ptr::null_mut(), no_lists());
            // SAFETY: there is one point, and the places are there.
            unsafe {
                let status = nf_query_f32(engine, point.as_ptr(), 1, 12, 0, &mut query);
                assert_eq!(status, NfStatus::Ok);
                assert_eq!(nf_query_lists(query, &mut lists), NfStatus::Ok);
                let inner = point.iter().all(|x| (1.0..9.0).contains(x));
                let expected = if inner { 19 } else { lists.pairs };
                assert_eq!(lists.pairs, expected, "the point itself and 18 around it");
                let mut counts = vec![0; 1000];
                let status = nf_count_neighbors(engine, 0, 0, counts.as_mut_ptr(), 1000);
                assert_eq!((status, counts[555]), (NfStatus::Ok, 18));
            }
            assert_eq!(nf_query_free(query), NfStatus::Ok);
        }
    };
    std::thread::scope(|scope| {
        let ask = &ask;
        for thread in 0..4 {
            scope.spawn(move || ask(thread));
        }
    });
    assert_eq!(
        nf_set_radius(made.engine, 1.0),
        NfStatus::Ok,
        "nothing is in use any more"
    );
}

#[test]
fn the_last_error_stays_in_one_place_and_is_cut_there() {
    let place = nf_last_error();
    let text = || {
        // SAFETY: the place is the text of the last failure for as long as the thread runs.
        let text = unsafe { CStr::from_ptr(place) };
        text.to_str().unwrap().to_owned()
    };
    assert_eq!(text(), "");
    for name in ["one", &"long".repeat(1000), &"ä".repeat(2000), "two"] {
        let name = std::ffi::CString::new(name).unwrap();
        let mut options = options(1.0);
        options.device = name.as_ptr();
        let mut engine = ptr::null_mut();
        // SAFETY: the options and the place are there.
        let status = unsafe { nf_engine_new(&options, &mut engine) };
        assert_eq!((status, nf_last_error()), (NfStatus::BadArgument, place));
        let found = text();
        let whole = found.contains(name.to_str().unwrap());
        assert!(whole || (found.ends_with(" [...]") && found.len() > 4080 && found.len() < 4096));
    }
}

/// Frees something that is not an engine when its thread ends.
struct FreesAtTheEnd;

impl Drop for FreesAtTheEnd {
    fn drop(&mut self) {
        assert_eq!(nf_engine_free(5 as *mut NfEngine), NfStatus::BadHandle);
        // SAFETY: never null.
        assert!(!unsafe { CStr::from_ptr(nf_last_error()) }.is_empty());
    }
}

thread_local! {
    static AT_THE_END: FreesAtTheEnd = const { FreesAtTheEnd };
}

#[test]
fn a_call_that_fails_while_its_thread_ends_returns() {
    let ended = std::thread::spawn(|| {
        // Made before there is an error text, whose place is there to the end.
        AT_THE_END.with(|_| ());
        assert_eq!(nf_engine_free(5 as *mut NfEngine), NfStatus::BadHandle);
    });
    assert!(ended.join().is_ok());
}
