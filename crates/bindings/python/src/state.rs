//! State of an engine, which its object shares with the iterators that it returns.

use crate::points::Room;
use nearfield::Engine;
use std::{
    collections::HashMap,
    sync::{
        RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// An engine that several objects ask.
pub(crate) struct Shared {
    pub(crate) state: RwLock<State>,
    /// Counts what may have changed points, radius or filters.
    changes: AtomicU64,
}

/// State that calls which change an engine hold exclusively.
pub(crate) struct State {
    pub(crate) engine: Engine,
    /// By set, whether its points were given with two coordinates.
    pub(crate) flat: HashMap<usize, bool>,
    /// Where points are copied to.
    pub(crate) room: Room,
}

impl Shared {
    pub(crate) fn new(state: State) -> Self {
        Self {
            state: RwLock::new(state),
            changes: AtomicU64::new(0),
        }
    }

    /// Notes that a call may change points, radius or filters.
    pub(crate) fn changed(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of such calls so far, failed ones included.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }
}
