//! Files that appear complete or not at all.
//!
//! Everything goes to a temporary file in the target's folder, which is renamed at the end; see
//! [`nearfield_files`]. **Invariant others rely on:** after a failure the target is unchanged, and
//! the temporary file is removed.

use std::{
    io::{self, BufWriter},
    path::Path,
};

use nearfield_files::NewFile;

use crate::error::{Error, Fault};

/// The output of a writer; it can seek.
pub(super) type Output = BufWriter<NewFile>;

/// Creates a file, lets `write` fill it, and renames it to `path`, replacing an existing file.
pub(super) fn write_file(
    path: &Path,
    write: impl FnOnce(&mut Output) -> io::Result<()>,
) -> Result<(), Error> {
    nearfield_files::write_with(path, write)
        .map_err(|error| Fault::io("cannot write", &error).in_file(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use std::{fs, io::Write};

    #[test]
    fn a_failed_write_leaves_the_old_file() {
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
            error.to_string().ends_with("this is a folder; name a file"),
            "{error}"
        );
    }
}
