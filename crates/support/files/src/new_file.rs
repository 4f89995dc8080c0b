//! Files that appear under their name when they are complete.

use crate::place::{folder, resolve};
use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;

/// Longest name of a file that its temporary name contains, bytes; systems allow 255 in all.
const MAX_NAME: usize = 200;
/// Letters and digits at random in a temporary name.
pub(crate) const RANDOM: usize = 6;
/// The end of a temporary name.
pub(crate) const SUFFIX: &str = ".tmp";

/// A file that is being written. It takes the place of its path at [`finish`](Self::finish), or
/// earlier at [`settle`](Self::settle); dropped before, it is removed, and what was there before
/// stays.
#[derive(Debug)]
pub struct NewFile {
    target: PathBuf,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Under a temporary name.
    Beside(NamedTempFile),
    /// In its place: settled, appended to, or no regular file.
    InPlace(File),
    /// For a device or pipe, which cannot seek.
    Spooled { spool: File, to: File },
    /// Could not take its place.
    Failed,
}

impl NewFile {
    /// Begins a file.
    ///
    /// Links are followed: the file they lead to is replaced. A file that may not be written is
    /// refused, as it would be if it were opened. A new file has the permissions of the old one.
    ///
    /// # Errors
    /// The system's error; [`io::ErrorKind::IsADirectory`] for a folder.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        if let Some(standard) = standard_stream(path)? {
            return Ok(Self::in_place(path, standard));
        }
        let old = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                let message = "this is a folder; name a file";
                return Err(io::Error::new(io::ErrorKind::IsADirectory, message));
            }
            Ok(metadata) if !metadata.is_file() => {
                return Ok(Self::in_place(
                    path,
                    OpenOptions::new().write(true).open(path)?,
                ));
            }
            Ok(metadata) => {
                // Renaming needs no right to write the file, so that is asked for here.
                drop(OpenOptions::new().write(true).open(path)?);
                Some(metadata)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let target = resolve(path);
        let file = temporary_beside(&target)?;
        if let Some(old) = old {
            file.as_file().set_permissions(old.permissions())?;
        }
        Ok(Self {
            target,
            state: State::Beside(file),
        })
    }

    /// As [`create`](Self::create), for formats that are not written from front to back.
    /// Output for a device or pipe is collected in a temporary file first.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_seekable(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut file = Self::create(path)?;
        file.state = match file.state {
            State::InPlace(to) => State::Spooled {
                spool: tempfile::tempfile()?,
                to,
            },
            state => state,
        };
        Ok(file)
    }

    /// Resumes a file after its first `len` bytes, and truncates the rest. Nothing is renamed.
    ///
    /// # Errors
    /// The system's error.
    pub fn cut(path: impl AsRef<Path>, len: u64) -> io::Result<Self> {
        let path = path.as_ref();
        let mut file = OpenOptions::new().write(true).open(path)?;
        file.set_len(len)?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self::in_place(path, file))
    }

    fn in_place(path: &Path, file: File) -> Self {
        Self {
            target: path.to_owned(),
            state: State::InPlace(file),
        }
    }

    /// Replaces the file at the path now, with the contents so far, and continues there: for files
    /// that grow for hours and are read meanwhile. Call it when the first complete part is written.
    ///
    /// # Errors
    /// The system's error; the old file then still exists.
    pub fn settle(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.state, State::Failed) {
            State::Beside(file) => {
                let file = file.persist(&self.target).map_err(|error| error.error)?;
                // It is no longer a leftover, whatever happens to this process.
                let _ = file.unlock();
                self.state = State::InPlace(file);
                Ok(())
            }
            State::Failed => Err(io::Error::other("the file could not take its place before")),
            state => {
                self.state = state;
                Ok(())
            }
        }
    }

    /// Takes the place of the path.
    ///
    /// # Errors
    /// The system's error; the old file then still exists.
    pub fn finish(mut self) -> io::Result<()> {
        self.settle()?;
        if let State::Spooled { spool, to } = &mut self.state {
            spool.seek(SeekFrom::Start(0))?;
            io::copy(spool, to)?;
        }
        Ok(())
    }

    /// Flushes everything to the disk, if the file is on one.
    ///
    /// # Errors
    /// The system's error.
    pub fn sync(&self) -> io::Result<()> {
        match &self.state {
            State::Beside(file) => file.as_file().sync_all(),
            State::InPlace(file) if file.metadata()?.is_file() => file.sync_all(),
            _ => Ok(()),
        }
    }

    fn file(&mut self) -> io::Result<&mut File> {
        match &mut self.state {
            State::Beside(file) => Ok(file.as_file_mut()),
            State::InPlace(file) | State::Spooled { spool: file, .. } => Ok(file),
            State::Failed => Err(io::Error::other("the file could not take its place")),
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file()?.flush()
    }
}

impl Seek for NewFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file()?.seek(to)
    }
}

/// Writes a file with this content.
///
/// # Errors
/// The system's error; the old file then still exists.
pub fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> io::Result<()> {
    let mut file = NewFile::create(path)?;
    file.write_all(content.as_ref())?;
    file.finish()
}

/// Has `fill` write a file, which may seek.
///
/// # Errors
/// The error of `fill` or of the system; the old file then still exists.
pub fn write_with(
    path: impl AsRef<Path>,
    fill: impl FnOnce(&mut BufWriter<NewFile>) -> io::Result<()>,
) -> io::Result<()> {
    let mut to = BufWriter::new(NewFile::create_seekable(path)?);
    fill(&mut to)?;
    let file = to.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.finish()
}

/// Standard output or standard error, if the path leads to one of them: a file that the shell has
/// opened for it is written where it stands, not replaced.
#[cfg(unix)]
fn standard_stream(path: &Path) -> io::Result<Option<File>> {
    use crate::place::Node;
    use std::os::fd::AsFd;
    let Ok(node) = Node::of(path) else {
        return Ok(None);
    };
    let (out, error) = (io::stdout(), io::stderr());
    for stream in [out.as_fd(), error.as_fd()] {
        // Either may be closed, which is not a reason to refuse the path.
        let Ok(file) = stream.try_clone_to_owned().map(File::from) else {
            continue;
        };
        if file
            .metadata()
            .is_ok_and(|metadata| Node::of_metadata(&metadata) == node)
        {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

#[cfg(not(unix))]
fn standard_stream(_: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

fn temporary_beside(target: &Path) -> io::Result<NamedTempFile> {
    let mut prefix = OsString::from(".");
    match target.file_name() {
        Some(name) if name.len() <= MAX_NAME => prefix.push(name),
        _ => prefix.push("nearfield"),
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(SUFFIX).rand_bytes(RANDOM);
    // Temporary files are private by default; this one gets the usual permissions.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let file = builder.tempfile_in(folder(target))?;
    // The lock marks a file that a process is writing. Without locks, nothing is removed.
    let _ = file.as_file().try_lock();
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cloud.npy");
        fs::write(&path, "old").unwrap();
        let error = write_with(&path, |output| {
            output.write_all(&[0; 100_000])?;
            Err(io::ErrorKind::StorageFull.into())
        })
        .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(directory.path()), ["cloud.npy"]);
    }

    #[test]
    fn a_file_that_grows_takes_its_place_when_told_to() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("frames");
        fs::write(&path, "old").unwrap();
        let mut file = NewFile::create(&path).unwrap();
        file.write_all(b"one").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        file.settle().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        file.write_all(b", two").unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one, two");
        let mut file = NewFile::cut(&path, 3).unwrap();
        file.write_all(b", three").unwrap();
        file.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one, three");
        assert_eq!(names(directory.path()), ["frames"]);
    }

    #[test]
    fn folders_and_missing_folders_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let kind = |path: &Path| write(path, "").unwrap_err().kind();
        assert_eq!(kind(directory.path()), io::ErrorKind::IsADirectory);
        let nowhere = directory.path().join("no/such/place/cloud.npy");
        assert_eq!(kind(&nowhere), io::ErrorKind::NotFound);
        let long = directory.path().join("n".repeat(255));
        write(&long, "long").unwrap();
        assert_eq!(fs::read_to_string(&long).unwrap(), "long");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        fs::write(at("file"), "old").unwrap();
        fs::set_permissions(at("file"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink("file", at("link")).unwrap();
        write(at("link"), "new").unwrap();
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(at("file")).unwrap(), "new");
        assert_eq!(mode(&at("file")), 0o640);
        // A link that leads to nothing yet.
        symlink("later", at("dangling")).unwrap();
        write(at("dangling"), "made").unwrap();
        assert_eq!(fs::read_to_string(at("later")).unwrap(), "made");
        // A new file is as readable as any other.
        fs::write(at("plain"), "").unwrap();
        assert_eq!(mode(&at("later")), mode(&at("plain")));
    }

    #[cfg(unix)]
    #[test]
    fn devices_and_pipes_are_written_directly() {
        use std::{io::Read, os::unix::fs::FileTypeExt, process::Command, thread};
        write("/dev/null", "gone").unwrap();
        write_with("/dev/null", |to| {
            to.write_all(b"gone")?;
            to.seek(SeekFrom::Start(1)).map(drop)
        })
        .unwrap();
        let kind = fs::metadata("/dev/null").unwrap().file_type();
        assert!(kind.is_char_device());
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let reader = pipe.clone();
        let reader = thread::spawn(move || {
            let mut text = String::new();
            File::open(reader)
                .unwrap()
                .read_to_string(&mut text)
                .unwrap();
            text
        });
        write_with(&pipe, |to| {
            to.write_all(b"0bcd")?;
            to.seek(SeekFrom::Start(0))?;
            to.write_all(b"a")
        })
        .unwrap();
        assert_eq!(reader.join().unwrap(), "abcd");
        assert_eq!(names(directory.path()), ["pipe"]);
    }
}
