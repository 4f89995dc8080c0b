//! Errors of reading and writing files, with the place in the file.
//!
//! Format modules report a [`Fault`], which knows the place but not the file; the entry points
//! add the file and turn it into the public [`Error`]. **Invariant others rely on:** the text of
//! an [`Error`] is a single line that names the file and, if there is one, the place.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use nearfield_grid::memory::Shortage;

use crate::format::Format;

/// Why a file could not be read or written.
///
/// Its text is one line, for example
/// `run/cloud.csv, line 7, column 2: 'abc' is not a number`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{subject}{}: {}", fault.place, OneLine(&fault.message))]
pub struct Error {
    subject: Subject,
    fault: Fault,
}

impl Error {
    /// Kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.fault.kind
    }

    /// The file concerned; `None` for bytes given to [`parse_points`](crate::parse_points).
    pub fn path(&self) -> Option<&Path> {
        match &self.subject {
            Subject::File(path) => Some(path),
            Subject::Memory(_) => None,
        }
    }

    /// The place of the failure in the file.
    pub fn place(&self) -> Place {
        self.fault.place
    }
}

/// The sort of a failure, for callers that treat them differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused: the file is missing, not readable, the disk is full.
    Io(io::ErrorKind),
    /// The extension belongs to no known format.
    UnknownFormat,
    /// The file holds nothing at all.
    Empty,
    /// The file is shorter than it announces.
    Truncated,
    /// The contents contradict the format or themselves.
    Malformed,
    /// The contents are valid but of a kind that is not read here.
    Unsupported,
    /// The system has refused memory.
    OutOfMemory,
    /// The data to be written are not consistent.
    InvalidArgument,
}

/// The place of a failure in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// The file as a whole.
    Whole,
    /// A line, counted from 1.
    Line(usize),
    /// A column of a line, both counted from 1; columns are fields, not characters.
    Column {
        /// Line, counted from 1.
        line: usize,
        /// Field of that line, counted from 1.
        column: usize,
    },
    /// A byte, counted from 0.
    Byte(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::Line(line) => write!(f, ", line {line}"),
            Self::Column { line, column } => write!(f, ", line {line}, column {column}"),
            Self::Byte(byte) => write!(f, ", byte {byte}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Subject {
    File(PathBuf),
    Memory(Format),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => OneLine(&path.display()).fmt(f),
            Self::Memory(format) => write!(f, "{format} data"),
        }
    }
}

/// Characters of a message at most.
const MAX_SHOWN: usize = 400;

/// A failure and its place, before the file is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    kind: ErrorKind,
    place: Place,
    message: String,
}

/// Result of the format modules.
pub(crate) type Parsed<T> = Result<T, Fault>;

impl Fault {
    /// Cuts a long message, because names of columns and messages of the XML library may repeat
    /// long parts of the file.
    pub(crate) fn new(kind: ErrorKind, place: Place, message: impl Into<String>) -> Self {
        Self {
            kind,
            place,
            message: cut(&message.into(), MAX_SHOWN),
        }
    }

    pub(crate) fn malformed(place: Place, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Malformed, place, message)
    }

    pub(crate) fn truncated(place: Place, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Truncated, place, message)
    }

    pub(crate) fn unsupported(place: Place, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, place, message)
    }

    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, Place::Whole, message)
    }

    /// `action` names the failed action, for example "cannot read".
    pub(crate) fn io(action: &str, error: &io::Error) -> Self {
        Self::new(
            ErrorKind::Io(error.kind()),
            Place::Whole,
            format!("{action}: {error}"),
        )
    }

    /// Whether the file ends too early, which a later frame may.
    pub(crate) fn is_truncated(&self) -> bool {
        self.kind == ErrorKind::Truncated
    }

    pub(crate) fn in_file(self, path: &Path) -> Error {
        Error {
            subject: Subject::File(path.to_owned()),
            fault: self,
        }
    }

    pub(crate) fn in_memory(self, format: Format) -> Error {
        Error {
            subject: Subject::Memory(format),
            fault: self,
        }
    }
}

impl From<Shortage> for Fault {
    fn from(shortage: Shortage) -> Self {
        Self::new(ErrorKind::OutOfMemory, Place::Whole, shortage.to_string())
    }
}

/// Shows a value with control characters escaped, so that it cannot break the line.
struct OneLine<'a, T: ?Sized>(&'a T);

impl<T: fmt::Display + ?Sized> fmt::Display for OneLine<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.to_string().chars() {
            if character.is_control() {
                write!(f, "{}", character.escape_default())?;
            } else {
                write!(f, "{character}")?;
            }
        }
        Ok(())
    }
}

/// Text from a file as it appears in a message: quoted, cut when it is long, and without control
/// characters, as it also goes into messages of other crates.
pub(crate) fn quoted(text: &[u8]) -> String {
    format!("'{}'", OneLine(&cut(&String::from_utf8_lossy(text), 40)))
}

/// The first `max` characters, and a sign if there are more.
fn cut(text: &str, max: usize) -> String {
    let mut shown: String = text.chars().take(max).collect();
    if text.chars().nth(max).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_stays_on_one_line_whatever_the_file_holds() {
        let fault = Fault::malformed(Place::Line(3), quoted(b"a\nb\r\x1b[2Jc"));
        let text = fault.in_file(Path::new("odd\nname.csv")).to_string();
        assert_eq!(text, r"odd\nname.csv, line 3: 'a\nb\r\u{1b}[2Jc'");
    }

    #[test]
    fn long_text_is_cut_in_messages() {
        assert_eq!(quoted(&[b'x'; 1000]).chars().count(), 43);
        let fault = Fault::malformed(Place::Whole, format!("no {}", "x".repeat(1000)));
        assert_eq!(fault.message.chars().count(), MAX_SHOWN + 1);
        assert!(fault.message.ends_with("xx…"));
    }
}
