//! The C interface: any sequence of calls returns a status, writes nothing but what it was given,
//! and refuses whatever cannot be.
//!
//! Arrays are always as long as the caller says, as the interface demands; handles, numbers,
//! lengths and orders of calls may be anything.

mod answers;
mod calls;
mod common;
mod input;
mod memory;

pub use input::Session;

/// Calls of a session that are made.
const MAX_CALLS: usize = 24;

/// Makes the calls of a session and checks what can be checked without a model.
///
/// # Panics
/// When the interface breaks a promise.
pub fn run(session: &Session) {
    let mut caller = calls::Caller::default();
    caller.new_engine(&session.first);
    for call in session.calls.iter().take(MAX_CALLS) {
        caller.call(call);
    }
    caller.finish();
}
