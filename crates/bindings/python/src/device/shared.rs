//! Access to an engine, or to lists with a skin: locks it, runs work in order with the streams of
//! the given arrays, and keeps the arrays until its stream has used them.

use super::{
    fate::Fate,
    given::GivenArray,
    stream::{Current, Order, StreamNumber},
};
use crate::{
    call::{guarded, refusal},
    engine::involving,
    errors::{raise, set_named},
};
use nearfield::{
    Error, PointSetId,
    device::{DeviceEngine, DeviceEngineBuilder, DeviceVerletLists},
};
use pyo3::prelude::*;
use std::{
    mem::{self, ManuallyDrop},
    sync::{Arc, Mutex, MutexGuard},
};

/// Arrays kept for an engine that is never asked to finish; then it waits.
const HELD: usize = 8;

/// What does its work on one stream, by an engine of its own.
pub(crate) trait Works: Send {
    fn engine(&self) -> &DeviceEngine;
}

impl Works for DeviceEngine {
    fn engine(&self) -> &DeviceEngine {
        self
    }
}

impl Works for DeviceVerletLists {
    fn engine(&self) -> &DeviceEngine {
        DeviceVerletLists::engine(self)
    }
}

/// An engine that its Python object and the arrays that view its memory share.
pub(crate) struct SharedEngine<E: Works = DeviceEngine> {
    state: Mutex<State<E>>,
    pub(super) gpu: u32,
    pub(super) stream: StreamNumber,
}

pub(crate) struct State<E: Works = DeviceEngine> {
    pub(super) engine: ManuallyDrop<E>,
    /// Of results since the last finish().
    pub(super) provisional: Vec<Arc<Fate>>,
    /// Of the lists there are, by pair of sets.
    pub(super) lists: Vec<([usize; 2], Arc<Fate>)>,
    /// Of the lists of points that were named last, and their sets.
    pub(super) named: Option<([usize; 2], Arc<Fate>)>,
    /// The number of the set of free positions, if there were any.
    pub(super) queries: Option<usize>,
    /// Arrays that the stream may not have read or written yet.
    pub(super) held: Vec<GivenArray>,
}

/// Starts an engine on a stream of a GPU.
pub(super) fn on_stream(
    builder: DeviceEngineBuilder,
    gpu: u32,
    stream: StreamNumber,
) -> Result<DeviceEngine, Error> {
    // SAFETY: the caller has promised, as far as Python can, that the number is a stream which
    // stays for as long as the engine; there is no way to ask the driver.
    unsafe { builder.on_borrowed(gpu, stream.handle()) }
}

impl<E: Works> SharedEngine<E> {
    /// Starts what works on a stream of a GPU.
    pub(super) fn start(
        gpu: u32,
        stream: StreamNumber,
        start: impl FnOnce() -> Result<E, Error>,
    ) -> PyResult<Self> {
        let _current = Current::keep();
        let state = Mutex::new(State {
            engine: ManuallyDrop::new(start().map_err(raise)?),
            provisional: Vec::new(),
            lists: Vec::new(),
            named: None,
            queries: None,
            held: Vec::new(),
        });
        Ok(Self { state, gpu, stream })
    }

    /// The engine for a call.
    pub(super) fn lock(&self) -> PyResult<MutexGuard<'_, State<E>>> {
        let refusal = |refused| refusal(&refused, "the engine is in use by another thread");
        self.state.try_lock().map_err(refusal)
    }

    /// The set with this number.
    pub(super) fn set(&self, number: usize) -> PyResult<PointSetId> {
        self.lock()?.set(number)
    }

    /// Number of points of a set.
    pub(super) fn points(&self, set: usize) -> PyResult<usize> {
        let state = self.lock()?;
        let engine = state.engine.engine();
        engine.points(state.set(set)?).map_err(raise)
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
        work: impl FnOnce(&mut State<E>, &[GivenArray]) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        let detached = || -> PyResult<_> {
            let mut state = self.lock()?;
            let stream = state.engine.engine().stream().clone();
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
            let full = state.held.len() > HELD;
            let released = full.then(|| state.released());
            Ok((result, released))
        };
        let (result, released) = guarded(|| py.detach(detached))?;
        // Their owners' code runs: not before the engine is free for it.
        drop(released);
        result
    }
}

impl<E: Works> State<E> {
    /// The set with this number.
    pub(super) fn set(&self, number: usize) -> PyResult<PointSetId> {
        set_named(number, |number| self.engine.engine().point_set(number))
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

    /// A set has changed: its lists are out of date, and those of its points that were named.
    pub(super) fn changed(&mut self, set: usize) {
        self.retire(involving(set));
        if let Some((_, fate)) = self.named.take_if(|(pair, _)| pair.contains(&set)) {
            fate.go();
        }
    }

    /// The arrays that the stream has used by now; waits for it.
    pub(super) fn released(&mut self) -> Vec<GivenArray> {
        match self.engine.engine().stream().synchronize() {
            Ok(()) => mem::take(&mut self.held),
            Err(_) => Vec::new(),
        }
    }
}

impl<E: Works> Drop for State<E> {
    fn drop(&mut self) {
        let stream = self.engine.engine().stream().clone();
        let _current = Current::enter(&stream.context());
        // The held arrays may be freed then. A GPU that has failed uses nothing any longer.
        let _ = stream.synchronize();
        drop(stream);
        // SAFETY: dropped once, here, where the context is current, which freeing needs.
        unsafe { ManuallyDrop::drop(&mut self.engine) }
    }
}
