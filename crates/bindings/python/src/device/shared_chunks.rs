//! Chunks of lists that their Python object and the arrays that view their memory share.
//!
//! **Invariant:** the chunks are freed when nothing shares them any longer, on their stream and
//! with its context current.

use super::{
    fate::Fate,
    stream::{Current, KeptStream},
};
use crate::call::refusal;
use nearfield::device::DeviceListChunks;
use pyo3::prelude::*;
use std::{
    mem::ManuallyDrop,
    sync::{Arc, Mutex, MutexGuard},
};

/// Chunks that their Python object and the arrays that view their memory share.
pub(crate) struct SharedChunks {
    pub(super) state: Mutex<State>,
    pub(super) stream: KeptStream,
}

/// What calls change.
pub(crate) struct State {
    pub(super) chunks: ManuallyDrop<DeviceListChunks>,
    /// Of the arrays of the chunk that was handed out last.
    pub(super) fate: Arc<Fate>,
}

impl SharedChunks {
    /// The chunks for a call.
    pub(super) fn lock(&self) -> PyResult<MutexGuard<'_, State>> {
        let refusal = |refused| refusal(&refused, "the chunks are in use by another thread");
        self.state.try_lock().map_err(refusal)
    }
}

impl Drop for SharedChunks {
    fn drop(&mut self) {
        let _current = Current::enter(&self.stream.context());
        let _ = self.stream.synchronize();
        let state = self.state.get_mut();
        let state = state.unwrap_or_else(std::sync::PoisonError::into_inner);
        // SAFETY: dropped once, here, where the context is current, which freeing needs.
        unsafe { ManuallyDrop::drop(&mut state.chunks) }
    }
}
