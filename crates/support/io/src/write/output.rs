//! Files that appear complete or not at all.
//!
//! Everything goes to a temporary file beside the target, which takes the target's name at the
//! end; see [`nearfield_files`]. **Invariant others rely on:** after a failure the target is as it
//! was before, and the temporary file is gone.

use std::{
    io::{self, BufWriter},
    path::Path,
};

use nearfield_files::NewFile;

use crate::error::{Error, Fault};

/// Where a writer writes to; it can seek.
pub(super) type Output = BufWriter<NewFile>;

/// Has `write` fill a file that then becomes `path`, replacing what was there.
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
