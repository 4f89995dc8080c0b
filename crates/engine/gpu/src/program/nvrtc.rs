//! NVRTC, NVIDIA's run-time compiler, through the functions of its C interface that we call.
//!
//! Loaded by full path, which the bindings of cudarc cannot: they take what the system's loader
//! finds, and Python's wheels are not among it.

use super::text::Program;
use crate::{
    error::{Error, ErrorKind},
    toolkit as library,
    version::{Arch, Version},
};
use std::{
    ffi::{CString, c_char, c_int, c_void},
    path::Path,
    ptr,
};

/// `nvrtcProgram`.
type Handle = *mut c_void;
/// Fills a buffer whose size the companion function told.
type GetSize = unsafe extern "C" fn(Handle, *mut usize) -> c_int;
type GetData = unsafe extern "C" fn(Handle, *mut c_char) -> c_int;
type Create = unsafe extern "C" fn(
    *mut Handle,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type Compile = unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> c_int;
type Destroy = unsafe extern "C" fn(*mut Handle) -> c_int;
type GetVersion = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
type GetNumbers = unsafe extern "C" fn(*mut c_int) -> c_int;

/// `NVRTC_ERROR_COMPILATION`, the one failure that the program's text is to blame for.
const COMPILATION: c_int = 6;

/// The compiler. Its functions may be called from any thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Nvrtc {
    version: Version,
    create: Create,
    compile: Compile,
    destroy: Destroy,
    cubin_size: GetSize,
    cubin: GetData,
    log_size: GetSize,
    log: GetData,
    arch_count: GetNumbers,
    archs: GetNumbers,
}

impl Nvrtc {
    /// Opens the library at `path`.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let library = library::open(path)?;
        // SAFETY: the types are those of nvrtc.h, unchanged since CUDA 11.2.
        let nvrtc = unsafe {
            let version: GetVersion = library::function(library, path, "nvrtcVersion")?;
            Self {
                version: version_told(path, version)?,
                create: library::function(library, path, "nvrtcCreateProgram")?,
                compile: library::function(library, path, "nvrtcCompileProgram")?,
                destroy: library::function(library, path, "nvrtcDestroyProgram")?,
                cubin_size: library::function(library, path, "nvrtcGetCUBINSize")?,
                cubin: library::function(library, path, "nvrtcGetCUBIN")?,
                log_size: library::function(library, path, "nvrtcGetProgramLogSize")?,
                log: library::function(library, path, "nvrtcGetProgramLog")?,
                arch_count: library::function(library, path, "nvrtcGetNumSupportedArchs")?,
                archs: library::function(library, path, "nvrtcGetSupportedArchs")?,
            }
        };
        nvrtc.open_builtins(path);
        Ok(nvrtc)
    }

    /// Opens the library of built-in functions that lies beside the compiler's, which would look
    /// for it by name only; once loaded, that name finds it.
    fn open_builtins(&self, path: &Path) {
        let file = format!("libnvrtc-builtins.so.{}", self.version);
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let beside = [real.with_file_name(&file), path.with_file_name(&file)];
        if let Some(Err(error)) = beside
            .iter()
            .find(|path| path.exists())
            .map(|path| library::open(path))
        {
            tracing::warn!(%error, "the compiler's built-in functions cannot be loaded");
        }
    }

    /// The compiler's version.
    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// Architectures that it can compile for, ascending.
    pub(crate) fn archs(&self) -> Vec<Arch> {
        let mut count = 0;
        // SAFETY: it writes one number.
        let status = unsafe { (self.arch_count)(&mut count) };
        let count = usize::try_from(count).unwrap_or(0);
        let mut numbers = vec![0; count];
        // SAFETY: it writes as many numbers as the call before told.
        if status != 0 || count == 0 || unsafe { (self.archs)(numbers.as_mut_ptr()) } != 0 {
            return Vec::new();
        }
        let numbers = numbers
            .into_iter()
            .filter_map(|number| u32::try_from(number).ok());
        numbers.map(Arch::new).collect()
    }

    /// Compiles to machine code, relocatable if the program's kernels launch kernels.
    pub(crate) fn compile(&self, program: &Program, arch: Arch) -> Result<Vec<u8>, Error> {
        let unit = Unit::new(self, program)?;
        let options = strings(program, program.options(arch))?;
        let pointers = pointers(&options);
        // SAFETY: the unit lives, and the options are NUL-terminated and outlive the call.
        let status = unsafe { (self.compile)(unit.handle, count(&pointers), pointers.as_ptr()) };
        match status {
            0 => unit.read(self.cubin_size, self.cubin, program, "its machine code"),
            COMPILATION => {
                let log = unit.read(self.log_size, self.log, program, "its log")?;
                let log = String::from_utf8_lossy(&log);
                Err(Error::from(ErrorKind::Compile {
                    program: program.name().to_owned(),
                    arch,
                    log: log.trim_end_matches(['\0', '\n']).to_owned(),
                }))
            }
            // The log may help here too: an option that is not known is named in it.
            _ => {
                let log = unit
                    .read(self.log_size, self.log, program, "its log")
                    .unwrap_or_default();
                let log = String::from_utf8_lossy(&log)
                    .trim_matches(['\0', '\n'])
                    .to_owned();
                Err(failed(program, "nvrtcCompileProgram", status, &log))
            }
        }
    }
}

/// Asks the library for its version.
fn version_told(path: &Path, function: GetVersion) -> Result<Version, Error> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: it writes two numbers.
    let status = unsafe { function(&mut major, &mut minor) };
    match (status, u32::try_from(major), u32::try_from(minor)) {
        (0, Ok(major), Ok(minor)) => Ok(Version::new(major, minor)),
        _ => Err(Error::from(ErrorKind::BadLibrary {
            path: path.to_owned(),
            reason: format!("it does not tell its version (status {status})"),
        })),
    }
}

/// A program in the compiler's hands.
struct Unit<'a> {
    nvrtc: &'a Nvrtc,
    handle: Handle,
}

impl<'a> Unit<'a> {
    fn new(nvrtc: &'a Nvrtc, program: &Program) -> Result<Self, Error> {
        let (names, texts): (Vec<_>, Vec<_>) = program.includes()?.into_iter().unzip();
        let (names, texts) = (strings(program, names)?, strings(program, texts)?);
        let (names, texts) = (pointers(&names), pointers(&texts));
        let own = strings(
            program,
            [program.text().to_owned(), format!("{}.cu", program.name())],
        )?;
        let mut handle = ptr::null_mut();
        // SAFETY: all strings are NUL-terminated and outlive the call, which copies them; there
        // are as many names as texts.
        let status = unsafe {
            (nvrtc.create)(
                &mut handle,
                own[0].as_ptr(),
                own[1].as_ptr(),
                count(&texts),
                texts.as_ptr(),
                names.as_ptr(),
            )
        };
        match status {
            0 => Ok(Self { nvrtc, handle }),
            _ => Err(failed(program, "nvrtcCreateProgram", status, "")),
        }
    }

    /// Reads something that the compiler made.
    fn read(
        &self,
        size: GetSize,
        data: GetData,
        program: &Program,
        what: &str,
    ) -> Result<Vec<u8>, Error> {
        let mut bytes = 0;
        // SAFETY: the unit lives, and one number is written.
        let mut status = unsafe { size(self.handle, &mut bytes) };
        let mut buffer = vec![0u8; bytes];
        if status == 0 {
            // SAFETY: the buffer has the size that the call before told.
            status = unsafe { data(self.handle, buffer.as_mut_ptr().cast()) };
        }
        match status {
            0 => Ok(buffer),
            _ => Err(failed(program, &format!("reading {what}"), status, "")),
        }
    }
}

impl Drop for Unit<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle came from nvrtcCreateProgram and is given back once. That this could
        // fail would change nothing for anyone.
        unsafe { (self.nvrtc.destroy)(&mut self.handle) };
    }
}

/// A failure that is not the text's.
fn failed(program: &Program, call: &str, status: c_int, log: &str) -> Error {
    Error::from(ErrorKind::BadProgram {
        program: program.name().to_owned(),
        reason: format!("{call} gave status {status} {log}")
            .trim_end()
            .to_owned(),
    })
}

/// Strings for C.
fn strings(
    program: &Program,
    texts: impl IntoIterator<Item = String>,
) -> Result<Vec<CString>, Error> {
    let strings = texts.into_iter().map(CString::new);
    strings.collect::<Result<_, _>>().map_err(|error| {
        Error::from(ErrorKind::BadProgram {
            program: program.name().to_owned(),
            reason: format!(
                "a text holds a NUL character at byte {}",
                error.nul_position()
            ),
        })
    })
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|text| text.as_ptr()).collect()
}

fn count(pointers: &[*const c_char]) -> c_int {
    // Programs have a handful of headers and options.
    pointers.len() as c_int
}
