//! Fields of a pair kernel on their way to the device.
//!
//! An array that both sides of a kernel read is sent once: arrays are told apart by their address
//! for the duration of the call. All arrays go one behind the other through one page-locked buffer,
//! so that a kernel of many small fields is one transfer. A strided field is packed on its way into
//! that buffer, so only values that the kernel reads are sent.
//!
//! **Invariant:** the number of what was sent last changes with every sending. A job that has sent
//! its fields before both backends begin compares numbers when its part begins, and sends them
//! again if another job was in between.

use crate::backend::transfer::{StagedUpload, numbers_of};
use nearfield_cpu::{CpuBackend, Fields};
use nearfield_gpu::{self as gpu, GpuBackend, HostBuffer, StagedField, StagedSides};
use nearfield_pairs::Field;

/// Fields on their way to the device, through memory that the GPU reads directly.
#[derive(Debug, Default)]
pub(super) struct StagedFields {
    copy: Option<HostBuffer<f32>>,
    on_device: gpu::StagedFields,
    /// Tells what was sent last from what was before, from 1 on.
    number: u64,
    targets: Vec<StagedField>,
    sources: Vec<StagedField>,
}

impl StagedFields {
    /// Sends the fields of targets and sources to the device, each once.
    pub(super) fn fill(
        &mut self,
        backend: &GpuBackend,
        cpu: &CpuBackend,
        fields: Fields<'_>,
    ) -> Result<(), gpu::Error> {
        self.number += 1;
        let (mut all, mut len) = (Vec::new(), 0);
        self.targets.clear();
        self.sources.clear();
        for (fields, staged) in [
            (fields.targets, &mut self.targets),
            (fields.sources, &mut self.sources),
        ] {
            staged.extend(fields.iter().map(|field| place(field, &mut all, &mut len)));
        }
        let bytes = size_of::<f32>() * len;
        let _span = tracing::debug_span!("gpu.upload", bytes).entered();
        // The memory may be in use until the device says that it expects others.
        backend.expect_fields(&mut self.on_device, len)?;
        let mut copy = backend.host_room(self.copy.take(), len)?;
        let upload = StagedUpload::new(&all, &mut copy, |_| ());
        let sent = upload.send(cpu, |first, numbers| {
            backend.receive_fields(&mut self.on_device, first, numbers)
        });
        self.copy = Some(copy);
        sent
    }

    /// The number of what was sent last.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The fields that were sent last.
    pub(super) fn fields(&mut self) -> StagedSides<'_> {
        StagedSides {
            staged: &mut self.on_device,
            targets: &self.targets,
            sources: &self.sources,
        }
    }

    /// Bytes held on the device.
    pub(super) fn bytes(&self) -> usize {
        self.on_device.bytes()
    }
}

/// Where a field comes to lie behind `all` the others, `len` numbers, unless it is one of them.
fn place<'a>(field: &Field<'a>, all: &mut Vec<Field<'a>>, len: &mut usize) -> StagedField {
    let channels = field.channels();
    let mut first = 0;
    for known in all.iter() {
        if known.is_same_place(field) {
            return StagedField { first, channels };
        }
        first += numbers_of(known);
    }
    all.push(*field);
    *len += numbers_of(field);
    StagedField { first, channels }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_sent_once() {
        let velocity = [[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let mass = [7.0f32, 8.0];
        let (mut all, mut len) = (Vec::new(), 0);
        let fields = [
            Field::from(&mass),
            Field::from(&velocity),
            Field::from(&mass),
        ];
        let placed = fields
            .each_ref()
            .map(|field| place(field, &mut all, &mut len));
        let of = |first, channels| StagedField { first, channels };
        assert_eq!(placed, [of(0, 1), of(2, 3), of(0, 1)]);
        let all: Vec<_> = all
            .iter()
            .flat_map(|field| field.packed().unwrap())
            .collect();
        assert_eq!(
            (all, len),
            (vec![&7.0, &8.0, &1.0, &2.0, &3.0, &4.0, &5.0, &6.0], 8)
        );
    }

    #[test]
    fn strided_fields_are_told_apart_by_all_that_they_read() {
        let records = [[1.0f32, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]];
        let bytes = bytemuck::cast_slice(&records);
        let strided =
            |offset, points, channels| Field::strided(bytes, offset, 16, points, channels).unwrap();
        let (mut all, mut len) = (Vec::new(), 0);
        let fields = [
            strided(0, 2, 1),
            strided(4, 2, 1),
            strided(0, 2, 3),
            strided(0, 1, 1),
            strided(4, 2, 1),
        ];
        let placed = fields.map(|field| place(&field, &mut all, &mut len));
        let of = |first, channels| StagedField { first, channels };
        let expected = [of(0, 1), of(2, 1), of(4, 3), of(10, 1), of(2, 1)];
        assert_eq!((placed, len), (expected, 11));
    }
}
