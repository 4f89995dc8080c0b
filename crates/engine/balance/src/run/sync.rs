//! Channels and locks of the crew. A model of them stands in `sync_loom.rs`.

pub(crate) use std::sync::Mutex;

use crossbeam_channel as channel;
use std::{
    hint::spin_loop,
    time::{Duration, Instant},
};

/// How long to look again and again before sleeping: about what waking up takes.
const SPIN: Duration = Duration::from_micros(50);

#[derive(Debug)]
pub(crate) struct Sender<T>(channel::Sender<T>);

#[derive(Debug)]
pub(crate) struct Receiver<T>(channel::Receiver<T>);

/// A channel with room for `capacity` messages.
pub(crate) fn bounded<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = channel::bounded(capacity);
    (Sender(sender), Receiver(receiver))
}

impl<T> Sender<T> {
    /// Whether anybody can still receive the message.
    pub(crate) fn send(&self, message: T) -> bool {
        self.0.send(message).is_ok()
    }
}

impl<T> Receiver<T> {
    /// The next message; `None` when there is none and the sender is gone.
    pub(crate) fn recv(&self) -> Option<T> {
        let mut began = None;
        loop {
            match self.0.try_recv() {
                Ok(message) => return Some(message),
                Err(channel::TryRecvError::Disconnected) => return None,
                Err(channel::TryRecvError::Empty) => {}
            }
            if began.get_or_insert_with(Instant::now).elapsed() > SPIN {
                return self.0.recv().ok();
            }
            spin_loop();
        }
    }

    /// Messages that wait.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
