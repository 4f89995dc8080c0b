//! The wrapper of calls into the engine: other Python threads run meanwhile, Ctrl-C ends the call,
//! and panics become exceptions.

use nearfield::Engine;
use pyo3::{exceptions::PyRuntimeError, prelude::*};
use std::{
    any::Any,
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::{RwLock, TryLockError},
};

/// Said of an engine that any number of threads may ask.
const BUSY: &str = "the engine is in use by another thread: any number of threads may ask it at \
                    the same time, but none may change it meanwhile";

/// Does work. A panic is a defect of the library, and becomes a RuntimeError: PyO3 would raise
/// PanicException, which programs do not catch because it is not an Exception.
pub(crate) fn guarded<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        Err(PyRuntimeError::new_err(format!(
            "internal error of the library, please report it: {}",
            message(panic.as_ref())
        )))
    })
}

/// Does work while other Python threads run. Python's handlers of signals run about every 50 ms, as
/// they do between its own instructions. If one raises an exception, as that of Ctrl-C does, the
/// work ends early, and the exception is returned with the result of the work.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send,
) -> (T, PyResult<()>) {
    py.detach(|| {
        let raised = Rc::new(Cell::new(None));
        let to = raised.clone();
        let check = move || {
            let handled = Python::attach(|py| py.check_signals());
            let ends = handled.is_err();
            to.set(handled.err());
            ends
        };
        let done = Engine::interruptible(check, work);
        (done, raised.take().map_or(Ok(()), Err))
    })
}

/// As [`detached`], for work whose result is of no use after an exception.
pub(crate) fn detached_or<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> PyResult<T> + Send,
) -> PyResult<T> {
    let (done, handled) = detached(py, work);
    handled?;
    done
}

/// Reads an object, possibly at the same time as other readers.
pub(crate) fn read<T, R>(of: &RwLock<T>, work: impl FnOnce(&T) -> PyResult<R>) -> PyResult<R> {
    guarded(|| {
        let held = of.try_read().map_err(|refused| refusal(&refused, BUSY))?;
        work(&held)
    })
}

/// Changes a thing, alone. After a panic it stays refused.
pub(crate) fn write<T, R>(of: &RwLock<T>, work: impl FnOnce(&mut T) -> PyResult<R>) -> PyResult<R> {
    guarded(|| {
        let mut held = of.try_write().map_err(|refused| refusal(&refused, BUSY))?;
        work(&mut held)
    })
}

/// Why a thing cannot be used now; `busy` says so if others use it.
pub(crate) fn refusal<G>(refused: &TryLockError<G>, busy: &'static str) -> PyErr {
    PyRuntimeError::new_err(match refused {
        TryLockError::WouldBlock => busy,
        TryLockError::Poisoned(_) => "the engine has failed within itself: make a new one",
    })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
