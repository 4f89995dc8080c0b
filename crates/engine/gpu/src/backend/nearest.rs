//! The k nearest neighbours of every target, within the radius.
//!
//! The k nearest are the first k of a list in the order of squared distance, index and image. So
//! one pass over the lists finds for every target the last pair that is kept, and every job then
//! leaves out what comes after it, as it leaves out pairs by other filters
//! (`kernels/cuda/filter.cuh`). Counting, lists, geometry and sums need no code of their own for
//! it.
//!
//! The pass writes the lists with squares and images in parts, of which one at a time is kept, and
//! orders each (`kernels/cuda/ascend.cuh`). It costs about as much as writing all lists with these
//! two arrays on the device.
//!
//! # Order
//!
//! Squares are compared in the precision of the positions: in `f32` the bits of a square above the
//! index are one key, in `f64` a key has both beside each other. The last pair keeps its square in
//! `f64`, which holds either exactly, so kernels of both precisions read the same struct.
//!
//! # Invariant
//!
//! The last pairs are of the sorts, the filters and the k that they were found for. Others are
//! refused, because they would leave out the wrong pairs.

use super::{
    delivery::ListPart,
    filter::{LastPairs, NearestOrigin},
    gpu::GpuBackend,
    list_order::LastTo,
    lists::{DeviceLists, WriteTo},
    walk::PairOfPoints,
};
use crate::{
    error::{Error, ErrorKind},
    launch::{Outlet, Traverse},
    traversal::Strategy,
};
use nearfield_pairs::ListKind;
use std::num::NonZeroU32;

/// The last of the k nearest pairs of every target, and memory to find them.
#[derive(Debug, Default)]
pub struct DeviceNearest {
    last: LastPairs,
    /// One part of the lists.
    lists: DeviceLists,
}

impl GpuBackend {
    /// Finds the last of the k nearest pairs of every target, for the filter of the jobs to come.
    /// `of` has all other filters. Does nothing if they are those of these points as they are
    /// sorted now; waits for the device otherwise.
    ///
    /// # Errors
    /// [`ErrorKind::FarImages`] where a pair has an image without 32-bit numbers,
    /// [`ErrorKind::OutOfMemory`] when not even a small part of the lists fits, and those of
    /// running programs.
    pub fn find_nearest(
        &self,
        of: PairOfPoints<'_>,
        k: NonZeroU32,
        nearest: &mut DeviceNearest,
    ) -> Result<(), Error> {
        let origin = NearestOrigin {
            sorts: [of.targets.last_sort(), of.sources.last_sort()],
            filter: of.filter.origin(),
            searching: of.searching(),
            k: k.get(),
        };
        if of.is_empty() || nearest.last.of == Some(origin) {
            return Ok(());
        }
        nearest.last.of = None;
        let rows = of.targets.len().max(of.searching());
        nearest.last.pairs.reserve(&self.stream, rows)?;
        let to = LastTo {
            k: k.get(),
            address: nearest.last.pairs.address(),
        };
        let lists = &mut nearest.lists;
        lists.nearest_first(true);
        let pairs = self.measure_lists(of, ListKind::Full, Strategy::Flat, lists)?;
        let (parts, _) = self.divided(of, pairs, lists)?;
        let kernels = self.traversal(lists.traversal(&of)?)?;
        let Traverse::Flat(flat) = &kernels.traverse else {
            return Err(Error::from(ErrorKind::OtherLists));
        };
        for ListPart { slots, entries } in parts {
            let outlet = Outlet {
                base: entries.start,
                capacity: entries.end,
                first: slots.start as u32,
                behind: slots.end as u32,
                ..lists.outlet()
            };
            let arrays = lists.arrays(0);
            let to_write = WriteTo { outlet, arrays };
            lists.write(
                self,
                of,
                flat,
                to_write,
                slots.len(),
                entries.end - entries.start,
            )?;
            to_write.order_by_distance(self, of, Some(to))?;
        }
        match lists.far_images(self)? {
            0 => {
                nearest.last.of = Some(origin);
                Ok(())
            }
            pairs => Err(Error::from(ErrorKind::FarImages { pairs })),
        }
    }
}

impl DeviceNearest {
    /// Forgets the pairs, which the next call finds anew: those of a share of as many other points
    /// cannot be told from them.
    pub fn forget(&mut self) {
        self.last.of = None;
    }

    /// The last pairs, for a [`DeviceFilter`](super::DeviceFilter).
    pub fn last(&self) -> &LastPairs {
        &self.last
    }

    /// Bytes held on the device.
    pub fn bytes(&self) -> usize {
        self.last.pairs.bytes() + self.lists.bytes()
    }
}
