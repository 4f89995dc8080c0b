//! Programs loaded into a context, each once.
//!
//! Every key has a slot of its own, which is locked while its program is loaded. The table of slots
//! is locked only to find one. So threads that ask for the same program wait for one compilation,
//! and threads that ask for different ones compile at the same time. A failure leaves the slot
//! empty: the next call tries again.
//!
//! Code from the cache may have been made by a newer compiler than the driver understands. If the
//! driver refuses it, the program is compiled here and the entry replaced; the first error is
//! returned only if that is impossible.

use super::{
    store::{Code, CodeStore, Origin},
    text::{Key, Program},
};
use crate::handles::{Context, Function};
use crate::{
    driver,
    error::{Error, ErrorKind},
    version::Arch,
};
use cudarc::driver::{CudaModule, result::DriverError};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

/// A program in a context.
#[derive(Debug)]
pub struct Module {
    /// Name of the program, for messages.
    program: String,
    module: Arc<CudaModule>,
    /// Of the device.
    arch: Arch,
    /// Cache or compiler.
    origin: Origin,
}

impl Module {
    /// Architecture of the device that it is loaded on.
    pub(crate) fn arch(&self) -> Arch {
        self.arch
    }

    /// The kernel of that name.
    ///
    /// # Errors
    /// [`ErrorKind::NoKernel`], and [`ErrorKind::Driver`] for other failures.
    pub(crate) fn function(&self, name: &str) -> Result<Function, Error> {
        let missing = || {
            Error::from(ErrorKind::NoKernel {
                program: self.program.clone(),
                kernel: name.to_owned(),
            })
        };
        // No kernel's name holds a NUL, and the bindings would panic.
        if name.contains('\0') {
            return Err(missing());
        }
        self.module
            .load_function(name)
            .map(Function)
            .map_err(|error| match error {
                DriverError(cudarc::driver::sys::CUresult::CUDA_ERROR_NOT_FOUND) => missing(),
                error => {
                    Error::of_call(format!("loading kernel {name} of {}", self.program), error)
                }
            })
    }

    /// Name of the program.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Where its machine code came from.
    pub fn origin(&self) -> Origin {
        self.origin
    }
}

/// A module, or none yet while it is being loaded.
type Slot = Arc<Mutex<Option<Arc<Module>>>>;

/// The programs of one context.
#[derive(Debug)]
pub struct Modules {
    context: Context,
    /// That of the context's device.
    arch: Arch,
    store: CodeStore,
    /// One per program that was ever asked for; modules live as long as the context's backends.
    slots: Mutex<HashMap<Key, Slot>>,
}

impl Modules {
    /// None loaded yet; code comes from where the environment says.
    pub fn new(context: &Context) -> Result<Self, Error> {
        Self::with_store(context, CodeStore::from_env())
    }

    /// None loaded yet; code comes from `store`.
    ///
    /// # Errors
    /// [`ErrorKind::UnsafeCache`] if `store` has a cache that was named and is not trusted.
    pub fn with_store(context: &Context, store: CodeStore) -> Result<Self, Error> {
        store.trusted_cache()?;
        let (major, minor) = context
            .0
            .compute_capability()
            .map_err(|error| Error::of_call("cuDeviceGetAttribute", error))?;
        let number = u32::try_from(10 * major + minor).unwrap_or(0);
        Ok(Self {
            context: context.clone(),
            arch: Arch::new(number),
            store,
            slots: Mutex::default(),
        })
    }

    /// Architecture that programs are compiled for here.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// Where machine code comes from.
    pub fn store(&self) -> &CodeStore {
        &self.store
    }

    /// The program's module, loaded when it is first asked for. Threads that ask for the same
    /// program wait for one of them to load it; different programs load at the same time.
    ///
    /// # Errors The errors of [`CodeStore::code`], [`ErrorKind::Driver`] when the driver refuses
    /// the code, and [`ErrorKind::BadProgram`] when the compiler made no machine code.
    pub fn load(&self, program: &Program) -> Result<Arc<Module>, Error> {
        let slot = locked(&self.slots)
            .entry(program.key(self.arch))
            .or_default()
            .clone();
        let mut slot = locked(&slot);
        if let Some(module) = &*slot {
            return Ok(module.clone());
        }
        let start = Instant::now();
        let module = Arc::new(self.first_load(program)?);
        tracing::debug!(
            program = program.name(),
            arch = %self.arch,
            milliseconds = start.elapsed().as_secs_f64() * 1e3,
            origin = ?module.origin,
            "gpu.load"
        );
        *slot = Some(module.clone());
        Ok(module)
    }

    /// Loads a program that no slot holds, and compiles it anew if the driver refuses cached code.
    fn first_load(&self, program: &Program) -> Result<Module, Error> {
        let code = self.store.code(program, self.arch, Some(&self.context))?;
        let origin = code.origin;
        match self.module(program, code) {
            // OutputCalls by a compiler that this driver is too old for, perhaps; ours may suit it.
            Err(error) if origin == Origin::Cache => {
                tracing::warn!(program = program.name(), %error, "the driver refuses cached GPU code");
                let code = self.store.compile(program, self.arch, Some(&self.context));
                self.module(program, code.map_err(|_| error)?)
            }
            loaded => loaded,
        }
    }

    /// Hands machine code to the driver.
    fn module(&self, program: &Program, code: Code) -> Result<Module, Error> {
        let Code {
            bytes,
            origin,
            compiler,
        } = code;
        let name = program.name();
        let Some(loaded) = driver::load(&self.context.0, bytes) else {
            return Err(Error::from(ErrorKind::BadProgram {
                program: name.to_owned(),
                reason: format!("the output of NVRTC {compiler} is not machine code"),
            }));
        };
        let module = loaded.map_err(|error| {
            Error::of_call(
                format!("loading {name}, compiled by NVRTC {compiler}"),
                error,
            )
        })?;
        Ok(Module {
            program: program.name().to_owned(),
            module,
            arch: self.arch,
            origin,
        })
    }
}

/// A panic elsewhere leaves a whole value behind: a slot is filled at the end.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
