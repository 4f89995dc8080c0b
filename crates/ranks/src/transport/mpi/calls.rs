//! The few calls of MPI that messages need, as safe functions.
//!
//! MPI is started for threads that call one after the other, and every call is made under one lock,
//! so a transport may move to another thread. Every call is also made in the context of a GPU that
//! [is held](contexts), because an MPI moves GPU bytes in any call. An error of MPI is returned as
//! its text and does not end the process.
//!
//! GPU memory is sent in messages of a second communicator, so that a probe for messages of any
//! rank never finds one that needs such memory as its destination.
//!
//! **Invariant:** the bytes of a message stay where they are until MPI is done with them: a
//! [`Transfer`] that is dropped earlier leaks them.

use crate::transport::{DeviceMemory, contexts};
use mpi::ffi;
use std::{
    ffi::{c_int, c_void},
    mem::MaybeUninit,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// Serialises all calls of the process.
static CALLS: Mutex<()> = Mutex::new(());

/// Keeps other threads out of MPI, and makes the held context of a GPU current. A panic leaves no
/// partial state behind the lock.
fn enter() -> MutexGuard<'static, ()> {
    let lock = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
    contexts::make_current();
    lock
}

/// The text of an MPI return code, unless it means success.
fn check(code: c_int) -> Result<(), String> {
    if code == ffi::MPI_SUCCESS as c_int {
        return Ok(());
    }
    let mut text = vec![0u8; ffi::MPI_MAX_ERROR_STRING as usize + 1];
    let mut len = 0;
    // SAFETY: the buffer is as long as the longest text of MPI.
    unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &mut len) };
    let text = &text[..len.max(0) as usize];
    Err(format!("MPI: {}", String::from_utf8_lossy(text)))
}

/// Whether this MPI is CUDA-aware; `None` if it cannot be asked.
///
/// The query is an extension that not every library has, so it is looked up at run time: a program
/// linked to it would not start with another library.
#[cfg(unix)]
pub(super) fn knows_gpus() -> Option<bool> {
    let program = libloading::os::unix::Library::this();
    // SAFETY: all libraries that have this function declare it so.
    let query =
        unsafe { program.get::<unsafe extern "C" fn() -> c_int>(b"MPIX_Query_cuda_support\0") };
    let query = query.ok()?;
    let _lock = enter();
    // SAFETY: as above. It is called between the start and the end of MPI.
    Some(unsafe { query() } == 1)
}

#[cfg(not(unix))]
pub(super) fn knows_gpus() -> Option<bool> {
    None
}

/// A group of ranks whose messages are separate from those of all other groups.
pub(super) struct Group {
    comm: ffi::MPI_Comm,
    /// For memory of GPUs.
    direct: ffi::MPI_Comm,
    /// True once MPI has ended.
    ended: Arc<AtomicBool>,
}

// SAFETY: the handle is a number or a pointer that only calls under the lock look behind.
unsafe impl Send for Group {}

/// Bytes that MPI reads or writes.
pub(super) enum Memory {
    Host(Vec<u8>),
    Device(DeviceMemory),
}

impl Memory {
    fn bytes(&self) -> usize {
        match self {
            Self::Host(bytes) => bytes.len(),
            Self::Device(memory) => memory.bytes(),
        }
    }

    /// The address of a byte, only for MPI: it may be on a GPU.
    fn address(&mut self, at: usize) -> *mut c_void {
        let first: *mut u8 = match self {
            Self::Host(bytes) => bytes.as_mut_ptr(),
            Self::Device(memory) => {
                std::ptr::with_exposed_provenance_mut(memory.address() as usize)
            }
        };
        first.wrapping_add(at).cast()
    }
}

/// Bytes on their way, in one direction.
pub(super) struct Transfer {
    requests: Vec<ffi::MPI_Request>,
    memory: Memory,
}

// SAFETY: as for `Group`.
unsafe impl Send for Transfer {}

impl Drop for Transfer {
    fn drop(&mut self) {
        if !self.requests.is_empty() {
            // MPI may still read it, or write to it.
            match std::mem::replace(&mut self.memory, Memory::Host(Vec::new())) {
                Memory::Host(bytes) => std::mem::forget(bytes),
                Memory::Device(memory) => memory.leak(),
            }
        }
    }
}

/// Splits `bytes` bytes into parts of at most `part` bytes, at least one: beginnings and lengths.
fn parts(bytes: usize, part: usize) -> impl Iterator<Item = (usize, usize)> {
    let begins = (0..bytes.max(1)).step_by(part);
    begins.map(move |begin| (begin, (bytes - begin).min(part)))
}

/// An MPI message that has arrived.
pub(super) struct Envelope {
    pub(super) from: usize,
    pub(super) tag: i32,
    pub(super) bytes: Vec<u8>,
}

impl Group {
    /// All ranks of the program, as a group of its own. Collective.
    pub(super) fn world(ended: Arc<AtomicBool>) -> Result<Self, String> {
        let lock = enter();
        still(&ended)?;
        let of_its_own = || {
            let mut group = MaybeUninit::uninit();
            // SAFETY: MPI is running. The first call writes the handle that the second one takes.
            unsafe {
                let world = ffi::RSMPI_COMM_WORLD;
                check(ffi::MPI_Comm_dup(world, group.as_mut_ptr()))?;
                let comm = group.assume_init();
                check(ffi::MPI_Comm_set_errhandler(comm, ffi::RSMPI_ERRORS_RETURN))?;
                Ok::<_, String>(comm)
            }
        };
        let (comm, direct) = (of_its_own()?, of_its_own()?);
        drop(lock);
        Ok(Self {
            comm,
            direct,
            ended,
        })
    }

    /// This rank and the number of ranks.
    pub(super) fn place(&self) -> Result<[usize; 2], String> {
        let (mut rank, mut ranks) = (0, 0);
        let _lock = enter();
        still(&self.ended)?;
        // SAFETY: MPI is running, and both numbers are written.
        unsafe {
            check(ffi::MPI_Comm_rank(self.comm, &mut rank))?;
            check(ffi::MPI_Comm_size(self.comm, &mut ranks))?;
        }
        Ok([rank as usize, ranks as usize])
    }

    /// Starts to send a message, in parts of at most `part` bytes: all but the last have the tag
    /// `more`.
    pub(super) fn send(
        &self,
        to: usize,
        [tag, more]: [i32; 2],
        message: Vec<u8>,
        part: usize,
    ) -> Result<Transfer, String> {
        self.begin_to_send(self.comm, to, [tag, more], (Memory::Host(message), part))
    }

    /// Starts to send GPU memory, in parts of at most `part` bytes.
    pub(super) fn send_direct(
        &self,
        to: usize,
        tag: i32,
        memory: DeviceMemory,
        part: usize,
    ) -> Result<Transfer, String> {
        self.begin_to_send(self.direct, to, [tag; 2], (Memory::Device(memory), part))
    }

    fn begin_to_send(
        &self,
        comm: ffi::MPI_Comm,
        to: usize,
        [tag, more]: [i32; 2],
        (memory, part): (Memory, usize),
    ) -> Result<Transfer, String> {
        let (requests, len) = (Vec::new(), memory.bytes());
        let mut sending = Transfer { requests, memory };
        let _lock = enter();
        still(&self.ended)?;
        for (begin, bytes) in parts(len, part) {
            let last = begin + bytes == len;
            let mut request = MaybeUninit::uninit();
            // SAFETY: MPI is running; the bytes are those of the message, which `sending` keeps in
            // place until MPI has taken them.
            unsafe {
                check(ffi::MPI_Isend(
                    sending.memory.address(begin),
                    bytes as c_int,
                    ffi::RSMPI_UINT8_T,
                    to as c_int,
                    if last { tag } else { more },
                    comm,
                    request.as_mut_ptr(),
                ))?;
                sending.requests.push(request.assume_init());
            }
        }
        Ok(sending)
    }

    /// Starts to receive what [`send_direct`](Self::send_direct) sends with the same parts, into
    /// memory of exactly as many bytes.
    pub(super) fn receive_direct(
        &self,
        from: usize,
        tag: i32,
        memory: Memory,
        part: usize,
    ) -> Result<Transfer, String> {
        let (requests, len) = (Vec::new(), memory.bytes());
        let mut receiving = Transfer { requests, memory };
        let _lock = enter();
        still(&self.ended)?;
        for (begin, bytes) in parts(len, part) {
            let mut request = MaybeUninit::uninit();
            // SAFETY: MPI is running; the bytes are those of the memory, which `receiving` keeps in
            // place until MPI has written them.
            unsafe {
                check(ffi::MPI_Irecv(
                    receiving.memory.address(begin),
                    bytes as c_int,
                    ffi::RSMPI_UINT8_T,
                    from as c_int,
                    tag,
                    self.direct,
                    request.as_mut_ptr(),
                ))?;
                receiving.requests.push(request.assume_init());
            }
        }
        Ok(receiving)
    }

    /// Drops the transfers that MPI is done with.
    pub(super) fn settle(&self, transfers: &mut Vec<Transfer>) -> Result<(), String> {
        let mut failed = Ok(());
        transfers.retain_mut(|transfer| {
            let done = self.is_done(transfer);
            !done.unwrap_or_else(|error| {
                failed = Err(error);
                false
            })
        });
        failed
    }

    /// Returns true if MPI is done with the bytes. Requests are tested one by one: the error of one
    /// test gives the reason, and an error for several only says that one of them failed.
    fn is_done(&self, transfer: &mut Transfer) -> Result<bool, String> {
        let _lock = enter();
        still(&self.ended)?;
        while let Some(request) = transfer.requests.last_mut() {
            let mut done = 0;
            // SAFETY: MPI is running, and the request is of this group and not complete.
            check(unsafe { ffi::MPI_Test(request, &mut done, ffi::RSMPI_STATUS_IGNORE) })?;
            if done == 0 {
                return Ok(false);
            }
            transfer.requests.pop();
        }
        Ok(true)
    }

    /// The next message that has arrived, from any rank with any tag. Messages of one rank arrive
    /// in the order in which they were sent, whatever their tags.
    pub(super) fn next(&self) -> Result<Option<Envelope>, String> {
        let _lock = enter();
        still(&self.ended)?;
        let (mut flag, mut bytes) = (0, 0);
        let (mut message, mut status) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: MPI is running. The message and its status are read where the flag says that they
        // were written.
        let (mut message, status) = unsafe {
            check(ffi::MPI_Improbe(
                ffi::RSMPI_ANY_SOURCE,
                ffi::RSMPI_ANY_TAG,
                self.comm,
                &mut flag,
                message.as_mut_ptr(),
                status.as_mut_ptr(),
            ))?;
            if flag == 0 {
                return Ok(None);
            }
            (message.assume_init(), status.assume_init())
        };
        // SAFETY: MPI is running, and the status is that of a message.
        check(unsafe { ffi::MPI_Get_count(&status, ffi::RSMPI_UINT8_T, &mut bytes) })?;
        let mut buffer = Vec::new();
        let room = buffer.try_reserve_exact(bytes.max(0) as usize);
        room.map_err(|_| format!("no memory for a message of {bytes} bytes"))?;
        buffer.resize(bytes.max(0) as usize, 0);
        // SAFETY: MPI is running, and the buffer is as long as the message.
        check(unsafe {
            ffi::MPI_Mrecv(
                buffer.as_mut_ptr().cast(),
                bytes,
                ffi::RSMPI_UINT8_T,
                &mut message,
                ffi::RSMPI_STATUS_IGNORE,
            )
        })?;
        Ok(Some(Envelope {
            from: status.MPI_SOURCE as usize,
            tag: status.MPI_TAG,
            bytes: buffer,
        }))
    }
}

/// Refuses calls after the end of MPI.
fn still(ended: &AtomicBool) -> Result<(), String> {
    if ended.load(Ordering::SeqCst) {
        return Err("MPI has ended: keep Mpi until all transports are dropped".to_owned());
    }
    Ok(())
}

impl Drop for Group {
    fn drop(&mut self) {
        let _lock = enter();
        if !self.ended.load(Ordering::SeqCst) {
            // SAFETY: MPI is running, and no message of the group is under way. A failure leaves a
            // handle to the end of the program.
            unsafe {
                ffi::MPI_Comm_free(&mut self.comm);
                ffi::MPI_Comm_free(&mut self.direct);
            }
        }
    }
}

/// Notes the end of MPI for all groups: after this returns none of their calls is running or will
/// run.
pub(super) fn end(ended: &AtomicBool) {
    let _lock = enter();
    ended.store(true, Ordering::SeqCst);
}
