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
/// Magic, format, the compiler's version, key, bytes of code, checksum of all this and the code.
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

/// What stands before the code, its checksum over itself and the code included.
fn header(key: &Key, entry: &Entry) -> Vec<u8> {
    let mut header = Vec::with_capacity(HEADER);
    header.extend(MAGIC);
    header.extend(FORMAT.to_le_bytes());
    header.extend(entry.compiler.major.to_le_bytes());
    header.extend(entry.compiler.minor.to_le_bytes());
    header.extend(key.0);
    header.extend((entry.code.len() as u64).to_le_bytes());
    let checksum = Sha256::new_with_prefix(&header).chain_update(&entry.code);
    header.extend(checksum.finalize());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Program;
    use std::thread;

    const ARCH: Arch = Arch::new(90);

    fn key() -> Key {
        Program::new("some", "text").key(ARCH)
    }

    fn entry(code: &[u8]) -> Entry {
        let compiler = Version::new(13, 0);
        let code = code.to_vec();
        Entry { code, compiler }
    }

    /// A cache with one entry, in a folder that is yet to be made.
    fn filled(place: &Path) -> (Cache, Entry) {
        let cache = Cache::at(place.join("some").join("folder"));
        let entry = entry(b"machine code");
        assert_eq!(cache.read("some", ARCH, &key()), None);
        cache.write("some", ARCH, &key(), &entry).unwrap();
        assert_eq!(cache.read("some", ARCH, &key()), Some(entry.clone()));
        (cache, entry)
    }

    #[test]
    fn damaged_entries_count_as_absent_and_are_replaced() {
        let place = tempfile::tempdir().unwrap();
        let (cache, entry) = filled(place.path());
        let path = cache.path("some", ARCH, &key());
        let whole = fs::read(&path).unwrap();
        assert_eq!(whole.len(), HEADER + entry.code.len());
        let absent = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            cache.read("some", ARCH, &key()).is_none()
        };
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            assert!(absent(&changed), "byte {at} changed");
            assert!(absent(&whole[..at]), "cut to {at} bytes");
        }
        assert!(absent(&[&whole[..], b"more"].concat()));
        cache.write("some", ARCH, &key(), &entry).unwrap();
        assert_eq!(cache.read("some", ARCH, &key()), Some(entry));
    }

    #[test]
    fn an_entry_of_another_format_or_program_is_not_taken() {
        let place = tempfile::tempdir().unwrap();
        let (cache, entry) = filled(place.path());
        let path = cache.path("some", ARCH, &key());
        let other = Program::new("some", "other text").key(ARCH);
        fs::copy(&path, cache.path("some", ARCH, &other)).unwrap();
        assert_eq!(cache.read("some", ARCH, &other), None);

        // What a later version would write, its checksum right.
        let mut bytes = header(&key(), &entry)[..HEADER - 32].to_vec();
        bytes[8..12].copy_from_slice(&(FORMAT + 1).to_le_bytes());
        let checksum = Sha256::new_with_prefix(&bytes).chain_update(&entry.code);
        bytes.extend(checksum.finalize());
        bytes.extend(&entry.code);
        fs::write(&path, bytes).unwrap();
        assert_eq!(cache.read("some", ARCH, &key()), None);
    }

    #[test]
    fn writers_at_the_same_time_leave_one_whole_entry_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let sizes = [1000, 300_000];
        let codes = sizes.map(|size| entry(&vec![size as u8; size]));
        thread::scope(|scope| {
            for code in &codes {
                let cache = Cache::at(place.path());
                scope.spawn(move || {
                    for _ in 0..100 {
                        cache.write("some", ARCH, &key(), code).unwrap();
                        let read = cache.read("some", ARCH, &key()).unwrap();
                        assert!(codes_hold(&read), "{} bytes", read.code.len());
                    }
                });
            }
        });
        let files = fs::read_dir(place.path()).unwrap().count();
        assert_eq!(files, 1);

        fn codes_hold(read: &Entry) -> bool {
            let size = read.code.len();
            read.code.iter().all(|&byte| byte == size as u8)
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error_of_writing_only() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, "in the way").unwrap();
        let cache = Cache::at(file.join("folder"));
        assert_eq!(cache.read("some", ARCH, &key()), None);
        assert!(cache.write("some", ARCH, &key(), &entry(b"code")).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn entries_can_be_read_by_others() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().unwrap();
        let (cache, _) = filled(place.path());
        let plain = place.path().join("plain");
        fs::write(&plain, "").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&cache.path("some", ARCH, &key())), mode(&plain));
    }

    #[test]
    fn a_programs_name_stays_inside_the_folder() {
        let cache = Cache::at("folder");
        let path = cache.path("../a/b c.cu", ARCH, &key());
        assert_eq!(path.parent(), Some(Path::new("folder")));
    }

    #[cfg(unix)]
    #[test]
    fn the_environment_says_where_the_folder_is() {
        let found = |set: &[(&str, &str)], home: Option<&str>| {
            let variable = |name: &str| {
                let entry = set.iter().find(|(known, _)| *known == name)?;
                Some(OsString::from(entry.1))
            };
            folder(variable, home.map(PathBuf::from))
        };
        let path = |text: &str| Some(PathBuf::from(text));
        let (own, xdg) = ("NEARFIELD_CACHE_DIR", "XDG_CACHE_HOME");
        assert_eq!(
            found(&[(own, "/own"), (xdg, "/x")], Some("/home/a")),
            path("/own")
        );
        assert_eq!(found(&[(own, ""), (xdg, "/x")], Some("/home/a")), None);
        assert_eq!(
            found(&[(xdg, "/x")], Some("/home/a")),
            path("/x/nearfield/kernels")
        );
        let usual = path("/home/a/.cache/nearfield/kernels");
        assert_eq!(found(&[(xdg, "relative")], Some("/home/a")), usual);
        assert_eq!(found(&[], Some("/home/a")), usual);
        assert_eq!(found(&[], None), None);
    }
}
