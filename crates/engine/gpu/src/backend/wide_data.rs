//! The wide points of a set's data: found after a sort, and looked up by jobs.
//!
//! They are known by what they were found for: the sort, the radii, the radius of the cells and, of
//! chosen targets, the choice. Where one of these has changed they are found anew.
//!
//! # When they are found
//!
//! [`GpuBackend::arrange`] finds them when it has brought radii into the order of the sort, so a
//! step that sorts once finds them once, whatever number of jobs follows. Nothing waits: kernels
//! read their number on the device. A set whose lattice is for all radii has none, and nothing is
//! started for it. Sources are looked up by their place in the whole set; chosen targets by their
//! place in the share, so the two have a buffer each.
//!
//! **Invariant:** places that a job is given are those of its sets as they are sorted now.

use super::{filter::DevicePointData, gpu::GpuBackend, points::DevicePoints};
use crate::{error::Error, launch::Points};

impl DevicePointData {
    /// Finds the wide points of a set whose radii have been arranged, and those of its chosen
    /// targets; nothing where its lattice is for all radii.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) and those of running a program.
    pub(super) fn find_wide(
        &mut self,
        backend: &GpuBackend,
        points: &DevicePoints,
    ) -> Result<(), Error> {
        let read = self.radii.words == 1 && self.radii.is_of(points);
        let Some(bulk) = points.bulk.filter(|_| read) else {
            return Ok(());
        };
        let [radii, _] = self.radii.addresses();
        let of = self.wide_of(points, bulk, 0);
        self.wide[0].find(backend, &points.layout(), radii, bulk, of)?;
        let Some(share) = self.share_layout(points) else {
            return Ok(());
        };
        let of = self.wide_of(points, bulk, self.chosen_stamp);
        self.wide[1].find(backend, &share, radii, bulk, of)
    }

    /// What wide points are found for; `chosen` is 0 for those of the whole set.
    fn wide_of(&self, points: &DevicePoints, bulk: f32, chosen: u64) -> [u64; 4] {
        [
            points.last_sort(),
            self.radii.stamp,
            bulk.to_bits().into(),
            chosen,
        ]
    }

    /// Where the wide points of a set are, or of its chosen targets; 0 if they have not been found.
    pub(super) fn wide_points(&self, points: &DevicePoints, chosen: bool) -> u64 {
        let stamp = if chosen { self.chosen_stamp } else { 0 };
        let of = |bulk| self.wide[usize::from(chosen)].address(self.wide_of(points, bulk, stamp));
        points.bulk.map_or(0, of)
    }

    /// The chosen targets of these points as kernels take them, if there are any.
    fn share_layout(&self, points: &DevicePoints) -> Option<Points> {
        let of = [points.last_sort(), self.chosen_stamp];
        (self.share.layout()).filter(|_| self.chosen_stamp != 0 && self.shared == of)
    }
}
