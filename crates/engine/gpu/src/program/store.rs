//! Machine code of programs: from the cache where it is, else compiled and kept there.
//!
//! The compiler is found and opened when the first program is not in the cache, and kept. A program
//! is compiled for an older architecture of the same family if the compiler does not know the
//! device's own; the entry stands under the device's architecture all the same, so the next process
//! finds it.
//!
//! The cache is checked once per store. A folder that the user named and that is not safe is an
//! error: the user asked for it. The usual folder is done without, with one warning.

use super::{
    cache::{Cache, Entry},
    compile::Compiler,
    text::Program,
};
use crate::handles::Context;
use crate::{
    driver::Driver,
    error::{Error, ErrorKind, UnsafeFolder},
    toolkit::Search,
    version::{Arch, Version},
};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Where machine code comes from.
///
/// Nothing is looked for before it is needed: with all code in the cache, neither the compiler nor
/// the linker has to be there.
#[derive(Debug)]
pub struct CodeStore {
    cache: Option<Cache>,
    /// Where the compiler and the linker are looked for.
    search: Search,
    /// Opened when it is first needed; a failure is not kept, so an installation is noticed.
    compiler: Mutex<Option<Arc<Compiler>>>,
    /// Whether the cache may be used, looked up once.
    trusted: OnceLock<Result<(), UnsafeFolder>>,
}

/// Where a piece of machine code came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It lay in the cache.
    Cache,
    /// It was compiled.
    Compiled,
}

/// Machine code of a program for one architecture, ready to be loaded.
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
            trusted: OnceLock::new(),
        }
    }

    /// The cache.
    pub fn cache(&self) -> Option<&Cache> {
        self.cache.as_ref()
    }

    /// Why the cache is not used, if it is not: see [`Cache::check`]. Looked up once and logged.
    pub fn refused(&self) -> Option<&UnsafeFolder> {
        let checked = self.trusted.get_or_init(|| {
            let checked = self.cache.as_ref().map_or(Ok(()), Cache::check);
            if let Err(unsafe_folder) = &checked {
                tracing::warn!("the cache of GPU code is not used: {unsafe_folder}");
            }
            checked
        });
        checked.as_ref().err()
    }

    /// The cache if it may be used: without one, every program is compiled.
    ///
    /// # Errors
    /// [`ErrorKind::UnsafeCache`] if the folder was named by `NEARFIELD_CACHE_DIR` or by the caller
    /// and is not trusted. The usual folder is then done without.
    pub fn trusted_cache(&self) -> Result<Option<&Cache>, Error> {
        match (self.refused(), &self.cache) {
            (None, cache) => Ok(cache.as_ref()),
            (Some(refused), Some(cache)) if cache.is_named() => {
                Err(Error::from(ErrorKind::UnsafeCache(refused.clone())))
            }
            (Some(_), _) => Ok(None),
        }
    }

    /// The compiler, found and opened when this is first called.
    ///
    /// # Errors
    /// The errors of [`Compiler::find`].
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
    ///
    /// # Errors The errors of [`trusted_cache`](Self::trusted_cache), [`Compiler::find`] and
    /// [`Compiler::build`].
    pub fn code(
        &self,
        program: &Program,
        arch: Arch,
        context: Option<&Context>,
    ) -> Result<Code, Error> {
        let key = program.key(arch);
        let cached = self
            .trusted_cache()?
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
    ///
    /// # Errors
    /// As [`code`](Self::code).
    pub fn compile(
        &self,
        program: &Program,
        arch: Arch,
        context: Option<&Context>,
    ) -> Result<Code, Error> {
        let cache = self.trusted_cache()?;
        let compiler = self.compiler()?;
        let entry = Entry {
            code: compiler.build(program, compiler.target(arch), context)?,
            compiler: compiler.version(),
        };
        if let Some(cache) = cache {
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt};

    /// A store over the usual folder, or over one that was named, which every user may write.
    fn store(cache: Cache) -> CodeStore {
        fs::create_dir_all(cache.folder()).unwrap();
        fs::set_permissions(cache.folder(), fs::Permissions::from_mode(0o777)).unwrap();
        let nowhere = Search::only(["/nowhere".into()]);
        CodeStore::new(Some(cache), nowhere)
    }

    /// The two folders differ only in who chose them.
    #[test]
    fn a_named_folder_that_is_unsafe_is_an_error_and_the_usual_one_is_done_without() {
        let place = tempfile::tempdir().unwrap();
        let (program, arch) = (Program::new("some", "text"), Arch::new(90));
        let named = store(Cache::at(place.path().join("named")));
        let error = named.code(&program, arch, None).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::UnsafeCache(_)), "{error}");
        assert!(error.to_string().contains("0777"), "{error}");
        assert!(named.refused().is_some());

        let usual = store(Cache::usual(place.path().join("usual")));
        assert!(matches!(usual.trusted_cache(), Ok(None)));
        // So it is compiled, which there is no compiler for here.
        let error = usual.code(&program, arch, None).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::NoLibrary { .. }),
            "{error}"
        );
        assert!(usual.refused().unwrap().to_string().contains("0777"));
    }
}
