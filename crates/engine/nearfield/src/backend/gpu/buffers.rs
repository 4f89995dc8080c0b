//! Memory of free positions and of ranges of pairs, kept between jobs.
//!
//! Page-locking memory takes about half a millisecond a mebibyte, longer than most of these jobs.

use crate::backend::transfer::words_of;
use nearfield_gpu::{
    self as gpu, DeviceLists, DeviceNearest, DevicePointData, DevicePoints, GpuBackend, HostBuffer,
    HostPairs, HostRows,
};
use nearfield_grid::Precision;

/// Free positions on the device, and the memory they go through.
#[derive(Debug, Default)]
pub(super) struct Queries {
    pub(super) points: Option<DevicePoints>,
    pub(super) copy: Option<HostBuffer<f32>>,
    /// Their lists, on the way.
    pub(super) lists: DeviceLists,
    /// Their nearest pairs, where only these are kept.
    pub(super) nearest: DeviceNearest,
    /// Their radii, where these count.
    pub(super) data: DevicePointData,
}

impl Queries {
    /// Bytes held on the device.
    pub(super) fn bytes(&self) -> usize {
        self.points.as_ref().map_or(0, DevicePoints::bytes)
            + self.lists.bytes()
            + self.nearest.bytes()
            + self.data.bytes()
    }
}

/// Page-locked memory for two ranges, kept between jobs.
#[derive(Debug, Default)]
pub(super) struct RowBuffers(pub(super) [Option<RowBuffer>; 2]);

/// Page-locked memory for the pairs of a range.
#[derive(Debug)]
pub(super) struct RowBuffer {
    sources: HostBuffer<u32>,
    /// Three numbers a pair; in double precision a number is two elements.
    displacements: HostBuffer<f32>,
    squares: HostBuffer<f32>,
}

impl RowBuffer {
    /// Room for as many pairs; `old` where it suffices.
    pub(super) fn room(
        backend: &GpuBackend,
        old: Option<Self>,
        pairs: usize,
        precision: Precision,
    ) -> Result<Self, gpu::Error> {
        let words = pairs.saturating_mul(words_of(precision));
        let (sources, displacements, squares) = match old {
            Some(old) => (
                Some(old.sources),
                Some(old.displacements),
                Some(old.squares),
            ),
            None => (None, None, None),
        };
        Ok(Self {
            sources: backend.host_room(sources, pairs)?,
            displacements: backend.host_room(displacements, words)?,
            squares: backend.host_room(squares, words / 3)?,
        })
    }

    /// The memory, for the device to write.
    pub(super) fn host_rows(&mut self) -> HostRows<'_> {
        HostRows {
            entries: &mut self.sources,
            pairs: Some(HostPairs {
                images: None,
                displacements: self.displacements.as_chunks_mut::<3>().0,
                squares: &mut self.squares,
            }),
        }
    }
}
