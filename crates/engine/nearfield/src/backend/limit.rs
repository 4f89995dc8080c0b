//! Memory limits: what needs more than an engine may hold is refused, with the bytes needed.
//!
//! A limit counts memory of the host: the lists of an engine together, or what one call writes. On
//! a device it also bounds the storage that entries go through on their way.

use super::StepOptions;
use crate::{Error, ErrorKind};
use nearfield_cpu::{NeighborLists, PairGeometry};
use nearfield_grid::Precision;

/// Name of the memory of lists in messages.
pub(crate) const LISTS: &str = "neighbour lists";
/// Name of the memory of lists with the geometry of their pairs in messages.
pub(crate) const GEOMETRY: &str = "the geometry of pairs";

/// Refuses what needs more than `limit` bytes.
///
/// `what` is the use of the memory, for the message.
pub(crate) fn within(limit: u64, what: &'static str, needed: u64) -> Result<(), Error> {
    if needed > limit {
        return Err(ErrorKind::MemoryLimit {
            what,
            needed,
            limit,
        }
        .into());
    }
    Ok(())
}

impl StepOptions {
    /// Refuses lists that exceed the limit by themselves. Room kept from earlier lists is given
    /// back where it is too much.
    pub(super) fn admit_lists(
        &self,
        targets: usize,
        pairs: u64,
        lists: &mut NeighborLists,
    ) -> Result<(), Error> {
        let Some(limit) = self.memory_limit else {
            return Ok(());
        };
        let fresh = NeighborLists::default();
        within(limit, LISTS, fresh.bytes_after(targets, pairs))?;
        if lists.bytes_after(targets, pairs) > limit {
            lists.release();
        }
        Ok(())
    }

    /// As [`admit_lists`](Self::admit_lists), for lists with the geometry of their pairs.
    pub(crate) fn admit_geometry(
        &self,
        targets: usize,
        pairs: u64,
        precision: Precision,
        geometry: &mut PairGeometry,
    ) -> Result<(), Error> {
        let Some(limit) = self.memory_limit else {
            return Ok(());
        };
        let bytes = |geometry: &PairGeometry| geometry.bytes_after(targets, pairs, precision);
        within(limit, GEOMETRY, bytes(&PairGeometry::default()))?;
        if bytes(geometry) > limit {
            *geometry = PairGeometry::default();
        }
        Ok(())
    }
}
