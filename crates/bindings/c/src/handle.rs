//! Handles: names of things in a table.
//!
//! Calls that read a thing run side by side, any number of them; a call that changes it runs alone.
//! Neither waits for the other: what cannot run now is refused as busy. A call that waited could
//! wait for itself, where it comes from a callback, or for a thread that waits for it.
//!
//! A handle looks like a pointer to C but is a number that counts up over all kinds of handles and
//! is never used twice. Any other value is therefore not found, and nothing is read from the
//! address that it looks like.

use crate::status::{Failure, NfStatus};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError, RwLock, TryLockError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

/// The first name: none of a small number that a program may hold by accident.
static NEXT: AtomicUsize = AtomicUsize::new(0x4e46_0000);
/// Counts states of all handles, so that no two states have the same number.
static STATES: AtomicU64 = AtomicU64::new(1);

/// Things of one kind by their names.
pub(crate) struct Table<T> {
    /// Name of these things in messages.
    kind: &'static str,
    entries: RwLock<BTreeMap<usize, Arc<Entry<T>>>>,
}

/// A thing, and what is known about it.
pub(crate) struct Entry<T> {
    value: RwLock<T>,
    state: AtomicU64,
    error: Mutex<String>,
}

impl<T> Table<T> {
    pub(crate) const fn new(kind: &'static str) -> Self {
        Self {
            kind,
            entries: RwLock::new(BTreeMap::new()),
        }
    }

    /// Names a thing.
    pub(crate) fn insert(&self, value: T) -> usize {
        let name = NEXT.fetch_add(1, Ordering::Relaxed);
        let entry = Arc::new(Entry {
            value: RwLock::new(value),
            state: AtomicU64::new(next_state()),
            error: Mutex::default(),
        });
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.insert(name, entry);
        name
    }

    /// The thing of this name.
    pub(crate) fn get(&self, name: usize) -> Result<Arc<Entry<T>>, Failure> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries
            .get(&name)
            .cloned()
            .ok_or_else(|| self.unknown(name))
    }

    /// Removes the thing of this name; refused while a call uses it.
    pub(crate) fn remove(&self, name: usize) -> Result<(), Failure> {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.get(&name).ok_or_else(|| self.unknown(name))?;
        if let Err(TryLockError::WouldBlock) = entry.value.try_write() {
            return Err(busy());
        }
        let entry = entries.remove(&name);
        drop(entries);
        drop(entry);
        Ok(())
    }

    fn unknown(&self, name: usize) -> Failure {
        match name {
            0 => Failure::new(
                NfStatus::NullPointer,
                format!("the {} is a null pointer", self.kind),
            ),
            _ => Failure::new(
                NfStatus::BadHandle,
                format!("{name:#x} is no {}, or one that was freed", self.kind),
            ),
        }
    }
}

impl<T> Entry<T> {
    /// Uses the thing beside others who do no more than that.
    pub(crate) fn read<R>(
        &self,
        work: impl FnOnce(&T, u64) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        match self.value.try_read() {
            Ok(value) => work(&value, self.state.load(Ordering::Acquire)),
            Err(refused) => Err(refusal(&refused)),
        }
    }

    /// Changes the thing, alone. It counts as changed whatever becomes of `work`: what fails in the
    /// middle may have moved memory that views of the old state point to.
    pub(crate) fn write<R>(
        &self,
        work: impl FnOnce(&mut T) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        match self.value.try_write() {
            Ok(mut value) => {
                let done = work(&mut value);
                self.state.store(next_state(), Ordering::Release);
                done
            }
            Err(refused) => Err(refusal(&refused)),
        }
    }

    /// Keeps the text of a failure.
    pub(crate) fn remember(&self, text: &str) {
        let mut error = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        text.clone_into(&mut error);
    }

    /// The text of the last failure.
    pub(crate) fn error(&self) -> String {
        let error = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        error.clone()
    }
}

fn next_state() -> u64 {
    STATES.fetch_add(1, Ordering::Relaxed)
}

fn busy() -> Failure {
    Failure::new(
        NfStatus::Busy,
        "the handle is in use by another thread, or by the call whose callback this is",
    )
}

fn refusal<G>(refused: &TryLockError<G>) -> Failure {
    match refused {
        TryLockError::WouldBlock => busy(),
        TryLockError::Poisoned(_) => Failure::new(
            NfStatus::Internal,
            "an earlier call failed inside the library: free the handle",
        ),
    }
}
