//! nvJitLink, NVIDIA's run-time linker, through the functions of its C interface that we call.
//!
//! A link takes one object and one static
//! library; the session owns the result until it is copied out, and is destroyed on every path.

use crate::{
    error::Error,
    toolkit::{self as library, GetVersion, Handle, OutputCalls, version_told},
    version::{Arch, Version},
};
use std::{
    ffi::{CString, c_char, c_int, c_uint, c_void},
    path::Path,
    ptr,
};

/// `nvJitLinkCreate`: handle, number of options, options.
type Create = unsafe extern "C" fn(*mut Handle, c_uint, *const *const c_char) -> c_int;
/// `nvJitLinkDestroy`.
type Destroy = unsafe extern "C" fn(*mut Handle) -> c_int;
/// `nvJitLinkAddData`: kind of the input, its bytes and their number, a name for messages.
type AddData = unsafe extern "C" fn(Handle, c_int, *const c_void, usize, *const c_char) -> c_int;
/// `nvJitLinkAddFile`: kind of the input, its path.
type AddFile = unsafe extern "C" fn(Handle, c_int, *const c_char) -> c_int;
/// `nvJitLinkComplete`.
type Complete = unsafe extern "C" fn(Handle) -> c_int;

/// `NVJITLINK_INPUT_CUBIN`.
const MACHINE_CODE: c_int = 1;
/// `NVJITLINK_INPUT_LIBRARY`.
const LIBRARY: c_int = 6;

/// The linker. Its functions may be called from any thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NvJitLink {
    /// None for an old one, which cannot tell.
    version: Option<Version>,
    create: Create,
    destroy: Destroy,
    add_data: AddData,
    add_file: AddFile,
    complete: Complete,
    cubin: OutputCalls,
    log: OutputCalls,
}

impl NvJitLink {
    /// Opens the library at `path`.
    ///
    /// # Errors
    /// [`ErrorKind::BadLibrary`](crate::ErrorKind::BadLibrary) if it cannot be loaded or lacks a
    /// function.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let library = library::open(path)?;
        // SAFETY: the types are those of nvJitLink.h, unchanged since CUDA 12.0, but for the sign
        // of the two numbers of a version, which are small.
        unsafe {
            let version = library::function(library, path, "nvJitLinkVersion");
            Ok(Self {
                version: version
                    .ok()
                    .and_then(|told: GetVersion| version_told(told).ok()),
                create: library::function(library, path, "nvJitLinkCreate")?,
                destroy: library::function(library, path, "nvJitLinkDestroy")?,
                add_data: library::function(library, path, "nvJitLinkAddData")?,
                add_file: library::function(library, path, "nvJitLinkAddFile")?,
                complete: library::function(library, path, "nvJitLinkComplete")?,
                cubin: OutputCalls {
                    size: library::function(library, path, "nvJitLinkGetLinkedCubinSize")?,
                    data: library::function(library, path, "nvJitLinkGetLinkedCubin")?,
                },
                log: OutputCalls {
                    size: library::function(library, path, "nvJitLinkGetErrorLogSize")?,
                    data: library::function(library, path, "nvJitLinkGetErrorLog")?,
                },
            })
        }
    }

    /// The linker's version, where it tells.
    pub(crate) fn version(&self) -> Option<Version> {
        self.version
    }

    /// Links relocatable machine code for `arch` with a static library, and returns machine code
    /// that can be loaded.
    ///
    /// # Errors
    /// The call that failed, with its status and the linker's log.
    pub(crate) fn link(&self, arch: Arch, code: &[u8], with: &Path) -> Result<Vec<u8>, String> {
        let text = |text: &str| CString::new(text).map_err(|_| format!("{text:?} holds a NUL"));
        let file = text(&with.to_string_lossy())?;
        let option = text(&format!("-arch={arch}"))?;
        let options = [option.as_ptr()];
        let mut handle = ptr::null_mut();
        // SAFETY: one option, NUL-terminated; the handle is written on success only.
        let status = unsafe { (self.create)(&mut handle, 1, options.as_ptr()) };
        if status != 0 {
            return Err(format!("nvJitLinkCreate gave status {status}"));
        }
        let session = Session {
            linker: self,
            handle,
        };
        session.check("nvJitLinkAddData", {
            // SAFETY: the code outlives the session, which ends in this function.
            unsafe {
                (self.add_data)(
                    handle,
                    MACHINE_CODE,
                    code.as_ptr().cast(),
                    code.len(),
                    c"program".as_ptr(),
                )
            }
        })?;
        // SAFETY: the session lives; the name is NUL-terminated.
        let status = unsafe { (self.add_file)(handle, LIBRARY, file.as_ptr()) };
        session.check("nvJitLinkAddFile", status)?;
        // SAFETY: the session lives.
        session.check("nvJitLinkComplete", unsafe { (self.complete)(handle) })?;
        // SAFETY: functions of nvJitLink, and the session lives.
        unsafe { self.cubin.read(handle) }
            .map_err(|status| format!("reading the linker's result gave status {status}"))
    }
}

/// One link under way.
struct Session<'a> {
    linker: &'a NvJitLink,
    /// Lives until the session is dropped.
    handle: Handle,
}

impl Session<'_> {
    /// Turns a failure into the linker's log.
    fn check(&self, call: &str, status: c_int) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: functions of nvJitLink, and the session lives.
        let log = unsafe { self.linker.log.messages(self.handle) };
        Err(format!("{call} gave status {status} {log}")
            .trim_end()
            .to_owned())
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle came from nvJitLinkCreate and is given back once. That this could
        // fail would change nothing for anyone.
        unsafe { (self.linker.destroy)(&mut self.handle) };
    }
}
