//! Errors about outputs that are refused, and runs that cannot resume.

use std::path::PathBuf;

/// An output would replace an input or another output, or files do not belong to a run;
/// [`kind`](Self::kind) tells the causes apart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] ErrorKind);

impl Error {
    /// The cause, with the paths.
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }
}

/// The causes for which an output is refused. Flags are those that [`Plan`](crate::Plan) was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An output is an input.
    #[error(
        "{flag} {} would replace the input {}: name another file",
        path.display(),
        input.display()
    )]
    Input {
        /// The flag of the output.
        flag: String,
        /// The output.
        path: PathBuf,
        /// The input, as it was named.
        input: PathBuf,
    },
    /// Two outputs are one file.
    #[error(
        "{} {} and {} {} are the same file: name two",
        flags[0],
        paths[0].display(),
        flags[1],
        paths[1].display()
    )]
    Twice {
        /// The flags, in the order in which they were given.
        flags: [String; 2],
        /// The outputs, in the same order.
        paths: [PathBuf; 2],
    },
    /// An output is a file that is written into a folder too.
    #[error(
        "{flag} {} is a file that {folder_flag} {} writes too: name another one",
        path.display(),
        folder.display()
    )]
    InFolder {
        /// The flag of the output.
        flag: String,
        /// The output.
        path: PathBuf,
        /// The flag of the folder.
        folder_flag: String,
        /// The folder.
        folder: PathBuf,
    },
    /// A file that is written into a folder is an input.
    #[error(
        "{flag} {} would replace {}, which is the input {}: name another folder",
        folder.display(),
        path.display(),
        input.display()
    )]
    InputInFolder {
        /// The flag of the folder.
        flag: String,
        /// The folder.
        folder: PathBuf,
        /// The file in the folder.
        path: PathBuf,
        /// The input, as it was named.
        input: PathBuf,
    },
    /// A file would be mixed with the JSON object on standard output.
    #[error(
        "{flag} {} is standard output, where --json prints one object and nothing else: name a file, \
         or leave out --json",
        path.display()
    )]
    StandardOutput {
        /// The flag of the output.
        flag: String,
        /// The output.
        path: PathBuf,
    },
    /// A file or folder does not fit a run that starts or resumes.
    #[error("{}: {reason}", path.display())]
    Run {
        /// The file or folder.
        path: PathBuf,
        /// The fault, and the remedy.
        reason: String,
    },
}
