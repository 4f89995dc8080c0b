//! What the tests of ranks share.
#![allow(dead_code, reason = "every test binary uses another part")]

use std::{sync::mpsc, thread, time::Duration};

/// Runs `test` and fails if it takes longer than `seconds`: the watchdog that the library does
/// without.
pub(crate) fn within<R: Send + 'static>(
    seconds: u64,
    test: impl FnOnce() -> R + Send + 'static,
) -> R {
    let (done, ended) = mpsc::channel();
    let thread = thread::spawn(move || {
        let result = test();
        // Fails if the time is over, and the test has failed with it.
        done.send(()).ok();
        result
    });
    if let Err(mpsc::RecvTimeoutError::Timeout) = ended.recv_timeout(Duration::from_secs(seconds)) {
        panic!("the ranks hang: no end after {seconds} s");
    }
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
