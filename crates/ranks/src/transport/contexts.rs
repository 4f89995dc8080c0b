//! Contexts of GPUs whose memory a message library reads and writes itself.
//!
//! Such a library creates streams, events and mappings in the contexts that it meets and keeps them
//! until it ends. A driver destroys the context of a GPU with the last engine of the process there
//! and gives the next engine a new one, in which they are invalid. So a context is held from the
//! moment its memory may be given to the library.
//!
//! A library works in the current context of the calling thread, and may move GPU bytes in any
//! call, for any transport. So all calls are made in a context that is held.
//!
//! **Invariant:** a context that was [held](hold) lives until the process ends.

use nearfield::device::Context;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One for each GPU; the last is that of the newest engine.
static HELD: Mutex<Vec<Context>> = Mutex::new(Vec::new());

fn held() -> MutexGuard<'static, Vec<Context>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Holds a context until the process ends.
pub(crate) fn hold(context: &Context) {
    let mut held = held();
    held.retain(|other| other != context);
    held.push(context.clone());
}

/// Makes the context that was held last the current one of this thread; does nothing if there is
/// none.
#[cfg(feature = "mpi")]
pub(super) fn make_current() {
    if let Some(context) = held().last() {
        // A driver that refuses it refuses what the library does with memory of the GPU, too, and
        // the library reports that.
        context.make_current().ok();
    }
}
