//! Machine code on disk, so that a program is compiled once per machine and not once per run.
//!
//! One file per program and architecture, named by both and by the key of everything that went in.
//! It begins with a header; what does not match it, or has been cut or changed, counts as absent
//! and is written anew. A file appears under its name only when it is complete, so processes may
//! share a folder. A folder that cannot be written is read all the same.
//!
//! # Format
//!
//! Numbers are little-endian.
//!
//! | bytes | content |
//! | --- | --- |
//! | 0 … 7 | `nearfgpu` |
//! | 8 … 11 | version of this format |
//! | 12 … 19 | version of the compiler: major, minor |
//! | 20 … 51 | key of the program |
//! | 52 … 59 | length of the code |
//! | 60 … 91 | SHA-256 over all bytes above and the code |
//! | from 92 | machine code, an ELF file |
//!
//! A reader rebuilds the header from the code that follows and compares all of it at once, so there
//! is one place that knows the format. The checksum guards against damage, not against malice.
//!
//! # Trust
//!
//! Code is taken only from folders and files that no other user but root can write to ([`trust`]
//! has the rule). Folders are made with the mode 0700 and files with 0600. A folder that breaks the
//! rule is not used and [`Cache::check`] has the reason; a file that breaks it counts as absent.
//!
//! [`trust`]: super::trust

use super::{text::Key, trust};
use crate::{
    error::UnsafeFolder,
    version::{Arch, Version},
};
use sha2::{Digest, Sha256};
use std::{
    env,
    ffi::OsString,
    fs, io,
    io::{Read, Write},
    path::{Path, PathBuf},
};

/// Begins every file, so that a file of another program is never taken for code.
const MAGIC: [u8; 8] = *b"nearfgpu";
/// Grows when the header changes; files of other formats count as absent.
const FORMAT: u32 = 1;
/// Magic, format, the compiler's version, key, bytes of code, checksum of all this and the code.
const HEADER: usize = 8 + 4 + 8 + 32 + 8 + 32;

/// A folder of machine code.
///
/// ```no_run
/// use nearfield_gpu::{Cache, CodeStore, Search};
///
/// // Code is kept in a folder of the project, and nowhere else.
/// let cache = Cache::at("target/gpu-code");
/// cache.check().expect("only this user can write there");
/// let store = CodeStore::new(Some(cache), Search::from_env());
/// ```
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
    /// The variable that names it, if one does.
    named_by: Option<&'static str>,
    /// True if it was asked for, by the variable or by the caller.
    is_named: bool,
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
        from_variables(|name| env::var_os(name), env::home_dir())
    }

    /// This folder, which is made when something is written.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            named_by: None,
            is_named: true,
        }
    }

    /// The folder that is used where none is named.
    pub(crate) fn usual(folder: PathBuf) -> Self {
        Self {
            folder,
            named_by: None,
            is_named: false,
        }
    }

    /// Whether code may be read from the folder and kept there; one that is absent may be made.
    ///
    /// # Errors
    /// [`UnsafeFolder`] if the folder belongs to a user who is neither this one nor root, or if its
    /// group or others may write to it.
    pub fn check(&self) -> Result<(), UnsafeFolder> {
        trust::check_folder(&self.folder).map_err(|reason| UnsafeFolder {
            named_by: self.named_by,
            folder: self.folder.clone(),
            reason,
        })
    }

    /// Returns true if the folder was asked for, by the environment or by the caller, and is not
    /// the usual one.
    pub(crate) fn is_named(&self) -> bool {
        self.is_named
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the code of a program lies: `NAME.sm_90.KEY.bin`, of the name the first 64 characters,
    /// those that a file name may not hold replaced. The key alone identifies the code; the rest is
    /// for people.
    pub fn path(&self, name: &str, arch: Arch, key: &Key) -> PathBuf {
        let plain = |symbol: char| match symbol {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' => symbol,
            _ => '_',
        };
        let name: String = name.chars().take(64).map(plain).collect();
        self.folder.join(format!("{name}.{arch}.{key}.bin"))
    }

    /// The code of a program, if it is there, trusted and whole. Other failures than absence are
    /// reported to `tracing` as warnings.
    pub fn read(&self, name: &str, arch: Arch, key: &Key) -> Option<Entry> {
        let path = self.path(name, arch, key);
        let bytes = match self.bytes(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cached GPU code is not read");
                return None;
            }
        };
        let entry = decode(&bytes, key);
        if entry.is_none() {
            tracing::warn!(path = %path.display(), "cached GPU code is damaged or of another version");
        }
        entry
    }

    /// The bytes of a file in the folder, if both are trusted.
    fn bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.check().map_err(denied)?;
        let mut bytes = Vec::new();
        trust::open(path)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Keeps the code of a program. The file appears complete or not at all; only this user can
    /// read or write it, and the folder if it is made here.
    ///
    /// # Errors
    /// The errors of the file system, and [`io::ErrorKind::PermissionDenied`] with [`UnsafeFolder`]
    /// inside if the folder is not trusted.
    pub fn write(&self, name: &str, arch: Arch, key: &Key, entry: &Entry) -> io::Result<()> {
        make(&self.folder)?;
        self.check().map_err(denied)?;
        // tempfile makes files with the mode 0600, which renaming keeps.
        let mut builder = tempfile::Builder::new();
        let mut file = builder.prefix(".new-").tempfile_in(&self.folder)?;
        file.write_all(&header(key, entry))?;
        file.write_all(&entry.code)?;
        file.persist(self.path(name, arch, key))?;
        Ok(())
    }
}

/// The reason why a folder is not trusted, as an error of the file system.
fn denied(error: UnsafeFolder) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, error)
}

/// Makes a folder and those above it, for this user alone.
fn make(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(folder)
}

/// The cache that variables of the environment name.
fn from_variables(
    variable: impl Fn(&str) -> Option<OsString>,
    home: Option<PathBuf>,
) -> Option<Cache> {
    const OWN: &str = "NEARFIELD_CACHE_DIR";
    if let Some(folder) = variable(OWN) {
        return (!folder.is_empty()).then(|| Cache {
            folder: folder.into(),
            named_by: Some(OWN),
            is_named: true,
        });
    }
    let base = if cfg!(windows) {
        variable("LOCALAPPDATA").map(PathBuf::from)
    } else {
        // A relative path there is to be ignored, says the XDG specification.
        variable("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| Some(home?.join(".cache")))
    };
    Some(Cache::usual(base?.join("nearfield").join("kernels")))
}

/// The bytes before the code, with a checksum over themselves and the code.
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

    /// Flips a bit of every byte of an entry, and cuts it at every length: no damage may reach the
    /// driver, and the next write mends the entry.
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

    /// A file under the right name is not enough: key and format stand in the header.
    #[test]
    fn an_entry_of_another_format_or_program_is_not_taken() {
        let place = tempfile::tempdir().unwrap();
        let (cache, entry) = filled(place.path());
        let path = cache.path("some", ARCH, &key());
        let other = Program::new("some", "other text").key(ARCH);
        fs::copy(&path, cache.path("some", ARCH, &other)).unwrap();
        assert_eq!(cache.read("some", ARCH, &other), None);

        // An entry as a later version would write it, with a correct checksum.
        let mut bytes = header(&key(), &entry)[..HEADER - 32].to_vec();
        bytes[8..12].copy_from_slice(&(FORMAT + 1).to_le_bytes());
        let checksum = Sha256::new_with_prefix(&bytes).chain_update(&entry.code);
        bytes.extend(checksum.finalize());
        bytes.extend(&entry.code);
        fs::write(&path, bytes).unwrap();
        assert_eq!(cache.read("some", ARCH, &key()), None);
    }

    /// Entries of very different lengths are written over each other while both writers read: a
    /// reader must see one of them whole, and no temporary file may stay.
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

    /// Reading from a cache that cannot exist is a miss, so a program still compiles.
    #[test]
    fn a_folder_that_cannot_be_made_is_an_error_of_writing_only() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, "in the way").unwrap();
        let cache = Cache::at(file.join("folder"));
        assert_eq!(cache.read("some", ARCH, &key()), None);
        assert!(cache.write("some", ARCH, &key(), &entry(b"code")).is_err());
    }

    /// Permission bits of a file or folder.
    #[cfg(unix)]
    fn mode(path: &Path) -> u32 {
        use std::os::unix::fs::PermissionsExt;
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[cfg(unix)]
    fn set_mode(path: &Path, mode: u32) {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Gives a file to another user; false, with a note, where only root can.
    #[cfg(unix)]
    fn give_away(path: &Path) -> bool {
        let given = std::os::unix::fs::chown(path, Some(54321), None).is_ok();
        if !given {
            eprintln!("not tested: files of other users, which only root can make");
        }
        given
    }

    /// Folders above the cache are made as private as the cache itself.
    #[cfg(unix)]
    #[test]
    fn entries_and_the_folders_made_for_them_are_private() {
        let place = tempfile::tempdir().unwrap();
        let (cache, _) = filled(place.path());
        assert_eq!(mode(&cache.path("some", ARCH, &key())), 0o600);
        assert_eq!(mode(cache.folder()), 0o700);
        assert_eq!(mode(cache.folder().parent().unwrap()), 0o700);
    }

    /// The rule of trust on a real file system, by the folder itself and through a symbolic link.
    #[cfg(unix)]
    #[test]
    fn a_folder_that_others_may_write_is_neither_read_nor_written() {
        let place = tempfile::tempdir().unwrap();
        let (cache, entry) = filled(place.path());
        let link = place.path().join("link");
        std::os::unix::fs::symlink(cache.folder(), &link).unwrap();
        let linked = Cache::at(&link);
        let read = |cache: &Cache| cache.read("some", ARCH, &key());
        let refused = |named: &Cache, said: &str| {
            let error = named.check().unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
            assert!(error.contains(&named.folder().display().to_string()));
            assert_eq!(read(named), None);
            let error = named.write("some", ARCH, &key(), &entry).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
            assert!(error.to_string().contains(said), "{error}");
        };
        for mode in [0o720, 0o702, 0o777, 0o1777] {
            set_mode(cache.folder(), mode);
            for named in [&cache, &linked] {
                refused(named, &format!("mode is {mode:04o}"));
            }
        }
        set_mode(cache.folder(), 0o755);
        assert_eq!(read(&cache), Some(entry.clone()));
        assert_eq!(read(&linked), Some(entry.clone()));
        if give_away(cache.folder()) {
            for named in [&cache, &linked] {
                refused(named, "belongs to the user 54321");
            }
        }
    }

    /// A file that others may have written counts as absent, though its checksum is right.
    #[cfg(unix)]
    #[test]
    fn entries_that_others_may_have_written_are_ignored_and_replaced() {
        let place = tempfile::tempdir().unwrap();
        let (cache, planted) = filled(place.path());
        let path = cache.path("some", ARCH, &key());
        let read = || cache.read("some", ARCH, &key());
        let ours = entry(b"ours");
        let replaced = || {
            assert_eq!(read(), None);
            cache.write("some", ARCH, &key(), &ours).unwrap();
            assert_eq!(read(), Some(ours.clone()));
            assert_eq!(mode(&path), 0o600);
        };
        for mode in [0o620, 0o602, 0o666] {
            cache.write("some", ARCH, &key(), &planted).unwrap();
            set_mode(&path, mode);
            replaced();
        }
        cache.write("some", ARCH, &key(), &planted).unwrap();
        if give_away(&path) {
            replaced();
        }
        // A link into a folder of others is judged by the file it leads to.
        let elsewhere = place.path().join("elsewhere");
        fs::rename(&path, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        assert!(read().is_some());
        set_mode(&elsewhere, 0o666);
        replaced();
        assert!(
            fs::read(&elsewhere).is_ok(),
            "the link was replaced, not its file"
        );
        // No file at all: a folder of that name cannot be replaced, and is no entry.
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(read(), None);
        assert!(cache.write("some", ARCH, &key(), &ours).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_named_pipe_is_not_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let (cache, _) = filled(place.path());
        let path = cache.path("some", ARCH, &key());
        fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        if !made.is_ok_and(|status| status.success()) {
            eprintln!("not tested: mkfifo is not here");
            return;
        }
        let (done, wait) = std::sync::mpsc::channel();
        thread::spawn(move || done.send(cache.read("some", ARCH, &key())));
        let read = wait.recv_timeout(std::time::Duration::from_secs(60));
        assert_eq!(read, Ok(None));
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
        let (own, xdg) = ("NEARFIELD_CACHE_DIR", "XDG_CACHE_HOME");
        let found = |set: &[(&str, &str)], home: Option<&str>| {
            let variable = |name: &str| {
                let entry = set.iter().find(|(known, _)| *known == name)?;
                Some(OsString::from(entry.1))
            };
            let cache = from_variables(variable, home.map(PathBuf::from))?;
            assert_eq!(cache.is_named(), set.iter().any(|(name, _)| *name == own));
            Some(cache.folder)
        };
        let path = |text: &str| Some(PathBuf::from(text));
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
