//! Words that travel between ranks: handed over on the device, read and written there by MPI, or
//! copied through page-locked memory.
//!
//! Values to send are gathered on the stream of an engine, that of owned points or that of the
//! border. Ranks that are threads of one process get the array itself, with an event behind the
//! gathering, and copy their part of it from device to device: no host waits. For others the words
//! are copied to the host behind the gathering, so the host waits for the copy and not for work
//! that started later. If MPI reads the array itself, the host waits for the gathering in the same
//! way.
//!
//! Values that arrive are copied on a stream of their own, so they arrive while the engines work.
//! MPI writes them to an array that no stream touches meanwhile; the host has waited for that.
//!
//! **Invariant:** an array that is handed over is changed or freed only behind the copies of all
//! readers: each notes an event behind its copy before it lets go of the array. MPI lets go of an
//! array when it is done with it.

use super::{clock::Clock, direct};
use crate::{
    communicator::{Communicator, message},
    error::{Failure, Refusal},
    transport::{Announced, Handed},
};
use nearfield::{
    device::{
        DeviceBuffer, DeviceEngine, DeviceValue, DeviceView, DriverError, Event, Stream,
        copies::{Arriving, HostBuffer, Queue},
    },
    error::gpu::Error as GpuError,
};
use nearfield_grid::memory::filled;
use std::{
    mem,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

/// A failed call of the driver.
pub(super) fn driver(what: &str, error: DriverError) -> Refusal {
    GpuError::driver(what.to_owned(), error).into()
}

/// An event behind all work so far on an engine's stream.
pub(super) fn behind(engine: &DeviceEngine) -> Result<Arc<Event>, Refusal> {
    let event = engine.stream().record_event();
    let event = event.map_err(|error| driver("marking a stream", error));
    event.map(Arc::new)
}

/// An array of `len` zeros, or of one if `len` is 0: arrays cannot be empty.
pub(super) fn zeros<T: DeviceValue>(
    engine: &DeviceEngine,
    len: usize,
) -> Result<DeviceBuffer<T>, Refusal> {
    let made = engine.stream().alloc_zeros(len.max(1));
    made.map_err(|error| driver("allocating arrays of a rank", error))
}

/// An array of exactly `len` zeros, for the caller.
pub(super) fn exactly<T: DeviceValue>(
    engine: &DeviceEngine,
    len: usize,
) -> Result<DeviceBuffer<T>, Refusal> {
    if len != 0 {
        return zeros(engine, len);
    }
    let made = engine.stream().null();
    made.map_err(|error| driver("making an empty array", error))
}

/// Copies values of the device to the host, and waits.
pub(super) fn download<T: DeviceValue + Copy + Default>(
    engine: &DeviceEngine,
    what: &'static str,
    from: &DeviceView<'_, T>,
) -> Result<Vec<T>, Refusal> {
    let mut values = filled(from.len(), T::default(), what)?;
    engine.queue().copy_to_host(what, from, &mut values)?;
    Ok(values)
}

/// An array that ranks of this process share.
pub(super) struct Shared {
    /// Dropped before the array.
    readers: Readers,
    words: DeviceBuffer<u32>,
    /// An event behind the work that wrote the words.
    ready: Arc<Event>,
}

/// Events behind the copies of all readers of an array, and the stream of its owner.
struct Readers {
    owner: Stream,
    done: Mutex<Vec<Arc<Event>>>,
}

impl Readers {
    fn note(&self, done: Arc<Event>) {
        let mut events = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        events.push(done);
    }

    /// Makes the owner's stream wait for all copies.
    fn wait(&mut self) -> Result<(), DriverError> {
        let events = self.done.get_mut().unwrap_or_else(PoisonError::into_inner);
        mem::take(events)
            .iter()
            .try_for_each(|done| self.owner.wait(done))
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        // The array is freed in the order of the owner's stream, on the thread of the rank that had
        // it last, whose device may be another one. The next call there reports a failure.
        let _ = self.wait();
        let _ = self.owner.context().bind_to_thread();
    }
}

/// Words of a shared array that go to one rank.
struct SharedWords {
    of: Arc<Shared>,
    words: Range<usize>,
}

/// Number of words in a message; `None` if it is not a whole number of words.
pub(super) fn words_in(bytes: &[u8], with: Option<&Handed>) -> Option<usize> {
    let bytes = match with {
        Some(with) => match with.downcast_ref::<Announced>() {
            Some(announced) => announced.bytes(),
            None => return Some(with.downcast_ref::<SharedWords>()?.words.len()),
        },
        None => bytes.len(),
    };
    bytes.is_multiple_of(4).then_some(bytes / 4)
}

/// Words that will be sent.
pub(super) enum Outgoing {
    ToHost(Arriving<u32>),
    Shared(Arc<Shared>),
    Direct(Arc<Shared>),
}

/// Words that messages can be made of.
pub(super) enum Packed {
    OnHost(HostBuffer<u32>),
    Shared(Arc<Shared>),
    Direct(Arc<Shared>),
}

impl Outgoing {
    /// Waits for the copy to the host, or for the gathering of what MPI reads.
    pub(super) fn wait(self) -> Result<Packed, Refusal> {
        Ok(match self {
            Self::ToHost(arriving) => Packed::OnHost(arriving.wait()?),
            Self::Shared(shared) => Packed::Shared(shared),
            Self::Direct(shared) => {
                let gathered = shared.ready.synchronize();
                gathered.map_err(|error| driver("waiting for values that leave", error))?;
                Packed::Direct(shared)
            }
        })
    }
}

impl Packed {
    /// The message with some of the words, and the object that is handed over with it.
    pub(super) fn message(
        &self,
        words: Range<usize>,
    ) -> Result<(Vec<u8>, Option<Handed>), Refusal> {
        if words.is_empty() {
            return Ok((message(0)?, None));
        }
        match self {
            Self::OnHost(packed) => {
                let packed = &packed[words];
                let mut message = message(size_of_val(packed))?;
                message.extend_from_slice(bytemuck::cast_slice(packed));
                Ok((message, None))
            }
            Self::Shared(shared) => {
                let of = shared.clone();
                Ok((said()?, Some(Box::new(SharedWords { of, words }))))
            }
            Self::Direct(shared) => {
                let owner = shared.clone();
                let stream = &shared.readers.owner;
                let memory = direct::memory_of(&shared.words, stream, words, owner);
                Ok((said()?, Some(Box::new(memory))))
            }
        }
    }
}

/// An array that MPI reads or writes.
fn in_direct(stream: &Stream, len: usize) -> Result<DeviceBuffer<u32>, Refusal> {
    direct::array(stream, len).map_err(|error| driver("allocating arrays for messages", error))
}

/// The bytes of a message whose words are handed over: not empty, which would be a refusal.
fn said() -> Result<Vec<u8>, Refusal> {
    let mut message = message(1)?;
    message.push(1);
    Ok(message)
}

/// The path of words from rank to rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessagePath {
    /// Through page-locked memory.
    Host,
    /// Arrays are handed over.
    Shared,
    /// MPI reads and writes arrays.
    Direct,
}

/// An array that has received values.
struct Received {
    array: Arc<DeviceBuffer<u32>>,
    /// The engine whose stream reads it, and the number of marks on that stream at that time.
    reader: usize,
    marks: u64,
}

/// Marks of the progress of an engine's stream.
#[derive(Default)]
struct Marks {
    last: Option<Arc<Event>>,
    count: u64,
}

/// Words that are sent and received, and the memory for them.
pub(super) struct Staging {
    beside: Queue,
    /// The streams of owned points and of the border.
    interior: Stream,
    border: Stream,
    path: MessagePath,
    /// Arrays that others read, for reuse.
    shared: Vec<Arc<Shared>>,
    /// Host memory for words that are sent.
    spare: Vec<HostBuffer<u32>>,
    /// Host memory for words that are received.
    landing: HostBuffer<u32>,
    /// Parts of arrays that were received, and the number of all words so far.
    parts: Vec<SharedWords>,
    announced: Vec<Announced>,
    landed: usize,
    /// The array that has received announced words.
    fetched: Option<Arc<DeviceBuffer<u32>>>,
    /// Arrays of the device that have received values, for reuse. A new one would be zeroed first,
    /// by a kernel that waits for those of the engine.
    arrays: Vec<Received>,
    /// Marks of the stream of owned points, and of that of the border.
    marks: [Marks; 2],
    pub(super) clock: Clock,
}

/// Maximum number of arrays of either kind that are kept.
const MAX_ARRAYS: usize = 8;

impl Drop for Staging {
    fn drop(&mut self) {
        // An engine may go while halos of it are packed and points are sorted: memory is freed in
        // the order of one stream, and others may still read it. If the driver fails nothing is
        // read any more, and the next call reports it.
        for stream in [&self.border, &self.interior, &*self.beside] {
            let _ = stream.synchronize();
        }
    }
}

impl Staging {
    /// Staging for an engine and that of its border. MPI reads and writes messages on the device if
    /// `direct`; otherwise they pass through the host.
    ///
    /// # Errors
    /// When memory is short.
    pub(super) fn new(
        engine: &DeviceEngine,
        border: &DeviceEngine,
        direct: bool,
    ) -> Result<Self, Refusal> {
        Ok(Self {
            beside: engine.queue().beside()?,
            interior: engine.stream().clone(),
            border: border.stream().clone(),
            path: if direct {
                MessagePath::Direct
            } else {
                MessagePath::Host
            },
            shared: Vec::new(),
            spare: Vec::new(),
            landing: engine.host_buffer(1)?,
            parts: Vec::new(),
            announced: Vec::new(),
            landed: 0,
            fetched: None,
            arrays: Vec::new(),
            marks: Default::default(),
            clock: Clock::default(),
        })
    }

    /// Hands arrays over from now on.
    pub(super) fn share(&mut self) {
        self.path = MessagePath::Shared;
    }

    /// 0 for the engine of owned points, 1 for that of the border.
    fn side(&self, engine: &DeviceEngine) -> usize {
        usize::from(engine.stream() == &self.border)
    }

    /// Records a mark on an engine's stream: everything that was started before is behind it.
    pub(super) fn mark(&mut self, engine: &DeviceEngine) -> Result<Arc<Event>, Refusal> {
        let mark = behind(engine)?;
        let side = self.side(engine);
        let marks = &mut self.marks[side];
        marks.last = Some(mark.clone());
        marks.count += 1;
        Ok(mark)
    }

    /// The last mark on an engine's stream.
    pub(super) fn last_mark(&self, engine: &DeviceEngine) -> Option<&Arc<Event>> {
        self.marks[self.side(engine)].last.as_ref()
    }

    /// An array for `len` words that will [leave](Self::leave); it may be longer if others read it.
    pub(super) fn room(
        &mut self,
        engine: &DeviceEngine,
        len: usize,
    ) -> Result<DeviceBuffer<u32>, Refusal> {
        if self.path == MessagePath::Host {
            return zeros(engine, len);
        }
        let free = |shared: &Arc<Shared>| {
            Arc::strong_count(shared) == 1
                && shared.words.len() >= len
                && shared.readers.owner == *engine.stream()
        };
        if let Some(at) = self.shared.iter().position(free) {
            match Arc::try_unwrap(self.shared.swap_remove(at)) {
                Ok(mut shared) => {
                    let waits = shared.readers.wait();
                    waits.map_err(|error| driver("waiting for readers of an array", error))?;
                    return Ok(shared.words);
                }
                Err(shared) => self.shared.push(shared),
            }
        }
        self.array(engine, len + len / 4)
    }

    /// A new array of zeros that others can read or write.
    fn array(&self, engine: &DeviceEngine, len: usize) -> Result<DeviceBuffer<u32>, Refusal> {
        match self.path {
            MessagePath::Direct => in_direct(engine.stream(), len),
            _ => zeros(engine, len),
        }
    }

    /// Starts to send words, behind all work so far on the engine's stream.
    pub(super) fn leave(
        &mut self,
        engine: &DeviceEngine,
        what: &'static str,
        words: DeviceBuffer<u32>,
    ) -> Result<Outgoing, Refusal> {
        if self.path != MessagePath::Host {
            let ready = self.mark(engine)?;
            let readers = Readers {
                owner: engine.stream().clone(),
                done: Mutex::default(),
            };
            let shared = Arc::new(Shared {
                readers,
                words,
                ready,
            });
            if self.shared.len() == MAX_ARRAYS {
                self.shared.remove(0);
            }
            self.shared.push(shared.clone());
            return Ok(match self.path {
                MessagePath::Direct => Outgoing::Direct(shared),
                _ => Outgoing::Shared(shared),
            });
        }
        let fitting = self
            .spare
            .iter()
            .position(|buffer| buffer.len() >= words.len());
        let buffer = match fitting {
            Some(at) => self.spare.swap_remove(at),
            None => {
                // Those that are there are too small.
                self.spare.pop();
                engine.host_buffer(words.len() + words.len() / 4)?
            }
        };
        let leaving = (engine.queue()).start_copy(what, Arc::new(words), buffer)?;
        self.mark(engine)?;
        Ok(Outgoing::ToHost(leaving))
    }

    /// Takes back the memory of words that were sent.
    pub(super) fn give_back(&mut self, packed: Packed) {
        if let Packed::OnHost(buffer) = packed {
            self.spare.push(buffer);
        }
    }

    /// Forgets what was received before.
    pub(super) fn begin(&mut self) {
        self.landed = 0;
        self.parts.clear();
        self.announced.clear();
        self.fetched = None;
    }

    /// Appends a message, a [whole number of words](words_in), to those before.
    pub(super) fn land(
        &mut self,
        engine: &DeviceEngine,
        bytes: &[u8],
        with: Option<Handed>,
    ) -> Result<(), Refusal> {
        let end = self.landed + words_in(bytes, with.as_ref()).unwrap_or(0);
        match with {
            Some(with) => match with.downcast::<Announced>() {
                Ok(announced) => self.announced.push(*announced),
                Err(with) => {
                    let part = with.downcast::<SharedWords>();
                    let no_words =
                        |_| Refusal::new("what was handed over is not an array of words");
                    self.parts.push(*part.map_err(no_words)?);
                }
            },
            None => {
                if self.landing.len() < end {
                    let mut more = engine.host_buffer(end + end / 4)?;
                    more[..self.landed].copy_from_slice(&self.landing[..self.landed]);
                    self.landing = more;
                }
                let to = &mut self.landing[self.landed..end];
                bytemuck::cast_slice_mut::<u32, u8>(to).copy_from_slice(bytes);
            }
        }
        self.landed = end;
        Ok(())
    }

    /// An array of the device for words that arrive, which nothing reads any more.
    fn free_array(&mut self) -> Result<Arc<DeviceBuffer<u32>>, Refusal> {
        let (len, marks, arrays) = (self.landed, &self.marks, &mut self.arrays);
        let fits = |came: &Received| {
            came.marks < marks[came.reader].count
                && Arc::strong_count(&came.array) == 1
                && came.array.len() >= len
        };
        let failed = |error| driver("waiting for a stream", error);
        if let Some(at) = arrays.iter().position(fits) {
            let came = arrays.swap_remove(at);
            if let Some(mark) = &marks[came.reader].last {
                self.beside.wait(mark).map_err(failed)?;
            }
            return Ok(came.array);
        }
        if arrays.len() == MAX_ARRAYS {
            // Both streams may still read it.
            self.beside.join(&self.interior).map_err(failed)?;
            self.beside.join(&self.border).map_err(failed)?;
            arrays.remove(0);
        }
        if self.path == MessagePath::Direct {
            return Ok(Arc::new(in_direct(&self.beside, len + len / 4)?));
        }
        let made = self.beside.alloc_zeros((len + len / 4).max(1));
        Ok(Arc::new(made.map_err(|error| {
            driver("allocating values that come", error)
        })?))
    }

    /// Receives announced words into memory of the device, and waits for them.
    pub(super) fn fetch(
        &mut self,
        engine: &DeviceEngine,
        comm: &mut Communicator,
    ) -> Result<(), Failure> {
        let announced = mem::take(&mut self.announced);
        if announced.is_empty() {
            return Ok(());
        }
        let array = self.free_array()?;
        // MPI knows no streams: all that reads or clears the array has to end before.
        self.beside.synchronize()?;
        let mut first = 0;
        let part = |announced: Announced| {
            let words = first..first + announced.bytes() / 4;
            first = words.end;
            let memory = direct::memory_of(&array, engine.stream(), words, array.clone());
            (announced, memory)
        };
        comm.receive_into(announced.into_iter().map(part).collect())?;
        self.fetched = Some(array);
        Ok(())
    }

    /// Uploads the words that were received, for the stream of an engine. The host waits for a copy
    /// of its own memory, and that stream for one from another device; neither waits for work after
    /// the last marks of the streams. Work on that stream must read the array before the next mark.
    pub(super) fn upload(
        &mut self,
        engine: &DeviceEngine,
        what: &'static str,
    ) -> Result<Arc<DeviceBuffer<u32>>, Refusal> {
        let _span = tracing::debug_span!("ranks.upload").entered();
        if let Some(array) = self.fetched.take() {
            self.clock.came(what, &self.beside)?;
            self.keep(engine, &array);
            return Ok(array);
        }
        let mut array = self.free_array()?;
        let parts = mem::take(&mut self.parts);
        // No one else has it.
        if let Some(array) = Arc::get_mut(&mut array) {
            if parts.is_empty() {
                let mut to = array.slice_mut(0..self.landed);
                (self.beside).copy_to_device(what, &self.landing[..self.landed], &mut to)?;
            } else {
                let copied = self.copy_parts(what, &parts, array);
                let done = self.beside.record_event();
                let done = done.map_err(|error| driver("marking a stream", error))?;
                let done = Arc::new(done);
                // Also for parts that were copied before a failure.
                parts
                    .iter()
                    .for_each(|part| part.of.readers.note(done.clone()));
                copied?;
                let waits = engine.stream().wait(&done);
                waits.map_err(|error| driver("waiting for values that come", error))?;
            }
        }
        self.clock.came(what, &self.beside)?;
        self.keep(engine, &array);
        Ok(array)
    }

    /// Keeps an array that an engine's stream reads.
    fn keep(&mut self, engine: &DeviceEngine, array: &Arc<DeviceBuffer<u32>>) {
        let reader = self.side(engine);
        self.arrays.push(Received {
            array: array.clone(),
            reader,
            marks: self.marks[reader].count,
        });
    }

    /// Starts to copy parts that were handed over, one after the other.
    fn copy_parts(
        &self,
        what: &'static str,
        parts: &[SharedWords],
        array: &mut DeviceBuffer<u32>,
    ) -> Result<(), Refusal> {
        let mut first = 0;
        for SharedWords { of, words } in parts {
            let mut to = array.slice_mut(first..first + words.len());
            let from = of.words.slice(words.clone());
            self.beside
                .copy_from_peer(what, &from, &of.ready, &mut to)?;
            first += words.len();
        }
        Ok(())
    }
}
