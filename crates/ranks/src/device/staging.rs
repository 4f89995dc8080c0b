//! Words on their way between ranks: handed over on the device, read and written there by MPI, or
//! through page-locked memory.
//!
//! Values that leave are gathered on the stream of an engine, that of owned points or that of the
//! border. Ranks that are threads of one process get the array itself, with an event behind the
//! gathering, and copy their part of it from device to device: no host waits. For others the words
//! are copied to the host behind the gathering, so that it waits for the copy and not for work that
//! was started later. If MPI reads the array itself the host waits for the gathering in the same
//! way.
//!
//! Values that come are copied on a stream beside those of the engines, so they arrive while these
//! work. MPI writes them to an array that no stream touches meanwhile, which the host has waited
//! for.
//!
//! **Invariant:** an array that is handed over is changed or freed only behind the copies of all
//! who had it: each notes an event behind its copy before it lets go of the array. MPI lets go of
//! an array when it is done with it.

use super::{clock::Clock, direct};
use crate::{
    communicator::{Communicator, message},
    error::Refusal,
    transport::{Announced, Fault, Handed},
};
use nearfield::device::{
    Arriving, DeviceBuffer, DeviceEngine, DeviceValue, DeviceView, DriverError, Event, GpuError,
    HostBuffer, Queue, Stream,
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

/// An event behind what was started on an engine's stream.
pub(super) fn behind(engine: &DeviceEngine) -> Result<Arc<Event>, Refusal> {
    let event = engine.stream().record_event();
    let event = event.map_err(|error| driver("marking a stream", error));
    event.map(Arc::new)
}

/// An array of `len` zeros, or of one: arrays cannot be empty.
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

/// Values of the device on the host. Waits.
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
    /// Behind what wrote the words.
    ready: Arc<Event>,
}

/// Events behind the copies of those who read an array, and the stream of its owner.
struct Readers {
    owner: Stream,
    done: Mutex<Vec<Arc<Event>>>,
}

impl Readers {
    fn note(&self, done: Arc<Event>) {
        let mut events = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        events.push(done);
    }

    /// Lets the owner's stream wait for all copies.
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
struct Part {
    of: Arc<Shared>,
    words: Range<usize>,
}

/// Number of words that a message brings, unless it is of no whole number.
pub(super) fn words_in(bytes: &[u8], with: Option<&Handed>) -> Option<usize> {
    let bytes = match with {
        Some(with) => match with.downcast_ref::<Announced>() {
            Some(announced) => announced.bytes(),
            None => return Some(with.downcast_ref::<Part>()?.words.len()),
        },
        None => bytes.len(),
    };
    bytes.is_multiple_of(4).then_some(bytes / 4)
}

/// Words that leave.
pub(super) enum Leaving {
    ToHost(Arriving<u32>),
    Shared(Arc<Shared>),
    Direct(Arc<Shared>),
}

/// The same, once messages can be made of them.
pub(super) enum Packed {
    OnHost(HostBuffer<u32>),
    Shared(Arc<Shared>),
    Direct(Arc<Shared>),
}

impl Leaving {
    /// Waits for a copy to the host, or for what MPI is to read.
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
    /// The message with some of the words, and what is handed over with it.
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
                Ok((said()?, Some(Box::new(Part { of, words }))))
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

/// The bytes of a message whose words come along with it: not none, which would be a refusal.
fn said() -> Result<Vec<u8>, Refusal> {
    let mut message = message(1)?;
    message.push(1);
    Ok(message)
}

/// How words get from rank to rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Through page-locked memory.
    Host,
    /// Arrays are handed over.
    Shared,
    /// MPI reads and writes arrays.
    Direct,
}

/// An array that values have come to.
struct Came {
    array: Arc<DeviceBuffer<u32>>,
    /// Which engine's stream reads it, and the number of marks there at that time.
    reader: usize,
    marks: u64,
}

/// How far an engine's stream is.
#[derive(Default)]
struct Marks {
    last: Option<Arc<Event>>,
    count: u64,
}

/// Words that leave and come, and the memory for them.
pub(super) struct Staging {
    beside: Queue,
    /// The streams of owned points and of the border.
    interior: Stream,
    border: Stream,
    way: Way,
    /// Arrays that others read, to be used again.
    shared: Vec<Arc<Shared>>,
    /// Memory of the host for what leaves.
    spare: Vec<HostBuffer<u32>>,
    /// Memory of the host for what comes.
    landing: HostBuffer<u32>,
    /// Parts of arrays that have come, and the number of all words that have.
    parts: Vec<Part>,
    announced: Vec<Announced>,
    landed: usize,
    /// The array that announced words have come to.
    fetched: Option<Arc<DeviceBuffer<u32>>>,
    /// Arrays of the device that values have come to. A new one would be filled with zeros first,
    /// by a kernel that waits for those of the engine.
    arrays: Vec<Came>,
    /// Of the stream of owned points, and of that of the border.
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
    /// Memory of an engine and that of its border, whose messages MPI reads and writes on the
    /// device if they are `direct`, or else pass through the host.
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
            way: if direct { Way::Direct } else { Way::Host },
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

    /// Arrays are handed over from now on.
    pub(super) fn share(&mut self) {
        self.way = Way::Shared;
    }

    /// Which of both engines this is.
    fn side(&self, engine: &DeviceEngine) -> usize {
        usize::from(engine.stream() == &self.border)
    }

    /// Marks where an engine's stream is: what it was to read before the mark is read before it.
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

    /// An array for `len` words that are to [leave](Self::leave); it may be longer if others read
    /// it.
    pub(super) fn room(
        &mut self,
        engine: &DeviceEngine,
        len: usize,
    ) -> Result<DeviceBuffer<u32>, Refusal> {
        if self.way == Way::Host {
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
        match self.way {
            Way::Direct => in_direct(engine.stream(), len),
            _ => zeros(engine, len),
        }
    }

    /// Lets words leave, behind what was started on the engine's stream.
    pub(super) fn leave(
        &mut self,
        engine: &DeviceEngine,
        what: &'static str,
        words: DeviceBuffer<u32>,
    ) -> Result<Leaving, Refusal> {
        if self.way != Way::Host {
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
            return Ok(match self.way {
                Way::Direct => Leaving::Direct(shared),
                _ => Leaving::Shared(shared),
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
        Ok(Leaving::ToHost(leaving))
    }

    /// Takes back memory of what has left.
    pub(super) fn give_back(&mut self, packed: Packed) {
        if let Packed::OnHost(buffer) = packed {
            self.spare.push(buffer);
        }
    }

    /// Forgets what has come before.
    pub(super) fn begin(&mut self) {
        self.landed = 0;
        self.parts.clear();
        self.announced.clear();
        self.fetched = None;
    }

    /// Takes a message, a [whole number of words](words_in), behind those before.
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
                    let part = with.downcast::<Part>();
                    let no_words = |_| Refusal::new("what was handed over are no words");
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

    /// An array of the device for what comes, which nothing reads any more.
    fn free_array(&mut self) -> Result<Arc<DeviceBuffer<u32>>, Refusal> {
        let (len, marks, arrays) = (self.landed, &self.marks, &mut self.arrays);
        let fits = |came: &Came| {
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
        if self.way == Way::Direct {
            return Ok(Arc::new(in_direct(&self.beside, len + len / 4)?));
        }
        let made = self.beside.alloc_zeros((len + len / 4).max(1));
        Ok(Arc::new(made.map_err(|error| {
            driver("allocating values that come", error)
        })?))
    }

    /// Lets words that were announced come to the device, and waits for them. The inner error is
    /// one of this rank.
    pub(super) fn fetch(
        &mut self,
        engine: &DeviceEngine,
        comm: &mut Communicator,
    ) -> Result<Result<(), Refusal>, Fault> {
        let announced = mem::take(&mut self.announced);
        if announced.is_empty() {
            return Ok(Ok(()));
        }
        let array = self.free_array().and_then(|array| {
            // MPI knows no streams: all that reads or clears the array has to end before.
            self.beside.synchronize()?;
            Ok(array)
        });
        let array = match array {
            Ok(array) => array,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let mut first = 0;
        let part = |announced: Announced| {
            let words = first..first + announced.bytes() / 4;
            first = words.end;
            let memory = direct::memory_of(&array, engine.stream(), words, array.clone());
            (announced, memory)
        };
        comm.receive_into(announced.into_iter().map(part).collect())?;
        self.fetched = Some(array);
        Ok(Ok(()))
    }

    /// Brings what has come to the device, for the stream of an engine. The host waits for a copy
    /// of its own memory, and that stream for one from another device; neither waits for what
    /// streams do since their last mark. The array is to be read there, by work that is started
    /// before the next mark.
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
        // It is in no other hands.
        if let Some(array) = Arc::get_mut(&mut array) {
            if parts.is_empty() {
                let mut to = array.slice_mut(0..self.landed);
                (self.beside).copy_to_device(what, &self.landing[..self.landed], &mut to)?;
            } else {
                let copied = self.copy_parts(what, &parts, array);
                let done = self.beside.record_event();
                let done = done.map_err(|error| driver("marking a stream", error))?;
                let done = Arc::new(done);
                // Those that were copied before a failure too.
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
        self.arrays.push(Came {
            array: array.clone(),
            reader,
            marks: self.marks[reader].count,
        });
    }

    /// Starts to copy what was handed over, one behind the other.
    fn copy_parts(
        &self,
        what: &'static str,
        parts: &[Part],
        array: &mut DeviceBuffer<u32>,
    ) -> Result<(), Refusal> {
        let mut first = 0;
        for Part { of, words } in parts {
            let mut to = array.slice_mut(first..first + words.len());
            let from = of.words.slice(words.clone());
            self.beside
                .copy_from_peer(what, &from, &of.ready, &mut to)?;
            first += words.len();
        }
        Ok(())
    }
}
