//! Lists of an engine a chunk at a time.

use crate::{
    call::{detached, detached_or, guarded, read, refusal},
    errors::raise,
    lists::room,
    neighbors::PyNeighbors,
    state::Shared,
};
use nearfield::{
    Engine, NeighborLists, PointSetId,
    lists::{Csr, ListChunk, PausedChunks},
};
use numpy::{IntoPyArray, PyArray1};
use pyo3::{exceptions::PyRuntimeError, prelude::*};
use std::sync::{Arc, Mutex};

/// Lists of a pair of sets in chunks: what Engine.chunks() returns, an iterator.
#[pyclass(name = "ListChunks", module = "nearfield", frozen)]
pub(crate) struct PyListChunks {
    engine: Arc<Shared>,
    /// Number of changes of the engine when the chunks were begun.
    changes: u64,
    /// None after a chunk was lost: the engine could not go on, or the chunk was not handed out.
    chunks: Mutex<Option<PausedChunks>>,
    pairs: u64,
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

    /// The next chunk. After an error of the search the same one is tried again by the next call.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Chunk<'py>>> {
        const BUSY: &str = "the chunks are in use by another thread";
        let next = || -> PyResult<_> {
            let mut chunks = (self.chunks.try_lock()).map_err(|held| refusal(&held, BUSY))?;
            read(&self.engine.state, |state| {
                if self.engine.changes() != self.changes {
                    return Err(PyRuntimeError::new_err(
                        "the engine was changed since these chunks were begun: call chunks() again",
                    ));
                }
                let chunks = &mut *chunks;
                let (found, handled) = detached(py, || next_of(&state.engine, chunks));
                if handled.is_err() && matches!(found, Ok(Some(_))) {
                    // Nobody gets this chunk, so those behind it are not handed out either.
                    *chunks = None;
                }
                handled?;
                found
            })
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
            chunks: Mutex::new(Some(chunks)),
            pairs,
        })
    }
}

/// Copies of a chunk's points and lists.
type Copied = (Vec<u32>, NeighborLists);

/// Copies of the next chunk. After an error of the search `chunks` begin with the same one; if a
/// chunk was lost, there are none.
fn next_of(engine: &Engine, chunks: &mut Option<PausedChunks>) -> PyResult<Option<Copied>> {
    let Some(paused) = chunks.take() else {
        return Err(PyRuntimeError::new_err(
            "an earlier call failed and lost a chunk: call chunks() again",
        ));
    };
    let mut resumed = engine.resume_chunks(paused).map_err(raise)?;
    let found = match resumed.next_chunk() {
        // The error of a copy ends the chunks, as this one was taken.
        Ok(Some(chunk)) => Ok(Some(copied(&chunk)?)),
        Ok(None) => Ok(None),
        Err(error) => Err(raise(error)),
    };
    *chunks = Some(resumed.pause());
    found
}

fn copied(chunk: &ListChunk<'_>) -> PyResult<Copied> {
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
