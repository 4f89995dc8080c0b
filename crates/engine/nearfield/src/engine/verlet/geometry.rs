//! The pairs of lists with a skin, with their geometry at the positions of now.

use super::{AnyStoredPairs, VerletLists};
use crate::{
    Device, Error, ErrorKind, ListOrder, PointSetId,
    backend::{
        AttachedDevice, Fault, Job, JobKind,
        accelerator::PairsOfNow,
        limit::{GEOMETRY, within},
        support::Feature,
    },
    engine::{
        jobs::{Assigned, job},
        placing::Words,
    },
    lists::PairGeometry,
};

impl VerletLists {
    /// Writes the neighbours within the radius of every point of `targets` among `sources`, and the
    /// displacement, the squared distance and the periodic image of each pair, at the positions of
    /// the last [`update`](Self::update): what [`Engine::pair_geometry`] of an engine of the true
    /// radius writes, bit for bit, but for the order of the lists unless they ascend.
    ///
    /// [`Engine::pair_geometry`]: crate::Engine::pair_geometry
    ///
    /// ```
    /// use nearfield::{prelude::*, lists::{PairGeometry, VerletLists}};
    /// let mut lists = VerletLists::new(Engine::builder(1.0).periodic([Some(4.0); 3]), 0.3)?;
    /// let atoms = lists.add_point_set(&[[0.25f32, 0.0, 0.0], [3.625, 0.0, 0.0]])?;
    /// lists.refresh()?;
    /// lists.update(atoms, &[[0.25f32, 0.0, 0.0], [3.75, 0.0, 0.0]])?;
    /// let mut geometry = PairGeometry::default();
    /// lists.pair_geometry(atoms, atoms, &mut geometry)?;
    /// let pair = geometry.of(0).next().expect("the other atom is near across the face");
    /// assert_eq!((pair.index, pair.image, pair.d), (1, [-1, 0, 0], [-0.5, 0.0, 0.0]));
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// Costs two passes over the stored lists on the workers of the engine. In an engine that was
    /// asked for a GPU alone, the GPU searches anew at the positions of now, within the radius:
    /// that takes it no longer than to go through the lists.
    ///
    /// # Errors
    /// As [`candidates`](Self::candidates), [`ErrorKind::MemoryLimit`](crate::ErrorKind) where the
    /// stored lists would exceed it with geometry, and [`ErrorKind::Cpu`](crate::ErrorKind) when
    /// memory is short; the contents of `geometry` are then unspecified.
    pub fn pair_geometry(
        &self,
        targets: PointSetId,
        sources: PointSetId,
        geometry: &mut PairGeometry,
    ) -> Result<(), Error> {
        let (engine, sets) = (&self.engine, [targets, sources]);
        let lists = self.candidates(targets, sources)?;
        if let Some(limit) = engine.settings.memory_limit {
            let fresh = PairGeometry::default();
            let most = fresh.bytes_after(lists.len(), lists.pairs(), engine.precision());
            within(limit, GEOMETRY, most)?;
        }
        engine.in_place()?;
        let job = job(JobKind::Geometry, targets, sources);
        let reason = match engine.assign_pair(&Feature::Skin, sets.map(PointSetId::slot))? {
            Assigned::Cpu(reason) => reason,
            Assigned::Device(device) => {
                match self.geometry_on_device(device, sets, job, geometry)? {
                    Ok(()) => {
                        engine.ran(job, None);
                        return Ok(());
                    }
                    Err(fault) => fault.to_string().into(),
                }
            }
        };
        match &self.stored(targets, sources)? {
            AnyStoredPairs::Single(pairs) => engine.backend.stored_geometry(pairs, geometry),
            AnyStoredPairs::Double(pairs) => engine.backend.stored_geometry_f64(pairs, geometry),
        }?;
        engine.was_done(job, Device::Cpu, reason);
        Ok(())
    }

    /// The same by a device that works alone; the fault after which the CPU backend has to.
    fn geometry_on_device(
        &self,
        device: AttachedDevice<'_>,
        sets: [PointSetId; 2],
        job: Job,
        geometry: &mut PairGeometry,
    ) -> Result<Result<(), Fault>, Error> {
        let engine = &self.engine;
        let words = |set: PointSetId| {
            let words = Words::of(self.sets.now(set.slot()), engine.precision());
            words.map_err(|source| Error::from(ErrorKind::Positions { set, source }))
        };
        let (targets, sources) = (words(sets[0])?, words(sets[1])?);
        let bounds = sets.map(|set| self.sets.path(set.slot()).bounds());
        let now = PairsOfNow {
            radius: self.radius,
            sets: [(targets.field(), bounds[0]), (sources.field(), bounds[1])],
        };
        let input = engine.input();
        let found = device.alone(&input, |device| {
            device.geometry_of_now(&input, job, now, geometry)
        })?;
        if found.is_ok() && engine.settings.order == ListOrder::Ascending {
            let targets = geometry.lists().len();
            tracing::debug_span!("cpu.sort_geometry")
                .in_scope(|| engine.backend.install_for(targets, || geometry.sort()))?;
        }
        Ok(found)
    }
}
