//! The status codes of calls, and the texts of failures.

use std::{
    cell::UnsafeCell,
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
    /// The lists are older than the last change of the engine; get them again.
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
            ErrorKind::NeedsRefresh { .. } => NfStatus::OutOfDate,
            ErrorKind::MemoryLimit { .. } | ErrorKind::ListTooLong { .. } => NfStatus::MemoryLimit,
            ErrorKind::DeviceUnavailable { .. } => NfStatus::Device,
            ErrorKind::Gpu(_) | ErrorKind::OnDevice { .. } => NfStatus::Gpu,
            _ => NfStatus::BadArgument,
        };
        let text = match error.kind() {
            // In the words of this interface.
            ErrorKind::MemoryLimit {
                what,
                needed,
                limit,
            } => format!(
                "{what} would take {needed} bytes, but the memory limit is {limit}: raise it, or \
                 take the neighbours in chunks with nf_chunks_new or in batches with \
                 nf_for_each_batch"
            ),
            _ => error.to_string(),
        };
        Self::new(status, text)
    }
}

/// Bytes of the buffer that [`nf_last_error`] returns, the NUL included.
const MAX_TEXT: usize = 4096;

thread_local! {
    /// Text of the last call on this thread that failed. It stays where it is for as long as the
    /// thread runs, and needs no destructor, so that programs can keep the pointer.
    static LAST: UnsafeCell<[u8; MAX_TEXT]> = const { UnsafeCell::new([0; MAX_TEXT]) };
}

/// Keeps the text of a failure for [`nf_last_error`], cut where it is too long for the buffer.
pub(crate) fn remember(text: &str) {
    const CUT: &str = " [...]";
    let text = text.split('\0').next().unwrap_or_default();
    let (text, cut) = if text.len() < MAX_TEXT {
        (text, "")
    } else {
        (
            &text[..text.floor_char_boundary(MAX_TEXT - 1 - CUT.len())],
            CUT,
        )
    };
    let bytes = text.bytes().chain(cut.bytes());
    let place = LAST.with(UnsafeCell::get).cast::<u8>();
    for (at, byte) in bytes.chain([0]).enumerate() {
        // SAFETY: the text, the mark and the NUL are at most `MAX_TEXT` bytes; the buffer is this
        // thread's, and no reference to it is ever made.
        unsafe { place.add(at).write(byte) };
    }
}

/// The text, up to a NUL should there be one.
pub(crate) fn to_c(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

/// The text of the last failure on this thread, "" before the first, of at most 4095 bytes: a
/// longer one is cut, and whole in nf_engine_error() and its like. Never null. The pointer is the
/// same for as long as the thread runs; the next failure on this thread writes its text there, so
/// copy a text that is to stay.
#[unsafe(no_mangle)]
pub extern "C" fn nf_last_error() -> *const c_char {
    LAST.with(UnsafeCell::get).cast_const().cast()
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
