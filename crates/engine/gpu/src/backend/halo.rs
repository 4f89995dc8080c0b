//! The halo that crosses the bus where data live on the device and another backend works on some
//! targets: the points that the other backend needs, their channels, and its results.
//!
//! The halo holds the targets of the other backend and all points within reach of them. It is
//! gathered on the device as an ungrouped [share](super::share), so one contiguous copy brings
//! positions and another one channels. Channels are transposed on the way: the host reads one
//! channel after the other. Results return with the caller's indices of their targets and are
//! written, or combined as the kernel's reduction says, by a kernel.
//!
//! Bytes that cross the bus per step: 16 per point of the halo for positions, 4 per point and
//! channel for fields, and per target of the other backend 4 and 4 per channel of a result. All are
//! proportional to the halo and not to the set.
//!
//! Indices are checked on the host before the kernel starts: no write leaves the array of results.
//! Both halves of a step write different targets, so their order does not matter.

use super::{
    device_fields::{DeviceField, SideOfFields},
    gpu::GpuBackend,
    pairs::{Deliver, DeviceResults},
    share::DeviceShare,
};
use crate::constants;
use crate::{
    error::{Error, ErrorKind, fits},
    launch::{HaloGather, HaloScatter},
    memory::kept_buffers,
    traversal::PairProgram,
};
use nearfield_pairs::Reduce;

kept_buffers! {
    /// Buffers of halos, kept between steps.
    pub struct HaloScratch {
        /// Channels of the halo's points, one after the other.
        fields: f32 = "fields of a halo",
        /// Channels of all points of a set that has several fields.
        joined: f32 = "fields of a set",
        /// Indices of targets that another backend has computed.
        targets: u32 = "targets of a halo",
        /// Their results.
        results: f32 = "results of a halo",
    }
}

impl HaloScratch {
    /// Bytes held on the device.
    pub fn bytes(&self) -> usize {
        self.held()
    }
}

/// Fields of a set on the device, to be fetched for the points of a share.
#[derive(Debug, Clone, Copy)]
pub struct HaloField<'a> {
    /// Name in messages.
    pub what: &'static str,
    /// Of all points of the set; none for a kernel that reads none.
    pub values: &'a [DeviceField<'a>],
    /// Points of the set.
    pub points: usize,
}

/// Results that another backend found for some of the targets.
#[derive(Debug, Clone, Copy)]
pub struct HaloResults<'a> {
    /// The caller's indices of these targets, each at most once.
    pub targets: &'a [u32],
    /// Their results, the channels of one target side by side.
    pub values: &'a [f32],
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

    /// Channels of the points of a share, one channel after the other, each in the order of the
    /// share. Waits for them. The number of channels is that of the numbers in `to` per point.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] when the field does not fit the set, or `to` the share,
    /// [`ErrorKind::OtherDevice`], [`ErrorKind::OutOfMemory`] and those of running a program.
    pub fn fetch_fields(
        &self,
        share: &DeviceShare,
        field: HaloField<'_>,
        to: &mut [f32],
        scratch: &mut HaloScratch,
    ) -> Result<(), Error> {
        let HaloField {
            what,
            values,
            points,
        } = field;
        let (count, stream) = (share.len(), &self.stream);
        let channels = to.len() / count.max(1);
        fits("fields of a halo", to.len(), count * channels)?;
        if to.is_empty() {
            return Ok(());
        }
        let side = SideOfFields {
            what,
            fields: values,
            points,
            channels,
        };
        let placed = side.place(self)?;
        let values = self.join(&placed.fields, points, &mut scratch.joined)?;
        scratch.fields.reserve(stream, to.len())?;
        self.shared.share()?.fields(
            stream,
            HaloGather {
                at: share.at().address(),
                count: count as u32,
                values,
                to: scratch.fields.address(),
            },
        )?;
        scratch.fields.download(stream, 0, to)
    }

    /// Puts what another backend found where the results of all `points` targets are.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] when the arrays do not fit each other and the kernel,
    /// [`ErrorKind::UnknownTarget`] for an index that no target has, [`ErrorKind::OtherDevice`],
    /// [`ErrorKind::OutOfMemory`] and those of running a program.
    pub fn put_results(
        &self,
        program: &PairProgram,
        found: HaloResults<'_>,
        to: DeviceResults<'_, '_>,
        points: usize,
        scratch: &mut HaloScratch,
    ) -> Result<(), Error> {
        let (stream, outputs) = (&self.stream, program.outputs);
        let HaloResults { targets, values } = found;
        self.holds("results", to.values.ordinal())?;
        fits("results", to.values.len(), points.saturating_mul(outputs))?;
        fits("results of a halo", values.len(), targets.len() * outputs)?;
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
        scratch.results.upload(stream, values)?;
        let how = match (to.deliver, program.reduce) {
            (Deliver::Write, _) => constants::OVERWRITE,
            (Deliver::Combine, Reduce::Sum) => constants::ADD,
            (Deliver::Combine, Reduce::Min) => constants::KEEP_SMALLER,
            (Deliver::Combine, Reduce::Max) => constants::KEEP_LARGER,
        };
        let (results, _held) = to.values.device_ptr_mut(stream);
        self.shared.share()?.results(
            stream,
            HaloScatter {
                targets: scratch.targets.address(),
                count: targets.len() as u32,
                found: scratch.results.address(),
                outputs: outputs as u32,
                how,
                results,
            },
        )
    }
}
