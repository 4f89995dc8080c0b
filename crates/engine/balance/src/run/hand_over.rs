//! One value from one thread to another.

use super::sync::{Receiver, Sender, channel};

/// The end that gives the value.
#[derive(Debug)]
pub struct HandOver<T>(Sender<T>);

/// The end that waits for it.
#[derive(Debug)]
pub struct Awaited<T>(Receiver<T>);

/// Both ends of a hand-over.
pub fn hand_over<T>() -> (HandOver<T>, Awaited<T>) {
    let (sender, receiver) = channel();
    (HandOver(sender), Awaited(receiver))
}

impl<T> HandOver<T> {
    /// Gives the value; it is dropped where the other end has gone.
    pub fn give(self, value: T) {
        self.0.send(value);
    }
}

impl<T> Awaited<T> {
    /// Waits for the value; `None` where the other end is dropped without giving it.
    pub fn wait(self) -> Option<T> {
        self.0.receive()
    }
}
