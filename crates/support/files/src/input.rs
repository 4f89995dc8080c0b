//! Reads files with clear errors: the system's message for a folder depends on the call that meets
//! it, and a binary file given as text would be refused by its first odd character.

use std::{fs, io, path::Path};

/// First bytes of files that are not text, with their kinds.
const KNOWN: [(&[u8], &str); 7] = [
    (b"\x93NUMPY", "a NumPy array (.npy)"),
    (b"PK\x03\x04", "a ZIP archive, as .npz, .xlsx and .ods are"),
    (b"\x1f\x8b", "compressed by gzip"),
    (b"\x28\xb5\x2f\xfd", "compressed by Zstandard"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\xff\xfe", "text in UTF-16"),
    (b"\xfe\xff", "text in UTF-16"),
];
/// Bytes that are searched for a zero, which text does not hold.
const SEARCHED: usize = 4096;

/// Names the kind of a file that holds no text in UTF-8 or ASCII, as far as its first bytes tell.
pub fn not_text(bytes: &[u8]) -> Option<&'static str> {
    let known = KNOWN.iter().find(|(begin, _)| bytes.starts_with(begin));
    let binary = || bytes.iter().take(SEARCHED).any(|&byte| byte == 0);
    match known {
        Some((_, what)) => Some(what),
        None => binary().then_some("binary data"),
    }
}

/// The contents of a file.
///
/// # Errors
/// The system's error; [`io::ErrorKind::IsADirectory`] for a folder and
/// [`io::ErrorKind::OutOfMemory`], with the bytes, for a file that memory is too short for.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let path = path.as_ref();
    fs::read(path).map_err(|error| match error.kind() {
        io::ErrorKind::OutOfMemory => {
            let bytes = fs::metadata(path).map_or(0, |about| about.len());
            let message = format!(
                "out of memory: {bytes} bytes are needed for the contents of the file; raise the \
                 limit (ulimit -v, or that of a container), or split the file"
            );
            io::Error::new(io::ErrorKind::OutOfMemory, message)
        }
        _ => of_a_file(path, error),
    })
}

/// Refuses work that memory is too short for before it begins: libraries that draw, parse and
/// encode end the process where memory is refused.
///
/// # Errors
/// [`io::ErrorKind::OutOfMemory`] with the number of bytes.
pub fn ask_for_memory(bytes: usize, what: &str) -> io::Result<()> {
    let mut room: Vec<u8> = Vec::new();
    (room.try_reserve_exact(bytes)).map_err(|_| out_of_memory(bytes, what))
}

/// The error for `bytes` refused by the system for `what`.
pub(crate) fn out_of_memory(bytes: usize, what: &str) -> io::Error {
    let message = format!(
        "out of memory: {bytes} bytes are needed for {what}; raise the limit (ulimit -v, or that \
         of a container)"
    );
    io::Error::new(io::ErrorKind::OutOfMemory, message)
}

/// The contents of a text file, without the mark that some editors put before UTF-8.
///
/// # Errors
/// As [`read`], and [`io::ErrorKind::InvalidData`] for a file that is not UTF-8 text.
pub fn read_text(path: impl AsRef<Path>) -> io::Result<String> {
    let bytes = read(path)?;
    let refuse = |what: &str| {
        let message = format!("this is {what}, not a text file in UTF-8");
        io::Error::new(io::ErrorKind::InvalidData, message)
    };
    if let Some(what) = not_text(&bytes) {
        return Err(refuse(what));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let line = 1
            + (error
                .as_bytes()
                .iter()
                .take(error.utf8_error().valid_up_to()))
            .filter(|&&byte| byte == b'\n')
            .count();
        let message = format!("line {line} is not text in UTF-8");
        io::Error::new(io::ErrorKind::InvalidData, message)
    });
    text.map(|mut text| {
        if text.starts_with('\u{feff}') {
            text.drain(..'\u{feff}'.len_utf8());
        }
        text
    })
}

/// The error of opening or reading a file, in clear words if the path leads to a folder.
pub fn of_a_file(path: &Path, error: io::Error) -> io::Error {
    if path.is_dir() {
        let message = "this is a folder; name a file";
        return io::Error::new(io::ErrorKind::IsADirectory, message);
    }
    error
}

/// Makes a folder for output, and those above it, where they are missing.
///
/// # Errors
/// The system's error; [`io::ErrorKind::NotADirectory`] if the path leads to a file.
pub fn make_folder(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    fs::create_dir_all(path).map_err(|error| {
        if path.exists() && !path.is_dir() {
            let message = "this is a file; name a folder";
            return io::Error::new(io::ErrorKind::NotADirectory, message);
        }
        error
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_files_are_told_apart() {
        let place = tempfile::tempdir().unwrap();
        let error = read(place.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
        assert_eq!(error.to_string(), "this is a folder; name a file");
        assert_eq!(
            read_text(place.path()).unwrap_err().to_string(),
            error.to_string()
        );
        let file = place.path().join("file");
        fs::write(&file, "text\n").unwrap();
        let error = make_folder(&file).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
        assert_eq!(error.to_string(), "this is a file; name a folder");
        let missing = read(place.path().join("missing")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        make_folder(place.path().join("a/b")).unwrap();
        make_folder(place.path()).unwrap();
    }

    #[test]
    fn files_that_are_no_text_are_named() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("table.csv");
        for (bytes, what) in [
            (&b"\x93NUMPY\x01\0"[..], "a NumPy array"),
            (b"PK\x03\x04\x14", "a ZIP archive"),
            (b"\x1f\x8b\x08", "compressed by gzip"),
            (b"\xff\xfex\0,\0y\0", "text in UTF-16"),
            (b"1,2\n\0\0", "binary data"),
            (b"1,2\n3,4\n\xff\xe9,5", "line 3 is not text in UTF-8"),
        ] {
            fs::write(&path, bytes).unwrap();
            let error = read_text(&path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert!(error.to_string().contains(what), "{error}");
        }
        for text in ["", "1,2\n", "\u{feff}x,y\n", "\u{fc}ber"] {
            fs::write(&path, text).unwrap();
            assert_eq!(
                read_text(&path).unwrap(),
                text.trim_start_matches('\u{feff}')
            );
        }
    }
}
