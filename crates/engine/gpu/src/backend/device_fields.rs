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

    /// The same field, borrowed from this one.
    pub fn reborrow(&self) -> DeviceField<'_> {
        DeviceField {
            values: self.values.as_ref().map(|values| values.slice(..)),
            ..*self
        }
    }

    /// The field with the numbers that a kernel reads of each of `points` points.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`], which calls the field `what`, if it is too short, has less than
    /// `channels` numbers a point, or its stride has more than 32 bits.
    fn check(
        &self,
        what: &'static str,
        points: usize,
        channels: usize,
    ) -> Result<CheckedField<'_>, Error> {
        let stride = self.stride;
        if stride < channels {
            let found = points.saturating_mul(stride);
            return Err(length(what, found, points.saturating_mul(channels)));
        }
        if let Some(values) = &self.values {
            let last = points.saturating_sub(1).saturating_mul(stride);
            let needed = if points == 0 {
                0
            } else {
                last.saturating_add(channels)
            };
            if values.len() < needed {
                return Err(length(what, values.len(), needed));
            }
        }
        if u32::try_from(stride).is_err() {
            return Err(length("numbers of a point", stride, u32::MAX as usize));
        }
        Ok(CheckedField {
            values: self.values.as_ref(),
            stride,
            channels,
        })
    }
}

/// The error of a field that has `found` numbers, not `expected`.
fn length(what: &'static str, found: usize, expected: usize) -> Error {
    Error::from(ErrorKind::FieldLength {
        what,
        found,
        expected,
    })
}

/// A field that was [checked](SideOfFields::check): the channels of every point lie within its
/// array.
#[derive(Debug, Clone, Copy)]
pub struct CheckedField<'a> {
    /// None for indices.
    values: Option<&'a DeviceView<'a, f32>>,
    /// Numbers from one point's channels to the next point's, at most 32 bits.
    stride: usize,
    /// Channels that a kernel reads, at most the stride.
    channels: usize,
}

impl<'a> CheckedField<'a> {
    /// From the first channel of the first point on; `None` for the indices of points.
    pub fn values(&self) -> Option<&'a DeviceView<'a, f32>> {
        self.values
    }

    /// Numbers from one point's channels to the next point's.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Channels that a kernel reads of every point.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Where the channels are, and a guard that tells the array's stream that it is in use until
    /// the guard is dropped.
    fn place<'s>(&self, stream: &'s Stream) -> (StridedChannels, Option<InUse<'s>>)
    where
        'a: 's,
    {
        let (address, held) = match self.values {
            Some(values) => {
                let (address, held) = values.device_ptr(stream);
                (address, Some(held))
            }
            None => (0, None),
        };
        let place = StridedChannels {
            address,
            // Both fit: the stride was checked, and holds the channels.
            stride: self.stride as u32,
            channels: self.channels as u32,
        };
        (place, held)
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
pub struct SideOfFields<'a> {
    /// Name in messages.
    pub what: &'static str,
    /// In the kernel's order.
    pub fields: &'a [DeviceField<'a>],
    /// Number of targets or sources.
    pub points: usize,
    /// Channels that the kernel reads of each.
    pub channels: usize,
}

impl<'a> SideOfFields<'a> {
    /// The fields, if they fit the points and the kernel; none for a kernel that reads none.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`].
    pub fn check(self) -> Result<Vec<CheckedField<'a>>, Error> {
        let Self {
            what,
            fields,
            points,
            channels,
        } = self;
        if channels == 0 {
            return Ok(Vec::new());
        }
        let alone = fields.len() == 1;
        let of = |field: &DeviceField<'_>| {
            let other = if alone { channels } else { field.stride };
            field.channels.unwrap_or(other)
        };
        let found = fields.iter().map(of).fold(0, usize::saturating_add);
        fits(what, found.saturating_mul(points), channels * points)?;
        let checked = fields
            .iter()
            .map(|field| field.check(what, points, of(field)));
        checked.collect()
    }

    /// Checks the fields, and returns where they are.
    ///
    /// # Errors
    /// Those of [`check`](Self::check), and [`ErrorKind::OtherDevice`].
    pub(super) fn place(self, backend: &'a GpuBackend) -> Result<PlacedFields<'a>, Error> {
        let mut placed = PlacedFields {
            fields: Vec::new(),
            _held: Vec::new(),
        };
        for field in self.check()? {
            if let Some(values) = field.values {
                backend.holds(self.what, values.ordinal())?;
            }
            let (place, held) = field.place(&backend.stream);
            placed.fields.push(place);
            placed._held.extend(held);
        }
        Ok(placed)
    }
}

/// Where the fields of one side are, with the guards of their arrays.
pub(super) struct PlacedFields<'a> {
    /// In the kernel's order.
    pub(super) fields: Vec<StridedChannels>,
    _held: Vec<InUse<'a>>,
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
        let of_sources = self.join(&sources.fields, of.sources.len(), to_sources)?;
        let shared = of.same_set && sources.fields.starts_with(&targets.fields);
        let of_targets = if shared && !targets.fields.is_empty() {
            of_sources
        } else {
            self.join(&targets.fields, of.targets.len(), to_targets)?
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
        fields: &[StridedChannels],
        points: usize,
        to: &mut Buffer<f32>,
    ) -> Result<StridedChannels, Error> {
        if let [one] = fields
            && one.address != 0
        {
            return Ok(*one);
        }
        if fields.is_empty() || points == 0 {
            return Ok(StridedChannels::default());
        }
        let all: u32 = fields.iter().map(|field| field.channels).sum();
        to.reserve(&self.stream, points * all as usize)?;
        let joined = StridedChannels {
            address: to.address(),
            stride: all,
            channels: all,
        };
        let mut first = joined;
        for field in fields.iter().filter(|field| field.channels > 0) {
            (self.shared.grid).interleave(&self.stream, *field, points, first)?;
            first.address += u64::from(field.channels) * size_of::<f32>() as u64;
        }
        Ok(joined)
    }
}
