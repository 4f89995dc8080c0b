//! One GPU, ready to work: its stream, its programs, and page-locked memory.
//!
//! Backends of one GPU share a context and the programs loaded there. Each has a stream of its own,
//! which orders everything the backend starts. A forked child shares nothing with its parent.
//!
//! # Events of cudarc
//!
//! cudarc can guard every array by events, so that streams wait for each other's uses. It is told
//! not to: a backend has one stream, streams beside it are joined where their work meets, and no
//! buffer is used by two backends.
//!
//! # Sharing
//!
//! A GPU that was opened stays open until the process ends, with its context and programs: making
//! them takes a fifth of a second, which a program that makes an engine for every call would pay
//! again and again. When no backend uses it and the driver refuses work in its context, or another
//! library has reset the device, it is opened anew. Opening a GPU holds the lock of the table, so
//! two threads that start backends of one GPU compile its programs once.

use crate::{
    driver::{ContextId, DeviceInfo, describe, open},
    error::{Error, ErrorKind},
    handles::{Context, DeviceValue, Event, Stream},
    launch::{
        AscendKernels, ColumnPairsKernel, ColumnsKernel, GridKernels, PointDataKernels,
        ShareKernels, SlotKernels, TraversalKernels,
    },
    memory::{HostBuffer, HostCopy, Queue},
    program::{Module, Modules, Program},
    traversal::{Traversal, Traversals},
};
use cudarc::driver::{ValidAsZeroBits, sys::CUevent_flags};
use nearfield_grid::{PerProcess, Precision};
use std::{
    collections::HashMap,
    ffi::c_void,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// One GPU, ready to work.
///
/// Backends of one GPU share its context and the programs loaded there, which stay until the
/// process ends; each has a stream of its own.
#[derive(Debug)]
pub struct GpuBackend {
    /// Context and programs of the GPU.
    pub(super) shared: Arc<Shared>,
    /// Where the backend's work is ordered, counted and timed.
    pub(super) stream: Queue,
    /// Page-locked buffers made for it so far.
    host_buffers: AtomicU64,
}

/// State that all backends of a GPU share.
#[derive(Debug)]
pub(super) struct Shared {
    /// The device's primary context.
    pub(super) context: Context,
    /// Which context that was: after a reset the device has another one of the same handle.
    id: ContextId,
    /// Programs loaded there.
    pub(super) modules: Modules,
    /// Loaded with the first backend: every step sorts.
    pub(super) grid: GridKernels,
    /// Loaded when points of double precision are first sorted.
    double: OnceLock<GridKernels>,
    /// Loaded when a backend first works beside another.
    pub(super) share: OnceLock<ShareKernels>,
    /// Loaded when lists are first to ascend.
    ascend: [OnceLock<AscendKernels>; 2],
    /// Loaded when lists are first traversed.
    slots: OnceLock<SlotKernels>,
    /// Loaded when lists are first written to arrays of the caller.
    columns: OnceLock<ColumnsKernel>,
    /// Loaded when pairs of lists are first computed.
    column_pairs: [OnceLock<ColumnPairsKernel>; 2],
    /// Loaded when data of points first come from the device.
    point_data: OnceLock<PointDataKernels>,
    /// Loaded when a job first asks for them.
    pub(super) traversals: Traversals,
    /// Name, architecture and memory.
    pub(super) device: DeviceInfo,
}

/// The GPUs that were opened, by number. Of this process: a forked child may neither use those of
/// its parent nor wait for a lock that a thread of the parent held.
static OPENED: PerProcess<Mutex<HashMap<u32, Arc<Shared>>>> = PerProcess::empty();

impl Shared {
    /// The kernels for work beside another backend, compiled when they are first asked for.
    ///
    /// # Errors
    /// The errors of compiling and loading a program.
    pub(super) fn share(&self) -> Result<&ShareKernels, Error> {
        self.loaded(&self.share, ShareKernels::load)
    }

    /// The kernels that sort points of a precision; those of double precision are compiled when
    /// they are first asked for.
    ///
    /// # Errors
    /// The errors of compiling and loading a program.
    pub(super) fn sorts(&self, precision: Precision) -> Result<&GridKernels, Error> {
        match precision {
            Precision::Single => Ok(&self.grid),
            Precision::Double => self.loaded(&self.double, |modules| {
                GridKernels::load(modules, Precision::Double)
            }),
        }
    }

    /// The kernel that sorts lists with geometry in a precision, compiled when it is first asked
    /// for.
    ///
    /// # Errors
    /// The errors of compiling and loading a program.
    pub(super) fn ascend(&self, precision: Precision) -> Result<&AscendKernels, Error> {
        match precision {
            Precision::Single => self.loaded(&self.ascend[0], |modules| {
                AscendKernels::load(modules, Precision::Single)
            }),
            Precision::Double => self.loaded(&self.ascend[1], |modules| {
                AscendKernels::load(modules, Precision::Double)
            }),
        }
    }

    /// The kernels for traversals over lists, compiled when they are first asked for.
    ///
    /// # Errors
    /// The errors of compiling and loading a program.
    pub(super) fn slots(&self) -> Result<&SlotKernels, Error> {
        self.loaded(&self.slots, SlotKernels::load)
    }

    /// The kernel that copies lists to arrays of pairs, compiled when it is first asked for.
    ///
    /// # Errors
    /// The errors of compiling and loading a program.
    pub(super) fn columns(&self) -> Result<&ColumnsKernel, Error> {
        self.loaded(&self.columns, ColumnsKernel::load)
    }

    /// The kernel that computes pairs of lists in a precision, compiled when it is first asked for.
    ///
    /// # Errors
    /// The errors of compiling and loading a program.
    pub(super) fn column_pairs(&self, precision: Precision) -> Result<&ColumnPairsKernel, Error> {
        match precision {
            Precision::Single => self.loaded(&self.column_pairs[0], |modules| {
                ColumnPairsKernel::load(modules, Precision::Single)
            }),
            Precision::Double => self.loaded(&self.column_pairs[1], |modules| {
                ColumnPairsKernel::load(modules, Precision::Double)
            }),
        }
    }

    /// The kernels that take data of points from the device, compiled when they are first asked
    /// for.
    ///
    /// # Errors
    /// The errors of compiling and loading a program.
    pub(super) fn point_data(&self) -> Result<&PointDataKernels, Error> {
        self.loaded(&self.point_data, PointDataKernels::load)
    }

    /// The kernels in their place, loaded if they are not there.
    fn loaded<'a, T>(
        &self,
        place: &'a OnceLock<T>,
        load: fn(&Modules) -> Result<T, Error>,
    ) -> Result<&'a T, Error> {
        match place.get() {
            Some(kernels) => Ok(kernels),
            None => {
                let kernels = load(&self.modules)?;
                Ok(place.get_or_init(|| kernels))
            }
        }
    }

    /// GPU `device`, opened if it is not open or does not work any more.
    fn of(device: u32) -> Result<Arc<Self>, Error> {
        let opened = OPENED.get_or_make(Mutex::default);
        let mut opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = opened.get(&device) {
            if shared.is_there() && (Arc::strong_count(shared) > 1 || shared.works()) {
                return Ok(shared.clone());
            }
            if let Some(shared) = opened.remove(&device) {
                Self::close(shared);
            }
        }
        let context = open(device)?;
        // SAFETY: a backend's work is on its one stream, which orders it; lists and fields are
        // copied on streams that it is joined with before either uses what the other wrote; no
        // buffer is used by two backends, and results are read after their stream, or a mark behind
        // their copy, was waited for.
        unsafe { context.0.disable_event_tracking() };
        let modules = Modules::new(&context)?;
        let shared = Arc::new(Self {
            grid: GridKernels::load(&modules, Precision::Single)?,
            double: OnceLock::new(),
            share: OnceLock::new(),
            ascend: [const { OnceLock::new() }; 2],
            slots: OnceLock::new(),
            columns: OnceLock::new(),
            column_pairs: Default::default(),
            point_data: OnceLock::new(),
            id: ContextId::of(&context.0)?,
            context,
            modules,
            traversals: Traversals::default(),
            device: describe(device)?,
        });
        opened.insert(device, shared.clone());
        let DeviceInfo { name, arch, .. } = &shared.device;
        tracing::debug!(name: "gpu.device", gpu = %name, arch = %arch, number = device);
        Ok(shared)
    }

    /// Returns true if the context that was opened still exists, and its programs with it.
    fn is_there(&self) -> bool {
        ContextId::of(&self.context.0).is_ok_and(|id| id == self.id)
    }

    /// Returns true if the context is usable; after a fault of a kernel it is not. Does not wait
    /// for work: other libraries share the context, and theirs may take long.
    fn works(&self) -> bool {
        self.context.0.mem_get_info().is_ok()
    }

    /// Gives up a GPU that does not work.
    fn close(shared: Arc<Self>) {
        // What a reset has freed already, of a context that may be another library's now, must not
        // be freed again.
        if !shared.is_there() {
            std::mem::forget(shared);
        }
    }
}

impl GpuBackend {
    /// Starts GPU `device`, numbered from 0, and loads what every step needs.
    ///
    /// # Errors
    /// The errors of [`open`], and those of compiling and loading programs.
    pub fn new(device: u32) -> Result<Self, Error> {
        let shared = Shared::of(device)?;
        let stream = shared
            .context
            .new_stream()
            .map_err(|error| Error::of_call("cuStreamCreate", error))?;
        Ok(Self::of(shared, stream))
    }

    /// As [`new`](Self::new), for work in the order of a stream of the caller's, on the stream's
    /// GPU.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn on(stream: &Stream) -> Result<Self, Error> {
        let device = u32::try_from(stream.ordinal()).unwrap_or(u32::MAX);
        Ok(Self::of(Shared::of(device)?, stream.clone()))
    }

    /// As [`new`](Self::new), for work in the order of a stream that another library owns.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// # Safety
    /// `stream` is null, for the default stream, or a stream of the device's primary context that
    /// stays there for as long as the backend, or anything made on it.
    pub unsafe fn on_borrowed(device: u32, stream: *mut c_void) -> Result<Self, Error> {
        let shared = Shared::of(device)?;
        // SAFETY: null, or a stream of the device's primary context that outlives the backend, says
        // the caller; `Shared` holds that context.
        let stream = unsafe { shared.context.borrow_stream(stream) };
        Ok(Self::of(shared, stream))
    }

    /// A backend on a stream of the shared context.
    fn of(shared: Arc<Shared>, stream: Stream) -> Self {
        Self {
            shared,
            stream: Queue::new(stream),
            host_buffers: AtomicU64::new(0),
        }
    }

    /// The stream on which the backend does everything, for callers that order work of their own
    /// behind it.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The stream with what counts and times its work.
    pub fn queue(&self) -> &Queue {
        &self.stream
    }

    /// The queue in `kept`, made when first asked for: it runs beside what the backend does, and
    /// its copies are counted with the backend's.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`].
    pub(super) fn beside(&self, kept: &mut Option<Queue>) -> Result<Queue, Error> {
        if let Some(queue) = kept {
            return Ok(queue.clone());
        }
        Ok(kept.insert(self.stream.beside()?).clone())
    }

    /// Why the cache of machine code is not used, if it is not: every program is then compiled by
    /// each process.
    pub fn cache_refused(&self) -> Option<String> {
        let refused = self.shared.modules.store().refused();
        refused.map(ToString::to_string)
    }

    /// A program of the caller's, compiled (or found in the cache) and loaded for this GPU.
    ///
    /// # Errors
    /// The errors of [`Modules::load`].
    pub fn load(&self, program: &Program) -> Result<Arc<Module>, Error> {
        self.shared.modules.load(program)
    }

    /// Refuses arrays of another GPU: `found` is the number of an array's GPU, `what` its name in
    /// the message.
    ///
    /// # Errors
    /// [`ErrorKind::OtherDevice`].
    pub(super) fn holds(&self, what: &'static str, found: usize) -> Result<(), Error> {
        let expected = self.stream.ordinal();
        if found == expected {
            return Ok(());
        }
        Err(Error::from(ErrorKind::OtherDevice {
            what,
            found,
            expected,
        }))
    }

    /// The GPU.
    pub fn device(&self) -> &DeviceInfo {
        &self.shared.device
    }

    /// Waits for everything that was started.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`] when any of it failed.
    pub fn wait(&self) -> Result<(), Error> {
        self.stream.synchronize()
    }

    /// Milliseconds that `work` takes on the device, from the start of its first kernel to the end
    /// of its last, and what it gives.
    ///
    /// # Errors
    /// The errors of `work`, and [`ErrorKind::Driver`].
    pub fn timed<T>(&self, work: impl FnOnce() -> Result<T, Error>) -> Result<(T, f32), Error> {
        let begin = self.mark()?;
        let result = work()?;
        let milliseconds = self.since(&begin)?;
        Ok((result, milliseconds))
    }

    /// A mark in the backend's work, for [`since`](Self::since).
    ///
    /// # Errors
    /// [`ErrorKind::Driver`].
    pub fn mark(&self) -> Result<Event, Error> {
        let event = self
            .stream
            .0
            .record_event(Some(CUevent_flags::CU_EVENT_DEFAULT));
        event
            .map(Event)
            .map_err(|error| Error::of_call("cuEventRecord", error))
    }

    /// Milliseconds of the device from a mark to the end of what has been started; waits for it.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`].
    pub fn since(&self, begin: &Event) -> Result<f32, Error> {
        self.between(begin, &self.mark()?)
    }

    /// Milliseconds of the device from one mark to another; waits for it.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`].
    pub fn between(&self, begin: &Event, end: &Event) -> Result<f32, Error> {
        elapsed(begin, end)
    }

    /// The kernels of a traversal, compiled and loaded when they are first asked for.
    ///
    /// # Errors
    /// The errors of [`Modules::load`].
    pub(super) fn traversal(&self, traversal: Traversal) -> Result<Arc<TraversalKernels>, Error> {
        let shared = &self.shared;
        shared.traversals.get(&shared.modules, &traversal)
    }
}

/// Milliseconds of the device between two timed events; waits for both.
///
/// # Errors
/// [`ErrorKind::Driver`] if one of them was not recorded or work before it failed.
pub(super) fn elapsed(begin: &Event, end: &Event) -> Result<f32, Error> {
    let milliseconds = begin.0.elapsed_ms(&end.0);
    milliseconds.map_err(|error| Error::of_call("cuEventElapsedTime", error))
}

impl GpuBackend {
    /// Page-locked memory for at least `len` elements: `old`, where it suffices, or else new memory
    /// with an eighth more, so that a set that grows does not take it anew every step.
    ///
    /// # Errors
    /// As [`host_buffer`](Self::host_buffer).
    pub fn host_room<T: DeviceValue>(
        &self,
        old: Option<HostBuffer<T>>,
        len: usize,
    ) -> Result<HostBuffer<T>, Error> {
        match old.filter(|old| old.len() >= len) {
            Some(old) => Ok(old),
            None => self.host_buffer(len + len / 8),
        }
    }

    /// Page-locked memory for `len` elements, all zero.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`] when the system has none to give.
    pub fn host_buffer<T: DeviceValue>(&self, len: usize) -> Result<HostBuffer<T>, Error> {
        self.host_buffer_of(len)
    }

    /// As [`host_buffer`](Self::host_buffer), for any values that may be all zero.
    fn host_buffer_of<T: ValidAsZeroBits>(&self, len: usize) -> Result<HostBuffer<T>, Error> {
        let buffer = HostBuffer::new(&self.shared.context.0, len)?;
        self.host_buffers.fetch_add(1, Ordering::Relaxed);
        Ok(buffer)
    }

    /// Page-locked memory that `len` values are copied to again and again.
    ///
    /// # Errors
    /// As [`host_buffer`](Self::host_buffer).
    pub fn host_copy<T: DeviceValue>(&self, len: usize) -> Result<HostCopy<T>, Error> {
        self.host_copy_of(len)
    }

    /// As [`host_copy`](Self::host_copy), for any values that may be all zero.
    pub(super) fn host_copy_of<T: ValidAsZeroBits>(
        &self,
        len: usize,
    ) -> Result<HostCopy<T>, Error> {
        self.host_buffer_of(len).map(HostCopy::new)
    }

    /// Buffers of page-locked memory made so far: a step in which one was made took longer than
    /// others.
    pub fn host_buffers_made(&self) -> u64 {
        self.host_buffers.load(Ordering::Relaxed)
    }
}
