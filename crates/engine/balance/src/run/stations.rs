//! What each thread of the crew does in a step. Public so that the model checker gets at it; use
//! [`Crew`](super::Crew).
//!
//! Each station takes its ends of the channels with it: when it returns or panics they are dropped,
//! which is how its neighbours learn that nothing more will come.

use super::{
    Stages,
    sync::{Mutex, Receiver, Sender, bounded},
};
use crate::Span;
use std::{sync::PoisonError, time::Instant};

/// What the stations of a step share.
#[derive(Debug)]
pub struct Step<'a, S: Stages> {
    /// The backend.
    pub device: &'a S,
    /// Subregions in their order; a *place* is an index into it.
    pub subregions: &'a [usize],
    /// What went wrong.
    pub faults: &'a Faults<S::Error>,
    /// When the step began.
    pub began: Instant,
}

/// The first place that failed, and the fault that came first.
#[derive(Debug)]
pub struct Faults<E>(Mutex<(usize, Option<E>)>);

impl<E> Default for Faults<E> {
    fn default() -> Self {
        Self(Mutex::new((usize::MAX, None)))
    }
}

impl<E> Faults<E> {
    fn at_or_before(&self, place: usize) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0 <= place
    }

    fn record(&self, place: usize, fault: E) {
        let mut faults = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        faults.0 = faults.0.min(place);
        faults.1.get_or_insert(fault);
    }

    /// The fault that came first.
    pub fn take_first(&self) -> Option<E> {
        let mut faults = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        faults.1.take()
    }
}

impl<S: Stages> Step<'_, S> {
    /// Milliseconds since the step began.
    pub(super) fn now(&self) -> f64 {
        self.began.elapsed().as_secs_f64() * 1e3
    }

    fn unused(&self) -> Vec<Span> {
        vec![Span::default(); self.subregions.len()]
    }

    /// Calls a stage for a place; `None` when it fails, or when the place is to be skipped.
    fn call(
        &self,
        place: usize,
        stage: impl FnOnce(&S, usize) -> Result<(), S::Error>,
    ) -> Option<Span> {
        if self.faults.at_or_before(place) {
            return None;
        }
        let start_ms = self.now();
        match stage(self.device, self.subregions[place]) {
            Ok(()) => Some(Span {
                start_ms,
                end_ms: self.now(),
            }),
            Err(fault) => {
                self.faults.record(place, fault);
                None
            }
        }
    }
}

/// The stations of a step over as many `places`, with that many `buffers`, all of them free.
pub fn line(buffers: usize, places: usize) -> (Uploads, Computes, Downloads) {
    let (uploaded, uploads) = bounded(places);
    let (computed, results) = bounded(buffers);
    let (freed, free) = bounded(buffers);
    for buffer in 0..buffers {
        freed.send(buffer);
    }
    (
        Uploads { uploaded },
        Computes {
            uploads,
            free,
            computed,
        },
        Downloads { results, freed },
    )
}

/// The first station.
#[derive(Debug)]
pub struct Uploads {
    uploaded: Sender<usize>,
}

impl Uploads {
    /// Uploads every place, up to a fault; returns when.
    pub fn run<S: Stages>(self, step: &Step<'_, S>) -> Vec<Span> {
        let mut spans = step.unused();
        for place in 0..spans.len() {
            let Some(span) = step.call(place, S::upload) else {
                break;
            };
            spans[place] = span;
            if !self.uploaded.send(place) {
                break;
            }
        }
        spans
    }
}

/// The second station.
#[derive(Debug)]
pub struct Computes {
    uploads: Receiver<usize>,
    free: Receiver<usize>,
    computed: Sender<(usize, usize)>,
}

/// The free buffers: all there are, once the last station has come to its end.
#[derive(Debug)]
pub struct Free(Receiver<usize>);

impl Free {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl Computes {
    /// Computes every place that was uploaded, up to a fault; returns when.
    pub fn run<S: Stages>(self, step: &Step<'_, S>) -> (Vec<Span>, Free) {
        let mut spans = step.unused();
        while let Some(place) = self.uploads.recv() {
            let Some(buffer) = self.free.recv() else {
                break;
            };
            let computed = step.call(place, |device, subregion| device.compute(subregion, buffer));
            spans[place] = computed.unwrap_or_default();
            // Also without results: the last station is who hands buffers back.
            if !self.computed.send((place, buffer)) {
                break;
            }
        }
        (spans, Free(self.free))
    }
}

/// The last station.
#[derive(Debug)]
pub struct Downloads {
    results: Receiver<(usize, usize)>,
    freed: Sender<usize>,
}

impl Downloads {
    /// Fetches every place that was computed, up to a fault; returns when, and what was fetched.
    pub fn run<S: Stages>(self, step: &Step<'_, S>) -> (Vec<Span>, Vec<bool>) {
        let mut spans = step.unused();
        let mut finished = vec![false; spans.len()];
        while let Some((place, buffer)) = self.results.recv() {
            let fetched = step.call(place, |device, subregion| {
                device.download(subregion, buffer)
            });
            finished[place] = fetched.is_some();
            spans[place] = fetched.unwrap_or_default();
            // The station before may have ended already: then nobody needs the buffer.
            self.freed.send(buffer);
        }
        (spans, finished)
    }
}
