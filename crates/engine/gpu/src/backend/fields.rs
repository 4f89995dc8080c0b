//! Fields on their way to the device: each comes once and as the caller has it, while the backend
//! does other things, and the device puts those of a point side by side.

use super::{gpu::GpuBackend, pairs::PairScratch, walk::PairOfPoints};
use crate::{
    error::{Error, ErrorKind, fits},
    memory::{Arrivals, Buffer, Destination, Queue},
    traversal::{PairProgram, Strategy},
};
use cudarc::driver::{CudaEvent, sys::CUdeviceptr};

/// Fields that were brought to the device one behind the other, kept between steps for the memory.
#[derive(Debug)]
pub struct StagedFields {
    arrived: Buffer<f32>,
    numbers: usize,
    /// The channels of a point side by side.
    targets: Buffer<f32>,
    sources: Buffer<f32>,
    /// On which they come.
    copies: Option<Queue>,
    /// When what had come before was read.
    read: Option<CudaEvent>,
}

impl Default for StagedFields {
    fn default() -> Self {
        Self {
            arrived: Buffer::new("fields"),
            numbers: 0,
            targets: Buffer::new("fields of targets"),
            sources: Buffer::new("fields of sources"),
            copies: None,
            read: None,
        }
    }
}

impl StagedFields {
    /// Bytes held on the device.
    pub fn bytes(&self) -> usize {
        self.arrived.bytes() + self.targets.bytes() + self.sources.bytes()
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

/// Which fields a kernel reads, in its order.
#[derive(Debug, Clone, Copy, Default)]
pub struct StagedSides<'a> {
    /// Of every target.
    pub targets: &'a [StagedField],
    /// Of every source.
    pub sources: &'a [StagedField],
}

impl GpuBackend {
    /// Makes room for so many numbers of fields, which are then [received](Self::receive_fields),
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
        (program, uniforms): (&PairProgram, &[f32]),
        (staged, sides): (&mut StagedFields, StagedSides<'_>),
        strategy: Strategy,
        to: Destination<'r, f32, impl FnOnce(&mut Arrivals<'r, f32>) -> Result<(), Error>>,
        scratch: &mut PairScratch,
    ) -> Result<(), Error> {
        let points = [of.targets.len(), of.sources.len()];
        let wanted = [program.targets, program.sources];
        for (side, (what, fields)) in [
            ("fields of targets", sides.targets),
            ("fields of sources", sides.sources),
        ]
        .into_iter()
        .enumerate()
        {
            let channels =
                (fields.iter()).fold(0usize, |all, field| all.saturating_add(field.channels));
            fits(
                what,
                channels.saturating_mul(points[side]),
                wanted[side] * points[side],
            )?;
            let end = |field: &StagedField| {
                let numbers = field.channels.saturating_mul(points[side]);
                field.first.saturating_add(numbers)
            };
            let end = fields.iter().map(end).max().unwrap_or(0);
            if end > staged.numbers {
                return Err(Error::from(ErrorKind::FieldLength {
                    what,
                    found: staged.numbers,
                    expected: end,
                }));
            }
        }
        if let Some(copies) = &staged.copies {
            self.stream.join(copies).map_err(failed)?;
        }
        let StagedSides { targets, sources } = sides;
        let evaluated = (|| {
            let of_sources = self.side_by_side(
                &staged.arrived,
                (sources, points[1], program.sources),
                &mut staged.sources,
            )?;
            let of_targets = match of.same_set && sources.starts_with(targets) {
                // Kernels read the channels that come first.
                true if !targets.is_empty() => of_sources,
                _ => self.side_by_side(
                    &staged.arrived,
                    (targets, points[0], program.targets),
                    &mut staged.targets,
                )?,
            };
            let fields = [of_targets, of_sources];
            self.evaluate_to_host(of, (program, uniforms), fields, strategy, to, scratch)
        })();
        staged.read = Some(self.mark()?);
        evaluated
    }

    /// Puts the channels of every point side by side, where they are not; returns where they are,
    /// and the numbers from a point to the next.
    fn side_by_side(
        &self,
        arrived: &Buffer<f32>,
        (fields, points, channels): (&[StagedField], usize, usize),
        to: &mut Buffer<f32>,
    ) -> Result<(CUdeviceptr, u32), Error> {
        let place = |first: usize| arrived.address() + (first * size_of::<f32>()) as u64;
        if let [field] = fields {
            return Ok((place(field.first), channels as u32));
        }
        to.reserve(&self.stream, points * channels)?;
        let mut first = 0;
        for field in fields {
            let out = to.address() + (first * size_of::<f32>()) as u64;
            let widths = (field.channels as u32, channels as u32);
            let numbers = points * field.channels;
            self.shared
                .grid
                .interleave(&self.stream, place(field.first), widths, numbers, out)?;
            first += field.channels;
        }
        Ok((to.address(), channels as u32))
    }
}

fn failed(error: cudarc::driver::DriverError) -> Error {
    Error::driver("copying fields to the device", error)
}
