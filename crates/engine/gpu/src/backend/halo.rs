//! The halo that crosses the bus where data live on the device and another backend works on some
//! targets: the points that the other backend needs, their channels, and its results.
//!
//! The halo holds the targets of the other backend and all points within reach of them. It is
//! gathered on the device as an ungrouped [share](super::share), so one contiguous copy brings
//! positions and another one channels. Channels are transposed on the way: the host reads one
//! channel after the other. Results return with the caller's indices of their targets and are
//! written, or combined as the kernel's reduction says, by a kernel. Indices are checked on the
//! host before it starts: no write leaves the array of results.

use super::{
    gpu::GpuBackend,
    pairs::{Deliver, DeviceField},
    share::DeviceShare,
};
use crate::{
    error::{Error, ErrorKind, fits},
    launch::{HaloGather, HaloScatter},
    memory::Buffer,
    traversal::PairProgram,
};
use cudarc::driver::{CudaViewMut, DevicePtrMut, DeviceSlice};
use nearfield_kernels::constants;
use nearfield_pairs::Reduce;

/// Buffers of halos, kept between steps.
#[derive(Debug)]
pub struct HaloScratch {
    fields: Buffer<f32>,
    targets: Buffer<u32>,
    results: Buffer<f32>,
}

impl Default for HaloScratch {
    fn default() -> Self {
        Self {
            fields: Buffer::new("fields of a halo"),
            targets: Buffer::new("targets of a halo"),
            results: Buffer::new("results of a halo"),
        }
    }
}

impl HaloScratch {
    /// Bytes held on the device.
    pub fn bytes(&self) -> usize {
        self.fields.bytes() + self.targets.bytes() + self.results.bytes()
    }
}

impl GpuBackend {
    /// Position and, as the bits of the fourth number, the caller's index of every point of a
    /// share, in its order. Waits for it.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] when `to` has not one element a point, and [`ErrorKind::Driver`].
    pub fn fetch_points(&self, share: &DeviceShare, to: &mut [[f32; 4]]) -> Result<(), Error> {
        fits("points of a halo", to.len(), share.len())?;
        share.at().download(&self.stream, 0, to)
    }

    /// Channels of the points of a share of a set of `points`, one channel after the other, each in
    /// the order of the share; `None` for a kernel that reads none. Waits for them.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] when the field does not fit the set, or `to` the share,
    /// [`ErrorKind::OtherDevice`], [`ErrorKind::OutOfMemory`] and those of running a program.
    pub fn fetch_fields(
        &self,
        (share, points): (&DeviceShare, usize),
        (what, field): (&'static str, Option<&DeviceField<'_>>),
        to: &mut [f32],
        scratch: &mut HaloScratch,
    ) -> Result<(), Error> {
        let (count, stream) = (share.len(), &self.stream);
        let channels = to.len() / count.max(1);
        fits("fields of a halo", to.len(), count * channels)?;
        if to.is_empty() {
            return Ok(());
        }
        let Some(field) = field else {
            return fits(what, 0, points.saturating_mul(channels));
        };
        field.check(self, what, points, channels)?;
        scratch.fields.reserve(stream, to.len())?;
        let (address, stride, _held) = field.place(stream)?;
        self.shared.share()?.fields(
            stream,
            HaloGather {
                at: share.at().address(),
                count: count as u32,
                values: address,
                stride,
                channels: channels as u32,
                to: scratch.fields.address(),
            },
        )?;
        scratch.fields.download(stream, 0, to)
    }

    /// Puts what another backend found for the targets `targets`, the caller's indices, where the
    /// results of all `points` targets are.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] when the arrays do not fit each other and the kernel,
    /// [`ErrorKind::UnknownTarget`] for an index that no target has, [`ErrorKind::OtherDevice`],
    /// [`ErrorKind::OutOfMemory`] and those of running a program.
    pub fn put_results(
        &self,
        program: &PairProgram,
        (targets, found): (&[u32], &[f32]),
        (results, points): (&mut CudaViewMut<'_, f32>, usize),
        deliver: Deliver,
        scratch: &mut HaloScratch,
    ) -> Result<(), Error> {
        let (stream, outputs) = (&self.stream, program.outputs);
        self.holds("results", results.stream().context().ordinal())?;
        fits("results", results.len(), points.saturating_mul(outputs))?;
        fits("results of a halo", found.len(), targets.len() * outputs)?;
        if let Some(&target) = targets.iter().find(|&&target| target as usize >= points) {
            return Err(Error::from(ErrorKind::UnknownTarget {
                target,
                targets: points,
            }));
        }
        if targets.is_empty() {
            return Ok(());
        }
        scratch.targets.upload(stream, targets)?;
        scratch.results.upload(stream, found)?;
        let how = match (deliver, program.reduce) {
            (Deliver::Write, _) => constants::OVERWRITE,
            (Deliver::Combine, Reduce::Sum) => constants::ADD,
            (Deliver::Combine, Reduce::Min) => constants::KEEP_SMALLER,
            (Deliver::Combine, Reduce::Max) => constants::KEEP_LARGER,
        };
        let (to, _held) = results.device_ptr_mut(stream);
        self.shared.share()?.results(
            stream,
            HaloScatter {
                targets: scratch.targets.address(),
                count: targets.len() as u32,
                found: scratch.results.address(),
                outputs: outputs as u32,
                how,
                results: to,
            },
        )
    }
}
