//! Lists on a GPU, which stay memory of the engine.

use super::{
    array::{Memory, PyDeviceArray},
    fate::Fate,
    given::GivenArray,
    layout::Dtype,
    shared::{SharedEngine, State},
    stream::KeptStream,
};
use crate::errors::raise;
use nearfield::{
    Error, ErrorKind, PointSetId, Radii,
    device::{DeviceListsView, DeviceView, PointNumber, PositionNumber, Stream},
};
use pyo3::prelude::*;
use std::sync::Arc;

/// Neighbour lists on a GPU: the neighbours of point i are the ``count[i]`` entries of ``indices``
/// from ``start[i]`` on, in no particular order unless the engine is ``sorted``, once per periodic
/// image.
///
/// Valid until one of the two sets is next updated or pair_geometry() writes their pairs; see
/// DeviceArray.
#[pyclass(name = "DeviceNeighbors", module = "nearfield", frozen)]
pub(crate) struct PyDeviceNeighbors {
    /// First entry of the list of every point; shape (n,), uint64.
    #[pyo3(get)]
    pub(crate) start: Py<PyDeviceArray>,
    /// Number of neighbours of every point; shape (n,), uint32.
    #[pyo3(get)]
    pub(crate) count: Py<PyDeviceArray>,
    /// The lists, and room that belongs to none; shape (m,), uint32.
    #[pyo3(get)]
    pub(crate) indices: Py<PyDeviceArray>,
}

#[pymethods]
impl PyDeviceNeighbors {
    fn __len__(&self) -> usize {
        self.count.get().__len__()
    }

    fn __repr__(&self) -> String {
        format!("<nearfield.DeviceNeighbors of {} points>", self.__len__())
    }
}

impl PyDeviceNeighbors {
    /// The object that has start, count and entries of lists.
    pub(super) fn of(py: Python<'_>, arrays: [PyDeviceArray; 3]) -> PyResult<Self> {
        let [start, count, indices] = arrays;
        Ok(Self {
            start: Py::new(py, start)?,
            count: Py::new(py, count)?,
            indices: Py::new(py, indices)?,
        })
    }
}

impl State {
    /// Start, count and entries of the lists of a pair of sets, which are written now unless
    /// current ones exist.
    pub(super) fn lists(
        &mut self,
        shared: &Arc<SharedEngine>,
        of: [usize; 2],
    ) -> PyResult<[PyDeviceArray; 3]> {
        let (t, s) = (self.set(of[0])?, self.set(of[1])?);
        let current = |(pair, fate): &&([usize; 2], Arc<Fate>)| *pair == of && fate.is_usable();
        let kept = (self.lists.iter().find(current)).map(|(_, fate)| fate.clone());
        // The engine may have sorted a set again since then, and its lists are then gone.
        let fate = match kept.filter(|_| self.engine.neighbors(t, s).is_ok()) {
            Some(fate) => fate,
            None => {
                self.retire(|pair| pair == of);
                self.engine.find_neighbors(t, s).map_err(raise)?;
                let fate = self.new_fate();
                self.lists.push((of, fate.clone()));
                fate
            }
        };
        self.views_of_lists(shared, [t, s], fate)
    }

    /// The neighbours of free positions in a set, in arrays that are valid until the next query.
    pub(super) fn query(
        &mut self,
        shared: &Arc<SharedEngine>,
        (positions, double): (&GivenArray, bool),
        radii: Option<Radii<'_>>,
        sources: usize,
    ) -> PyResult<[PyDeviceArray; 3]> {
        let s = self.set(sources)?;
        if let Some(before) = self.queries {
            self.changed(before);
        }
        let stream = self.engine.stream();
        let queried = if double {
            let positions = positions.lend::<f64>(stream);
            self.query_by(&positions.as_view(), radii, s)
        } else {
            let positions = positions.lend::<f32>(stream);
            self.query_by(&positions.as_view(), radii, s)
        };
        let queried = queried.map_err(raise)?;
        let number = queried.number() as usize;
        self.queries = Some(number);
        let fate = self.new_fate();
        self.lists.push(([number, sources], fate.clone()));
        self.views_of_lists(shared, [queried, s], fate)
    }

    /// Queries positions that have these radii, if any.
    fn query_by<T: PositionNumber>(
        &mut self,
        positions: &DeviceView<'_, T>,
        radii: Option<Radii<'_>>,
        sources: PointSetId,
    ) -> Result<PointSetId, Error> {
        match radii {
            None => self.engine.query(positions, sources),
            Some(radii) => self.engine.query_with_radii(positions, radii, sources),
        }
    }

    /// The lists that were written for a pair of sets.
    fn views_of_lists(
        &self,
        shared: &Arc<SharedEngine>,
        [t, s]: [PointSetId; 2],
        fate: Arc<Fate>,
    ) -> PyResult<[PyDeviceArray; 3]> {
        let stream = self.engine.stream();
        let found = match self.engine.neighbors(t, s) {
            Ok(found) => found,
            // Where nothing was found there is no storage to look at.
            Err(error) if matches!(error.kind(), ErrorKind::NoLists { .. }) => {
                let points = self.engine.points(t).map_err(raise)?;
                let none =
                    |len, dtype| PyDeviceArray::zeros(stream, vec![len], dtype, fate.clone());
                return Ok([
                    none(points, Dtype::U64)?,
                    none(points, Dtype::U32)?,
                    none(0, Dtype::U32)?,
                ]);
            }
            Err(error) => return Err(raise(error)),
        };
        let memory = Memory::Engine(shared.clone());
        Ok(views(memory, stream, &found, fate))
    }

    /// The neighbours of points with these numbers, in arrays that are valid until the next call.
    pub(super) fn named(
        &mut self,
        shared: &Arc<SharedEngine>,
        of: [usize; 2],
        (points, dtype): (&GivenArray, Dtype),
    ) -> PyResult<[PyDeviceArray; 3]> {
        let sets = [self.set(of[0])?, self.set(of[1])?];
        if let Some((_, before)) = self.named.take() {
            before.go();
        }
        match dtype {
            Dtype::I32 => self.find_named::<i32>(sets, points),
            Dtype::I64 => self.find_named::<i64>(sets, points),
            Dtype::U64 => self.find_named::<u64>(sets, points),
            _ => self.find_named::<u32>(sets, points),
        }
        .map_err(raise)?;
        let fate = self.new_fate();
        self.named = Some((of, fate.clone()));
        let found = self.engine.neighbors_of(sets[0], sets[1]).map_err(raise)?;
        let memory = Memory::Engine(shared.clone());
        Ok(views(memory, self.engine.stream(), &found, fate))
    }

    fn find_named<T: PointNumber>(
        &mut self,
        [t, s]: [PointSetId; 2],
        points: &GivenArray,
    ) -> Result<(), Error> {
        let points = points.lend::<T>(self.engine.stream());
        self.engine.find_neighbors_of(t, s, &points.as_view())
    }
}

/// Arrays of lists that are in this memory.
pub(super) fn views(
    memory: Memory,
    stream: &Stream,
    found: &DeviceListsView<'_>,
    fate: Arc<Fate>,
) -> [PyDeviceArray; 3] {
    let memory = Arc::new(memory);
    let view = |pointer, len, dtype| PyDeviceArray {
        memory: memory.clone(),
        pointer,
        shape: vec![len],
        dtype,
        fate: fate.clone(),
        stream: KeptStream::new(stream),
    };
    let start = found.start.device_ptr(stream).0;
    let count = found.count.device_ptr(stream).0;
    let entries = found.entries.device_ptr(stream).0;
    [
        view(start, found.start.len(), Dtype::U64),
        view(count, found.count.len(), Dtype::U32),
        view(entries, found.entries.len(), Dtype::U32),
    ]
}
