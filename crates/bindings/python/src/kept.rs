//! Searches that calls take turns with, so that a call starts no threads and allocates no working
//! memory.
//!
//! A call takes a search out and puts it back when it has gone well; calls at the same time make
//! searches of their own. The lock is held for moments while the thread is attached to Python, so
//! no other thread has it when a process forks; a search works in the child too.

use crate::{call::guarded, errors::raise, settings::unreadable};
use nearfield::{
    Device, Error, ListKind, ListOrder,
    systems::{
        PairIndex, Quantities, SystemPairs, SystemReal, SystemSearch, SystemSearchBuilder, Systems,
    },
};
use pyo3::prelude::*;
use std::{any::Any, sync::Mutex};

/// Searches that are kept at most.
const MAX_KEPT: usize = 8;
/// Pairs of a search up to which its working memory is kept, four bytes each.
const SMALL: usize = 1 << 20;

/// Settings of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Key {
    device: Device,
    pub(crate) half: bool,
    pub(crate) sorted: bool,
    pub(crate) threads: usize,
}

impl Key {
    pub(crate) fn of(device: &str, half: bool, sorted: bool, threads: usize) -> PyResult<Self> {
        let device = device.parse().map_err(unreadable)?;
        Ok(Self {
            device,
            half,
            sorted,
            threads,
        })
    }

    /// The settings.
    pub(crate) fn builder(self) -> SystemSearchBuilder {
        let mut builder = SystemSearch::builder()
            .device(self.device)
            .threads(self.threads);
        if self.half {
            builder = builder.lists(ListKind::Half);
        }
        if self.sorted {
            builder = builder.list_order(ListOrder::Ascending);
        }
        builder
    }
}

/// What is kept for every type of coordinates and indices that was asked for.
#[derive(Default)]
pub(crate) struct Scratch(Vec<Box<dyn Any + Send + Sync>>);

impl Scratch {
    /// Takes what is kept of a type out; [`give`](Self::give) it back.
    pub(crate) fn take<V: Any>(&mut self) -> Option<Box<V>> {
        let place = self.0.iter().position(|kept| kept.is::<V>())?;
        self.0.swap_remove(place).downcast().ok()
    }

    pub(crate) fn give<V: Any + Send + Sync>(&mut self, kept: Box<V>) {
        self.0.push(kept);
    }
}

/// What finds pairs of systems, with its working memory.
pub(crate) trait FindPairs: Send {
    /// Finds the pairs of systems.
    fn find<T: SystemReal, I: PairIndex>(
        &mut self,
        systems: &Systems<'_, T>,
        wanted: Quantities,
        pairs: &mut SystemPairs<T, I>,
    ) -> Result<(), Error>;

    fn scratch(&mut self) -> &mut Scratch;

    /// Number of threads.
    fn threads(&self) -> usize;

    /// Working memory for pairs of these types; [`give`](Self::give) it back.
    fn take<T: SystemReal, I: PairIndex>(&mut self) -> Box<SystemPairs<T, I>> {
        self.scratch().take().unwrap_or_default()
    }

    /// Keeps working memory for the next search, unless this one found many pairs.
    fn give<T: SystemReal, I: PairIndex>(&mut self, scratch: Box<SystemPairs<T, I>>, pairs: usize) {
        if pairs <= SMALL {
            self.scratch().give(scratch);
        }
    }
}

/// A search with its working memory.
pub(crate) struct Kept {
    key: Key,
    pub(crate) search: SystemSearch,
    scratch: Scratch,
}

impl Kept {
    pub(crate) fn start(key: Key) -> PyResult<Self> {
        Ok(Self {
            key,
            search: guarded(|| key.builder().build().map_err(raise))?,
            scratch: Scratch::default(),
        })
    }
}

impl FindPairs for Kept {
    fn find<T: SystemReal, I: PairIndex>(
        &mut self,
        systems: &Systems<'_, T>,
        wanted: Quantities,
        pairs: &mut SystemPairs<T, I>,
    ) -> Result<(), Error> {
        self.search.neighbors(systems, wanted, pairs)
    }

    fn scratch(&mut self) -> &mut Scratch {
        &mut self.scratch
    }

    fn threads(&self) -> usize {
        self.search.report().threads
    }
}

static IDLE: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

/// Does work with a search of these settings.
pub(crate) fn with_search<T>(key: Key, work: impl FnOnce(&mut Kept) -> PyResult<T>) -> PyResult<T> {
    let idle = IDLE.try_lock().ok().and_then(|mut idle| {
        let place = idle.iter().position(|kept| kept.key == key)?;
        Some(idle.remove(place))
    });
    let mut kept = match idle {
        Some(kept) => kept,
        None => Kept::start(key)?,
    };
    let done = guarded(|| work(&mut kept))?;
    let oldest = IDLE.try_lock().ok().and_then(|mut idle| {
        idle.push(kept);
        (idle.len() > MAX_KEPT).then(|| idle.remove(0))
    });
    drop(oldest);
    Ok(done)
}
