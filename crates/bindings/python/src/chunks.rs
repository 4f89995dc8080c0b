//! Lists of an engine a chunk at a time.

use crate::{
    call::{detached_or, guarded, read, refusal},
    errors::raise,
    lists::room,
    neighbors::PyNeighbors,
    state::Shared,
};
use nearfield::{
    NeighborLists, PointSetId,
    lists::{Csr, ListChunk, PausedChunks},
};
use numpy::{IntoPyArray, PyArray1};
use pyo3::{exceptions::PyRuntimeError, prelude::*};
use std::sync::{Arc, Mutex};

/// Lists of a pair of sets in chunks: what Engine.chunks() returns, an iterator.
#[pyclass(name = "ListChunks", module = "nearfield", frozen)]
pub(crate) struct PyListChunks {
    engine: Arc<Shared>,
    /// The changes that the engine had seen when chunks were begun.
    changes: u64,
    progress: Mutex<Progress>,
    pairs: u64,
}

struct Progress {
    /// None after the last chunk, and after an error.
    rest: Option<PausedChunks>,
    /// An iterator that ended after an error would look complete.
    has_failed: bool,
}

/// A chunk: the numbers of its points, and their lists.
type Chunk<'py> = (Bound<'py, PyArray1<u32>>, PyNeighbors);

#[pymethods]
impl PyListChunks {
    /// Number of neighbours in all chunks together, known from the beginning.
    #[getter]
    fn pairs(&self) -> u64 {
        self.pairs
    }

    fn __iter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    /// The next chunk.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Chunk<'py>>> {
        const BUSY: &str = "the chunks are in use by another thread";
        let next = || -> PyResult<_> {
            let mut progress = (self.progress.try_lock()).map_err(|held| refusal(&held, BUSY))?;
            if progress.has_failed {
                return Err(PyRuntimeError::new_err(
                    "an error ended these chunks before the last: call chunks() again",
                ));
            }
            let Some(paused) = progress.rest.take() else {
                return Ok(None);
            };
            progress.has_failed = true;
            let engine = &self.engine;
            if engine.changes() != self.changes {
                return Err(PyRuntimeError::new_err(
                    "the engine was changed since these chunks were begun: call chunks() again",
                ));
            }
            let found = read(&engine.state, |state| {
                detached_or(py, || {
                    let mut resumed = state.engine.resume_chunks(paused).map_err(raise)?;
                    let copied = match resumed.next_chunk().map_err(raise)? {
                        Some(chunk) => Some(copied(&chunk)?),
                        None => None,
                    };
                    Ok((copied, resumed.pause()))
                })
            })?;
            let (copied, paused) = found;
            progress.has_failed = false;
            progress.rest = copied.is_some().then_some(paused);
            Ok(copied)
        };
        let found = guarded(next)?;
        Ok(found.map(|(targets, lists)| (targets.into_pyarray(py), PyNeighbors { lists })))
    }

    fn __repr__(&self) -> String {
        format!("<nearfield.ListChunks, {} pairs>", self.pairs)
    }
}

impl PyListChunks {
    /// Counts the neighbours, and begins chunks within a limit.
    pub(crate) fn begin(
        py: Python<'_>,
        engine: Arc<Shared>,
        [targets, sources]: [PointSetId; 2],
        memory: Option<u64>,
    ) -> PyResult<Self> {
        let changes = engine.changes();
        let (pairs, chunks) = read(&engine.state, |state| {
            detached_or(py, || {
                let chunks = match memory {
                    Some(_) => state.engine.list_chunks_within(targets, sources, memory),
                    None => state.engine.list_chunks(targets, sources),
                };
                let chunks = chunks.map_err(raise)?;
                Ok((chunks.pairs(), chunks.pause()))
            })
        })?;
        Ok(Self {
            engine,
            changes,
            progress: Mutex::new(Progress {
                rest: Some(chunks),
                has_failed: false,
            }),
            pairs,
        })
    }
}

/// Copies of a chunk's points and lists.
fn copied(chunk: &ListChunk<'_>) -> PyResult<(Vec<u32>, NeighborLists)> {
    const WHAT: &str = "a chunk of lists";
    let mut points = room(chunk.len(), WHAT)?;
    points.extend_from_slice(chunk.targets());
    let mut offsets = room(chunk.len() + 1, WHAT)?;
    offsets.push(0);
    let mut indices = room(chunk.pairs() as usize, WHAT)?;
    for (_, list) in chunk.iter() {
        indices.extend_from_slice(list);
        offsets.push(indices.len() as u64);
    }
    let lists = NeighborLists::from_csr(Csr { offsets, indices });
    Ok((points, lists.map_err(|error| raise(error.into()))?))
}
