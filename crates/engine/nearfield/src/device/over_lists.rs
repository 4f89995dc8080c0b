//! Pair kernels over the lists of an engine on the device.
//!
//! The lists of a pair of sets serve any number of kernels, so the pairs are searched once. Half
//! lists of one set name every pair for one of its points only, and a thread per target would have
//! to add to the sums of others. So the first kernel over them has the full lists found beside
//! them, which the next ones read too.
//!
//! **Invariant:** full lists beside half ones are provisional as these are, and looked at by the
//! same [`finish`](DeviceEngine::finish).

use super::{
    engine::DeviceEngine,
    filters::with_nearest,
    lists::{OverLists, search},
};
use crate::{Error, ListKind, ListOrder, PointSetId};
use nearfield_gpu::{
    DeviceFields, DeviceResults, ListedPairs, PairCall, PairOfPoints, Since, Skin,
};
use std::sync::PoisonError;

impl DeviceEngine {
    /// Evaluates a kernel over the lists of a pair of sets, or over lists with a skin.
    ///
    /// # Errors
    /// [`ErrorKind::NoLists`](crate::ErrorKind::NoLists), and those of a traversal.
    pub(super) fn run_over_lists(
        &self,
        [targets, sources]: [PointSetId; 2],
        skin: Option<Skin<'_>>,
        call: PairCall<'_>,
        fields: &DeviceFields<'_>,
        to: DeviceResults<'_, '_>,
    ) -> Result<(), Error> {
        let found = self.current_lists(targets, sources)?;
        let of = self.pair(targets, sources)?;
        // Where a source is near through several images, lists do not say which of these are among
        // the nearest. The last that is kept says so.
        let nearest = self.filters.nearest(&self.backend, of)?;
        let of = with_nearest(of, &nearest);
        // State left by a panic is that of some search, which is compared with the present one.
        let mut over = found.over.lock().unwrap_or_else(PoisonError::into_inner);
        let is_half = self.settings.lists == ListKind::Half && targets == sources;
        if is_half {
            self.find_whole(of, &mut over)?;
        }
        let OverLists { slots, whole, .. } = &mut *over;
        let over = ListedPairs {
            of,
            lists: if is_half { whole } else { &found.storage },
            slots,
            since: skin.map(Since::Skin),
        };
        (self.backend)
            .evaluate_over_lists(over, call, fields, to, &mut self.scratch())
            .map_err(Error::from)
    }

    /// Finds the full lists, unless they are those of the sets as they are sorted now.
    fn find_whole(&self, of: PairOfPoints<'_>, over: &mut OverLists) -> Result<(), Error> {
        if over.whole.are_of(&of) {
            return Ok(());
        }
        let whole = over.write_whole();
        whole.ascend(self.settings.order == ListOrder::Ascending);
        let (how, limit) = (
            (ListKind::Full, self.settings.strategy),
            self.settings.memory_limit,
        );
        search(&self.backend, of, how, whole, limit)
    }
}
