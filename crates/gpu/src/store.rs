//! Machine code of programs: from the cache where it is, else compiled and kept there.

use crate::{Arch, Cache, Compiler, Error, Program, Search, Version, cache::Entry, driver::Driver};
use cudarc::driver::CudaContext;
use std::sync::{Arc, Mutex, PoisonError};

/// Where machine code comes from.
///
/// Nothing is looked for before it is needed: with all code in the cache, neither the compiler nor
/// the linker has to be there.
#[derive(Debug)]
pub struct CodeStore {
    cache: Option<Cache>,
    search: Search,
    compiler: Mutex<Option<Arc<Compiler>>>,
}

/// Where a piece of machine code came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It lay in the cache.
    Cache,
    /// It was compiled.
    Compiled,
}

/// Machine code, ready to be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// The code.
    pub bytes: Vec<u8>,
    /// Where it came from.
    pub origin: Origin,
    /// The compiler that made it.
    pub compiler: Version,
}

impl CodeStore {
    /// The cache and the libraries that the environment names.
    pub fn from_env() -> Self {
        Self::new(Cache::from_env(), Search::from_env())
    }

    /// This cache, if any, and libraries from there.
    pub fn new(cache: Option<Cache>, search: Search) -> Self {
        Self {
            cache,
            search,
            compiler: Mutex::new(None),
        }
    }

    /// The cache.
    pub fn cache(&self) -> Option<&Cache> {
        self.cache.as_ref()
    }

    /// The compiler, found and opened when this is first called.
    pub fn compiler(&self) -> Result<Arc<Compiler>, Error> {
        let mut slot = self.compiler.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiler) = &*slot {
            return Ok(compiler.clone());
        }
        let cuda = Driver::open().ok().map(Driver::cuda);
        let compiler = Arc::new(Compiler::find(&self.search, cuda)?);
        *slot = Some(compiler.clone());
        Ok(compiler)
    }

    /// Machine code of `program` for `arch`. With a context the driver can link in place of
    /// nvJitLink.
    pub fn code(
        &self,
        program: &Program,
        arch: Arch,
        context: Option<&Arc<CudaContext>>,
    ) -> Result<Code, Error> {
        let key = program.key(arch);
        let cached = self
            .cache
            .as_ref()
            .and_then(|cache| cache.read(program.name(), arch, &key));
        match cached {
            Some(entry) => Ok(Code {
                bytes: entry.code,
                origin: Origin::Cache,
                compiler: entry.compiler,
            }),
            None => self.compile(program, arch, context),
        }
    }

    /// Compiles `program`, whatever the cache holds, and keeps the code there. A cache that cannot
    /// be written is no error, and neither is a compiler that only knows older architectures of
    /// the family of `arch`.
    pub fn compile(
        &self,
        program: &Program,
        arch: Arch,
        context: Option<&Arc<CudaContext>>,
    ) -> Result<Code, Error> {
        let compiler = self.compiler()?;
        let entry = Entry {
            code: compiler.build(program, compiler.target(arch), context)?,
            compiler: compiler.version(),
        };
        if let Some(cache) = &self.cache {
            let written = cache.write(program.name(), arch, &program.key(arch), &entry);
            if let Err(error) = written {
                let folder = cache.folder().display();
                tracing::warn!(%folder, %error, "GPU code is not kept: the cache cannot be written");
            }
        }
        Ok(Code {
            bytes: entry.code,
            origin: Origin::Compiled,
            compiler: entry.compiler,
        })
    }
}
