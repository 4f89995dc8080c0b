//! Handles: names of objects in a table.
//!
//! Calls that read a thing run side by side, any number of them; a call that changes it runs alone.
//! Neither waits for the other: a call that cannot run now is refused as busy. A call that waited
//! could wait for itself, where it comes from a callback, or for a thread that waits for it.
//!
//! A handle looks like a pointer to C but is a number that counts up over all kinds of handles and
//! is never used twice. Any other value is therefore not found, and nothing is read from the
//! address that it looks like.
//!
//! A process may fork while its other threads are in here. The child has none of these threads, so
//! a lock that one of them held stays locked in it: locks that are waited for belong to a process
//! ([`PerProcess`]), and what they guard is replaced in one store, so that a child finds it whole.
//! A thing that was in use at that moment stays so in the child: one that was read may be read, and
//! is busy for changes; one that was changed is busy for everything.

use crate::status::{Failure, NfStatus};
use nearfield_grid::PerProcess;
use std::{
    collections::BTreeMap,
    marker::PhantomData,
    ptr,
    sync::{
        Arc, Mutex, PoisonError, RwLock, TryLockError,
        atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering},
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
    /// By the last digits of the name, so that a change copies little.
    shards: [Shard<T>; SHARDS],
}

/// Parts of a table.
const SHARDS: usize = 64;

/// The things of a shard by their names.
type Entries<T> = BTreeMap<usize, Arc<Entry<T>>>;

/// A part of a table.
struct Shard<T> {
    lock: PerProcess<Mutex<()>>,
    /// Null, or from [`Box::into_raw`]. Read and replaced under the lock only.
    entries: AtomicPtr<Entries<T>>,
    /// Owns the entries, for `Send` and `Sync`.
    owned: PhantomData<Arc<Entry<T>>>,
}

/// An object with its state.
pub(crate) struct Entry<T> {
    value: RwLock<T>,
    state: AtomicU64,
    error: PerProcess<Mutex<String>>,
}

impl<T> Table<T> {
    pub(crate) const fn new(kind: &'static str) -> Self {
        Self {
            kind,
            shards: [const { Shard::empty() }; SHARDS],
        }
    }

    /// Names a thing.
    pub(crate) fn insert(&self, value: T) -> usize {
        let name = NEXT.fetch_add(1, Ordering::Relaxed);
        let entry = Arc::new(Entry {
            value: RwLock::new(value),
            state: AtomicU64::new(next_state()),
            error: PerProcess::empty(),
        });
        self.shard(name)
            .change(|entries| entries.insert(name, entry));
        name
    }

    /// The thing of this name.
    pub(crate) fn get(&self, name: usize) -> Result<Arc<Entry<T>>, Failure> {
        let found = self.shard(name).look_up(name);
        found.ok_or_else(|| self.unknown(name))
    }

    /// Removes the thing of this name; refused while a call uses it.
    pub(crate) fn remove(&self, name: usize) -> Result<(), Failure> {
        // Dropped outside of the lock: freeing an engine may take long.
        let _entry = self.shard(name).change(|entries| {
            let entry = entries.get(&name).ok_or_else(|| self.unknown(name))?;
            if let Err(TryLockError::WouldBlock) = entry.value.try_write() {
                return Err(busy());
            }
            Ok(entries.remove(&name))
        })?;
        Ok(())
    }

    fn shard(&self, name: usize) -> &Shard<T> {
        &self.shards[name % SHARDS]
    }

    fn unknown(&self, name: usize) -> Failure {
        match name {
            0 => Failure::new(
                NfStatus::NullPointer,
                format!("the {} is a null pointer", self.kind),
            ),
            _ => Failure::new(
                NfStatus::BadHandle,
                format!("{name:#x} is not a {}, or it was freed", self.kind),
            ),
        }
    }
}

impl<T> Shard<T> {
    const fn empty() -> Self {
        Self {
            lock: PerProcess::empty(),
            entries: AtomicPtr::new(ptr::null_mut()),
            owned: PhantomData,
        }
    }

    /// The thing of this name.
    fn look_up(&self, name: usize) -> Option<Arc<Entry<T>>> {
        let lock = self.lock.get_or_make(Mutex::default);
        let _locked = lock.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: null or a live box: `change` frees one under the lock, which is held here. In a
        // forked child no other thread is left that could have it.
        let entries = unsafe { self.entries.load(Ordering::Acquire).as_ref() };
        entries?.get(&name).cloned()
    }

    /// Changes a copy and puts it in the place of the entries, even when `change` fails.
    fn change<R>(&self, change: impl FnOnce(&mut Entries<T>) -> R) -> R {
        let lock = self.lock.get_or_make(Mutex::default);
        let _locked = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.entries.load(Ordering::Acquire);
        // SAFETY: as in `look_up`.
        let mut entries = unsafe { old.as_ref() }.cloned().unwrap_or_default();
        let done = change(&mut entries);
        let new = Box::into_raw(Box::new(entries));
        self.entries.store(new, Ordering::Release);
        if !old.is_null() {
            // SAFETY: from `Box::into_raw`, and replaced, so no other call can find it.
            drop(unsafe { Box::from_raw(old) });
        }
        done
    }
}

impl<T> Drop for Shard<T> {
    fn drop(&mut self) {
        let entries = *self.entries.get_mut();
        if !entries.is_null() {
            // SAFETY: from `Box::into_raw`, and `&mut self` proves that no reference is left.
            drop(unsafe { Box::from_raw(entries) });
        }
    }
}

impl<T> Entry<T> {
    /// Reads the object, possibly at the same time as other readers.
    pub(crate) fn read<R>(
        &self,
        work: impl FnOnce(&T, u64) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        match self.value.try_read() {
            Ok(value) => work(&value, self.state.load(Ordering::Acquire)),
            Err(refused) => Err(refusal(&refused)),
        }
    }

    /// Changes the object exclusively. It counts as changed even if `work` fails: a failure in the
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
        let error = self.error.get_or_make(Mutex::default);
        let mut error = error.lock().unwrap_or_else(PoisonError::into_inner);
        text.clone_into(&mut error);
    }

    /// The text of the last failure in this process.
    pub(crate) fn error(&self) -> String {
        let error = self.error.get_or_make(Mutex::default);
        let error = error.lock().unwrap_or_else(PoisonError::into_inner);
        error.clone()
    }
}

fn next_state() -> u64 {
    STATES.fetch_add(1, Ordering::Relaxed)
}

fn busy() -> Failure {
    Failure::new(
        NfStatus::Busy,
        "the handle is in use by another thread, or by the call whose callback this is, or was in use \
         by a thread of the process that this one was forked from",
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
