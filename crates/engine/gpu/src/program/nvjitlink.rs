//! nvJitLink, NVIDIA's run-time linker, through the functions of its C interface that we call.

use crate::{
    error::Error,
    toolkit as library,
    version::{Arch, Version},
};
use std::{
    ffi::{CString, c_char, c_int, c_uint, c_void},
    path::Path,
    ptr,
};

/// `nvJitLinkHandle`.
type Handle = *mut c_void;
type Create = unsafe extern "C" fn(*mut Handle, c_uint, *const *const c_char) -> c_int;
type Destroy = unsafe extern "C" fn(*mut Handle) -> c_int;
type AddData = unsafe extern "C" fn(Handle, c_int, *const c_void, usize, *const c_char) -> c_int;
type AddFile = unsafe extern "C" fn(Handle, c_int, *const c_char) -> c_int;
type Complete = unsafe extern "C" fn(Handle) -> c_int;
type GetSize = unsafe extern "C" fn(Handle, *mut usize) -> c_int;
type GetVersion = unsafe extern "C" fn(*mut c_uint, *mut c_uint) -> c_int;
type GetData = unsafe extern "C" fn(Handle, *mut c_char) -> c_int;

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
    cubin_size: GetSize,
    cubin: GetData,
    log_size: GetSize,
    log: GetData,
}

impl NvJitLink {
    /// Opens the library at `path`.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let library = library::open(path)?;
        // SAFETY: the types are those of nvJitLink.h, unchanged since CUDA 12.0.
        unsafe {
            let version = library::function(library, path, "nvJitLinkVersion");
            Ok(Self {
                version: version.ok().and_then(version_told),
                create: library::function(library, path, "nvJitLinkCreate")?,
                destroy: library::function(library, path, "nvJitLinkDestroy")?,
                add_data: library::function(library, path, "nvJitLinkAddData")?,
                add_file: library::function(library, path, "nvJitLinkAddFile")?,
                complete: library::function(library, path, "nvJitLinkComplete")?,
                cubin_size: library::function(library, path, "nvJitLinkGetLinkedCubinSize")?,
                cubin: library::function(library, path, "nvJitLinkGetLinkedCubin")?,
                log_size: library::function(library, path, "nvJitLinkGetErrorLogSize")?,
                log: library::function(library, path, "nvJitLinkGetErrorLog")?,
            })
        }
    }

    /// The linker's version, where it tells.
    pub(crate) fn version(&self) -> Option<Version> {
        self.version
    }

    /// Links relocatable machine code with a static library. The error is the linker's log.
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
        session.read(self.cubin_size, self.cubin)
    }
}

/// Asks the library for its version.
fn version_told(function: GetVersion) -> Option<Version> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: it writes two numbers.
    let status = unsafe { function(&mut major, &mut minor) };
    (status == 0).then(|| Version::new(major, minor))
}

/// One link under way.
struct Session<'a> {
    linker: &'a NvJitLink,
    handle: Handle,
}

impl Session<'_> {
    /// Turns a failure into the linker's log.
    fn check(&self, call: &str, status: c_int) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        let log = self
            .read(self.linker.log_size, self.linker.log)
            .unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let log = log.trim_matches(['\0', '\n']);
        Err(format!("{call} gave status {status} {log}")
            .trim_end()
            .to_owned())
    }

    /// Reads something that the linker made.
    fn read(&self, size: GetSize, data: GetData) -> Result<Vec<u8>, String> {
        let mut bytes = 0;
        // SAFETY: the session lives, and one number is written.
        let mut status = unsafe { size(self.handle, &mut bytes) };
        let mut buffer = vec![0u8; bytes];
        if status == 0 && bytes > 0 {
            // SAFETY: the buffer has the size that the call before told.
            status = unsafe { data(self.handle, buffer.as_mut_ptr().cast()) };
        }
        match status {
            0 => Ok(buffer),
            _ => Err(format!("reading the linker's result gave status {status}")),
        }
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle came from nvJitLinkCreate and is given back once. That this could
        // fail would change nothing for anyone.
        unsafe { (self.linker.destroy)(&mut self.handle) };
    }
}
