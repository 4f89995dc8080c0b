//! The calls themselves.

use super::{
    input::{Broken, Call, Handle, Odd, Points, Room, Setup},
    memory::Results,
};
use nearfield_c::*;
use std::{
    ffi::{CStr, c_char, c_void},
    ptr,
    sync::atomic::{AtomicU32, Ordering},
};

/// Radii, usual and impossible.
const RADII: [f64; 12] = [
    1.0,
    0.5,
    2.0,
    1.0,
    0.25,
    3.0,
    0.0,
    -1.0,
    f64::NAN,
    f64::INFINITY,
    1e-30,
    1e300,
];

/// Lengths of the box; none along an open axis. Boxes far below the radius have many images.
const LENGTHS: [Option<f64>; 10] = [
    None,
    Some(4.0),
    None,
    Some(1.5),
    Some(0.75),
    Some(1e8),
    Some(0.0),
    Some(-3.0),
    Some(f64::NAN),
    None,
];

const DEVICES: [Option<&CStr>; 8] = [
    None,
    Some(c"cpu"),
    None,
    Some(c"auto"),
    Some(c"emulated:speed=3"),
    Some(c"gpu:900"),
    Some(c"nonsense"),
    Some(c""),
];

/// A set at most.
const MAX_POINTS: usize = 48;
/// Engines of a session at most.
const MAX_ENGINES: usize = 4;

/// A program that calls the interface.
#[derive(Default)]
pub(super) struct Caller {
    /// All that were made.
    engines: Vec<*mut NfEngine>,
    /// Lists that were got, and the engine they are of.
    kept: Vec<(*mut NfEngine, NfLists)>,
}

/// Points as C has them.
struct Array {
    bytes: Vec<u8>,
    first: usize,
    points: usize,
    stride: usize,
    double: bool,
}

impl Array {
    fn new(points: &Points) -> Self {
        let places = &points.places[..points.places.len().min(MAX_POINTS)];
        let size = if points.double { 24 } else { 12 };
        let stride = size + usize::from(points.gap % 9);
        let first = usize::from(points.shift % 9);
        let mut bytes = vec![0xff; first + places.len() * stride];
        for (n, place) in places.iter().enumerate() {
            let mut place = place.map(|x| f64::from(x) / 16.0);
            if let Some((at, odd)) = points.odd
                && usize::from(at) / 3 == n
            {
                place[usize::from(at) % 3] = odd.coordinate(points.double);
            }
            let begin = first + n * stride;
            for axis in 0..3 {
                if points.double {
                    bytes[begin + 8 * axis..][..8].copy_from_slice(&place[axis].to_ne_bytes());
                } else {
                    let single = place[axis] as f32;
                    bytes[begin + 4 * axis..][..4].copy_from_slice(&single.to_ne_bytes());
                }
            }
        }
        // Nothing lies behind the last coordinate.
        bytes.truncate((first + places.len() * stride).saturating_sub(stride - size));
        Self {
            first,
            points: places.len(),
            stride,
            double: points.double,
            bytes,
        }
    }

    fn place<T>(&self) -> *const T {
        self.bytes.as_ptr().wrapping_add(self.first).cast()
    }
}

impl Odd {
    fn coordinate(self, double: bool) -> f64 {
        match (self, double) {
            (Self::Nan, _) => f64::NAN,
            (Self::Infinite, _) => f64::NEG_INFINITY,
            (Self::Far, _) => 1e9,
            (Self::Largest, true) => f64::MAX,
            (Self::Largest, false) => f64::from(f32::MAX),
        }
    }
}

/// Checks that a call that failed left a text.
fn failed(status: NfStatus) -> bool {
    assert_ne!(status, NfStatus::Internal, "{}", last_error());
    if status != NfStatus::Ok {
        let text = last_error();
        assert!(!text.is_empty() && text.len() < 4000, "{status:?}: {text}");
    }
    status != NfStatus::Ok
}

fn last_error() -> String {
    // SAFETY: the text stays until the next call of this thread.
    let text = unsafe { CStr::from_ptr(nf_last_error()) };
    text.to_str().expect("texts are UTF-8").to_owned()
}

impl Room {
    /// The length that is announced.
    fn length(self, wanted: usize) -> usize {
        match self {
            Self::Fits | Self::FitsToo | Self::Null => wanted,
            Self::Off(by) => wanted.saturating_add_signed(isize::from(by)),
        }
    }

    /// Where results go; null where there is to be no array.
    fn place<T>(self, results: &mut Results) -> *mut T {
        match self {
            Self::Null => ptr::null_mut(),
            _ => results.place(),
        }
    }
}

impl Caller {
    fn engine(&self, handle: Handle) -> *mut NfEngine {
        let at = |n: usize| self.engines.get(n % self.engines.len().max(1)).copied();
        match handle {
            Handle::First => at(0).unwrap_or(ptr::null_mut()),
            Handle::Made(n) => at(n.into()).unwrap_or(ptr::null_mut()),
            Handle::Null => ptr::null_mut(),
            Handle::Any(number) => ptr::without_provenance_mut(number as usize),
        }
    }

    /// Number of points of a set, if there is such an engine and set.
    fn points(engine: *mut NfEngine, set: u8) -> Option<usize> {
        let mut points = usize::MAX;
        // SAFETY: a place for the answer.
        let status = unsafe { nf_points(engine, set.into(), &raw mut points) };
        (!failed(status)).then_some(points)
    }

    pub(super) fn new_engine(&mut self, setup: &Setup) {
        if self.engines.len() == MAX_ENGINES {
            return;
        }
        let mut options = std::mem::MaybeUninit::<NfOptions>::uninit();
        // SAFETY: room for so many bytes.
        let status = unsafe { nf_options_init(options.as_mut_ptr(), size_of::<NfOptions>()) };
        assert_eq!(status, NfStatus::Ok);
        // SAFETY: just filled.
        let mut options = unsafe { options.assume_init() };
        options.radius = RADII[usize::from(setup.radius) % RADII.len()];
        options.precision = setup.double.into();
        options.lists = setup.half.into();
        options.order = setup.ascending.into();
        options.strict = setup.strict.into();
        options.threads = u32::from(setup.threads % 3) + 1;
        options.subdivision = (setup.subdivision % 10).into();
        if setup.memory_limit % 2 == 1 {
            options.memory_limit = setup.memory_limit.into();
        }
        let device = DEVICES[usize::from(setup.device) % DEVICES.len()];
        options.device = device.map_or(ptr::null(), CStr::as_ptr);
        for axis in 0..3 {
            if let Some(length) = LENGTHS[usize::from(setup.axes[axis]) % LENGTHS.len()] {
                options.periodic[axis] = 1;
                options.box_vectors[axis][axis] = length;
            }
        }
        let mut is_null = false;
        let broken = match setup.broken {
            None => false,
            Some(Broken::Size(size)) => {
                options.struct_size = size.into();
                usize::from(size) != size_of::<NfOptions>()
            }
            Some(Broken::Choice(choice)) => {
                options.periodic[0] = choice;
                choice > 1
            }
            Some(Broken::Text) => {
                options.strategy = c"\xff\xfe".as_ptr();
                true
            }
            Some(Broken::Null) => {
                is_null = true;
                true
            }
        };
        let given = if is_null {
            ptr::null()
        } else {
            &raw const options
        };
        let mut engine = ptr::null_mut();
        // SAFETY: null or a structure, and a place for the engine.
        let status = unsafe { nf_engine_new(given, &raw mut engine) };
        if failed(status) {
            assert!(engine.is_null());
        } else {
            assert!(!broken, "settings that cannot be were taken");
            self.engines.push(engine);
        }
    }

    pub(super) fn call(&mut self, call: &Call) {
        match call {
            Call::New(setup) => self.new_engine(setup),
            Call::Free(handle) => {
                failed(nf_engine_free(self.engine(*handle)));
            }
            Call::Add(handle, points) => add(self.engine(*handle), points),
            Call::Update(handle, set, points) => update(self.engine(*handle), *set, points),
            Call::Radius(handle, radius) => {
                let radius = RADII[usize::from(*radius) % RADII.len()];
                failed(nf_set_radius(self.engine(*handle), radius));
            }
            Call::Active(handle, targets, sources, active) => {
                self.set_active(*handle, [*targets, *sources], *active);
            }
            Call::Find(handle) => {
                failed(nf_find_neighbors(self.engine(*handle)));
            }
            Call::Lists(handle, targets, sources) => self.lists(*handle, [*targets, *sources]),
            Call::Kept(handle, lists, point) => self.read_kept(*handle, *lists, *point),
            Call::Csr(handle, targets, sources, room) => {
                csr(self.engine(*handle), [*targets, *sources], *room);
            }
            Call::Query(handle, points, sources) => query(self.engine(*handle), points, *sources),
            Call::Count(handle, targets, sources, room) => {
                count(self.engine(*handle), [*targets, *sources], *room);
            }
            Call::Density(handle, targets, sources, room, deliver) => {
                density(self.engine(*handle), [*targets, *sources], *room, *deliver);
            }
            Call::Force(handle, targets, sources, room, deliver) => {
                force(self.engine(*handle), [*targets, *sources], *room, *deliver);
            }
            Call::Batches(handle, targets, sources, stop) => {
                batches(self.engine(*handle), [*targets, *sources], *stop);
            }
            Call::Sort(handle, set, room) => sort(self.engine(*handle), *set, *room),
            Call::Texts(handle, capacity) => texts(self.engine(*handle), (*capacity).into()),
            Call::Status(status) => {
                // SAFETY: every number has a text that stays.
                let text = unsafe { CStr::from_ptr(nf_status_text(*status)) };
                assert!(!text.is_empty());
            }
        }
    }

    fn set_active(&self, handle: Handle, [targets, sources]: [u8; 2], active: u8) {
        let engine = self.engine(handle);
        let (targets, sources) = (targets.into(), sources.into());
        let status = nf_set_active(engine, targets, sources, active.into());
        if failed(status) {
            return;
        }
        let mut found = u32::MAX;
        // SAFETY: a place for the answer.
        let status = unsafe { nf_is_active(engine, targets, sources, &raw mut found) };
        assert_eq!((status, found), (NfStatus::Ok, active.into()));
    }

    /// Gets lists, reads all of them, and keeps them to be asked for later.
    fn lists(&mut self, handle: Handle, [targets, sources]: [u8; 2]) {
        let engine = self.engine(handle);
        let mut lists = std::mem::MaybeUninit::<NfLists>::uninit();
        // SAFETY: a place for the lists.
        let status =
            unsafe { nf_neighbors(engine, targets.into(), sources.into(), lists.as_mut_ptr()) };
        if failed(status) {
            return;
        }
        // SAFETY: filled.
        let lists = unsafe { lists.assume_init() };
        assert_eq!(Self::points(engine, targets), Some(lists.points));
        let points = Self::points(engine, sources).expect("the set is there");
        check_lists(&lists, points);
        for point in 0..=lists.points {
            let found = of_point(engine, &lists, point);
            assert_eq!(found.is_ok(), point < lists.points);
        }
        if self.kept.len() < 8 {
            self.kept.push((engine, lists));
        }
    }

    /// Lists got earlier are read if they are current and refused if not, also those of engines
    /// that were changed or freed.
    fn read_kept(&self, handle: Handle, lists: u8, point: u8) {
        let Some((owner, lists)) = self.kept.get(usize::from(lists) % self.kept.len().max(1))
        else {
            return;
        };
        let engine = self.engine(handle);
        match of_point(engine, lists, point.into()) {
            Ok(_) => assert_eq!(engine, *owner, "lists of another engine were read"),
            Err(status) => assert!(
                matches!(
                    status,
                    NfStatus::OutOfDate
                        | NfStatus::BadHandle
                        | NfStatus::NullPointer
                        | NfStatus::UnknownPoint
                ),
                "{status:?}"
            ),
        }
    }

    pub(super) fn finish(self) {
        for engine in self.engines {
            failed(nf_engine_free(engine));
            assert_eq!(nf_engine_free(engine), NfStatus::BadHandle, "freed twice");
        }
        assert_eq!(nf_engine_free(ptr::null_mut()), NfStatus::Ok);
    }
}

/// The list of a point; every entry is read.
fn of_point(engine: *mut NfEngine, lists: &NfLists, point: usize) -> Result<Vec<u32>, NfStatus> {
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
fn check_lists(lists: &NfLists, sources: usize) {
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

fn add(engine: *mut NfEngine, points: &Points) {
    let array = Array::new(points);
    let mut set = u32::MAX;
    let (points, stride) = (array.points, array.stride);
    // SAFETY: the array holds so many points so far apart, and there is a place for the number.
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
        assert_eq!(Caller::points(engine, set as u8), Some(points));
    }
}

fn update(engine: *mut NfEngine, set: u8, points: &Points) {
    let before = Caller::points(engine, set);
    let array = Array::new(points);
    let (points, stride, number) = (array.points, array.stride, u32::from(set));
    // SAFETY: the array holds so many points so far apart.
    let status = unsafe {
        if array.double {
            nf_update_f64(engine, number, array.place(), points, stride)
        } else {
            nf_update_f32(engine, number, array.place(), points, stride)
        }
    };
    let expected = if failed(status) { before } else { Some(points) };
    assert_eq!(Caller::points(engine, set), expected);
}

/// As compressed rows; they are the lists.
fn csr(engine: *mut NfEngine, [targets, sources]: [u8; 2], room: Room) {
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
        let sources = Caller::points(engine, sources as u8).expect("the set is there");
        assert!(
            indices
                .u32s()
                .iter()
                .all(|index| (*index as usize) < sources)
        );
    }
}

fn query(engine: *mut NfEngine, points: &Points, sources: u8) {
    let array = Array::new(points);
    let mut found = ptr::null_mut();
    let (points, stride, number) = (array.points, array.stride, u32::from(sources));
    // SAFETY: the array holds so many points so far apart, and there is a place for the query.
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
        Caller::points(engine, sources).expect("the set is there"),
    );
    assert_eq!(nf_query_free(found), NfStatus::Ok);
    assert_eq!(nf_query_free(found), NfStatus::BadHandle);
}

fn count(engine: *mut NfEngine, [targets, sources]: [u8; 2], room: Room) {
    let points = Caller::points(engine, targets).unwrap_or(3);
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

fn density(engine: *mut NfEngine, [targets, sources]: [u8; 2], room: Room, deliver: u8) {
    let points = Caller::points(engine, targets).unwrap_or(3);
    let masses = vec![1.0f32; Caller::points(engine, sources).unwrap_or(2)];
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
            masses.as_ptr(),
            masses.len(),
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

fn force(engine: *mut NfEngine, [targets, sources]: [u8; 2], room: Room, deliver: u8) {
    let points = Caller::points(engine, targets).unwrap_or(3);
    let others = Caller::points(engine, sources).unwrap_or(2);
    let ones = vec![1.0f32; 3 * points.max(others)];
    let fields = |points: usize| NfSphPoints {
        points,
        velocity: ones.as_ptr(),
        density: ones.as_ptr(),
        pressure: ones.as_ptr(),
        mass: ones.as_ptr(),
    };
    let (of_targets, of_sources) = (fields(points), fields(others));
    let parameters = NfSphForce {
        support: RADII[usize::from(deliver) / 3 % RADII.len()] as f32,
        alpha_c: 0.5,
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
    // SAFETY: a batch has so many pairs.
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

fn batches(engine: *mut NfEngine, [targets, sources]: [u8; 2], stop: Option<u8>) {
    let mut user = Visit {
        engine,
        left: AtomicU32::new(stop.map_or(u32::MAX, u32::from)),
        sources: Caller::points(engine, sources).unwrap_or(0),
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

fn sort(engine: *mut NfEngine, set: u8, room: Room) {
    let points = Caller::points(engine, set).unwrap_or(3);
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
fn texts(engine: *mut NfEngine, capacity: usize) {
    type Copy = unsafe extern "C" fn(*const NfEngine, *mut c_char, usize, *mut usize) -> NfStatus;
    for copy in [nf_report as Copy, nf_engine_error as Copy] {
        let mut needed = 0;
        // SAFETY: no buffer, and a place for the length.
        let asked = unsafe { copy(engine, ptr::null_mut(), 0, &raw mut needed) };
        let mut buffer = Results::of::<u8>(capacity);
        // SAFETY: a buffer of so many bytes.
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
