//! The targets of the GPU's part of a job that it shares with the CPU backend.
//!
//! The map of bricks is sent once per plan and kept by the plan's version, since a plan serves many
//! steps and its map may have millions of bricks. When 16 are kept all are dropped: plans of jobs
//! that are still in use come back with their next step, and those of old cuts do not.
//!
//! With [`Strategy::Flat`] targets are grouped by subregion, so results leave in the order of the
//! subregions and their times can be told apart. Strategies that go from cell to cell keep the
//! order of cells; their time is one number for all subregions.

use super::{
    sort::cells,
    state::{GpuState, KEPT_PLANS, Shares},
};
use crate::{
    backend::{StepInput, accelerator::DevicePart},
    balance::Strategy,
};
use nearfield_gpu::{self as gpu, DeviceShare, PairOfPoints};

impl GpuState {
    /// Sorts, and gathers the targets of a part. The result must be given back.
    pub(super) fn gather(
        &mut self,
        input: &StepInput<'_>,
        part: DevicePart<'_>,
    ) -> Result<(Shares, Strategy), gpu::Error> {
        let strategy = input.options.strategy.of_share();
        self.begin_sort_by(input, cells(input, &input.bounds), &input.bounds)?;
        self.finish_sort(input)?;
        let mut shares = std::mem::take(&mut self.shares);
        let gathered = self.gather_into(&mut shares, part, strategy);
        match gathered {
            Ok(()) => Ok((shares, strategy)),
            Err(error) => {
                self.shares = shares;
                Err(error)
            }
        }
    }

    /// Sends the map if the device does not have it, and gathers. Nothing is gathered without a
    /// lattice; the part is then refused as unsorted.
    fn gather_into(
        &self,
        shares: &mut Shares,
        part: DevicePart<'_>,
        strategy: Strategy,
    ) -> Result<(), gpu::Error> {
        let (Some(lattice), Some(targets)) = (&self.lattice, self.sets.get(part.job.targets))
        else {
            return Ok(());
        };
        let planned = part.planned;
        let version = planned.version();
        if !shares.parts.contains_key(&version) {
            if shares.parts.len() >= KEPT_PLANS {
                shares.parts.clear();
            }
            let (bricks, count) = (planned.parts(), planned.subregions());
            let parts = self.backend.parts(bricks, count, planned.lattice())?;
            shares.parts.insert(version, parts);
        }
        let grouped = strategy == Strategy::Flat;
        let _span = tracing::debug_span!("gpu.share").entered();
        match shares.parts.get(&version) {
            Some(parts) => {
                self.backend
                    .share(&targets.points, lattice, parts, grouped, &mut shares.share)
            }
            None => Ok(()),
        }
    }

    /// The sets of a part's job, with targets restricted to the share. Sources are always whole, so
    /// each target has all of its neighbours.
    pub(super) fn pair_of_share<'a>(
        &'a self,
        part: DevicePart<'_>,
        share: &'a DeviceShare,
    ) -> Result<PairOfPoints<'a>, gpu::Error> {
        let pair = self.pair(part.job)?;
        let share = Some(share);
        Ok(PairOfPoints { share, ..pair })
    }
}
