//! What calls return, and the texts of failures.

use std::{
    cell::RefCell,
    ffi::{CString, c_char},
};

/// Outcome of a call.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NfStatus {
    /// Done.
    Ok = 0,
    /// A pointer that must point to something is null.
    NullPointer = 1,
    /// Not a handle of this kind, or one that was freed.
    BadHandle = 2,
    /// The call would change the handle while others read it, or read it while another changes it:
    /// from another thread, or from a callback of a call on it.
    Busy = 3,
    /// A number, size, stride, name or combination that cannot be used.
    BadArgument = 4,
    /// The radius or the box cannot be used.
    Setup = 5,
    /// Coordinates that cannot be used; the text names the point.
    Positions = 6,
    /// There is no such point set.
    UnknownPointSet = 7,
    /// There is no such point.
    UnknownPoint = 8,
    /// No current lists: the pair of sets is inactive, or a set was updated since they were found.
    NoLists = 9,
    /// Lists were got before the engine changed; get them anew.
    OutOfDate = 10,
    /// Lists would exceed the memory limit; the text holds the bytes needed.
    MemoryLimit = 11,
    /// Memory is short.
    OutOfMemory = 12,
    /// The device asked for cannot be used; the text says what is missing.
    Device = 13,
    /// The GPU failed, or refused a program; the text holds the compiler's messages.
    Gpu = 14,
    /// Asked for in another precision than the engine's.
    Precision = 15,
    /// The callback asked to stop.
    Stopped = 16,
    /// A file could not be written, or a recording is there already.
    Trace = 17,
    /// A defect of the library; the handle can only be freed.
    Internal = 18,
}

/// A refusal on its way to the caller.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: NfStatus,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(status: NfStatus, text: impl Into<String>) -> Self {
        Self {
            status,
            text: text.into(),
        }
    }
}

impl From<nearfield::Error> for Failure {
    fn from(error: nearfield::Error) -> Self {
        use nearfield::{ErrorKind, error::grid};
        let status = match error.kind() {
            _ if error.is_out_of_memory() => NfStatus::OutOfMemory,
            ErrorKind::Setup(_) => NfStatus::Setup,
            ErrorKind::Positions { source, .. } | ErrorKind::Query(source) => match source.kind() {
                grid::ErrorKind::Precision => NfStatus::Precision,
                _ => NfStatus::Positions,
            },
            ErrorKind::UnknownPointSet { .. } | ErrorKind::RemovedPointSet { .. } => {
                NfStatus::UnknownPointSet
            }
            ErrorKind::UnknownPoint { .. } => NfStatus::UnknownPoint,
            ErrorKind::NoLists { .. } => NfStatus::NoLists,
            ErrorKind::MemoryLimit { .. } | ErrorKind::ListTooLong { .. } => NfStatus::MemoryLimit,
            ErrorKind::DeviceUnavailable { .. } => NfStatus::Device,
            ErrorKind::Gpu(_) | ErrorKind::OnDevice { .. } => NfStatus::Gpu,
            _ => NfStatus::BadArgument,
        };
        let text = match error.kind() {
            // In the words of this interface, which has no lists in chunks.
            ErrorKind::MemoryLimit {
                what,
                needed,
                limit,
            } => format!(
                "{what} would take {needed} bytes, but the memory limit is {limit}: raise it, or \
                 take the neighbours in batches with nf_for_each_batch"
            ),
            _ => error.to_string(),
        };
        Self::new(status, text)
    }
}

thread_local! {
    /// Of the last call on this thread that failed.
    static LAST: RefCell<CString> = RefCell::default();
}

/// Keeps the text of a failure for [`nf_last_error`].
pub(crate) fn remember(text: &str) {
    // A thread that is ending, where an owner is freed by a destructor, has no place for it any
    // more.
    let _ = LAST.try_with(|last| *last.borrow_mut() = to_c(text));
}

/// The text, up to a NUL should there be one.
pub(crate) fn to_c(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

/// The text of the last failure on this thread, "" before the first: valid until the next failure
/// on this thread. Never null.
#[unsafe(no_mangle)]
pub extern "C" fn nf_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr())
        .unwrap_or(c"".as_ptr())
}

/// A status in words, for messages; never null.
#[unsafe(no_mangle)]
pub extern "C" fn nf_status_text(status: i32) -> *const c_char {
    let text = match status {
        0 => c"done",
        1 => c"a pointer is null",
        2 => c"not a live handle of this kind",
        3 => c"the handle is in use",
        4 => c"an argument cannot be used",
        5 => c"the radius or the box cannot be used",
        6 => c"coordinates cannot be used",
        7 => c"no such point set",
        8 => c"no such point",
        9 => c"no current lists",
        10 => c"lists are out of date",
        11 => c"the memory limit would be exceeded",
        12 => c"memory is short",
        13 => c"the device cannot be used",
        14 => c"the GPU failed",
        15 => c"wrong precision",
        16 => c"the callback asked to stop",
        17 => c"the trace cannot be recorded",
        18 => c"the library failed inside",
        _ => c"not a status",
    };
    text.as_ptr()
}

/// Version of the interface, which changes when programs have to: a program made for one version
/// must not run with another.
#[unsafe(no_mangle)]
pub extern "C" fn nf_abi_version() -> u32 {
    0
}

/// Version of the library, such as "0.1.0"; never null.
#[unsafe(no_mangle)]
pub extern "C" fn nf_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
