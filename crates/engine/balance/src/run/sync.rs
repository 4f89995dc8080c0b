//! Atomics, slots and channels of the hand-offs. A model of them stands in `sync_loom.rs`.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crossbeam_channel as crossbeam;
use std::{hint, sync::OnceLock, thread};

/// Looks at what is not done before this thread lets others run.
const LOOKS: usize = 1 << 12;

/// Waits for another thread to be done with something that takes it microseconds.
pub(crate) fn wait_until(done: impl Fn() -> bool) {
    let mut looks = 0;
    while !done() {
        hint::spin_loop();
        looks += 1;
        if looks % LOOKS == 0 {
            thread::yield_now();
        }
    }
}

/// Room for a value that one thread sets once and others read.
#[derive(Debug)]
pub(crate) struct Slot<T>(OnceLock<T>);

impl<T: Copy> Slot<T> {
    pub(crate) fn new() -> Self {
        Self(OnceLock::new())
    }

    /// A second value is dropped.
    pub(crate) fn set(&self, value: T) {
        let _ = self.0.set(value);
    }

    pub(crate) fn get(&self) -> Option<T> {
        self.0.get().copied()
    }
}

#[derive(Debug)]
pub(crate) struct Sender<T>(crossbeam::Sender<T>);

#[derive(Debug)]
pub(crate) struct Receiver<T>(crossbeam::Receiver<T>);

/// A channel with room for one message.
pub(crate) fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = crossbeam::bounded(1);
    (Sender(sender), Receiver(receiver))
}

impl<T> Sender<T> {
    /// The message is dropped where the receiver has gone.
    pub(crate) fn send(self, message: T) {
        let _ = self.0.send(message);
    }
}

impl<T> Receiver<T> {
    /// The message; `None` when the sender has gone without sending one.
    pub(crate) fn receive(self) -> Option<T> {
        self.0.recv().ok()
    }
}
