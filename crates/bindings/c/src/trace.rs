//! Records the work of engines to a file.

use crate::{
    args, call,
    status::{Failure, NfStatus},
};
use nearfield_grid::PerProcess;
use nearfield_trace::Recording;
use std::{
    ffi::c_char,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The recording of this process.
enum State {
    Unused,
    Running(Recording),
    Finished,
}

static RECORDING: PerProcess<Mutex<State>> = PerProcess::empty();

/// The recording of this process: a forked child has none of its parent's.
fn recording() -> MutexGuard<'static, State> {
    let recording = RECORDING.get_or_make(|| Mutex::new(State::Unused));
    recording.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records the work of all engines of this process from now on to a file that `nearfield trace`
/// reads. Once per process.
///
/// # Safety
/// `path` points to a text that ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_trace_start(path: *const c_char) -> NfStatus {
    call::plain(|| {
        // SAFETY: the caller guarantees that `path` is null or ends with a NUL.
        let path = unsafe { args::text(path, args::MAX_PATH, "path")? }
            .ok_or_else(|| args::null("path"))?;
        let mut state = recording();
        // Said before the file is made, which may be that of the first recording.
        let State::Unused = *state else {
            return Err(Failure::new(
                NfStatus::Trace,
                "this process has already made its recording: there is one per process",
            ));
        };
        *state = State::Running(nearfield_trace::start(path).map_err(failure)?);
        Ok(())
    })
}

/// Ends the recording and says whether everything is in the file; without one nothing is done.
#[unsafe(no_mangle)]
pub extern "C" fn nf_trace_finish() -> NfStatus {
    call::plain(|| {
        let mut state = recording();
        match std::mem::replace(&mut *state, State::Finished) {
            State::Running(recording) => recording.finish().map_err(failure),
            other => {
                *state = other;
                Ok(())
            }
        }
    })
}

fn failure(error: nearfield_trace::Error) -> Failure {
    Failure::new(NfStatus::Trace, error.to_string())
}
