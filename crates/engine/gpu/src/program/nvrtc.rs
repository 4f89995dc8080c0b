//! NVRTC, NVIDIA's run-time compiler, through the functions of its C interface that we call.
//!
//! Loaded by full path, which the bindings of cudarc cannot: they take what the system's loader
//! finds, and Python's wheels are not among it.
//!
//! A compilation owns one `nvrtcProgram` (`Unit`), which is destroyed on every path. The library
//! copies the strings it is given, so they live only for the call. Any status other than success is
//! an error: that of a text that does not compile carries the compiler's log, all others name the
//! call and its status.

use super::text::Program;
use crate::{
    error::{Error, ErrorKind},
    toolkit::{self as library, GetVersion, Handle, OutputCalls, version_told},
    version::{Arch, Version},
};
use std::{
    ffi::{CString, c_char, c_int},
    path::Path,
    ptr,
};

/// `nvrtcCreateProgram`: program, text, name, number of headers, their texts, their names.
type Create = unsafe extern "C" fn(
    *mut Handle,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
/// `nvrtcCompileProgram`: program, number of options, options.
type Compile = unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> c_int;
/// `nvrtcDestroyProgram`: sets the handle to null.
type Destroy = unsafe extern "C" fn(*mut Handle) -> c_int;
/// Fills an array of numbers, or tells one.
type GetNumbers = unsafe extern "C" fn(*mut c_int) -> c_int;

/// `NVRTC_ERROR_COMPILATION`, the one failure that the program's text is to blame for.
const COMPILATION: c_int = 6;

/// The compiler. Its functions may be called from any thread. They stay valid because libraries are
/// never closed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Nvrtc {
    version: Version,
    create: Create,
    compile: Compile,
    destroy: Destroy,
    /// Machine code.
    cubin: OutputCalls,
    /// Messages.
    log: OutputCalls,
    /// How many architectures there are.
    arch_count: GetNumbers,
    /// The architectures, ascending.
    archs: GetNumbers,
}

impl Nvrtc {
    /// Opens the library at `path`, and beside it the library of built-in functions.
    ///
    /// # Errors
    /// [`ErrorKind::BadLibrary`] if it cannot be loaded, lacks a function, or does not tell its
    /// version.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let library = library::open(path)?;
        // SAFETY: the types are those of nvrtc.h, unchanged since CUDA 11.2.
        let nvrtc = unsafe {
            let version: GetVersion = library::function(library, path, "nvrtcVersion")?;
            let version = version_told(version).map_err(|status| {
                Error::from(ErrorKind::BadLibrary {
                    path: path.to_owned(),
                    reason: format!("it does not tell its version (status {status})"),
                })
            })?;
            Self {
                version,
                create: library::function(library, path, "nvrtcCreateProgram")?,
                compile: library::function(library, path, "nvrtcCompileProgram")?,
                destroy: library::function(library, path, "nvrtcDestroyProgram")?,
                cubin: OutputCalls {
                    size: library::function(library, path, "nvrtcGetCUBINSize")?,
                    data: library::function(library, path, "nvrtcGetCUBIN")?,
                },
                log: OutputCalls {
                    size: library::function(library, path, "nvrtcGetProgramLogSize")?,
                    data: library::function(library, path, "nvrtcGetProgramLog")?,
                },
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
    ///
    /// # Errors
    /// [`ErrorKind::Compile`] or [`ErrorKind::Translation`] with the log, and
    /// [`ErrorKind::BadProgram`] for texts with NUL characters, options that the compiler does not
    /// know, and failures of the library.
    pub(crate) fn compile(&self, program: &Program, arch: Arch) -> Result<Vec<u8>, Error> {
        let unit = Unit::new(self, program)?;
        let options = strings(program, program.options(arch))?;
        let pointers = pointers(&options);
        // SAFETY: the unit lives, and the options are NUL-terminated and outlive the call.
        let status = unsafe { (self.compile)(unit.handle, count(&pointers), pointers.as_ptr()) };
        if status == 0 {
            // SAFETY: functions of NVRTC, and the unit lives.
            return unsafe { self.cubin.read(unit.handle) }
                .map_err(|status| failed(program, "reading its machine code", status, ""));
        }
        // SAFETY: functions of NVRTC, and the unit lives.
        let log = unsafe { self.log.messages(unit.handle) };
        if status != COMPILATION {
            // The log may help here too: an option that is not known is named in it.
            return Err(failed(program, "nvrtcCompileProgram", status, &log));
        }
        Err(program.refused(arch, log))
    }
}

/// A program in the compiler's hands.
struct Unit<'a> {
    nvrtc: &'a Nvrtc,
    /// Lives until the unit is dropped.
    handle: Handle,
}

impl<'a> Unit<'a> {
    /// Hands over the text and its headers.
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

/// Strings for C, in their order.
///
/// # Errors
/// [`ErrorKind::BadProgram`] with the place of a NUL character.
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

/// Pointers to the strings, valid as long as these are.
fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|text| text.as_ptr()).collect()
}

/// How many there are, as C counts.
fn count(pointers: &[*const c_char]) -> c_int {
    // Programs have a handful of headers and options.
    pointers.len() as c_int
}
