//! The pairs of lists with a skin, with their geometry at the positions of now.

use super::{AnyStoredPairs, VerletLists};
use crate::{
    Error, PointSetId,
    backend::limit::{GEOMETRY, within},
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
    /// Costs two passes over the stored lists on the workers of the engine.
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
        let pairs = self.stored(targets, sources)?;
        if let Some(limit) = self.engine.settings.memory_limit {
            let lists = self.candidates(targets, sources)?;
            let fresh = PairGeometry::default();
            let most = fresh.bytes_after(lists.len(), lists.pairs(), self.engine.precision());
            within(limit, GEOMETRY, most)?;
        }
        match &pairs {
            AnyStoredPairs::Single(pairs) => self.engine.backend.stored_geometry(pairs, geometry),
            AnyStoredPairs::Double(pairs) => {
                self.engine.backend.stored_geometry_f64(pairs, geometry)
            }
        }?;
        Ok(())
    }
}
