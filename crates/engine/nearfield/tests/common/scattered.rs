//! Fields as they lie inside structs: values at equal distances, and other bytes between them.

use nearfield::kernels::Field;
use nearfield_testkit::random::Random;

/// The memory of a strided field. Bytes that are no values make NaN of every sum that reads them.
pub(crate) struct Scattered {
    bytes: Vec<u8>,
    offset: usize,
    stride: usize,
    points: usize,
    channels: usize,
}

impl Scattered {
    /// The values at a random offset, which need not be aligned, and with a random stride.
    pub(crate) fn new<const CHANNELS: usize>(
        random: &mut Random,
        values: &[[f32; CHANNELS]],
    ) -> Self {
        let offset = random.below(40) as usize;
        let stride = 4 * (CHANNELS + random.below(9) as usize);
        let behind = random.below(30) as usize;
        let mut bytes = vec![0xff; offset + stride * values.len() + behind];
        for (point, values) in values.iter().enumerate() {
            let at = offset + point * stride;
            bytes[at..at + 4 * CHANNELS].copy_from_slice(bytemuck::cast_slice(values));
        }
        Self {
            bytes,
            offset,
            stride,
            points: values.len(),
            channels: CHANNELS,
        }
    }

    pub(crate) fn field(&self) -> Field<'_> {
        let (offset, stride) = (self.offset, self.stride);
        Field::strided(&self.bytes, offset, stride, self.points, self.channels).unwrap()
    }
}
