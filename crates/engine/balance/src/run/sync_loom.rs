//! The same channels and locks as loom explores them. There is no clock in a model, so a receiver
//! sleeps at once.

pub(crate) use loom::sync::Mutex;

use loom::sync::{Arc, Condvar};
use std::{collections::VecDeque, fmt};

struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    messages: VecDeque<T>,
    capacity: usize,
    sender: bool,
    receiver: bool,
}

pub(crate) struct Sender<T>(Arc<Shared<T>>);

pub(crate) struct Receiver<T>(Arc<Shared<T>>);

pub(crate) fn bounded<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared {
        state: Mutex::new(State {
            messages: VecDeque::new(),
            capacity,
            sender: true,
            receiver: true,
        }),
        changed: Condvar::new(),
    });
    (Sender(shared.clone()), Receiver(shared))
}

impl<T> Sender<T> {
    pub(crate) fn send(&self, message: T) -> bool {
        let mut state = self.0.state.lock().unwrap();
        if !state.receiver {
            return false;
        }
        // The head of the module says that nobody waits for room.
        assert!(
            state.messages.len() < state.capacity,
            "no room for a message"
        );
        state.messages.push_back(message);
        self.0.changed.notify_one();
        true
    }
}

impl<T> Receiver<T> {
    pub(crate) fn recv(&self) -> Option<T> {
        let mut state = self.0.state.lock().unwrap();
        loop {
            if let Some(message) = state.messages.pop_front() {
                return Some(message);
            }
            if !state.sender {
                return None;
            }
            state = self.0.changed.wait(state).unwrap();
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.state.lock().unwrap().messages.len()
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.state.lock().unwrap().sender = false;
        self.0.changed.notify_one();
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.state.lock().unwrap().receiver = false;
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
