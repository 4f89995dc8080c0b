//! The wrapper of every function: catches panics and keeps the last failure.

use crate::{
    args,
    handle::Table,
    status::{Failure, NfStatus, remember},
};
use std::{
    any::Any,
    ffi::c_char,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Runs a call that needs no handle.
pub(crate) fn plain(work: impl FnOnce() -> Result<(), Failure>) -> NfStatus {
    match guarded(work) {
        Ok(()) => NfStatus::Ok,
        Err(failure) => {
            remember(&failure.text);
            failure.status
        }
    }
}

/// Runs a call that reads the object of a handle; `work` also gets the number of its state.
pub(crate) fn read<T>(
    table: &Table<T>,
    handle: usize,
    work: impl FnOnce(&T, u64) -> Result<(), Failure>,
) -> NfStatus {
    plain(|| {
        let entry = table.get(handle)?;
        guarded(|| entry.read(work)).inspect_err(|failure| entry.remember(&failure.text))
    })
}

/// Runs a call that changes the object of a handle.
pub(crate) fn write<T>(
    table: &Table<T>,
    handle: usize,
    work: impl FnOnce(&mut T) -> Result<(), Failure>,
) -> NfStatus {
    plain(|| {
        let entry = table.get(handle)?;
        guarded(|| entry.write(work)).inspect_err(|failure| entry.remember(&failure.text))
    })
}

/// Frees the object of a handle; null is ignored.
pub(crate) fn free<T>(table: &Table<T>, handle: usize) -> NfStatus {
    plain(|| {
        if handle == 0 {
            Ok(())
        } else {
            table.remove(handle)
        }
    })
}

/// Copies the text of the last failure on a handle to a buffer of the caller.
///
/// # Safety
/// As for [`args::put_text`].
pub(crate) unsafe fn copy_error<T>(
    table: &Table<T>,
    handle: usize,
    buffer: *mut c_char,
    capacity: usize,
    needed: *mut usize,
) -> NfStatus {
    plain(|| {
        let text = table.get(handle)?.error();
        // SAFETY: `put_text` needs exactly what the caller of this function guarantees.
        unsafe { args::put_text(&text, buffer, capacity, needed) }
    })
}

/// A panic becomes a failure. The state that `work` was changing is then locked and stays refused,
/// so no call sees it half done.
fn guarded<R>(work: impl FnOnce() -> Result<R, Failure>) -> Result<R, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        Err(Failure::new(
            NfStatus::Internal,
            format!("the library failed inside: {}", message(panic.as_ref())),
        ))
    })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_status_and_the_handle_stays_refused_until_it_is_freed() {
        let table = Table::new("thing");
        let name = table.insert(1);
        let status = write(&table, name, |_| panic!("for the test"));
        assert_eq!(status, NfStatus::Internal);
        let text = table.get(name).unwrap().error();
        assert!(text.contains("for the test"), "{text}");
        assert_eq!(read(&table, name, |_, _| Ok(())), NfStatus::Internal);
        assert!(table.remove(name).is_ok());
        assert_eq!(read(&table, name, |_, _| Ok(())), NfStatus::BadHandle);
    }

    #[test]
    fn a_change_that_fails_is_a_change_and_one_that_is_refused_is_none() {
        let table = Table::new("thing");
        let name = table.insert(1);
        let state = || {
            let mut found = 0;
            let look = |_: &i32, state| {
                found = state;
                Ok(())
            };
            assert_eq!(read(&table, name, look), NfStatus::Ok);
            found
        };
        let first = state();
        let failing = |_: &mut i32| Err(Failure::new(NfStatus::OutOfMemory, "for the test"));
        assert_eq!(write(&table, name, failing), NfStatus::OutOfMemory);
        let second = state();
        assert_ne!(first, second);
        let outer = read(&table, name, |_, _| {
            assert_eq!(write(&table, name, |_| Ok(())), NfStatus::Busy);
            Ok(())
        });
        assert_eq!((outer, state()), (NfStatus::Ok, second));
    }

    #[test]
    fn what_is_in_use_can_be_read_beside_but_neither_changed_nor_freed() {
        let table = Table::new("thing");
        let name = table.insert(1);
        let outer = read(&table, name, |_, state| {
            let same = |_: &i32, other| {
                assert_eq!(state, other);
                Ok(())
            };
            assert_eq!(read(&table, name, same), NfStatus::Ok);
            assert_eq!(write(&table, name, |_| Ok(())), NfStatus::Busy);
            assert_eq!(table.remove(name).unwrap_err().status, NfStatus::Busy);
            Ok(())
        });
        assert_eq!(outer, NfStatus::Ok);
        assert_eq!(write(&table, name, |_| Ok(())), NfStatus::Ok);
    }
}
