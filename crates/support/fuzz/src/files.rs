//! Readers that take a path: their bytes are put into a file, in memory where the system has such a
//! folder.

use std::{cell::OnceCell, fs, path::Path};

thread_local! {
    static FOLDER: OnceCell<tempfile::TempDir> = const { OnceCell::new() };
}

/// Calls `read` with the path of a file that holds `bytes`.
pub(crate) fn with_file<T>(name: &str, bytes: &[u8], read: impl FnOnce(&Path) -> T) -> T {
    FOLDER.with(|folder| {
        let folder = folder.get_or_init(|| {
            let memory = Path::new("/dev/shm");
            let made = tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir());
            made.unwrap_or_else(|error| panic!("no folder for files: {error}"))
        });
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        read(&path)
    })
}
