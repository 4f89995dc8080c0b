//! Jobs over lists that stay on the device, and over points that have moved since.
//!
//! Module `kept` has the lists and the points. Here a job finds what it needs, brings what is not
//! there, and leaves the sets of the engine as they are sorted.

use super::{
    cells::Occupancy,
    kept::KeptLists,
    state::{GpuJobError, GpuState},
};
use crate::{
    backend::{
        Job, StepInput,
        accelerator::{PairsFrom, PairsOfNow},
    },
    balance::Strategy,
    lists::PairGeometry,
};
use nearfield_gpu::{self as gpu, Moved, Since};
use nearfield_grid::Lattice;
use tracing::field::Empty;

impl GpuState {
    /// The lists of a job that goes over them, taken out: found if they are not those of the sets
    /// as they are sorted and filtered now, with the positions of now where points have moved. The
    /// result must be given back to `kept`.
    pub(super) fn keep_lists(
        &mut self,
        input: &StepInput<'_>,
        job: Job,
        strategy: Strategy,
        pairs: PairsFrom<'_>,
    ) -> Result<KeptLists, GpuJobError> {
        let mut kept = (self.kept.remove(&[job.targets, job.sources])).unwrap_or_default();
        kept.find(&self.backend, self.pair(job)?, strategy)?;
        let PairsFrom::Moved { now, .. } = pairs else {
            return Ok(kept);
        };
        if input.points_of(job).contains(&0) {
            // There are no results to wait for, and so none to wait for the copies by.
            return Ok(kept);
        }
        let unsorted = || gpu::Error::from(gpu::ErrorKind::Unsorted);
        for (slot, now) in [job.targets, job.sources].into_iter().zip(now) {
            let Some(now) = now else { continue };
            let lattice = self.lattice.as_ref().ok_or_else(unsorted)?;
            let set = self.sets.get_mut(slot).ok_or_else(unsorted)?;
            let with = (&self.backend, input.cpu);
            set.moved.take(with, (&set.points, lattice), now)?;
        }
        Ok(kept)
    }

    /// What has changed since the lists of a job were found.
    pub(super) fn since(&self, job: Job, pairs: PairsFrom<'_>) -> Option<Since<'_>> {
        let PairsFrom::Moved { radius, now } = pairs else {
            return None;
        };
        let moved = |slot: usize, now: Option<_>| {
            now.and(self.sets.get(slot)).map(|set| set.moved.points())
        };
        let sets = [moved(job.targets, now[0]), moved(job.sources, now[1])];
        Some(Since::Moved(Moved { radius, sets }))
    }

    /// Writes the lists of a pair of sets at other positions and the geometry of their pairs.
    pub(super) fn geometry_of_now(
        &mut self,
        input: &StepInput<'_>,
        job: Job,
        now: PairsOfNow<'_>,
        geometry: &mut PairGeometry,
    ) -> Result<(), GpuJobError> {
        let _span = tracing::debug_span!("gpu.geometry", pairs = Empty).entered();
        let cells = cells_of_now(input, job, &now)?;
        let [targets, sources] = now.sets;
        let sources = (job.targets != job.sources).then_some(sources);
        let mut sets = std::mem::take(&mut self.now);
        let placed = sets.place((&self.backend, input.cpu), cells, targets, sources);
        let written = placed
            .map_err(GpuJobError::from)
            .and_then(|(pair, storage)| {
                let of = (pair, input.options.lists);
                self.write_geometry(input, of, Strategy::Flat, storage, geometry)
            });
        self.now = sets;
        written
    }
}

/// Cells of the radius for both sets, and how many of them there are to a radius.
///
/// # Errors
/// As [`Lattice::new`].
fn cells_of_now(
    input: &StepInput<'_>,
    job: Job,
    now: &PairsOfNow<'_>,
) -> Result<(Lattice, u32), crate::Error> {
    let bounds = now.sets[0].1.union(&now.sets[1].1);
    let [targets, sources] = input.points_of(job);
    let points = if job.targets == job.sources {
        targets
    } else {
        targets + sources
    };
    let domain = *input.lattice.domain();
    let plain = Lattice::new(now.radius, domain, 1, &bounds).map_err(crate::ErrorKind::Setup)?;
    let cells = Occupancy::new(points, bounds.extent(), plain.edges()).cells(Strategy::Flat);
    match cells.lattice(now.radius, domain, &bounds) {
        Ok(lattice) => Ok((lattice, cells.per_radius)),
        Err(_) => Ok((plain, 1)),
    }
}
