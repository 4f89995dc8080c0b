//! Lists on a GPU a chunk at a time.

use super::{
    array::{Memory, PyDeviceArray},
    layout::Dtype,
    neighbors::{PyDeviceNeighbors, views},
    pairs::Arrays,
    shared::SharedEngine,
    shared_chunks::{SharedChunks, State},
    stream::KeptStream,
};
use crate::errors::raise;
use nearfield::device::GeometryQuantities;
use pyo3::prelude::*;
use std::{
    mem::ManuallyDrop,
    sync::{Arc, Mutex},
};

/// Lists of a pair of sets on a GPU in chunks: what DeviceEngine.chunks() returns, an iterator over
/// pairs of the numbers of some points and their lists.
#[pyclass(name = "DeviceListChunks", module = "nearfield", frozen)]
pub(crate) struct PyDeviceListChunks {
    engine: Arc<SharedEngine>,
    shared: Arc<SharedChunks>,
    /// Lists come with the geometry of their pairs.
    geometry: bool,
    pairs: u64,
}

/// The arrays of a chunk: numbers of points, and their lists.
enum Found {
    Lists([PyDeviceArray; 3]),
    Pairs(Box<Arrays>),
}

#[pymethods]
impl PyDeviceListChunks {
    /// Number of pairs in all chunks together, known from the beginning.
    #[getter]
    fn pairs(&self) -> u64 {
        self.pairs
    }

    fn __iter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    /// The next chunk. After an error the same one is tried again by the next call.
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<(Py<PyDeviceArray>, Py<PyAny>)>> {
        let found = self.engine.work(py, Vec::new(), |engine, _| {
            let mut state = self.shared.lock()?;
            let State { chunks, fate } = &mut *state;
            // The storage is written again.
            fate.go();
            let Some(chunk) = chunks.next_chunk(&engine.engine).map_err(raise)? else {
                return Ok(None);
            };
            *fate = Arc::default();
            fate.settle(true);
            let (stream, memory) = (engine.engine.stream(), || {
                Memory::Chunks(self.shared.clone())
            });
            let points = PyDeviceArray {
                memory: Arc::new(memory()),
                pointer: chunk.targets.device_ptr(stream).0,
                shape: vec![chunk.targets.len()],
                dtype: Dtype::U32,
                fate: fate.clone(),
                stream: KeptStream::new(stream),
            };
            let found = if self.geometry {
                let (lists, pairs) = (chunk.lists, chunk.pairs);
                Found::Pairs(Box::new(Arrays::of(
                    memory(),
                    stream,
                    lists,
                    pairs,
                    fate.clone(),
                )))
            } else {
                Found::Lists(views(memory(), stream, &chunk.lists, fate.clone()))
            };
            Ok(Some((points, found)))
        })?;
        let Some((points, found)) = found else {
            return Ok(None);
        };
        let lists = match found {
            Found::Lists(lists) => Py::new(py, PyDeviceNeighbors::of(py, lists)?)?.into_any(),
            Found::Pairs(arrays) => Py::new(py, arrays.hand_over(py)?)?.into_any(),
        };
        Ok(Some((Py::new(py, points)?, lists)))
    }

    fn __repr__(&self) -> String {
        format!("<nearfield.DeviceListChunks, {} pairs>", self.pairs)
    }
}

impl PyDeviceListChunks {
    /// Counts the neighbours, and begins chunks within a limit.
    pub(super) fn begin(
        py: Python<'_>,
        engine: &Arc<SharedEngine>,
        of: [usize; 2],
        wanted: Option<GeometryQuantities>,
        limit: Option<u64>,
    ) -> PyResult<Self> {
        let (pairs, shared) = engine.work(py, Vec::new(), |state, _| {
            let (t, s) = (state.set(of[0])?, state.set(of[1])?);
            let quantities = wanted.unwrap_or(GeometryQuantities::NONE);
            let chunks = (state.engine).list_chunks_within(t, s, quantities, limit);
            let chunks = chunks.map_err(raise)?;
            let pairs = chunks.pairs();
            let shared = SharedChunks {
                state: Mutex::new(State {
                    chunks: ManuallyDrop::new(chunks),
                    fate: Arc::default(),
                }),
                stream: KeptStream::new(state.engine.stream()),
            };
            Ok((pairs, shared))
        })?;
        Ok(Self {
            engine: engine.clone(),
            shared: Arc::new(shared),
            geometry: wanted.is_some(),
            pairs,
        })
    }
}
