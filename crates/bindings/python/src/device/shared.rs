//! Access to an engine: locks it, runs work in order with the streams of the given arrays, and
//! keeps the arrays until its stream has used them.

use super::{
    fate::Fate,
    given::GivenArray,
    stream::{Current, Order, StreamNumber},
};
use crate::{
    call::{guarded, refusal},
    errors::{raise, set_named},
};
use nearfield::{
    PointSetId,
    device::{DeviceEngine, DeviceEngineBuilder},
};
use pyo3::prelude::*;
use std::{
    mem::{self, ManuallyDrop},
    sync::{Arc, Mutex, MutexGuard},
};

/// Arrays kept for an engine that is never asked to finish; then it waits.
const HELD: usize = 8;

/// An engine that its Python object and the arrays that view its memory share.
pub(crate) struct SharedEngine {
    state: Mutex<State>,
    pub(super) gpu: u32,
    pub(super) stream: StreamNumber,
}

pub(crate) struct State {
    pub(super) engine: ManuallyDrop<DeviceEngine>,
    /// Of results since the last finish().
    pub(super) provisional: Vec<Arc<Fate>>,
    /// Of the lists there are, by pair of sets.
    pub(super) lists: Vec<([usize; 2], Arc<Fate>)>,
    /// The number of the set of free positions, if there were any.
    pub(super) queries: Option<usize>,
    /// Arrays that the stream may not have read or written yet.
    pub(super) held: Vec<GivenArray>,
}

impl SharedEngine {
    /// Starts an engine on a stream of a GPU.
    pub(super) fn start(
        builder: DeviceEngineBuilder,
        gpu: u32,
        stream: StreamNumber,
    ) -> PyResult<Self> {
        let _current = Current::keep();
        // SAFETY: the caller has promised, as far as Python can, that the number is a stream which
        // stays for as long as the engine; there is no way to ask the driver.
        let engine = unsafe { builder.on_borrowed(gpu, stream.handle()) }.map_err(raise)?;
        let state = Mutex::new(State {
            engine: ManuallyDrop::new(engine),
            provisional: Vec::new(),
            lists: Vec::new(),
            queries: None,
            held: Vec::new(),
        });
        Ok(Self { state, gpu, stream })
    }

    /// The engine for a call.
    pub(super) fn lock(&self) -> PyResult<MutexGuard<'_, State>> {
        let refusal = |refused| refusal(&refused, "the engine is in use by another thread");
        self.state.try_lock().map_err(refusal)
    }

    /// An array of the caller's on this GPU.
    pub(super) fn given(
        &self,
        object: &Bound<'_, PyAny>,
        what: &'static str,
    ) -> PyResult<GivenArray> {
        GivenArray::of(object, what, self.gpu, self.stream)
    }

    /// Does work on the stream with what was given, in order with its owners' streams, while other
    /// Python threads run.
    pub(super) fn work<T: Send>(
        &self,
        py: Python<'_>,
        given: Vec<GivenArray>,
        work: impl FnOnce(&mut State, &[GivenArray]) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        let detached = || -> PyResult<_> {
            let mut state = self.lock()?;
            let stream = state.engine.stream().clone();
            let _current = Current::enter(&stream.context());
            for given in &given {
                given.located(self.gpu)?;
                if let Some(other) = given.stream {
                    Order::OtherFirst.keep(&stream, other)?;
                }
            }
            let result = work(&mut state, &given);
            for other in given.iter().filter_map(|given| given.stream) {
                Order::OtherAfter.keep(&stream, other)?;
            }
            state.held.extend(given);
            let mut released = Vec::new();
            if state.held.len() > HELD && stream.synchronize().is_ok() {
                released = mem::take(&mut state.held);
            }
            Ok((result, released))
        };
        let (result, released) = guarded(|| py.detach(detached))?;
        // Their owners' code runs: not before the engine is free for it.
        drop(released);
        result
    }
}

impl State {
    /// The set with this number.
    pub(super) fn set(&self, number: usize) -> PyResult<PointSetId> {
        set_named(number, |number| self.engine.point_set(number))
    }

    /// The state of a result that is computed now.
    pub(super) fn new_fate(&mut self) -> Arc<Fate> {
        self.provisional.retain(|fate| Arc::strong_count(fate) > 1);
        let fate = Arc::new(Fate::default());
        self.provisional.push(fate.clone());
        fate
    }

    /// The lists of these pairs are out of date.
    pub(super) fn retire(&mut self, which: impl Fn([usize; 2]) -> bool) {
        self.lists.retain(|(pair, fate)| {
            if which(*pair) {
                fate.go();
            }
            !which(*pair)
        });
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let _current = Current::enter(&self.engine.stream().context());
        // The held arrays may be freed then. A GPU that has failed uses nothing any longer.
        let _ = self.engine.stream().synchronize();
        // SAFETY: dropped once, here, where the context is current, which freeing needs.
        unsafe { ManuallyDrop::drop(&mut self.engine) }
    }
}
