//! The engine: any sequence of calls gives what the brute force gives, and no call that is refused
//! changes anything.
//!
//! [`input`] makes a [`Session`] of libFuzzer's bytes, [`places`] turns its shares of the radius
//! into coordinates, [`model`] says what must come out, and [`run`] makes the calls on an engine
//! and on the model side by side.

pub mod input;
mod labels;
mod model;
mod places;
mod replay;

pub use input::Session;

use replay::Replay;

/// Makes the calls of a session and compares every result with the model's.
///
/// # Panics
/// When the engine breaks its contract.
pub fn run(session: &Session) {
    let Some(mut replay) = Replay::begin(&session.setup) else {
        return;
    };
    replay.add_points(&session.first);
    for action in session.actions.iter().take(input::MAX_ACTIONS) {
        replay.act(action);
    }
    replay.finish();
}
