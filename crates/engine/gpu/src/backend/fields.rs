//! Upload of fields: the caller's arrays are copied once, as they are, while the backend does other
//! work, and the device puts the values of a point side by side.
//!
//! # Protocol
//!
//! 1. [`GpuBackend::expect_fields`] makes room for the numbers of all fields. It waits until those
//!    of the step before have arrived, so their memory on the host may be written again, and lets
//!    the stream of copies wait for the kernels that read them.
//! 2. [`GpuBackend::receive_fields`] starts copies, piece by piece, on a stream of their own. They
//!    run beside the sort of the positions.
//! 3. [`GpuBackend::evaluate_staged`] joins the streams and evaluates. Where a kernel reads several
//!    fields of a side, a pass brings the channels of each point together; a single field is read
//!    where it arrived. Afterwards an event marks that everything has been read.
//!
//! A field that targets and sources both read arrives once.

use super::{
    device_fields::Channels,
    gpu::GpuBackend,
    pairs::{PairCall, PairScratch, Visit},
    stored::ListedPairs,
    walk::PairOfPoints,
};
use crate::{
    error::{Error, ErrorKind, fits},
    handles::{DriverError, Event},
    launch::StridedChannels,
    memory::{Arrivals, Buffer, Destination, Queue, kept_buffers},
    traversal::Strategy,
};

kept_buffers! {
    /// Fields that were brought to the device one behind the other, kept between steps for the
    /// memory.
    pub struct StagedFields {
        /// The fields, one behind the other.
        arrived: f32 = "fields",
        /// The channels of a target side by side.
        targets: f32 = "fields of targets",
        /// The channels of a source side by side.
        sources: f32 = "fields of sources",
    }
    with {
        /// Numbers that were expected.
        numbers: usize,
        /// On which they come.
        copies: Option<Queue>,
        /// When what had come before was read.
        read: Option<Event>,
    }
}

impl StagedFields {
    /// Bytes held on the device.
    pub fn bytes(&self) -> usize {
        self.held()
    }
}

/// One of them: values of all points, one point after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StagedField {
    /// Where they begin, in numbers.
    pub first: usize,
    /// Numbers of a point.
    pub channels: usize,
}

/// Fields that a kernel reads, in its order, and the staged numbers that hold them.
#[derive(Debug)]
pub struct StagedSides<'a> {
    /// The numbers on the device.
    pub staged: &'a mut StagedFields,
    /// Of every target.
    pub targets: &'a [StagedField],
    /// Of every source.
    pub sources: &'a [StagedField],
}

/// One side of a kernel: its fields, the number of its points, and the channels that it reads of
/// each.
#[derive(Clone, Copy)]
struct Side<'a> {
    /// In the kernel's order.
    fields: &'a [StagedField],
    /// Targets or sources.
    points: usize,
    /// Channels of all fields together.
    channels: usize,
}

impl GpuBackend {
    /// Makes room for `numbers` values of fields, then [received](Self::receive_fields),
    /// once those that came before have arrived: the memory they came from can be written again.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`] and [`ErrorKind::Driver`].
    pub fn expect_fields(&self, staged: &mut StagedFields, numbers: usize) -> Result<(), Error> {
        let copies = self.beside(&mut staged.copies)?;
        copies.synchronize()?;
        if let Some(read) = staged.read.take() {
            copies.wait(&read).map_err(failed)?;
        }
        staged.numbers = 0;
        staged.arrived.reserve(&copies, numbers)?;
        staged.numbers = numbers;
        Ok(())
    }

    /// Copies some of the numbers that were [expected](Self::expect_fields) to the device, from
    /// number `first` on, beside what the backend does otherwise. Where they are in [page-locked
    /// memory](crate::HostBuffer) this does not wait for the copy: leave them as they are until a
    /// kernel has been [evaluated](Self::evaluate_staged), or others are expected.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] when there are more than were expected, and
    /// [`ErrorKind::Driver`].
    pub fn receive_fields(
        &self,
        staged: &mut StagedFields,
        first: usize,
        numbers: &[f32],
    ) -> Result<(), Error> {
        let end = first.saturating_add(numbers.len());
        match &staged.copies {
            Some(copies) if end <= staged.numbers => {
                staged.arrived.upload_at(copies, first, numbers)
            }
            _ => Err(Error::from(ErrorKind::FieldLength {
                what: "fields",
                found: end,
                expected: staged.numbers,
            })),
        }
    }

    /// As [`evaluate`](Self::evaluate), from fields that were [received](Self::receive_fields).
    ///
    /// # Errors
    /// As there; [`ErrorKind::FieldLength`] also when fields end behind what was expected.
    pub fn evaluate_staged<'r>(
        &self,
        of: PairOfPoints<'_>,
        call: PairCall<'_>,
        fields: StagedSides<'_>,
        strategy: Strategy,
        to: Destination<'r, f32, impl FnOnce(&mut Arrivals<'r, f32>) -> Result<(), Error>>,
        scratch: &mut PairScratch,
    ) -> Result<(), Error> {
        let visit = Visit::Strategy(strategy);
        self.evaluate_arrived(of, call, fields, visit, to, scratch)
    }

    /// As [`evaluate_staged`](Self::evaluate_staged), over the sources that the list of each target
    /// names.
    ///
    /// # Errors
    /// As there, and [`ErrorKind::OtherLists`] when the sets were sorted since the lists were
    /// found.
    pub fn evaluate_staged_over_lists<'r>(
        &self,
        mut over: ListedPairs<'_>,
        call: PairCall<'_>,
        fields: StagedSides<'_>,
        to: Destination<'r, f32, impl FnOnce(&mut Arrivals<'r, f32>) -> Result<(), Error>>,
        scratch: &mut PairScratch,
    ) -> Result<(), Error> {
        let visit = self.visit_lists(&mut over)?;
        self.evaluate_arrived(over.of, call, fields, visit, to, scratch)
    }

    /// Evaluates from fields that were received, by a search or over lists.
    fn evaluate_arrived<'r>(
        &self,
        of: PairOfPoints<'_>,
        call: PairCall<'_>,
        fields: StagedSides<'_>,
        visit: Visit,
        to: Destination<'r, f32, impl FnOnce(&mut Arrivals<'r, f32>) -> Result<(), Error>>,
        scratch: &mut PairScratch,
    ) -> Result<(), Error> {
        let staged = fields.staged;
        let targets = Side {
            fields: fields.targets,
            points: of.targets.len(),
            channels: call.program.targets,
        };
        let sources = Side {
            fields: fields.sources,
            points: of.sources.len(),
            channels: call.program.sources,
        };
        targets.check("fields of targets", staged.numbers)?;
        sources.check("fields of sources", staged.numbers)?;
        if let Some(copies) = &staged.copies {
            self.stream.join(copies).map_err(failed)?;
        }
        let evaluated = (|| {
            let arrived = &staged.arrived;
            let of_sources = self.put_together(arrived, sources, &mut staged.sources)?;
            // Kernels read the channels that come first.
            let shared = of.same_set && sources.fields.starts_with(targets.fields);
            let of_targets = if shared && !targets.fields.is_empty() {
                of_sources
            } else {
                self.put_together(arrived, targets, &mut staged.targets)?
            };
            let channels = Channels {
                targets: of_targets,
                sources: of_sources,
            };
            self.evaluate_to_host(of, call, channels, visit, to, scratch)
        })();
        staged.read = Some(self.mark()?);
        evaluated
    }

    /// Puts the channels of every point side by side, where they are not, and returns where they
    /// are.
    fn put_together(
        &self,
        arrived: &Buffer<f32>,
        side: Side<'_>,
        to: &mut Buffer<f32>,
    ) -> Result<StridedChannels, Error> {
        let place = |field: &StagedField| StridedChannels {
            address: arrived.address() + (field.first * size_of::<f32>()) as u64,
            stride: field.channels as u32,
            channels: field.channels as u32,
        };
        let fields: Vec<_> = side.fields.iter().map(place).collect();
        self.join(&fields, side.points, to)
    }
}

impl Side<'_> {
    /// Refuses fields that have other channels than the kernel reads, or that end behind the
    /// `numbers` that were staged.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`], which calls the fields `what`.
    fn check(self, what: &'static str, numbers: usize) -> Result<(), Error> {
        let channels =
            (self.fields.iter()).fold(0usize, |all, one| all.saturating_add(one.channels));
        let found = channels.saturating_mul(self.points);
        fits(what, found, self.channels * self.points)?;
        let end = |field: &StagedField| {
            let length = field.channels.saturating_mul(self.points);
            field.first.saturating_add(length)
        };
        let end = self.fields.iter().map(end).max().unwrap_or(0);
        if end <= numbers {
            return Ok(());
        }
        Err(Error::from(ErrorKind::FieldLength {
            what,
            found: numbers,
            expected: end,
        }))
    }
}

/// A failed call of the driver while fields arrive.
fn failed(error: DriverError) -> Error {
    Error::of_call("copying fields to the device", error)
}
