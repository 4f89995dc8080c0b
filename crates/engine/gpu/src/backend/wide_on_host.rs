//! Cells for the bulk of the points of a case, whose wide points are walked on the host.
//!
//! Wide targets are compared with all sources by the thread that walks, as those of shares are on a
//! device: a block of threads would compare the same pairs by the same functions.

use super::lattice::DeviceLattice;
use crate::launch::Filters;
use nearfield_grid::{Lattice, Radius};
use std::slice;

/// Cells for a radius that some points exceed.
pub(super) struct BulkCells {
    pub(super) lattice: Lattice,
}

impl BulkCells {
    /// `None` where radii up to `largest` need cells for all of them.
    pub(super) fn new(lattice: Lattice, largest: Radius) -> Option<Self> {
        DeviceLattice::may_be_for_bulk(&lattice, largest).then_some(Self { lattice })
    }

    /// The filters of these cells. The places of wide sources are written to `wide`, which holds
    /// their number already, 0.
    ///
    /// # Safety
    /// The radii of the sources that `filters` names are as many as there are `sources`.
    pub(super) unsafe fn filters(
        &self,
        filters: Filters,
        sources: usize,
        wide: &mut Vec<u32>,
    ) -> Filters {
        let bulk = self.lattice.radius().value();
        let mut wide_sources = 0;
        if filters.source_radii != 0 {
            let radii = filters.source_radii as *const f32;
            // SAFETY: there are so many, as the caller promises.
            let radii = unsafe { slice::from_raw_parts(radii, sources) };
            wide.extend((0..sources as u32).filter(|&slot| radii[slot as usize] > bulk));
            wide[0] = wide.len() as u32 - 1;
            wide_sources = wide.as_ptr() as u64;
        }
        Filters {
            wide_sources,
            ..filters.for_bulk(&self.lattice)
        }
    }
}
