//! What filters read of the points of lists with a skin: taken as by an engine on the device.
//!
//! Data belong to indices and follow the points. When they change, lists are built anew, because
//! exclusions are left out of the lists and cut-offs bound them.

use super::{DeviceVerletLists, DeviceView};
use crate::{Error, PointSetId};
use nearfield_gpu::PointNumber;

impl DeviceVerletLists {
    /// Gives every point of a set a type, as
    /// [`DeviceEngine::set_types`](super::DeviceEngine::set_types).
    ///
    /// # Errors
    /// As there.
    pub fn set_types<T: Copy + Into<u32>>(
        &mut self,
        set: PointSetId,
        types: &[T],
    ) -> Result<(), Error> {
        self.engine.set_types(set, types)
    }

    /// The same from an array of the GPU, as
    /// [`DeviceEngine::set_types_from_device`](super::DeviceEngine::set_types_from_device); types
    /// that there are not are found by [`refresh`](Self::refresh) and [`finish`](Self::finish).
    ///
    /// # Errors
    /// As there.
    pub fn set_types_from_device<T: PointNumber>(
        &mut self,
        set: PointSetId,
        types: &DeviceView<'_, T>,
    ) -> Result<(), Error> {
        self.engine.set_types_from_device(set, types)
    }

    /// Leaves out pairs of points of a set, as
    /// [`DeviceEngine::exclude_pairs`](super::DeviceEngine::exclude_pairs).
    ///
    /// # Errors
    /// As there.
    pub fn exclude_pairs(&mut self, set: PointSetId, pairs: &[[u32; 2]]) -> Result<(), Error> {
        self.engine.exclude_pairs(set, pairs)
    }

    /// The same by ascending lists, as
    /// [`DeviceEngine::set_exclusions`](super::DeviceEngine::set_exclusions).
    ///
    /// # Errors
    /// As there.
    pub fn set_exclusions(
        &mut self,
        set: PointSetId,
        offsets: &[u64],
        indices: &[u32],
    ) -> Result<(), Error> {
        self.engine.set_exclusions(set, offsets, indices)
    }

    /// Leaves out pairs of points of the same molecule, as
    /// [`DeviceEngine::set_molecules`](super::DeviceEngine::set_molecules).
    ///
    /// # Errors
    /// As there.
    pub fn set_molecules(&mut self, set: PointSetId, of_points: &[u32]) -> Result<(), Error> {
        self.engine.set_molecules(set, of_points)
    }

    /// The same from an array of the GPU, as
    /// [`DeviceEngine::set_molecules_from_device`](super::DeviceEngine::set_molecules_from_device);
    /// numbers that cannot be used are found by [`refresh`](Self::refresh) and
    /// [`finish`](Self::finish).
    ///
    /// # Errors
    /// As there.
    pub fn set_molecules_from_device<T: PointNumber>(
        &mut self,
        set: PointSetId,
        molecules: &DeviceView<'_, T>,
    ) -> Result<(), Error> {
        self.engine.set_molecules_from_device(set, molecules)
    }

    /// Leaves out no pair of a set any longer.
    ///
    /// # Errors
    /// As [`DeviceEngine::clear_exclusions`](super::DeviceEngine::clear_exclusions).
    pub fn clear_exclusions(&mut self, set: PointSetId) -> Result<(), Error> {
        self.engine.clear_exclusions(set)
    }
}
