//! A caller of the interface: its engines, and each call of a session.

use super::{
    answers::*,
    common::{RADII, failed, points},
    input::{Broken, Call, Handle, Setup},
};
use nearfield_c::*;
use std::{ffi::CStr, ptr};

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

    pub(super) fn new_engine(&mut self, setup: &Setup) {
        if self.engines.len() == MAX_ENGINES {
            return;
        }
        let mut options = std::mem::MaybeUninit::<NfOptions>::uninit();
        // SAFETY: there is room for an `NfOptions`.
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
        assert_eq!(points(engine, targets), Some(lists.points));
        let held = points(engine, sources).expect("the set is there");
        check_lists(&lists, held);
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
