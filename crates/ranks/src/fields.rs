//! Fields of points: those of the caller, and copies of them where points are needed elsewhere.

use crate::error::Refusal;
use nearfield::kernels::Field;
use nearfield_grid::memory::{Shortage, filled};

/// Fields of some points, each packed.
pub(crate) struct LocalFields {
    points: usize,
    /// Channels of each field.
    channels: Vec<usize>,
    values: Vec<Vec<f32>>,
}

impl LocalFields {
    /// Room for the `fields` of `points` points.
    pub(crate) fn with_room(fields: &[Field<'_>], points: usize) -> Result<Self, Shortage> {
        let channels: Vec<usize> = fields.iter().map(Field::channels).collect();
        let values = channels
            .iter()
            .map(|channels| filled(channels * points, 0.0, "fields of the points of a rank"));
        Ok(Self {
            points,
            values: values.collect::<Result<_, _>>()?,
            channels,
        })
    }

    /// Copies values, field by field; `each` calls its argument with the places of every point, in
    /// `fields` and here.
    pub(crate) fn copy(
        &mut self,
        fields: &[Field<'_>],
        each: impl Fn(&mut dyn FnMut(usize, usize)),
    ) {
        for (field, values) in fields.iter().zip(&mut self.values) {
            let channels = field.channels();
            each(&mut |point, place| {
                for channel in 0..channels {
                    values[place * channels + channel] = field.value(point, channel);
                }
            });
        }
    }

    /// Takes the values of a point from a message.
    pub(crate) fn take(&mut self, place: usize, bytes: &[u8]) {
        let mut rest = bytes;
        for (values, &channels) in self.values.iter_mut().zip(&self.channels) {
            let (here, behind) = rest.split_at(size_of::<f32>() * channels);
            let to = &mut values[place * channels..][..channels];
            bytemuck::cast_slice_mut::<f32, u8>(to).copy_from_slice(here);
            rest = behind;
        }
    }

    /// The fields as a kernel reads them.
    pub(crate) fn fields(&self) -> Result<Vec<Field<'_>>, Refusal> {
        let mut fields = Vec::with_capacity(self.values.len());
        for (values, &channels) in self.values.iter().zip(&self.channels) {
            let (bytes, stride) = (bytemuck::cast_slice(values), size_of::<f32>() * channels);
            let field = Field::strided(bytes, 0, stride, self.points, channels);
            fields.push(field.map_err(Refusal::new)?);
        }
        Ok(fields)
    }
}

/// Appends the values of a point to a message.
pub(crate) fn pack(fields: &[Field<'_>], point: usize, message: &mut Vec<u8>) {
    for field in fields {
        for channel in 0..field.channels() {
            message.extend_from_slice(&field.value(point, channel).to_ne_bytes());
        }
    }
}

/// Refuses fields that do not have one element per point, or other channels than the kernel reads.
pub(crate) fn check(
    fields: &[Field<'_>],
    points: usize,
    channels: usize,
    whose: &str,
) -> Result<(), Refusal> {
    if fields.iter().any(Field::is_indices) {
        return Err(no_indices(whose));
    }
    if let Some(field) = fields.iter().find(|field| field.len() != points) {
        let found = field.len();
        return Err(Refusal::new(format!(
            "a field of the {whose} has {found} elements for {points} points"
        )));
    }
    let found: usize = fields.iter().map(Field::channels).sum();
    if found != channels {
        return Err(Refusal::new(format!(
            "the fields of the {whose} have {found} channels, but the kernel reads {channels}"
        )));
    }
    Ok(())
}

/// Refuses [`Indices`](nearfield::kernels::Indices) as a field: a rank knows its own numbering
/// only.
pub(crate) fn no_indices(whose: &str) -> Refusal {
    Refusal::new(format!(
        "{whose} have no index that is the same on all ranks: give numbers of your own"
    ))
}

/// Bytes of a point's values.
pub(crate) fn width(fields: &[Field<'_>]) -> usize {
    size_of::<f32>() * fields.iter().map(Field::channels).sum::<usize>()
}
