//! Arrays of the device, and page-locked memory that messages pass through.
//!
//! Values that leave are gathered on the engine's stream and copied behind that, so the host waits
//! for the copy and not for work that was started later. Values that come are copied on a stream
//! beside it, so they arrive while the engine works on the interior.

use crate::error::Refusal;
use nearfield::device::{
    Arriving, DeviceEngine, GpuError, HostBuffer, Queue,
    cudarc::driver::{CudaEvent, CudaSlice, CudaView, DeviceRepr, DriverError, ValidAsZeroBits},
};
use nearfield_grid::memory::filled;
use std::sync::Arc;

/// A failed call of the driver.
pub(super) fn driver(what: &str, error: DriverError) -> Refusal {
    GpuError::driver(what.to_owned(), error).into()
}

/// An array of `len` zeros, or of one: arrays cannot be empty.
pub(super) fn zeros<T: DeviceRepr + ValidAsZeroBits>(
    engine: &DeviceEngine,
    len: usize,
) -> Result<CudaSlice<T>, Refusal> {
    let made = engine.stream().alloc_zeros(len.max(1));
    made.map_err(|error| driver("allocating arrays of a rank", error))
}

/// An array of exactly `len` zeros, for the caller.
pub(super) fn exactly<T: DeviceRepr + ValidAsZeroBits>(
    engine: &DeviceEngine,
    len: usize,
) -> Result<CudaSlice<T>, Refusal> {
    if len != 0 {
        return zeros(engine, len);
    }
    let made = engine.stream().null();
    made.map_err(|error| driver("making an empty array", error))
}

/// Values of the device on the host. Waits.
pub(super) fn download<T: DeviceRepr + Copy + Default>(
    engine: &DeviceEngine,
    what: &'static str,
    from: &CudaView<'_, T>,
) -> Result<Vec<T>, Refusal> {
    let mut values = filled(from.len(), T::default(), what)?;
    engine.queue().copy_to_host(what, from, &mut values)?;
    Ok(values)
}

/// Page-locked memory, and the queue of values that come.
pub(super) struct Staging {
    beside: Queue,
    /// Memory for what leaves.
    spare: Vec<HostBuffer<u32>>,
    /// Memory for what comes, and how much of it is used.
    landing: HostBuffer<u32>,
    landed: usize,
    /// Arrays of the device that values have come to, and the number of marks at that time. A new
    /// one would be filled with zeros first, by a kernel that waits for those of the engine.
    arrays: Vec<(u64, Arc<CudaSlice<u32>>)>,
    /// The last mark on the engine's stream, and the number of marks.
    mark: Option<CudaEvent>,
    marks: u64,
}

/// Maximum number of arrays that are kept.
const MAX_ARRAYS: usize = 4;

impl Staging {
    pub(super) fn new(engine: &DeviceEngine) -> Result<Self, Refusal> {
        Ok(Self {
            beside: engine.queue().beside()?,
            spare: Vec::new(),
            landing: engine.host_buffer(1)?,
            landed: 0,
            arrays: Vec::new(),
            mark: None,
            marks: 0,
        })
    }

    /// Marks where the engine's stream is: what came before the mark is read before it.
    pub(super) fn mark(&mut self, engine: &DeviceEngine) -> Result<(), Refusal> {
        let mark = engine.stream().record_event(None);
        self.mark = Some(mark.map_err(|error| driver("marking a stream", error))?);
        self.marks += 1;
        Ok(())
    }

    /// Starts to copy words to the host, behind what was started on the engine's stream.
    pub(super) fn leave(
        &mut self,
        engine: &DeviceEngine,
        what: &'static str,
        words: CudaSlice<u32>,
    ) -> Result<Arriving<u32>, Refusal> {
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
        Ok(leaving)
    }

    /// Takes back memory of what has left.
    pub(super) fn give_back(&mut self, buffer: HostBuffer<u32>) {
        self.spare.push(buffer);
    }

    /// Forgets what has come before.
    pub(super) fn begin(&mut self) {
        self.landed = 0;
    }

    /// Takes bytes of a message, a whole number of words, behind those before.
    pub(super) fn land(&mut self, engine: &DeviceEngine, bytes: &[u8]) -> Result<(), Refusal> {
        let end = self.landed + bytes.len() / 4;
        if self.landing.len() < end {
            let mut more = engine.host_buffer(end + end / 4)?;
            more[..self.landed].copy_from_slice(&self.landing[..self.landed]);
            self.landing = more;
        }
        let to = &mut self.landing[self.landed..end];
        bytemuck::cast_slice_mut::<u32, u8>(to).copy_from_slice(bytes);
        self.landed = end;
        Ok(())
    }

    /// Brings what has come to the device. Waits for the copy, and not for what the engine's stream
    /// does since the last mark. The array is to be read by work that is started before the next
    /// mark.
    pub(super) fn upload(
        &mut self,
        engine: &DeviceEngine,
        what: &'static str,
    ) -> Result<Arc<CudaSlice<u32>>, Refusal> {
        let (len, marks, arrays) = (self.landed, self.marks, &mut self.arrays);
        let fits = |(at, array): &(u64, Arc<CudaSlice<u32>>)| {
            *at < marks && Arc::strong_count(array) == 1 && array.len() >= len
        };
        let fitting = arrays.iter().position(fits);
        let mut array = match (fitting, &self.mark) {
            (Some(at), Some(mark)) => {
                let waits = self.beside.wait(mark);
                waits.map_err(|error| driver("waiting for a stream", error))?;
                arrays.swap_remove(at).1
            }
            _ => {
                if arrays.len() == MAX_ARRAYS {
                    // The engine's stream may still read it.
                    let joined = self.beside.join(engine.stream());
                    joined.map_err(|error| driver("joining streams", error))?;
                    arrays.remove(0);
                }
                let made = self.beside.alloc_zeros((len + len / 4).max(1));
                Arc::new(made.map_err(|error| driver("allocating values that come", error))?)
            }
        };
        // It is in no other hands.
        if let Some(array) = Arc::get_mut(&mut array) {
            let mut to = array.slice_mut(0..len);
            (self.beside).copy_to_device(what, &self.landing[..len], &mut to)?;
        }
        arrays.push((marks, array.clone()));
        Ok(array)
    }
}
