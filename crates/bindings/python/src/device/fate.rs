//! Tracks whether a result may be used.

use pyo3::{PyResult, exceptions::PyRuntimeError};
use std::sync::atomic::{AtomicU8, Ordering};

/// State of a result: provisional until the engine has checked it; memory of the engine is written
/// again later.
#[derive(Debug, Default)]
pub(crate) struct Fate(AtomicU8);

impl Fate {
    const PROVISIONAL: u8 = 0;
    const VALID: u8 = 1;
    const REPEAT: u8 = 2;
    const GONE: u8 = 3;

    /// The engine has looked.
    pub(crate) fn settle(&self, valid: bool) {
        let found = if valid { Self::VALID } else { Self::REPEAT };
        // A lost result stays lost.
        let _ = self.0.compare_exchange(
            Self::PROVISIONAL,
            found,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
    }

    /// The memory is written again.
    pub(crate) fn go(&self) {
        self.0.store(Self::GONE, Ordering::Release);
    }

    pub(crate) fn is_usable(&self) -> bool {
        matches!(
            self.0.load(Ordering::Acquire),
            Self::PROVISIONAL | Self::VALID
        )
    }

    /// For work on the device, which may use provisional results.
    pub(crate) fn usable(&self) -> PyResult<()> {
        match self.0.load(Ordering::Acquire) {
            Self::GONE => Err(PyRuntimeError::new_err(
                "the lists are out of date: a set was updated, other quantities were asked for, or \
                 other systems searched since; call neighbors() or pair_geometry() again",
            )),
            Self::REPEAT => Err(PyRuntimeError::new_err(
                "the result is not valid, as finish() said: compute it again",
            )),
            _ => Ok(()),
        }
    }

    /// For results that leave the device.
    pub(crate) fn settled(&self) -> PyResult<()> {
        self.usable()?;
        match self.0.load(Ordering::Acquire) {
            Self::PROVISIONAL => Err(PyRuntimeError::new_err(
                "the result is provisional: call finish() of the engine first",
            )),
            _ => Ok(()),
        }
    }
}
