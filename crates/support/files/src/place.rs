//! Identifies the file that a path names, whatever its spelling.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Links that are followed before a path is taken to lead nowhere.
const MAX_LINKS: usize = 40;

/// The path with links followed: where a new file of this name would appear. The file itself need
/// not exist, and neither need its folder.
pub(crate) fn resolve(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            // Relative links begin at the folder of the link; absolute ones replace the path.
            Ok(link) => path = folder(&path).join(link),
            Err(_) => break,
        }
    }
    path
}

/// Whether a file of this path is standard output. A device that swallows everything is not: there
/// is nothing to be mixed.
#[cfg(unix)]
pub(crate) fn is_standard_output(path: &Path) -> bool {
    use std::{
        io::IsTerminal,
        os::{fd::AsFd, unix::fs::FileTypeExt},
    };
    let out = io::stdout();
    // A closed stream is not a file.
    let Ok(file) = out.as_fd().try_clone_to_owned().map(fs::File::from) else {
        return false;
    };
    let Ok(metadata) = file.metadata() else {
        return false;
    };
    let swallows = metadata.file_type().is_char_device() && !out.is_terminal();
    !swallows && Node::of(path).is_ok_and(|node| node == Node::of_metadata(&metadata))
}

/// Whether a file of this path is standard output.
#[cfg(not(unix))]
pub(crate) fn is_standard_output(_: &Path) -> bool {
    false
}

/// The folder that contains a file of this path.
pub(crate) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Identifies a file among all files: two spellings of one file have the same identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Identity {
    /// A file that exists.
    There(Node),
    /// A file that does not: its folder, and its name there.
    New(Node, PathBuf),
}

/// The system's identifier of a file or folder.
#[cfg(unix)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Node {
    device: u64,
    number: u64,
}

/// The system's identifier of a file or folder.
#[cfg(not(unix))]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node(PathBuf);

#[cfg(unix)]
impl Node {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        Ok(Self::of_metadata(&fs::metadata(path)?))
    }

    pub(crate) fn of_metadata(metadata: &fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self {
            device: metadata.dev(),
            number: metadata.ino(),
        }
    }
}

#[cfg(not(unix))]
impl Node {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        fs::canonicalize(path).map(Self)
    }
}

impl Identity {
    /// The identity of a regular file, or of one that could be made; `None` for folders, devices
    /// and pipes, and for files whose folder does not exist.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        if let Ok(metadata) = fs::metadata(path) {
            return metadata
                .is_file()
                .then(|| Node::of(path).ok().map(Self::There))?;
        }
        let path = resolve(path);
        let name = path.file_name()?;
        Some(Self::New(Node::of(folder(&path)).ok()?, name.into()))
    }
}
