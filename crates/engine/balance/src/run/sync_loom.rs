//! The same atomics, slots and channels as loom explores them.

pub(crate) use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use loom::{
    sync::{Arc, Condvar, Mutex},
    thread,
};
use std::fmt;

/// Waits for another thread; in a model no thread spins, it lets others run.
pub(crate) fn wait_until(done: impl Fn() -> bool) {
    while !done() {
        thread::yield_now();
    }
}

pub(crate) struct Slot<T>(Mutex<Option<T>>);

impl<T: Copy> Slot<T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(None))
    }

    pub(crate) fn set(&self, value: T) {
        self.0.lock().unwrap().get_or_insert(value);
    }

    pub(crate) fn get(&self) -> Option<T> {
        *self.0.lock().unwrap()
    }
}

struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    message: Option<T>,
    sender: bool,
}

pub(crate) struct Sender<T>(Arc<Shared<T>>);

pub(crate) struct Receiver<T>(Arc<Shared<T>>);

pub(crate) fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared {
        state: Mutex::new(State {
            message: None,
            sender: true,
        }),
        changed: Condvar::new(),
    });
    (Sender(shared.clone()), Receiver(shared))
}

impl<T> Sender<T> {
    pub(crate) fn send(self, message: T) {
        self.0.state.lock().unwrap().message = Some(message);
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.state.lock().unwrap().sender = false;
        self.0.changed.notify_one();
    }
}

impl<T> Receiver<T> {
    pub(crate) fn receive(self) -> Option<T> {
        let mut state = self.0.state.lock().unwrap();
        while state.message.is_none() && state.sender {
            state = self.0.changed.wait(state).unwrap();
        }
        state.message.take()
    }
}

impl<T> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}
