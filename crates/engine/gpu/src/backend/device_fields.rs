//! Fields that live on the device: where their channels are, and how several fields are joined.
//!
//! A traversal reads the channels of a point side by side. One field is read where it is. Several
//! fields, and the indices of points, are brought together first, by a pass for each over memory
//! that is kept between steps: 4 bytes per point and channel.
//!
//! ```text
//!   indices               0  1  2 …
//!   velocity, stride 3    x0 y0 z0  x1 y1 z1 …
//!   mass, stride 4        m0 .  .  .  m1 .  .  .  …
//!   joined, stride 5      0 x0 y0 z0 m0  1 x1 y1 z1 m1 …
//! ```
//!
//! Traversals could read several arrays themselves. Each array would be an argument more, and each
//! number of arrays a program of its own.
//!
//! **Invariant:** fields are checked against the points and the kernel before anything is started,
//! so a kernel reads within the arrays for every set of fields.

use super::{gpu::GpuBackend, walk::PairOfPoints};
use crate::{
    error::{Error, ErrorKind, fits},
    handles::{DeviceView, InUse, Stream},
    launch::StridedChannels,
    memory::Buffer,
    traversal::PairProgram,
};

/// Values on the device, a fixed number per point, in the caller's order; or the indices of the
/// points, which need no array.
#[derive(Debug)]
pub struct DeviceField<'a> {
    /// From the first channel of the first point on; None for indices.
    values: Option<DeviceView<'a, f32>>,
    /// Numbers from one point's channels to the next point's.
    stride: usize,
    /// Channels that a kernel reads, where the field says so.
    channels: Option<usize>,
}

impl<'a> DeviceField<'a> {
    /// The values of a point begin `stride` numbers behind those of the one before. A kernel reads
    /// as many of them, from the first on, as it has channels; to read others, let `values` begin
    /// there. A field among several has `stride` channels, unless [`channels`](Self::channels) says
    /// fewer.
    pub fn new(values: DeviceView<'a, f32>, stride: usize) -> Self {
        Self {
            values: Some(values),
            stride,
            channels: None,
        }
    }

    /// The index of every point, as the bits of a number: 0, 1, 2 and so on.
    pub fn indices() -> Self {
        Self {
            values: None,
            stride: 1,
            channels: Some(1),
        }
    }

    /// The number of channels that a kernel reads of it: for a field among several whose points
    /// have other numbers beside these.
    pub fn channels(self, channels: usize) -> Self {
        Self {
            channels: Some(channels),
            ..self
        }
    }

    /// Refuses a field of another GPU, and one too short for `channels` of each of `points`.
    ///
    /// # Errors
    /// [`ErrorKind::OtherDevice`] and [`ErrorKind::FieldLength`], which call the field `what`.
    fn check(
        &self,
        backend: &GpuBackend,
        what: &'static str,
        points: usize,
        channels: usize,
    ) -> Result<(), Error> {
        let length = |found, expected| {
            Err(Error::from(ErrorKind::FieldLength {
                what,
                found,
                expected,
            }))
        };
        if self.stride < channels {
            return length(
                points.saturating_mul(self.stride),
                points.saturating_mul(channels),
            );
        }
        let Some(values) = &self.values else {
            return Ok(());
        };
        backend.holds(what, values.ordinal())?;
        let needed = match points {
            0 => 0,
            points => ((points - 1).saturating_mul(self.stride)).saturating_add(channels),
        };
        if values.len() < needed {
            return length(values.len(), needed);
        }
        Ok(())
    }

    /// Where the channels are, unless they are indices, and a guard that tells the array's stream
    /// that it is in use until the guard is dropped.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] when the stride has more than 32 bits.
    fn place<'s>(
        &'s self,
        stream: &'s Stream,
    ) -> Result<Option<(StridedChannels, InUse<'s>)>, Error> {
        let stride = u32::try_from(self.stride).map_err(|_| {
            Error::from(ErrorKind::FieldLength {
                what: "numbers of a point",
                found: self.stride,
                expected: u32::MAX as usize,
            })
        })?;
        Ok(self.values.as_ref().map(|values| {
            let (address, held) = values.device_ptr(stream);
            (StridedChannels { address, stride }, held)
        }))
    }
}

/// Channels on the device: the fields of each side in the kernel's order, none where it reads none.
#[derive(Debug, Default)]
pub struct DeviceFields<'a> {
    /// Of every target.
    pub targets: Vec<DeviceField<'a>>,
    /// Of every source.
    pub sources: Vec<DeviceField<'a>>,
}

impl DeviceFields<'_> {
    /// Where the fields of both sides of a traversal are.
    ///
    /// # Errors
    /// The errors of [`SideOfFields::place`].
    pub(super) fn place<'s>(
        &'s self,
        backend: &'s GpuBackend,
        of: PairOfPoints<'_>,
        program: &PairProgram,
    ) -> Result<[PlacedFields<'s>; 2], Error> {
        let targets = SideOfFields {
            what: "fields of targets",
            fields: &self.targets,
            points: of.targets.len(),
            channels: program.targets,
        };
        let sources = SideOfFields {
            what: "fields of sources",
            fields: &self.sources,
            points: of.sources.len(),
            channels: program.sources,
        };
        Ok([targets.place(backend)?, sources.place(backend)?])
    }
}

/// Channels of both sides of a traversal, on the device: where a kernel reads those of a point.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Channels {
    /// Of every target.
    pub(super) targets: StridedChannels,
    /// Of every source.
    pub(super) sources: StridedChannels,
}

/// The fields of one side, what a kernel reads of it, and its name in messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct SideOfFields<'a> {
    pub(super) what: &'static str,
    /// In the kernel's order.
    pub(super) fields: &'a [DeviceField<'a>],
    /// Targets or sources.
    pub(super) points: usize,
    /// Channels that the kernel reads of each.
    pub(super) channels: usize,
}

impl<'a> SideOfFields<'a> {
    /// Checks the fields, and returns where they are. Fields for a kernel that reads none are left
    /// out.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] when the fields do not fit the points and the kernel, and
    /// [`ErrorKind::OtherDevice`].
    pub(super) fn place(self, backend: &'a GpuBackend) -> Result<PlacedFields<'a>, Error> {
        let Self {
            what,
            fields,
            points,
            channels,
        } = self;
        let mut placed = PlacedFields {
            parts: Vec::new(),
            _held: Vec::new(),
        };
        if channels == 0 {
            return Ok(placed);
        }
        let alone = fields.len() == 1;
        let of = |field: &DeviceField<'_>| {
            let other = if alone { channels } else { field.stride };
            field.channels.unwrap_or(other)
        };
        let found = fields.iter().map(of).fold(0, usize::saturating_add);
        fits(what, found.saturating_mul(points), channels * points)?;
        for field in fields {
            let channels = of(field);
            field.check(backend, what, points, channels)?;
            let (from, held) = field.place(&backend.stream)?.unzip();
            placed.parts.push(FieldPart { from, channels });
            placed._held.extend(held);
        }
        Ok(placed)
    }
}

/// Where the fields of one side are, with the guards of their arrays.
pub(super) struct PlacedFields<'a> {
    /// In the kernel's order.
    pub(super) parts: Vec<FieldPart>,
    _held: Vec<InUse<'a>>,
}

/// Some channels of every point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FieldPart {
    /// Where they are; None for the index of the point.
    pub(super) from: Option<StridedChannels>,
    /// How many.
    pub(super) channels: usize,
}

impl GpuBackend {
    /// Puts the channels of every target and source side by side, where they are not: in the
    /// buffers `to`, of targets and of sources. A set that is both is put together once, if the
    /// kernel reads of a target what it reads of a source, from the first channel on.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`] and those of running a program.
    pub(super) fn side_by_side(
        &self,
        [targets, sources]: &[PlacedFields<'_>; 2],
        of: PairOfPoints<'_>,
        to: [&mut Buffer<f32>; 2],
    ) -> Result<Channels, Error> {
        let [to_targets, to_sources] = to;
        let of_sources = self.join(&sources.parts, of.sources.len(), to_sources)?;
        let shared = of.same_set && sources.parts.starts_with(&targets.parts);
        let of_targets = if shared && !targets.parts.is_empty() {
            of_sources
        } else {
            self.join(&targets.parts, of.targets.len(), to_targets)?
        };
        Ok(Channels {
            targets: of_targets,
            sources: of_sources,
        })
    }

    /// Puts the channels of every point side by side, where they are not, and returns where they
    /// are: one array is left where it is.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`] and those of running a program.
    pub(super) fn join(
        &self,
        parts: &[FieldPart],
        points: usize,
        to: &mut Buffer<f32>,
    ) -> Result<StridedChannels, Error> {
        if let [
            FieldPart {
                from: Some(one), ..
            },
        ] = parts
        {
            return Ok(*one);
        }
        if parts.is_empty() || points == 0 {
            return Ok(StridedChannels::default());
        }
        let all: usize = parts.iter().map(|part| part.channels).sum();
        let stride = all as u32;
        to.reserve(&self.stream, points * all)?;
        let mut first = 0;
        for part in parts.iter().filter(|part| part.channels > 0) {
            let to = StridedChannels {
                address: to.address() + (first * size_of::<f32>()) as u64,
                stride,
            };
            let channels = part.channels as u32;
            (self.shared.grid).interleave(&self.stream, part.from, channels, points, to)?;
            first += part.channels;
        }
        Ok(StridedChannels {
            address: to.address(),
            stride,
        })
    }
}
