//! Download of results in pieces: the host uses one piece while the next is copied.
//!
//! A [`Destination`] is memory of the host and a function that receives the pieces. `deliver`
//! starts the copies of all pieces, each followed by an event, and then calls that function with
//! the [`Arrivals`]. Each call of [`Arrivals::arrived`] waits for one event and hands out one
//! piece.
//!
//! A copy may not outlive the borrow of the memory it writes to. Therefore `Arrivals` holds the
//! borrow, exists before the first copy starts, and waits for the stream when it is dropped, also
//! on errors and panics.
//!
//! Pieces overlap the host's work with the bus: the host uses one while the next arrives.

use super::{buffer::Buffer, queue::Queue};
use crate::{
    error::Error,
    handles::{DriverError, Event, Stream},
};
use cudarc::driver::DeviceRepr;
use std::{fmt, vec::IntoIter};

/// Where results go.
pub struct Destination<'r, T, F> {
    /// One element per result.
    pub(crate) memory: &'r mut [T],
    /// Results of a piece; the last piece may be shorter.
    piece: usize,
    /// Called once, when all copies have been started.
    receive: F,
}

impl<'r, T, F: FnOnce(&mut Arrivals<'r, T>) -> Result<(), Error>> Destination<'r, T, F> {
    /// Memory of the host with room for exactly all results, which come in pieces of this length.
    /// When all copies have been asked for, `receive` is called, and gets what has arrived. Only
    /// into [page-locked memory](crate::HostBuffer) are they copied beside what the host does.
    ///
    /// ```no_run
    /// use nearfield_gpu::{Destination, Error, GpuBackend, PairOfPoints, PairScratch, Strategy};
    /// use nearfield_pairs::ListKind;
    ///
    /// /// The largest number of neighbours, found while further counts arrive.
    /// fn largest(backend: &GpuBackend, of: PairOfPoints<'_>) -> Result<u32, Error> {
    ///     let mut counts = backend.host_buffer(of.targets.len())?;
    ///     let mut largest = 0;
    ///     let to = Destination::in_pieces(&mut counts, 1 << 16, |arrivals| {
    ///         while let Some((_, piece)) = arrivals.arrived()? {
    ///             largest = piece.iter().copied().fold(largest, u32::max);
    ///         }
    ///         Ok(())
    ///     });
    ///     let scratch = &mut PairScratch::default();
    ///     backend.count(of, ListKind::Full, Strategy::Flat, to, scratch)?;
    ///     Ok(largest)
    /// }
    /// ```
    pub fn in_pieces(memory: &'r mut [T], piece: usize, receive: F) -> Self {
        Self {
            memory,
            piece,
            receive,
        }
    }
}

/// The function of a [`Destination`] that waits for everything and looks at nothing.
type Wait<'r, T> = fn(&mut Arrivals<'r, T>) -> Result<(), Error>;

impl<'r, T> Destination<'r, T, Wait<'r, T>> {
    /// Memory that is looked at when all results are there.
    pub fn whole(memory: &'r mut [T]) -> Self {
        Self {
            piece: memory.len(),
            memory,
            receive: Arrivals::wait,
        }
    }
}

/// Results on their way: an iterator over pieces in their order that can fail. Pieces that are not
/// asked for are waited for all the same.
pub struct Arrivals<'r, T> {
    /// Waited for in the end.
    stream: Stream,
    /// When all of them have been computed.
    computed: Event,
    /// Pieces that were not received yet: the first result, the memory, and the event of their
    /// arrival.
    pieces: IntoIter<(usize, &'r mut [T], Event)>,
}

impl<'r, T> Arrivals<'r, T> {
    /// Waits until everything has been computed and the first piece is on its way.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver) when something has failed.
    pub fn computed(&self) -> Result<(), Error> {
        self.computed.synchronize().map_err(failed)
    }

    /// Waits for the next piece: its first result, and all of them. None after the last one.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver) when something has failed.
    pub fn arrived(&mut self) -> Result<Option<(usize, &'r [T])>, Error> {
        let Some((first, results, copied)) = self.pieces.next() else {
            return Ok(None);
        };
        copied.synchronize().map_err(failed)?;
        Ok(Some((first, results)))
    }

    /// Waits for all of them.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver) when something has failed.
    pub fn wait(&mut self) -> Result<(), Error> {
        while self.arrived()?.is_some() {}
        Ok(())
    }
}

impl<T> fmt::Debug for Arrivals<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arrivals")
            .field("pieces", &self.pieces.len())
            .finish_non_exhaustive()
    }
}

impl<T> Drop for Arrivals<'_, T> {
    fn drop(&mut self) {
        // Nothing may be written to the host's memory after this. An error has been reported
        // before, or its results are not used.
        let _ = self.stream.synchronize();
    }
}

impl<'r, T: DeviceRepr, F> Destination<'r, T, F>
where
    F: FnOnce(&mut Arrivals<'r, T>) -> Result<(), Error>,
{
    /// Copies the first results in `from` to where they go, behind what was asked for before, and
    /// returns when all have arrived and been received.
    ///
    /// # Errors
    /// Those of the receiving function, [`ErrorKind::FieldLength`](crate::ErrorKind::FieldLength)
    /// if `from` has fewer elements, and [`ErrorKind::Driver`](crate::ErrorKind::Driver).
    pub(crate) fn deliver(self, queue: &Queue, from: &Buffer<T>) -> Result<(), Error> {
        let mark = || queue.record_event().map_err(failed);
        let (mut pieces, size) = (Vec::new(), self.piece.max(1));
        let mut arrivals = Arrivals {
            stream: Stream::clone(queue),
            computed: mark()?,
            pieces: Vec::new().into_iter(),
        };
        for (number, results) in self.memory.chunks_mut(size).enumerate() {
            // From here on `arrivals` waits for the copies before the memory can be used.
            from.copy_to(queue, number * size, results)?;
            pieces.push((number * size, results, mark()?));
        }
        arrivals.pieces = pieces.into_iter();
        (self.receive)(&mut arrivals)?;
        arrivals.wait()
    }
}

/// A failed call of the driver while results arrive.
fn failed(error: DriverError) -> Error {
    Error::of_call("copying results to the host", error)
}
