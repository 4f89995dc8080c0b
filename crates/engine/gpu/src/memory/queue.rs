//! The stream of a backend: it starts kernels and copies, counts the bytes and times the work.
//!
//! Every copy is counted in bytes, so that a program can show, and a test can check, that its steps
//! move no data per particle. While a `tracing` subscriber listens, kernels and copies are also
//! timed by events of the device, and reported as `gpu.kernel` and `gpu.copy` once they have ended,
//! as is the time between two [`Moment`]s that a caller calls an exchange, as `gpu.exchange`;
//! blocking calls of the host then appear as the spans `host.wait` and `host.copy`.
//!
//! # Times of the device on the host's clock
//!
//! Events of the device tell the time between two of them, not a time of day. An *anchor* ties the
//! clocks together: an event is recorded on an idle stream, and the host notes the time at which it
//! sees its end. A kernel that began x milliseconds after the anchor's event began x milliseconds
//! after that time, to within the time that the host took to see the event (`clock_error`, reported
//! with every time). Two events with no work between them are some microseconds apart, which is
//! measured beside every anchor and taken off each duration. `f32` milliseconds lose precision with
//! distance, so a new anchor is made after a second, at the next wait.
//!
//! Kernels run between two events each; the events are kept and used again. At most 16,384 kernels
//! and copies wait for their report, so a program that never waits cannot fill the memory; a
//! warning tells how many were left out. Without a subscriber no event is recorded and nothing is
//! locked.
//!
//! # One wait for several answers
//!
//! A [`HostCopy`] is a few numbers that the host reads after a step. Copies are numbered per
//! stream; a wait for the stream notes the last number started before it. Reading an answer whose
//! number is not above that waits no more.

use super::{
    host::HostBuffer,
    timeline::{Anchor, Direction, Moment, Timed, Timeline, Work},
};
use crate::{
    error::{Error, ErrorKind, fits},
    handles::{DeviceBuffer, DeviceValue, DeviceView, DeviceViewMut, Event, Stream},
};
use cudarc::driver::{
    CudaEvent, CudaView, DevicePtr, DevicePtrMut, DeviceRepr, DeviceSlice, LaunchArgs,
    LaunchConfig,
    result::{self, DriverError as RawError},
    sys::{CUdeviceptr, CUevent_flags},
};
use std::{
    fmt,
    ops::Deref,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Events are given in milliseconds as `f32`: after this time since the anchor they are still told
/// apart to a tenth of a microsecond.
const ANCHOR_LASTS: Duration = Duration::from_secs(1);

/// A CUDA stream whose copies are counted and, while a trace is recorded, whose work is timed.
#[derive(Debug, Clone)]
pub struct Queue {
    stream: Stream,
    /// Shared with clones of this queue.
    waits: Arc<Waits>,
    /// Shared with the queues beside this one.
    meter: Arc<Meter>,
}

/// Copies to [`HostCopy`] on one stream: what was waited for once needs no second wait.
#[derive(Debug, Default)]
struct Waits {
    /// Copies started so far.
    started: AtomicU64,
    /// Copies known to have ended.
    ended: AtomicU64,
}

/// Bytes that were copied between host and device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Transfers {
    /// From the device to the host.
    pub to_host: u64,
    /// From the host to the device.
    pub to_device: u64,
}

/// Counts and times of all streams of a backend.
#[derive(Debug, Default)]
struct Meter {
    /// Bytes copied to the host.
    to_host: AtomicU64,
    /// Bytes copied to the device.
    to_device: AtomicU64,
    /// Locked for moments only, and only while a trace is recorded.
    timeline: Mutex<Timeline>,
}

/// Page-locked memory that a copy is writing to.
#[derive(Debug)]
pub struct Arriving<T> {
    /// Dropped first, which waits for the copy.
    buffer: HostBuffer<T>,
    /// Behind the copy.
    arrived: Event,
    /// The array that is copied, alive as long as the copy.
    _from: Arc<DeviceBuffer<T>>,
}

impl<T> Arriving<T> {
    /// Waits for the copy.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`] when it failed.
    pub fn wait(self) -> Result<HostBuffer<T>, Error> {
        let arrived = self.arrived.synchronize();
        arrived.map_err(|error| Error::of_call("copying to the host", error))?;
        Ok(self.buffer)
    }
}

/// Page-locked memory for a few values that are copied again and again: the copy takes no time of
/// the host, and one wait serves several.
#[derive(Debug)]
pub struct HostCopy<T> {
    buffer: HostBuffer<T>,
    /// Behind the last copy; kept for the next one.
    copied: Option<Event>,
    /// The stream of the last copy, and the copy's number there.
    under_way: Option<(Queue, u64)>,
}

impl<T> HostCopy<T> {
    /// Copies to this memory.
    pub(crate) fn new(buffer: HostBuffer<T>) -> Self {
        Self {
            buffer,
            copied: None,
            under_way: None,
        }
    }

    /// Waits for the last copy that was started, and returns the values.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`] when something on its stream failed.
    pub fn read(&mut self) -> Result<&[T], Error> {
        self.wait()?;
        Ok(&self.buffer)
    }

    /// Waits for the last copy, but not for what was started behind it, unless its stream has been
    /// waited for since.
    fn wait(&mut self) -> Result<(), Error> {
        if let Some((queue, number)) = &self.under_way
            && queue.waits.ended.load(Ordering::Acquire) < *number
        {
            match &self.copied {
                Some(copied) => {
                    let waited = copied.synchronize();
                    waited.map_err(|error| Error::of_call("copying to the host", error))?;
                }
                None => queue.synchronize()?,
            }
        }
        self.under_way = None;
        Ok(())
    }
}

/// Returns true if a subscriber records what the device does.
fn is_recording() -> bool {
    tracing::enabled!(tracing::Level::DEBUG)
}

impl Queue {
    /// A queue on `stream`, whose counts start at 0. Engines have queues of their own, which count
    /// their copies too; this is for programs without one.
    pub fn new(stream: Stream) -> Self {
        Self {
            stream,
            waits: Arc::default(),
            meter: Arc::default(),
        }
    }

    /// A queue on a new stream that runs beside this one, starts after what has been started here,
    /// and is counted with it.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`].
    pub fn beside(&self) -> Result<Self, Error> {
        let stream = self.stream.0.fork().map(Stream);
        let stream = stream.map_err(|error| Error::of_call("making a stream", error))?;
        Ok(Self {
            stream,
            waits: Arc::default(),
            meter: self.meter.clone(),
        })
    }

    /// Returns true if a trace is recorded, and work is timed for it.
    pub fn is_timed(&self) -> bool {
        is_recording()
    }

    /// The moment behind what was started here.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`].
    pub fn moment(&self) -> Result<Moment, Error> {
        let flags = Some(CUevent_flags::CU_EVENT_DEFAULT);
        let event = self.stream.0.record_event(flags);
        Ok(Moment(event.map_err(|error| {
            Error::of_call("marking a stream", error)
        })?))
    }

    /// Reports the time between two moments of this device as an exchange with others, once both
    /// have passed, while a trace is recorded.
    pub fn exchanged(&self, what: &'static str, begin: Moment, end: Moment) {
        if is_recording() {
            self.timeline().add(Timed {
                work: Work::Exchange(what),
                begin: begin.0,
                end: end.0,
            });
        }
    }

    /// Bytes copied so far, by this queue and those [beside](Self::beside) it.
    pub fn transfers(&self) -> Transfers {
        Transfers {
            to_host: self.meter.to_host.load(Ordering::Relaxed),
            to_device: self.meter.to_device.load(Ordering::Relaxed),
        }
    }

    /// Starts a kernel; messages and traces call it `name`.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`] naming the kernel.
    ///
    /// # Safety
    /// The arguments in `launch` are those that the kernel declares, and the kernel reads and
    /// writes nothing but what they and `config` allow.
    pub(crate) unsafe fn launch(
        &self,
        name: &str,
        launch: &mut LaunchArgs<'_>,
        config: LaunchConfig,
    ) -> Result<(), Error> {
        self.timed(
            || Work::Kernel(name.to_owned()),
            // SAFETY: the arguments are those that the kernel declares, says the caller.
            || unsafe { launch.launch(config) }.map(drop),
        )
        .map_err(|error| Error::of_call(format!("starting kernel {name}"), error))
    }

    /// Copies values to the host and waits for them. Messages and traces call them `what`.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] when the lengths differ, and [`ErrorKind::Driver`].
    pub fn copy_to_host<T: DeviceValue>(
        &self,
        what: &'static str,
        from: &DeviceView<'_, T>,
        to: &mut [T],
    ) -> Result<(), Error> {
        self.copy_to_host_of(what, &from.0, to)
    }

    /// As [`copy_to_host`](Self::copy_to_host), of any values that kernels write.
    pub(super) fn copy_to_host_of<T: DeviceRepr>(
        &self,
        what: &'static str,
        from: &CudaView<'_, T>,
        to: &mut [T],
    ) -> Result<(), Error> {
        fits(what, to.len(), from.len())?;
        if to.is_empty() {
            return self.synchronize();
        }
        // Work started before must not count as the copy's time.
        if is_recording() {
            self.synchronize()?;
        }
        let bytes = size_of_val(to) as u64;
        let span = tracing::debug_span!("host.copy", what, direction = "to_host", bytes).entered();
        let (address, _held) = from.device_ptr(&self.stream.0);
        // SAFETY: the view has as many elements, and `to` is waited for before it can be used.
        let started = unsafe { self.start_to_host(what, address, to) };
        let waited = self.wait(what);
        drop(span);
        started.and(waited)
    }

    /// Copies values to the device. Returns when `from` may be changed.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] when the lengths differ, and [`ErrorKind::Driver`].
    pub fn copy_to_device<T: DeviceValue>(
        &self,
        what: &'static str,
        from: &[T],
        to: &mut DeviceViewMut<'_, T>,
    ) -> Result<(), Error> {
        fits(what, from.len(), to.len())?;
        if from.is_empty() {
            return Ok(());
        }
        let bytes = size_of_val(from) as u64;
        let _span =
            tracing::debug_span!("host.copy", what, direction = "to_device", bytes).entered();
        let (address, _held) = to.0.device_ptr_mut(&self.stream.0);
        // SAFETY: the view has as many elements; the driver has read memory that is not page-locked
        // when it returns, and other memory is waited for.
        let started = unsafe { self.start_to_device(what, from, address) };
        let waited = self.wait(what);
        started.and(waited)
    }

    /// A new array of the device with these values, at least one element long: an array cannot be
    /// empty.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`].
    pub fn array<T: DeviceValue>(
        &self,
        what: &'static str,
        values: &[T],
    ) -> Result<DeviceBuffer<T>, Error> {
        let failed = |error| Error::of_call(format!("allocating {what}"), error);
        let mut made = (self.stream.alloc_zeros(values.len().max(1))).map_err(failed)?;
        self.copy_to_device(what, values, &mut made.slice_mut(0..values.len()))?;
        Ok(made)
    }

    /// Copies values from one array of the device to another, without waiting.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] when the lengths differ, and [`ErrorKind::Driver`].
    pub fn copy_on_device<T: DeviceValue>(
        &self,
        what: &'static str,
        from: &DeviceView<'_, T>,
        to: &mut DeviceViewMut<'_, T>,
    ) -> Result<(), Error> {
        fits(what, from.len(), to.len())?;
        if from.is_empty() {
            return Ok(());
        }
        self.copy(
            what,
            Direction::OnDevice,
            size_of::<T>() * from.len(),
            || self.stream.0.memcpy_dtod(&from.0, &mut to.0),
        )
    }

    /// Copies values of a stream of any device to an array of this one, behind the event `ready`,
    /// without waiting. The values are to stay as they are until an event behind the copy.
    ///
    /// # Errors
    /// As [`copy_on_device`](Self::copy_on_device).
    pub fn copy_from_peer<T: DeviceValue>(
        &self,
        what: &'static str,
        from: &DeviceView<'_, T>,
        ready: &Event,
        to: &mut DeviceViewMut<'_, T>,
    ) -> Result<(), Error> {
        fits(what, from.len(), to.len())?;
        if from.is_empty() {
            return Ok(());
        }
        let (here, there) = (self.stream.0.context(), from.0.stream().context());
        let bytes = size_of::<T>() * from.len();
        self.copy(what, Direction::OnDevice, bytes, || {
            self.stream.0.wait(&ready.0)?;
            if here == there {
                return self.stream.0.memcpy_dtod(&from.0, &mut to.0);
            }
            let (source, _held) = from.0.device_ptr(from.0.stream());
            let (target, _kept) = to.0.device_ptr_mut(&self.stream.0);
            let (here, there, stream) = (here.cu_ctx(), there.cu_ctx(), self.stream.0.cu_stream());
            // SAFETY: both arrays have as many bytes, in the contexts of their streams.
            unsafe { result::memcpy_peer_async(here, target, there, source, bytes, stream) }
        })
    }

    /// Starts to copy an array into [page-locked memory](HostBuffer) with room for it, beside what
    /// the host does.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] when there is no room, and [`ErrorKind::Driver`].
    pub fn start_copy<T: DeviceValue>(
        &self,
        what: &'static str,
        from: Arc<DeviceBuffer<T>>,
        mut to: HostBuffer<T>,
    ) -> Result<Arriving<T>, Error> {
        let (len, room) = (from.len(), to.len());
        let Some(place) = to.get_mut(..len) else {
            return Err(Error::from(ErrorKind::FieldLength {
                what,
                found: room,
                expected: len,
            }));
        };
        let (address, held) = from.0.device_ptr(&self.stream.0);
        // SAFETY: the array has as many elements. `Arriving` keeps both, and gives the
        // buffer out only after the copy has ended.
        unsafe { self.start_to_host(what, address, place) }?;
        drop(held);
        let arrived = self.stream.record_event();
        let arrived = arrived.map_err(|error| Error::of_call(format!("copying {what}"), error))?;
        Ok(Arriving {
            buffer: to,
            arrived,
            _from: from,
        })
    }

    /// Starts to copy values to where the host will [read](HostCopy::read) them, which waits.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] when the lengths differ, [`ErrorKind::OtherStream`] when the
    /// values are those of another stream, which may free them before they are read, and
    /// [`ErrorKind::Driver`].
    pub fn start_host_copy<T: DeviceValue>(
        &self,
        what: &'static str,
        from: &DeviceView<'_, T>,
        to: &mut HostCopy<T>,
    ) -> Result<(), Error> {
        self.start_host_copy_of(what, &from.0, to)
    }

    /// As [`start_host_copy`](Self::start_host_copy), of any values that kernels write.
    pub(super) fn start_host_copy_of<T: DeviceRepr>(
        &self,
        what: &'static str,
        from: &CudaView<'_, T>,
        to: &mut HostCopy<T>,
    ) -> Result<(), Error> {
        fits(what, to.buffer.len(), from.len())?;
        if from.stream().cu_stream() != self.stream.0.cu_stream() {
            return Err(Error::from(ErrorKind::OtherStream { what }));
        }
        // An earlier copy that was not read could end after this one, if it is on another stream.
        let stream = self.stream.0.cu_stream();
        let in_order =
            (to.under_way.as_ref()).is_some_and(|(queue, _)| queue.stream.0.cu_stream() == stream);
        if !in_order {
            to.wait()?;
        }
        let (address, _held) = from.device_ptr(&self.stream.0);
        // SAFETY: the view has as many elements, which this stream does not free before the copy.
        // `to` gives the memory out only after the copy has ended.
        unsafe { self.start_to_host(what, address, &mut to.buffer) }?;
        // After the copy, so that a wait that knows the number has waited for the copy.
        let number = self.waits.started.fetch_add(1, Ordering::AcqRel) + 1;
        to.under_way = Some((self.clone(), number));
        // An event that was not recorded says nothing of this copy.
        to.copied = match to.copied.take() {
            Some(event) => event.0.record(&self.stream.0).ok().map(|()| event),
            None => self.stream.record_event().ok(),
        };
        Ok(())
    }

    /// Starts to copy elements from `from` on to `to`.
    ///
    /// # Safety
    /// There are as many elements at `from`, and `to` is not used, moved or given back before the
    /// copy has been waited for.
    pub(super) unsafe fn start_to_host<T: DeviceRepr>(
        &self,
        what: &'static str,
        from: CUdeviceptr,
        to: &mut [T],
    ) -> Result<(), Error> {
        self.copy(what, Direction::ToHost, size_of_val(to), || {
            // SAFETY: there are as many elements at `from`, and `to` is left alone until the copy
            // has been waited for, says the caller.
            unsafe { result::memcpy_dtoh_async(to, from, self.stream.0.cu_stream()) }
        })
    }

    /// Starts to copy `from` to elements from `to` on.
    ///
    /// # Safety
    /// There are as many elements at `to`, and page-locked memory at `from` is not changed or given
    /// back before the copy has been waited for.
    pub(super) unsafe fn start_to_device<T: DeviceRepr>(
        &self,
        what: &'static str,
        from: &[T],
        to: CUdeviceptr,
    ) -> Result<(), Error> {
        self.copy(what, Direction::ToDevice, size_of_val(from), || {
            // SAFETY: there is room for as many elements at `to`, and page-locked memory at `from`
            // is left alone until the copy has been waited for, says the caller.
            unsafe { result::memcpy_htod_async(to, from, self.stream.0.cu_stream()) }
        })
    }

    /// Counts the bytes of a copy between host and device and starts it, timed while a trace is
    /// recorded. The context is made current first: cudarc's calls of the driver rely on it.
    fn copy(
        &self,
        what: &'static str,
        direction: Direction,
        bytes: usize,
        start: impl FnOnce() -> Result<(), RawError>,
    ) -> Result<(), Error> {
        let (verb, counter) = match direction {
            Direction::ToHost => ("downloading", Some(&self.meter.to_host)),
            Direction::ToDevice => ("uploading", Some(&self.meter.to_device)),
            Direction::OnDevice => ("copying", None),
        };
        let failed = |error| Error::of_call(format!("{verb} {what}"), error);
        let bytes = bytes as u64;
        counter.map(|counter| counter.fetch_add(bytes, Ordering::Relaxed));
        self.stream.0.context().bind_to_thread().map_err(failed)?;
        self.timed(|| Work::Copy(what, direction, bytes), start)
            .map_err(failed)
    }

    /// Waits for everything that was started.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`] when any of it failed.
    pub fn synchronize(&self) -> Result<(), Error> {
        // While the device computes the host has time for what ended before.
        self.report();
        let span = tracing::debug_span!("host.wait", what = "kernels").entered();
        let waited = self.wait("results");
        drop(span);
        if is_recording() && waited.is_ok() {
            self.anchor();
        }
        waited
    }

    /// Waits for the stream, and notes that the copies to answers have ended that were started
    /// before. Messages say that the wait was for `what`.
    fn wait(&self, what: &str) -> Result<(), Error> {
        let started = self.waits.started.load(Ordering::Acquire);
        let waited = self.stream.synchronize();
        waited.map_err(|error| Error::of_call(format!("waiting for {what}"), error))?;
        self.waits.ended.fetch_max(started, Ordering::AcqRel);
        Ok(())
    }

    /// Runs `start`, between two events of the device while a trace is recorded.
    pub(super) fn timed(
        &self,
        work: impl FnOnce() -> Work,
        start: impl FnOnce() -> Result<(), RawError>,
    ) -> Result<(), RawError> {
        if !is_recording() {
            return start();
        }
        let begin = self.mark();
        start()?;
        if let (Some(begin), Some(end)) = (begin, self.mark()) {
            let work = work();
            self.timeline().add(Timed { work, begin, end });
        }
        Ok(())
    }

    /// An event behind what was started. A failure is left to what is asked for next.
    fn mark(&self) -> Option<CudaEvent> {
        let spare = self.timeline().spare.pop();
        match spare {
            Some(event) => event.record(&self.stream.0).ok().map(|()| event),
            None => {
                let flags = Some(CUevent_flags::CU_EVENT_DEFAULT);
                self.stream.0.record_event(flags).ok()
            }
        }
    }

    /// The times of all queues of the backend.
    fn timeline(&self) -> MutexGuard<'_, Timeline> {
        // A panic elsewhere leaves whole elements behind.
        (self.meter.timeline.lock()).unwrap_or_else(PoisonError::into_inner)
    }

    /// Ties the clocks together, unless that was done a moment ago. The stream has been waited for.
    fn anchor(&self) {
        let current = |anchor: &Anchor| anchor.at.elapsed() < ANCHOR_LASTS;
        if self.timeline().anchor.as_ref().is_some_and(current) {
            return;
        }
        // Times since the last anchor are reported relative to that anchor.
        self.report();
        let Some((first, second)) = self.mark().zip(self.mark()) else {
            return;
        };
        let begin = Instant::now();
        let Some(event) = self.mark() else { return };
        if event.synchronize().is_err() {
            return;
        }
        let at = Instant::now();
        let nothing = first.elapsed_ms(&second).unwrap_or(0.0);
        let mut timeline = self.timeline();
        timeline.spare.extend([first, second]);
        let last = timeline.anchor.replace(Anchor {
            event,
            at,
            clock_error: at.duration_since(begin).as_nanos() as u64,
            nothing,
        });
        timeline.spare.extend(last.map(|anchor| anchor.event));
    }

    /// Reports the kernels and copies that have ended, while a trace is recorded.
    fn report(&self) {
        if is_recording() && self.stream.0.context().bind_to_thread().is_ok() {
            self.timeline().report();
        }
    }
}

impl Drop for Meter {
    /// The last kernels of a program are reported too.
    fn drop(&mut self) {
        if is_recording() {
            let timeline = self.timeline.get_mut();
            timeline.unwrap_or_else(PoisonError::into_inner).report();
        }
    }
}

impl Deref for Queue {
    type Target = Stream;

    fn deref(&self) -> &Stream {
        &self.stream
    }
}

impl fmt::Display for Transfers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { to_host, to_device } = self;
        write!(f, "{to_host} bytes to the host, {to_device} to the device")
    }
}
