//! Neighbours of free positions: they become a set of their own on the device for one call.
//!
//! Positions are copied to page-locked memory and sent in pieces, as those of a set are, and sorted
//! there into the cells of the engine's sets. They then search as any set does. Memory for as many
//! is kept, on the device and on the host.
//!
//! In a periodic box positions far outside of it may ask for wider cells; all sets are then sorted
//! anew, for this query and again for the next job.

use super::{
    buffers::Queries,
    state::{GpuJobError, GpuState, exclusions, far_images, named_data, stamped},
};
use crate::backend::{
    PairRules, StepInput, next_stamp,
    rows::{Query, QueryTo},
    transfer::{StagedUpload, numbers_of, words_of},
};
use nearfield_gpu::{
    self as gpu, DeviceFilter, DevicePointData, DevicePoints, HostPointData, PairOfPoints,
};
use nearfield_pairs::ListKind;
use tracing::field::Empty;

impl GpuState {
    /// Writes the neighbours of free positions.
    pub(super) fn query(
        &mut self,
        input: &StepInput<'_>,
        query: Query<'_>,
        to: QueryTo<'_>,
    ) -> Result<(), GpuJobError> {
        let mut queries = std::mem::take(&mut self.queries);
        let found = self.query_with(&mut queries, input, query, to);
        self.queries = queries;
        found
    }

    fn query_with(
        &mut self,
        queries: &mut Queries,
        input: &StepInput<'_>,
        query: Query<'_>,
        to: QueryTo<'_>,
    ) -> Result<(), GpuJobError> {
        let bounds = query.bounds;
        let strategy = self.begin_sort(input, &input.bounds.union(&bounds), None)?;
        self.send_positions(queries, input, query)?;
        let precision = input.lattice.radius().precision();
        let points = || self.backend.points_in(precision);
        let targets = queries.points.get_or_insert_with(points);
        let lattice = self.lattice.as_ref().ok_or(gpu::ErrorKind::Unsorted);
        let lattice = lattice.map_err(gpu::Error::from)?;
        (self.backend).begin_sort(targets, lattice, &bounds)?;
        self.finish_sort(input)?;
        let unsorted = || gpu::Error::from(gpu::ErrorKind::Unsorted);
        let lattice = self.lattice.as_ref().ok_or_else(unsorted)?;
        if !targets.is_empty() {
            self.backend.finish(targets, lattice, &bounds)?;
        }
        let radii = self.take_data(query, targets, &mut queries.data)?;
        let sources = self.sets.get(query.sources).ok_or_else(unsorted)?;
        let filter = query.points.map(|points| points.rules.filter);
        let mut pair = PairOfPoints {
            lattice: self.lattice.as_ref().ok_or_else(unsorted)?,
            targets,
            sources: &sources.points,
            same_set: false,
            share: None,
            filter: DeviceFilter {
                targets: Some(&queries.data),
                sources: Some(&sources.data),
                cutoffs: filter.and_then(|of| of.cutoffs).map(|_| &self.cutoffs),
                excluded: filter.is_some_and(|of| of.excluded.is_some()),
                radii,
                ..DeviceFilter::default()
            },
        };
        if let Some(k) = query.nearest {
            let found = self.backend.find_nearest(pair, k, &mut queries.nearest);
            found.map_err(far_images)?;
            pair.filter.nearest = Some(queries.nearest.last());
        }
        let _span = tracing::debug_span!("gpu.query", pairs = Empty).entered();
        // Queries are at arbitrary positions, not at points of the set, so no pair occurs twice.
        let of = (pair, ListKind::Full);
        let storage = &mut queries.lists;
        storage.nearest_first(query.nearest.is_some());
        match to {
            QueryTo::Lists(lists) => self.write(input, of, strategy, storage, lists),
            QueryTo::Geometry(pairs) => self.write_geometry(input, of, strategy, storage, pairs),
        }
    }

    /// Brings what filters read of the positions and of the set that they search to the device, in
    /// the order of the sorts; says whether the radii of the positions and those of the set count.
    fn take_data(
        &mut self,
        query: Query<'_>,
        positions: &DevicePoints,
        data: &mut DevicePointData,
    ) -> Result<[bool; 2], gpu::Error> {
        let (of_positions, of_set) = (query.radii.targets(), query.radii.sources());
        let mut given = [HostPointData::default(); 2];
        if let Some(points) = query.points {
            let PairRules {
                filter,
                cutoffs,
                stamps,
                ..
            } = points.rules;
            self.take_table(&filter, cutoffs)?;
            given[0].types = (filter.cutoffs).map(|_| stamped(next_stamp(), points.types));
            given[0].exclusions = (points.exclusions)
                .filter(|_| filter.excluded.is_some())
                .map(|arrays| stamped(next_stamp(), exclusions(arrays)));
            given[1] = named_data(&filter, 1, stamps[1]);
        }
        given[0].radii = of_positions.map(|radii| stamped(next_stamp(), *radii));
        given[1].radii = of_set.map(|radii| stamped(query.radii_stamp, *radii));
        let set = (self.sets.get_mut(query.sources)).ok_or(gpu::ErrorKind::Unsorted)?;
        let sides = [(data, positions), (&mut set.data, &set.points)];
        for ((data, points), given) in sides.into_iter().zip(given) {
            self.backend.take_point_data(data, given, points.len())?;
            if !points.is_empty() {
                self.backend.arrange(data, points)?;
            }
        }
        Ok([of_positions, of_set].map(|radii| radii.is_some()))
    }

    /// Copies positions to the device.
    fn send_positions(
        &self,
        queries: &mut Queries,
        input: &StepInput<'_>,
        query: Query<'_>,
    ) -> Result<(), gpu::Error> {
        let (backend, numbers) = (&self.backend, numbers_of(&query.positions));
        let bytes = size_of::<f32>() * numbers;
        let _span = tracing::debug_span!("gpu.upload", bytes).entered();
        let precision = input.lattice.radius().precision();
        let points = (queries.points).get_or_insert_with(|| backend.points_in(precision));
        backend.expect(points, numbers / words_of(precision))?;
        // The query before has waited for its copies, and one that failed for the device.
        let mut copy = backend.host_room(queries.copy.take(), numbers)?;
        let upload = StagedUpload::new(&[query.positions], &mut copy, |_| ());
        upload.send(input.cpu, |first, piece| {
            backend.receive(points, first, piece)
        })?;
        queries.copy = Some(copy);
        Ok(())
    }
}
