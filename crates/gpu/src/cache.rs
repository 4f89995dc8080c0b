//! Machine code on disk, so that a program is compiled once per machine and not once per run.
//!
//! One file per program and architecture, named by both and by the key of everything that went in.
//! It begins with a header; what does not match it, or has been cut or changed, counts as absent
//! and is written anew. A file appears under its name only when it is complete, so processes may
//! share a folder. A folder that cannot be written is read all the same.

use crate::{Arch, Version, program::Key};
use sha2::{Digest, Sha256};
use std::{
    env,
    ffi::OsString,
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

/// Begins every file.
const MAGIC: [u8; 8] = *b"nearfgpu";
/// Grows when the header changes.
const FORMAT: u32 = 1;
/// Magic, format, the compiler's version, key, bytes of code, and their checksum.
const HEADER: usize = 8 + 4 + 8 + 32 + 8 + 32;

/// A folder of machine code.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

/// Machine code from the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The code.
    pub code: Vec<u8>,
    /// The compiler that made it.
    pub compiler: Version,
}

impl Cache {
    /// The folder that the environment says: `NEARFIELD_CACHE_DIR`, else `nearfield/kernels` in the
    /// user's cache (`XDG_CACHE_HOME` or `~/.cache`; on Windows `LOCALAPPDATA`). None if
    /// `NEARFIELD_CACHE_DIR` is set but empty, or the user has no home.
    pub fn from_env() -> Option<Self> {
        folder(|name| env::var_os(name), env::home_dir()).map(Self::at)
    }

    /// This folder, which is made when something is written.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the code of a program lies.
    pub fn path(&self, name: &str, arch: Arch, key: &Key) -> PathBuf {
        let plain = |symbol: char| match symbol {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' => symbol,
            _ => '_',
        };
        let name: String = name.chars().take(64).map(plain).collect();
        self.folder.join(format!("{name}.{arch}.{key}.bin"))
    }

    /// The code of a program, if it is there and whole.
    pub fn read(&self, name: &str, arch: Arch, key: &Key) -> Option<Entry> {
        let path = self.path(name, arch, key);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cached GPU code cannot be read");
                return None;
            }
        };
        let entry = decode(&bytes, key);
        if entry.is_none() {
            tracing::warn!(path = %path.display(), "cached GPU code is damaged or of another version");
        }
        entry
    }

    /// Keeps the code of a program. The file appears complete or not at all.
    pub fn write(&self, name: &str, arch: Arch, key: &Key, entry: &Entry) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(".new-");
        #[cfg(unix)]
        {
            // As any file: other users may read a folder that was prepared for them.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let mut file = builder.tempfile_in(&self.folder)?;
        file.write_all(&header(key, entry))?;
        file.write_all(&entry.code)?;
        file.persist(self.path(name, arch, key))?;
        Ok(())
    }
}

/// Where the cache is, from variables of the environment.
fn folder(variable: impl Fn(&str) -> Option<OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
    if let Some(folder) = variable("NEARFIELD_CACHE_DIR") {
        return (!folder.is_empty()).then(|| folder.into());
    }
    let base = match cfg!(windows) {
        true => variable("LOCALAPPDATA").map(PathBuf::from),
        // A relative path there is to be ignored, says the XDG specification.
        false => variable("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| Some(home?.join(".cache"))),
    };
    Some(base?.join("nearfield").join("kernels"))
}

fn header(key: &Key, entry: &Entry) -> Vec<u8> {
    let mut header = Vec::with_capacity(HEADER);
    header.extend(MAGIC);
    header.extend(FORMAT.to_le_bytes());
    header.extend(entry.compiler.major.to_le_bytes());
    header.extend(entry.compiler.minor.to_le_bytes());
    header.extend(key.0);
    header.extend((entry.code.len() as u64).to_le_bytes());
    header.extend(Sha256::digest(&entry.code));
    header
}

/// The entry in a file's bytes, if it is what the header says and the header is ours.
fn decode(bytes: &[u8], key: &Key) -> Option<Entry> {
    let (head, code) = bytes.split_at_checked(HEADER)?;
    let number = |at: usize| Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?));
    let entry = Entry {
        code: code.to_vec(),
        compiler: Version::new(number(12)?, number(16)?),
    };
    (head == header(key, &entry)).then_some(entry)
}
