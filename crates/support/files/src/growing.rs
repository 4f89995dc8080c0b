//! Files that grow during a run, and that a run resumes at the length of a checkpoint.

use crate::{content::checksum, new_file::NewFile};
use std::{
    fmt,
    fs::File,
    io::{self, BufWriter, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    str::FromStr,
};

/// Bytes at the begin and at the end of a file by which it is known again.
const KNOWN_BY: u64 = 1 << 16;

/// How far a file had grown: its name in the folder of its run, its length, and a checksum of the
/// first and the last 64 KiB up to there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grown {
    name: String,
    len: u64,
    sum: u64,
}

impl Grown {
    fn of(path: &Path, len: u64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let name = path.file_name().unwrap_or_default();
        Ok(Self {
            name: name.to_string_lossy().into_owned(),
            len,
            sum: sum(&mut file, len)?,
        })
    }

    /// The name of the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The reason for which the file in this folder is not the one of the checkpoint.
    pub(crate) fn check(&self, folder: &Path) -> Result<(), String> {
        let remedy = "go on in the folder of the checkpoint's run, or in a new one";
        let len = self.len;
        let mut file = File::open(folder.join(&self.name)).map_err(|error| {
            format!("{error}; the run had written {len} bytes of it by its checkpoint: {remedy}")
        })?;
        let found = file.metadata().map_err(|error| error.to_string())?.len();
        if found < len {
            return Err(format!(
                "has {found} bytes, but the run had written {len} by its checkpoint: {remedy}"
            ));
        }
        match sum(&mut file, len) {
            Ok(sum) if sum == self.sum => Ok(()),
            Ok(_) => Err(format!("is of another run than the checkpoint: {remedy}")),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// A checksum of the begin and the end of the first `len` bytes.
fn sum(file: &mut File, len: u64) -> io::Result<u64> {
    let most = len.min(KNOWN_BY);
    let mut bytes = Vec::new();
    for begin in [0, len - most] {
        file.seek(SeekFrom::Start(begin))?;
        (&*file).take(most).read_to_end(&mut bytes)?;
    }
    Ok(checksum(&bytes))
}

impl fmt::Display for Grown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:016x}", self.name, self.len, self.sum)
    }
}

impl FromStr for Grown {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut words = text.split(' ');
        let (Some(name), Some(len), Some(sum), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(());
        };
        // A name is that of a file in the folder of the run, not a path out of it.
        if name.is_empty() || name.contains(['/', '\\']) || name == ".." {
            return Err(());
        }
        Ok(Self {
            name: name.to_owned(),
            len: len.parse().map_err(drop)?,
            sum: u64::from_str_radix(sum, 16).map_err(drop)?,
        })
    }
}

/// A file that grows by parts during a run. It replaces an existing file when its first part is
/// [complete](Self::complete).
#[derive(Debug)]
pub struct GrowingFile {
    path: PathBuf,
    file: BufWriter<NewFile>,
}

impl GrowingFile {
    /// Begins a file.
    ///
    /// # Errors
    /// As [`NewFile::create`].
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref().to_owned();
        let file = BufWriter::new(NewFile::create(&path)?);
        Ok(Self { path, file })
    }

    /// Resumes a file of this folder at the length of a checkpoint, and truncates the rest.
    ///
    /// # Errors
    /// The system's error.
    pub fn go_on(folder: &Path, from: &Grown) -> io::Result<Self> {
        let path = folder.join(&from.name);
        let file = BufWriter::new(NewFile::cut(&path, from.len)?);
        Ok(Self { path, file })
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Ends a part, which readers see from then on.
    ///
    /// # Errors
    /// The system's error.
    pub fn complete(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_mut().settle()
    }

    /// How far the file has grown, for a checkpoint; everything up to there is on the disk then.
    ///
    /// # Errors
    /// The system's error.
    pub fn grown(&mut self) -> io::Result<Grown> {
        self.complete()?;
        let file = self.file.get_mut();
        file.sync()?;
        let len = file.stream_position()?;
        Grown::of(&self.path, len)
    }
}

impl Write for GrowingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;
    use std::fs;

    #[test]
    fn a_file_goes_on_where_it_was_cut_and_others_are_refused_by_name() {
        let place = tempfile::tempdir().unwrap();
        let (folder, path) = (place.path(), place.path().join("table.csv"));
        let mut file = GrowingFile::create(&path).unwrap();
        file.write_all(b"a\n1\n").unwrap();
        let grown = file.grown().unwrap();
        assert_eq!(grown.to_string().parse(), Ok(grown.clone()));
        file.write_all(b"2\ntorn").unwrap();
        drop(file);
        let run = Run::new("x").grown([grown.clone()]);
        assert!(run.grew_in(folder).unwrap());
        let mut file = GrowingFile::go_on(folder, &grown).unwrap();
        file.write_all(b"2\n3\n").unwrap();
        file.complete().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a\n1\n2\n3\n");
        assert_eq!(file.grown().unwrap().len, 8);

        let refused = || run.grew_in(folder).unwrap_err().to_string();
        fs::write(&path, "b\n1\n2\n").unwrap();
        assert!(
            refused().contains("table.csv: is of another run"),
            "{}",
            refused()
        );
        fs::write(&path, "a\n1").unwrap();
        assert!(
            refused().contains("has 3 bytes, but the run had written 4"),
            "{}",
            refused()
        );
        let both = run.clone().grown([grown, "other.csv 1 0".parse().unwrap()]);
        fs::write(&path, "a\n1\n").unwrap();
        let missing = both.grew_in(folder).unwrap_err().to_string();
        assert!(missing.contains("other.csv: ") && missing.contains("written 1 bytes"));
        fs::remove_file(&path).unwrap();
        assert!(!run.grew_in(folder).unwrap(), "a new folder");
        for bad in ["../a 1 0", "a", "a 1 x", " 1 0", ".. 1 0", "a 1 0 0"] {
            assert!(bad.parse::<Grown>().is_err(), "{bad}");
        }
    }

    #[test]
    fn large_files_are_known_by_both_their_ends() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("large");
        let mut bytes = vec![7u8; 3 << 16];
        fs::write(&path, &bytes).unwrap();
        let grown = Grown::of(&path, (3 << 16) - 5).unwrap();
        assert_eq!(grown.check(place.path()), Ok(()));
        for at in [0, (3 << 16) - 6] {
            bytes[at] = 8;
            fs::write(&path, &bytes).unwrap();
            assert!(grown.check(place.path()).is_err(), "byte {at}");
            bytes[at] = 7;
        }
    }
}
