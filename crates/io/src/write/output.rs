//! Files that appear complete or not at all.
//!
//! Everything goes to a temporary file beside the target, which takes the target's name at the
//! end. **Invariant others rely on:** after a failure the target is as it was before, and the
//! temporary file is gone.

use std::{
    ffi::OsString,
    fs,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use crate::error::{Error, ErrorKind, Fault, Place};

/// Where a writer writes to; it can seek.
pub(super) type Output = BufWriter<NamedTempFile>;

/// Has `write` fill a file that then becomes `path`, replacing what was there.
pub(super) fn write_file(
    path: &Path,
    write: impl FnOnce(&mut Output) -> io::Result<()>,
) -> Result<(), Error> {
    let target = target(path).map_err(|fault| fault.in_file(path))?;
    let written = || {
        let mut output = BufWriter::new(temporary_beside(&target)?);
        write(&mut output)?;
        output.flush()?;
        output.into_inner()?.persist(&target)?;
        io::Result::Ok(())
    };
    written().map_err(|error| Fault::io("cannot write", &error).in_file(path))
}

/// The file to replace: links are followed, and only regular files are replaced, since renaming
/// over a device would destroy it.
fn target(path: &Path) -> Result<PathBuf, Fault> {
    match fs::metadata(path) {
        Err(_) => Ok(path.to_owned()),
        Ok(metadata) if metadata.is_file() => {
            fs::canonicalize(path).map_err(|error| Fault::io("cannot write", &error))
        }
        Ok(_) => {
            let kind = ErrorKind::Io(io::ErrorKind::InvalidInput);
            let message = "cannot write: this is not a regular file; name a file";
            Err(Fault::new(kind, Place::Whole, message))
        }
    }
}

fn temporary_beside(target: &Path) -> io::Result<NamedTempFile> {
    let mut prefix = OsString::from(".");
    prefix.push(target.file_name().unwrap_or_default());
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".tmp");
    // Temporary files are private by default; this one is to be as readable as any other.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    match target.parent() {
        Some(directory) if directory != Path::new("") => builder.tempfile_in(directory),
        _ => builder.tempfile_in("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cloud.npy");
        fs::write(&path, "old").unwrap();
        let error = write_file(&path, |output| {
            output.write_all(&[0; 100_000])?;
            Err(io::ErrorKind::StorageFull.into())
        })
        .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io(io::ErrorKind::StorageFull));
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(directory.path()), ["cloud.npy"]);
    }

    #[test]
    fn a_missing_directory_is_named() {
        let error = write_file(Path::new("no/such/place/cloud.npy"), |_| Ok(())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io(io::ErrorKind::NotFound));
        assert!(
            error
                .to_string()
                .starts_with("no/such/place/cloud.npy: cannot write: ")
        );
    }

    #[test]
    fn a_directory_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let error = write_file(directory.path(), |_| Ok(())).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("this is not a regular file; name a file")
        );
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_files_are_readable_by_others() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let directory = tempfile::tempdir().unwrap();
        let (link, path) = (directory.path().join("link"), directory.path().join("file"));
        fs::write(&path, "old").unwrap();
        symlink(&path, &link).unwrap();
        write_file(&link, |output| output.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        let plain = directory.path().join("plain");
        fs::write(&plain, "").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&plain));
    }
}
