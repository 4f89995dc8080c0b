//! Lists with displacements, distances and images of their pairs.
//!
//! Lists name sources, which is enough as long as positions are at hand and no box is periodic.
//! Libraries that take pairs with their displacements want them computed once, with the image that
//! the search had found anyway. Index and geometry are written by one pass to parallel arrays, so
//! their order agrees by construction.
//!
//! The search counts first and writes second, so the bytes are known before anything is allocated,
//! with a limit or without. A GPU writes all arrays in page-locked memory that it lends; pairs that
//! are to ascend are sorted on the host.
//!
//! **Invariant:** entry k of every array of a [`PairGeometry`] belongs to entry k of its lists.

use crate::{
    Device, Engine, Error, ListOrder, PointSetId,
    backend::{JobKind, support::Feature},
    engine::jobs::{Assigned, job},
    lists::PairGeometry,
};

impl Engine {
    /// Writes the neighbours of every point of `targets` among `sources` together with the
    /// displacement, the squared distance and the periodic image of each pair.
    ///
    /// Displacements and squared distances are in the engine's precision.
    ///
    /// Lists are full or half and in the order that the engine was built with. They are written
    /// anew and kept in `geometry` alone, whose memory is reused; the pair of sets need not be
    /// active. A pair takes 32 bytes (48 in `f64`), which
    /// [`Builder::memory_limit`](crate::Builder::memory_limit) bounds too.
    ///
    /// ```
    /// use nearfield::{prelude::*, lists::PairGeometry};
    /// let mut engine = Engine::builder(1.0).periodic([Some(4.0), None, None]).build()?;
    /// let atoms = engine.add_point_set(&[[0.25f32, 0.0, 0.0], [3.75, 0.0, 0.0]])?;
    /// let mut geometry = PairGeometry::default();
    /// engine.pair_geometry(atoms, atoms, &mut geometry)?;
    /// let neighbor = geometry.of(0).next().expect("the other atom is near across the face");
    /// assert_eq!((neighbor.index, neighbor.image), (1, [-1, 0, 0]));
    /// assert_eq!(neighbor.d, [-0.5, 0.0, 0.0]);
    /// assert_eq!(neighbor.distance(), 0.5);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// Displacements point from the target to the source, its periodic image included, in the unit
    /// of the coordinates; images are whole numbers of box vectors. A GPU does it if the engine was
    /// asked for one alone; an engine that shares its jobs leaves it to the CPU pool.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`](crate::ErrorKind::UnknownPointSet) and
    /// [`ErrorKind::NoRadii`](crate::ErrorKind::NoRadii);
    /// [`ErrorKind::MemoryLimit`](crate::ErrorKind::MemoryLimit), which leaves `geometry` as it
    /// was; and [`ErrorKind::Cpu`](crate::ErrorKind::Cpu) when memory is short, after which
    /// `geometry` is of no use until it is written again.
    pub fn pair_geometry(
        &self,
        targets: PointSetId,
        sources: PointSetId,
        geometry: &mut PairGeometry,
    ) -> Result<(), Error> {
        let (t, s) = (targets.slot(), sources.slot());
        let _span = tracing::debug_span!("engine.geometry", targets = t, sources = s).entered();
        self.pair(targets, sources)?;
        self.in_place()?;
        let job = job(JobKind::Geometry, targets, sources);
        let feature = match self.settings.memory_limit {
            Some(_) => Feature::LimitedLists,
            None => Feature::PairGeometry,
        };
        match self.assign_pair(&feature, [t, s])? {
            Assigned::Cpu(reason) => {
                self.geometry_on_cpu(targets, sources, geometry)?;
                self.was_done(job, Device::Cpu, reason);
            }
            Assigned::Device(device) => {
                self.ran(job, device.geometry(&self.input(), job, geometry)?);
                if self.settings.order == ListOrder::Ascending {
                    let targets = geometry.lists().len();
                    tracing::debug_span!("cpu.sort_geometry")
                        .in_scope(|| self.backend.install_for(targets, || geometry.sort()))?;
                }
            }
        }
        Ok(())
    }

    /// The same by the CPU backend, within the memory limit.
    fn geometry_on_cpu(
        &self,
        targets: PointSetId,
        sources: PointSetId,
        geometry: &mut PairGeometry,
    ) -> Result<(), Error> {
        let of = self.pair_of_sets(targets, sources)?;
        let lists = self.backend.measure(of, self.settings.lists)?;
        let (targets, pairs) = (lists.lengths().len(), lists.pairs());
        let options = self.input().options;
        options.admit_geometry(targets, pairs, self.precision(), geometry)?;
        lists.write_geometry(self.settings.order, geometry)?;
        Ok(())
    }
}
