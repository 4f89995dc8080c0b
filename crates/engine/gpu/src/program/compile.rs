//! From a program's text to machine code: compiled by NVRTC, and linked with the device runtime
//! where the program's kernels launch kernels.
//!
//! Code is made for one architecture and not as PTX, because the driver would compile PTX once
//! more, in every process. Only relocatable code is linked: `libcudadevrt.a` has the functions by
//! which kernels launch kernels. nvJitLink is asked first, since it needs neither a driver nor a
//! device; if it is missing or fails, the driver links in a context, and if that fails too, the
//! error is nvJitLink's.
//!
//! Both stages are reported to `tracing`, as `gpu.compile` and `gpu.link` with their milliseconds.

use super::{nvjitlink::NvJitLink, nvrtc::Nvrtc, text::Program};
use crate::handles::Context;
use crate::{
    driver,
    error::{Error, ErrorKind},
    toolkit::{Component, Libraries, LibraryFile, Search},
    version::{Arch, Version},
};
use std::{path::Path, time::Instant};

/// The compiler and what it needs besides.
///
/// ```no_run
/// use nearfield_gpu::{Arch, Compiler, Error, Program, Search};
///
/// /// Checks that a text compiles, on a machine that needs no GPU.
/// fn check(text: &str) -> Result<(), Error> {
///     let compiler = Compiler::find(&Search::from_env(), None)?;
///     let program = Program::new("mine", text);
///     for arch in Arch::CHECKED {
///         compiler.compile(&program, arch)?;
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Compiler {
    nvrtc: Nvrtc,
    /// Linker and device runtime that fit the compiler, as far as they were found.
    libraries: Libraries,
    /// Version that the driver supports, to name remedies that fit.
    cuda: Option<Version>,
    /// Where libraries were looked for, in words, for messages.
    searched: String,
}

/// The linker.
#[derive(Debug, Clone)]
pub enum Linker {
    /// NVIDIA's library, which needs neither a driver nor a device.
    NvJitLink(LibraryFile),
    /// The driver, in this context.
    Driver(Context),
}

impl Linker {
    /// Name in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NvJitLink(_) => "nvJitLink",
            Self::Driver(_) => "driver",
        }
    }
}

impl Compiler {
    /// Finds and opens the compiler, for a driver that supports `cuda` if there is one. The linker
    /// is opened when something is linked.
    ///
    /// # Errors
    /// [`ErrorKind::NoLibrary`] with the folders searched and how to get the library, and
    /// [`ErrorKind::BadLibrary`] if it cannot be opened.
    pub fn find(search: &Search, cuda: Option<Version>) -> Result<Self, Error> {
        let libraries = search.libraries(cuda);
        let searched = search.description().to_owned();
        let Some(found) = &libraries.nvrtc else {
            return Err(Component::Nvrtc.missing(&searched, cuda));
        };
        let nvrtc = Nvrtc::open(&found.path)?;
        tracing::debug!(path = %found.path.display(), version = %nvrtc.version(), "gpu.compiler");
        Ok(Self {
            nvrtc,
            libraries,
            cuda,
            searched,
        })
    }

    /// The compiler's version.
    pub fn version(&self) -> Version {
        self.nvrtc.version()
    }

    /// Architectures that it can compile for, ascending.
    pub fn archs(&self) -> Vec<Arch> {
        self.nvrtc.archs()
    }

    /// Architecture to compile for so that the code runs on `arch`: `arch` itself if the compiler
    /// knows it, else the nearest older of the same major number, which `arch` runs too.
    pub fn target(&self, arch: Arch) -> Arch {
        let family = |known: &Arch| known.number() / 10 == arch.number() / 10 && *known <= arch;
        self.archs()
            .into_iter()
            .filter(family)
            .max()
            .unwrap_or(arch)
    }

    /// The libraries that were found.
    pub fn libraries(&self) -> &Libraries {
        &self.libraries
    }

    /// Compiles and, where the program's kernels launch kernels, links: by nvJitLink, or, where
    /// that is missing or fails, by the driver, if there is a context.
    ///
    /// # Errors
    /// The errors of [`compile`](Self::compile) and [`link`](Self::link).
    pub fn build(
        &self,
        program: &Program,
        arch: Arch,
        context: Option<&Context>,
    ) -> Result<Vec<u8>, Error> {
        let object = self.compile(program, arch)?;
        if !program.launches_children() {
            return Ok(object);
        }
        let by_driver = context.cloned().map(Linker::Driver);
        let Some(found) = self.libraries.nvjitlink.clone() else {
            let linker = by_driver.ok_or_else(|| self.missing(Component::NvJitLink))?;
            return self.link(program, arch, &object, &linker);
        };
        let linked = self.link(program, arch, &object, &Linker::NvJitLink(found));
        match (linked, by_driver) {
            (Err(error), Some(linker)) if self.libraries.device_runtime.is_some() => {
                tracing::warn!(%error, "linking by the driver instead");
                self.link(program, arch, &object, &linker)
                    .map_err(|_| error)
            }
            (linked, _) => linked,
        }
    }

    /// Compiles. The machine code of a program whose kernels launch kernels has still to be linked.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownArch`] with the architectures that the compiler knows,
    /// [`ErrorKind::Compile`] or [`ErrorKind::Translation`] with its messages, and
    /// [`ErrorKind::BadProgram`] for failures that are not the text's.
    pub fn compile(&self, program: &Program, arch: Arch) -> Result<Vec<u8>, Error> {
        let known = self.archs();
        if !known.is_empty() && !known.contains(&arch) {
            return Err(Error::from(ErrorKind::UnknownArch {
                arch,
                nvrtc: self.version(),
                known,
            }));
        }
        let start = Instant::now();
        let code = self.nvrtc.compile(program, arch)?;
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        tracing::debug!(program = program.name(), %arch, milliseconds, bytes = code.len(), "gpu.compile");
        Ok(code)
    }

    /// Links with the device runtime.
    ///
    /// # Errors
    /// [`ErrorKind::NoLibrary`] if the device runtime was not found, and [`ErrorKind::Link`] with
    /// the linker's messages.
    pub fn link(
        &self,
        program: &Program,
        arch: Arch,
        object: &[u8],
        linker: &Linker,
    ) -> Result<Vec<u8>, Error> {
        let runtime = self.libraries.device_runtime.as_deref();
        let runtime: &Path = runtime.ok_or_else(|| self.missing(Component::DeviceRuntime))?;
        let start = Instant::now();
        let linked = match linker {
            Linker::NvJitLink(found) => NvJitLink::open(&found.path)?.link(arch, object, runtime),
            Linker::Driver(context) => driver::link(&context.0, object, runtime),
        };
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        tracing::debug!(program = program.name(), %arch, milliseconds, linker = linker.name(), "gpu.link");
        linked.map_err(|log| {
            Error::from(ErrorKind::Link {
                program: program.name().to_owned(),
                arch,
                linker: linker.name(),
                log,
            })
        })
    }

    /// The error that `part` was not found, with its remedy.
    fn missing(&self, part: Component) -> Error {
        part.missing(&self.searched, self.cuda)
    }
}
