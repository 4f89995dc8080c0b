//! Whether machine code in a folder can only have been put there by this user.
//!
//! Code from the cache runs with the rights of the process that loads it, so a checksum is not
//! enough: a user who can write a file can write its checksum. A folder or a file is trusted if it
//! belongs to the user that the process runs as, or to root, and if neither its group nor others
//! may write to it. The superuser makes no exception for itself: a folder of another user is as
//! foreign to root as to anyone else. Symbolic links are followed and their destination is judged.
//!
//! A file is judged by its open descriptor, so replacing it or a folder above it between the check
//! and the read gains nothing: the bytes that are read are those of the file that was judged.
//!
//! Systems without owners and modes trust the folder as the system guards it.
//!
//! The rule is a function of three numbers (`judge`), so all of it is tested without being root.

use std::{
    fs::{File, Metadata},
    io,
    path::Path,
};

/// Whether code may be read from a folder and kept there. One that is absent may be made.
///
/// # Errors
/// The reason why the folder is not trusted.
pub(crate) fn check_folder(folder: &Path) -> Result<(), String> {
    match folder.metadata() {
        Ok(metadata) if metadata.is_dir() => rights(&metadata),
        // Reading and writing say what is wrong with it.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Opens a file for reading if it is a regular file that is trusted. Its kind is looked at twice:
/// by the path before, so that opening does not block, and by the descriptor after, so that a file
/// put in its place in between is noticed.
///
/// # Errors
/// The errors of opening it, and [`io::ErrorKind::PermissionDenied`] with the reason if it is not
/// trusted.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let refuse = |reason: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    // Before opening: a named pipe would wait for its writer.
    if !path.metadata()?.is_file() {
        return refuse("it is not a regular file".to_owned());
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return refuse("it is not a regular file".to_owned());
    }
    match rights(&metadata) {
        Ok(()) => Ok(file),
        Err(reason) => refuse(reason),
    }
}

/// Whether only this user, or root, can have written to it.
#[cfg(unix)]
fn rights(metadata: &Metadata) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;
    let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
    judge(owner, metadata.mode(), user)
}

#[cfg(not(unix))]
fn rights(_: &Metadata) -> Result<(), String> {
    Ok(())
}

/// The rule, on numbers alone: owner and mode of the file, and the user that the process runs as.
///
/// # Errors
/// The reason, with the numbers.
#[cfg(unix)]
fn judge(owner: u32, mode: u32, user: u32) -> Result<(), String> {
    if owner != user && owner != 0 {
        return Err(format!(
            "it belongs to the user {owner}, and this process runs as the user {user}"
        ));
    }
    let writers = match (mode & 0o020 != 0, mode & 0o002 != 0) {
        (false, false) => return Ok(()),
        (true, false) => "its group",
        (false, true) => "every user",
        (true, true) => "its group and every user",
    };
    let mode = mode & 0o7777;
    Err(format!("its mode is {mode:04o}, so {writers} may write"))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Root is an owner to be trusted, but as a user no exception; a sticky folder is no safe one.
    #[test]
    fn owner_and_mode_decide_and_the_reason_has_the_numbers() {
        for (owner, mode, user) in [
            (1000, 0o40700, 1000),
            (1000, 0o40755, 1000),
            (0, 0o40755, 1000),
            (0, 0o100600, 0),
        ] {
            assert_eq!(judge(owner, mode, user), Ok(()), "{owner} {mode:o} {user}");
        }
        for (owner, mode, user, said) in [
            (1001, 0o40700, 1000, "user 1001"),
            // Root is no exception.
            (1000, 0o40700, 0, "runs as the user 0"),
            (1000, 0o40770, 1000, "0770, so its group may"),
            (1000, 0o40702, 1000, "every user"),
            // A sticky folder keeps files from being removed, not from being made.
            (0, 0o41777, 1000, "1777, so its group and every user"),
        ] {
            let reason = judge(owner, mode, user).unwrap_err();
            assert!(reason.contains(said), "{reason}");
        }
    }
}
